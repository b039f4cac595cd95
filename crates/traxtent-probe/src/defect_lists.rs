//! The slots that a drive lists as bad, and which of them have remapped LBNs.
//!
//! A bad slot either holds no LBN and the LBNs after it have slipped, or its LBN is remapped. At a
//! boundary, translations alone do not always show which. If the last slot of one track and the
//! first of the next are bad, and one LBN is remapped, it may belong to either track: both
//! assumptions give the same places for all LBNs and the same LBNs for all places. But formatting
//! slips the defects known at that time, whereas a slot that goes bad later cannot displace all
//! LBNs after it. On a drive with grown defects, the grown ones are therefore assumed to be
//! remapped and the primary ones slipped, until translations show otherwise. On a drive that lists
//! no grown defects, each defect may be either.

use std::collections::BTreeSet;
use std::ops::Range;

use super::target::Defects;
use traxtent_model::geometry::{Place, TrackAddress};

/// The slots that a drive lists as bad.
#[derive(Clone, Debug, Default)]
pub(super) struct DefectLists {
    /// The bad slots, ascending.
    places: Vec<Place>,
    /// The bad slots with remapped LBNs.
    remapped: BTreeSet<Place>,
    /// Whether there are grown defects, and no LBN of a primary defect has been found to be
    /// remapped.
    shows_remapped: bool,
    /// The largest number of remapped LBNs in a row of bad slots.
    row_max: u64,
}

impl DefectLists {
    pub(super) fn new(defects: Defects) -> DefectLists {
        let remapped: BTreeSet<Place> = defects.grown.iter().copied().collect();
        let mut places = [defects.primary, defects.grown].concat();
        places.sort_unstable();
        places.dedup();
        let mut bad = DefectLists {
            places,
            shows_remapped: !remapped.is_empty(),
            remapped,
            row_max: 0,
        };
        bad.measure_rows();
        bad
    }

    /// Returns whether the LBN of a bad slot is remapped.
    pub(super) fn is_remapped(&self, place: Place) -> bool {
        self.remapped.contains(&place)
    }

    /// Returns whether the lists show which bad slots have remapped LBNs.
    pub(super) fn shows_remapped(&self) -> bool {
        self.shows_remapped
    }

    /// The largest number of remapped LBNs in a row of bad slots.
    pub(super) fn row_max(&self) -> u64 {
        self.row_max
    }

    /// Records that the LBNs of some bad slots have been found to be remapped.
    pub(super) fn record_remapped(&mut self, places: impl IntoIterator<Item = Place>) {
        for place in places {
            self.shows_remapped &= !self.remapped.insert(place);
        }
        self.measure_rows();
    }

    /// Returns the bad slots of a track within a range of slots.
    pub(super) fn within(&self, (cylinder, surface): TrackAddress, slots: Range<u32>) -> &[Place] {
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

    /// Returns the bad slots of a track.
    pub(super) fn on(&self, track: TrackAddress) -> &[Place] {
        self.within(track, 0..u32::MAX)
    }

    /// Returns the number of bad slots in a range of cylinders.
    pub(super) fn in_cylinders(&self, cylinders: Range<u32>) -> usize {
        let before = |cylinder| self.places.partition_point(|b| b.cylinder.0 < cylinder);
        before(cylinders.end).saturating_sub(before(cylinders.start))
    }

    /// Returns the consecutive bad slots directly after a place.
    pub(super) fn after(&self, place: Place) -> &[Place] {
        let Some(first) = place.slot.checked_add(1) else {
            return &[];
        };
        let following = self.within(place.track(), first..u32::MAX);
        let row = following
            .iter()
            .zip(first..)
            .take_while(|(b, k)| b.slot == *k);
        &following[..row.count()]
    }

    /// Returns the consecutive bad slots directly before a place.
    pub(super) fn before(&self, place: Place) -> &[Place] {
        let ahead = self.within(place.track(), 0..place.slot);
        let row = ahead.iter().rev().zip((0..place.slot).rev());
        let row = row.take_while(|(b, k)| b.slot == *k).count();
        &ahead[ahead.len() - row..]
    }

    /// Returns how many of the given bad slots have remapped LBNs.
    pub(super) fn remapped_among(&self, places: &[Place]) -> u64 {
        places.iter().filter(|bad| self.is_remapped(**bad)).count() as u64
    }

    fn measure_rows(&mut self) {
        let rows = self.places.chunk_by(are_in_a_row);
        self.row_max = rows.map(|row| self.remapped_among(row)).max().unwrap_or(0);
    }
}

fn are_in_a_row(one: &Place, other: &Place) -> bool {
    one.track() == other.track() && one.slot.checked_add(1) == Some(other.slot)
}
