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
pub enum HardProperty {
    /// The layout is in none of Wong's orders.
    Irregular,
    /// A serpentine of at most four cylinders.
    NarrowSerpentine,
    /// Passes as wide as a whole zone.
    WholeZonePasses,
    /// Sectors per track differ by surface.
    PerSurface,
    /// Each surface is numbered separately, zone by zone.
    SurfaceZones,
    /// Some zone has no skew between tracks.
    ZeroSkew,
    /// An angle of 180 to 202 degrees where a serpentine reverses.
    BigTurn,
    /// Skew that changes along a zone.
    DriftingSkew,
    /// A single slipped physical sector.
    SlippedSector,
    /// Several consecutive slipped sectors, neither at the beginning nor at the end of their track.
    SlippedRun,
    /// A track without LBNs, because its sectors have slipped.
    SlippedTrack,
    /// A track, other than the drive's first and last, that lacks over 90 % of its sectors.
    SparseTrack,
    /// A track of 6 physical sectors, followed by one that lacks 6.
    SixThenRest,
    /// A remapped sector.
    Remap,
    /// A remapped first LBN of a track.
    RemappedFirst,
    /// A remapped last LBN of a track.
    RemappedLast,
    /// A remapped whole track.
    RemappedTrack,
    /// Reserved sectors at the beginning of a zone. They shorten its first track.
    ReservedFront,
    /// The drive is truncated, so the last track may not be full.
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

impl HardProperty {
    /// All properties.
    pub const ALL: [HardProperty; 24] = [
        HardProperty::Irregular,
        HardProperty::NarrowSerpentine,
        HardProperty::WholeZonePasses,
        HardProperty::PerSurface,
        HardProperty::SurfaceZones,
        HardProperty::ZeroSkew,
        HardProperty::BigTurn,
        HardProperty::DriftingSkew,
        HardProperty::SlippedSector,
        HardProperty::SlippedRun,
        HardProperty::SlippedTrack,
        HardProperty::SparseTrack,
        HardProperty::SixThenRest,
        HardProperty::Remap,
        HardProperty::RemappedFirst,
        HardProperty::RemappedLast,
        HardProperty::RemappedTrack,
        HardProperty::ReservedFront,
        HardProperty::CutShort,
        HardProperty::LargeSectors,
        HardProperty::ShiftedSectors,
        HardProperty::ZeroLatency,
        HardProperty::ReadAhead,
        HardProperty::NoVerify,
    ];
}

/// Finds the hard properties that a drive has, from its description and its layout.
pub(super) fn traps_of(
    profile: &Profile,
    survey: &LayoutSurvey,
    verifies: bool,
) -> Vec<HardProperty> {
    let spec = &profile.geometry;
    let zone = |test: &dyn Fn(&ZoneSpec) -> bool| spec.zones.iter().any(test);
    let width = spec.width_tracks.unwrap_or(0);
    let turns = spec.surfaces > 1
        && matches!(
            spec.order,
            Order::SeekAlternatingSurfaceForward | Order::SeekAlternatingSurfaceAlternating
        );
    let physical = profile.sector.ratio();
    let (tracks, remapped) = (&survey.tracks, &survey.remapped);
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
    let is_remapped = |lbn: Lbn| remapped.binary_search(&lbn).is_ok();
    let has = |trap| match trap {
        HardProperty::Irregular => spec.tree.is_some(),
        HardProperty::NarrowSerpentine => turns && (1..5).contains(&width),
        HardProperty::WholeZonePasses => {
            width > 0 && zone(&|z| width > z.last_cylinder - z.first_cylinder)
        }
        HardProperty::PerSurface => zone(&|z| matches!(z.sectors_per_track, PerSurface::Each(_))),
        HardProperty::SurfaceZones => spec.surfaces > 1 && zone(&|z| z.surface.is_some()),
        HardProperty::ZeroSkew => zone(&|z| {
            [z.track_skew, z.cylinder_skew] == [Skew::default(); 2] && z.turn_skew.is_none()
        }),
        HardProperty::BigTurn => turns && zone(&|z| is_big(z.turn_skew)),
        HardProperty::DriftingSkew => zone(&|z| z.turns.len() > 3),
        HardProperty::SlippedSector => slipped(&|_, run| run.len() == physical as usize),
        HardProperty::SlippedRun => slipped(&|track, run| {
            run.len() > physical as usize && run.start > 0 && run.end < track.slots
        }),
        HardProperty::SlippedTrack => whole_track(),
        HardProperty::SparseTrack => {
            let inner = &tracks[1..tracks.len() - 1];
            inner.iter().any(|track| track.sectors * 10 < track.slots)
        }
        HardProperty::SixThenRest => tracks.windows(2).any(six_then_rest),
        HardProperty::Remap => !remapped.is_empty(),
        HardProperty::RemappedFirst => tracks.iter().any(|track| is_remapped(track.first_lbn)),
        HardProperty::RemappedLast => tracks.iter().any(|t| is_remapped(Lbn(t.end_lbn().0 - 1))),
        HardProperty::RemappedTrack => zone(&|z| !z.remaps.is_empty()),
        HardProperty::ReservedFront => zone(&|z| z.reserved_sectors > 0),
        HardProperty::CutShort => spec.capacity_sectors.is_some(),
        HardProperty::LargeSectors => physical > 1,
        HardProperty::ShiftedSectors => profile.sector.lowest_aligned_lbn > 0,
        HardProperty::ZeroLatency => profile.access.zero_latency_read,
        HardProperty::ReadAhead => {
            profile.cache.enabled && profile.cache.read_ahead.until != ReadAheadUntil::None
        }
        HardProperty::NoVerify => !verifies,
    };
    HardProperty::ALL
        .into_iter()
        .filter(|&trap| has(trap))
        .collect()
}

/// Returns whether a skew is about half a turn.
fn is_big(skew: Option<Skew>) -> bool {
    matches!(skew, Some(Skew::Revolutions(turns)) if (0.5..0.562).contains(&turns))
}
