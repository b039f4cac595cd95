//! The cost of blocks or extents that span two tracks: a head or track switch during the transfer,
//! and the lost advantage of zero-latency access.
//!
//! Half of such a block or extent lies before the boundary, or half a track if that is less. A
//! block or extent that is longer than a track always crosses a boundary; it is compared with one
//! that begins at a boundary.

use std::ops::Range;

use serde::Serialize;
use traxtent_model::drive::Drive;
use traxtent_model::profile::{Profile, ProfileError};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};

use super::{Work, WorkCost, ms_of_requests};
use crate::finding::AffectedShare;

/// The kinds of work that depend on track boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrossingLoad {
    /// Random reads of blocks or extents.
    PieceReads,
    /// Random writes of blocks or extents.
    PieceWrites,
}

impl CrossingLoad {
    pub(super) fn name(self) -> &'static str {
        match self {
            CrossingLoad::PieceReads => "random reads of one block or extent",
            CrossingLoad::PieceWrites => "random writes of one block or extent",
        }
    }

    fn op(self) -> Op {
        match self {
            CrossingLoad::PieceReads => Op::Read,
            CrossingLoad::PieceWrites => Op::Write,
        }
    }
}

/// Returns the cost if a share of blocks or extents spans two tracks, as the mean over all of them.
///
/// Returns `None` if a block is too short for a physical sector on each side of a boundary or too
/// long for one request, or if there are no blocks.
///
/// # Errors
/// Returns an error if a value of the profile is out of bounds.
pub fn crossing_costs(
    profile: &Profile,
    share: AffectedShare,
) -> Result<Option<Vec<WorkCost>>, ProfileError> {
    let drive = Drive::new(profile)?;
    let ratio = u64::from(profile.sector.ratio());
    let sectors = share.bytes / u64::from(profile.sector.logical_bytes);
    // Whole physical sectors, so that only the boundary adds to the cost.
    let sectors = sectors / ratio * ratio;
    if sectors < 2 * ratio || share.of == 0 || sectors > u64::from(u32::MAX) {
        return Ok(None);
    }
    let crossing = share.crossing as f64 / share.of as f64;
    let cost = |load: CrossingLoad| {
        let of = |spans| ms_each(drive.clone(), load.op(), sectors, spans);
        let (within, across) = (of(false), of(true));
        WorkCost {
            load: Work::Crossing(load),
            aligned_ms: within,
            actual_ms: within + crossing * (across - within),
        }
    };
    Ok(Some(
        [CrossingLoad::PieceReads, CrossingLoad::PieceWrites]
            .map(cost)
            .to_vec(),
    ))
}

/// Returns the mean time, in milliseconds, of requests of `sectors` sectors. If `spans` is set,
/// each spans a boundary; otherwise each lies within a track if it fits.
fn ms_each(drive: Drive, op: Op, sectors: u64, spans: bool) -> f64 {
    let geometry = drive.geometry().clone();
    let ratio = u64::from(drive.profile().sector.ratio());
    let end = geometry.capacity().0;
    let mut rng = Rng::new(1);
    let next = move || loop {
        let Some(track) = geometry.track_of(Lbn(rng.below(end / 2))) else {
            continue;
        };
        let (first, length) = (track.first_lbn.0, u64::from(track.sectors));
        let start = if spans {
            let half = (sectors / 2).min(length / 2).max(ratio);
            (first + length).saturating_sub(half)
        } else {
            first + rng.below((length.saturating_sub(sectors)) + 1)
        };
        let start = if spans {
            start.next_multiple_of(ratio)
        } else {
            aligned_within(first..first + length, start, sectors, ratio)
        };
        if start + sectors <= end {
            return match op {
                Op::Write => Request::write(Lbn(start), sectors as u32),
                _ => Request::read(Lbn(start), sectors as u32),
            };
        }
    };
    ms_of_requests(drive, 1, next)
}

/// Returns the next multiple of `ratio` at or after `start`, or the previous one if a request of
/// `sectors` sectors lies within the track only from there.
fn aligned_within(track: Range<u64>, start: u64, sectors: u64, ratio: u64) -> u64 {
    let next = start.next_multiple_of(ratio);
    if next + sectors > track.end && next >= track.start + ratio {
        next - ratio
    } else {
        next
    }
}

#[cfg(test)]
mod tests {
    use traxtent_model::profile::builtin;

    use super::*;
    use crate::finding::AffectedParts;

    /// Does a request lie within its track from every start, if it does from any physical sector?
    #[test]
    fn requests_within_a_track_stay_there() {
        const RATIO: u64 = 8;
        for first in 16_u64..24 {
            let track = first..first + 100;
            let aligned = first.next_multiple_of(RATIO);
            for sectors in (RATIO..=track.end - aligned).step_by(RATIO as usize) {
                for start in first..=track.end - sectors {
                    let start = aligned_within(track.clone(), start, sectors, RATIO);
                    let fits = start >= first && start + sectors <= track.end;
                    assert!(
                        fits && start.is_multiple_of(RATIO),
                        "{first} {sectors} {start}"
                    );
                }
            }
        }
    }

    /// Does a block that spans two tracks take about one switch longer? Is the cost proportional to
    /// the share of such blocks, zero without any, and `None` for blocks of one sector? Does it
    /// exceed 10 % for requests about as long as a track?
    #[test]
    fn crossing_costs_about_a_switch() {
        let profile = builtin("atlas10k").unwrap();
        let share = |crossing, bytes| AffectedShare {
            parts: AffectedParts::Blocks,
            crossing,
            of: 100,
            bytes,
        };
        let of = |share| crossing_costs(&profile, share).unwrap();
        let all = of(share(100, 8192)).unwrap()[0];
        println!("{all:?}");
        // Head switches of this drive take at most 0.8 ms, and a revolution takes 6 ms.
        assert!((0.2..3.0).contains(&all.extra_ms()), "{all:?}");
        let some = of(share(10, 8192)).unwrap()[0];
        assert!((some.extra_ms() - all.extra_ms() / 10.0).abs() < 1e-6);
        assert_eq!(of(share(0, 8192)).unwrap()[0].extra_ms(), 0.0);
        assert!(of(share(1, 512)).is_none());
        // For whole tracks, half a revolution and a switch are saved, as in paper T.
        let tracks = of(share(100, 160 << 10)).unwrap()[0];
        println!("{tracks:?}");
        assert!(tracks.percent() > 10.0, "{tracks:?}");
    }
}
