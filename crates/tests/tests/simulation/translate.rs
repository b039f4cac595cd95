//! The algorithms that use translation, compared with the true layout.

use std::ops::ControlFlow;

use testkit::skip;
use traxtent_map::TrackMap;
use traxtent_probe::{
    Algorithm, Found, ObservedTarget, ProbeError, Region, RequestCounts, Target, Verify, extract,
};
use traxtent_sim::DefectLists;
use traxtent_units::Lbn;

use crate::drives::{Drive, MODELS, built_in, model};

/// The result and cost of a probe.
struct Probed {
    /// The first LBN of each track, and the end of the last track.
    starts: Vec<Lbn>,
    counts: RequestCounts,
    /// The time by the drive's clock.
    seconds: f64,
    /// The error that ended the probe.
    error: Option<ProbeError>,
    notes: Vec<String>,
}

fn probe(target: impl Target, algorithm: Algorithm) -> Probed {
    let capacity = target.identity().capacity;
    let mut target = ObservedTarget::new(target, RequestCounts::default());
    let mut starts = vec![Lbn(0)];
    let mut sink = |track: Found| {
        assert_eq!(
            Some(&track.first_lbn),
            starts.last(),
            "tracks do not follow each other"
        );
        starts.push(Lbn(track.first_lbn.0 + u64::from(track.sectors)));
        ControlFlow::Continue(())
    };
    let region = Region::whole(capacity);
    let result = extract(algorithm, &mut target, region, Verify::default(), &mut sink);
    let seconds = target.now().as_ms() / 1e3;
    let (notes, error) = match result {
        Ok(extraction) => (extraction.notes, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    Probed {
        counts: target.observer,
        starts,
        seconds,
        error,
        notes,
    }
}

/// Returns the first difference between the result and the true layout.
fn difference(drive: &Drive, probed: &Probed) -> Option<String> {
    if let Some(error) = &probed.error {
        return Some(error.to_string());
    }
    let map = TrackMap::from_sizes(drive.geometry.track_sizes());
    let truth = map.tracks().map(|track| track.first_lbn).chain([map.end()]);
    for (k, expected) in truth.enumerate() {
        let found = probed.starts.get(k);
        if found != Some(&expected) {
            let before = drive.geometry.locate(Lbn(expected.0 - 1));
            let at = drive.geometry.locate(expected);
            return Some(format!(
                "track {k} begins at LBN {expected}, not {found:?}; {before:?} | {at:?}"
            ));
        }
    }
    (probed.starts.len() > map.len() + 1).then(|| "tracks after the end".to_owned())
}

/// Probes a drive and prints the result in a line.
fn run(drive: &Drive, algorithm: Algorithm, target: impl Target) -> (Probed, Option<String>) {
    let began = std::time::Instant::now();
    let probed = probe(target, algorithm);
    let tracks = drive.geometry.track_count();
    let off = difference(drive, &probed);
    println!(
        "{:24} {:8} {tracks:8} tracks {:9} translations {:7.4} per track {:8.1} s drive {:6.2} s host  {}",
        drive.name,
        algorithm.name(),
        probed.counts.translations,
        probed.counts.translations as f64 / tracks as f64,
        probed.seconds,
        began.elapsed().as_secs_f64(),
        off.as_deref().unwrap_or("exact"),
    );
    for note in &probed.notes {
        println!("    {note}");
    }
    (probed, off)
}

fn exact(drive: &Drive, algorithm: Algorithm) -> Probed {
    let (probed, off) = run(drive, algorithm, drive.target());
    assert_eq!(off, None, "{} by {}", drive.name, algorithm.name());
    probed
}

/// Is every reference model recovered exactly? On the Atlas 10K, does `walk` need as many
/// translations as paper T states? Does `tree` stay within its bounds of translations and, on two
/// drives, of time?
#[test]
fn reference_models() {
    for name in MODELS {
        let Some(drive) = model(name) else {
            skip!("reference data disksim/{name}.model is missing");
        };
        let tracks = drive.geometry.track_count() as f64;
        let tree = exact(&drive, Algorithm::Tree);
        let walk = exact(&drive, Algorithm::Walk);
        let per_track = |probed: &Probed| probed.counts.translations as f64 / tracks;
        match name {
            "atlas10k" => {
                // Paper T, section 4.1.2.
                assert!((2.0..2.3).contains(&per_track(&walk)));
                assert!(per_track(&tree) < 0.1 && tree.seconds < 12.0);
            }
            "maxtor300g/maxtor300g" => {
                assert!(per_track(&tree) < 0.1 && tree.seconds < 300.0);
            }
            _ => assert!(per_track(&walk) >= 2.0 && per_track(&tree) < 0.5),
        }
    }
}

/// Does the method of paper Q, which translates LBN by LBN where track sizes change, also find
/// every track of the models other than `wd4tb`?
#[test]
fn reference_models_by_jumps() {
    for name in MODELS.iter().filter(|name| !name.contains("wd4tb")) {
        let Some(drive) = model(name) else {
            skip!("reference data disksim/{name}.model is missing");
        };
        exact(&drive, Algorithm::Jump);
    }
}

/// Is every built-in drive recovered exactly? Outside the soak, `walk` does not walk over the
/// largest ones, whose millions of tracks take most of the time.
#[test]
fn built_in_drives() {
    let more = testkit::repeats(1) > 1;
    for drive in built_in() {
        exact(&drive, Algorithm::Tree);
        if drive.geometry.track_count() < 2_000_000 || more {
            exact(&drive, Algorithm::Walk);
        }
        // Most of the larger drives have serpentines, where `dixtrac` falls back to walking.
        if drive.geometry.track_count() < 500_000 {
            exact(&drive, Algorithm::Dixtrac);
        }
    }
}

/// Do DIXtrac's five steps find every track of a model, and, on the Atlas 10K, with fewer
/// translations and in less time than paper T states?
#[test]
fn reference_models_by_dixtrac() {
    let mut wrong = Vec::new();
    for name in MODELS {
        let Some(drive) = model(name) else {
            skip!("reference data disksim/{name}.model is missing");
        };
        let (probed, off) = run(&drive, Algorithm::Dixtrac, drive.target());
        wrong.extend(off);
        if name == "atlas10k" {
            // Paper T, section 4.1.2.
            assert!(probed.counts.translations < 30_000 && probed.seconds < 60.0);
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Does `tree` stay exact on four reference models without their defect lists?
#[test]
fn without_defect_lists() {
    for name in ["atlas10k", "barracuda", "ibm18es", "maxtor300g/maxtor300g"] {
        let Some(drive) = model(name) else {
            skip!("reference data disksim/{name}.model is missing");
        };
        let target = drive.target().with_defect_lists(DefectLists::Absent);
        let (probed, off) = run(&drive, Algorithm::Tree, target);
        assert_eq!(off, None, "{name}");
        // One note on the missing lists, and one on remapped sectors, which are not counted.
        assert_eq!(probed.notes.len(), 2, "{:?}", probed.notes);
    }
}

/// Does the search of a region that begins within a track begin with the next track, and end with
/// the last track that begins in the region?
#[test]
fn regions() {
    let drive = built_in().next().expect("there are some");
    let map = TrackMap::from_sizes(drive.geometry.track_sizes());
    let tracks: Vec<_> = map.tracks().collect();
    let (from, to) = (&tracks[5], &tracks[20]);
    for algorithm in Algorithm::ALL.into_iter().filter(|one| one.translates()) {
        let region = Region {
            first: Lbn(from.first_lbn.0 + 1),
            end: Lbn(to.first_lbn.0 + 1),
            aligned: false,
        };
        let mut found = Vec::new();
        let mut sink = |track: Found| {
            found.push((track.first_lbn, u64::from(track.sectors)));
            ControlFlow::Continue(())
        };
        extract(
            algorithm,
            &mut drive.target(),
            region,
            Verify::None,
            &mut sink,
        )
        .unwrap();
        let expected: Vec<_> = tracks[6..=20]
            .iter()
            .map(|track| (track.first_lbn, track.sectors.0))
            .collect();
        assert_eq!(found, expected, "{}", algorithm.name());
    }
}
