//! The algorithms by translation against the truth.

use std::ops::ControlFlow;

use testkit::{repeats, skip};
use traxtent_core::probe::{
    Algorithm, Counted, Counts, ProbeError, Region, Target, Verify, extract,
};
use traxtent_core::trackmap::TrackMap;
use traxtent_core::units::Lbn;

use crate::drives::{Drive, MODELS, built_in, model, random};

/// What a probe found and what it cost.
struct Probed {
    starts: Vec<Lbn>,
    counts: Counts,
    seconds: f64,
    ended: Option<ProbeError>,
    notes: Vec<String>,
}

fn probe(target: impl Target, algorithm: Algorithm) -> Probed {
    let capacity = target.identity().capacity;
    let mut target = Counted::new(target);
    let mut starts = vec![Lbn(0)];
    let mut sink = |track: traxtent_core::probe::Found| {
        assert_eq!(
            Some(&track.first_lbn),
            starts.last(),
            "tracks follow each other"
        );
        starts.push(Lbn(track.first_lbn.0 + u64::from(track.sectors)));
        ControlFlow::Continue(())
    };
    let region = Region::whole(capacity);
    let result = extract(algorithm, &mut target, region, Verify::default(), &mut sink);
    let seconds = target.now().as_ms() / 1e3;
    let (notes, ended) = match result {
        Ok(extraction) => (extraction.notes, None),
        Err(error) => (Vec::new(), Some(error)),
    };
    Probed {
        counts: target.counts(),
        starts,
        seconds,
        ended,
        notes,
    }
}

/// The first difference between what was found and the truth.
fn difference(drive: &Drive, probed: &Probed) -> Option<String> {
    if let Some(error) = &probed.ended {
        return Some(error.to_string());
    }
    let map = TrackMap::of(&drive.geometry);
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
    (probed.starts.len() > map.len() + 1).then(|| "tracks behind the end".to_owned())
}

/// Probes a drive and prints a line of the table.
fn run(drive: &Drive, algorithm: Algorithm, target: impl Target) -> (Probed, Option<String>) {
    let began = std::time::Instant::now();
    let probed = probe(target, algorithm);
    let tracks = drive.geometry.track_count();
    let off = difference(drive, &probed);
    println!(
        "{:24} {:8} {tracks:8} tracks {:9} translations {:7.4} a track {:8.1} s drive {:6.2} s host  {}",
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

/// Are small random drives of all orders and sparing schemes recovered exactly?
#[test]
fn random_drives() {
    let algorithms: Vec<Algorithm> = match std::env::var("ALG") {
        Ok(name) => Algorithm::ALL
            .into_iter()
            .filter(|a| a.name() == name)
            .collect(),
        _ => vec![Algorithm::Walk, Algorithm::Jump],
    };
    let from: u64 = std::env::var("SEED").map_or(0, |s| s.parse().unwrap());
    let mut bad = 0;
    let mut n = 0;
    for seed in from..from + repeats(300) {
        let Some(drive) = random(seed) else { continue };
        n += 1;
        for &algorithm in &algorithms {
            let probed = probe(drive.target(), algorithm);
            if let Some(off) = difference(&drive, &probed) {
                println!("{} {}: {off}", drive.name, algorithm.name());
                bad += 1;
            }
        }
    }
    println!("{n} drives");
    assert_eq!(bad, 0);
}

/// Table.
#[test]
fn table() {
    let algorithms: Vec<Algorithm> = match std::env::var("ALG") {
        Ok(name) => Algorithm::ALL
            .into_iter()
            .filter(|a| a.name() == name)
            .collect(),
        _ => vec![Algorithm::Walk],
    };
    let only = std::env::var("DRIVE").unwrap_or_default();
    let mut bad = 0;
    let drives = MODELS
        .iter()
        .filter_map(|name| model(name))
        .chain(built_in());
    for drive in drives.filter(|d| d.name.contains(&only)) {
        for &algorithm in &algorithms {
            bad += usize::from(run(&drive, algorithm, drive.target()).1.is_some());
        }
    }
    assert_eq!(bad, 0);
}

#[test]
fn show() {
    let Ok(seed) = std::env::var("SHOW") else {
        return;
    };
    let drive = random(seed.parse().unwrap()).unwrap();
    let g = &drive.geometry;
    for t in g
        .tracks()
        .take(std::env::var("N").map_or(12, |n| n.parse().unwrap()))
    {
        println!("{t:?}");
    }
    println!("{:?}", g.defects().collect::<Vec<_>>());
}
