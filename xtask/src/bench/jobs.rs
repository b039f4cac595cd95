//! The usual jobs of fio and dd on served drives, compared with the same jobs simulated.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use super::nbd::{Bench, Load, Served, Server};
use super::request_log::{self, Logged};
use crate::shell;

/// The options of the benchmark.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Duration of each job in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Speed of the drive's time relative to real time; below 1, delays of the machine matter less
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Drives to serve
    #[arg(value_name = "DRIVE", default_values = ["generic-20tb", "cheetah15k7", "atlas10k2"])]
    drives: Vec<String>,
}

/// The largest accepted relative difference between the rates of a served and a simulated drive.
const TOLERANCE: f64 = 0.05;
/// Jobs of fio: pattern, block size, depth, workload specification, and whether the simulation
/// includes the client's turnaround as think time.
const JOBS: [(&str, &str, u32, &str, bool); 7] = [
    ("read", "4k", 1, "sequential,size=4KiB", true),
    ("read", "128k", 1, "sequential,size=128KiB", false),
    (
        "read",
        "128k",
        8,
        "sequential,size=128KiB,outstanding=8",
        false,
    ),
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
/// Jobs on the block device with direct I/O: program, block size in bytes, workload specification,
/// and whether the simulation includes the turnaround.
const DEVICE_JOBS: [(&str, u64, &str, bool); 6] = [
    ("dd", 4 << 10, "sequential,size=4KiB", true),
    ("dd", 128 << 10, "sequential,size=128KiB", false),
    ("dd", 1 << 20, "sequential,size=1MiB", false),
    ("fio", 4 << 10, "sequential,size=4KiB", true),
    ("fio", 128 << 10, "sequential,size=128KiB", false),
    ("fio", 1 << 20, "sequential,size=1MiB", false),
];

/// The time in milliseconds below which a pause counts as a client's turnaround. Longer pauses are
/// those between one program and the next.
const TURNAROUND_MAX_MS: f64 = 10.0;

/// The largest size in bytes of the kernel's reads when it looks for partition tables.
const PROBE_BYTES_MAX: u64 = 4 << 10;

pub(super) fn run(seed: u64, options: &Options) -> Result<ExitCode> {
    let Some(bench) = Bench::build("bench-jobs", seed, &["fio"])? else {
        return Ok(ExitCode::SUCCESS);
    };
    let bench = JobBench {
        log: bench.folder.join("requests.csv"),
        trace: bench.folder.join("turnarounds.trace"),
        bench,
        seconds: options.seconds,
        speed: options.speed,
        seed,
    };
    println!(
        "{:<18}{:<18}{:>6}{:>6}{:>12}{:>12}{:>12}{:>8}",
        "requests/s", "", "size", "depth", "turnaround", "simulated", "served", "ratio"
    );
    let can_attach = can_attach();
    let mut good = true;
    for drive in &options.drives {
        for (pattern, block, depth, workload, with_turnaround) in JOBS {
            let served = bench.fio(drive, pattern, block, depth)?;
            let job = format!("fio {pattern}");
            good &= bench.compare(drive, &job, block, depth, workload, with_turnaround, served)?;
        }
        for (program, block, workload, with_turnaround) in DEVICE_JOBS {
            if can_attach {
                let served = bench.on_device(drive, program, block)?;
                let job = format!("{program}, loop device");
                let size = format!("{}k", block >> 10);
                good &= bench.compare(drive, &job, &size, 1, workload, with_turnaround, served)?;
            }
        }
    }
    if !can_attach {
        println!("loop device: skipped: it needs root, /dev/fuse and /dev/loop-control");
    }
    println!(
        "Ratios must be within {TOLERANCE} of 1. In sequential jobs of 4k, the think time of the simulated host is the client's \
         turnaround: the time from a completion to the next arrival in the served drive's log. The first line of such a job uses \
         the mean, the second line each request's own."
    );
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct JobBench {
    bench: Bench,
    log: PathBuf,
    trace: PathBuf,
    seconds: u32,
    speed: f64,
    seed: u64,
}

impl JobBench {
    fn serve(&self, drive: &str) -> Result<Server> {
        self.bench.serve(&Served::Drive(vec![
            drive.to_owned(),
            format!("--log={}", self.log.display()),
            format!("--speed={}", self.speed),
        ]))
    }

    /// Runs a job of fio; returns its requests per second of the drive's time.
    fn fio(&self, drive: &str, pattern: &str, block: &str, depth: u32) -> Result<f64> {
        let server = self.serve(drive)?;
        let time = format!("--runtime={}", self.seconds);
        let more = ["--size=100%", "--time_based", &time];
        let load = Load::new(pattern, block, depth);
        let rate = self.bench.fio(&server, load, &more)?;
        server.stop()?;
        Ok(rate / self.speed)
    }

    /// Reads sequentially from the drive as a block device; returns the requests per second at the
    /// drive, from the first to the last request. Requests that the kernel splits count as
    /// fractions.
    fn on_device(&self, drive: &str, program: &str, block: u64) -> Result<f64> {
        let folder = self.bench.folder.join("fuse");
        fs::create_dir_all(&folder)?;
        let seconds = self.seconds;
        let script = match program {
            "dd" => format!(
                "timeout --signal=INT {seconds} dd if=\"$device\" of=/dev/null bs={block} iflag=direct; true"
            ),
            _ => format!(
                "fio --name=job --filename=\"$device\" --ioengine=libaio --direct=1 --rw=read --bs={block} --readonly \
                 --time_based --runtime={seconds} >&2"
            ),
        };
        let mut serve = Command::new(&self.bench.traxtent);
        serve.args(["serve", drive, "--read-only", "--device", "--fuse"]);
        serve.arg(folder).arg("--log").arg(&self.log);
        serve.arg(format!("--speed={}", self.speed));
        shell::stdout_of(serve.args(["--", "sh", "-c", &script]))?;
        let requests = request_log::read(&self.log)?;
        // The kernel looks for partition tables first.
        let of_job = requests
            .iter()
            .skip_while(|request| request.bytes() <= PROBE_BYTES_MAX.min(block - 1));
        let of_job: Vec<&Logged> = of_job.collect();
        let [first, others @ ..] = &of_job[..] else {
            bail!("no request of {program} has reached the drive");
        };
        let last = others
            .last()
            .context("only one request has reached the drive")?;
        let bytes: u64 = others.iter().map(|request| request.bytes()).sum();
        Ok(bytes as f64 / block as f64 / (last.completed_ms - first.completed_ms) * 1e3)
    }

    /// Writes the logged requests as a trace of requests and pauses, in DiskSim's format. The
    /// pauses are the client's turnarounds. Returns the mean of those below [`TURNAROUND_MAX_MS`],
    /// in microseconds.
    fn write_trace(&self) -> Result<f64> {
        let mut requests = request_log::read(&self.log)?;
        // The kernel opens and closes a device with flushes.
        requests.retain(|request| request.sectors > 0);
        let pauses: Vec<f64> = (requests.windows(2))
            .map(|pair| (pair[1].submitted_ms - pair[0].completed_ms).max(0.0))
            .collect();
        let lines: String = (requests.iter().zip(&pauses))
            .map(|(request, pause)| {
                let (lbn, sectors) = (request.lbn, request.sectors);
                format!("R Miss {lbn} {sectors} 0 {:.3}\n", 1e3 * pause)
            })
            .collect();
        fs::write(&self.trace, lines)?;
        let short = pauses.iter().filter(|pause| **pause < TURNAROUND_MAX_MS);
        let count = short.clone().count();
        ensure!(count > 0, "{} has no turnaround", self.log.display());
        Ok(1e3 * short.sum::<f64>() / count as f64)
    }

    /// Prints lines that compare the served rate with simulations. Returns whether they agree.
    #[allow(clippy::too_many_arguments, reason = "the columns of a line")]
    fn compare(
        &self,
        drive: &str,
        job: &str,
        size: &str,
        depth: u32,
        workload: &str,
        with_turnaround: bool,
        served: f64,
    ) -> Result<bool> {
        let line = |turnaround: &str, simulated: f64| {
            let ratio = served / simulated;
            let holds = (ratio - 1.0).abs() <= TOLERANCE;
            println!(
                "{drive:<18}{job:<18}{size:>6}{depth:>6}{turnaround:>12}{simulated:>12.1}{served:>12.1}{ratio:>8.3}{}",
                if holds { "" } else { "  missed" },
            );
            holds
        };
        if !with_turnaround {
            return Ok(line("", self.simulated_workload(drive, workload)?));
        }
        let mean_us = self.write_trace()?;
        let with_mean = format!("{workload},think={mean_us:.1}us");
        let by_mean = self.simulated_workload(drive, &with_mean)?;
        let trace = self.trace.display().to_string();
        let by_each = self.simulated(drive, &[&trace, "--format", "disksim-validate"])?;
        let holds = line(&format!("{mean_us:.1} us"), by_mean);
        Ok(line("each", by_each) && holds)
    }

    /// Returns the requests per second of a simulated synthetic workload.
    fn simulated_workload(&self, drive: &str, workload: &str) -> Result<f64> {
        let seconds = f64::from(self.seconds) * self.speed;
        let line = format!("{workload},count=1000000000,time={seconds}s");
        self.simulated(drive, &[&line, "--seed", &self.seed.to_string()])
    }

    /// Returns the requests per second of a simulation.
    fn simulated(&self, drive: &str, workload: &[&str]) -> Result<f64> {
        let mut command = Command::new(&self.bench.traxtent);
        command.args(["sim", drive, "--json"]).args(workload);
        let summary: serde_json::Value = serde_json::from_str(&shell::stdout_of(&mut command)?)?;
        summary["requests_per_s"]
            .as_f64()
            .context("no rate in the summary")
    }
}

/// Returns whether this machine can attach a drive as a loop device.
fn can_attach() -> bool {
    let devices = ["/dev/fuse", "/dev/loop-control"];
    shell::is_root() && devices.iter().all(|device| fs::File::open(device).is_ok())
}
