//! Compares the boundaries that a probe found with the real ones.

use std::iter;

use traxtent_model::geometry::{Geometry, Replacement};
use traxtent_probe::Algorithm;
use traxtent_units::Lbn;

use super::survey::whole_tracks;

/// The accepted boundaries of a track that begins with, or follows, remapped LBNs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemapTolerance {
    /// Only the track's first LBN: translations and defect lists show where a remapped LBN belongs.
    Exact,
    /// The track's first LBN, or either side of the remapped LBNs next to it. Remapped LBNs lie on
    /// neither track, and timing cannot show to which they belong.
    EitherSide,
}

impl RemapTolerance {
    /// Returns the tolerance for the result of an algorithm.
    pub fn of(algorithm: Algorithm) -> RemapTolerance {
        if algorithm.translates() {
            RemapTolerance::Exact
        } else {
            RemapTolerance::EitherSide
        }
    }
}

/// The differences between a list of boundaries and those of a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Differences {
    /// The number of the drive's boundaries, excluding the beginning and the end of the drive.
    pub boundaries: u64,
    /// Boundaries that were not found.
    pub missing: Vec<Lbn>,
    /// LBNs that were found but are not boundaries.
    pub additional: Vec<Lbn>,
}

impl Differences {
    /// Returns whether there are no differences.
    pub fn is_exact(&self) -> bool {
        self.missing.is_empty() && self.additional.is_empty()
    }

    /// Returns the share of boundaries that were found.
    pub fn found_share(&self) -> f64 {
        if self.boundaries == 0 {
            return 1.0;
        }
        1.0 - self.missing.len() as f64 / self.boundaries as f64
    }
}

/// Compares the bounds of tracks, in ascending order, with those of a drive's layout.
///
/// The bounds are the first LBNs of tracks and the first LBN after the last track. LBN 0 and the
/// end of the drive carry no information and are ignored.
///
/// # Panics
/// Panics if the bounds do not ascend.
pub fn compare(
    bounds: impl IntoIterator<Item = Lbn>,
    geometry: &Geometry,
    tolerance: RemapTolerance,
) -> Differences {
    let end = Lbn(geometry.capacity().0);
    let inner = |lbn: &Lbn| *lbn != Lbn(0) && *lbn != end;
    let remapped = match tolerance {
        RemapTolerance::Exact => Vec::new(),
        RemapTolerance::EitherSide => remapped_lbns(geometry),
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
        let accepted = accepted_lbns(bound, &remapped);
        let last = accepted[2];
        let before = iter::from_fn(|| found.next_if(|lbn| *lbn <= last && !accepted.contains(lbn)));
        out.additional.extend(before);
        if found.next_if(|lbn| accepted.contains(lbn)).is_none() {
            out.missing.push(bound);
        }
    }
    out.additional.extend(found);
    out
}

/// The remapped LBNs, ascending.
fn remapped_lbns(geometry: &Geometry) -> Vec<Lbn> {
    let remapped = geometry.defects().filter_map(|defect| match defect.remedy {
        Replacement::Remapped(lbn, _) => Some(lbn),
        Replacement::Slipped => None,
    });
    let mut remapped: Vec<Lbn> = remapped.collect();
    remapped.sort_unstable();
    remapped
}

/// The accepted LBNs for a boundary, ascending: the first of the remapped LBNs that adjoin the
/// boundary, the boundary itself, and the first LBN after the remapped ones.
fn accepted_lbns(bound: Lbn, remapped: &[Lbn]) -> [Lbn; 3] {
    let is_remapped = |lbn: u64| remapped.binary_search(&Lbn(lbn)).is_ok();
    let (mut first, mut last) = (bound.0, bound.0);
    while first > 1 && is_remapped(first - 1) {
        first -= 1;
    }
    while is_remapped(last) {
        last += 1;
    }
    [Lbn(first), bound, Lbn(last)]
}
