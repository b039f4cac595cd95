//! What a probe found, against what is there.

use std::iter;

use traxtent_core::geometry::{Geometry, Remedy};
use traxtent_core::probe::Algorithm;
use traxtent_core::units::Lbn;

use super::survey::whole_tracks;

/// Where a track may be said to begin that begins with, or follows, LBNs kept elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtMoved {
    /// Only at its first LBN: translations and defect lists tell where a moved LBN belongs.
    Exact,
    /// On either side of the moved LBNs, which lie on neither track: timing sees no more.
    EitherSide,
}

impl AtMoved {
    /// What is asked of an algorithm.
    pub fn of(algorithm: Algorithm) -> AtMoved {
        if algorithm.translates() {
            AtMoved::Exact
        } else {
            AtMoved::EitherSide
        }
    }
}

/// How a list of boundaries differs from a drive's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// How many boundaries there are, beginning and end of the drive left out.
    pub boundaries: u64,
    /// Boundaries that were not found.
    pub missing: Vec<Lbn>,
    /// What was found and is no boundary.
    pub additional: Vec<Lbn>,
}

impl Differences {
    /// Whether there are none.
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty() && self.additional.is_empty()
    }

    /// The share of boundaries that were found.
    pub fn found_share(&self) -> f64 {
        if self.boundaries == 0 {
            return 1.0;
        }
        1.0 - self.missing.len() as f64 / self.boundaries as f64
    }
}

/// Compares the bounds of tracks, ascending, with those of a drive's layout.
///
/// Bounds are what tracks begin with, and the LBN behind the last; LBN 0 and the end of the drive
/// say nothing and are passed over.
///
/// # Panics
/// If the bounds do not ascend.
pub fn compare(
    bounds: impl IntoIterator<Item = Lbn>,
    geometry: &Geometry,
    at_moved: AtMoved,
) -> Differences {
    let end = Lbn(geometry.capacity().0);
    let inner = |lbn: &Lbn| *lbn != Lbn(0) && *lbn != end;
    let moved = match at_moved {
        AtMoved::Exact => Vec::new(),
        AtMoved::EitherSide => moved_lbns(geometry),
    };
    let mut previous = None;
    let ascending = bounds.into_iter().inspect(|&lbn| {
        assert!(previous.is_none_or(|p| p < lbn), "{previous:?}, then {lbn}");
        previous = Some(lbn);
    });
    let mut found = ascending.filter(inner).peekable();
    let mut out = Differences::default();
    let bounds = whole_tracks(geometry).map(|track| track.first_lbn);
    for bound in bounds.filter(inner) {
        out.boundaries += 1;
        let stands = standing_for(bound, &moved);
        let last = stands[2];
        let before = iter::from_fn(|| found.next_if(|lbn| *lbn <= last && !stands.contains(lbn)));
        out.additional.extend(before);
        if found.next_if(|lbn| stands.contains(lbn)).is_none() {
            out.missing.push(bound);
        }
    }
    out.additional.extend(found);
    out
}

/// The LBNs kept elsewhere than on their track, ascending.
fn moved_lbns(geometry: &Geometry) -> Vec<Lbn> {
    let moved = geometry.defects().filter_map(|defect| match defect.remedy {
        Remedy::Remapped(lbn, _) => Some(lbn),
        Remedy::Slipped => None,
    });
    let mut moved: Vec<Lbn> = moved.collect();
    moved.sort_unstable();
    moved
}

/// What may be said for a boundary, ascending: before the moved LBNs at it, itself, behind them.
fn standing_for(bound: Lbn, moved: &[Lbn]) -> [Lbn; 3] {
    let is_moved = |lbn: u64| moved.binary_search(&Lbn(lbn)).is_ok();
    let (mut first, mut last) = (bound.0, bound.0);
    while first > 1 && is_moved(first - 1) {
        first -= 1;
    }
    while is_moved(last) {
        last += 1;
    }
    [Lbn(first), bound, Lbn(last)]
}
