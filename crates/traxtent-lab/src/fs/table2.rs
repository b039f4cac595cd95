//! Measurements of paper T, section 5.3: Table 2 and what the text adds.
//!
//! Drives write through: the paper's writes end when they are on the media (its section 5.2 gives them response times of a
//! media access). Everything but the drive's buffer is as the profile has it.

use super::apps::{self, Run, timed};
use super::build::build;
use super::config::{Config, Ffs};
use super::file::FileId;
use super::groups::{read_groups, shuffle};
use super::machine::Machine;
use super::postmark::Postmark;
use crate::bench::{Bench, LabError};

const MB: u64 = 1 << 20;

/// Accesses of the random reads.
const RANDOM: u32 = 50_000;

/// Runs of Postmark whose mean is taken: a run of 500 transactions is decided by chance to some percent.
const POSTMARKS: u64 = 20;

/// Groups of small files that are read.
const GROUPS: usize = 1500;

fn write_through(bench: &Bench) -> Result<Bench, LabError> {
    bench.with("cache.write_back", "none")
}

/// A run of a program on each of the paper's three file systems.
fn each(bench: &Bench, program: impl Fn(&mut Machine) -> Run) -> Result<[Run; 3], LabError> {
    let bench = write_through(bench)?;
    let run = |ffs: Ffs| -> Result<Run, LabError> {
        Ok(program(&mut Machine::new(&bench, ffs.config())?))
    };
    let [unmodified, fast, traxtent] = Ffs::ALL;
    Ok([run(unmodified)?, run(fast)?, run(traxtent)?])
}

/// Seconds of the first, and the changes that the others make.
fn compared(runs: &[Run; 3]) -> Vec<f64> {
    let [unmodified, fast, traxtent] = runs.each_ref().map(Run::seconds);
    vec![
        fast / unmodified - 1.0,
        traxtent / unmodified - 1.0,
        unmodified,
    ]
}

/// The program of T20 with a file of so many bytes, 256 MB at least (less is over before groups have changed).
pub fn scan(bytes: u64) -> impl Fn(&mut Machine) -> Run {
    move |machine| {
        let directory = machine.directory(0);
        let file = machine.existing(directory, bytes);
        timed(machine, |machine| apps::scan(machine, file, bytes))
    }
}

/// The program of T21 with files of so many bytes.
pub fn diff(bytes: u64) -> impl Fn(&mut Machine) -> Run {
    move |machine| {
        let directory = machine.directory(0);
        let files = [(); 2].map(|()| machine.existing(directory, bytes));
        timed(machine, |machine| apps::diff(machine, files, bytes))
    }
}

/// The program of T22 with a file of so many bytes.
pub fn copy(bytes: u64) -> impl Fn(&mut Machine) -> Run {
    move |machine| {
        let directory = machine.directory(0);
        let file = machine.existing(directory, bytes);
        timed(machine, |machine| {
            apps::copy(machine, file, directory, bytes);
        })
    }
}

/// T20: the changes that fast start and traxtents make to the time of a scan of 4 GB, and the time itself in seconds.
///
/// # Errors
/// If the drive is too small.
pub fn scans(bench: &Bench) -> Result<Vec<f64>, LabError> {
    Ok(compared(&each(bench, scan(4096 * MB))?))
}

/// T21: the same of a diff of two files of 512 MB; then, for the unmodified system and for traxtents, requests, their
/// mean size in KB, and what each takes beyond its media transfer in milliseconds; then the change that traxtents make on
/// a drive that serves the closest request first.
///
/// # Errors
/// If the drive is too small.
pub fn diffs(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let runs = each(bench, diff(512 * MB))?;
    let mut values = compared(&runs);
    for run in [&runs[0], &runs[2]] {
        let traffic = &run.traffic;
        let requests = traffic.requests() as f64;
        values.push(requests);
        values.push(traffic.sectors_read as f64 / 2.0 / requests);
        values.push((run.elapsed.as_ms() - traffic.media.as_ms()) / requests);
    }
    values.push(closest_first(bench, diff(512 * MB))?);
    Ok(values)
}

/// The change that traxtents make where the drive serves the closest request first. Nobody tells in which order the
/// paper's drive serves its queue; this tells how much hangs on it.
fn closest_first(bench: &Bench, program: impl Fn(&mut Machine) -> Run) -> Result<f64, LabError> {
    let runs = each(&bench.with("queue.scheduler", "\"sstf\"")?, program)?;
    Ok(compared(&runs)[1])
}

/// T22: as T20, of a copy of 1 GB; then the change that traxtents make on a drive that serves the closest request first.
///
/// # Errors
/// If the drive is too small.
pub fn copies(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut values = compared(&each(bench, copy(1024 * MB))?);
    values.push(closest_first(bench, copy(1024 * MB))?);
    Ok(values)
}

/// T23: the changes that fast start and traxtents make to Postmark's transactions a second, and the rate itself.
///
/// # Errors
/// If the drive is too small.
pub fn postmark(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let through = write_through(bench)?;
    let rate = |ffs: Ffs| -> Result<f64, LabError> {
        let mut seconds = 0.0;
        for run in 0..POSTMARKS {
            let mut machine = Machine::new(&through, ffs.config())?;
            let seed = bench.seed * POSTMARKS + run;
            seconds += 1.0 / Postmark::PAPER.run(&mut machine, seed);
        }
        Ok(POSTMARKS as f64 / seconds)
    };
    let unmodified = rate(Ffs::Unmodified)?;
    Ok(vec![
        rate(Ffs::FastStart)? / unmodified - 1.0,
        rate(Ffs::Traxtent)? / unmodified - 1.0,
        unmodified,
    ])
}

/// T24: as T20, of a software build.
///
/// # Errors
/// If the drive is too small.
pub fn builds(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let runs = each(bench, |machine| {
        timed(machine, |machine| build(machine, bench.seed))
    })?;
    Ok(compared(&runs))
}

/// T25: the time for the first bytes of 1,000 files of 200 KB with traxtents, over that of the unmodified system, where
/// the order of the names has nothing to do with where the files lie; milliseconds a file without and with traxtents,
/// and with fast start; then the ratio and the first two times where files are read in the order in which they lie.
///
/// # Errors
/// If the drive is too small.
pub fn heads(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let program = |shuffled: bool| {
        move |machine: &mut Machine| {
            let directory = machine.directory(0);
            let mut files: Vec<FileId> = (0..1000)
                .map(|_| machine.existing(directory, 200 * 1024))
                .collect();
            if shuffled {
                shuffle(&mut files, bench.seed);
            }
            timed(machine, |machine| apps::head(machine, &files))
        }
    };
    let mut values = Vec::new();
    for shuffled in [true, false] {
        // Seconds of a thousand files are milliseconds of one.
        let [unmodified, fast, traxtent] = each(bench, program(shuffled))?.map(|run| run.seconds());
        values.extend([traxtent / unmodified, unmodified, traxtent, fast]);
    }
    Ok(values)
}

/// T33: the change that traxtents make to the time of random reads; to the throughput of small files read in groups; and
/// to the time of a scan, where blocks may be buffered in parts. Then what partial buffering takes off the scan.
///
/// # Errors
/// If the drive is too small.
pub fn remedies(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let random = each(bench, |machine| {
        let directory = machine.directory(0);
        let file = machine.existing(directory, 4096 * MB);
        timed(machine, |machine| {
            apps::random_reads(machine, file, 4096 * MB, RANDOM, bench.seed);
        })
    })?;
    let bench = write_through(bench)?;
    let machine = |config: Config| Machine::new(&bench, config);
    let grouped = |ffs: Ffs| -> Result<f64, LabError> {
        Ok(read_groups(&mut machine(ffs.config())?, GROUPS, bench.seed))
    };
    let scanned = |config: Config| -> Result<f64, LabError> {
        Ok(scan(4096 * MB)(&mut machine(config)?).seconds())
    };
    let unmodified = scanned(Ffs::Unmodified.config())?;
    let whole = scanned(Ffs::Traxtent.config())?;
    let partial = scanned(Ffs::Traxtent.config().with_partial_blocks())?;
    Ok(vec![
        random[2].seconds() / random[0].seconds() - 1.0,
        grouped(Ffs::Traxtent)? / grouped(Ffs::Unmodified)? - 1.0,
        partial / unmodified - 1.0,
        partial / whole - 1.0,
    ])
}
