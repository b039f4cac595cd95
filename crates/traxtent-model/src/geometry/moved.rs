//! LBNs that are kept at a place other than their regular one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::error::{GeometryError, check};
use super::limits::SLOTS_MAX;
use super::spec::GeometrySpec;
use super::{Geometry, Moved, Occupant, Place};
use traxtent_units::{Angle, Cylinder, Surface};

/// The maximum number of LBNs that a description may list as moved.
const MOVED_MAX: u64 = 1 << 18;

/// A remap of a zone: the place of the bad sector, and that of its replacement.
pub(super) struct Remap {
    pub(super) zone: usize,
    pub(super) from: Place,
    pub(super) to: Place,
}

/// The entry of the description that moves an LBN.
#[derive(Clone, Copy)]
enum Cause {
    Zone(usize),
    Moved(usize),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Zone(number) => write!(f, "zone {number}: remaps"),
            Cause::Moved(number) => write!(f, "moved {number}"),
        }
    }
}

struct PlacedLbn {
    cause: Cause,
    place: Place,
    /// The number of slots of the track, for a place that is not part of the layout.
    slots: Option<u32>,
}

/// Returns all moved LBNs, ascending.
pub(super) fn collect(
    spec: &GeometrySpec,
    geometry: &Geometry,
    remaps: &[Remap],
) -> Result<Vec<Moved>, GeometryError> {
    let mut wanted = BTreeMap::new();
    for remap in remaps {
        if let Occupant::Lbn(lbn) = geometry.lbn_at(remap.from) {
            let cause = Cause::Zone(remap.zone);
            wanted.entry(lbn.0).or_insert(PlacedLbn {
                cause,
                place: remap.to,
                slots: None,
            });
        }
    }
    add_listed(spec, geometry, &mut wanted)?;
    let mut out = Vec::with_capacity(wanted.len());
    let mut taken = BTreeSet::new();
    for (
        &lbn,
        &PlacedLbn {
            cause,
            place,
            slots,
        },
    ) in &wanted
    {
        let free = match geometry.lbn_at(place) {
            Occupant::Empty => true,
            // An LBN that has itself been moved leaves its place free.
            Occupant::Lbn(other) => wanted.contains_key(&other.0),
            Occupant::NoSuchPlace => slots.is_some(),
            Occupant::Bad => false,
        };
        if !spec.shared_places && (!free || !taken.insert(place)) {
            let problem = format!("{place} is not free for LBN {lbn}");
            return Err(GeometryError::inconsistent(cause.to_string(), problem));
        }
        let circle = geometry.track_circumference(place.cylinder, place.surface);
        let Some((slots, origin)) = circle.or(slots.map(|slots| (slots, Angle::ZERO))) else {
            let problem = format!("{place}, the place of LBN {lbn}, is not on any track");
            return Err(GeometryError::inconsistent(cause.to_string(), problem));
        };
        let name = cause.to_string();
        check(&name, "cylinder", place.cylinder.0, 0..=spec.cylinders - 1)?;
        check(&name, "surface", place.surface.0, 0..=spec.surfaces - 1)?;
        check(&name, "slots", slots, 1..=SLOTS_MAX)?;
        check(&name, "slot", place.slot, 0..=slots - 1)?;
        out.push(Moved {
            lbn,
            place,
            slots,
            origin,
        });
    }
    Ok(out)
}

/// Adds the LBNs that the description lists as moved.
fn add_listed(
    spec: &GeometrySpec,
    geometry: &Geometry,
    wanted: &mut BTreeMap<u64, PlacedLbn>,
) -> Result<(), GeometryError> {
    let mut count = 0;
    for (number, moved) in spec.moved.iter().enumerate() {
        let cause = Cause::Moved(number);
        let name = cause.to_string();
        check(&name, "lbn", moved.lbn, 0..=geometry.capacity - 1)?;
        let sectors = u64::from(moved.sectors);
        check(&name, "sectors", sectors, 1..=geometry.capacity - moved.lbn)?;
        count += sectors;
        check(&name, "total sectors", count, 0..=MOVED_MAX)?;
        for i in 0..moved.sectors {
            let place = Place {
                cylinder: Cylinder(moved.cylinder),
                surface: Surface(moved.surface),
                slot: moved.slot.saturating_add(i),
            };
            let lbn = moved.lbn + u64::from(i);
            let entry = PlacedLbn {
                cause,
                place,
                slots: moved.slots,
            };
            if wanted.insert(lbn, entry).is_some() && !spec.shared_places {
                return Err(GeometryError::inconsistent(
                    name,
                    format!("LBN {lbn} is moved twice"),
                ));
            }
        }
    }
    Ok(())
}
