//! Physical sectors: the number of logical sectors in each, and where they begin.
//!
//! A drive reads and writes a physical sector as a whole, because its error correction covers all
//! of it. This has two measurable effects:
//!
//! - **By reads.** A read of one LBN completes when its whole physical sector has passed. So the
//!   completions of neighbouring LBNs do not advance by one sector each, but stay constant and then
//!   step. A sector of a modern drive passes in a few microseconds, less than the jitter of a host.
//!   So LBNs are read until the steps, or their absence, are certain, or too many LBNs have been
//!   read.
//! - **By writes.** A write that covers part of a physical sector must read it first, and takes an
//!   additional revolution.
//!
//! If reads advance by single sectors on a drive that reports larger ones, this proves nothing,
//! because the drive may time its completions differently. Writes that complete before they can be
//! on the media prove nothing either. If no test is conclusive, the interval of the figure covers
//! all possible sizes, and a note gives the reason.
//!
//! Only physical sectors of 4,096 bytes are sought. Disks with logical sectors of 512 bytes have no
//! other larger size (IDEMA's Advanced Format).

use super::measurement::{MEDIAN_TO_DEVIATION, Measurement, wrapped};
use super::sector_grouping::SectorGrouping;
use super::seek::KnownDrive;
use super::stopwatch::Stopwatch;
use crate::ProbeError;
use traxtent_map::MappedTrack;
use traxtent_units::Lbn;
use traxtent_units::request::Request;
use traxtent_units::stats::median;

/// The largest physical sector that is sought, in bytes.
const PHYSICAL_BYTES_MAX: u32 = 4096;

/// The smallest standard error that is assumed for a median of completions, in sectors.
const ERROR_SECTORS_MIN: f64 = 0.1;
/// The largest distance from a whole number of revolutions at which a write counts as late by that
/// number.
const LATE_TURNS_OFF: f64 = 0.25;

/// The result of a timing test.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GroupingResult {
    /// This grouping is certain.
    Known(SectorGrouping),
    /// The times do not decide.
    Unclear,
}

/// Returns the number of logical sectors in the largest physical sector.
fn most(logical_bytes: u32) -> u32 {
    (PHYSICAL_BYTES_MAX / logical_bytes.max(1)).max(1)
}

/// The measured and reported properties of a drive's physical sectors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Physical {
    logical_bytes: u32,
    /// The size that the drive reports.
    claimed_bytes: u32,
    reads: GroupingResult,
    writes: Option<GroupingResult>,
    timings: u64,
}

impl Physical {
    /// Determines the grouping by reading neighbouring LBNs one by one, on random tracks.
    pub(super) fn by_reads(
        watch: &mut Stopwatch<'_>,
        tracks: &[MappedTrack],
        (logical_bytes, claimed_bytes): (u32, u32),
    ) -> Result<Physical, ProbeError> {
        let before = watch.requests;
        let reads = match most(logical_bytes) {
            1 => GroupingResult::Known(SectorGrouping::SINGLE),
            most => steps(watch, tracks, most)?,
        };
        Ok(Physical {
            logical_bytes,
            claimed_bytes,
            reads,
            writes: None,
            timings: watch.requests - before,
        })
    }

    /// Determines the grouping by writing physical sectors in part and as a whole. Their data is
    /// lost.
    pub(super) fn by_writes(
        &mut self,
        watch: &mut Stopwatch<'_>,
        known: &KnownDrive<'_>,
    ) -> Result<(), ProbeError> {
        let before = watch.requests;
        self.writes = match most(self.logical_bytes) {
            1 => None,
            most => Some(by_partial_writes(watch, known, most)?),
        };
        self.timings += watch.requests - before;
        Ok(())
    }

    /// The grouping that applies to reads: where the read of one LBN ends.
    pub(super) fn read_grouping(&self) -> SectorGrouping {
        match self.reads {
            GroupingResult::Known(grouping) => grouping,
            GroupingResult::Unclear => SectorGrouping::SINGLE,
        }
    }

    /// The grouping as measured, or as the drive reports if no measurement is conclusive.
    pub(super) fn grouping(&self) -> SectorGrouping {
        match (self.writes, self.reads) {
            (Some(GroupingResult::Known(grouping)), _) => grouping,
            (_, GroupingResult::Known(grouping)) if grouping.sectors > 1 => grouping,
            _ => SectorGrouping {
                sectors: (self.claimed_bytes / self.logical_bytes.max(1)).max(1),
                first: 0,
            },
        }
    }

    /// Bytes per physical sector.
    pub(super) fn bytes(&self) -> u32 {
        self.grouping().sectors * self.logical_bytes
    }

    /// The smallest and the largest possible size, in bytes.
    fn possible(&self) -> (u32, u32) {
        let exactly = |bytes: u32| (bytes, bytes);
        let largest = most(self.logical_bytes) * self.logical_bytes;
        match (self.writes, self.reads) {
            (Some(GroupingResult::Known(grouping)), _) => {
                exactly(grouping.sectors * self.logical_bytes)
            }
            (_, GroupingResult::Known(grouping))
                if grouping.sectors > 1 || largest == self.logical_bytes =>
            {
                exactly(grouping.sectors * self.logical_bytes)
            }
            // Two sources agree, each of which may be wrong on its own.
            (_, GroupingResult::Known(_)) if self.claimed_bytes == self.logical_bytes => {
                exactly(self.logical_bytes)
            }
            _ => (self.logical_bytes, largest.max(self.claimed_bytes)),
        }
    }

    pub(super) fn figure(&self) -> Measurement {
        let (low, high) = self.possible();
        Measurement {
            name: "sector.physical_bytes".to_owned(),
            value: self.bytes().into(),
            low: low.into(),
            high: high.into(),
            unit: "bytes",
            how: match (self.writes, self.reads) {
                _ if most(self.logical_bytes) == 1 => {
                    "no disk has physical sectors larger than the logical sectors of this one"
                }
                (Some(GroupingResult::Known(_)), _) => {
                    "writes of a physical sector's length at every shift: whether those that cover sectors \
                     in part take an additional revolution"
                }
                (_, GroupingResult::Known(_)) => {
                    "completions of neighbouring LBNs: whether they advance with each LBN or step by a \
                     physical sector"
                }
                (_, GroupingResult::Unclear) => {
                    "reported by the drive: its times are not conclusive"
                }
            },
            samples: self.timings,
        }
    }

    /// Notes for the reader in addition to the figure.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let (low, high) = self.possible();
        let (claimed, bytes) = (self.claimed_bytes, self.bytes());
        if self.writes == Some(GroupingResult::Unclear) {
            notes.push(
                "The physical sector size cannot be determined from writes: they complete before they can have reached the media, \
                 or their times are inconsistent."
                    .to_owned(),
            );
        }
        if low != high {
            notes.push(match self.reads {
                GroupingResult::Unclear => format!(
                    "The physical sector size cannot be determined from reads: their times are not conclusive. The drive reports {claimed} bytes."
                ),
                GroupingResult::Known(_) => format!(
                    "The drive reports physical sectors of {claimed} bytes, but its reads end with the requested LBN, \
                     as if each LBN were a physical sector. Only a test with writes is conclusive."
                ),
            });
        } else if bytes != claimed {
            let by = match self.writes {
                Some(GroupingResult::Known(_)) => "writes",
                _ => "reads",
            };
            notes.push(format!(
                "The drive reports physical sectors of {claimed} bytes; its {by} show {bytes}."
            ));
        }
        notes
    }
}

/// Determines whether the completions of neighbouring LBNs step by physical sectors of `most` LBNs,
/// or advance by one LBN.
fn steps(
    watch: &mut Stopwatch<'_>,
    tracks: &[MappedTrack],
    most: u32,
) -> Result<GroupingResult, ProbeError> {
    /// The minimum and maximum number of rounds over the LBNs of two physical sectors.
    const ROUNDS: (usize, usize) = (6, 240);
    /// The margin by which the best result must fit better than any other: the square of five
    /// standard errors.
    const SURE: f64 = 25.0;
    let count = 2 * u64::from(most);
    let roomy: Vec<&MappedTrack> = tracks
        .iter()
        .filter(|track| track.sectors.0 > 4 * count)
        .collect();
    if roomy.is_empty() {
        return Ok(GroupingResult::Unclear);
    }
    // By residue of the LBN: the delay of its completion after the median, in sectors.
    let mut late: Vec<Vec<f64>> = vec![Vec::new(); most as usize];
    let mut unreadable = 0;
    for round in 1..=ROUNDS.1 {
        let track = roomy[watch.rng.below(roomy.len() as u64) as usize];
        let sectors = track.sectors.0;
        let first = track.first_lbn.0 + count + watch.rng.below(sectors - 3 * count);
        watch.refresh()?;
        let mut seen = Vec::new();
        for by in 0..count {
            let lbn = Lbn(first + by);
            match watch.media(lbn, 1) {
                Ok(timing) => seen.push((
                    lbn,
                    timing.completed - by as f64 * watch.period / sectors as f64,
                )),
                Err(ProbeError::Target(crate::TargetError::Unreadable { .. })) => unreadable += 1,
                Err(error) => return Err(error),
            }
        }
        if unreadable > ROUNDS.0 * count as usize {
            return Ok(GroupingResult::Unclear);
        }
        let Some(&(_, start)) = seen.first() else {
            continue;
        };
        let turns: Vec<f64> = seen
            .iter()
            .map(|(_, at)| wrapped((at - start) / watch.period) * sectors as f64)
            .collect();
        let middle = median(&turns);
        for ((lbn, _), turns) in seen.iter().zip(turns) {
            late[(lbn.0 % u64::from(most)) as usize].push(turns - middle);
        }
        if round < ROUNDS.0 {
            continue;
        }
        let groupings = fits(&late);
        let (best, other) = (groupings[0], groupings[1]);
        if other.1 - best.1 > SURE {
            // Neither result counts if even the better one is far off.
            let fits_well = best.1 < SURE * f64::from(most);
            return Ok(if fits_well {
                GroupingResult::Known(best.0)
            } else {
                GroupingResult::Unclear
            });
        }
    }
    Ok(GroupingResult::Unclear)
}

/// Returns every possible grouping with its sum of squared residuals, in squared standard errors,
/// the best first.
fn fits(late: &[Vec<f64>]) -> Vec<(SectorGrouping, f64)> {
    let most = late.len() as u32;
    let middles: Vec<f64> = late.iter().map(|samples| median(samples)).collect();
    let apart: Vec<f64> = late
        .iter()
        .zip(&middles)
        .flat_map(|(samples, middle)| samples.iter().map(move |sample| (sample - middle).abs()))
        .collect();
    let deviation = MEDIAN_TO_DEVIATION * median(&apart);
    let fewest = late.iter().map(Vec::len).min().unwrap_or(0).max(1);
    // The standard error of the median of n normally distributed samples.
    let error = (1.2533 * deviation / (fewest as f64).sqrt()).max(ERROR_SECTORS_MIN);
    let mean = middles.iter().sum::<f64>() / f64::from(most);
    let squared_residuals = |grouping: SectorGrouping| {
        let expected: Vec<f64> = (0..most)
            .map(|lbn| {
                let lbn = Lbn(u64::from(lbn) + u64::from(most));
                (grouping.end(lbn).0 - lbn.0) as f64
            })
            .collect();
        let mean_expected = expected.iter().sum::<f64>() / f64::from(most);
        let squares = middles.iter().zip(&expected).map(|(seen, expected)| {
            let off = (seen - mean) - (expected - mean_expected);
            off * off
        });
        squares.sum::<f64>() / (error * error)
    };
    let steps = (0..most).map(|first| SectorGrouping {
        sectors: most,
        first,
    });
    let mut groupings: Vec<(SectorGrouping, f64)> = std::iter::once(SectorGrouping::SINGLE)
        .chain(steps)
        .map(|grouping| (grouping, squared_residuals(grouping)))
        .collect();
    groupings.sort_by(|a, b| a.1.total_cmp(&b.1));
    groupings
}

/// Determines whether writes of `most` LBNs take an additional revolution at all shifts but one, or
/// at none.
fn by_partial_writes(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    most: u32,
) -> Result<GroupingResult, ProbeError> {
    const REPEATS: usize = 7;
    /// The time from the command to the first sector of the write, in revolutions: enough for any
    /// controller.
    const LEAD_TURNS: f64 = 0.5;
    let sectors = u64::from(most);
    // By shift: the delay of the completion after the earliest possible time, in revolutions.
    let mut late = Vec::new();
    for shift in 0..sectors {
        let mut samples = Vec::new();
        for _ in 0..REPEATS {
            let Some((track, _)) = known.pair(watch, 0, 0) else {
                continue;
            };
            let lbn = known.middle(track).0 / sectors * sectors + shift;
            let pitch = known.sector_ms(track, watch.period);
            // Reading far after the written LBNs prevents read-ahead from leaving their neighbours
            // in the buffer.
            let following = Lbn(lbn + 4 * sectors);
            let before = watch.media(following, 1)?.completed;
            let passed = watch.grouping.end(following).0 - lbn;
            let lead = LEAD_TURNS * watch.period + sectors as f64 * pitch;
            let mut due = before - (passed - sectors) as f64 * pitch;
            while due - lead < before {
                due += watch.period;
            }
            watch.wait_until(due - lead);
            let write = Request {
                fua: true,
                ..Request::write(Lbn(lbn), most)
            };
            samples.push((watch.send(write)?.completed - due) / watch.period);
        }
        if samples.is_empty() {
            return Ok(GroupingResult::Unclear);
        }
        late.push(median(&samples));
    }
    let is_late = |late: f64, turns: f64| (late - turns).abs() < LATE_TURNS_OFF;
    let at_once: Vec<u32> = (0..most)
        .filter(|shift| is_late(late[*shift as usize], 0.0))
        .collect();
    let later = late.iter().filter(|late| is_late(**late, 1.0)).count();
    Ok(match at_once[..] {
        _ if at_once.len() == most as usize => GroupingResult::Known(SectorGrouping::SINGLE),
        [first] if later + 1 == most as usize => GroupingResult::Known(SectorGrouping {
            sectors: most,
            first,
        }),
        _ => GroupingResult::Unclear,
    })
}
