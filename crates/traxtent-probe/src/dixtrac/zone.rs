//! A zone as DIXtrac's expertise describes it, and the tracks that follow from it.

use std::ops::Range;

use super::super::defect_lists::DefectLists;
use super::super::pattern::{PatternTrack, Slots};
use super::super::planned::PlannedTrack;
use traxtent_model::geometry::{Place, Sparing};
use traxtent_units::{Cylinder, Surface};

/// A sparing scheme with its parameters: where spares are, and which LBNs a slipped sector
/// displaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SparingRule {
    pub(super) sparing: Sparing,
    /// The number of cylinders that share spares; one if no spares are between the tracks of the
    /// zone.
    pub(super) cylinders: u32,
    /// The number of spares that they share.
    pub(super) spares: u64,
}

/// The LBNs that a slipped sector displaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slips {
    /// All LBNs after it. Its track and its region have one LBN fewer.
    LoseLbn,
    /// The LBNs after it on its track. A spare at the end of the track holds the last one.
    StayOnTrack,
    /// The LBNs between it and the spares of its region.
    StayInRegion,
}

impl SparingRule {
    fn at_front(self) -> bool {
        matches!(
            self.sparing,
            Sparing::SectorsAtCylinderFront | Sparing::SectorsAtCylinderFrontSlipToEnd
        )
    }

    fn slips(self) -> Slips {
        match self.sparing {
            Sparing::SectorsPerTrack => Slips::StayOnTrack,
            Sparing::SectorsPerCylinder
            | Sparing::SectorsAtCylinderFront
            | Sparing::SectorsPerCylinderRange => Slips::StayInRegion,
            // Spares at the end of a zone compensate for the lost LBN only there.
            Sparing::None
            | Sparing::TracksPerZone
            | Sparing::SectorsPerZone
            | Sparing::SectorsPerZoneSlipToEnd
            | Sparing::SectorsAtDriveEnd
            | Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFrontSlipToEnd => Slips::LoseLbn,
        }
    }
}

/// Cylinders whose tracks are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    /// The cylinder at which the first region of spares begins.
    pub(super) first_cylinder: u32,
    pub(super) surfaces: u16,
    /// The number of sectors of a track without defects or spares.
    pub(super) slots: u32,
    /// Whether the first cylinder runs from its last surface to its first.
    pub(super) backward: bool,
    /// Whether every other cylinder runs in the opposite direction.
    pub(super) alternates: bool,
    pub(super) rule: SparingRule,
}

/// The beginning of a plan: an LBN and its place, or the front of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanStart {
    pub(super) lbn: u64,
    pub(super) region: u64,
    /// The place of the LBN, if it is inside the region.
    pub(super) inside: Option<Place>,
}

impl Zone {
    /// Returns the region of spares that a cylinder is in, counted from the zone's first region.
    pub(super) fn region_of(&self, cylinder: Cylinder) -> Option<u64> {
        let ahead = cylinder.0.checked_sub(self.first_cylinder)?;
        Some(u64::from(ahead / self.rule.cylinders))
    }

    /// Returns the cylinders of a region.
    pub(super) fn cylinders_of(&self, region: u64) -> Range<u32> {
        let wide = u64::from(self.rule.cylinders);
        let first = u64::from(self.first_cylinder) + region * wide;
        let cylinder = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        cylinder(first)..cylinder(first + wide)
    }

    /// Returns the surface at position `turn` in a cylinder's order of LBNs.
    pub(super) fn surface(&self, cylinder: u32, turn: u16) -> Surface {
        let odd = self.alternates && (cylinder.wrapping_sub(self.first_cylinder)) % 2 == 1;
        if self.backward == odd {
            Surface(turn)
        } else {
            Surface(self.surfaces - 1 - turn)
        }
    }

    /// Returns the tracks of a region from `from` on, in order. Slots listed as bad hold no LBN and
    /// displace others, except those whose LBN is remapped.
    pub(super) fn plan(&self, from: PlanStart, bad: &DefectLists) -> Vec<PlannedTrack> {
        let slots = u64::from(self.slots);
        let cylinders = self.cylinders_of(from.region);
        let mut homes = Vec::new();
        for cylinder in cylinders {
            let turns = 0..self.surfaces;
            homes.extend(turns.map(|turn| (Cylinder(cylinder), self.surface(cylinder, turn))));
        }
        // Positions count slots from the front of the region.
        let mut slipped = Vec::new();
        for (track, &at) in homes.iter().enumerate() {
            let inside = bad.within(at, 0..self.slots);
            let displaces = inside.iter().filter(|place| !bad.is_remapped(**place));
            slipped.extend(displaces.map(|place| track as u64 * slots + u64::from(place.slot)));
        }
        let data = self.data(homes.len() as u64 * slots, &slipped);
        let mut lbn = from.lbn;
        let mut plan = Vec::new();
        let mut begun = from.inside.is_none();
        for (track, &at) in homes.iter().enumerate() {
            let begin = track as u64 * slots;
            let mut first = data.start.saturating_sub(begin).min(slots) as u32;
            let mut end = data.end.saturating_sub(begin).min(slots) as u32;
            if let Some(place) = from.inside.filter(|place| place.track() == at) {
                begun = true;
                first = first.max(place.slot);
            }
            if !begun {
                continue;
            }
            if self.rule.slips() == Slips::StayOnTrack && first < end {
                for place in bad.on(at).iter().filter(|place| !bad.is_remapped(**place)) {
                    end += u32::from((first..end).contains(&place.slot));
                }
            }
            let count = end.saturating_sub(first);
            let slots = Slots { first, count };
            let track = PlannedTrack::new(PatternTrack { home: at, slots }, lbn, bad);
            lbn = track.end();
            plan.push(track);
        }
        plan
    }

    /// Returns the positions of a region that are used for LBNs.
    fn data(&self, positions: u64, slipped: &[u64]) -> Range<u64> {
        let spares = self.rule.spares.min(positions);
        let stay = self.rule.slips() == Slips::StayInRegion;
        if self.rule.at_front() {
            let mut first = spares;
            let backward = slipped.iter().rev().filter(|_| stay);
            for &bad in backward {
                first -= u64::from(bad >= first && first > 0);
            }
            first..positions
        } else {
            let mut end = positions - spares;
            for &bad in slipped.iter().filter(|_| stay) {
                end += u64::from(bad < end && end < positions);
            }
            0..end
        }
    }
}
