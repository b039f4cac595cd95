//! The scan by reads of growing length, compared with the true layout.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use testkit::{repeats, shared_data};
use traxtent_disksim::load_system;
use traxtent_map::TrackMap;
use traxtent_model::geometry::{Geometry, Replacement};
use traxtent_model::profile::Profile;
use traxtent_model::profile::builtin::{builtin, names};
use traxtent_probe::{
    Algorithm, Found, ObservedTarget, ProbeError, Region, RequestCounts, Target, Verify, extract,
};
use traxtent_scsi::Faults;
use traxtent_sim::SimTarget;
use traxtent_units::{Lbn, Sectors};

/// A drive with its mechanics and its true layout.
struct Drive {
    name: String,
    profile: Arc<Profile>,
    geometry: Arc<Geometry>,
}

impl Drive {
    fn new(name: &str, profile: Profile) -> Drive {
        let geometry = Geometry::build(&profile.geometry);
        Drive {
            name: name.to_owned(),
            geometry: Arc::new(geometry.unwrap_or_else(|e| panic!("{name}: {e}"))),
            profile: Arc::new(profile),
        }
    }

    fn built_in(name: &str) -> Drive {
        Drive::new(name, builtin(name).expect("it is built in"))
    }

    /// Loads the first drive of one of DiskSim's specifications.
    fn specified(path: &Path) -> Drive {
        let read = |path: &str| std::fs::read(path).map_err(|e| e.to_string());
        let name = path.to_str().expect("the path is valid UTF-8");
        let system = load_system(name, &read(name).unwrap(), None, &read);
        let disks = system.unwrap_or_else(|e| panic!("{name}: {e}")).disks;
        let disk = disks.into_iter().next().expect("it has a disk");
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        Drive::new(&format!("disksim:{name}"), disk.profile)
    }

    fn whole(&self) -> Region {
        Region::whole(self.geometry.capacity())
    }
}

/// The result of a scan.
struct Scan {
    reads: u64,
    hours: f64,
    /// The error that ended the scan, if any, and the missed and spurious boundaries.
    wrong: Vec<String>,
}

/// Scans a region and prints the result in a line.
fn scan(drive: &Drive, region: Region) -> Scan {
    let began = Instant::now();
    let (profile, geometry) = (Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
    let mut target = ObservedTarget::new(
        SimTarget::new(profile, geometry).without_translation(),
        RequestCounts::default(),
    );
    let mut found: Vec<Lbn> = Vec::new();
    let mut sink = |track: Found| {
        let end = Lbn(track.first_lbn.0 + u64::from(track.sectors));
        match found.last() {
            None => found.extend([track.first_lbn, end]),
            Some(last) => {
                assert_eq!(*last, track.first_lbn, "tracks do not follow each other");
                found.push(end);
            }
        }
        ControlFlow::Continue(())
    };
    let result = extract(
        Algorithm::Scan,
        &mut target,
        region,
        Verify::None,
        &mut sink,
    );
    let mut wrong: Vec<String> = result.err().map(|e| e.to_string()).into_iter().collect();
    wrong.extend(differences(&drive.geometry, region, &found));
    let scan = Scan {
        reads: target.observer.requests,
        hours: target.now().as_ms() / 3.6e6,
        wrong,
    };
    println!(
        "{:24} {:8} boundaries {:9} reads {:7.3} per boundary {:8.3} h drive {:6.2} s host  {}",
        drive.name,
        found.len(),
        scan.reads,
        scan.reads as f64 / found.len() as f64,
        scan.hours,
        began.elapsed().as_secs_f64(),
        if scan.wrong.is_empty() {
            "exact"
        } else {
            "WRONG"
        },
    );
    for line in scan.wrong.iter().take(6) {
        println!("    {line}");
    }
    scan
}

/// Returns the differences between the boundaries found and those of the tracks that begin in a
/// region. Next to remapped LBNs, a boundary may lie on either side of them.
fn differences(geometry: &Geometry, region: Region, found: &[Lbn]) -> Vec<String> {
    let remapped = geometry.defects().filter_map(|defect| match defect.remedy {
        Replacement::Remapped(lbn, _) => Some(lbn.0),
        Replacement::Slipped => None,
    });
    let moved: BTreeSet<u64> = remapped.collect();
    let either_side = |bound: u64| {
        let (mut first, mut last) = (bound, bound);
        while first > 1 && moved.contains(&(first - 1)) {
            first -= 1;
        }
        while moved.contains(&last) {
            last += 1;
        }
        [first, bound, last]
    };
    let map = TrackMap::from_sizes(geometry.track_sizes());
    let truth: Vec<u64> = map
        .tracks()
        .map(|t| t.first_lbn.0)
        .chain([map.end().0])
        .collect();
    let from = truth.partition_point(|bound| *bound < region.first.0);
    // The last track that begins in the region may end after it.
    let to = truth.partition_point(|bound| *bound < region.end.0) + 1;
    let mut found = found.iter().map(|lbn| lbn.0).peekable();
    let mut wrong = Vec::new();
    for &bound in &truth[from..to] {
        let stands = either_side(bound);
        while let Some(lbn) = found.next_if(|lbn| *lbn <= stands[2] && !stands.contains(lbn)) {
            wrong.push(format!("spurious: {lbn}"));
        }
        if found.next_if(|lbn| stands.contains(lbn)).is_none() {
            let place = |lbn| geometry.locate(Lbn(lbn));
            let (before, at) = (place(bound.saturating_sub(1)), place(bound));
            wrong.push(format!("missed: {bound}; {before:?} | {at:?}"));
        }
    }
    wrong.extend(found.map(|lbn| format!("spurious: {lbn}")));
    wrong
}

/// Returns all drives with mechanics: the built-in ones, then those of the reference data.
fn drives() -> impl Iterator<Item = Drive> {
    let built_in = names()
        .filter(|name| *name != "instant")
        .map(Drive::built_in);
    let folder = shared_data("disksim");
    if folder.is_none() {
        println!("the reference data is missing");
    }
    let files = folder.into_iter().flat_map(|folder| {
        let below = ["", "maxtor300g", "wd4tb"].map(|part| folder.join(part));
        let files = below
            .into_iter()
            .flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "diskspecs"));
        files.sort();
        files
    });
    built_in.chain(files.map(|file| Drive::specified(&file)))
}

/// Asserts that a drive's layout is found exactly in a region.
#[track_caller]
fn exact(drive: &Drive, region: Region) -> Scan {
    let scan = scan(drive, region);
    assert_eq!(scan.wrong, Vec::<String>::new(), "{}", drive.name);
    scan
}

/// Are drives of each kind recovered exactly: with and without zero-latency reads, with slips, with
/// remapped LBNs, with zones of one track, with serpentines?
///
/// In a soak, all drives are scanned.
#[test]
fn scans_are_exact() {
    let sectors_max = match repeats(1) {
        1 => 20_000_000,
        _ => u64::MAX,
    };
    let mut scanned = 0;
    for drive in drives() {
        if drive.geometry.capacity().0 <= sectors_max {
            exact(&drive, drive.whole());
            scanned += 1;
        }
    }
    assert!(scanned >= 6, "only {scanned}");
    for name in ["atlas10k2", "maxtor10k5-c", "cheetahx15"] {
        let drive = Drive::built_in(name);
        exact(&drive, drive.whole());
    }
}

/// Does a scan of the Atlas 10K take less than the four hours of paper T (section 4.1.1), and fewer
/// than 3.5 reads per track?
#[test]
fn the_atlas_takes_less_than_four_hours() {
    let drive = Drive::built_in("atlas10k");
    let scan = exact(&drive, drive.whole());
    assert!(scan.hours < 4.0, "{} hours", scan.hours);
    let tracks = drive.geometry.track_count() as f64;
    assert!((scan.reads as f64) < 3.5 * tracks, "{} reads", scan.reads);
}

/// Does the search of a region that begins within a track begin with the next track, on drives of
/// several generations and in regions of different sizes?
#[test]
fn regions() {
    for name in ["atlas10k", "toshiba-x300", "wd10ears"] {
        let drive = Drive::built_in(name);
        let capacity = drive.geometry.capacity().0;
        for (first, sectors) in [(capacity / 3, 1_000_000), (capacity / 2 + 1, 10_000)] {
            let region = Region {
                first: Lbn(first),
                end: Lbn(first + sectors),
                aligned: false,
            };
            exact(&drive, region);
        }
    }
}

/// Is a scan exact if each place that it searches begins with a track of slightly more sectors than
/// a power of two? On a drive with zero-latency access, a read of almost a whole track ends one
/// revolution after the arm arrives; its time says nothing about its sectors.
#[test]
fn places_that_begin_with_a_track() {
    let drive = Drive::built_in("st2000dm006");
    let map = TrackMap::from_sizes(drive.geometry.track_sizes());
    // 2,144 sectors. Each of the hundred places begins with a track, and is far from the others.
    let first = map.tracks().find(|track| track.sectors == Sectors(2144));
    let first = first.expect("a zone of this drive").first_lbn.0;
    let region = Region {
        first: Lbn(first),
        end: Lbn(first + 100 * 500 * 2144),
        aligned: true,
    };
    exact(&drive, region);
}

/// Does a scan end on request, with the tracks that it has found?
#[test]
fn a_scan_can_be_stopped() {
    let drive = Drive::built_in("hp-c2247");
    let (profile, geometry) = (Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
    let mut target = SimTarget::new(profile, geometry);
    let mut found = Vec::new();
    let mut sink = |track: Found| {
        found.push(track.first_lbn);
        match found.len() {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    };
    let ended = extract(
        Algorithm::Scan,
        &mut target,
        drive.whole(),
        Verify::None,
        &mut sink,
    );
    assert_eq!(ended, Err(ProbeError::Stopped));
    let truth = TrackMap::from_sizes(drive.geometry.track_sizes());
    let truth: Vec<Lbn> = truth
        .tracks()
        .take(3)
        .map(|track| track.first_lbn)
        .collect();
    assert_eq!(found, truth);
}

/// Are unreadable LBNs skipped and reported, in the middle of a track and next to its first LBN?
#[test]
fn unreadable_lbns_are_skipped() {
    let drive = Drive::built_in("atlas10k");
    let track = TrackMap::from_sizes(drive.geometry.track_sizes())
        .tracks()
        .nth(40)
        .expect("a track");
    let unreadable = |lbn: u64| {
        let faults = Faults {
            unreadable: vec![Lbn(lbn)],
            ..Faults::default()
        };
        let (profile, geometry) = (Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
        SimTarget::new(profile, geometry).with_faults(faults)
    };
    let region = Region {
        first: Lbn(0),
        end: Lbn(100_000),
        aligned: true,
    };
    for lbn in [track.first_lbn.0 + 100, track.first_lbn.0 + 1] {
        let mut found = vec![Lbn(0)];
        let mut sink = |track: Found| {
            found.push(Lbn(track.first_lbn.0 + u64::from(track.sectors)));
            ControlFlow::Continue(())
        };
        let result = extract(
            Algorithm::Scan,
            &mut unreadable(lbn),
            region,
            Verify::None,
            &mut sink,
        );
        assert_eq!(result.expect("the scan ends").unreadable, [Lbn(lbn)]);
        assert_eq!(
            differences(&drive.geometry, region, &found),
            Vec::<String>::new()
        );
    }
}
