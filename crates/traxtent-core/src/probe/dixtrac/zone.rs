//! A zone as DIXtrac's expertise describes it, and the tracks that follow from it.

use std::ops::Range;

use super::super::ask::home;
use super::super::bad::Bad;
use super::super::pattern::{Expected, Slots};
use super::super::planned::Planned;
use crate::geometry::{Place, Sparing};
use crate::units::{Cylinder, Surface};

/// Where spares are kept and what a slipped sector displaces: a scheme with its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) sparing: Sparing,
    /// Cylinders that share spares; one where no spares are kept between tracks of the zone.
    pub(super) cylinders: u32,
    /// How many spares they share.
    pub(super) spares: u64,
}

/// What a slipped sector displaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slips {
    /// All LBNs behind it: its track has one fewer, and so has the region.
    CostAnLbn,
    /// Those of its track: a spare at the end of the track holds the last.
    StayOnTrack,
    /// Those between it and the spares of its region.
    StayInRegion,
}

impl Rule {
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
            // Spares at the end of a zone give the LBN back only there.
            Sparing::None
            | Sparing::TracksPerZone
            | Sparing::SectorsPerZone
            | Sparing::SectorsPerZoneSlipToEnd
            | Sparing::SectorsAtDriveEnd
            | Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFrontSlipToEnd => Slips::CostAnLbn,
        }
    }
}

/// Cylinders whose tracks are alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    /// Where the first region of spares begins.
    pub(super) first_cylinder: u32,
    pub(super) surfaces: u16,
    /// Sectors of a track without defects and spares.
    pub(super) slots: u32,
    /// Whether the first cylinder runs from its last surface to its first.
    pub(super) backward: bool,
    /// Whether every other cylinder runs the other way.
    pub(super) alternates: bool,
    pub(super) rule: Rule,
}

/// Where a plan begins: an LBN and its place, or the front of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct From {
    pub(super) lbn: u64,
    pub(super) region: u64,
    /// The place of the LBN where it is inside the region.
    pub(super) inside: Option<Place>,
}

impl Zone {
    /// The region of spares that a cylinder is in, counted from the zone's first.
    pub(super) fn region_of(&self, cylinder: Cylinder) -> Option<u64> {
        let ahead = cylinder.0.checked_sub(self.first_cylinder)?;
        Some(u64::from(ahead / self.rule.cylinders))
    }

    /// The cylinders of a region.
    pub(super) fn cylinders_of(&self, region: u64) -> Range<u32> {
        let wide = u64::from(self.rule.cylinders);
        let first = u64::from(self.first_cylinder) + region * wide;
        let cylinder = |at: u64| u32::try_from(at).unwrap_or(u32::MAX);
        cylinder(first)..cylinder(first + wide)
    }

    /// The surface that takes LBNs as number `turn` of a cylinder.
    pub(super) fn surface(&self, cylinder: u32, turn: u16) -> Surface {
        let odd = self.alternates && (cylinder.wrapping_sub(self.first_cylinder)) % 2 == 1;
        if self.backward == odd {
            Surface(turn)
        } else {
            Surface(self.surfaces - 1 - turn)
        }
    }

    /// The tracks of a region, in order. Slots listed as bad hold no LBN and displace others,
    /// except those whose LBN is elsewhere.
    pub(super) fn plan(&self, from: From, bad: &Bad) -> Vec<Planned> {
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
            let displaces = inside.iter().filter(|place| !bad.is_moved(**place));
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
            if let Some(place) = from.inside.filter(|place| home(*place) == at) {
                begun = true;
                first = first.max(place.slot);
            }
            if !begun {
                continue;
            }
            if self.rule.slips() == Slips::StayOnTrack && first < end {
                for place in bad.on(at).iter().filter(|place| !bad.is_moved(**place)) {
                    end += u32::from((first..end).contains(&place.slot));
                }
            }
            let count = end.saturating_sub(first);
            let slots = Slots { first, count };
            let track = Planned::new(Expected { home: at, slots }, lbn, bad);
            lbn = track.end();
            plan.push(track);
        }
        plan
    }

    /// The positions of a region that are for LBNs.
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
