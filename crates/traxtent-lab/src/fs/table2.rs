//! Measurements of paper T, section 5.3: Table 2 and the additional results in the text.
//!
//! Drives write through: the paper's writes end when the data is on the media (its section 5.2
//! gives them the response times of a media access). All other parameters are those of the profile.

use super::apps::{self, ProgramRun, timed};
use super::build::build;
use super::config::{Config, Ffs};
use super::file::FileId;
use super::groups::{read_groups, shuffle};
use super::postmark::Postmark;
use super::simulated_host::SimulatedHost;
use crate::bench::{Bench, LabError};

const MB: u64 = 1 << 20;

/// The number of random reads.
const RANDOM_READS: u32 = 50_000;

/// The number of runs of Postmark that are averaged. A single run of 500 transactions varies by a
/// few percent.
const POSTMARKS: u64 = 20;

/// The number of groups of small files that are read.
const GROUPS: usize = 1500;

fn write_through(bench: &Bench) -> Result<Bench, LabError> {
    bench.with_parameter("cache.write_back", "none")
}

/// Runs a program on each of the paper's three file systems.
fn each(
    bench: &Bench,
    program: impl Fn(&mut SimulatedHost) -> ProgramRun,
) -> Result<[ProgramRun; 3], LabError> {
    let bench = write_through(bench)?;
    let run = |ffs: Ffs| -> Result<ProgramRun, LabError> {
        Ok(program(&mut SimulatedHost::new(&bench, ffs.config())?))
    };
    let [unmodified, fast, traxtent] = Ffs::ALL;
    Ok([run(unmodified)?, run(fast)?, run(traxtent)?])
}

/// The changes in time of the second and third run relative to the first, and the seconds of the
/// first.
fn compared(runs: &[ProgramRun; 3]) -> Vec<f64> {
    let [unmodified, fast, traxtent] = runs.each_ref().map(ProgramRun::seconds);
    vec![
        fast / unmodified - 1.0,
        traxtent / unmodified - 1.0,
        unmodified,
    ]
}

/// The program of T20 with a file of `bytes` bytes. The file should have at least 256 MB, because a
/// smaller one does not reach several groups.
pub fn scan(bytes: u64) -> impl Fn(&mut SimulatedHost) -> ProgramRun {
    move |host| {
        let directory = host.directory(0);
        let file = host.existing(directory, bytes);
        timed(host, |host| apps::scan(host, file, bytes))
    }
}

/// The program of T21 with files of `bytes` bytes.
pub fn diff(bytes: u64) -> impl Fn(&mut SimulatedHost) -> ProgramRun {
    move |host| {
        let directory = host.directory(0);
        let files = [(); 2].map(|()| host.existing(directory, bytes));
        timed(host, |host| apps::diff(host, files, bytes))
    }
}

/// The program of T22 with a file of `bytes` bytes.
pub fn copy(bytes: u64) -> impl Fn(&mut SimulatedHost) -> ProgramRun {
    move |host| {
        let directory = host.directory(0);
        let file = host.existing(directory, bytes);
        timed(host, |host| {
            apps::copy(host, file, directory, bytes);
        })
    }
}

/// T20: the changes in the time of a 4 GB scan by fast start and by traxtents, and the unmodified
/// system's time in seconds.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn scans(bench: &Bench) -> Result<Vec<f64>, LabError> {
    Ok(compared(&each(bench, scan(4096 * MB))?))
}

/// T21: the same for a diff of two files of 512 MB. Then, for the unmodified system and for
/// traxtents: requests, their mean size in KB, and the time per request beyond its media transfer
/// in milliseconds. Then the change by traxtents on a drive that serves the closest request first.
///
/// # Errors
/// Returns an error if the drive is too small.
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

/// The change by traxtents if the drive serves the closest request first. No source describes the
/// queue order of the paper's drive; this result shows how much depends on it.
fn closest_first(
    bench: &Bench,
    program: impl Fn(&mut SimulatedHost) -> ProgramRun,
) -> Result<f64, LabError> {
    let runs = each(
        &bench.with_parameter("queue.scheduler", "\"sstf\"")?,
        program,
    )?;
    Ok(compared(&runs)[1])
}

/// T22: the same as T20 for a copy of 1 GB. Then the change by traxtents on a drive that serves the
/// closest request first.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn copy_times(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut values = compared(&each(bench, copy(1024 * MB))?);
    values.push(closest_first(bench, copy(1024 * MB))?);
    Ok(values)
}

/// T23: the changes in Postmark's transactions per second by fast start and by traxtents, and the
/// unmodified system's rate.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn postmark(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let through = write_through(bench)?;
    let rate = |ffs: Ffs| -> Result<f64, LabError> {
        let mut seconds_per_transaction = 0.0;
        for run in 0..POSTMARKS {
            let mut host = SimulatedHost::new(&through, ffs.config())?;
            let seed = bench.seed * POSTMARKS + run;
            seconds_per_transaction += 1.0 / Postmark::PAPER.run(&mut host, seed);
        }
        Ok(POSTMARKS as f64 / seconds_per_transaction)
    };
    let unmodified = rate(Ffs::Unmodified)?;
    Ok(vec![
        rate(Ffs::FastStart)? / unmodified - 1.0,
        rate(Ffs::Traxtent)? / unmodified - 1.0,
        unmodified,
    ])
}

/// T24: the same as T20 for a software build.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn builds(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let runs = each(bench, |host| timed(host, |host| build(host, bench.seed)))?;
    Ok(compared(&runs))
}

/// T25: the time to read the first bytes of 1,000 files of 200 KB with traxtents, over that of the
/// unmodified system, if the order of the names is unrelated to the positions of the files. Then
/// the milliseconds per file without and with traxtents, and with fast start. Then all four again
/// for files read in the order of their positions.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn head_times(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let program = |shuffled: bool| {
        move |host: &mut SimulatedHost| {
            let directory = host.directory(0);
            let mut files: Vec<FileId> = (0..1000)
                .map(|_| host.existing(directory, 200 * 1024))
                .collect();
            if shuffled {
                shuffle(&mut files, bench.seed);
            }
            timed(host, |host| apps::head(host, &files))
        }
    };
    let mut values = Vec::new();
    for shuffled in [true, false] {
        // The seconds for a thousand files are the milliseconds for one.
        let [unmodified, fast, traxtent] = each(bench, program(shuffled))?.map(|run| run.seconds());
        values.extend([traxtent / unmodified, unmodified, traxtent, fast]);
    }
    Ok(values)
}

/// T33: the change by traxtents in the time of random reads; in the throughput of small files read
/// in groups; and in the time of a scan if blocks can be buffered in parts. Then the change of the
/// traxtent scan by partial buffering.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn proposed_improvements(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let random = each(bench, |host| {
        let directory = host.directory(0);
        let file = host.existing(directory, 4096 * MB);
        timed(host, |host| {
            apps::random_reads(host, file, 4096 * MB, RANDOM_READS, bench.seed);
        })
    })?;
    let bench = write_through(bench)?;
    let host = |config: Config| SimulatedHost::new(&bench, config);
    let grouped = |ffs: Ffs| -> Result<f64, LabError> {
        Ok(read_groups(&mut host(ffs.config())?, GROUPS, bench.seed))
    };
    let scanned = |config: Config| -> Result<f64, LabError> {
        Ok(scan(4096 * MB)(&mut host(config)?).seconds())
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
