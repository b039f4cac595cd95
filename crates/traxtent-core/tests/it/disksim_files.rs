//! DiskSim's own files against what DiskSim makes of them.

use std::io::Read;
use std::path::Path;

use traxtent_core::disksim::{Document, Imported, disk_geometry};
use traxtent_core::geometry::{Geometry, write_csv};

use crate::shared::shared;

pub(crate) fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| e.to_string())
}

pub(crate) fn import(path: &Path) -> Imported {
    let name = path.to_str().unwrap();
    let document = Document::parse(name, &read(name).unwrap(), &read).unwrap();
    let disk = document
        .blocks()
        .find(|block| block.kind == "dm_disk")
        .unwrap();
    disk_geometry(disk, &read).unwrap()
}

pub(crate) fn csv(geometry: &Geometry) -> String {
    let mut out = Vec::new();
    write_csv(geometry, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Is the track list of each reference layout equal, to the byte, to DiskSim's own?
#[test]
fn track_lists_equal_disksims() {
    for (model, tracks) in [
        ("atlas10k", "atlas10k"),
        ("atlas_III", "atlas_III"),
        ("barracuda", "barracuda"),
        ("cheetah4LP", "cheetah4LP"),
        ("cheetah9LP", "cheetah9LP"),
        ("hp_c2247a_validate", "hp_c2247a_validate"),
        ("hp_c2249a", "hp_c2249a"),
        ("hp_c3323a_validate", "hp_c3323a_validate"),
        ("ibm18es", "ibm18es"),
        ("maxtor300g/maxtor300g", "maxtor300g"),
    ] {
        let Some(model) = shared(&format!("data/disksim/{model}.model")) else {
            return;
        };
        let Some(tracks) = shared(&format!("data/disksim/tracks/{tracks}.csv.gz")) else {
            return;
        };
        let imported = import(&model);
        let geometry =
            Geometry::build(&imported.spec).unwrap_or_else(|e| panic!("{}: {e}", model.display()));
        let mut expected = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(tracks).unwrap())
            .read_to_string(&mut expected)
            .unwrap();
        let ours = csv(&geometry);
        println!(
            "{}: {} tracks, {} runs, notes {:?}",
            model.display(),
            geometry.track_count(),
            geometry.runs(),
            imported.notes
        );
        for (line, (a, b)) in ours.lines().zip(expected.lines()).enumerate() {
            assert_eq!(a, b, "{} line {}", model.display(), line + 1);
        }
        assert_eq!(ours.len(), expected.len(), "{}", model.display());
    }
}
