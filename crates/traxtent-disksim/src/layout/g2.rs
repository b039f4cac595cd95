//! Layout g2: a map file, made by translating a drive's addresses, lists every extent.
//!
//! The map's defects are not imported, because its extents already exclude them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::rc::Rc;

use super::{DiskSize, ImportedLayout, in_revolutions};
use crate::params::{Block, ParamError, Sources};
use traxtent_model::geometry::{BranchSpec, Child, GeometrySpec, TrackSpec, TreeSpec};
use traxtent_units::Count;

/// Consecutive LBNs on one track.
#[derive(Clone, Copy)]
struct Extent {
    lbn: u64,
    cylinder: u32,
    head: u16,
    sector: u32,
    sectors: u32,
    line: u32,
}

/// A zone, which determines the sectors and skews of its tracks.
struct Zone {
    /// The first and the last cylinder.
    cylinders: (u32, u32),
    slots: u32,
    zone_skew_turns: f64,
    cylinder_skew_turns: f64,
    head_skew_turns: f64,
}

pub(super) fn layout(
    layout: &Block,
    disk: &DiskSize,
    sources: &Sources<'_>,
) -> Result<ImportedLayout, ParamError> {
    let name = layout.require("Layout Map File")?;
    let path = layout.path(name.str()?);
    let text = sources(&path).map_err(|why| name.error(format!("{path}: {why}")))?;
    let zones = zones(layout)?;
    let extents = extents(&path, &text)?;
    let at_line = |line, problem| ParamError {
        file: path.clone(),
        line,
        problem,
    };
    let angles = angles(&extents, &zones);
    let mut tree = TreeSpec::default();
    let mut patterns: BTreeMap<TrackSpec, u32> = BTreeMap::new();
    let mut branches = Vec::with_capacity(extents.len());
    let mut next = 0;
    for (extent, angle) in extents.iter().zip(angles) {
        if extent.lbn != next {
            return Err(at_line(
                extent.line,
                format!("expected LBN {next}, found LBN {}", extent.lbn),
            ));
        }
        next += u64::from(extent.sectors);
        let (Some(zone), Some(angle)) = (zone_of(&zones, extent.cylinder), angle) else {
            let problem = format!("cylinder {} is in no zone", extent.cylinder);
            return Err(at_line(extent.line, problem));
        };
        let pattern = TrackSpec {
            slots: zone.slots,
            first_slot: extent.sector,
            sectors: extent.sectors,
        };
        let track = *patterns.entry(pattern).or_insert_with(|| {
            tree.tracks.push(pattern);
            tree.tracks.len() as u32 - 1
        });
        branches.push(BranchSpec {
            cylinder: extent.cylinder as i32,
            surface: extent.head.into(),
            angle_turns: angle,
            ..BranchSpec::once(Child::Track(track))
        });
    }
    tree.nodes.push(branches);
    let mut notes = Vec::new();
    if disk.blocks > next {
        notes.push(format!(
            "the map holds {}, fewer than Block count, which is {}",
            Count(next, "block"),
            disk.blocks
        ));
    }
    let innermost = extents.iter().map(|e| e.cylinder).max().unwrap_or(0);
    Ok(ImportedLayout {
        spec: GeometrySpec {
            surfaces: disk.surfaces,
            cylinders: disk.cylinders.max(innermost + 1),
            capacity_sectors: Some(disk.blocks.min(next)),
            tree: Some(tree),
            ..GeometrySpec::default()
        },
        notes,
    })
}

fn zones(layout: &Block) -> Result<Vec<Zone>, ParamError> {
    layout
        .require_list("Zones")?
        .iter()
        .map(|node| zone(node.block()?))
        .collect()
}

fn zone(block: &Rc<Block>) -> Result<Zone, ParamError> {
    let slots = block.require_bounded("Blocks per track", 1u32, 1_000_000)?;
    let revolutions = in_revolutions(block, false)?;
    let turns = |key: &str| {
        let value = block.get_f64(key)?.unwrap_or(0.0);
        Ok(if revolutions {
            value
        } else {
            value.trunc() / f64::from(slots)
        })
    };
    // The extents come from the map, so these are not needed.
    block.get("First LBN");
    block.get("Last LBN");
    Ok(Zone {
        cylinders: (
            block.require_bounded("First cylinder number", 0u32, (1 << 24) - 1)?,
            block.require_bounded("Last cylinder number", 0u32, (1 << 24) - 1)?,
        ),
        slots,
        zone_skew_turns: turns("Zone Skew")?,
        cylinder_skew_turns: turns("Skew for cylinder switch")?,
        head_skew_turns: turns("Skew for track switch")?,
    })
}

fn zone_of(zones: &[Zone], cylinder: u32) -> Option<&Zone> {
    zones
        .iter()
        .find(|zone| (zone.cylinders.0..=zone.cylinders.1).contains(&cylinder))
}

/// Parses the map: two lines of remarks, one of sizes, then one line per extent, up to a line that
/// begins with "Defect".
fn extents(path: &str, text: &[u8]) -> Result<Vec<Extent>, ParamError> {
    let text = String::from_utf8_lossy(text);
    let mut out = Vec::new();
    for (line, row) in (1..).zip(text.lines()).skip(3) {
        let row = row.trim();
        if row.starts_with("Defect") {
            break;
        }
        if row.is_empty() {
            continue;
        }
        let extent = extent(row, line).ok_or_else(|| ParamError {
            file: path.to_string(),
            line,
            problem: "expected \"lbn N --> cyl N, head N, sect N, seqcnt N\"".to_string(),
        })?;
        out.push(extent);
    }
    Ok(out)
}

fn extent(row: &str, line: u32) -> Option<Extent> {
    let mut words = row.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    let mut keyed = |key: &str| (words.next()? == key).then(|| words.next())?;
    let lbn = keyed("lbn")?.parse().ok()?;
    let cylinder = (keyed("-->")? == "cyl").then(|| words.next())??;
    let mut keyed = |key: &str| (words.next()? == key).then(|| words.next())?;
    let head = keyed("head")?.parse().ok()?;
    let sector = keyed("sect")?.parse().ok()?;
    let kind = words.next()?;
    let count: u32 = words.next()?.parse().ok()?;
    // A "sequential count" does not include the first sector.
    let sectors = if kind == "seqcnt" {
        count.checked_add(1)?
    } else {
        count
    };
    let cylinder = cylinder.parse().ok().filter(|&c: &u32| c < 1 << 24)?;
    (sectors > 0).then_some(Extent {
        lbn,
        cylinder,
        head,
        sector,
        sectors,
        line,
    })
}

/// Returns the angle of each extent's slot 0 in turns, computed as in DiskSim; `None` if its
/// cylinder is in no zone.
///
/// A cylinder's skew is that of the previous cylinder, plus one step for each change of head or
/// cylinder on the way to it. The sum starts again from zero at the second cylinder of each zone.
/// The angle adds the steps from the cylinder's first extent to the first extent of the track.
fn angles(extents: &[Extent], zones: &[Zone]) -> Vec<Option<f64>> {
    // Cylinder 0 counts as visited, so its zone's own skew does not apply to it.
    let mut first_of = BTreeMap::from([(0, 0)]);
    let mut skew_of: BTreeMap<u32, f64> = BTreeMap::new();
    let mut zone = 0;
    for (i, extent) in extents.iter().enumerate() {
        let cylinder = extent.cylinder;
        if let Entry::Vacant(vacant) = first_of.entry(cylinder) {
            vacant.insert(i);
            if zone + 1 < zones.len() && zones[zone].cylinders.1 < cylinder {
                zone += 1;
            }
            if zones.get(zone).is_some_and(|z| z.cylinders.0 == cylinder) {
                skew_of.insert(cylinder, zones[zone].zone_skew_turns);
            } else {
                let own = skew_of.get(&cylinder).copied().unwrap_or(0.0);
                skew_of.insert(cylinder + 1, own);
            }
        }
        let Some(z) = zones.get(zone) else { continue };
        let next = extents.get(i + 1).map_or((0, 0), |e| (e.cylinder, e.head));
        if next.0 != cylinder {
            *skew_of.entry(cylinder + 1).or_default() += z.cylinder_skew_turns;
        } else if next.1 != extent.head {
            *skew_of.entry(cylinder + 1).or_default() += z.head_skew_turns;
        }
    }
    // The numbers of changes of cylinder and of head before each extent, and the first extent of
    // each track.
    let mut changes = Vec::with_capacity(extents.len());
    let (mut cylinders, mut heads) = (0u32, 0u32);
    let mut first_on_track: BTreeMap<(u32, u16), usize> = BTreeMap::new();
    for (i, extent) in extents.iter().enumerate() {
        if let Some(before) = i.checked_sub(1).map(|i| extents[i]) {
            cylinders += u32::from(before.cylinder != extent.cylinder);
            heads += u32::from(before.head != extent.head);
        }
        changes.push((cylinders, heads));
        first_on_track
            .entry((extent.cylinder, extent.head))
            .or_insert(i);
    }
    let angle = |extent: &Extent| {
        let zone = zone_of(zones, extent.cylinder)?;
        let from = changes[first_of[&extent.cylinder]];
        let to = changes[first_on_track[&(extent.cylinder, extent.head)]];
        let skew = skew_of.get(&extent.cylinder).copied().unwrap_or(0.0);
        let cylinders = f64::from(to.0 - from.0) * zone.cylinder_skew_turns;
        Some(skew + cylinders + f64::from(to.1 - from.1) * zone.head_skew_turns)
    };
    extents.iter().map(angle).collect()
}
