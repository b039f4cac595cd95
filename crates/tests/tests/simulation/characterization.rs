//! Characterization of simulated drives, and the fitted profiles that result.

use std::sync::Arc;

use traxtent_map::TrackMap;
use traxtent_model::geometry::{Geometry, Order};
use traxtent_model::profile::{Profile, SeekSpec, builtin};
use traxtent_probe::characterization::{
    Characterization, CharacterizeOptions, LayoutConfidence, Residual, characterize, residuals,
};
use traxtent_probe::{ProbeError, Target, TargetError};
use traxtent_scsi::Faults;
use traxtent_sim::{Noise, SimTarget};
use traxtent_units::SimTime;
use traxtent_units::request::Op;

fn drive(name: &str) -> (Arc<Profile>, Arc<Geometry>) {
    let profile = builtin(name).unwrap();
    let geometry = Geometry::build(&profile.geometry).unwrap();
    (Arc::new(profile), Arc::new(geometry))
}

fn target(name: &str) -> (SimTarget, TrackMap) {
    let (profile, geometry) = drive(name);
    let map = TrackMap::from_sizes(geometry.track_sizes());
    (SimTarget::new(profile, geometry), map)
}

fn characterization(
    target: &mut SimTarget,
    map: &TrackMap,
    options: CharacterizeOptions,
) -> Characterization {
    characterize(target, map, options, &mut |_| ()).unwrap()
}

const READS: CharacterizeOptions = CharacterizeOptions {
    destructive: false,
    seed: 1,
};
const WRITES: CharacterizeOptions = CharacterizeOptions {
    destructive: true,
    seed: 1,
};
/// A drive of 2000 with zero-latency access, an older one without, and two newer ones.
const DRIVES: [&str; 4] = ["atlas10k2", "hp-c3323a", "toshiba-p300", "hd103sj"];

/// Returns whether a fit meets the bounds: mean response time within 1 %, demerit within 2 % of the
/// mean.
fn is_close(residual: &Residual) -> bool {
    residual.mean_error().abs() < 0.01 && residual.relative_demerit() < 0.02
}

/// Asserts that a fit meets the bounds for each of the three workloads.
fn assert_close(name: &str, residuals: &[Residual]) {
    assert_eq!(residuals.len(), 3, "{name}");
    for residual in residuals {
        let Residual {
            workload,
            drive_ms: source_ms,
            fitted_ms,
            ..
        } = residual;
        println!(
            "{name:16} {workload:10} {source_ms:8.4} ms, fitted profile {fitted_ms:8.4} ms, mean {:+.3} %, demerit {:.3} %",
            100.0 * residual.mean_error(),
            100.0 * residual.relative_demerit()
        );
        assert!(is_close(residual), "{name} {residual:?}");
    }
}

/// Do fitted profiles respond like their drives to workloads that the fit did not use, both reads
/// alone and reads with writes? Does a characterization take less than five minutes of the drive's
/// time?
#[test]
fn fitted_profiles_respond_like_their_drives() {
    for name in DRIVES {
        for options in [READS, WRITES] {
            let (mut target, map) = target(name);
            let characterization = characterization(&mut target, &map, options);
            println!(
                "{name}: {} requests, {:.0} s",
                characterization.requests,
                characterization.drive_ms / 1e3
            );
            assert!(
                characterization.drive_ms < 300_000.0,
                "{name}: {} ms",
                characterization.drive_ms
            );
            let profile = characterization.to_profile();
            assert_close(
                name,
                &residuals(&mut target, &profile, options, &mut |_| ()).unwrap(),
            );
        }
    }
}

/// Fitted profiles that miss the bounds if the host was unsteady: drive, seed, and whether the
/// characterization writes. For the Atlas 10K II, every firmware behaviour is found, but sequential
/// reads still differ by 2.1 %.
const MISSED_IN_NOISE: [(&str, u64, bool); 1] = [("atlas10k2", 70, false)];

/// Do fitted profiles respond like their drives if the host was unsteady during the
/// characterization? The comparison uses a steady host, because the delays of a host are not the
/// drive's.
#[test]
fn fitted_profiles_from_an_unsteady_host() {
    for name in DRIVES {
        for options in [READS, WRITES] {
            for seed in [70, 71] {
                let (mut quiet, map) = target(name);
                let mut noisy = quiet.clone().with_noise(Noise::TYPICAL, seed);
                let characterization = characterization(&mut noisy, &map, options);
                let profile = characterization.to_profile();
                let residuals = residuals(&mut quiet, &profile, options, &mut |_| ()).unwrap();
                if MISSED_IN_NOISE.contains(&(name, seed, options.destructive)) {
                    println!("{name} {seed}: missed: {residuals:?}");
                    assert!(
                        !residuals.iter().all(is_close),
                        "{name} {seed} now meets the bounds"
                    );
                    continue;
                }
                assert_close(name, &residuals);
            }
        }
    }
}

/// Built-in drives whose fitted profiles miss the bounds, and the reason.
const MISSED: [(&str, &str); 3] = [
    (
        "st2000dm006",
        "it orders requests by distance, and takes time to choose: neither is measured, so that its buffered writes \
         go to the media in another order",
    ),
    (
        "hp-c2247",
        "its bus waits for three quarters of a read, and its writes disconnect twice: neither is measured",
    ),
    (
        "atlas10k-disksim",
        "its bus is slower than its media, and its read-ahead is adaptive: its segments are found too short, \
         so that sequential reads differ by 4 to 10 % with some seeds",
    ),
];

/// Do the fitted profiles of all built-in drives that rotate meet the bounds, except for those
/// listed as misses?
#[test]
fn fitted_profiles_of_all_drives() {
    for name in traxtent_model::profile::builtin::names().filter(|name| *name != "instant") {
        if let Some((_, reason)) = MISSED.iter().find(|(missed, _)| *missed == name) {
            println!("{name}: missed: {reason}");
            continue;
        }
        let (mut target, map) = target(name);
        let profile = characterization(&mut target, &map, WRITES).to_profile();
        assert_close(
            name,
            &residuals(&mut target, &profile, WRITES, &mut |_| ()).unwrap(),
        );
    }
}

/// Does a drive respond like its own profile, whatever its initial angle? Only the first request
/// may differ, by about a revolution.
#[test]
fn a_drive_responds_like_its_own_profile() {
    for name in ["quantum-viking", "toshiba-p300", "toshiba-x300", "hd103sj"] {
        let (profile, _) = drive(name);
        let period = 60_000.0 / profile.mechanics.as_ref().unwrap().rpm;
        for quarter in 0..4 {
            for options in [READS, WRITES] {
                let (mut target, _) = target(name);
                target.wait_until(SimTime::from_ms(f64::from(quarter) * period / 4.0));
                let residuals = residuals(&mut target, &profile, options, &mut |_| ()).unwrap();
                for residual in residuals {
                    let most = match residual.workload {
                        "random" => 0.01,
                        _ => 1e-9,
                    };
                    assert!(
                        residual.relative_demerit() < most,
                        "{name} {quarter} {residual:?}"
                    );
                }
            }
        }
    }
}

/// Does the characterization find the write watermark, at which a drive requests more data of a
/// write that is larger than a segment?
#[test]
fn write_watermarks() {
    for name in ["quantum-viking", "ibm18es", "map3367nc", "hd103sj"] {
        let (mut target, map) = target(name);
        let characterization = characterization(&mut target, &map, WRITES);
        let watermark = characterization
            .figures()
            .iter()
            .find(|figure| figure.name == "cache.write_watermark")
            .unwrap();
        let truth = builtin(name).unwrap().cache.write_watermark;
        assert_eq!(watermark.value, truth, "{name} {watermark}");
        assert!(watermark.high - watermark.low < 0.25, "{name} {watermark}");
    }
}

/// Do fitted profiles meet the bounds if the drive does not translate addresses, so that its layout
/// order and its surfaces are found by timing alone?
#[test]
fn fitted_profiles_of_drives_that_do_not_translate() {
    for (name, order, surfaces) in [
        ("atlas10k2", None, 3),
        ("hp-c3323a", Some(Order::HeadFirstForward), 7),
        ("toshiba-p300", Some(Order::SeekForwardSurfaceForward), 6),
        (
            "toshiba-x300",
            Some(Order::SeekAlternatingSurfaceForward),
            10,
        ),
        ("hd103sj", Some(Order::SeekForwardSurfaceForward), 4),
        ("map3367nc", Some(Order::SeekForwardSurfaceForward), 2),
        (
            "cheetah15k7",
            Some(Order::SeekAlternatingSurfaceAlternating),
            6,
        ),
    ] {
        let (target, map) = target(name);
        let mut target = target.without_translation();
        let characterization = characterization(&mut target, &map, READS);
        let found = characterization.layout_order();
        assert_eq!(
            (found.surfaces, found.confidence),
            (surfaces, LayoutConfidence::Timed),
            "{name}"
        );
        // A head switch of 0.6 ms hides whether cylinders alternate on the Atlas 10K II.
        assert!(order.is_none() || found.order == order, "{name} {found:?}");
        let profile = characterization.to_profile();
        assert_close(
            name,
            &residuals(&mut target, &profile, READS, &mut |_| ()).unwrap(),
        );
    }
}

/// With two surfaces, is each seek-first order found by translation, with its width?
#[test]
fn orders_of_two_surfaces() {
    for order in Order::ALL.into_iter().skip(2) {
        let mut profile = builtin("map3367nc").unwrap();
        assert_eq!(profile.geometry.surfaces, 2);
        profile.geometry.order = order;
        let geometry = Geometry::build(&profile.geometry).unwrap();
        let map = TrackMap::from_sizes(geometry.track_sizes());
        let mut target = SimTarget::new(Arc::new(profile), Arc::new(geometry));
        let found = characterization(&mut target, &map, READS).layout_order();
        assert_eq!((found.order, found.width), (Some(order), Some(29)));
    }
}

/// On an unsteady host, do at least nine tenths of the intervals contain the true value, and is no
/// value off by more than twice the width of its interval?
#[test]
fn intervals_contain_the_true_values() {
    let (mut held, mut all) = (0, 0);
    for name in DRIVES {
        let (profile, geometry) = drive(name);
        let map = TrackMap::from_sizes(geometry.track_sizes());
        let o = &profile.overheads;
        let m = profile.mechanics.as_ref().unwrap();
        let truth = [
            ("mechanics.rpm", m.rpm),
            ("mechanics.head_switch_ms", m.head_switch_ms),
            (
                "overheads.read_miss_after_read_ms",
                o.read_miss_after_read_ms + o.read_completion_ms,
            ),
            (
                "overheads.read_hit_after_read_ms",
                o.read_hit_after_read_ms + o.read_completion_ms,
            ),
            ("bus.read_sector_ms", profile.bus.read_sector_ms),
            ("mechanics.write_settle_ms", m.write_settle_ms),
            (
                "overheads.read_miss_after_write_ms",
                o.read_miss_after_write_ms + o.read_completion_ms,
            ),
        ];
        for seed in 0..4 {
            let target = SimTarget::new(profile.clone(), geometry.clone());
            let mut target = target.with_noise(Noise::TYPICAL, 40 + seed);
            let characterization = characterization(
                &mut target,
                &map,
                CharacterizeOptions {
                    destructive: true,
                    seed,
                },
            );
            assert_eq!(
                characterization.zero_latency(),
                profile.access.zero_latency_read,
                "{name}"
            );
            for (figure, truth) in truth {
                let found = characterization
                    .figures()
                    .iter()
                    .find(|f| f.name == figure)
                    .unwrap();
                all += 1;
                held += usize::from(found.covers(truth));
                let half = (found.high - found.low) / 2.0;
                assert!(
                    (found.value - truth).abs() < 4.0 * half,
                    "{name} {figure}: {truth}, found {found}"
                );
            }
        }
    }
    println!("{held} of {all}");
    assert!(held * 10 >= all * 9, "{held} of {all}");
}

/// Does the measured seek curve agree with the drive's, point by point, after fewer than a thousand
/// timings?
#[test]
fn seek_curves() {
    for name in ["atlas10k", "hp-c3323a", "toshiba-p300"] {
        let (profile, geometry) = drive(name);
        let map = TrackMap::from_sizes(geometry.track_sizes());
        let spec = &profile.mechanics.as_ref().unwrap().seek;
        assert!(!matches!(spec, SeekSpec::Constant { .. }));
        let truth = traxtent_model::mechanics::SeekCurve::new(spec, geometry.cylinders());
        for noise in [false, true] {
            let mut target = SimTarget::new(profile.clone(), geometry.clone());
            if noise {
                target = target.with_noise(Noise::TYPICAL, 3);
            }
            let characterization = characterization(&mut target, &map, READS);
            let average = characterization
                .figures()
                .iter()
                .find(|f| f.name == "mechanics.seek")
                .unwrap();
            assert!(average.samples < 1_000, "{name}: {average}");
            let mean = truth.mean().as_ms();
            println!("{name} {noise}: mean {mean:.4}, {average}");
            assert!(
                (average.value / mean - 1.0).abs() < 0.005,
                "{name}: {mean}, found {average}"
            );
            let (mut held, mut points) = (0, 0);
            for (distance, ms, half_width) in characterization.seek_curve() {
                let apart = (ms - truth.time(distance).as_ms()).abs();
                points += 1;
                held += usize::from(apart <= half_width + 1e-6);
                assert!(
                    apart < 0.15,
                    "{name}: {distance} cylinders: {ms}, off by {apart}"
                );
            }
            println!("{held} of {points}");
            assert!(points > 60, "{name}: {points}");
            assert!(
                held * 10 >= points * 8,
                "{name} {noise}: {held} of {points}"
            );
        }
    }
}

/// Is the layout order of each rotating built-in drive of up to a million tracks found, with its
/// surfaces and width, if the drive translates addresses?
#[test]
fn layout_orders_are_found() {
    for name in traxtent_model::profile::builtin::names().filter(|name| *name != "instant") {
        let (profile, geometry) = drive(name);
        // Only the layout matters; larger drives take longer but run the same code.
        if geometry.track_count() > 1_000_000 {
            continue;
        }
        let map = TrackMap::from_sizes(geometry.track_sizes());
        let mut target = SimTarget::new(profile.clone(), geometry);
        let characterization = characterization(&mut target, &map, READS);
        let found = characterization.layout_order();
        let spec = &profile.geometry;
        assert_eq!(found.order, Some(spec.order), "{name} {found:?}");
        assert_eq!(found.surfaces, spec.surfaces, "{name}");
        assert_eq!(found.confidence, LayoutConfidence::Translated);
        if !spec.order.is_head_first() {
            assert_eq!(found.width, spec.width_tracks, "{name}");
        }
    }
}

/// Does the fitted profile have the same track boundaries as the map, and is it unchanged after it
/// is written and read back?
#[test]
fn fitted_profiles_can_be_stored() {
    let (mut target, map) = target("atlas10k");
    let profile = characterization(&mut target, &map, WRITES).to_profile();
    let text = profile.to_toml();
    let again = Profile::from_toml(&text).unwrap();
    assert_eq!(again, profile);
    assert_eq!(
        TrackMap::from_sizes(Geometry::build(&again.geometry).unwrap().track_sizes()),
        map
    );
    let rpm = again.provenance.of("mechanics.rpm").unwrap();
    assert!(rpm.note.contains(" to "), "{}", rpm.note);
}

/// Is it reported if a drive does not support VERIFY, disappears, or does not rotate?
#[test]
fn unusual_drives_are_reported() {
    let (target_all, map) = target("ibm18es");
    let faults = Faults {
        unsupported: vec![Op::Verify],
        ..Faults::default()
    };
    let mut without_verify = target_all.clone().with_faults(faults);
    let found = characterization(&mut without_verify, &map, READS);
    assert!(
        found
            .notes()
            .iter()
            .any(|note| note.contains("READ with FUA")),
        "{:?}",
        found.notes()
    );
    assert!((found.rpm() - 7200.0).abs() < 0.01);

    let faults = Faults {
        unresponsive_after: Some(500),
        ..Faults::default()
    };
    let mut disappearing = target_all.with_faults(faults);
    let error = characterize(&mut disappearing, &map, READS, &mut |_| ()).unwrap_err();
    assert!(
        matches!(error, ProbeError::Target(TargetError::Gone(_))),
        "{error}"
    );

    let (mut instant, map) = target("instant");
    let error = characterize(&mut instant, &map, READS, &mut |_| ()).unwrap_err();
    assert!(
        error.to_string().starts_with("not a rotating disk"),
        "{error}"
    );
}
