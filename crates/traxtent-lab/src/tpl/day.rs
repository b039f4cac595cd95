//! A simulated day on which the number of partitions follows free space, compared with days with
//! every fixed number, at several fill levels.
//!
//! The day begins at midnight. From 08:00 to 20:00, requests arrive in bursts: 60 per second during
//! five seconds of each minute, and 2 per second between the bursts. At other times one arrives
//! every two seconds on average. 70 % of the requests read a random block in use, and the others
//! write one. In addition, half a percent of the capacity is written at 1 MB per second and trimmed
//! one hour later; the next such write begins an hour after that.
//!
//! If the number of partitions follows free space, the drive was twice as full on the day before
//! (or full). The excess was trimmed overnight, and all of its space still has to be split. That
//! work is included, and so are the writes to the table.

use traxtent_layout::tpl::{PartitionBounds, PartitionCount, REGIONS};
use traxtent_units::{SimTime, Span};

use super::host::{
    HostLoad, HostRequest, OpenLoad, ReplicaSync, RequestKind, RunResult, SurveyedDrive, fill, trim,
};
use crate::bench::{Bench, LabError};

/// The shares of the capacity that are in use.
pub const LEVELS: [f64; 7] = [0.03, 0.06, 0.125, 0.25, 0.5, 0.75, 1.0];

/// The share of the capacity that is written and later trimmed.
const CHURN: f64 = 0.005;

/// The share of reads.
const READS: f64 = 0.7;

/// The number of blocks in a bulk write: 1 MB.
const BULK_BLOCKS: u64 = 256;

const HOUR_MS: f64 = 3_600_000.0;

/// The results of a day.
#[derive(Clone, Copy, Debug)]
pub struct Day {
    /// The mean response time of the requests, without bulk writes and trims, in milliseconds.
    pub response_ms: f64,
    /// The share of the day in which the drive worked in the background.
    pub background: f64,
}

/// The results at a fill level.
#[derive(Clone, Debug)]
pub struct Level {
    /// The share of the capacity that is in use.
    pub fill: f64,
    /// The day with each fixed number of partitions for which there is room.
    pub fixed: Vec<(u32, Day)>,
    /// The day on which the number of partitions follows free space, up to the given maximum.
    pub dynamic: Day,
}

impl Level {
    /// The best fixed number of partitions.
    pub fn best(&self) -> &(u32, Day) {
        let best = self
            .fixed
            .iter()
            .min_by(|a, b| a.1.response_ms.total_cmp(&b.1.response_ms));
        best.expect("one partition always has room")
    }

    /// The response time with partitions that follow free space, over that of the best fixed
    /// number.
    pub fn ratio(&self) -> f64 {
        self.dynamic.response_ms / self.best().1.response_ms
    }
}

/// The upper bound on the number of partitions if it follows free space. With more, a nearly empty
/// drive spreads little data over its whole stroke, and bulk writes cause more writes than fit in
/// the day.
pub const MOST: u32 = 2;

/// Simulates a day at each of `levels`. Partitions follow free space up to `most`, in `regions`
/// regions.
///
/// # Errors
/// Returns an error if the drive cannot be surveyed, `most` is not a power of two from 1 to 32, or
/// a layout does not fit.
pub fn levels(
    bench: &Bench,
    most: u32,
    levels: &[f64],
    regions: u16,
) -> Result<Vec<Level>, LabError> {
    let mut drive = SurveyedDrive::new(bench)?;
    drive.regions = regions;
    levels
        .iter()
        .map(|fill| level(bench, &drive, *fill, most))
        .collect()
}

fn level(bench: &Bench, drive: &SurveyedDrive, fill: f64, most: u32) -> Result<Level, LabError> {
    let all = drive.layout(
        PartitionBounds::new(PartitionCount::ONE, PartitionCount::ONE)?,
        drive.map.end(),
    )?;
    let capacity = all.shape().blocks() as f64;
    let used = ((fill - CHURN) * capacity) as u64;
    let churn = (CHURN * capacity) as u64;
    let mut fixed = Vec::new();
    for count in PartitionCount::ALL {
        let mut tpl = drive.layout(PartitionBounds::new(count, count)?, drive.map.end())?;
        if tpl.shape().blocks() < used + churn {
            continue;
        }
        self::fill(&mut tpl, 0..used, true)?;
        let mut host = drive.host(tpl, ReplicaSync::Passing);
        fixed.push((count.get(), day(bench, &mut host, used, churn)?));
    }
    let mut tpl = drive.layout(
        PartitionBounds::new(PartitionCount::ONE, PartitionCount::new(most)?)?,
        drive.map.end(),
    )?;
    let yesterday = (2 * used).min(tpl.shape().blocks());
    self::fill(&mut tpl, 0..yesterday, true)?;
    if yesterday > used {
        trim(&mut tpl, used..yesterday)?;
    }
    let mut host = drive.host(tpl, ReplicaSync::Passing);
    let dynamic = day(bench, &mut host, used, churn)?;
    Ok(Level {
        fill,
        fixed,
        dynamic,
    })
}

fn day(
    bench: &Bench,
    host: &mut super::host::TplHost,
    used: u64,
    churn: u64,
) -> Result<Day, LabError> {
    // For an approximate result, the day is a tenth as long and begins at 07:00.
    let begin = SimTime::from_ms(if bench.approximate {
        7.0 * HOUR_MS
    } else {
        0.0
    });
    let until = begin + Span::from_ms(24.0 * HOUR_MS / if bench.approximate { 10.0 } else { 1.0 });
    host.now = begin;
    let mut load = DayLoad {
        requests: OpenLoad::new(bench.seed, used, READS, (rate, 1.0), (begin, until)),
        churn: used..used + churn,
        next: 0,
        churn_due: begin,
        until,
    };
    let served: RunResult = host.run(&mut load)?;
    Ok(Day {
        response_ms: served.response_ms.mean(),
        background: host.background.as_ms() / until.since(begin).as_ms(),
    })
}

/// The requests per second at an instant of the day.
fn rate(at: SimTime, _: f64) -> f64 {
    let hours = at.as_ms() / HOUR_MS;
    let second = at.as_ms() / 1000.0 % 60.0;
    if !(8.0..20.0).contains(&(hours % 24.0)) {
        0.5
    } else if second < 5.0 {
        60.0
    } else {
        2.0
    }
}

/// The requests of a day, with bulk writes and trims.
struct DayLoad {
    requests: OpenLoad,
    churn: std::ops::Range<u64>,
    /// The number of bulk blocks written so far; 0 after a trim.
    next: u64,
    /// The time of the next bulk write or trim.
    churn_due: SimTime,
    until: SimTime,
}

impl DayLoad {
    fn is_churn(&mut self) -> bool {
        self.churn_due < self.until && self.requests.due().is_none_or(|due| self.churn_due <= due)
    }
}

impl HostLoad for DayLoad {
    fn due(&mut self) -> Option<SimTime> {
        if self.is_churn() {
            Some(self.churn_due)
        } else {
            self.requests.due()
        }
    }

    fn take(&mut self) -> HostRequest {
        if !self.is_churn() {
            return self.requests.take();
        }
        let at = self.churn_due;
        let size = self.churn.end - self.churn.start;
        if self.next == size {
            // All of it is trimmed in one request, an hour later.
            self.next = 0;
            self.churn_due += Span::from_ms(HOUR_MS);
            return HostRequest {
                at,
                kind: RequestKind::Trim,
                block: self.churn.start,
                blocks: size,
            };
        }
        let block = self.churn.start + self.next;
        let blocks = BULK_BLOCKS.min(size - self.next);
        self.next += blocks;
        // One bulk write per second; the trim an hour after the last.
        let wait = if self.next == size { HOUR_MS } else { 1000.0 };
        self.churn_due += Span::from_ms(wait);
        HostRequest {
            at,
            kind: RequestKind::Write,
            block,
            blocks,
        }
    }

    fn complete(&mut self, _: SimTime) {}
}

/// The largest ratio to the best fixed number of partitions, over all levels.
pub(crate) fn worst(bench: &Bench) -> Result<f64, LabError> {
    let levels = levels(bench, MOST, &LEVELS, REGIONS)?;
    Ok(levels.iter().map(Level::ratio).fold(0.0, f64::max))
}
