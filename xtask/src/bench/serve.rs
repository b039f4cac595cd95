//! A served drive under load: its speed where the model takes no time, and its truth where it does.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{packages, shell};

/// For how long, and of which drive.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Seconds that each load runs
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Measure only one of the two
    #[arg(long)]
    only: Option<Part>,
    /// Measure the truth at only this depth of the client's queue
    #[arg(long)]
    depth: Option<u32>,
    /// The drive whose truth is measured
    #[arg(long, default_value = "atlas10k2")]
    drive: String,
    /// Sectors of its tracks, for reads of whole tracks
    #[arg(long, default_value_t = 528)]
    track: u32,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// How fast a drive without mechanics is.
    Speed,
    /// How true one with mechanics is.
    Truth,
}

/// A plugin that is slower than this share of nbdkit's memory plugin is a miss.
const SHARE_LEAST: f64 = 0.8;
/// How often each load runs on each side, in turn.
const ROUNDS: usize = 5;
/// What fio's log of times is called.
const LOG: &str = "seen";
/// Bytes that loads spread over.
const SPREAD: &str = "256m";

/// Loads of fio: what it is called, its pattern, its block, its queue.
const LOADS: [(&str, &str, &str, u32); 4] = [
    ("4 KB random read", "randread", "4k", 32),
    ("4 KB random write", "randwrite", "4k", 32),
    ("1 MB sequential read", "read", "1m", 4),
    ("1 MB sequential write", "write", "1m", 4),
];

pub(super) fn run(seed: u64, options: &Options) -> Result<ExitCode> {
    packages::install(packages::FOR_SERVE);
    for program in ["nbdkit", "fio"] {
        if shell::program(program).is_none() {
            println!("skipped: {program} is not installed");
            return Ok(ExitCode::SUCCESS);
        }
    }
    let mut build = shell::cargo();
    build.args(["build", "--release", "--package", "traxtent-nbdkit"]);
    shell::run(&mut build)?;
    let plugin = shell::target_dir().join("release/libtraxtent_nbdkit.so");
    let folder = shell::target_dir().join("bench-serve");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let bench = Bench {
        folder,
        plugin,
        seed,
        seconds: options.seconds,
    };
    let wanted = |part| options.only.is_none_or(|only| only == part);
    let fast = !wanted(Part::Speed) || bench.speed()?;
    let is_true = !wanted(Part::Truth) || bench.truth(options)?;
    Ok(match fast && is_true {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

struct Bench {
    folder: PathBuf,
    plugin: PathBuf,
    seed: u64,
    seconds: u32,
}

impl Bench {
    /// Requests in a second, without mechanics, beside nbdkit's own memory plugin.
    fn speed(&self) -> Result<bool> {
        println!(
            "requests/s, medians of {ROUNDS} rounds of {} s on each side in turn; the ratio is the median of theirs",
            self.seconds
        );
        println!("{:<24}{:>12}{:>12}{:>8}", "", "memory", "traxtent", "ratio");
        let sides = [
            vec!["memory".to_owned(), "size=64G".to_owned()],
            vec![
                self.plugin.display().to_string(),
                "drive=instant".to_owned(),
            ],
        ];
        let mut good = true;
        for (name, pattern, block, depth) in LOADS {
            let mut rates = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                for (side, rates) in sides.iter().zip(&mut rates) {
                    let server = self.serve(side)?;
                    // A first time, so that there is something to be read.
                    self.fio(&server, "write", "1m", 4, &[&format!("--size={SPREAD}")])?;
                    let time = format!("--runtime={}", self.seconds);
                    let size = format!("--size={SPREAD}");
                    let loads = [size.as_str(), "--time_based", &time];
                    rates.push(self.fio(&server, pattern, block, depth, &loads)?.rate);
                }
            }
            // Whatever else the machine does, it does to both sides of a round alike.
            let ratio =
                median(std::iter::zip(&rates[1], &rates[0]).map(|(ours, memory)| ours / memory));
            let [memory, ours] = rates.map(median);
            good &= ratio >= SHARE_LEAST;
            let verdict = if ratio >= SHARE_LEAST { "" } else { "  missed" };
            println!("{name:<24}{memory:>12.0}{ours:>12.0}{ratio:>8.2}{verdict}");
        }
        println!("at least {SHARE_LEAST} is asked for\n");
        Ok(good)
    }

    /// What fio sees of a drive, beside what the model says by the receipt.
    fn truth(&self, options: &Options) -> Result<bool> {
        println!(
            "response times of {}, ms: the model, and what fio saw; lateness at the server, us",
            options.drive
        );
        println!(
            "{:<22}{:>10}{:>10}{:>8}{:>10}{:>10}{:>8}{:>9}{:>9}  verdict",
            "", "model p50", "fio", "off", "model p99", "fio", "off", "late p50", "p99"
        );
        let track = format!("{}", options.track * 512);
        let mut good = true;
        let depths = options.depth.map_or(vec![1, 4, 16], |depth| vec![depth]);
        for block in ["4096", track.as_str()] {
            for &depth in &depths {
                let receipt = self.folder.join("receipt.json");
                let server = self.serve(&[
                    self.plugin.display().to_string(),
                    format!("drive={}", options.drive),
                    format!("receipt={}", receipt.display()),
                ])?;
                let time = format!("--runtime={}", self.seconds);
                let log = format!("--write_lat_log={LOG}");
                let loads = ["--size=100%", "--time_based", &time, &log];
                self.fio(&server, "randread", block, depth, &loads)?;
                server.stop()?;
                let seen = self.logged()?;
                let (p50, p99) = (seen(0.5), seen(0.99));
                let text = fs::read_to_string(&receipt)?;
                let receipt: serde_json::Value = serde_json::from_str(&text)?;
                let figure = |group: &str, key: &str| receipt[group][key].as_f64().unwrap_or(0.0);
                let off = |seen: f64, key| 100.0 * (seen / figure("modelled_ms", key) - 1.0);
                let (off50, off99) = (off(p50, "p50"), off(p99, "p99"));
                let held = off50.abs() <= 1.0 && off99.abs() <= 2.0;
                good &= held;
                println!(
                    "{:<22}{:>10.3}{:>10.3}{off50:>7.2}%{:>10.3}{:>10.3}{off99:>7.2}%{:>9.1}{:>9.1}  {}{}",
                    format!("{block} bytes, queue {depth}"),
                    figure("modelled_ms", "p50"),
                    p50,
                    figure("modelled_ms", "p99"),
                    p99,
                    figure("lateness_us", "p50"),
                    figure("lateness_us", "p99"),
                    receipt["verdict"].as_str().unwrap_or("none"),
                    if held { "" } else { ", missed" },
                );
            }
        }
        println!("p50 within 1 % and p99 within 2 % are asked for, on a machine that is idle");
        Ok(good)
    }

    fn serve(&self, plugin: &[String]) -> Result<Nbdkit> {
        let socket = self.folder.join("socket");
        let pidfile = self.folder.join("pid");
        for file in [&socket, &pidfile] {
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.args(["--foreground", "--exit-with-parent", "--threads", "64"]);
        nbdkit
            .arg("--unix")
            .arg(&socket)
            .arg("--pidfile")
            .arg(&pidfile);
        let child = nbdkit.args(plugin).stdin(Stdio::null()).spawn()?;
        let mut server = Nbdkit { child, socket };
        while !pidfile.exists() {
            ensure!(server.child.try_wait()?.is_none(), "nbdkit has ended");
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    fn fio(
        &self,
        server: &Nbdkit,
        pattern: &str,
        block: &str,
        depth: u32,
        more: &[&str],
    ) -> Result<Seen> {
        let mut fio = Command::new("fio");
        fio.args([
            "--name=load",
            "--ioengine=nbd",
            "--output-format=json",
            "--norandommap",
        ]);
        fio.arg(format!(
            "--uri=nbd+unix:///?socket={}",
            server.socket.display()
        ));
        fio.arg(format!("--rw={pattern}"))
            .arg(format!("--bs={block}"));
        fio.arg(format!("--iodepth={depth}")).args(more);
        fio.arg(format!("--randseed={}", self.seed))
            .current_dir(&self.folder);
        let printed = shell::stdout_of(&mut fio)?;
        // fio may say something before the JSON.
        let json = printed.find('{').map_or("", |start| &printed[start..]);
        let report: serde_json::Value = serde_json::from_str(json).context("fio's report")?;
        let job = &report["jobs"][0];
        let way = if pattern.contains("read") {
            "read"
        } else {
            "write"
        };
        let rate = job[way]["iops"].as_f64().context("fio names no rate")?;
        Ok(Seen { rate })
    }

    /// The percentiles of the times that fio has logged, in milliseconds. Those of its report are in classes
    /// up to 1.6 % wide.
    fn logged(&self) -> Result<impl Fn(f64) -> f64> {
        let path = self.folder.join(format!("{LOG}_clat.1.log"));
        let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        let times = text.lines().filter_map(|line| line.split(',').nth(1));
        let mut times: Vec<f64> = times.filter_map(|ns| ns.trim().parse().ok()).collect();
        ensure!(!times.is_empty(), "{} has no times", path.display());
        times.sort_by(f64::total_cmp);
        Ok(move |share: f64| {
            let rank = (share * times.len() as f64).ceil() as usize;
            times[rank.clamp(1, times.len()) - 1] / 1e6
        })
    }
}

/// What fio saw.
struct Seen {
    rate: f64,
}

struct Nbdkit {
    child: Child,
    socket: PathBuf,
}

impl Nbdkit {
    /// Ends it in order, so that it writes its receipt.
    fn stop(mut self) -> Result<()> {
        shell::stdout_of(Command::new("kill").arg(self.child.id().to_string()))?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(rates: impl IntoIterator<Item = f64>) -> f64 {
    let mut rates: Vec<f64> = rates.into_iter().collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
