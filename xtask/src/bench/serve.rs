//! A served drive under load: its speed if the model takes no time, and its timing accuracy if it
//! does.

use std::fs;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use super::nbd::{Bench, Load, Served, median};

/// The options of the benchmark.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Duration of each load in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Measure only the speed, or only the timing accuracy
    #[arg(long)]
    only: Option<ServePart>,
    /// Measure accuracy at this depth of the client's queue only
    #[arg(long)]
    depth: Option<u32>,
    /// Drive for the measurement of accuracy
    #[arg(long, default_value = "atlas10k2")]
    drive: String,
    /// Sectors per track of that drive, for reads of whole tracks
    #[arg(long, default_value_t = 528)]
    track: u32,
}

/// The two measurements.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ServePart {
    /// Speed of a drive without mechanics
    Speed,
    /// Timing accuracy of a drive with mechanics
    Truth,
}

/// The lowest acceptable rate, as a share of that of nbdkit's memory plugin.
const SHARE_LEAST: f64 = 1.0;
/// The number of times that each load runs on each side. The sides alternate.
const ROUNDS: usize = 5;
/// The name of fio's log of response times.
const LOG: &str = "seen";
/// The range over which loads are spread.
const SPREAD: &str = "256m";

/// The loads of fio: name, pattern, block, queue depths.
const LOADS: [(&str, &str, &str, &[u32]); 4] = [
    ("4 KiB random read", "randread", "4k", &[1, 16, 64]),
    ("4 KiB random write", "randwrite", "4k", &[1, 16, 64]),
    ("1 MiB sequential read", "read", "1m", &[4]),
    ("1 MiB sequential write", "write", "1m", &[4]),
];

pub(super) fn run(seed: u64, options: &Options) -> Result<ExitCode> {
    let wanted = |part| options.only.is_none_or(|only| only == part);
    let programs = match wanted(ServePart::Speed) {
        true => &["fio", "nbdkit"][..],
        false => &["fio"],
    };
    let Some(bench) = Bench::build("bench-serve", seed, programs)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let bench = ServeBench {
        bench,
        seconds: options.seconds,
    };
    let fast = !wanted(ServePart::Speed) || bench.speed()?;
    let accurate = !wanted(ServePart::Truth) || bench.accuracy(options)?;
    Ok(if fast && accurate {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct ServeBench {
    bench: Bench,
    seconds: u32,
}

impl ServeBench {
    /// Measures the requests per second without mechanics, compared with nbdkit's memory plugin.
    fn speed(&self) -> Result<bool> {
        println!(
            "requests/s, medians of {ROUNDS} rounds of {} s on each side in turn; the ratio is the median of the rounds' ratios",
            self.seconds
        );
        println!(
            "{:<24}{:>6}{:>12}{:>12}{:>8}",
            "", "depth", "memory", "traxtent", "ratio"
        );
        let mut good = true;
        for (name, pattern, block, depths) in LOADS {
            for &depth in depths {
                let rates = self.rates(Load::new(pattern, block, depth))?;
                // Other work on the machine affects both sides of a round alike.
                let ratios = std::iter::zip(&rates[1], &rates[0]);
                let ratio = median(ratios.map(|(ours, memory)| ours / memory));
                let [memory, ours] = rates.map(median);
                good &= ratio >= SHARE_LEAST;
                let verdict = if ratio >= SHARE_LEAST { "" } else { "  missed" };
                println!("{name:<24}{depth:>6}{memory:>12.0}{ours:>12.0}{ratio:>8.3}{verdict}");
            }
        }
        println!("required: at least {SHARE_LEAST}\n");
        Ok(good)
    }

    /// Measures the rates of a load in each round: with nbdkit's memory plugin, and with a drive
    /// that takes no time.
    fn rates(&self, load: Load<'_>) -> Result<[Vec<f64>; 2]> {
        let sides = [
            Served::Nbdkit(vec!["memory".to_owned(), "size=64G".to_owned()]),
            Served::Drive(vec!["instant".to_owned()]),
        ];
        let mut rates = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            for (side, rates) in sides.iter().zip(&mut rates) {
                let server = self.bench.serve(side)?;
                let size = format!("--size={SPREAD}");
                // Writes first, so that there is data to read.
                let first = Load::new("write", "1m", 4);
                self.bench.fio(&server, first, &[&size])?;
                let time = format!("--runtime={}", self.seconds);
                rates.push(
                    self.bench
                        .fio(&server, load, &[&size, "--time_based", &time])?,
                );
                server.stop()?;
            }
        }
        Ok(rates)
    }

    /// Compares fio's response times of a drive with those of the model, from the receipt.
    fn accuracy(&self, options: &Options) -> Result<bool> {
        println!(
            "response times of {}, ms: the model's, and those that fio measured; lateness at the server, us",
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
                let receipt = self.bench.folder.join("receipt.json");
                let server = self.bench.serve(&Served::Drive(vec![
                    options.drive.clone(),
                    format!("--receipt={}", receipt.display()),
                ]))?;
                let time = format!("--runtime={}", self.seconds);
                let log = format!("--write_lat_log={LOG}");
                let more = ["--size=100%", "--time_based", &time, &log];
                let load = Load::new("randread", block, depth);
                self.bench.fio(&server, load, &more)?;
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
        println!("required on an idle machine: p50 within 1 %, p99 within 2 %");
        Ok(good)
    }

    /// Returns a function that maps a share to that quantile of the times in fio's log, in
    /// milliseconds. The percentiles in fio's report are less accurate: their classes are up to
    /// 1.6 % wide.
    fn logged(&self) -> Result<impl Fn(f64) -> f64> {
        let path = self.bench.folder.join(format!("{LOG}_clat.1.log"));
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
