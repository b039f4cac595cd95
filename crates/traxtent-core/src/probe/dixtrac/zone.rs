//! A zone as DIXtrac's expertise describes it, and the tracks that follow from it.

use std::collections::BTreeSet;
use std::ops::Range;

use super::super::ask::{Home, home};
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

/// A track as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Planned {
    pub(super) start: u64,
    pub(super) sectors: u64,
    pub(super) home: Home,
    /// How many of its first LBNs are kept elsewhere.
    pub(super) lead: u64,
    /// The slot of the first LBN that is not.
    pub(super) slot: u32,
    /// How many of its last LBNs are kept elsewhere.
    pub(super) trail: u64,
    /// Its bad slots, each run with the LBN that should be behind it, if one is on this track.
    pub(super) runs: Vec<(Range<u32>, Option<u64>)>,
}

impl Planned {
    pub(super) fn end(&self) -> u64 {
        self.start + self.sectors
    }

    pub(super) fn place(&self, slot: u32) -> Place {
        let (cylinder, surface) = self.home;
        Place {
            cylinder,
            surface,
            slot,
        }
    }
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
    /// except the `kept` ones, whose LBN is elsewhere.
    pub(super) fn plan(&self, from: From, list: &[Place], kept: &BTreeSet<Place>) -> Vec<Planned> {
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
            let displaces = bad_on(at, list).iter().filter(|bad| !kept.contains(bad));
            let inside = displaces.filter(|bad| u64::from(bad.slot) < slots);
            slipped.extend(inside.map(|bad| track as u64 * slots + u64::from(bad.slot)));
        }
        let data = self.data(homes.len() as u64 * slots, &slipped);
        let mut lbn = from.lbn;
        let mut plan = Vec::new();
        let mut begun = from.inside.is_none();
        for (track, &at) in homes.iter().enumerate() {
            let begin = track as u64 * slots;
            let mut first = data.start.saturating_sub(begin).min(slots) as u32;
            let end = data.end.saturating_sub(begin).min(slots) as u32;
            if let Some(place) = from.inside.filter(|place| home(*place) == at) {
                begun = true;
                first = first.max(place.slot);
            }
            if begun {
                let track = self.track(at, first..end, lbn, list, kept);
                lbn = track.end();
                plan.push(track);
            }
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

    /// A track of which some slots are for LBNs.
    fn track(
        &self,
        at: Home,
        mut slots: Range<u32>,
        start: u64,
        list: &[Place],
        kept: &BTreeSet<Place>,
    ) -> Planned {
        let bad = bad_on(at, list);
        if self.rule.slips() == Slips::StayOnTrack && !slots.is_empty() {
            for slipped in bad.iter().filter(|bad| !kept.contains(bad)) {
                slots.end += u32::from(slots.contains(&slipped.slot));
            }
        }
        let slots = slots.start..slots.end.max(slots.start);
        let mut planned = Planned {
            start,
            sectors: 0,
            home: at,
            lead: 0,
            slot: slots.start,
            trail: 0,
            runs: Vec::new(),
        };
        let mut next = slots.start;
        let mut held = 0;
        for bad in bad.iter().filter(|bad| slots.contains(&bad.slot)) {
            let is_kept = u64::from(kept.contains(bad));
            if bad.slot > next {
                planned.trail = 0;
            }
            held += u64::from(bad.slot - next) + is_kept;
            planned.trail += is_kept;
            next = bad.slot + 1;
            if planned.slot == bad.slot {
                (planned.lead, planned.slot) = (planned.lead + is_kept, next);
            }
            let behind = (next < slots.end).then_some(start + held);
            match planned.runs.last_mut() {
                Some((run, lbn)) if run.end == bad.slot => (run.end, *lbn) = (next, behind),
                _ => planned.runs.push((bad.slot..next, behind)),
            }
        }
        planned.sectors = held + u64::from(slots.end - next);
        if slots.end > next {
            planned.trail = 0;
        }
        planned
    }
}

/// The bad slots of a track.
pub(super) fn bad_on(at: Home, list: &[Place]) -> &[Place] {
    let (cylinder, surface) = at;
    let slot = 0;
    let first = list.partition_point(|bad| {
        *bad < Place {
            cylinder,
            surface,
            slot,
        }
    });
    let count = list[first..].partition_point(|bad| home(*bad) == at);
    &list[first..first + count]
}

/// How many bad slots some cylinders have.
pub(super) fn bad_in(cylinders: Range<u32>, list: &[Place]) -> usize {
    let before = |cylinder: u32| list.partition_point(|bad| bad.cylinder.0 < cylinder);
    before(cylinders.end).saturating_sub(before(cylinders.start))
}
