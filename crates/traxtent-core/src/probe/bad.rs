//! The slots that a drive lists as bad, and which of them have their LBN elsewhere.
//!
//! A bad slot either holds no LBN, and those behind it have slipped on, or its LBN is kept
//! elsewhere. Where it stands at a boundary, translations alone do not always tell: if the last
//! slot of one track and the first of the next are bad, and one LBN is kept elsewhere, both
//! answers to whose it is give the same places for all LBNs and the same LBNs for all places. But
//! formatting slips the defects known by then, while an LBN whose slot goes bad later cannot make
//! all behind it move. So on a drive with grown defects, these have their LBNs elsewhere and the
//! primary ones have not, until translations show otherwise. On a drive that lists none as grown,
//! each of its defects may be either.

use std::collections::BTreeSet;
use std::ops::Range;

use super::ask::{Home, home};
use super::target::Defects;
use crate::geometry::Place;

/// The slots that a drive lists as bad.
#[derive(Clone, Debug, Default)]
pub(super) struct Bad {
    /// Ascending.
    places: Vec<Place>,
    /// Those of which the LBN is elsewhere.
    moved: BTreeSet<Place>,
    /// Whether there are grown defects, and no LBN of a primary one has been found elsewhere.
    tells_moved: bool,
    /// The longest row of slots whose LBNs are elsewhere.
    row_max: u64,
}

impl Bad {
    pub(super) fn new(defects: Defects) -> Bad {
        let moved: BTreeSet<Place> = defects.grown.iter().copied().collect();
        let mut places = [defects.primary, defects.grown].concat();
        places.sort_unstable();
        places.dedup();
        let mut bad = Bad {
            places,
            tells_moved: !moved.is_empty(),
            moved,
            row_max: 0,
        };
        bad.measure_rows();
        bad
    }

    /// Whether the LBN of a bad slot is kept elsewhere.
    pub(super) fn is_moved(&self, place: Place) -> bool {
        self.moved.contains(&place)
    }

    /// Whether the lists tell of which bad slots the LBNs are kept elsewhere.
    pub(super) fn tells_moved(&self) -> bool {
        self.tells_moved
    }

    /// So many LBNs in a row are kept elsewhere at most.
    pub(super) fn row_max(&self) -> u64 {
        self.row_max
    }

    /// Takes note that the LBNs of some bad slots have been found elsewhere.
    pub(super) fn found_moved(&mut self, places: impl IntoIterator<Item = Place>) {
        for place in places {
            self.tells_moved &= !self.moved.insert(place);
        }
        self.measure_rows();
    }

    /// The bad slots of a track among some.
    pub(super) fn within(&self, (cylinder, surface): Home, slots: Range<u32>) -> &[Place] {
        let before = |slot| {
            let place = Place {
                cylinder,
                surface,
                slot,
            };
            self.places.partition_point(|bad| *bad < place)
        };
        &self.places[before(slots.start)..before(slots.end.max(slots.start))]
    }

    /// The bad slots of a track.
    pub(super) fn on(&self, track: Home) -> &[Place] {
        self.within(track, 0..u32::MAX)
    }

    /// How many bad slots some cylinders have.
    pub(super) fn in_cylinders(&self, cylinders: Range<u32>) -> usize {
        let before = |cylinder| self.places.partition_point(|b| b.cylinder.0 < cylinder);
        before(cylinders.end).saturating_sub(before(cylinders.start))
    }

    /// The bad slots in a row right behind a place.
    pub(super) fn after(&self, place: Place) -> &[Place] {
        let Some(first) = place.slot.checked_add(1) else {
            return &[];
        };
        let behind = self.within(home(place), first..u32::MAX);
        let row = behind.iter().zip(first..).take_while(|(b, k)| b.slot == *k);
        &behind[..row.count()]
    }

    /// The bad slots in a row right before a place.
    pub(super) fn before(&self, place: Place) -> &[Place] {
        let ahead = self.within(home(place), 0..place.slot);
        let row = ahead.iter().rev().zip((0..place.slot).rev());
        let row = row.take_while(|(b, k)| b.slot == *k).count();
        &ahead[ahead.len() - row..]
    }

    /// How many of some bad slots have their LBN elsewhere.
    pub(super) fn moved_of(&self, places: &[Place]) -> u64 {
        places.iter().filter(|bad| self.is_moved(**bad)).count() as u64
    }

    fn measure_rows(&mut self) {
        let rows = self.places.chunk_by(are_in_a_row);
        self.row_max = rows.map(|row| self.moved_of(row)).max().unwrap_or(0);
    }
}

fn are_in_a_row(one: &Place, other: &Place) -> bool {
    home(*one) == home(*other) && one.slot.checked_add(1) == Some(other.slot)
}
