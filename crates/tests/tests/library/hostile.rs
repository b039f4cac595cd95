//! Hostile input, most of which describes a large amount of data in a few bytes. Each case was
//! found by fuzzing or by analysis, and is refused before it costs memory or time. A further test
//! is about the error for an unknown disk name.

use traxtent_disksim::load_system;
use traxtent_model::geometry::{
    BranchSpec, Child, Geometry, GeometrySpec, MovedSpec, PerSurface, SlipSpec, TrackSpec,
    TreeSpec, ZoneSpec,
};
use traxtent_model::profile::{Profile, SeekSpec, builtin};
use traxtent_workload::{TraceFormat, TraceOptions, TraceReader};

fn geometry_error(spec: &GeometrySpec) -> String {
    Geometry::build(spec).unwrap_err().to_string()
}

fn tree(tracks: Vec<TrackSpec>, nodes: Vec<Vec<BranchSpec>>) -> GeometrySpec {
    GeometrySpec {
        surfaces: 64,
        cylinders: 1 << 22,
        tree: Some(TreeSpec {
            tracks,
            nodes,
            slips: Vec::new(),
        }),
        ..GeometrySpec::default()
    }
}

fn profile_error(change: impl FnOnce(&mut Profile)) -> String {
    let mut profile = builtin("hp-c3323a").unwrap();
    change(&mut profile);
    profile.check().unwrap_err().to_string()
}

/// Is a drive with 16 million cylinders, whose seek curve alone would need much memory, refused?
#[test]
fn cylinders_without_end() {
    let spec = GeometrySpec {
        surfaces: 1,
        cylinders: 1 << 24,
        zones: vec![ZoneSpec {
            sectors_per_track: PerSurface::Same(1),
            ..ZoneSpec::default()
        }],
        ..GeometrySpec::default()
    };
    assert!(geometry_error(&spec).contains("cylinders is 16777216"));
}

/// Is a single entry that moves millions of sectors, each of which would be stored, refused?
#[test]
fn moved_sectors_without_end() {
    let spec = GeometrySpec {
        surfaces: 1,
        cylinders: 100,
        zones: vec![ZoneSpec {
            last_cylinder: 99,
            sectors_per_track: PerSurface::Same(1_000_000),
            ..ZoneSpec::default()
        }],
        moved: vec![MovedSpec {
            lbn: 0,
            sectors: 50_000_000,
            cylinder: 0,
            surface: 0,
            slot: 0,
            slots: None,
        }],
        ..GeometrySpec::default()
    };
    assert!(geometry_error(&spec).contains("moved 0: total sectors is 50000000"));
}

/// Is a single slip that covers millions of tracks, each of which would be stored, refused?
#[test]
fn slips_without_end() {
    let track = TrackSpec {
        slots: 1,
        first_slot: 0,
        sectors: 1,
    };
    let run = BranchSpec {
        repeat: 1 << 22,
        cylinder_step: 1,
        ..BranchSpec::once(Child::Track(0))
    };
    let mut spec = tree(vec![track], vec![vec![run]]);
    spec.tree.as_mut().unwrap().slips = vec![SlipSpec {
        position: 0,
        sectors: 1 << 21,
    }];
    assert!(geometry_error(&spec).contains("runs of bad slots"));
}

/// Is a tree that lists millions of tracks in two parts each refused?
#[test]
fn parts_without_end() {
    let half = |first_slot| TrackSpec {
        slots: 2,
        first_slot,
        sectors: 1,
    };
    let run = |track| BranchSpec {
        repeat: 1 << 22,
        cylinder_step: 1,
        ..BranchSpec::once(Child::Track(track))
    };
    let spec = tree(vec![half(0), half(1)], vec![vec![run(0), run(1)]]);
    assert!(geometry_error(&spec).contains("parts"));
}

/// Is a tree with a million overlapping instances, all of which a look-up would visit, refused?
#[test]
fn instances_without_end() {
    let track = TrackSpec {
        slots: 1,
        first_slot: 0,
        sectors: 1,
    };
    let far = BranchSpec {
        cylinder: 1 << 21,
        ..BranchSpec::once(Child::Track(0))
    };
    let run = BranchSpec {
        repeat: 1 << 20,
        cylinder_step: 1,
        ..BranchSpec::once(Child::Node(0))
    };
    let pair = vec![BranchSpec::once(Child::Track(0)), far];
    let message = geometry_error(&tree(vec![track], vec![pair, vec![run]]));
    assert!(message.contains("interleaved instances"), "{message}");
}

/// Is a seek curve refused if a seek over all cylinders takes too long, although each number of the
/// curve is within its bounds?
#[test]
fn seeks_without_end() {
    let line = SeekSpec::Hpl {
        division: 1,
        root_constant_ms: 0.0,
        root_factor_ms: 0.0,
        line_constant_ms: 0.0,
        line_factor_ms: 10_000.0,
        first_ms: Vec::new(),
    };
    let table = SeekSpec::Table {
        read: vec![(1, 1.0), (2, 9_999.0)],
        write: None,
    };
    for seek in [line, table] {
        let message = profile_error(|p| p.mechanics.as_mut().unwrap().seek = seek);
        assert!(message.contains("no seek takes longer"), "{message}");
    }
}

/// Is a number that TOML cannot represent refused instead of written?
#[test]
fn capacity_beyond_toml() {
    let message = profile_error(|p| p.geometry.capacity_sectors = Some(u64::MAX));
    assert!(message.contains("capacity_sectors"), "{message}");
}

/// Are DiskSim's ranges, includes and instances bounded in total, not only individually?
#[test]
fn parameter_files_that_grow() {
    let ranges = "[ d0 .. d6000, e0 .. e6000 ]";
    let includes = "source empty\n".repeat(300);
    let disks = "dm_disk D { Number of data surfaces = 1, Number of cylinders = 1, Block count = 1,
        Layout Model = dm_layout_g1 { LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0, Zones = [
        dm_layout_g1_zone { First cylinder number = 0, Last cylinder number = 0, Blocks per track = 1 } ] },
        Mechanical Model = dm_mech_g1 { Seek type = constant, Constant seek time = 1, Rotation speed (in rpms) = 5400 } }
        instantiate [ d0 .. d6000 ] as D";
    for (text, message) in [
        (
            format!("instantiate {ranges} as D"),
            "more than 10000 names",
        ),
        (includes, "more than 256 files"),
        (disks.to_owned(), "more than 1000 disks"),
    ] {
        let error = load_system("f", text.as_bytes(), None, &|_| Ok(Vec::new())).unwrap_err();
        assert!(error.problem.contains(message), "{error}");
    }
}

/// Does the error for an unknown disk name list the existing ones?
#[test]
fn names_of_disks() {
    let text = "dm_disk D { Number of data surfaces = 1, Number of cylinders = 1, Block count = 1,
        Layout Model = dm_layout_g1 { LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0, Zones = [
            dm_layout_g1_zone { First cylinder number = 0, Last cylinder number = 0, Blocks per track = 1 } ] },
        Mechanical Model = dm_mech_g1 { Seek type = constant, Constant seek time = 1, Rotation speed (in rpms) = 5400 } }
        instantiate [ d0 .. d1 ] as D";
    let error = load_system("f", text.as_bytes(), Some("d7"), &|_| Ok(Vec::new())).unwrap_err();
    assert_eq!(
        error.problem,
        "there is no disk called \"d7\"; the disks are d0, d1"
    );
}

/// Are thousands of slips, all of which DiskSim's translation would process in each of a million
/// cylinders, refused? They used to take minutes.
#[test]
fn thousands_of_slips_are_refused() {
    let ascending: Vec<String> = (0..200_000).map(|i| (i * 2).to_string()).collect();
    let unordered: Vec<String> = (0..9_999).rev().map(|i| (i * 2).to_string()).collect();
    for slips in [ascending, unordered] {
        let text = format!(
            "dm_disk D {{ Number of data surfaces = 1, Number of cylinders = 1000000, Block count = 1,
            Layout Model = dm_layout_g1 {{ LBN-to-PBN mapping scheme = 0, Sparing scheme used = 4, Zones = [
            dm_layout_g1_zone {{ First cylinder number = 0, Last cylinder number = 999999, Blocks per track = 2,
            Number of spares = 1, slips = [ {} ] }} ] }},
            Mechanical Model = dm_mech_g1 {{ Seek type = constant, Constant seek time = 1, Rotation speed (in rpms) = 5400 }} }}",
            slips.join(",")
        );
        let error = load_system("f", text.as_bytes(), None, &|_| Ok(Vec::new())).unwrap_err();
        assert!(
            error
                .problem
                .contains("blocks per cylinder: too many to process"),
            "{error}"
        );
    }
}

/// Is an HP trace record whose seconds exceed the range of the clock refused? The seconds used to
/// be multiplied before the check.
#[test]
fn seconds_beyond_the_clock() {
    let words = [
        52,
        1 << 16 | 1,
        u32::MAX,
        u32::MAX,
        1,
        2,
        512,
        0,
        0,
        0,
        0,
        1,
        0,
    ];
    let bytes: Vec<u8> = words
        .iter()
        .flat_map(|word: &u32| word.to_be_bytes())
        .collect();
    let mut reader = TraceReader::new(TraceFormat::HpSrt, &bytes[..], TraceOptions::default());
    let error = reader.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("seconds"), "{error}");
}
