//! The usual jobs of fio and dd on served drives, compared with the same jobs simulated.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use super::nbd::{Bench, Load, Served, Server};
use crate::shell;

/// The duration of a job, and the drives.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Seconds that each job runs
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// How many times as fast as real the drive's time passes. Below 1, a busy machine adds less
    #[arg(long, default_value_t = 1.0)]
    speed: f64,
    /// Drives to serve
    #[arg(value_name = "DRIVE", default_values = ["generic-20tb", "cheetah15k7", "atlas10k2"])]
    drives: Vec<String>,
}

/// The largest accepted difference between a served and a simulated drive.
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
/// Jobs of `dd` with direct I/O: block size in bytes, workload specification, and whether the
/// simulation includes the turnaround.
const DD_JOBS: [(u64, &str, bool); 3] = [
    (4 << 10, "sequential,size=4KiB", true),
    (128 << 10, "sequential,size=128KiB", false),
    (1 << 20, "sequential,size=1MiB", false),
];

/// The size of the requests by which the kernel looks for partition tables.
const PROBE_BYTES: u64 = 4 << 10;

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
        for (pattern, block, depth, workload, counts) in JOBS {
            let served = bench.fio(drive, pattern, block, depth)?;
            let job = format!("fio {pattern}");
            good &= bench.compare(drive, &job, block, depth, workload, counts, served)?;
        }
        for (block, workload, counts) in DD_JOBS {
            if can_attach {
                let served = bench.dd(drive, block)?;
                let size = format!("{}k", block >> 10);
                good &= bench.compare(drive, "dd", &size, 1, workload, counts, served)?;
            }
        }
    }
    if !can_attach {
        println!("dd: skipped: only root may attach loop devices, or there is no /dev/fuse");
    }
    println!(
        "A ratio within {TOLERANCE} of 1 is asked for. At 4k in sequence the simulated host pauses after each request as long as the \
         client did, from the completion to the next arrival at the served drive, by its request log. The table has the mean."
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

    /// Reads with `dd` from the drive as a block device; returns the requests per second at the
    /// drive, from the first to the last request. Those that the kernel splits count in part.
    fn dd(&self, drive: &str, block: u64) -> Result<f64> {
        let folder = self.bench.folder.join("fuse");
        fs::create_dir_all(&folder)?;
        let script = format!(
            "timeout --signal=INT {} dd if=\"$device\" of=/dev/null bs={block} iflag=direct; true",
            self.seconds
        );
        let mut serve = Command::new(&self.bench.traxtent);
        serve.args(["serve", drive, "--read-only", "--device", "--fuse"]);
        serve.arg(folder).arg("--log").arg(&self.log);
        serve.arg(format!("--speed={}", self.speed));
        shell::stdout_of(serve.args(["--", "sh", "-c", &script]))?;
        let requests = self.requests()?;
        // The kernel looks for partition tables first.
        let of_dd = requests
            .iter()
            .skip_while(|request| request.bytes <= PROBE_BYTES.min(block - 1));
        let of_dd: Vec<&Logged> = of_dd.collect();
        let [first, others @ ..] = &of_dd[..] else {
            bail!("no request of dd has arrived");
        };
        let last = others.last().context("only one request has arrived")?;
        let bytes: u64 = others.iter().map(|request| request.bytes).sum();
        Ok(bytes as f64 / block as f64 / (last.completed - first.completed) * 1e3)
    }

    /// Reads the request log of the served drive.
    fn requests(&self) -> Result<Vec<Logged>> {
        let text = fs::read_to_string(&self.log)?;
        let mut lines = text.lines();
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let column = |name: &str| names.iter().position(|column| *column == name);
        let columns = ["lbn", "sectors", "submitted_ms", "completed_ms"].map(column);
        lines
            .map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let cell =
                    |column: Option<usize>| -> Option<f64> { cells.get(column?)?.parse().ok() };
                Some(Logged {
                    lbn: cell(columns[0])? as u64,
                    bytes: cell(columns[1])? as u64 * 512,
                    submitted: cell(columns[2])?,
                    completed: cell(columns[3])?,
                })
            })
            .collect::<Option<Vec<Logged>>>()
            .with_context(|| format!("{} is not a request log", self.log.display()))
    }

    /// Writes the logged requests as a trace of requests and pauses, in DiskSim's format. The
    /// pauses are the client's turnarounds. Returns their mean in microseconds.
    fn write_trace(&self) -> Result<f64> {
        let mut requests = self.requests()?;
        // The kernel opens and closes a device with flushes.
        requests.retain(|request| request.bytes > 0);
        ensure!(requests.len() > 1, "{} has no requests", self.log.display());
        let pauses: Vec<f64> = (requests.windows(2))
            .map(|pair| 1e3 * (pair[1].submitted - pair[0].completed).max(0.0))
            .collect();
        let lines: String = (requests.iter().zip(&pauses))
            .map(|(request, pause)| {
                let (lbn, sectors) = (request.lbn, request.bytes / 512);
                format!("R Miss {lbn} {sectors} 0 {pause:.3}\n")
            })
            .collect();
        fs::write(&self.trace, lines)?;
        Ok(pauses.iter().sum::<f64>() / pauses.len() as f64)
    }

    /// Prints a line that compares the served rate with a simulation. Returns whether they agree.
    #[allow(clippy::too_many_arguments, reason = "the columns of a line")]
    fn compare(
        &self,
        drive: &str,
        job: &str,
        size: &str,
        depth: u32,
        workload: &str,
        counts: bool,
        served: f64,
    ) -> Result<bool> {
        let (turnaround, simulated) = if counts {
            let mean_us = self.write_trace()?;
            let trace = self.trace.display().to_string();
            let options = [&trace, "--format", "disksim-validate"];
            (format!("{mean_us:.1} us"), self.simulated(drive, &options)?)
        } else {
            let seconds = f64::from(self.seconds) * self.speed;
            let line = format!("{workload},count=1000000000,time={seconds}s");
            let seed = self.seed.to_string();
            (
                String::new(),
                self.simulated(drive, &[&line, "--seed", &seed])?,
            )
        };
        let ratio = served / simulated;
        let holds = (ratio - 1.0).abs() <= TOLERANCE;
        println!(
            "{drive:<18}{job:<18}{size:>6}{depth:>6}{:>12}{simulated:>12.1}{served:>12.1}{ratio:>8.3}{}",
            turnaround,
            if holds { "" } else { "  missed" },
        );
        Ok(holds)
    }

    /// The requests per second of a simulation.
    fn simulated(&self, drive: &str, workload: &[&str]) -> Result<f64> {
        let mut command = Command::new(&self.bench.traxtent);
        command.args(["sim", drive, "--json"]).args(workload);
        let summary: serde_json::Value = serde_json::from_str(&shell::stdout_of(&mut command)?)?;
        summary["requests_per_s"]
            .as_f64()
            .context("no rate in the summary")
    }
}

/// A logged request. Times are in milliseconds of the drive's clock.
struct Logged {
    lbn: u64,
    bytes: u64,
    submitted: f64,
    completed: f64,
}

/// Returns whether this machine can show a drive as a loop device.
fn can_attach() -> bool {
    let devices = ["/dev/fuse", "/dev/loop-control"];
    shell::is_root() && devices.iter().all(|device| fs::File::open(device).is_ok())
}
