//! Layout g1: zones with one of eleven sparing schemes and one of three mappings.

mod emulate;

use std::rc::Rc;

use super::{DiskSize, ImportedLayout, in_revolutions, numbers};
use crate::params::{Block, ParamError};
use emulate::Mapping;
use traxtent_model::geometry::{
    GeometrySpec, MovedSpec, Order, PerSurface, Skew, Sparing, Start, ZoneSpec,
};
use traxtent_units::Count;

/// The schemes by DiskSim's number, as its translation handles them.
///
/// According to the manual, schemes 5 and 6 have their spares at the front of a cylinder. The
/// translation from LBN to place has them at the end, and it determines where the data is.
const SCHEMES: [Sparing; 11] = [
    Sparing::None,
    Sparing::TracksPerZone,
    Sparing::SectorsPerCylinder,
    Sparing::SectorsPerTrack,
    Sparing::SectorsPerCylinderSlipToEnd,
    Sparing::SectorsPerCylinder,
    Sparing::SectorsPerCylinderSlipToEnd,
    Sparing::SectorsAtDriveEnd,
    Sparing::SectorsPerCylinderRange,
    Sparing::SectorsPerZone,
    Sparing::SectorsPerZoneSlipToEnd,
];

const TRACK_SKEW: &str = "Skew for track switch";
const CYLINDER_SKEW: &str = "Skew for cylinder switch";

/// A zone's values from the file. Variables of this type are called `band`, the word for a zone in
/// DiskSim's code.
pub(super) struct DiskSimZone {
    pub(super) first_cylinder: u64,
    pub(super) cylinders: u64,
    pub(super) surfaces: u64,
    /// The number of slots on a track.
    pub(super) slots: u64,
    /// The number of sectors at the front that hold no LBN.
    pub(super) reserved: u64,
    /// The number of spare sectors, or spare tracks, per region.
    pub(super) spares: u64,
    /// The bad positions that are skipped.
    pub(super) slips: Vec<u64>,
    /// Other bad positions, each with its replacement.
    pub(super) defects: Vec<(u64, u64)>,
}

pub(super) fn layout(layout: &Block, disk: &DiskSize) -> Result<ImportedLayout, ParamError> {
    layout.require_keys(&["LBN-to-PBN mapping scheme", "Sparing scheme used", "Zones"])?;
    let mapping = layout.require_bounded("LBN-to-PBN mapping scheme", 0u8, 2)?;
    let scheme = layout.require_bounded("Sparing scheme used", 0u8, 10)?;
    let range = layout
        .get_bounded("Rangesize for sparing", 1u32, 1 << 24)?
        .unwrap_or(1);
    let sparing = SCHEMES[usize::from(scheme)];
    let by_range = sparing == Sparing::SectorsPerCylinderRange;
    let mut imported = ImportedLayout {
        spec: GeometrySpec {
            surfaces: disk.surfaces,
            cylinders: disk.cylinders,
            order: if mapping == 0 {
                Order::HeadFirstForward
            } else {
                Order::HeadFirstAlternating
            },
            start: if mapping == 2 {
                Start::CylinderParity
            } else {
                Start::Forward
            },
            sparing,
            sparing_range_cylinders: by_range.then_some(range),
            ..GeometrySpec::default()
        },
        notes: Vec::new(),
    };
    if matches!(scheme, 5 | 6) {
        imported.notes.push(format!(
            "sparing scheme {scheme}: DiskSim's manual keeps spares at the front of a cylinder, its LBN translation \
             at the end; the import follows the translation"
        ));
    }
    let revolutions = in_revolutions(layout, false)?;
    let mut first_lbn = 0;
    let zones = layout.require_list("Zones")?;
    if zones.is_empty() {
        return Err(layout.require("Zones")?.error("Zones is empty"));
    }
    for node in zones {
        let block = node.block()?;
        let revolutions = in_revolutions(block, revolutions)?;
        let band = band(block, disk)?;
        let map = Mapping::new(scheme, u64::from(range), &band)
            .map_err(|problem| block.error(problem))?;
        let backward = |cylinder| runs_backward(mapping, &band, cylinder);
        let zone = zone(block, &band, &map, revolutions, backward)?;
        imported.spec.cylinders = imported.spec.cylinders.max(zone.last_cylinder + 1);
        if scheme == 0 && !(band.slips.is_empty() && band.defects.is_empty()) {
            imported.notes.push(format!(
                "line {}: scheme 0 ignores slips and defects",
                block.line
            ));
        }
        let beyond = band.slips.iter().find(|slip| !map.holds(**slip));
        imported.notes.extend(beyond.map(|slip| {
            format!(
                "line {}: slips: {slip} is beyond the end of the zone",
                block.line
            )
        }));
        for key in [TRACK_SKEW, CYLINDER_SKEW] {
            imported
                .notes
                .extend(long_skew(block, key, &band, revolutions));
        }
        let collisions = map.collisions(&band);
        if !collisions.is_empty() {
            imported.notes.push(format!(
                "line {}: DiskSim's translation puts {} on sectors that hold another LBN; the import does the same",
                block.line,
                Count(collisions.len(), "LBN")
            ));
        }
        for (lbn, position) in collisions {
            imported
                .spec
                .moved
                .extend(place(first_lbn + lbn, position, &band, mapping, disk));
        }
        imported.spec.shared_places |= !zone.remaps.is_empty() || !imported.spec.moved.is_empty();
        first_lbn += map.lbns();
        imported.spec.zones.push(zone);
    }
    if disk.blocks != first_lbn {
        let blocks = disk.blocks;
        imported.notes.push(format!(
            "the zones hold {}; Block count is {blocks}",
            Count(first_lbn, "block")
        ));
    }
    // Like DiskSim, accept zones that end before the last cylinder. DiskSim derives the capacity
    // from the zones.
    let zones = imported.spec.zones.iter();
    let end = zones.map(|zone| zone.last_cylinder + 1).max().unwrap_or(0);
    if end > 0 && end < disk.cylinders {
        let last = disk.cylinders - 1;
        let rest = match disk.cylinders - end {
            1 => format!("cylinder {last} holds"),
            _ => format!("cylinders {end} to {last} hold"),
        };
        imported.notes.push(format!(
            "the zones end at cylinder {}; Number of cylinders is {}: {rest} no blocks, as in DiskSim",
            end - 1,
            disk.cylinders
        ));
    }
    if imported.spec.cylinders > disk.cylinders {
        imported.notes.push(format!(
            "the zones extend beyond the disk's {}",
            Count(disk.cylinders, "cylinder")
        ));
    }
    Ok(imported)
}

fn band(block: &Rc<Block>, disk: &DiskSize) -> Result<DiskSimZone, ParamError> {
    block.check_kind("dm_layout_g1_zone")?;
    block.require_keys(&[
        "First cylinder number",
        "Last cylinder number",
        "Blocks per track",
    ])?;
    let first_cylinder = block.require_bounded("First cylinder number", 0u32, (1 << 24) - 1)?;
    let last_cylinder =
        block.require_bounded("Last cylinder number", first_cylinder, (1 << 24) - 1)?;
    let slots = block.require_bounded("Blocks per track", 1u32, 1_000_000)?;
    let defects = numbers(block, "defects")?;
    if defects.len() % 2 == 1 {
        return Err(block
            .require("defects")?
            .error("defects must be pairs, but the list has an odd number of values"));
    }
    let cylinders = u64::from(last_cylinder - first_cylinder) + 1;
    let sectors = (cylinders * u64::from(disk.surfaces) * u64::from(slots)) as i64;
    Ok(DiskSimZone {
        first_cylinder: first_cylinder.into(),
        cylinders,
        surfaces: disk.surfaces.into(),
        slots: slots.into(),
        reserved: block
            .get_bounded("Empty space at zone front", 0i64, sectors)?
            .unwrap_or(0) as u64,
        spares: block
            .get_bounded("Number of spares", 0u32, i32::MAX as u32)?
            .unwrap_or(0)
            .into(),
        slips: numbers(block, "slips")?,
        defects: defects.chunks(2).map(|pair| (pair[0], pair[1])).collect(),
    })
}

/// Returns the note about a skew that is longer than the track.
fn long_skew(block: &Block, key: &str, band: &DiskSimZone, revolutions: bool) -> Option<String> {
    let node = block.get(key)?;
    let skew = node.f64().ok()?;
    let track = if revolutions { 1.0 } else { band.slots as f64 };
    (skew.abs() > track).then(|| {
        let unit = if revolutions { "revolutions" } else { "blocks" };
        format!(
            "line {}: {key} = {skew} {unit} is longer than the track, which has {}",
            node.line,
            Count(band.slots, "block")
        )
    })
}

fn zone(
    block: &Block,
    band: &DiskSimZone,
    map: &Mapping,
    revolutions: bool,
    backward: impl Fn(u64) -> bool,
) -> Result<ZoneSpec, ParamError> {
    let skew = |key: &str| {
        let value = block.get_f64(key)?.unwrap_or(0.0);
        if value.is_nan() || value.abs() > 1e9 {
            return Err(block
                .require(key)?
                .error(format!("{key}: {value} is not in -1e9..=1e9")));
        }
        Ok(if revolutions {
            Skew::Revolutions(value)
        } else {
            Skew::Sectors(value.trunc())
        })
    };
    Ok(ZoneSpec {
        first_cylinder: band.first_cylinder as u32,
        last_cylinder: (band.first_cylinder + band.cylinders - 1) as u32,
        sectors_per_track: PerSurface::Same(band.slots as u32),
        first_angle: skew("Offset of first block")?,
        track_skew: skew(TRACK_SKEW)?,
        cylinder_skew: skew(CYLINDER_SKEW)?,
        reserved_sectors: band.reserved,
        spares: map.spares() as u32,
        turns: map.turns(band, backward),
        lbns: map.zone_is_short().then(|| map.lbns()),
        slips: map.slips().to_vec(),
        remaps: map.remaps(band),
        ..ZoneSpec::default()
    })
}

/// Returns the entry that moves `lbn` to a position in a zone or after it, or `None` if the
/// position is beyond the disk.
fn place(
    lbn: u64,
    position: u64,
    band: &DiskSimZone,
    mapping: u8,
    disk: &DiskSize,
) -> Option<MovedSpec> {
    let track = position / band.slots;
    let (cylinder, head) = (track / band.surfaces, track % band.surfaces);
    let back = runs_backward(mapping, band, cylinder);
    let cylinder = band.first_cylinder + cylinder;
    (cylinder < disk.cylinders.into()).then(|| MovedSpec {
        lbn,
        sectors: 1,
        cylinder: cylinder as u32,
        surface: if back { band.surfaces - 1 - head } else { head } as u16,
        slot: (position % band.slots) as u32,
        slots: Some(band.slots as u32),
    })
}

/// Returns whether the LBNs of a cylinder, counted from the zone's first, begin on its last
/// surface.
fn runs_backward(mapping: u8, band: &DiskSimZone, cylinder: u64) -> bool {
    match mapping {
        0 => false,
        1 => cylinder % 2 == 1,
        _ => (band.first_cylinder + cylinder) % 2 == 1,
    }
}
