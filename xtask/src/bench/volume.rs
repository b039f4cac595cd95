//! Benchmarks of volumes whose members are files in memory. A served volume is compared with a
//! served file, and a volume is accessed directly.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Result;

use super::nbd::{Bench, Load, Served, median};
use crate::shell;

/// The options of the benchmark.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Duration of each load of a served volume in seconds
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// Directory in memory with room for 3 GB
    #[arg(long, default_value = "/dev/shm")]
    memory: PathBuf,
    /// Measure only served volumes, or only volumes accessed directly
    #[arg(long)]
    only: Option<Part>,
}

/// The two measurements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Served volumes
    Served,
    /// Volumes accessed directly
    Direct,
}

/// The lowest acceptable rate, as a share of a plain file's.
const SHARE_LEAST: f64 = 0.8;
/// The number of times that each load runs on each side. The sides alternate.
const ROUNDS: usize = 5;
/// The size of the plain file in bytes. Each of the volume's four members has a quarter of it and
/// 1 MiB more.
const SIZE_BYTES: u64 = 512 << 20;

/// The loads of fio: name, pattern, block, block in bytes, queue depth.
const LOADS: [(&str, &str, &str, f64, u32); 4] = [
    ("1 MiB sequential read", "read", "1m", 1048576.0, 4),
    ("1 MiB sequential write", "write", "1m", 1048576.0, 4),
    ("4 KiB random read", "randread", "4k", 4096.0, 32),
    ("4 KiB random write", "randwrite", "4k", 4096.0, 32),
];

/// A directory that is deleted when it goes out of scope.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the requested measurements; fails if a served volume's rate is below the requirement.
pub(super) fn run(seed: u64, options: &Options) -> Result<ExitCode> {
    let folder = Folder(
        options
            .memory
            .join(format!("traxtent-{}", std::process::id())),
    );
    fs::create_dir_all(&folder.0)?;
    let wanted = |part| options.only.is_none_or(|only| only == part);
    let mut good = true;
    if wanted(Part::Served) {
        good &= served(seed, options.seconds, &folder.0)?;
    }
    if wanted(Part::Direct) {
        let mut bench = shell::bench("traxtent-server", "volume");
        shell::run(bench.arg(seed.to_string()).arg(&folder.0))?;
    }
    Ok(if good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Compares RAID-0 of four files with a file that nbdkit's file plugin serves.
fn served(seed: u64, seconds: u32, memory: &Path) -> Result<bool> {
    let Some(bench) = Bench::build("bench-volume", seed, &["fio", "nbdkit"])? else {
        return Ok(true);
    };
    let file = |name: &str, bytes: u64| -> Result<String> {
        let path = memory.join(name);
        fs::File::create(&path)?.set_len(bytes)?;
        Ok(path.display().to_string())
    };
    let plain = file("plain", SIZE_BYTES)?;
    let mut members = Vec::new();
    for name in ["a", "b", "c", "d"] {
        members.push(file(name, SIZE_BYTES / 4 + (1 << 20))?);
    }
    let mut create = Command::new(&bench.traxtent);
    create.args(["volume", "create", "--level", "raid-0", "--chunk", "64K"]);
    shell::stdout_of(create.args(&members))?;
    let sides = [
        Served::Nbdkit(vec!["file".to_owned(), plain]),
        Served::Volume(members.clone()),
    ];
    println!(
        "RAID-0 of 4 files in memory, chunks of 64 KiB, compared with nbdkit's file plugin on one file: requests/s, medians of {ROUNDS} rounds of {seconds} s on each side in turn; the ratio is the median of the rounds' ratios; processor seconds of the server per GB"
    );
    println!(
        "{:<24}{:>10}{:>10}{:>8}{:>12}{:>10}",
        "", "file", "volume", "ratio", "file s/GB", "volume"
    );
    let mut good = true;
    for (name, pattern, block, bytes, depth) in LOADS {
        let (mut rates, mut costs) = ([vec![], vec![]], [vec![], vec![]]);
        for _ in 0..ROUNDS {
            for (number, side) in sides.iter().enumerate() {
                let server = bench.serve(side)?;
                let size = format!("--size={}", SIZE_BYTES - (1 << 20));
                bench.fio(&server, Load::new("write", "1m", 4), &[&size])?;
                let before = server.processor_seconds()?;
                let time = format!("--runtime={seconds}");
                let load = Load::new(pattern, block, depth);
                let rate = bench.fio(&server, load, &[&size, "--time_based", &time])?;
                let spent = server.processor_seconds()? - before;
                rates[number].push(rate);
                costs[number].push(1e9 * spent / (rate * bytes * f64::from(seconds)));
                server.stop()?;
            }
        }
        // Other work on the machine affects both sides of a round alike.
        let ratio = median(std::iter::zip(&rates[1], &rates[0]).map(|(ours, file)| ours / file));
        let ([file, ours], [file_cost, our_cost]) = (rates.map(median), costs.map(median));
        good &= ratio >= SHARE_LEAST;
        let verdict = if ratio >= SHARE_LEAST { "" } else { "  missed" };
        println!(
            "{name:<24}{file:>10.0}{ours:>10.0}{ratio:>8.2}{file_cost:>12.2}{our_cost:>10.2}{verdict}"
        );
    }
    println!("required: at least {SHARE_LEAST}\n");
    for path in members {
        fs::remove_file(path)?;
    }
    Ok(good)
}
