//! The scan by reads of growing length against the truth.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use testkit::shared_data;
use traxtent_core::disksim::load_system;
use traxtent_core::geometry::{Geometry, Remedy};
use traxtent_core::probe::{Algorithm, Counted, Found, Region, Target, Verify, extract};
use traxtent_core::profile::Profile;
use traxtent_core::profile::builtin::{builtin, names};
use traxtent_core::trackmap::TrackMap;
use traxtent_core::units::Lbn;
use traxtent_exec::SimTarget;

/// A drive with its mechanics, and its truth.
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

    /// The first drive of one of DiskSim's specifications.
    fn specified(path: &Path) -> Drive {
        let read = |path: &str| std::fs::read(path).map_err(|e| e.to_string());
        let name = path.to_str().expect("a path of letters");
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

/// What a scan came to.
struct Scan {
    reads: u64,
    hours: f64,
    /// The first few bounds that were missed or made up.
    wrong: Vec<String>,
}

/// Scans a region and prints a line of the table.
fn scan(drive: &Drive, region: Region) -> Scan {
    let began = Instant::now();
    let (profile, geometry) = (Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
    let mut target = Counted::new(SimTarget::new(profile, geometry).without_translation());
    let mut found: Vec<Lbn> = Vec::new();
    let mut sink = |track: Found| {
        let end = Lbn(track.first_lbn.0 + u64::from(track.sectors));
        match found.last() {
            None => found.extend([track.first_lbn, end]),
            Some(last) => {
                assert_eq!(*last, track.first_lbn, "tracks follow each other");
                found.push(end);
            }
        }
        ControlFlow::Continue(())
    };
    let result = extract(Algorithm::Scan, &mut target, region, Verify::None, &mut sink);
    let mut wrong: Vec<String> = result.err().map(|e| e.to_string()).into_iter().collect();
    wrong.extend(differences(&drive.geometry, region, &found));
    let scan = Scan {
        reads: target.counts().requests,
        hours: target.now().as_ms() / 3.6e6,
        wrong,
    };
    println!(
        "{:24} {:8} tracks {:9} reads {:7.3} a track {:8.3} h drive {:6.2} s host  {}",
        drive.name,
        found.len(),
        scan.reads,
        scan.reads as f64 / found.len() as f64,
        scan.hours,
        began.elapsed().as_secs_f64(),
        if scan.wrong.is_empty() { "exact" } else { "WRONG" },
    );
    for line in scan.wrong.iter().take(6) {
        println!("    {line}");
    }
    scan
}

/// How bounds differ from those of the tracks that begin in a region. Where LBNs are kept elsewhere,
/// a bound may lie on either side of them.
fn differences(geometry: &Geometry, region: Region, found: &[Lbn]) -> Vec<String> {
    let remapped = geometry.defects().filter_map(|defect| match defect.remedy {
        Remedy::Remapped(lbn, _) => Some(lbn.0),
        Remedy::Slipped => None,
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
    let map = TrackMap::of(geometry);
    let truth: Vec<u64> = map.tracks().map(|t| t.first_lbn.0).chain([map.end().0]).collect();
    let from = truth.partition_point(|bound| *bound < region.first.0);
    // One track begins in the region and ends behind it.
    let to = truth.partition_point(|bound| *bound < region.end.0) + 1;
    let mut found = found.iter().map(|lbn| lbn.0).peekable();
    let mut wrong = Vec::new();
    for &bound in &truth[from..to] {
        let stands = either_side(bound);
        while let Some(lbn) = found.next_if(|lbn| *lbn <= stands[2] && !stands.contains(lbn)) {
            wrong.push(format!("made up: {lbn}"));
        }
        if found.next_if(|lbn| stands.contains(lbn)).is_none() {
            let place = |lbn| geometry.locate(Lbn(lbn));
            let (before, at) = (place(bound.saturating_sub(1)), place(bound));
            wrong.push(format!("missed: {bound}; {before:?} | {at:?}"));
        }
    }
    wrong.extend(found.map(|lbn| format!("made up: {lbn}")));
    wrong
}

/// All drives: the built-in ones, then those of the reference data.
fn drives() -> impl Iterator<Item = Drive> {
    let built_in = names().filter(|name| *name != "instant").map(Drive::built_in);
    let folder = shared_data("disksim");
    if folder.is_none() {
        println!("the reference data are not here");
    }
    let files = folder.into_iter().flat_map(|folder| {
        let below = ["", "maxtor300g", "wd4tb"].map(|part| folder.join(part));
        let files = below.into_iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.retain(|file| file.extension().is_some_and(|end| end == "diskspecs"));
        files.sort();
        files
    });
    built_in.chain(files.map(|file| Drive::specified(&file)))
}

#[test]
fn everything() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let most: u64 = std::env::var("MOST").map_or(1 << 40, |s| s.parse().unwrap());
    for drive in drives().filter(|drive| drive.name.contains(&only)) {
        if drive.geometry.capacity().0 > most { continue; }
        scan(&drive, drive.whole());
    }
}
