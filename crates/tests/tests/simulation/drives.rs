//! Drives to probe: built-in profiles and the reference models.

use std::sync::Arc;

use testkit::shared_data;
use traxtent_disksim::{Document, disk_geometry};
use traxtent_model::geometry::{Geometry, GeometrySpec};
use traxtent_model::profile::builtin::{builtin, names};
use traxtent_sim::SimTarget;

/// A drive and its true layout.
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

    /// Returns the drive as a probe's target. Only its layout matters, so the mechanics are those
    /// of the Atlas 10K.
    pub(crate) fn target(&self) -> SimTarget {
        let profile = builtin("atlas10k").expect("the drive is built in");
        SimTarget::new(Arc::new(profile), Arc::clone(&self.geometry))
    }
}

/// Returns every built-in drive that has mechanics.
pub(crate) fn built_in() -> impl Iterator<Item = Drive> {
    names().filter(|name| *name != "instant").map(|name| {
        Drive::new(
            name,
            &builtin(name).expect("a listed drive is built in").geometry,
        )
    })
}

/// The reference models, by their paths below `disksim` without extension.
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

/// Returns a reference model, or `None` if the reference data is absent.
pub(crate) fn model(name: &str) -> Option<Drive> {
    let path = shared_data(&format!("disksim/{name}.model"))?;
    let read = |path: &str| std::fs::read(path).map_err(|e| e.to_string());
    let path = path.to_str().expect("the path is valid UTF-8");
    let document = Document::parse(path, &read(path).unwrap(), &read).unwrap();
    let disk = document.blocks().find(|block| block.kind == "dm_disk");
    let imported = disk_geometry(disk.expect("a model has a disk"), &read).unwrap();
    Some(Drive::new(name, &imported.spec))
}
