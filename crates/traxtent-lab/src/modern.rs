//! Jobs that were measured on drives made after 2010: random reads by depth, sequential rates,
//! writes and flushes, and the rates that data sheets state.

use std::num::NonZeroU32;

use traxtent_units::request::Request;
use traxtent_units::{Lbn, Rng, SimTime, Span};

use crate::bench::{Bench, LabError};
use crate::jobs;

/// The number of random reads for the quantiles, ten times as many as were measured. It is also the
/// number at each depth.
const READS: u32 = 17_070;
/// The quantiles of random reads, in percent.
const PERCENTS: [f64; 9] = [1.0, 5.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0];
/// The numbers of outstanding reads.
const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// The number of places, at equal distances, at which a rate over the whole drive is measured.
const PLACES: u64 = 24;
/// The number of sequential requests that are timed at each place. Writes are as many as fill the
/// buffer, if those are more.
const READS_TIMED: u64 = 32;
/// The size of sequential requests, in bytes.
const SEQUENTIAL_BYTES: u32 = 1 << 20;
/// The size of random requests, in bytes.
const RANDOM_BYTES: u32 = 4096;
/// The duration of a measurement of random writes, in seconds.
const WRITE_SECONDS: NonZeroU32 = NonZeroU32::new(30).unwrap();

/// Quantiles of random reads of 4 KB with one outstanding, in milliseconds.
pub(crate) fn read_quantiles(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut times = Vec::new();
    bench.run_observed(&format!("random,size=4KiB,count={READS}"), |read| {
        times.push(read.response().as_ms());
    })?;
    times.sort_by(f64::total_cmp);
    let at = |percent: f64| times[((times.len() - 1) as f64 * percent / 100.0).round() as usize];
    Ok(PERCENTS.map(at).to_vec())
}

/// Throughput of random reads of 4 KB by depth, in requests per second.
pub(crate) fn reads_by_depth(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let at = |depth: &u32| {
        let workload = format!("random,size=4KiB,count={READS},outstanding={depth}");
        Ok(1e3 / bench.run(&workload)?.head_time_ms)
    };
    DEPTHS.iter().map(at).collect()
}

/// The rates of sequential reads and writes of 1 MiB over the whole drive, in MB/s.
pub(crate) fn sequential(bench: &Bench) -> Result<Vec<f64>, LabError> {
    Ok(vec![
        whole_drive(bench, "sequential,size=1MiB")?,
        whole_drive(bench, "sequential,size=1MiB,read=0%")?,
    ])
}

/// The rates in the first zone and over the whole drive, in MB/s, and the throughput of random
/// reads of 4 KB with 16 outstanding, in requests per second.
pub(crate) fn data_sheet_rates(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let reads = bench.run("random,size=4KiB,count=4000,outstanding=16")?;
    Ok(vec![
        jobs::streaming(bench, NonZeroU32::new(2).unwrap())?.mb_per_s,
        whole_drive(bench, "sequential,size=1MiB")?,
        1e3 / reads.head_time_ms,
    ])
}

/// Returns the rate of a sequential workload of 1 MiB requests over the whole drive, in MB/s: total
/// size over total time, from samples at equal distances. The second half of each sample is timed.
/// With writes, the first half fills the buffer.
pub(crate) fn whole_drive(bench: &Bench, workload: &str) -> Result<f64, LabError> {
    let sector = u64::from(bench.profile.sector.logical_bytes);
    let request = u64::from(SEQUENTIAL_BYTES) / sector;
    let cache = &bench.profile.cache;
    let buffer = u64::from(cache.segments) * u64::from(cache.segment_sectors);
    let half = if workload.contains("read=0%") {
        buffer.div_ceil(request).max(READS_TIMED)
    } else {
        READS_TIMED
    };
    let capacity = bench.geometry.capacity().0;
    let half = half.min(capacity / PLACES / request / 2).max(1);
    let mut time = Span::ZERO;
    for place in 0..PLACES {
        let first = capacity * place / PLACES / 8 * 8;
        let line = format!(
            "{workload},count={},lbns={first}..{}",
            2 * half,
            first + 2 * half * request
        );
        let (mut done, mut from) = (0, SimTime::ZERO);
        let end = bench.drive().run_observed(line.parse()?, |outcome| {
            done += 1;
            if done == half {
                from = outcome.completion.completed;
            }
        })?;
        time += end.since(from);
    }
    Ok((PLACES * half * u64::from(SEQUENTIAL_BYTES)) as f64 / 1e3 / time.as_ms())
}

/// Random writes of 4 KB: writes per second over 30 s, writes per second with a flush after every
/// write, and the median time of a flush after 8 and after 64 writes, in milliseconds.
pub(crate) fn writes_and_flushes(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let cached = jobs::rate(bench, "random,size=4KiB,read=0%", WRITE_SECONDS)?;
    let (_, each) = flushes(bench, 1, 1_000)?;
    let (eight, _) = flushes(bench, 8, 200)?;
    let (many, _) = flushes(bench, 64, 50)?;
    Ok(vec![cached.requests_per_s, each, eight, many])
}

/// Writes `writes` random blocks one after the other and then flushes, `rounds` times. Returns the
/// median time of a flush in milliseconds, and the writes per second.
fn flushes(bench: &Bench, writes: u32, rounds: u32) -> Result<(f64, f64), LabError> {
    let sectors = RANDOM_BYTES / bench.profile.sector.logical_bytes;
    let blocks = bench.geometry.capacity().0 / u64::from(sectors);
    let mut drive = bench.drive().at_rest();
    let mut rng = Rng::new(bench.seed);
    let mut now = SimTime::ZERO;
    let mut serve = |now: SimTime, request| {
        let served = drive.serve(now, request);
        served.expect("the request is on the drive")
    };
    let mut times = Vec::new();
    for _ in 0..rounds {
        for _ in 0..writes {
            let lbn = Lbn(rng.below(blocks) * u64::from(sectors));
            now = serve(now, Request::write(lbn, sectors)).completed;
        }
        let flush = serve(now, Request::flush());
        times.push(flush.response().as_ms());
        now = flush.completed;
    }
    times.sort_by(f64::total_cmp);
    let rate = f64::from(writes * rounds) * 1e3 / now.as_ms();
    Ok((times[times.len() / 2], rate))
}
