//! The choice of a spare for a sector that becomes bad.

use super::shape::Slot;
use super::{Geometry, Occupant, Place};
use traxtent_units::{Cylinder, Lbn, Surface};

/// The number of tracks on either side that are searched for spares. It bounds the search's time.
const TRACKS_AROUND: u64 = 1 << 18;

impl Geometry {
    /// Returns the nearest run of `sectors` empty sectors on one track: on the cylinder of `lbn` if
    /// that has such a run, otherwise on the nearest cylinder that has one. Returns `None` if there
    /// is none within a quarter of a million tracks, or if `lbn` is beyond the drive's end.
    pub fn nearest_spare(&self, lbn: Lbn, sectors: u32) -> Option<Place> {
        let home = self.locate(lbn)?;
        let ranges = self.cylinders_with_room();
        let may_have_room = |cylinder: &u32| {
            let begun = ranges.partition_point(|range| range.0 <= *cylinder as i32);
            begun > 0 && *cylinder as i32 <= ranges[begun - 1].1
        };
        let last = self.cylinders - 1;
        let reach = TRACKS_AROUND / u64::from(self.surfaces);
        let farthest = home.cylinder.0.max(last - home.cylinder.0);
        for distance in 0..=farthest.min(reach.min(u64::from(u32::MAX)) as u32) {
            let outward = home.cylinder.0.checked_sub(distance);
            let inward = home.cylinder.0.checked_add(distance).filter(|c| *c <= last);
            for cylinder in [outward, inward.filter(|_| distance > 0)]
                .into_iter()
                .flatten()
                .filter(may_have_room)
            {
                for turn in 0..self.surfaces {
                    let surface =
                        (u32::from(home.surface.0) + u32::from(turn)) % u32::from(self.surfaces);
                    let found = self.spare_on(Cylinder(cylinder), Surface(surface as u16), sectors);
                    if found.is_some() {
                        return found;
                    }
                }
            }
        }
        None
    }

    /// Returns the ranges of cylinders that may have empty sectors, ascending and disjoint. A range
    /// includes both ends. On most drives, these are few cylinders, and a search of all would take
    /// long.
    fn cylinders_with_room(&self) -> Vec<(i32, i32)> {
        let mut ranges = self.tree.cylinders_with(self.root, &|shape| {
            let bad = shape.bad(&self.tree.gaps).map(|(_, bad)| bad);
            shape.sectors + bad.sum::<u32>() < shape.slots
        });
        ranges.extend(self.tree.cylinders_with(self.blanks, &|_| true));
        ranges.sort_unstable();
        ranges.dedup_by(|next, range| {
            let overlaps = next.0 <= range.1;
            if overlaps {
                range.1 = range.1.max(next.1);
            }
            overlaps
        });
        ranges
    }

    /// Returns the first run of `sectors` empty sectors on a track.
    fn spare_on(&self, cylinder: Cylinder, surface: Surface, sectors: u32) -> Option<Place> {
        let slots = self.slots_with_room(cylinder, surface)?;
        let mut run = 0;
        for slot in 0..slots {
            let place = Place {
                cylinder,
                surface,
                slot,
            };
            run = if self.lbn_at(place) == Occupant::Empty {
                run + 1
            } else {
                0
            };
            if run == sectors {
                return Some(Place {
                    slot: slot + 1 - sectors,
                    ..place
                });
            }
        }
        None
    }

    /// Returns the number of slots of a track, or `None` if there is no such track, or if LBNs and
    /// bad sectors fill it.
    fn slots_with_room(&self, cylinder: Cylinder, surface: Surface) -> Option<u32> {
        let (slots, _) = self.track_circumference(cylinder, surface)?;
        let mut taken = 0;
        let at = i32::try_from(cylinder.0).ok()?;
        self.tree
            .at_place(self.root, at, surface.0.into(), &mut |found| {
                taken += found.shape.sectors;
                if found.shape.sectors < slots {
                    let bad = found.shape.bad(&self.tree.gaps).map(|(_, bad)| bad);
                    taken += bad.sum::<u32>();
                }
                None::<Slot>
            });
        (taken < slots).then_some(slots)
    }
}

#[cfg(test)]
mod tests {
    use super::Geometry;
    use crate::profile::builtin;

    /// Does the search look only at the few cylinders that may have empty sectors? On the first
    /// drive, the last tracks have room; on the second, its last zone.
    #[test]
    fn full_cylinders_are_passed_over() {
        for name in ["generic-20tb", "maxtor10k5"] {
            let geometry = Geometry::build(&builtin(name).unwrap().geometry).unwrap();
            let ranges = geometry.cylinders_with_room();
            let searched: i32 = ranges.iter().map(|(from, to)| to + 1 - from).sum();
            let all = geometry.cylinders();
            assert!(
                searched > 0 && searched as u32 <= all / 50,
                "{name}: {searched} of {all}: {ranges:?}"
            );
        }
    }
}
