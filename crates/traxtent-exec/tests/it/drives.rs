//! Drives to probe: built-in profiles, the reference models, random layouts.

use std::collections::BTreeSet;
use std::sync::Arc;

use testkit::shared_data;
use traxtent_core::disksim::{Document, disk_geometry};
use traxtent_core::geometry::{
    Geometry, GeometrySpec, MovedSpec, Order, PerSurface, Sparing, Start, ZoneSpec,
};
use traxtent_core::profile::builtin::{builtin, names};
use traxtent_core::workload::Rng;
use traxtent_exec::SimTarget;

/// A drive and its truth.
pub(crate) struct Drive {
    pub(crate) name: String,
    pub(crate) geometry: Arc<Geometry>,
}

impl Drive {
    pub(crate) fn new(name: impl Into<String>, spec: &GeometrySpec) -> Drive {
        let name = name.into();
        let geometry = Geometry::build(spec).unwrap_or_else(|e| panic!("{name}: {e}"));
        Drive {
            name,
            geometry: Arc::new(geometry),
        }
    }

    /// The drive as a probe sees it; only its layout matters here.
    pub(crate) fn target(&self) -> SimTarget {
        let profile = builtin("atlas10k").expect("it is built in");
        SimTarget::new(Arc::new(profile), Arc::clone(&self.geometry))
    }
}

/// Every built-in drive that has tracks.
pub(crate) fn built_in() -> impl Iterator<Item = Drive> {
    names()
        .filter(|name| *name != "instant")
        .map(|name| Drive::new(name, &builtin(name).expect("it is listed").geometry))
}

/// The reference models, by their path without ending.
pub(crate) const MODELS: [&str; 11] = [
    "atlas10k",
    "atlas_III",
    "barracuda",
    "cheetah4LP",
    "cheetah9LP",
    "hp_c2247a_validate",
    "hp_c2249a",
    "hp_c3323a_validate",
    "ibm18es",
    "maxtor300g/maxtor300g",
    "wd4tb/G4_LBA_64bit_4T",
];

/// A reference model, or nothing where the reference data are absent.
pub(crate) fn model(name: &str) -> Option<Drive> {
    let path = shared_data(&format!("disksim/{name}.model"))?;
    let read = |path: &str| std::fs::read(path).map_err(|e| e.to_string());
    let path = path.to_str().expect("a path of letters");
    let document = Document::parse(path, &read(path).unwrap(), &read).unwrap();
    let disk = document.blocks().find(|block| block.kind == "dm_disk");
    let imported = disk_geometry(disk.expect("a model has a disk"), &read).unwrap();
    Some(Drive::new(name, &imported.spec))
}

/// A small random drive; nothing where the dice fell on an impossible one.
pub(crate) fn random(seed: u64) -> Option<Drive> {
    let spec = random_spec(&mut Rng::new(seed));
    let geometry = Geometry::build(&spec).ok()?;
    Some(Drive {
        name: format!("random drive {seed}"),
        geometry: Arc::new(geometry),
    })
}

fn pick(rng: &mut Rng, range: std::ops::Range<u64>) -> u64 {
    range.start + rng.below(range.end - range.start)
}

fn of<T: Copy>(rng: &mut Rng, list: &[T]) -> T {
    list[pick(rng, 0..list.len() as u64) as usize]
}

fn random_spec(rng: &mut Rng) -> GeometrySpec {
    let order = of(rng, &Order::ALL);
    let mut sparing = of(rng, &Sparing::ALL);
    let by_cylinder = matches!(
        sparing,
        Sparing::SectorsPerCylinder
            | Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFront
            | Sparing::SectorsAtCylinderFrontSlipToEnd
            | Sparing::SectorsPerCylinderRange
    );
    if by_cylinder && !order.is_head_first() {
        sparing = Sparing::SectorsPerZone;
    }
    let range = (sparing == Sparing::SectorsPerCylinderRange).then(|| pick(rng, 1..6) as u32);
    let mut spec = GeometrySpec {
        surfaces: pick(rng, 1..7) as u16,
        order,
        width_tracks: (!order.is_head_first()).then(|| pick(rng, 2..20) as u32),
        start: of(
            rng,
            &[Start::Forward, Start::Backward, Start::CylinderParity],
        ),
        sparing,
        sparing_range_cylinders: range,
        ..GeometrySpec::default()
    };
    let mut cylinder = pick(rng, 0..3) as u32;
    for _ in 0..pick(rng, 1..5) {
        let zone = random_zone(rng, &spec, cylinder);
        cylinder = zone.last_cylinder + 1 + pick(rng, 0..2) as u32;
        spec.zones.push(zone);
    }
    spec.cylinders = cylinder + 10;
    if rng.chance(0.2)
        && let Ok(geometry) = Geometry::build(&spec)
    {
        let moved = pick(rng, 0..geometry.capacity().0);
        spec.moved.push(MovedSpec {
            lbn: moved,
            sectors: pick(rng, 1..4) as u32,
            cylinder: cylinder + 8,
            surface: 0,
            slot: pick(rng, 0..20) as u32,
            slots: Some(40),
        });
    }
    spec
}

fn random_zone(rng: &mut Rng, spec: &GeometrySpec, cylinder: u32) -> ZoneSpec {
    let cylinders = of(rng, &[3, 10, 30, 100]) + pick(rng, 0..9) as u32;
    let surface = rng
        .chance(0.15)
        .then(|| pick(rng, 0..spec.surfaces.into()) as u16);
    let surfaces = if surface.is_some() { 1 } else { spec.surfaces };
    let base = pick(rng, 20..90);
    let slots: Vec<u32> = if rng.chance(0.3) {
        let each = (0..surfaces).map(|_| pick(rng, base - 8..base + 8) as u32);
        each.collect()
    } else {
        vec![base as u32; surfaces.into()]
    };
    let tracks = u64::from(cylinders) * u64::from(surfaces);
    let sectors = u64::from(cylinders) * slots.iter().map(|&s| u64::from(s)).sum::<u64>();
    let least = u64::from(*slots.iter().min().expect("a surface"));
    let spares = match spec.sparing {
        Sparing::None | Sparing::SectorsAtDriveEnd => 0,
        Sparing::TracksPerZone => pick(rng, 0..tracks.min(4)),
        Sparing::SectorsPerTrack => pick(rng, 0..6),
        _ => pick(rng, 0..40),
    };
    let unit = if spec.sparing == Sparing::TracksPerZone {
        tracks
    } else {
        sectors
    };
    let slips: BTreeSet<u64> = (0..of(rng, &[0, 0, 1, 3, 10]))
        .map(|_| near_an_edge(rng, unit, least))
        .collect();
    let mut remaps = Vec::new();
    if spares > 2 && slips.is_empty() && rng.chance(0.5) {
        if spec.sparing == Sparing::TracksPerZone {
            remaps.push((pick(rng, 0..tracks - spares), tracks - 1));
        } else if matches!(
            spec.sparing,
            Sparing::SectorsPerZone | Sparing::SectorsPerTrack
        ) {
            for k in 0..pick(rng, 1..3) {
                remaps.push((near_an_edge(rng, sectors - spares, least), sectors - 1 - k));
            }
        }
    }
    remaps.sort_unstable();
    remaps.dedup_by_key(|remap| remap.0);
    ZoneSpec {
        first_cylinder: cylinder,
        last_cylinder: cylinder + cylinders - 1,
        surface,
        sectors_per_track: PerSurface::Each(slots),
        reserved_sectors: of(rng, &[0, 0, 0, 1, least, least * 3 + 1]),
        spares: spares as u32,
        slips: slips.into_iter().collect(),
        remaps,
        ..ZoneSpec::default()
    }
}

/// A number below `end`, often close to a multiple of `track`.
fn near_an_edge(rng: &mut Rng, end: u64, track: u64) -> u64 {
    let at = pick(rng, 0..end);
    if rng.chance(0.5) {
        return at;
    }
    (at / track * track + pick(rng, 0..3))
        .saturating_sub(1)
        .min(end - 1)
}
