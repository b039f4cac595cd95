//! The drives that a stack is planned for, and the place of its partition.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use traxtent_map::TrackMap;
use traxtent_units::Lbn;

/// The default alignment of addresses: the convention of partitioning tools (paper A).
pub const ALIGNMENT_BYTES: u64 = 1 << 20;

/// Beginning at a track boundary may cost at most one in this many sectors of the drive.
const BOUNDARY_COST_ONE_IN: u64 = 1000;

/// The number of LBNs that a GPT needs for its second copy at the end of a drive, with sectors of
/// 512 bytes. With larger sectors it needs fewer.
pub(super) const GPT_TAIL_LBNS: u64 = 33;

/// The properties of the drives below a stack, which are all identical.
#[derive(Clone, Debug)]
pub struct DriveProperties {
    /// The name.
    pub name: String,
    /// The size of a logical sector in bytes.
    pub logical_bytes: u32,
    /// The size of a physical sector in bytes.
    pub physical_bytes: u32,
    /// The first LBN that begins a physical sector.
    pub lowest_aligned: Lbn,
    /// The number of LBNs of a drive.
    pub lbns: u64,
    /// The track map, if it is known.
    pub tracks: Option<Arc<TrackMap>>,
}

/// The place of a partition, and the reason for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionPlace {
    /// The partition's LBNs.
    pub lbns: Range<Lbn>,
    /// Whether the partition begins at a track boundary.
    pub on_track: bool,
    /// The reason for its start.
    pub why: StartReason,
}

/// The reason for the start of a partition. Its `Display` form is a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StartReason {
    /// A track begins there, on the grid of 1 MiB.
    TrackOnGrid,
    /// A track and a physical sector begin there.
    TrackOffGrid,
    /// It is on the grid, because no track nearby qualifies.
    NoTrackNearby,
    /// It is on the grid, and tracks are not considered.
    Grid,
}

impl fmt::Display for StartReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StartReason::TrackOnGrid => "a track begins there, on the grid of 1 MiB",
            StartReason::TrackOffGrid => {
                "a track and a physical sector begin there; no suitable track nearby begins on the grid of 1 MiB"
            }
            StartReason::NoTrackNearby => {
                "it is on the grid of 1 MiB; no track boundary nearby suits both the physical sectors and the blocks"
            }
            StartReason::Grid => "it is on the grid of 1 MiB, and therefore at a physical sector",
        })
    }
}

impl Serialize for StartReason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl DriveProperties {
    /// Returns the number of LBNs in a physical sector.
    fn physical_lbns(&self) -> u64 {
        u64::from(self.physical_bytes / self.logical_bytes).max(1)
    }

    /// Returns whether an LBN is a multiple of `lbns`, counted from the drive's lowest aligned LBN.
    fn on_grid(&self, lbn: u64, lbns: u64) -> bool {
        lbn % lbns == self.lowest_aligned.0 % lbns
    }

    /// Returns the first LBN of the grid at or after `lbn`.
    fn next_on_grid(&self, lbn: u64, lbns: u64) -> u64 {
        let shift = self.lowest_aligned.0 % lbns;
        lbn.saturating_sub(shift).div_ceil(lbns) * lbns + shift
    }

    /// Returns the LBNs that the track map covers, if it does not cover the whole drive.
    pub(super) fn partly_mapped(&self) -> Option<Range<u64>> {
        let map = self.tracks.as_ref()?;
        let covered = map.first().0..map.end().0;
        (covered.start > 0 || covered.end < self.lbns).then_some(covered)
    }

    /// Returns the place for one partition that is as large as possible, or `None` if the drive is
    /// too small.
    ///
    /// With tracks, it begins at the first boundary on the grid of 1 MiB or, failing that, at the
    /// first boundary that begins a physical sector, if that costs little. Otherwise it begins on
    /// the grid of 1 MiB. It ends with a physical sector, and at the latest where the map ends.
    /// Blocks of `block_lbns` LBNs are counted from its start, so only the boundaries that let the
    /// fewest blocks span two tracks qualify.
    pub fn site(&self, tracks: bool, block_lbns: Option<u64>) -> Option<PartitionPlace> {
        let grain = (ALIGNMENT_BYTES / u64::from(self.logical_bytes)).max(1);
        let sector = self.physical_lbns();
        // On drives with a shifted numbering, the first line of the grid is below 1 MiB.
        let least = self.next_on_grid(grain.saturating_sub(sector - 1), grain);
        let most = least + self.lbns / BOUNDARY_COST_ONE_IN;
        let map = self.tracks.as_ref().filter(|_| tracks);
        let phase = map
            .zip(block_lbns)
            .map(|(map, lbns)| (best_phase(map, lbns), lbns));
        let boundary = |lbns: u64| {
            let map = map?;

            let mut track = map.track_of(Lbn(least))?;
            loop {
                let at = track.first_lbn.0;
                let fits = phase.is_none_or(|(phase, lbns)| at % lbns == phase);
                if at >= least && fits && self.on_grid(at, lbns) {
                    return Some(at);
                }
                track = map
                    .track_of(track.end())
                    .filter(|track| track.first_lbn.0 <= most)?;
            }
        };
        let (start, on_track, why) = if let Some(at) = boundary(grain) {
            (at, true, StartReason::TrackOnGrid)
        } else if let Some(at) = boundary(sector) {
            (at, true, StartReason::TrackOffGrid)
        } else if map.is_some() {
            (least, false, StartReason::NoTrackNearby)
        } else {
            (least, false, StartReason::Grid)
        };
        // The length is a number of whole MiB, which leaves the end on a physical sector.
        let end = self.lbns.checked_sub(GPT_TAIL_LBNS)?;
        let end = map.map_or(end, |map| end.min(map.end().0));
        let room = end.checked_sub(start)?;
        let length = room / grain * grain;
        (length > 0).then(|| PartitionPlace {
            lbns: Lbn(start)..Lbn(start + length),
            on_track,
            why,
        })
    }
}

/// Returns the most frequent remainder of track boundaries divided by the LBNs of a block. Blocks
/// counted from such a boundary span two tracks least often.
fn best_phase(map: &TrackMap, block_lbns: u64) -> u64 {
    let mut boundaries = vec![0_u64; block_lbns as usize];
    for track in map.tracks() {
        boundaries[(track.first_lbn.0 % block_lbns) as usize] += 1;
    }
    let most = boundaries.iter().copied().max();
    let phase = boundaries.iter().position(|&count| Some(count) == most);
    phase.map_or(0, |phase| phase as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a partition end where a map of a region ends, and with the drive if the map is complete
    /// or tracks are not considered?
    #[test]
    fn a_partition_ends_with_the_map() {
        let drive = |tracks: usize| DriveProperties {
            name: "drive".to_owned(),
            logical_bytes: 512,
            physical_bytes: 512,
            lowest_aligned: Lbn(0),
            lbns: 1_000_000,
            tracks: Some(Arc::new(TrackMap::from_sizes(std::iter::repeat_n(
                1000, tracks,
            )))),
        };
        let end = |drive: &DriveProperties, tracks| drive.site(tracks, None).unwrap().lbns.end.0;
        let (part, whole) = (drive(100), drive(1000));
        assert_eq!(part.partly_mapped(), Some(0..100_000));
        assert_eq!(whole.partly_mapped(), None);
        assert!(end(&part, true) <= 100_000 && end(&part, true) > 96_000);
        assert!(end(&part, false) > 900_000);
        assert!(end(&whole, true) > 900_000);
    }
}
