//! The usual jobs compared with the values that manufacturers publish, each with a bound.

use std::fmt;
use std::num::NonZeroU32;

use traxtent_lab::jobs::{self, JOBS, Rate, RateDrop};
use traxtent_lab::{Bench, LabError};
use traxtent_model::profile::OriginKind;

use crate::data_sheet::{DataSheet, data_sheet};

/// The fraction by which the rate of 128 KiB reads may fall below the streaming rate, and by which
/// the streaming rate may differ from the published one.
pub const RATE_TOLERANCE: f64 = 0.1;
/// The tolerated relative difference between the mean time of a random read and the average seek
/// plus half a revolution.
pub const ACCESS_TOLERANCE: f64 = 0.15;
/// The relative loss at a larger size or depth above which a reason is needed.
pub const DROP_TOLERANCE: f64 = 0.025;
/// Drops with a known reason: drive, depth and size in KiB. The Atlas 10K V schedules by position,
/// and loses 3 % by serving sequential requests out of order. With first come, first served, it
/// loses nothing (`--set queue.scheduler=fcfs`).
const KNOWN_DROPS: [(&str, u32, u32); 1] = [("maxtor10k5", 32, 16)];

/// The results of the usual jobs on a drive.
#[derive(Clone, Debug)]
pub struct Jobs {
    /// The rates of [`JOBS`], in their order.
    pub rates: Vec<Rate>,
    /// The rate of sequential reads of 8 MiB.
    pub streaming: Rate,
    /// The manufacturer's data sheet, if one was found.
    pub sheet: Option<&'static DataSheet>,
    /// The rate with which streaming is compared, in MB/s: the manufacturer's, or that of a
    /// measured bus if it is slower or the manufacturer's is not known.
    pub published_mb_per_s: Option<f64>,
    /// The published average seek plus half a revolution, in milliseconds.
    pub published_access_ms: Option<f64>,
    /// The bounds that are exceeded.
    pub misses: Vec<ExceededBound>,
}

/// A bound that is exceeded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ExceededBound {
    /// Reads of 128 KiB, as a share of the streaming rate.
    ShortReads(f64),
    /// Streaming, as a share of the published rate.
    Streaming(f64),
    /// The mean time of a random read, as a share of the published access time.
    Access(f64),
    /// A larger size or depth that is slower.
    Drop(RateDrop),
}

impl fmt::Display for ExceededBound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExceededBound::ShortReads(share) => {
                write!(f, "reads of 128 KiB reach {share:.2} of the streaming rate")
            }
            ExceededBound::Streaming(share) => {
                write!(f, "streaming reaches {share:.2} of the published rate")
            }
            ExceededBound::Access(share) => {
                write!(
                    f,
                    "random reads take {share:.2} of the published access time"
                )
            }
            ExceededBound::Drop(RateDrop {
                depth,
                size_kib,
                share,
            }) => write!(
                f,
                "sequential reads of {size_kib} KiB at depth {depth} reach {share:.2} of the rate at a smaller size or lower depth"
            ),
        }
    }
}

/// Runs the usual jobs on a drive, each for `seconds` seconds of simulated time.
///
/// # Errors
/// Returns an error if a job does not fit the drive.
pub fn jobs(bench: &Bench, seconds: NonZeroU32) -> Result<Jobs, LabError> {
    let rates = JOBS
        .iter()
        .map(|job| jobs::rate(bench, job.workload, seconds))
        .collect::<Result<Vec<_>, _>>()?;
    let streaming = jobs::streaming(bench, seconds)?;
    let drops = jobs::drops(&jobs::sequential_reads(bench, seconds)?, DROP_TOLERANCE);
    let profile = &bench.profile;
    let sheet = data_sheet(&profile.name);
    let bus_mb_per_s = f64::from(profile.sector.logical_bytes) / profile.bus.read_sector_ms / 1e3;
    let bus = profile.provenance.of("bus.read_sector_ms");
    let measured_bus = bus.is_some_and(|origin| origin.kind == OriginKind::Measured);
    let sustained = sheet.and_then(|sheet| sheet.sustained_mb_per_s);
    let published_mb_per_s = if measured_bus {
        Some(sustained.map_or(bus_mb_per_s, |rate| rate.min(bus_mb_per_s)))
    } else {
        sustained
    };
    let seek = sheet.and_then(|sheet| sheet.average_read_seek_ms);
    let published_access_ms = seek.map(|seek| seek + profile.revolution_ms() / 2.0);

    let mut misses = Vec::new();
    let [_, short_reads, ..] = &rates[..] else {
        unreachable!("there are more jobs")
    };
    let share = short_reads.mb_per_s / streaming.mb_per_s;
    if jobs::reads_ahead(bench) && share < 1.0 - RATE_TOLERANCE {
        misses.push(ExceededBound::ShortReads(share));
    }
    let mut hold =
        |measured: f64, published: Option<f64>, tolerance, miss: fn(f64) -> ExceededBound| {
            let share = published.map(|published| measured / published);
            misses.extend(
                share
                    .filter(|share| (share - 1.0).abs() > tolerance)
                    .map(miss),
            );
        };
    hold(
        streaming.mb_per_s,
        published_mb_per_s,
        RATE_TOLERANCE,
        ExceededBound::Streaming,
    );
    hold(
        rates[6].response_ms,
        published_access_ms,
        ACCESS_TOLERANCE,
        ExceededBound::Access,
    );
    let is_explained =
        |drop: &RateDrop| KNOWN_DROPS.contains(&(profile.name.as_str(), drop.depth, drop.size_kib));
    let unexplained = drops.into_iter().filter(|drop| !is_explained(drop));
    misses.extend(unexplained.map(ExceededBound::Drop));
    Ok(Jobs {
        rates,
        streaming,
        sheet,
        published_mb_per_s,
        published_access_ms,
        misses,
    })
}
