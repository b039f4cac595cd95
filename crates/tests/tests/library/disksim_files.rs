//! DiskSim's own files, compared with DiskSim's results for them.

use std::io::Read;
use std::path::Path;

use traxtent_disksim::{Document, ImportedLayout, disk_geometry, load_system};
use traxtent_model::geometry::{Geometry, write_csv};
use traxtent_model::profile::{OriginKind, Profile, Scheduler};

use crate::drive::tiny::{read as read_of, serve};
use crate::shared::shared;

pub(crate) fn read(path: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|e| e.to_string())
}

pub(crate) fn import(path: &Path) -> ImportedLayout {
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

/// Loads the first drive of `NAME.parv` in `folder`, with some parameters of `NAME.diskspecs`
/// replaced.
pub(crate) fn drive_with(folder: &Path, name: &str, changes: &[(&str, &str)]) -> Profile {
    let source = |file: &str| {
        let bytes = std::fs::read(folder.join(file)).map_err(|e| e.to_string())?;
        if !file.ends_with(".diskspecs") {
            return Ok(bytes);
        }
        let text = String::from_utf8(bytes).unwrap();
        Ok(changes.iter().fold(text, set).into_bytes())
    };
    let file = format!("{name}.parv");
    let system = load_system(&file, &source(&file).unwrap(), None, &source);
    system.unwrap().disks.swap_remove(0).profile
}

/// Sets a parameter that occurs exactly once in a parameter file.
fn set(text: String, &(key, value): &(&str, &str)) -> String {
    let sets_key = |line: &str| line.split_once('=').is_some_and(|(k, _)| k.trim() == key);
    let matching = text.lines().filter(|line| sets_key(line)).count();
    assert_eq!(matching, 1, "lines that set {key:?}");
    let changed = |line: &str| {
        if sets_key(line) {
            format!("{key} = {value},\n")
        } else {
            format!("{line}\n")
        }
    };
    text.lines().map(changed).collect()
}

/// Does an aged SPTF queue, whose weight DiskSim gives in thousandths, serve requests in DiskSim's
/// order?
#[test]
fn the_weight_of_age_is_in_thousandths() {
    let folder = testkit::shared_data!("disksim");
    let changes = [
        ("Max queue length", "16"),
        ("Scheduling policy", "14"),
        ("Timeout time/weight", "100"),
    ];
    let profile = drive_with(&folder, "ibm18es", &changes);
    assert_eq!(profile.queue.scheduler, Scheduler::AgedSptf { weight: 0.1 });
    // The arrival time of each request, its LBN, and its response time in DiskSim 4.0. Times are in
    // milliseconds.
    let requests = [
        (0.0, 1_000, 6.791),
        (0.0, 4_402_000, 15.837),
        (1.0, 2_067_000, 25.699),
        (2.0, 8_358_000, 43.654),
        (20.0, 3_863_000, 14.325),
        (22.0, 16_234_000, 35.443),
    ];
    let done = serve(
        &profile,
        &requests.map(|(ms, lbn, _)| (ms, read_of(lbn, 8))),
    );
    for (completion, (_, lbn, disksim_ms)) in done.iter().zip(requests) {
        let ms = completion.response().as_ms();
        assert!((ms - disksim_ms).abs() < 0.002, "LBN {lbn}: {ms} ms");
    }
}

/// Is each DiskSim policy that is not modelled replaced by the nearest one, with an origin that
/// says so? Do modelled policies keep a measured origin?
#[test]
fn other_policies_are_replaced_by_the_nearest() {
    let folder = testkit::shared_data!("disksim");
    let aged = Scheduler::AgedSptf { weight: 0.006 };
    for (number, name, nearest) in [
        ("2", "", Scheduler::Look),
        ("5", "ELEVATOR_CYL", Scheduler::Look),
        ("10", "SATF_OPT", Scheduler::Sptf),
        ("14", "", aged),
        ("16", "ASATF_OPT", aged),
        ("17", "VSCAN_LBN", Scheduler::Look),
        ("22", "SDF_APPROX", Scheduler::Sstf),
        ("24", "SPTF_ROT_OPT", Scheduler::Sptf),
        ("28", "BATCH_FCFS", Scheduler::Fcfs),
    ] {
        let changes = [("Scheduling policy", number), ("Timeout time/weight", "6")];
        let profile = drive_with(&folder, "ibm18es", &changes);
        assert_eq!(profile.queue.scheduler, nearest, "policy {number}");
        let path = match nearest {
            Scheduler::AgedSptf { .. } => "queue.scheduler.aged-sptf.weight",
            _ => "queue.scheduler",
        };
        let origin = profile.provenance.of(path).unwrap();
        let says = format!("policy {number} ({name}) is not modelled; {nearest}, the nearest");
        let replaced = !name.is_empty();
        assert_eq!(
            (origin.kind, origin.note.contains(&says)),
            if replaced {
                (OriginKind::Assumed, true)
            } else {
                (OriginKind::Measured, false)
            },
            "{}",
            origin.note
        );
        // Another policy can still be chosen.
        let other = profile.with_value("queue.scheduler", "c-look").unwrap();
        assert_eq!(other.queue.scheduler, Scheduler::CLook);
    }
}

/// Does the origin of a sector's time on the bus name the parameter that determines it, and that of
/// the write segment the parameter that is not applied?
#[test]
fn origins_name_the_deciding_parameter() {
    let folder = testkit::shared_data!("disksim");
    for (drive, path, says) in [
        (
            "ibm18es",
            "bus.read_sector_ms",
            "\"Bulk sector transfer time\" = 0.101",
        ),
        (
            "hp_c2247a",
            "bus.read_sector_ms",
            "\"Read block transfer time\" = 0.1701",
        ),
        (
            "hp_c2247a",
            "cache.dedicated_write_segment",
            ".diskspecs:37, \"Use separate write segment\" = 1 is not applied",
        ),
    ] {
        let profile = drive_with(&folder, drive, &[]);
        let origin = profile.provenance.of(path).unwrap();
        assert!(origin.note.contains(says), "{path}: {}", origin.note);
    }
}

/// Does a seek curve get a new origin when it is replaced, even if its values had their own?
#[test]
fn set_values_have_a_new_origin() {
    let folder = testkit::shared_data!("disksim");
    let profile = drive_with(&folder, "atlas10k", &[]);
    let curve = "{ curve = \"constant\", ms = 5.0 }";
    let changed = profile.with_value("mechanics.seek", curve).unwrap();
    let origin = changed.provenance.of("mechanics.seek.ms").unwrap();
    assert_eq!(
        (origin.kind, origin.note),
        (OriginKind::Assumed, "set by hand")
    );
    assert_eq!(Profile::from_toml(&changed.to_toml()), Ok(changed));
}

/// Is the track list of each reference layout equal to DiskSim's own, byte for byte?
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

/// Returns the parameter files in a directory and its subdirectories.
fn parameter_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().and_then(|ending| ending.to_str());
        if path.is_dir() {
            files.extend(parameter_files(&path));
        } else if matches!(ending, Some("parv" | "diskspecs" | "model")) {
            files.push(path);
        }
    }
    files
}

/// Do DiskSim's own systems give no warning about parameters of their buses, controllers, drivers
/// and workloads? All of these have values that change nothing.
#[test]
fn systems_without_further_parameters() {
    for path in parameter_files(&testkit::shared_data!("disksim")) {
        let name = path.to_str().unwrap();
        let Ok(system) = load_system(name, &read(name).unwrap(), None, &read) else {
            continue;
        };
        for warning in system.warnings {
            let names =
                |kind: &&str| warning.contains(&format!("of disksim_{kind} is not modelled"));
            let kinds = [
                "global", "bus", "ctlr", "iodriver", "pf", "iosim", "synthio",
            ];
            assert!(!kinds.iter().any(names), "{warning}");
        }
    }
}

/// Does the text of every readable drive parse to an equal profile, and does every value have an
/// origin? Does the origin of the rotation speed name DiskSim and the parameter?
#[test]
fn drives_are_equal_as_text() {
    let mut drives = 0;
    for path in parameter_files(&testkit::shared_data!("disksim")) {
        let name = path.to_str().unwrap();
        let Ok(system) = load_system(name, &read(name).unwrap(), None, &read) else {
            continue;
        };
        let mut before = None;
        for disk in system.disks {
            // Arrays have many disks with the same profile.
            if before.as_ref() == Some(&disk.profile) {
                continue;
            }
            let text = disk.profile.to_commented_toml("converted");
            let again = Profile::from_toml(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(again == disk.profile, "{name}: {}", disk.name);
            let origin = again.provenance.of("mechanics.rpm").unwrap();
            let stated = "\"Rotation speed (in rpms)\" = ";
            assert!(
                origin.note.starts_with("DiskSim, ") && origin.note.contains(stated),
                "{name}: {origin:?}"
            );
            assert!(!text.contains("no origin is stated"), "{name}");
            drives += 1;
            before = Some(disk.profile);
        }
    }
    assert!(drives >= 35, "{drives}");
}
