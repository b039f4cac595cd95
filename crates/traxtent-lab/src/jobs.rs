//! The jobs that are usually run first on a drive: fio's common ones, and sequential reads of
//! several sizes and depths.
//!
//! The crate `traxtent-experiments` compares their results with the values in data sheets.

use std::num::NonZeroU32;

use traxtent_model::profile::{OriginKind, ReadAheadUntil};

use crate::{Bench, LabError};

/// A job, as users of fio know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// The name: operation, size and depth.
    pub name: &'static str,
    /// The job in the workload grammar, without an end.
    pub workload: &'static str,
}

const fn job(name: &'static str, workload: &'static str) -> Job {
    Job { name, workload }
}

/// The usual jobs. The first three are sequential reads, the next three sequential writes.
pub const JOBS: [Job; 11] = [
    job("read 4k", "sequential,size=4KiB"),
    job("read 128k", "sequential,size=128KiB"),
    job("read 1m", "sequential,size=1MiB"),
    job("write 4k", "sequential,size=4KiB,read=0%"),
    job("write 128k", "sequential,size=128KiB,read=0%"),
    job("write 1m", "sequential,size=1MiB,read=0%"),
    job("randread 4k", "random,size=4KiB"),
    job("randread 4k, 32", "random,size=4KiB,outstanding=32"),
    job("randwrite 4k", "random,size=4KiB,read=0%"),
    job(
        "randwrite 4k, 32",
        "random,size=4KiB,read=0%,outstanding=32",
    ),
    job("randrw 4k, 32", "random,size=4KiB,read=70%,outstanding=32"),
];

/// The throughput and response time of a drive.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// The mean response time, in milliseconds.
    pub response_ms: f64,
}

/// Returns the rate at which a drive, initially at rest, serves an endless workload for `seconds`
/// seconds of simulated time.
///
/// # Errors
/// Returns an error if the workload does not fit the drive.
pub fn rate(bench: &Bench, workload: &str, seconds: NonZeroU32) -> Result<Rate, LabError> {
    let (mut requests, mut sectors, mut response_ms) = (0u64, 0u64, 0.0);
    // More requests than any drive serves in that time.
    let line = format!("{workload},count=10000000000,time={seconds}s");
    let end = bench.run_observed(&line, |outcome| {
        requests += 1;
        sectors += u64::from(outcome.arrival.request.sectors);
        response_ms += outcome.response().as_ms();
    })?;
    let bytes = sectors as f64 * f64::from(bench.profile.sector.logical_bytes);
    Ok(Rate {
        mb_per_s: bytes / 1e3 / end.as_ms(),
        requests_per_s: requests as f64 * 1e3 / end.as_ms(),
        response_ms: response_ms / requests as f64,
    })
}

/// Returns the rate of sequential reads of 8 MiB, one at a time. It is the rate of the media with
/// all track changes, or that of the bus if the bus is slower.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn streaming(bench: &Bench, seconds: NonZeroU32) -> Result<Rate, LabError> {
    rate(bench, "sequential,size=8MiB", seconds)
}

/// Sizes of sequential reads, in KiB.
pub const SIZES_KIB: [u32; 11] = [4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096];
/// Numbers of outstanding reads.
pub const DEPTHS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// Returns the rates of sequential reads in megabytes per second, by depth and then by size.
///
/// # Errors
/// Returns an error if the drive is smaller than a request.
pub fn sequential_reads(bench: &Bench, seconds: NonZeroU32) -> Result<Vec<Vec<f64>>, LabError> {
    let of = |depth: u32, kib: u32| {
        let workload = format!("sequential,size={kib}KiB,outstanding={depth}");
        Ok(rate(bench, &workload, seconds)?.mb_per_s)
    };
    let at_depth = |depth: &u32| SIZES_KIB.iter().map(|&kib| of(*depth, kib)).collect();
    DEPTHS.iter().map(at_depth).collect()
}

/// A combination of depth and size at which larger or more requests lower the throughput.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateDrop {
    /// The depth.
    pub depth: u32,
    /// The size of a read, in KiB.
    pub size_kib: u32,
    /// The rate over that with the next smaller size or the next lower depth, whichever is higher.
    pub share: f64,
}

/// Finds the combinations at which sequential reads are slower than with the next smaller size or
/// the next lower depth, by more than the share `tolerance`.
pub fn drops(rates: &[Vec<f64>], tolerance: f64) -> Vec<RateDrop> {
    let mut found = Vec::new();
    for (row, depth) in DEPTHS.into_iter().enumerate() {
        for (column, size_kib) in SIZES_KIB.into_iter().enumerate() {
            let smaller = column.checked_sub(1).map(|column| rates[row][column]);
            let lower = row.checked_sub(1).map(|row| rates[row][column]);
            let before = smaller.into_iter().chain(lower).fold(0.0, f64::max);
            let share = rates[row][column] / before;
            if share < 1.0 - tolerance {
                found.push(RateDrop {
                    depth,
                    size_kib,
                    share,
                });
            }
        }
    }
    found
}

/// Returns whether the drive reads ahead.
pub fn reads_ahead(bench: &Bench) -> bool {
    let cache = &bench.profile.cache;
    cache.enabled && cache.read_ahead.until != ReadAheadUntil::None
}

/// Firmware parameters and the values to which each is changed.
pub const FIRMWARE: [(&str, &[&str]); 25] = [
    ("cache.segments", &["2", "16"]),
    ("cache.segment_sectors", &["128", "1024"]),
    ("cache.write_segments", &["1"]),
    ("cache.write_back", &["none", "full"]),
    ("cache.combine_writes", &["true", "false"]),
    ("cache.read_hits_on_written", &["true", "false"]),
    ("cache.hits_while_busy", &["true", "false"]),
    ("cache.writes_while_busy", &["true", "false"]),
    ("cache.almost_hits", &["true", "false"]),
    ("cache.drop_delivered", &["true", "false"]),
    ("cache.read_watermark", &["0.0", "0.5"]),
    ("cache.write_watermark", &["0.0", "0.5"]),
    ("cache.read_ahead.until", &["track-end", "segment-end"]),
    ("cache.read_ahead.min_sectors", &["0", "64"]),
    ("cache.read_ahead.on_idle_hit", &["true", "false"]),
    ("cache.read_ahead.stop_in_sector", &["true", "false"]),
    ("cache.read_ahead.stop_on_write_hit", &["true", "false"]),
    ("cache.read_ahead.on_arrival", &["true", "false"]),
    ("queue.scheduler", &["fcfs", "look", "sptf"]),
    ("queue.preseek", &["none", "before-completion"]),
    ("access.zero_latency_read", &["true", "false"]),
    ("access.zero_latency_write", &["true", "false"]),
    ("access.read_on_arrival", &["true", "false"]),
    ("bus.delivery", &["in-order", "in-order-when-complete"]),
    ("bus.hold.during_read", &["true", "false"]),
];

/// The effect of a changed parameter on a job.
#[derive(Clone, Debug)]
pub struct Effect {
    /// The key of the parameter.
    pub key: &'static str,
    /// The changed value.
    pub value: &'static str,
    /// The job that it affects most.
    pub job: Job,
    /// The rate over that with the drive's own value.
    pub ratio: f64,
}

/// Returns the effect of each assumed parameter of [`FIRMWARE`], with each other value, on the job
/// that it affects most. Values that a drive cannot have are left out.
///
/// # Errors
/// Returns an error if a job does not fit the drive.
pub fn effects(bench: &Bench, seconds: NonZeroU32) -> Result<Vec<Effect>, LabError> {
    let all = |bench: &Bench| -> Result<Vec<f64>, LabError> {
        let of = |job: &Job| Ok(rate(bench, job.workload, seconds)?.requests_per_s);
        JOBS.iter().map(of).collect()
    };
    let own = all(bench)?;
    let mut found = Vec::new();
    for (key, values) in FIRMWARE {
        let origin = bench.profile.provenance.of(key);
        if origin.is_none_or(|origin| origin.kind != OriginKind::Assumed) {
            continue;
        }
        for value in values {
            let Ok(changed) = bench.with_parameter(key, value) else {
                continue;
            };
            if changed.profile == bench.profile {
                continue;
            }
            let rates = all(&changed)?;
            let ratios = std::iter::zip(&rates, &own).map(|(rate, own)| rate / own);
            let distance = |ratio: f64| ratio.ln().abs();
            let most = std::iter::zip(JOBS, ratios)
                .max_by(|a, b| distance(a.1).total_cmp(&distance(b.1)))
                .expect("there are jobs");
            found.push(Effect {
                key,
                value,
                job: most.0,
                ratio: most.1,
            });
        }
    }
    Ok(found)
}
