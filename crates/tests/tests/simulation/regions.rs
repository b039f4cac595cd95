//! Probes of parts of drives.

use std::ops::ControlFlow;
use std::sync::Arc;

use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::builtin::builtin;
use traxtent_probe::{
    Algorithm, Found, ObservedTarget, Prober, Region, RequestCounts, Verify, extract,
};
use traxtent_scsi::{Compliance, Faults};
use traxtent_sim::SimTarget;
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_units::request::Op;

/// Does every algorithm find all tracks that begin in a region, each in full, wherever the region
/// begins and ends, even if the drive is prepared only once for several regions?
#[test]
fn algorithms_agree_on_regions() {
    for name in ["atlas10k2", "hp-c3323a", "toshiba-p300", "hd103sj"] {
        let profile = Arc::new(builtin(name).unwrap());
        let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
        let map = TrackMap::from_sizes(geometry.track_sizes());
        for algorithm in Algorithm::ALL {
            let mut rng = Rng::new(6);
            let mut target = SimTarget::new(Arc::clone(&profile), Arc::clone(&geometry));
            if !algorithm.translates() {
                target = target.without_translation();
            }
            let mut prober = Prober::start(algorithm, &mut target).unwrap();
            for part in 0..6 {
                let first = rng.below(map.len() as u64 - 40) as usize;
                let [begins, ends] = [first, first + 8 + part].map(|k| map.track(k).unwrap());
                // The end is a track's first LBN, the one after it, the track's last LBN, or one in
                // its middle.
                let inside = [0, 1, ends.sectors.0 - 1, ends.sectors.0 / 2][part % 4];
                let aligned = part < 3;
                let region = Region {
                    first: Lbn(begins.first_lbn.0 + u64::from(!aligned)),
                    end: Lbn(ends.first_lbn.0 + inside),
                    aligned,
                };
                let mut found = Vec::new();
                let ended = prober.extract(region, Verify::Full, &mut |track| {
                    found.push((track.first_lbn, u64::from(track.sectors)));
                    ControlFlow::Continue(())
                });
                ended.unwrap_or_else(|error| panic!("{name} {algorithm:?} {region:?}: {error}"));
                let tracks = map.tracks().skip(first).take(40);
                let wanted = tracks.map(|track| (track.first_lbn, track.sectors.0));
                let wanted = wanted
                    .filter(|(lbn, _)| (region.first..region.end).contains(lbn))
                    .collect::<Vec<_>>();
                assert_eq!(found, wanted, "{name} {algorithm:?} {region:?}");
            }
        }
    }
}

/// If one prober searches a drive three times, and so determines the timing method only once, does
/// this take less than two thirds of the requests of three separate probes?
#[test]
fn the_timing_method_is_determined_once() {
    let profile = Arc::new(builtin("atlas10k2").unwrap());
    let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
    let drive = SimTarget::new(profile, geometry).without_translation();
    let region = Region {
        first: Lbn(0),
        end: Lbn(10_000),
        aligned: true,
    };
    let mut ignore = |_| ControlFlow::Continue(());
    let mut restarted = ObservedTarget::new(drive.clone(), RequestCounts::default());
    for _ in 0..3 {
        extract(
            Algorithm::Angle,
            &mut restarted,
            region,
            Verify::Full,
            &mut ignore,
        )
        .unwrap();
    }
    let mut once = ObservedTarget::new(drive, RequestCounts::default());
    let mut prober = Prober::start(Algorithm::Angle, &mut once).unwrap();
    for _ in 0..3 {
        prober.extract(region, Verify::Full, &mut ignore).unwrap();
    }
    let (restarted, once) = (restarted.observer.requests, once.observer.requests);
    println!("{once} requests instead of {restarted}");
    assert!(
        3 * once < 2 * restarted,
        "{once} requests instead of {restarted}"
    );
}

/// Are tracks found through a cache that cannot be switched off, if reads elsewhere replace its
/// content before each timed read? Does `angle` also find tracks without skew, where only reads
/// across a boundary reveal the boundary?
#[test]
fn through_a_cache_that_stays() {
    let skewless = |name: &str| {
        let mut profile = builtin(name).unwrap();
        for zone in &mut profile.geometry.zones {
            (zone.track_skew, zone.cylinder_skew) = Default::default();
        }
        profile
    };
    let both: &[Algorithm] = &[Algorithm::Angle, Algorithm::Scan];
    let angle = &both[..1];
    for (profile, algorithms) in [
        (builtin("atlas10k2").unwrap(), both),
        (builtin("ibm18es").unwrap(), both),
        (builtin("cheetah10k7").unwrap(), both),
        (builtin("hp-c3323a").unwrap(), angle),
        (builtin("hp-c2247").unwrap(), angle),
        (skewless("atlas10k2"), angle),
        (skewless("ibm18es"), angle),
    ] {
        let name = profile.name.clone();
        let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
        let map = TrackMap::from_sizes(geometry.track_sizes());
        let faults = Faults {
            unsupported: vec![Op::Verify],
            fua: Compliance::Ignores,
            cache_control: Compliance::Ignores,
            ..Faults::default()
        };
        let drive = SimTarget::new(Arc::new(profile), geometry).without_translation();
        let drive = drive.with_faults(faults);
        for &algorithm in algorithms {
            let region = Region {
                first: Lbn(0),
                end: map.track(40).unwrap().first_lbn,
                aligned: true,
            };
            let mut found = Vec::new();
            let mut sink = |track: Found| {
                found.push(track.first_lbn);
                ControlFlow::Continue(())
            };
            let mut target = drive.clone();
            let ended = extract(algorithm, &mut target, region, Verify::Full, &mut sink);
            let ended = ended.unwrap_or_else(|error| panic!("{name} {algorithm:?}: {error}"));
            assert_eq!(
                ended.notes,
                [
                    "timed by read-interleaved",
                    "remapped sectors are not counted: the drive does not translate addresses, or does not list its defects",
                ],
                "{name}"
            );
            let wanted: Vec<Lbn> = map.tracks().take(40).map(|t| t.first_lbn).collect();
            assert_eq!(found, wanted, "{name} {algorithm:?}");
        }
    }
}
