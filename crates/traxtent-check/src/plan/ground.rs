//! What a stack is planned for, and where its partition goes.

use std::ops::Range;
use std::sync::Arc;

use traxtent_core::trackmap::TrackMap;
use traxtent_core::units::Lbn;

/// Addresses are multiples of this wherever nothing speaks against it: what tools have agreed on (paper A).
pub const GRAIN_BYTES: u64 = 1 << 20;

/// A track boundary may cost one sector in so many of the drive.
const COST_ONE_IN: u64 = 1000;

/// GPT keeps its second copy in the last 33 sectors.
const GPT_TAIL_LBNS: u64 = 33;

/// What is known of the drives below a stack, which are all alike.
#[derive(Clone, Debug)]
pub struct Ground {
    /// What it is called.
    pub name: String,
    /// Bytes of a logical sector.
    pub logical_bytes: u32,
    /// Bytes of a physical sector.
    pub physical_bytes: u32,
    /// The first LBN that begins a physical sector.
    pub lowest_aligned: Lbn,
    /// How many LBNs a drive has.
    pub lbns: u64,
    /// Where its tracks are, if that is known.
    pub tracks: Option<Arc<TrackMap>>,
}

/// Where a partition lies, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// Its LBNs.
    pub lbns: Range<Lbn>,
    /// Whether it begins where a track does.
    pub on_track: bool,
    /// Why there: a sentence.
    pub why: String,
}

impl Ground {
    /// LBNs of a physical sector.
    fn physical_lbns(&self) -> u64 {
        u64::from(self.physical_bytes / self.logical_bytes).max(1)
    }

    /// Whether an LBN is a multiple of `lbns` as the drive counts: from its lowest aligned LBN.
    fn on_grid(&self, lbn: u64, lbns: u64) -> bool {
        lbn % lbns == self.lowest_aligned.0 % lbns
    }

    /// The first LBN of the grid that is not before `lbn`.
    fn next_on_grid(&self, lbn: u64, lbns: u64) -> u64 {
        let shift = self.lowest_aligned.0 % lbns;
        lbn.saturating_sub(shift).div_ceil(lbns) * lbns + shift
    }

    /// The place for one partition that is as large as possible; none if the drive is too small for that.
    ///
    /// With tracks, it begins at the first boundary on the grid of 1 MiB, if that costs little; else at the first that
    /// begins a physical sector; else on the grid of 1 MiB. It ends on a physical sector. Blocks of `block_lbns` LBNs are
    /// counted from its start, so of all boundaries only those will do from which the fewest blocks span two tracks.
    pub fn site(&self, tracks: bool, block_lbns: Option<u64>) -> Option<Site> {
        let grain = (GRAIN_BYTES / u64::from(self.logical_bytes)).max(1);
        let sector = self.physical_lbns();
        // Drives that are shifted have their first such place below 1 MiB.
        let least = self.next_on_grid(grain.saturating_sub(sector - 1), grain);
        let most = least + self.lbns / COST_ONE_IN;
        let map = self.tracks.as_ref().filter(|_| tracks);
        let phase = map
            .zip(block_lbns)
            .map(|(map, lbns)| (best_phase(map, lbns), lbns));
        let boundary = |lbns: u64| {
            let map = map?;
            // From one boundary to the next, until one suits.
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
            (at, true, "a track begins there, on the grid of 1 MiB")
        } else if let Some(at) = boundary(sector) {
            (
                at,
                true,
                "a track begins there, and a physical sector; no track nearby begins on the grid of 1 MiB",
            )
        } else if map.is_some() {
            (
                least,
                false,
                "it is on the grid of 1 MiB; no track nearby begins a physical sector",
            )
        } else {
            (
                least,
                false,
                "it is on the grid of 1 MiB, and so of every physical sector",
            )
        };
        // The length is whole MiB where that leaves the end on a physical sector.
        let room = self.lbns.checked_sub(GPT_TAIL_LBNS + start)?;
        let length = room / grain * grain;
        (length > 0).then(|| Site {
            lbns: Lbn(start)..Lbn(start + length),
            on_track,
            why: why.to_owned(),
        })
    }
}

/// What most track boundaries leave when divided by the LBNs of a block: from there, the fewest blocks span two tracks.
fn best_phase(map: &TrackMap, block_lbns: u64) -> u64 {
    let mut boundaries = vec![0_u64; block_lbns as usize];
    for track in map.tracks() {
        boundaries[(track.first_lbn.0 % block_lbns) as usize] += 1;
    }
    let most = boundaries.iter().copied().max();
    let phase = boundaries.iter().position(|&count| Some(count) == most);
    phase.map_or(0, |phase| phase as u64)
}
