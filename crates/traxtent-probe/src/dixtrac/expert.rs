//! Step 3: locating the spares, by combining the results of several translations.

use super::super::extraction::ProbeError;
use super::super::translation::Translator;
use super::zone::{PlanStart, SparingRule, Zone};
use traxtent_model::geometry::{Place, Sparing};
use traxtent_units::Cylinder;

/// The schemes that the expertise covers, the least specific first.
///
/// Within a zone, schemes that have spares only after it give the same boundaries as none.
/// [`Sparing::None`] therefore also represents [`Sparing::TracksPerZone`],
/// [`Sparing::SectorsPerZone`], [`Sparing::SectorsPerZoneSlipToEnd`] and
/// [`Sparing::SectorsAtDriveEnd`].
pub(super) const KNOWN: [Sparing; 7] = [
    Sparing::None,
    Sparing::SectorsPerTrack,
    Sparing::SectorsPerCylinder,
    Sparing::SectorsPerCylinderSlipToEnd,
    Sparing::SectorsPerCylinderRange,
    Sparing::SectorsAtCylinderFront,
    Sparing::SectorsAtCylinderFrontSlipToEnd,
];

/// The number of cylinders at whose ends spares are sought. Ranges of cylinders that share spares
/// may be half as wide.
const SCAN_MAX: u32 = 40;

/// A side of a cylinder on which spares may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Front,
    End,
}

/// Spares found on one side of cylinders.
#[derive(Clone, Copy, Debug)]
struct Spares {
    side: Side,
    /// The first cylinder of a region.
    first_cylinder: u32,
    cylinders: u32,
    count: u64,
}

/// Returns the zones that fit the observations at the usual places of spares. `plain` is the zone
/// without spares, and `from` is the beginning of the walked tracks.
pub(super) fn candidates(
    translator: &mut Translator<'_>,
    plain: Zone,
    from: PlanStart,
) -> Result<Vec<Zone>, ProbeError> {
    let mut found = Vec::new();
    for side in [Side::Front, Side::End] {
        found.extend(look(translator, plain, from, side)?);
    }
    let mut zones = Vec::new();
    for sparing in KNOWN {
        let (side, is_range) = match sparing {
            Sparing::SectorsPerCylinder | Sparing::SectorsPerCylinderSlipToEnd => {
                (Side::End, false)
            }
            Sparing::SectorsPerCylinderRange => (Side::End, true),
            Sparing::SectorsAtCylinderFront | Sparing::SectorsAtCylinderFrontSlipToEnd => {
                (Side::Front, false)
            }
            _ => {
                zones.push(Zone {
                    rule: SparingRule {
                        sparing,
                        ..plain.rule
                    },
                    ..plain
                });
                continue;
            }
        };
        let fit = found.iter().filter(|spares| spares.side == side);
        for spares in fit.filter(|spares| (spares.cylinders > 1) == is_range) {
            let ahead = spares.first_cylinder.abs_diff(plain.first_cylinder);
            zones.push(Zone {
                first_cylinder: spares.first_cylinder,
                backward: plain.backward ^ (plain.alternates && ahead % 2 == 1),
                rule: SparingRule {
                    sparing,
                    cylinders: spares.cylinders,
                    spares: spares.count,
                },
                ..plain
            });
        }
    }
    Ok(zones)
}

/// Searches for spares on one side of the cylinders of a zone. Finds their interval in cylinders
/// and their number.
fn look(
    translator: &mut Translator<'_>,
    plain: Zone,
    from: PlanStart,
    side: Side,
) -> Result<Option<Spares>, ProbeError> {
    let most = match side {
        Side::Front => 3,
        Side::End => SCAN_MAX,
    };
    // A cylinder with defects may have used up its spares.
    let mut hits = Vec::new();
    for ahead in 0..most {
        let cylinder = plain.first_cylinder + ahead;
        if side == Side::Front && cylinder == plain.first_cylinder && from.inside.is_some() {
            // The sectors at the front of a zone may be reserved.
            continue;
        }
        if translator.bad().in_cylinders(cylinder..cylinder + 1) == 0
            && !holds(translator, plain, from, cylinder, side, 0)?
        {
            hits.push(ahead);
        }
        // If every cylinder has spares, a few are enough to show it.
        if hits.len() > 3 {
            break;
        }
    }
    let Some(&first) = hits.first() else {
        return Ok(None);
    };
    let apart = hits.windows(2).map(|pair| pair[1] - pair[0]).min();
    let cylinders = match side {
        Side::Front => 1,
        Side::End => apart.unwrap_or(first + 1),
    };
    // The region with the fewest defects is best, because few of its spares are in use.
    let region = |hit: u32| {
        let end = plain.first_cylinder + hit + 1;
        end.saturating_sub(cylinders)..end
    };
    let mut best = (usize::MAX, first);
    for &hit in &hits {
        best = best.min((translator.bad().in_cylinders(region(hit)), hit));
    }
    let last = plain.first_cylinder + best.1;
    let most = u64::from(plain.slots) * u64::from(plain.surfaces);
    let (mut empty, mut step) = (0, 1);
    let full = loop {
        let next = (empty + step).min(most);
        if next == most || holds(translator, plain, from, last, side, next)? {
            break next;
        }
        (empty, step) = (next, 2 * step);
    };
    let mut full = full;
    while full - empty > 1 {
        let middle = empty + (full - empty) / 2;
        if holds(translator, plain, from, last, side, middle)? {
            full = middle;
        } else {
            empty = middle;
        }
    }
    let end = plain.first_cylinder + first + 1;
    let spares = end.checked_sub(cylinders).map(|first_cylinder| Spares {
        side,
        first_cylinder,
        cylinders,
        count: full,
    });
    Ok(spares.filter(|spares| spares.count < most))
}

/// Returns whether the slot `inward` slots from one side of a cylinder holds an LBN that belongs
/// there.
fn holds(
    translator: &mut Translator<'_>,
    zone: Zone,
    from: PlanStart,
    cylinder: u32,
    side: Side,
    inward: u64,
) -> Result<bool, ProbeError> {
    let (slots, surfaces) = (u64::from(zone.slots), u64::from(zone.surfaces));
    let position = match side {
        Side::Front => inward,
        Side::End => slots * surfaces - 1 - inward,
    };
    let surface = zone.surface(cylinder, (position / slots) as u16);
    let place = Place {
        cylinder: Cylinder(cylinder),
        surface,
        slot: (position % slots) as u32,
    };
    // The spares may hold LBNs from other places.
    let most = u64::from(cylinder - zone.first_cylinder + 1) * slots * surfaces;
    let near = from.lbn..from.lbn + most;
    Ok(translator
        .lbn_at(place)?
        .is_some_and(|lbn| near.contains(&lbn)))
}
