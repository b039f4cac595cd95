//! Random defects: slipped sectors, runs and tracks, tracks cut in two, remapped sectors and
//! tracks; and a truncated end of the drive.

use std::collections::{BTreeMap, BTreeSet};

use traxtent_model::geometry::{
    Geometry, GeometryError, GeometrySpec, MovedSpec, Occupant, PerSurface, Place, SlipSpec,
    Sparing, Track,
};
use traxtent_units::{Cylinder, Lbn, Surface};

use super::dice::SeededRng;

/// A track of a drive without defects and spares.
#[derive(Clone, Copy)]
struct PlainTrack {
    /// The position of its first sector, counted from the beginning of its zone.
    position: u64,
    slots: u32,
}

/// The tracks of each zone as if every sector held an LBN. A tree counts as one zone.
fn plain_tracks(spec: &GeometrySpec) -> Result<Vec<Vec<PlainTrack>>, GeometryError> {
    let mut plain = GeometrySpec {
        sparing: Sparing::None,
        sparing_range_cylinders: None,
        ..spec.clone()
    };
    for zone in &mut plain.zones {
        zone.reserved_sectors = 0;
        zone.spares = 0;
    }
    let geometry = Geometry::build(&plain)?;
    let starts: Vec<u64> = match &plain.tree {
        Some(_) => vec![0],
        None => geometry.zones().iter().map(|z| z.first_lbn.0).collect(),
    };
    let mut zones = vec![Vec::new(); starts.len()];
    for track in geometry.tracks() {
        let zone = starts.partition_point(|&start| start <= track.first_lbn.0) - 1;
        zones[zone].push(PlainTrack {
            position: track.first_lbn.0 - starts[zone],
            slots: track.sectors,
        });
    }
    Ok(zones)
}

/// Adds slips to a description that has none. Sectors slip in multiples of `ratio`. If spares are
/// whole tracks, tracks slip, and one per zone may be remapped.
pub(super) fn slip(
    dice: &mut SeededRng,
    spec: &mut GeometrySpec,
    ratio: u32,
) -> Result<(), GeometryError> {
    let zones = plain_tracks(spec)?;
    for (number, tracks) in zones.iter().enumerate() {
        let by_track = spec.sparing == Sparing::TracksPerZone && spec.tree.is_none();
        if by_track {
            slip_tracks(dice, spec, number, tracks);
            continue;
        }
        let mut budget = SpareBudget::new(spec, number, tracks);
        let mut bad = BTreeSet::new();
        let events = dice.of_ranges(&[0..1, 1..4, 3..12]);
        for _ in 0..events {
            let event = draw_defect(dice, tracks, ratio);
            if event.iter().all(|at| !bad.contains(at)) && budget.take(&event) {
                bad.extend(event);
            }
        }
        match &mut spec.tree {
            Some(tree) => tree.slips = runs(&bad),
            None => spec.zones[number].slips = bad.into_iter().collect(),
        }
    }
    Ok(())
}

/// Slips whole tracks of a zone, and remaps at most one other to the zone's last track.
fn slip_tracks(
    dice: &mut SeededRng,
    spec: &mut GeometrySpec,
    number: usize,
    tracks: &[PlainTrack],
) {
    let zone = &mut spec.zones[number];
    let count = tracks.len() as u64;
    let mut left = u64::from(zone.spares);
    let mut slips = BTreeSet::new();
    while left > 0 && dice.chance(0.5) {
        slips.insert(dice.pick(0..count - u64::from(zone.spares)));
        left -= 1;
    }
    let alike = matches!(zone.sectors_per_track, PerSurface::Same(_));
    if left > 0 && alike && dice.chance(0.4) {
        let from = dice.pick(0..count - u64::from(zone.spares));
        if !slips.contains(&from) {
            zone.remaps.push((from, count - 1));
        }
    }
    zone.slips = slips.into_iter().collect();
}

/// Draws positions that fail together, ascending.
fn draw_defect(dice: &mut SeededRng, tracks: &[PlainTrack], ratio: u32) -> Vec<u64> {
    let last = tracks.len() as u64 - 1;
    let index = match dice.pick(0..8) {
        0 => 0,
        1 => last,
        _ => dice.pick(0..last + 1),
    } as usize;
    let PlainTrack { position, slots } = tracks[index];
    let physical = slots / ratio;
    let sectors = |from: u32, to: u32| {
        (u64::from(from * ratio)..u64::from(to * ratio)).map(move |k| position + k)
    };
    match dice.pick(0..8) {
        // One sector, often the first or the last of its track.
        0 | 1 => {
            let at = match dice.pick(0..4) {
                0 => 0,
                1 => physical - 1,
                _ => dice.pick32(0..physical),
            };
            sectors(at, at + 1).collect()
        }
        // Several consecutive sectors.
        2 | 3 => {
            let count = dice.pick32(2..3 + physical / 6);
            let from = dice.pick32(0..physical - count + 1);
            sectors(from, from + count).collect()
        }
        // A few separate sectors.
        4 => {
            let some: BTreeSet<u32> = (0..dice.pick(2..6))
                .map(|_| dice.pick32(0..physical))
                .collect();
            some.into_iter()
                .flat_map(|at| sectors(at, at + 1))
                .collect()
        }
        // Whole tracks.
        5 => {
            let end = (index + dice.pick(1..4) as usize).min(tracks.len());
            let end = tracks[end - 1].position + u64::from(tracks[end - 1].slots);
            (position..end).collect()
        }
        // All but a few consecutive sectors.
        6 => {
            let keep = dice.pick32(2..3 + physical / 11);
            let from = match dice.pick(0..3) {
                0 => 0,
                1 => physical - keep,
                _ => dice.pick32(0..physical - keep + 1),
            };
            sectors(0, from)
                .chain(sectors(from + keep, physical))
                .collect()
        }
        // A track with only its first six sectors; the next track lacks its first six.
        _ => {
            let cut = sectors(6, physical);
            match tracks.get(index + 1) {
                Some(next) => {
                    let after = next.position..next.position + u64::from(6 * ratio);
                    cut.chain(after).collect()
                }
                None => cut.collect(),
            }
        }
    }
}

/// Combines consecutive positions into runs.
fn runs(bad: &BTreeSet<u64>) -> Vec<SlipSpec> {
    let mut runs: Vec<SlipSpec> = Vec::new();
    for &at in bad {
        match runs.last_mut() {
            Some(run) if run.position + u64::from(run.sectors) == at => run.sectors += 1,
            _ => runs.push(SlipSpec {
                position: at,
                sectors: 1,
            }),
        }
    }
    runs
}

/// The number of sectors that can still slip in each sparing region.
struct SpareBudget {
    /// The position at which each region begins, and the spares it has left; `None` if slips
    /// shorten the zone.
    regions: Option<Vec<(u64, u64)>>,
}

impl SpareBudget {
    fn new(spec: &GeometrySpec, number: usize, tracks: &[PlainTrack]) -> SpareBudget {
        if spec.tree.is_some() || spec.sparing.slips_to_end() {
            return SpareBudget { regions: None };
        }
        let zone = &spec.zones[number];
        let per_cylinder = match zone.surface {
            Some(_) => 1,
            None => usize::from(spec.surfaces),
        };
        let size = match spec.sparing {
            Sparing::SectorsPerTrack => 1,
            Sparing::SectorsPerZone => tracks.len(),
            Sparing::SectorsPerCylinderRange => {
                per_cylinder * spec.sparing_range_cylinders.unwrap_or(1) as usize
            }
            _ => per_cylinder,
        };
        // A shorter region at the end has no spares.
        let each = tracks.chunks(size).map(|region| {
            let whole = region.len() == size;
            (
                region[0].position,
                if whole { zone.spares.into() } else { 0 },
            )
        });
        SpareBudget {
            regions: Some(each.collect()),
        }
    }

    /// Takes a spare for each position, or none if there are too few. Returns whether there were
    /// enough.
    fn take(&mut self, positions: &[u64]) -> bool {
        let Some(regions) = &mut self.regions else {
            return true;
        };
        let mut wanted: BTreeMap<usize, u64> = BTreeMap::new();
        for &at in positions {
            let region = regions.partition_point(|&(first, _)| first <= at) - 1;
            *wanted.entry(region).or_default() += 1;
        }
        if wanted
            .iter()
            .any(|(&region, &count)| regions[region].1 < count)
        {
            return false;
        }
        for (region, count) in wanted {
            regions[region].1 -= count;
        }
        true
    }
}

/// Truncates the drive: always if the spares are at its end, often if it has no spares, rarely
/// otherwise. In the first two cases, remapped sectors have no other free place.
pub(super) fn cut(
    dice: &mut SeededRng,
    spec: &mut GeometrySpec,
    ratio: u32,
) -> Result<(), GeometryError> {
    let probability = match spec.sparing {
        Sparing::SectorsAtDriveEnd => 1.0,
        Sparing::None => 0.6,
        _ => 0.1,
    };
    let (cuts, sectors) = (dice.chance(probability), dice.pick(1..2_000));
    if cuts {
        let capacity = Geometry::build(spec)?.capacity().0;
        spec.capacity_sectors = Some(capacity - sectors.min(capacity / 4) * u64::from(ratio));
    }
    Ok(())
}

/// Remaps some physical sectors, often the first or the last of a track, to free places.
pub(super) fn remap(
    dice: &mut SeededRng,
    spec: &mut GeometrySpec,
    ratio: u32,
) -> Result<(), GeometryError> {
    let geometry = Geometry::build(spec)?;
    let mut free = free_places(spec, &geometry, ratio);
    let mut used: Vec<u64> = Vec::new();
    for _ in 0..dice.of_ranges(&[0..1, 1..4, 2..12]) {
        // Not the first track, where numbering can begin within a physical sector, nor the last,
        // which can be truncated.
        let count = geometry.track_count();
        let Some(track) = geometry.track(1 + dice.pick(0..(count - 2).max(1))) else {
            continue;
        };
        let physical = track.sectors / ratio;
        let k = match dice.pick(0..4) {
            0 => 0,
            1 => physical.saturating_sub(1),
            _ => dice.pick32(0..physical.max(1)),
        };
        let lbn = track.first_lbn.0 + u64::from(k * ratio);
        let apart = used
            .iter()
            .all(|other| other.abs_diff(lbn) > 3 * u64::from(ratio));
        let whole = together(&geometry, lbn, ratio);
        if free.is_empty() || track.sectors < track.slots / 2 || !apart || !whole {
            continue;
        }
        let near = |place: &Place| place.cylinder.0.abs_diff(track.cylinder.0);
        let nearest = (0..free.len()).min_by_key(|&i| near(&free[i])).unwrap_or(0);
        let anywhere = dice.pick(0..free.len() as u64) as usize;
        let place = free.swap_remove(if dice.chance(0.7) { nearest } else { anywhere });
        if neighbour_track(&geometry, &track, k, physical).is_some_and(|other| other == on(&place))
        {
            continue;
        }
        used.push(lbn);
        spec.moved.push(MovedSpec {
            lbn,
            sectors: ratio,
            cylinder: place.cylinder.0,
            surface: place.surface.0,
            slot: place.slot,
            slots: None,
        });
    }
    spec.moved.sort_by_key(|moved| moved.lbn);
    Ok(())
}

/// Returns the cylinder and surface of the track next to physical sector `k`, if `k` is the first
/// or last of its track. A sector remapped to that track would appear to belong there, even in
/// translations.
fn neighbour_track(
    geometry: &Geometry,
    track: &Track,
    k: u32,
    physical: u32,
) -> Option<(Cylinder, Surface)> {
    let index = match k {
        0 => track.index.checked_sub(1)?,
        _ if k + 1 == physical => track.index + 1,
        _ => return None,
    };
    let other = geometry.track(index)?;
    Some((other.cylinder, other.surface))
}

fn on(place: &Place) -> (Cylinder, Surface) {
    (place.cylinder, place.surface)
}

/// Returns whether the `ratio` LBNs from `lbn` are one physical sector of one track.
fn together(geometry: &Geometry, lbn: u64, ratio: u32) -> bool {
    let piece = geometry.piece(Lbn(lbn), ratio);
    piece.sectors == ratio && piece.slots == ratio && piece.first_slot.is_multiple_of(ratio)
}

/// Finds physical sectors that hold no LBN, at the beginning or the end of tracks.
fn free_places(spec: &GeometrySpec, geometry: &Geometry, ratio: u32) -> Vec<Place> {
    let mut free = Vec::new();
    let slots_of = |place: Place| {
        let there = |slot| geometry.lbn_at(Place { slot, ..place }) != Occupant::NoSuchPlace;
        // Binary search: places exist up to the track's last slot.
        let (mut has, mut lacks) = (0, 1 << 12);
        while there(0) && has + 1 < lacks {
            let middle = (has + lacks) / 2;
            if there(middle) {
                has = middle;
            } else {
                lacks = middle;
            }
        }
        there(0).then_some(has + 1)
    };
    for cylinder in 0..spec.cylinders {
        for surface in 0..spec.surfaces {
            let place = Place {
                cylinder: Cylinder(cylinder),
                surface: Surface(surface),
                slot: 0,
            };
            let Some(slots) = slots_of(place) else {
                continue;
            };
            for slot in [0, slots - ratio, slots.saturating_sub(2 * ratio)] {
                let empty = |k| {
                    let place = Place {
                        slot: slot + k,
                        ..place
                    };
                    geometry.lbn_at(place) == Occupant::Empty
                };
                if (0..ratio).all(empty) {
                    free.push(Place { slot, ..place });
                }
            }
        }
    }
    free.sort_unstable();
    free.dedup();
    free
}
