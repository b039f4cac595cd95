//! What makes a drive hard to probe, each seen on a real drive, and which drives have it.

use std::collections::BTreeSet;
use std::ops::Range;

use traxtent_core::geometry::{Order, PerSurface, Skew, Track, ZoneSpec};
use traxtent_core::profile::{Profile, ReadAheadUntil};
use traxtent_core::units::Lbn;

use super::survey::Survey;

/// What makes a drive hard to probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Trap {
    /// The layout is in none of Wong's orders.
    Irregular,
    /// A serpentine of at most four cylinders.
    NarrowSerpentine,
    /// Passes as wide as whole zones.
    WholeZonePasses,
    /// Sectors per track differ by surface.
    PerSurface,
    /// Each surface is numbered by itself, zone by zone.
    SurfaceZones,
    /// Somewhere no track is skewed against the next.
    ZeroSkew,
    /// A turn by 180 to 202 degrees where a serpentine turns.
    BigTurn,
    /// Skew that changes along a zone.
    DriftingSkew,
    /// A track that lacks a few sectors.
    SlippedSector,
    /// A track that lacks several sectors in a row, with others behind them.
    SlippedRun,
    /// A whole track without LBNs among tracks with.
    SlippedTrack,
    /// A track that lacks over 90 % of its sectors.
    SparseTrack,
    /// A track of 6 sectors, then one that lacks 6.
    SixThenRest,
    /// A sector kept elsewhere.
    Remap,
    /// A track's first LBN kept elsewhere.
    RemappedFirst,
    /// A track's last LBN kept elsewhere.
    RemappedLast,
    /// A whole track kept elsewhere.
    RemappedTrack,
    /// A zone keeps sectors for itself at its front, so that its first track is short.
    ReservedFront,
    /// The last track is not full.
    CutShort,
    /// Several LBNs in a physical sector.
    LargeSectors,
    /// The same, and LBN 0 is not the first in its one.
    ShiftedSectors,
    /// Reads begin with whichever sector comes first.
    ZeroLatency,
    /// The drive reads ahead into its cache.
    ReadAhead,
    /// The drive does not know VERIFY.
    NoVerify,
}

impl Trap {
    /// All of them.
    pub const ALL: [Trap; 24] = [
        Trap::Irregular,
        Trap::NarrowSerpentine,
        Trap::WholeZonePasses,
        Trap::PerSurface,
        Trap::SurfaceZones,
        Trap::ZeroSkew,
        Trap::BigTurn,
        Trap::DriftingSkew,
        Trap::SlippedSector,
        Trap::SlippedRun,
        Trap::SlippedTrack,
        Trap::SparseTrack,
        Trap::SixThenRest,
        Trap::Remap,
        Trap::RemappedFirst,
        Trap::RemappedLast,
        Trap::RemappedTrack,
        Trap::ReservedFront,
        Trap::CutShort,
        Trap::LargeSectors,
        Trap::ShiftedSectors,
        Trap::ZeroLatency,
        Trap::ReadAhead,
        Trap::NoVerify,
    ];
}

/// Which traps a drive has, from its description and its layout.
pub(super) fn traps_of(profile: &Profile, survey: &Survey, verifies: bool) -> Vec<Trap> {
    let spec = &profile.geometry;
    let zone = |test: &dyn Fn(&ZoneSpec) -> bool| spec.zones.iter().any(test);
    let width = spec.width_tracks.unwrap_or(0);
    let turns = spec.surfaces > 1
        && matches!(
            spec.order,
            Order::SeekAlternatingSurfaceForward | Order::SeekAlternatingSurfaceAlternating
        );
    let physical = profile.sector.ratio();
    let (tracks, moved) = (&survey.tracks, &survey.moved);
    let like_full = |track: &Track| track.sectors > track.slots / 2;
    let slipped = |test: &dyn Fn(&Track, &Range<u32>) -> bool| {
        let of = |track: &Track| survey.runs_of(track).iter().any(|run| test(track, run));
        tracks.iter().filter(|track| like_full(track)).any(of)
    };
    let whole_track = || {
        let with: BTreeSet<_> = tracks.iter().map(|t| (t.cylinder.0, t.surface.0)).collect();
        survey
            .slipped
            .iter()
            .any(|(place, runs)| !with.contains(place) && runs.iter().any(|run| run.len() >= 40))
    };
    let six_then_rest = |pair: &[Track]| {
        let six = 6 * physical;
        pair[0].sectors == six && pair[1].sectors + six == pair[1].slots
    };
    let is_moved = |lbn: Lbn| moved.binary_search(&lbn).is_ok();
    let has = |trap| match trap {
        Trap::Irregular => spec.tree.is_some(),
        Trap::NarrowSerpentine => turns && (1..5).contains(&width),
        Trap::WholeZonePasses => width > 0 && zone(&|z| width > z.last_cylinder - z.first_cylinder),
        Trap::PerSurface => zone(&|z| matches!(z.sectors_per_track, PerSurface::Each(_))),
        Trap::SurfaceZones => spec.surfaces > 1 && zone(&|z| z.surface.is_some()),
        Trap::ZeroSkew => zone(&|z| {
            [z.track_skew, z.cylinder_skew] == [Skew::default(); 2] && z.turn_skew.is_none()
        }),
        Trap::BigTurn => turns && zone(&|z| is_big(z.turn_skew)),
        Trap::DriftingSkew => zone(&|z| z.turns.len() > 3),
        Trap::SlippedSector => slipped(&|_, run| run.len() == physical as usize),
        Trap::SlippedRun => slipped(&|track, run| {
            run.len() > physical as usize && run.start > 0 && run.end < track.slots
        }),
        Trap::SlippedTrack => whole_track(),
        Trap::SparseTrack => {
            let inner = &tracks[1..tracks.len() - 1];
            inner.iter().any(|track| track.sectors * 10 < track.slots)
        }
        Trap::SixThenRest => tracks.windows(2).any(six_then_rest),
        Trap::Remap => !moved.is_empty(),
        Trap::RemappedFirst => tracks.iter().any(|track| is_moved(track.first_lbn)),
        Trap::RemappedLast => tracks.iter().any(|t| is_moved(Lbn(t.end_lbn().0 - 1))),
        Trap::RemappedTrack => zone(&|z| !z.remaps.is_empty()),
        Trap::ReservedFront => zone(&|z| z.reserved_sectors > 0),
        Trap::CutShort => spec.capacity_sectors.is_some(),
        Trap::LargeSectors => physical > 1,
        Trap::ShiftedSectors => profile.sector.lowest_aligned_lbn > 0,
        Trap::ZeroLatency => profile.access.zero_latency_read,
        Trap::ReadAhead => {
            profile.cache.enabled && profile.cache.read_ahead.until != ReadAheadUntil::None
        }
        Trap::NoVerify => !verifies,
    };
    Trap::ALL.into_iter().filter(|&trap| has(trap)).collect()
}

/// Whether a skew is one of those of about a half turn.
fn is_big(skew: Option<Skew>) -> bool {
    matches!(skew, Some(Skew::Revolutions(turns)) if (0.5..0.562).contains(&turns))
}
