//! The check that no two tracks of a description overlap.

use std::collections::{BTreeMap, BTreeSet};

use super::error::{GeometryError, check};
use super::shape::Shape;
use super::spec::{GeometrySpec, TreeSpec};
use super::tree::{NodeId, ShapeId, Tree};

/// The maximum number of parts, summed over the tracks that are listed in more than one.
const PARTS_MAX: usize = 1 << 20;

/// Checks zones against each other.
pub(super) fn check_zones(spec: &GeometrySpec) -> Result<(), GeometryError> {
    let mut order: Vec<usize> = (0..spec.zones.len()).collect();
    order.sort_by_key(|&i| spec.zones[i].first_cylinder);
    // For each surface, the zone that reaches furthest inward.
    let mut reach: Vec<Option<usize>> = vec![None; spec.surfaces.into()];
    for i in order {
        let zone = &spec.zones[i];
        let surfaces = match zone.surface {
            Some(surface) => {
                check(
                    &format!("zone {i}"),
                    "surface",
                    surface,
                    0..=spec.surfaces - 1,
                )?;
                surface.into()..usize::from(surface) + 1
            }
            None => 0..spec.surfaces.into(),
        };
        for other in &mut reach[surfaces] {
            if let Some(o) = *other
                && spec.zones[o].last_cylinder >= zone.first_cylinder
            {
                let problem = format!("overlaps zone {o} at cylinder {}", zone.first_cylinder);
                return Err(GeometryError::inconsistent(format!("zone {i}"), problem));
            }
            *other = Some(i);
        }
    }
    Ok(())
}

/// Checks the track patterns of a tree and adds them as shapes.
pub(super) fn check_tracks(
    spec: &TreeSpec,
    tree: &mut Tree,
    slots_max: u32,
) -> Result<Vec<ShapeId>, GeometryError> {
    let mut shapes = Vec::new();
    for (number, track) in spec.tracks.iter().enumerate() {
        let name = format!("track {number}");
        check(&name, "slots", track.slots, 1..=slots_max)?;
        check(&name, "first_slot", track.first_slot, 0..=track.slots - 1)?;
        check(
            &name,
            "sectors",
            track.sectors,
            1..=track.slots - track.first_slot,
        )?;
        shapes.push(tree.add_shape(Shape::plain(track.slots, track.first_slot, track.sectors)));
    }
    Ok(shapes)
}

/// Checks that all tracks of a tree are on the drive, and that no slot is listed twice unless LBNs
/// may share places.
pub(super) fn check_tree(
    spec: &GeometrySpec,
    tree: &Tree,
    root: NodeId,
) -> Result<(), GeometryError> {
    let extent = tree.node(root).extent;
    for cylinder in [extent.cylinders.0, extent.cylinders.1] {
        check(
            "tree",
            "cylinder",
            i64::from(cylinder),
            0..=i64::from(spec.cylinders) - 1,
        )?;
    }
    for surface in [extent.surfaces.0, extent.surfaces.1] {
        check("tree", "surface", surface, 0..=i32::from(spec.surfaces) - 1)?;
    }
    let width = (extent.surfaces.1 - extent.surfaces.0 + 1) as usize;
    let height = (extent.cylinders.1 - extent.cylinders.0 + 1) as usize;
    let key = |cylinder: i32, surface: i32| {
        (cylinder - extent.cylinders.0) as usize * width + (surface - extent.surfaces.0) as usize
    };
    if spec.shared_places {
        return Ok(());
    }
    let too_many = || {
        let problem = format!("tracks are listed in more than {PARTS_MAX} parts");
        Err(GeometryError::inconsistent("tree", problem))
    };
    let mut seen = vec![0u64; (width * height).div_ceil(64)];
    let mut again = BTreeSet::new();
    for found in tree.walk(root) {
        let key = key(found.spot.cylinder, found.spot.surface);
        let bit = 1 << (key % 64);
        if seen[key / 64] & bit != 0 {
            again.insert(key);
            if again.len() > PARTS_MAX {
                return too_many();
            }
        }
        seen[key / 64] |= bit;
    }
    if again.is_empty() {
        return Ok(());
    }
    // A track may be listed in parts. The parts, each from a first slot to an end, must not share a
    // slot.
    let mut parts: BTreeMap<(usize, u32), u32> = BTreeMap::new();
    for found in tree.walk(root) {
        let key = key(found.spot.cylinder, found.spot.surface);
        if again.contains(&key) {
            let begin = found.shape.begin;
            let end = begin + found.shape.sectors;
            let before = parts.range((key, 0)..(key, end)).next_back();
            if before.is_some_and(|(_, &before)| begin < before) {
                let (cylinder, surface) = (found.spot.cylinder, found.spot.surface);
                let problem = format!(
                    "slots {begin}..{end} of cylinder {cylinder}, surface {surface} are listed twice"
                );
                return Err(GeometryError::inconsistent("tree", problem));
            }
            parts.insert((key, begin), end);
            if parts.len() > PARTS_MAX {
                return too_many();
            }
        }
    }
    Ok(())
}
