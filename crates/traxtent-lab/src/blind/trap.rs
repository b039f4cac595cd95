//! The properties that make a drive hard to probe, each seen on a real drive, and the test for
//! each.

use std::collections::BTreeSet;
use std::ops::Range;

use traxtent_model::geometry::{Order, PerSurface, Skew, Track, ZoneSpec};
use traxtent_model::profile::{Profile, ReadAheadUntil};
use traxtent_units::Lbn;

use super::survey::LayoutSurvey;

/// A property that makes a drive hard to probe.
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
    /// Some zone has no skew between tracks.
    ZeroSkew,
    /// An angle of 180 to 202 degrees where a serpentine reverses.
    BigTurn,
    /// Skew that changes along a zone.
    DriftingSkew,
    /// A track that lacks a single physical sector.
    SlippedSector,
    /// A track that lacks several consecutive sectors, with others after them.
    SlippedRun,
    /// A whole track without LBNs among tracks with LBNs.
    SlippedTrack,
    /// A track that lacks over 90 % of its sectors.
    SparseTrack,
    /// A track of 6 sectors, followed by one that lacks 6.
    SixThenRest,
    /// A remapped sector.
    Remap,
    /// A remapped first LBN of a track.
    RemappedFirst,
    /// A remapped last LBN of a track.
    RemappedLast,
    /// A remapped whole track.
    RemappedTrack,
    /// A zone with reserved sectors at its beginning, so that its first track is short.
    ReservedFront,
    /// The last track is not full.
    CutShort,
    /// Several LBNs in a physical sector.
    LargeSectors,
    /// Several LBNs in a physical sector, with LBN 0 not the first in its sector.
    ShiftedSectors,
    /// Zero-latency reads: they begin with whichever sector arrives first.
    ZeroLatency,
    /// The drive reads ahead into its cache.
    ReadAhead,
    /// The drive does not support VERIFY.
    NoVerify,
}

impl Trap {
    /// All traps.
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

/// Finds the traps that a drive has, from its description and its layout.
pub(super) fn traps_of(profile: &Profile, survey: &LayoutSurvey, verifies: bool) -> Vec<Trap> {
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

/// Returns whether a skew is about half a turn.
fn is_big(skew: Option<Skew>) -> bool {
    matches!(skew, Some(Skew::Revolutions(turns)) if (0.5..0.562).contains(&turns))
}
