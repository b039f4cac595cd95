//! Typical fio jobs on served drives, compared with the same jobs simulated.

use std::process::ExitCode;

use anyhow::{Context, Result};

use super::nbd::{Load, Server};
use crate::shell;

/// The duration and the drives.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Duration of each job in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Drives to serve
    #[arg(value_name = "DRIVE", default_values = ["generic-20tb", "cheetah15k7", "atlas10k2"])]
    drives: Vec<String>,
}

/// The greatest relative difference between a served and a simulated drive.
const TOLERANCE: f64 = 0.05;
/// The jobs of fio: pattern, block, depth, the line of the workload grammar, and whether the
/// client's turnaround counts in addition to the drive's time.
const JOBS: [(&str, &str, u32, &str, bool); 6] = [
    ("read", "4k", 1, "sequential,size=4KiB", true),
    ("read", "128k", 1, "sequential,size=128KiB", false),
    ("read", "1m", 1, "sequential,size=1MiB", false),
    ("read", "1m", 8, "sequential,size=1MiB,outstanding=8", false),
    ("randread", "4k", 1, "random,size=4KiB", false),
    (
        "randread",
        "4k",
        32,
        "random,size=4KiB,outstanding=32",
        false,
    ),
];
/// The drive that completes every request at once.
const AT_ONCE: &str = "instant";

pub(super) fn run(seed: u64, options: &Options) -> Result<ExitCode> {
    let Some(server) = Server::prepare("bench-jobs", seed)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let bench = Bench {
        server,
        seconds: options.seconds,
        seed,
    };
    let turnaround_us = 1e6 / bench.served(AT_ONCE, "read", "4k", 1)?;
    println!(
        "a drive that answers at once has an answer seen and the next request sent in {turnaround_us:.0} us"
    );
    println!(
        "{:<18}{:<12}{:>6}{:>6}{:>14}{:>14}{:>8}",
        "requests/s", "", "size", "depth", "simulated", "fio over NBD", "ratio"
    );
    let mut good = true;
    for drive in &options.drives {
        for (pattern, block, depth, workload, counts) in JOBS {
            let think = match counts {
                true => format!(",think={turnaround_us:.1}us"),
                false => String::new(),
            };
            let simulated = bench.simulated(drive, &format!("{workload}{think}"))?;
            let served = bench.served(drive, pattern, block, depth)?;
            let ratio = served / simulated;
            let verdict = match (ratio - 1.0).abs() <= TOLERANCE {
                true => "",
                false => "  missed",
            };
            good &= verdict.is_empty();
            println!(
                "{drive:<18}{pattern:<12}{block:>6}{depth:>6}{simulated:>14.1}{served:>14.1}{ratio:>8.3}{verdict}"
            );
        }
    }
    println!(
        "within {TOLERANCE} is asked for; at 4k the simulated host thinks for that time between requests in sequence"
    );
    Ok(match good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

struct Bench {
    server: Server,
    seconds: u32,
    seed: u64,
}

impl Bench {
    /// Returns the requests per second that fio completes.
    fn served(&self, drive: &str, pattern: &str, block: &str, depth: u32) -> Result<f64> {
        let nbdkit = self.server.serve(&[
            self.server.plugin.display().to_string(),
            format!("drive={drive}"),
        ])?;
        let time = format!("--runtime={}", self.seconds);
        let more = ["--size=100%", "--time_based", &time];
        let rate = self
            .server
            .fio(&nbdkit, Load::new(pattern, block, depth), &more)?;
        nbdkit.stop()?;
        Ok(rate)
    }

    /// Returns the requests per second of a simulation.
    fn simulated(&self, drive: &str, workload: &str) -> Result<f64> {
        let line = format!("{workload},count=1000000000,time={}s", self.seconds);
        let mut command = shell::cargo();
        command.args([
            "run",
            "--release",
            "--quiet",
            "--package",
            "traxtent",
            "--",
            "sim",
        ]);
        command.args([drive, &line, "--json", "--seed", &self.seed.to_string()]);
        let summary: serde_json::Value = serde_json::from_str(&shell::stdout_of(&mut command)?)?;
        summary["requests_per_s"]
            .as_f64()
            .context("no rate in the summary")
    }
}
