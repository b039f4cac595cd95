//! Calibration of drives whose true figures are known, from simulated traces with noise.

use traxtent_calibrate::{Calibration, MeasuredTrace, Options, calibrate};
use traxtent_model::drive::Drive;
use traxtent_model::mechanics::SeekCurve;
use traxtent_model::profile::{Profile, SeekSpec, builtin};
use traxtent_sim::{Host, simulate};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Rng, Span};
use traxtent_workload::{Replay, ReplayPace, TraceRecord};

/// The number of requests in a trace. A quarter of them would leave the seek curve undetermined.
const REQUESTS: usize = 4000;

/// The first seed of the perturbations. Seeds below 80 were used to choose the width of
/// the intervals.
const FIRST_SEED: u64 = 1000;

/// The standard deviation of the noise in the measured times.
const NOISE_MS: f64 = 0.03;

/// Returns a number from the standard normal distribution (Box and Muller's method).
fn normal(rng: &mut Rng) -> f64 {
    let (one, other) = (1.0 - rng.fraction(), rng.fraction());
    (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * other).cos()
}

/// Returns a drive whose overheads are far enough from 0 that a random factor changes them
/// noticeably.
fn drive_with_overheads() -> Profile {
    let mut profile = builtin("atlas10k").unwrap();
    let of = &mut profile.overheads;
    for hit in [
        &mut of.read_hit_after_read_ms,
        &mut of.read_hit_after_write_ms,
        &mut of.write_hit_after_read_ms,
        &mut of.write_hit_after_write_ms,
    ] {
        *hit = 0.5;
    }
    (of.read_miss_after_read_ms, of.read_miss_after_write_ms) = (1.0, 1.0);
    profile
}

/// Returns a drive with times changed at random, within what is usual for drives of the same years.
fn perturbed_times(start: &Profile, cylinders: u32, rng: &mut Rng) -> Profile {
    let mut profile = start.clone();
    let of = &mut profile.overheads;
    for overhead in [
        &mut of.read_hit_after_read_ms,
        &mut of.read_hit_after_write_ms,
        &mut of.read_miss_after_read_ms,
        &mut of.read_miss_after_write_ms,
        &mut of.write_hit_after_read_ms,
        &mut of.write_hit_after_write_ms,
    ] {
        *overhead *= (1.0 + 0.25 * normal(rng)).max(0.1);
    }
    profile.bus.read_sector_ms *= 1.0 + 0.1 * normal(rng);
    profile.bus.write_sector_ms *= 1.0 + 0.1 * normal(rng);
    let mechanics = profile.mechanics.as_mut().unwrap();
    mechanics.head_switch_ms *= (1.0 + 0.2 * normal(rng)).max(0.1);
    let (level, tilt) = (1.0 + 0.15 * normal(rng), 0.1 * normal(rng));
    let share = |distance: u32| {
        let place = f64::from(distance).ln() / f64::from(cylinders).ln();
        (level + tilt * (2.0 * place - 1.0)).max(0.3)
    };
    let scaled = |points: &[(u32, f64)]| {
        let points = points.iter();
        points
            .map(|&(distance, ms)| (distance, ms * share(distance)))
            .collect()
    };
    let SeekSpec::Table { read, write } = &mechanics.seek else {
        panic!("the drive has a table of seek times");
    };
    mechanics.seek = SeekSpec::Table {
        read: scaled(read),
        write: write.as_deref().map(scaled),
    };
    profile
}

/// Returns the trace of a drive: runs of sequential requests, requests near the one before, and
/// random ones. A third of the requests are writes. The pauses that the trace records exceed the
/// true ones by up to a revolution, so that, as in real traces, they do not carry the spindle's
/// phase.
fn trace_of(drive: &Profile, rng: &mut Rng) -> MeasuredTrace {
    let drive = Drive::new(drive).unwrap();
    let capacity = drive.geometry().capacity().0;
    let (mut next, mut is_read) = (0, true);
    let mut records: Vec<TraceRecord> = (0..REQUESTS)
        .map(|_| {
            let kind = rng.fraction();
            let sectors = [2, 4, 8, 16, 32][rng.below(5) as usize];
            if kind < 0.5 {
                is_read = rng.chance(0.67);
                next = rng.below(capacity);
            } else if kind < 0.65 {
                next += rng.below(400);
            }
            let lbn = next.min(capacity - u64::from(sectors));
            next = lbn + u64::from(sectors);
            let request = match is_read {
                true => Request::read(Lbn(lbn), sectors),
                false => Request::write(Lbn(lbn), sectors),
            };
            TraceRecord {
                arrival: None,
                pause: Some(Span::from_ms(2.0 + 28.0 * rng.fraction())),
                completed: None,
                measured: None,
                device: 0,
                request,
            }
        })
        .collect();
    let true_records = records.clone().into_iter().map(Ok);
    let mut source = Replay::new(true_records, ReplayPace::SemiClosed);
    simulate(&mut Host::new(vec![drive]), &mut source, |outcome| {
        let ms = outcome.response().as_ms() + NOISE_MS * normal(rng);
        records[outcome.arrival.tag as usize].measured = Some(Span::from_ms(ms.max(0.001)));
        true
    })
    .unwrap();
    for record in &mut records {
        let jitter = Span::from_ms(6.0 * rng.fraction());
        record.pause = record.pause.map(|pause| pause + jitter);
    }
    MeasuredTrace::new(records, ReplayPace::SemiClosed)
}

fn calibrated(start: &Profile, truth: &Profile, keep: &[&str], rng: &mut Rng) -> Calibration {
    let options = Options {
        held_out: 0.5,
        keep: keep.iter().map(|&key| key.to_owned()).collect(),
        source: "a simulated trace".to_owned(),
    };
    calibrate(start, &[trace_of(truth, rng)], &options, &()).unwrap()
}

/// Returns a figure of the drive that made the trace.
fn true_value(truth: &Profile, name: &str, cylinders: u32) -> f64 {
    if let Some(distance) = name.strip_prefix("mechanics.seek over ") {
        let distance = distance.split(' ').next().unwrap().parse().unwrap();
        let seek = &truth.mechanics.as_ref().unwrap().seek;
        return SeekCurve::new(seek, cylinders).time(distance).as_ms();
    }
    truth.value_text(name).unwrap().parse().unwrap()
}

/// Perturbs the times of a drive, and calibrates the unperturbed drive with a noisy trace of the
/// perturbed one. Do the stated intervals contain the true figures in 95 % of the cases?
#[test]
fn intervals_contain_the_truth() {
    let start = drive_with_overheads();
    let cylinders = Drive::new(&start).unwrap().geometry().cylinders();
    let runs = testkit::repeats(2);
    let (mut inside, mut all, mut better) = (0, 0, 0);
    let mut misses: std::collections::BTreeMap<String, u32> = std::collections::BTreeMap::new();
    for seed in FIRST_SEED..FIRST_SEED + runs {
        let mut rng = Rng::new(seed);
        let truth = perturbed_times(&start, cylinders, &mut rng);
        let found = calibrated(
            &start,
            &truth,
            &["access", "bus.delivery", "cache"],
            &mut rng,
        );
        better += u64::from(found.is_improvement());
        for figure in found.figures.iter().filter(|one| one.is_determined) {
            let truth = true_value(&truth, &figure.name, cylinders);
            let is_inside = (figure.value_ms - truth).abs() <= figure.plus_minus_ms;
            inside += u64::from(is_inside);
            all += 1;
            if !is_inside {
                *misses.entry(figure.name.clone()).or_default() += 1;
                eprintln!("seed {seed}: {figure:?}, the truth is {truth:.4}");
            }
        }
    }
    eprintln!(
        "{runs} seeds from {FIRST_SEED}: {inside} of {all} figures are inside, {better} drives agree \
         better; outside: {misses:?}"
    );
    assert!(all >= 10 * runs, "{all} figures are determined");
    // In a few runs, some more may be outside by chance.
    let share = inside as f64 / all as f64;
    let slack = 2.0 * (0.05 * 0.95 / all as f64).sqrt();
    assert!(share >= 0.95 - slack, "{share}");
}

/// Changes settings of a drive's buffer. In the part held out, does a calibration reduce the
/// disagreements on hits to at most those of the true drive with its own trace? A read from the
/// media that needs no seek can be as fast as a hit by chance, so the true drive has a few. Outside
/// a soak, only the first change is tried.
#[test]
fn buffers_are_found() {
    let start = builtin("atlas10k").unwrap();
    let changes: [fn(&mut Profile); 4] = [
        |of| {
            of.cache.read_ahead.whole_track = true;
            of.cache.writes_update = true;
        },
        |of| of.cache.read_ahead.sequential_only = true,
        |of| {
            of.cache.drop_delivered = true;
            of.cache.segments = 2;
        },
        |of| of.cache.enabled = false,
    ];
    for (seed, change) in changes
        .iter()
        .enumerate()
        .take(testkit::repeats(1).min(4) as usize)
    {
        let mut truth = start.clone();
        change(&mut truth);
        let mut rng = Rng::new(seed as u64);
        let keep = ["mechanics", "overheads", "bus", "access.zero_latency_read"];
        let everything = ["mechanics", "overheads", "bus", "access", "cache"];
        let unchanged = calibrated(&truth, &truth, &everything, &mut rng.clone());
        let by_chance = unchanged.held_out_before.disagreements;
        let found = calibrated(&start, &truth, &keep, &mut rng);
        let (before, after) = (&found.held_out_before, &found.held_out_after);
        eprintln!(
            "seed {seed}: {} of {} reads disagree, {} before, {by_chance} with the true drive: {:?}",
            after.disagreements, after.reads, before.disagreements, found.settings
        );
        assert!(
            before.disagreements > 20.max(2 * by_chance),
            "the change hardly matters"
        );
        assert!(after.disagreements <= by_chance, "seed {seed}");
    }
}

/// Do figures that are to be kept stay the same while others of the same table change?
#[test]
fn kept_figures_stay() {
    let start = drive_with_overheads();
    let mut rng = Rng::new(1);
    let mut truth = start.clone();
    truth.overheads.read_hit_after_read_ms = 0.8;
    truth.overheads.write_hit_after_read_ms = 0.8;
    let keep = ["access", "cache", "overheads.read_hit_after_read_ms"];
    let found = calibrated(&start, &truth, &keep, &mut rng)
        .profile
        .overheads;
    let kept = start.overheads.read_hit_after_read_ms;
    assert_eq!(found.read_hit_after_read_ms, kept);
    assert!(
        (found.write_hit_after_read_ms - 0.8).abs() < 0.05,
        "{found:?}"
    );
}

/// Do two calibrations with the same trace give the same profile?
#[test]
fn calibrations_repeat() {
    let start = builtin("atlas10k").unwrap();
    let run = || {
        let mut rng = Rng::new(7);
        let found = calibrated(&start, &start, &["cache", "access"], &mut rng);
        found.profile.to_toml()
    };
    assert_eq!(run(), run());
}
