//! Rotation to the picosecond, seek curves through their points, and the closed formulas of the
//! papers.

use std::sync::Arc;

use traxtent_model::drive::Drive;
use traxtent_model::geometry::{Geometry, GeometrySpec, PerSurface, Skew, Track, ZoneSpec};
use traxtent_model::mechanics::{HeadPosition, Mechanics, SeekCurve};
use traxtent_model::profile::{MechanicsSpec, Profile, SeekSpec, builtin};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{Cylinder, Lbn, SimTime, Span, Surface};

use crate::drive::tiny::{read, tiny_with};

/// Returns mechanics and tracks for which the duration of a sector is not a whole number of
/// picoseconds.
fn odd_tracks() -> impl Iterator<Item = (Mechanics, Track)> {
    [
        (7_200.0, 7),
        (7_200.0, 1_000),
        (10_025.0, 334),
        (5_411.3, 2_937),
        (15_047.7, 3),
    ]
    .into_iter()
    .flat_map(|(rpm, slots)| {
        let spec = GeometrySpec {
            surfaces: 1,
            cylinders: 3,
            zones: vec![ZoneSpec {
                first_cylinder: 0,
                last_cylinder: 2,
                sectors_per_track: PerSurface::Same(slots),
                cylinder_skew: Skew::Revolutions(0.377),
                ..ZoneSpec::default()
            }],
            ..GeometrySpec::default()
        };
        let seek = SeekSpec::Constant { ms: 1.0 };
        let mechanics_spec = MechanicsSpec {
            rpm,
            head_switch_ms: 0.0,
            write_settle_ms: 0.0,
            seek,
        };
        let mechanics = Mechanics::new(&mechanics_spec, 3);
        let tracks: Vec<Track> = Geometry::build(&spec).unwrap().tracks().collect();
        tracks
            .into_iter()
            .map(move |track| (mechanics.clone(), track))
    })
}

/// Does each edge pass at the same picosecond of every revolution, without drift after a week? Is
/// the wait one picosecond if the head arrives a picosecond early, and a revolution less a
/// picosecond if it arrives a picosecond late?
#[test]
fn edges_do_not_drift() {
    for (mechanics, track) in odd_tracks() {
        let revolution = mechanics.revolution();
        let turns = 7 * 86_400_000_000_000_000 / revolution.0;
        for slot in 0..track.slots {
            let edge = mechanics.edge(&track, slot);
            assert!(edge < revolution);
            for turn in [1, 2, turns] {
                let passes = SimTime(turn * revolution.0) + edge;
                assert_eq!(mechanics.wait(passes, edge), Span::ZERO);
                assert_eq!(mechanics.wait(passes - Span(1), edge), Span(1));
                assert_eq!(
                    mechanics.wait(passes + Span(1), edge),
                    revolution.saturating_sub(Span(1))
                );
                for now in [passes, passes - Span(1), passes + Span(1)] {
                    let rotation = mechanics.rotation(&track, now);
                    assert_eq!(rotation.wait(slot), mechanics.wait(now, edge));
                    assert_eq!(rotation.next_slot(), mechanics.next_slot(&track, now));
                }
                assert_eq!(mechanics.next_slot(&track, passes), slot);
                assert_eq!(mechanics.next_slot(&track, passes - Span(1)), slot);
                assert_eq!(
                    mechanics.next_slot(&track, passes + Span(1)),
                    (slot + 1) % track.slots
                );
            }
        }
        assert_eq!(
            mechanics.edge(&track, track.slots),
            mechanics.edge(&track, 0)
        );
    }
}

/// Do a track's sectors follow each other without a gap? Do their durations add up to one
/// revolution and differ by at most a picosecond?
#[test]
fn sectors_share_the_revolution() {
    for (mechanics, track) in odd_tracks() {
        let revolution = mechanics.revolution().0;
        let rotation = mechanics.rotation(&track, SimTime(1));
        for slot in 1..=track.slots {
            let (length, last) = (rotation.length(0, slot).0, rotation.length(slot - 1, 1).0);
            assert_eq!(length, rotation.between(0, slot - 1).0 + last);
        }
        let edges: Vec<u64> = (0..=track.slots)
            .map(|slot| mechanics.edge(&track, slot).0)
            .collect();
        let lengths: Vec<u64> = edges
            .windows(2)
            .map(|pair| (pair[1] + revolution - pair[0]) % revolution)
            .collect();
        assert_eq!(lengths.iter().sum::<u64>(), revolution);
        let (least, most) = (lengths.iter().min().unwrap(), lengths.iter().max().unwrap());
        assert!(most - least <= 1, "{least} to {most} ps");
    }
}

/// Do back-to-back reads of every sector of a track, one by one, take one revolution however the
/// sectors' durations are rounded, and also a week later?
#[test]
fn back_to_back_sectors_are_seamless() {
    for (sectors, rpm) in [(7, 7_200.0), (334, 10_025.0), (97, 5_411.3)] {
        let profile = tiny_with(|p| {
            p.geometry.zones[0].sectors_per_track = PerSurface::Same(sectors);
            p.mechanics.as_mut().unwrap().rpm = rpm;
            p.cache.enabled = false;
            (p.bus.read_sector_ms, p.queue.depth) = (0.0, 65_536);
        });
        for start in [SimTime::ZERO, SimTime::from_ms(7.0 * 86_400_000.0)] {
            let mut drive = Drive::new(&profile).unwrap();
            let revolution = Span::from_ms(60_000.0 / rpm);
            for lbn in 0..sectors {
                drive.submit(start, read(u64::from(lbn), 1)).unwrap();
            }
            let first = drive.poll(SimTime(u64::MAX)).unwrap();
            let rest: Vec<_> = std::iter::from_fn(|| drive.poll(SimTime(u64::MAX))).collect();
            let begun = first.completed - first.breakdown.transfer;
            assert_eq!(rest.last().unwrap().completed.since(begun), revolution);
        }
    }
}

/// Does a read with force unit access that arrives during read-ahead, for the sector after the one
/// under the head, lose no revolution to rounding?
#[test]
fn a_read_during_read_ahead_loses_no_revolution() {
    for (sectors, rpm) in [(7, 7_200.0), (334, 10_025.0), (97, 5_411.3)] {
        let profile = tiny_with(|p| {
            p.geometry.zones[0].sectors_per_track = PerSurface::Same(sectors);
            p.mechanics.as_mut().unwrap().rpm = rpm;
            p.cache.read_ahead.until = traxtent_model::profile::ReadAheadUntil::TrackEnd;
            p.bus.read_sector_ms = 0.0;
        });
        let slot = 60_000.0 / rpm / f64::from(sectors);
        for amid in 2..u64::from(sectors) - 1 {
            let mut drive = Drive::new(&profile).unwrap();
            drive.submit(SimTime::ZERO, read(0, 1)).unwrap();
            drive.poll(drive.next_wakeup().unwrap()).unwrap();
            let now = SimTime::from_ms((amid as f64 + 0.5) * slot);
            let forced = Request {
                fua: true,
                ..read(amid + 1, 1)
            };
            drive.submit(now, forced).unwrap();
            let done = drive.poll(SimTime(u64::MAX)).unwrap();
            assert!(done.response().as_ms() < 1.6 * slot, "{done:?}");
        }
    }
}

fn curve(spec: &SeekSpec, cylinders: u32) -> SeekCurve {
    SeekCurve::new(spec, cylinders)
}

fn assert_near(span: Span, expected_ms: f64, within_ms: f64) {
    assert!(
        (span.as_ms() - expected_ms).abs() <= within_ms,
        "{} ms, expected {expected_ms}",
        span.as_ms()
    );
}

/// Does Lee's curve pass through its single-cylinder and full-stroke times, with the stated mean
/// over all pairs of cylinders, and is it monotonic?
#[test]
fn a_three_point_curve_keeps_its_points() {
    let spec = SeekSpec::ThreePointCurve {
        single_ms: 0.8,
        average_ms: 5.4,
        full_ms: 10.6,
    };
    let curve = curve(&spec, 10_000);
    assert_eq!(curve.stroke(), 9_999);
    assert_eq!(curve.time(0), Span::ZERO);
    assert_near(curve.time(1), 0.8, 1e-9);
    assert_near(curve.time(9_999), 10.6, 0.002);
    assert_near(curve.mean(), 5.4, 0.005);
    assert!((1..9_999).all(|d| curve.time(d) <= curve.time(d + 1)));
    assert_eq!(curve.time(1 << 30), curve.time(9_999), "beyond the stroke");
}

/// Does a three-point line pass through the single-cylinder time, the average at a third of the
/// stroke, and the full-stroke time?
#[test]
fn a_three_point_line_keeps_its_points() {
    let spec = SeekSpec::ThreePointLine {
        single_ms: 1.0,
        average_ms: 4.0,
        full_ms: 9.0,
    };
    let curve = curve(&spec, 3_001);
    assert_near(curve.time(1), 1.0, 1e-9);
    assert_near(curve.time(1_000), 4.0, 1e-9);
    assert_near(curve.time(2_000), 6.5, 1e-9);
    assert_near(curve.time(3_000), 9.0, 1e-9);
}

/// With the published constants (HP C2200A: 3.45 + 0.597 sqrt d below 616 cylinders, 10.8 + 0.012 d
/// from there), do the root and the line of Ruemmler and Wilkes's curve meet? Do measured times of
/// the first distances replace the curve?
#[test]
fn an_hpl_curve_is_continuous() {
    let hpl = |first_ms: Vec<f64>| SeekSpec::Hpl {
        division: 616,
        root_constant_ms: 3.45,
        root_factor_ms: 0.597,
        line_constant_ms: 10.8,
        line_factor_ms: 0.012,
        first_ms,
    };
    let plain = curve(&hpl(vec![]), 1_449);
    assert_near(plain.time(100), 9.42, 1e-9);
    assert_near(plain.time(616), 18.192, 1e-9);
    assert_near(plain.time(1_448), 28.176, 1e-9);
    assert!(plain.time(616).as_ms() - plain.time(615).as_ms() < 0.1);
    let measured = curve(&hpl(vec![1.0, 2.0]), 1_449);
    assert_near(measured.time(1), 1.0, 1e-9);
    assert_near(measured.time(2), 2.0, 1e-9);
    assert_eq!(measured.time(3), plain.time(3));
}

/// Do seek tables interpolate, extrapolate beyond their last point, and keep separate values for
/// writes?
#[test]
fn a_table_is_joined_by_lines() {
    let spec = SeekSpec::Table {
        read: vec![(2, 1.0), (6, 3.0), (10, 4.0)],
        write: Some(vec![(1, 2.0)]),
    };
    let spec = MechanicsSpec {
        rpm: 6_000.0,
        head_switch_ms: 0.5,
        write_settle_ms: 0.0,
        seek: spec,
    };
    let mechanics = Mechanics::new(&spec, 20);
    for (distance, ms) in [
        (0, 0.0),
        (1, 1.0),
        (2, 1.0),
        (3, 1.5),
        (6, 3.0),
        (8, 3.5),
        (10, 4.0),
        (14, 5.0),
    ] {
        assert_near(mechanics.seek_curve(false).time(distance), ms, 1e-9);
    }
    assert_near(mechanics.seek_curve(true).time(7), 2.0, 1e-9);
}

/// Is the time of a move the longer of seek and head switch? Is the settling time added before a
/// write, even if it is negative, without a total below zero?
#[test]
fn seek_and_head_switch_overlap() {
    let moved = |settle: f64, cylinder: u32, surface: u16, write: bool| {
        let seek = SeekSpec::Table {
            read: vec![(1, 0.4), (3, 1.2)],
            write: None,
        };
        let spec = MechanicsSpec {
            rpm: 6_000.0,
            head_switch_ms: 0.6,
            write_settle_ms: settle,
            seek,
        };
        let to = HeadPosition {
            cylinder: Cylinder(cylinder),
            surface: Surface(surface),
        };
        let moved = Mechanics::new(&spec, 10).reposition(HeadPosition::default(), to, write);
        assert_eq!(moved.total(), moved.seek + moved.head_switch + moved.settle);
        moved.total().as_ms()
    };
    for (settle, cylinder, surface, write, ms) in [
        (0.3, 0, 0, true, 0.0),
        (0.3, 0, 1, false, 0.6),
        (0.3, 0, 1, true, 0.9),
        (0.3, 1, 1, false, 0.6),
        (0.3, 3, 1, false, 1.2),
        (0.3, 3, 1, true, 1.5),
        (-0.3, 3, 1, true, 0.9),
        (-0.3, 3, 1, false, 1.2),
        (-0.5, 1, 1, true, 0.1),
        (-5.0, 3, 1, true, 0.0),
    ] {
        let moved_ms = moved(settle, cylinder, surface, write);
        assert!(
            (moved_ms - ms).abs() < 1e-9,
            "{settle} {cylinder} {surface} {write}: {moved_ms}, expected {ms}"
        );
    }
}

/// Reads `sectors` sectors at random places and times on the tiny drive, with one surface and 400
/// sectors per track. Returns the mean rotational latency of the reads on one track, in
/// revolutions, and the share of reads with a head switch.
fn random_reads(sectors: u32, zero_latency: bool) -> (f64, f64) {
    const TRACK_SECTORS: u32 = 400;
    const COUNT: u64 = 30_000;
    let profile = tiny_with(|p| {
        p.geometry.surfaces = 1;
        p.geometry.zones[0].sectors_per_track = PerSurface::Same(TRACK_SECTORS);
        p.access.zero_latency_read = zero_latency;
        p.cache.enabled = false;
    });
    let profile = Arc::new(profile);
    let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
    let mut rng = Rng::new(6);
    let (mut rotation, mut within, mut switches) = (0.0, 0.0, 0.0);
    for _ in 0..COUNT {
        // Each request finds the drive idle, so that only its own latency is measured.
        let mut drive = Drive::with_geometry(Arc::clone(&profile), Arc::clone(&geometry));
        // On any track but the last one, which has no next track.
        let lbn = Lbn(rng.below(geometry.capacity().0 - u64::from(TRACK_SECTORS)));
        drive
            .submit(SimTime(rng.below(1 << 40)), Request::read(lbn, sectors))
            .unwrap();
        let done = drive.poll(SimTime(u64::MAX)).unwrap();
        if done.breakdown.head_switch > Span::ZERO {
            switches += 1.0;
        } else {
            rotation += done.breakdown.rotation.as_ms() / 10.0;
            within += 1.0;
        }
    }
    // For a whole track, only aligned requests lie on one track.
    if sectors == TRACK_SECTORS {
        rotation = 0.0;
        within = COUNT as f64;
        for _ in 0..COUNT {
            let mut drive = Drive::with_geometry(Arc::clone(&profile), Arc::clone(&geometry));
            let lbn = Lbn(rng.below(10) * u64::from(TRACK_SECTORS));
            drive
                .submit(SimTime(rng.below(1 << 40)), Request::read(lbn, sectors))
                .unwrap();
            rotation += drive
                .poll(SimTime(u64::MAX))
                .unwrap()
                .breakdown
                .rotation
                .as_ms()
                / 10.0;
        }
    }
    (rotation / within, switches / COUNT as f64)
}

/// Claims T6 and T7 (paper T, Figure 3 and section 2.2): for requests on one track, is the mean
/// rotational latency (SPT-1)/(2 SPT) of a revolution at any size? With zero-latency access, is it
/// (1-f^2)/2 for a share f of the track, and so 0 for a whole track? Is the probability of a head
/// switch (N-1)/SPT for N sectors?
#[test]
fn rotational_latency_and_head_switches_follow_the_paper() {
    for sectors in [1, 40, 100, 200, 300, 400] {
        let share = f64::from(sectors) / 400.0;
        let (ordinary, switches) = random_reads(sectors, false);
        assert!(
            (ordinary - 399.0 / 800.0).abs() < 0.01,
            "{sectors} sectors: {ordinary}"
        );
        let (zero_latency, _) = random_reads(sectors, true);
        let expected = (1.0 - share * share) / 2.0;
        assert!(
            (zero_latency - expected).abs() < 0.01,
            "{sectors} sectors: {zero_latency}, not {expected}"
        );
        let expected = f64::from(sectors - 1) / 400.0;
        assert!(
            (switches - expected).abs() < 0.01,
            "{sectors} sectors: {switches}, not {expected}"
        );
    }
}

/// Claim P6 (paper P): is the expected distance to the nearest of m evenly spaced replicas on a
/// track of N sectors N/2m?
#[test]
fn replicas_shorten_the_wait_in_proportion() {
    let profile: Profile = builtin("atlas10k").unwrap();
    let geometry = Geometry::build(&profile.geometry).unwrap();
    let mechanics = Mechanics::new(profile.mechanics.as_ref().unwrap(), geometry.cylinders());
    let track = geometry.track_of(Lbn(0)).unwrap();
    let sector_ps = mechanics.revolution().0 as f64 / f64::from(track.slots);
    let mut rng = Rng::new(6);
    for replicas in [1, 2, 4, 32] {
        let mut sum = 0.0;
        for _ in 0..100_000 {
            let now = SimTime(rng.below(1 << 50));
            let slot = rng.below(u64::from(track.slots)) as u32;
            let nearest = (0..replicas).map(|replica| {
                let slot = (slot + replica * track.slots / replicas) % track.slots;
                mechanics.wait(now, mechanics.edge(&track, slot))
            });
            sum += nearest.min().unwrap().0 as f64 / sector_ps;
        }
        let (mean, expected) = (
            sum / 100_000.0,
            f64::from(track.slots) / f64::from(2 * replicas),
        );
        assert!(
            (mean / expected - 1.0).abs() < 0.01,
            "{replicas} replicas: {mean} sectors, not {expected}"
        );
    }
}
