//! The requests that reach a served drive through each front end, and the lateness of its
//! responses.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;

use super::nbd::Bench;
use super::request_log::{self, Logged, outstanding_max};
use crate::shell;

/// The options of the benchmark.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Duration of each load in seconds
    #[arg(long, default_value_t = 10)]
    seconds: u32,
    /// Drive to serve; its logical sectors must be 512 bytes
    #[arg(long, default_value = "generic-20tb")]
    drive: String,
}

/// A front end: its name, the options that start it, and how fio uses it.
struct FrontEnd {
    name: &'static str,
    options: &'static [&'static str],
    fio: &'static str,
    /// A shell command that prints the logical and the physical sector size.
    sectors: &'static str,
    /// A file without which the front end does not work, if any.
    needs: Option<&'static str>,
}

const FRONT_ENDS: [FrontEnd; 4] = [
    FrontEnd {
        name: "NBD",
        options: &[],
        fio: "--ioengine=nbd --uri=\"$uri\"",
        sectors: "nbdinfo \"$uri\" | sed -n 's/.*block_size_\\(minimum\\|preferred\\): //p'",
        needs: None,
    },
    FrontEnd {
        name: "FUSE",
        options: &["--fuse", "shown"],
        fio: "--ioengine=libaio --direct=1 --filename=\"$disk\" --allow_file_create=0",
        sectors: "echo -; echo -",
        needs: Some("/dev/fuse"),
    },
    FrontEnd {
        name: "loop device",
        options: &["--fuse", "shown", "--device"],
        fio: "--ioengine=libaio --direct=1 --filename=\"$device\"",
        sectors: "cat /sys/class/block/${device#/dev/}/queue/logical_block_size \
                  /sys/class/block/${device#/dev/}/queue/physical_block_size",
        needs: Some("/dev/loop-control"),
    },
    FrontEnd {
        name: "ublk",
        options: &["--ublk"],
        fio: "--ioengine=libaio --direct=1 --filename=\"$ublk\"",
        sectors: "cat /sys/class/block/${ublk#/dev/}/queue/logical_block_size \
                  /sys/class/block/${ublk#/dev/}/queue/physical_block_size",
        needs: Some("/dev/ublk-control"),
    },
];

/// The depths at which lateness is measured.
const DEPTHS: [u32; 2] = [1, 32];

pub(super) fn run(seed: u64, options: &Options) -> Result<ExitCode> {
    let Some(bench) = Bench::build("bench-front-ends", seed, &["fio", "nbdinfo"])? else {
        return Ok(ExitCode::SUCCESS);
    };
    let bench = FrontEndBench {
        log: bench.folder.join("requests.csv"),
        receipt: bench.folder.join("receipt.json"),
        bench,
        options,
    };
    fs::create_dir_all(bench.bench.folder.join("shown"))?;
    println!(
        "| front end | sectors | largest request | outstanding | flushes | lateness, us, depth 1: p50, p99, p99.9 | added: p50, p99 | \
         depth 32 | added |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for front_end in &FRONT_ENDS {
        match front_end.needs.filter(|path| fs::metadata(path).is_err()) {
            Some(path) => println!(
                "| {} | not available: no {path} | | | | | | | |",
                front_end.name
            ),
            None => println!("{}", bench.row(front_end)?),
        }
    }
    println!(
        "\n{}. Sectors: logical and physical size as the client sees them. Largest request: bytes of the largest request \
         at the drive while a client reads 4 MiB at once. Outstanding: the largest number of requests at the drive while \
         a client keeps 64 outstanding. Flushes: flushes at the drive while fio writes 8 blocks with --fsync=1; it sends 7. Added: the share that lateness adds to the \
         model's response times.",
        options.drive
    );
    Ok(ExitCode::SUCCESS)
}

struct FrontEndBench<'a> {
    bench: Bench,
    log: PathBuf,
    receipt: PathBuf,
    options: &'a Options,
}

impl FrontEndBench<'_> {
    /// Measures a front end; returns a row of the table.
    fn row(&self, front_end: &FrontEnd) -> Result<String> {
        let sectors = self.serve(front_end, front_end.sectors)?;
        let sectors: Vec<&str> = sectors.split_whitespace().collect();
        self.fio(front_end, "--rw=read --bs=4m --number_ios=4 --offset=1g")?;
        let largest = request_log::read(&self.log)?
            .iter()
            .map(Logged::bytes)
            .max();
        let seconds = self.options.seconds;
        let timed = format!("--rw=randread --bs=4k --time_based --runtime={seconds}");
        self.fio(front_end, &format!("{timed} --iodepth=64"))?;
        let outstanding = outstanding_max(&request_log::read(&self.log)?);
        self.fio(front_end, "--rw=write --bs=4k --number_ios=8 --fsync=1")?;
        let flushes = self.receipt()?["flushes"].as_u64().unwrap_or(0);
        let mut lateness = Vec::new();
        for depth in DEPTHS {
            self.fio(front_end, &format!("{timed} --iodepth={depth}"))?;
            let receipt = self.receipt()?;
            let figures = ["p50", "p99", "p99_9"].map(|key| {
                let us = receipt["lateness_us"][key].as_f64().unwrap_or(f64::NAN);
                format!("{us:.0}")
            });
            let added = ["p50", "p99"].map(|key| {
                let ms = |times: &str| receipt[times][key].as_f64().unwrap_or(f64::NAN);
                let share = ms("delivered_ms") / ms("modelled_ms") - 1.0;
                format!("{:.2} %", 100.0 * share)
            });
            lateness.push(format!("{} | {}", figures.join(", "), added.join(", ")));
        }
        Ok(format!(
            "| {} | {} | {} | {outstanding} | {flushes} | {} |",
            front_end.name,
            sectors.join("/"),
            largest.unwrap_or(0),
            lateness.join(" | "),
        ))
    }

    fn fio(&self, front_end: &FrontEnd, load: &str) -> Result<()> {
        let fio = front_end.fio;
        let line = format!("fio --name=load --size=64g --norandommap {fio} {load} >fio.txt");
        self.serve(front_end, &line).map(drop)
    }

    /// Serves the drive while a shell command runs; returns what the command prints.
    fn serve(&self, front_end: &FrontEnd, line: &str) -> Result<String> {
        let mut serve = Command::new(&self.bench.traxtent);
        serve.arg("serve").arg(&self.options.drive);
        serve.args(front_end.options);
        serve.arg("--log").arg(&self.log);
        serve.arg("--receipt").arg(&self.receipt);
        serve.args(["--", "sh", "-c", line]);
        shell::stdout_of(serve.current_dir(&self.bench.folder))
    }

    fn receipt(&self) -> Result<serde_json::Value> {
        Ok(serde_json::from_str(&fs::read_to_string(&self.receipt)?)?)
    }
}
