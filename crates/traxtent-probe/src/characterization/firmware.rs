//! Firmware behaviour that no single timing shows, determined by trial.
//!
//! A sequence of reads is timed on the drive and simulated with a fitted profile for each
//! behaviour. The closest behaviour is kept, if the improvement is larger than chance would
//! explain. On a steady host, the simulated spindle is in phase with the drive's, and single
//! requests are compared. An unsteady host sends the next request slightly early or late, which may
//! cost or save a revolution. There a second simulation includes an equally unsteady host, and
//! distributions are compared as well. The write watermark is found by writes; for it, only single
//! requests are compared on every host.

use std::sync::Arc;

use super::Characterization;
use super::buffer::REQUEST_SECTORS_MAX;
use super::fit::requests;
use super::measurement::Measurement;
use super::stopwatch::{STEADY_MS, Stopwatch};
use crate::ProbeError;
use traxtent_model::drive::Drive;
use traxtent_model::geometry::Geometry;
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::stats::demerit;
use traxtent_units::{Lbn, SimTime};

/// A request of a sequence, with its times on the drive.
#[derive(Clone, Copy, Debug)]
struct Sample {
    request: Request,
    /// The time at which it was sent, in milliseconds since the first request.
    sent: f64,
    /// The response time in milliseconds.
    response: f64,
}

/// A firmware behaviour: its name, the values to try, and the functions that set and get the value
/// in a characterization.
struct FirmwareBehaviour {
    name: &'static str,
    choices: &'static [f64],
    set: fn(&mut Characterization, f64),
    get: fn(&Characterization) -> f64,
}

fn is_on(value: f64) -> bool {
    value != 0.0
}

/// The largest number of requests of a sequential run. Short runs reach many parts of the drive.
const RUN: u32 = 25;
/// The number of requests of the mixed part of the sequence.
const MIXED: usize = 500;
/// The number of requests of the sequential part.
const SEQUENTIAL: usize = 400;
/// The factor by which both numbers are multiplied if the host is unsteady.
const UNSTEADY: usize = 3;
/// The number of writes larger than a segment that are timed for the write watermark.
const REFILLS: usize = 32;
/// The number of simulated unsteady hosts.
const HOSTS: u64 = 3;

/// The deviation, in milliseconds, above which a reading counts as a rare disturbance that is not
/// typical of the host.
const TYPICAL_LATE_MS_MAX: f64 = 0.25;
/// The improvement that chance explains on a steady host: the remaining share of the distance, and
/// the difference in milliseconds.
const CHANCE_STEADY: (f64, f64) = (0.98, 0.001);
/// The same on an unsteady host. Chance affects the distance between distributions more than the
/// distance between single requests.
const CHANCE_UNSTEADY: (f64, f64) = (0.9, 0.01);
/// One in this many response times, the longest ones, is left out of a distribution as a
/// disturbance of the host.
const LONGEST_ONE_IN: usize = 50;

const OFF_ON: &[f64] = &[0.0, 1.0];

const SIXTEENTHS: &[f64] = &[
    0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.5625, 0.625, 0.6875, 0.75,
    0.8125, 0.875, 0.9375, 1.0,
];

const BEHAVIOURS: &[FirmwareBehaviour] = &[
    FirmwareBehaviour {
        name: "overheads.read_completion_ms",
        choices: SIXTEENTHS,
        set: |c, v| c.buffer.completion_ms = v * c.buffer.hit_ms.min(c.overhead),
        get: |c| {
            let most = c.buffer.hit_ms.min(c.overhead);
            if most > 0.0 {
                c.buffer.completion_ms / most
            } else {
                0.0
            }
        },
    },
    FirmwareBehaviour {
        name: "cache.read_ahead.stop_in_sector",
        choices: OFF_ON,
        set: |c, v| c.buffer.cache.read_ahead.stop_in_sector = is_on(v),
        get: |c| f64::from(u8::from(c.buffer.cache.read_ahead.stop_in_sector)),
    },
    FirmwareBehaviour {
        name: "cache.read_ahead.on_idle_hit",
        choices: OFF_ON,
        set: |c, v| c.buffer.cache.read_ahead.on_idle_hit = is_on(v),
        get: |c| f64::from(u8::from(c.buffer.cache.read_ahead.on_idle_hit)),
    },
    FirmwareBehaviour {
        name: "cache.read_ahead.on_arrival",
        choices: OFF_ON,
        set: |c, v| c.buffer.cache.read_ahead.on_arrival = is_on(v),
        get: |c| f64::from(u8::from(c.buffer.cache.read_ahead.on_arrival)),
    },
];

/// The share of a full segment that a write still holds when the drive requests more data.
const WATERMARK: FirmwareBehaviour = FirmwareBehaviour {
    name: "cache.write_watermark",
    choices: SIXTEENTHS,
    set: |c, v| c.buffer.cache.write_watermark = v,
    get: |c| c.buffer.cache.write_watermark,
};

/// Tries all choices of each behaviour and keeps the best.
pub(super) fn firmware(
    watch: &mut Stopwatch<'_>,
    measured: &mut Characterization,
    end: Lbn,
) -> Result<(), ProbeError> {
    let (samples, turns) = sequence(watch, end)?;
    let Ok(geometry) = Geometry::build(&measured.to_profile().geometry) else {
        return Ok(());
    };
    let geometry = Arc::new(geometry);
    let host = Host::of(watch);
    let distance = |measured: &Characterization| {
        let profile = measured.to_profile();
        let period = 60_000.0 / measured.rpm();
        let start = turns * period + measured.buffer.completion_ms;
        let drive = Drive::with_geometry(Arc::new(profile), geometry.clone());
        match &host {
            Host::Steady => in_step(drive, &samples, start, period),
            // Either measure alone is misleading: a simulation that falls behind stays behind, and
            // distributions hide rare events. The geometric mean gives both the same weight.
            Host::Unsteady(late) => {
                let apart = (0..HOSTS).map(|seed| as_unsteady(drive.clone(), &samples, late, seed));
                let apart = apart.sum::<f64>() / HOSTS as f64;
                (apart * in_step(drive, &samples, start, period)).sqrt()
            }
        }
    };
    let (share, least) = host.chance();
    let mut best = distance(measured);
    for _ in 0..2 {
        for behaviour in BEHAVIOURS {
            for &choice in behaviour.choices {
                let before = (behaviour.get)(measured);
                if choice == before {
                    continue;
                }
                (behaviour.set)(measured, choice);
                let tried = distance(measured);
                if tried < share * best - least {
                    best = tried;
                } else {
                    (behaviour.set)(measured, before);
                }
            }
        }
    }
    measured.figures.push(Measurement {
        name: "overheads.read_completion_ms".to_owned(),
        value: measured.buffer.completion_ms,
        low: 0.0,
        high: measured.buffer.hit_ms.min(measured.overhead).max(0.0),
        unit: "ms",
        how: "the part of the overheads after the transfer, in sixteenths: the value with which the fitted profile best reproduces a sequence of reads",
        samples: samples.len() as u64,
    });
    measured.notes.push(format!(
        "The fitted profile reproduces a sequence of {} timed reads to {best:.3} ms, with the firmware behaviour that fits best: {}.",
        samples.len(),
        BEHAVIOURS
            .iter()
            .filter(|behaviour| behaviour.choices.len() == 2)
            .map(|behaviour| format!("{} {}", behaviour.name, is_on((behaviour.get)(measured))))
            .collect::<Vec<_>>()
            .join(", "),
    ));
    Ok(())
}

/// Finds the write watermark: times writes of up to two segments, and simulates them with a fitted
/// profile for each choice. The overwritten data is lost. A wrong segment size also makes the
/// watermark wrong.
pub(super) fn write_watermark(
    watch: &mut Stopwatch<'_>,
    measured: &mut Characterization,
    end: Lbn,
) -> Result<(), ProbeError> {
    let FirmwareBehaviour {
        name,
        choices,
        set,
        get,
    } = WATERMARK;
    let segment = measured.buffer.cache.segment_sectors;
    let sectors = (2 * segment).min(REQUEST_SECTORS_MAX);
    if sectors <= segment || end.0 <= u64::from(sectors) {
        return Ok(());
    }
    let mut requests = Vec::new();
    for _ in 0..REFILLS {
        let lbn = Lbn(watch.rng.below(end.0 - u64::from(sectors)));
        // A write that is still in the buffer would delay the next.
        requests.extend([Request::write(lbn, sectors), Request::flush()]);
    }
    let (began, turns) = begin(watch)?;
    let samples = time(watch, requests, began)?;
    let Ok(geometry) = Geometry::build(&measured.to_profile().geometry) else {
        return Ok(());
    };
    let geometry = Arc::new(geometry);
    let period = 60_000.0 / measured.rpm();
    let start = turns * period + measured.buffer.completion_ms;
    let before = get(measured);
    let mut distance = |choice: f64| {
        set(measured, choice);
        let drive = Drive::with_geometry(Arc::new(measured.to_profile()), geometry.clone());
        in_step(drive, &samples, start, period)
    };
    let usual = distance(before);
    let tried: Vec<(f64, f64)> = choices.iter().map(|&c| (c, distance(c))).collect();
    let nearest = tried.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    let (nearest, best) = nearest.expect("there are choices");
    let (share, least) = Host::of(watch).chance();
    let is_nearer = |apart: f64, other: f64| apart < share * other - least;
    let found = if is_nearer(best, usual) {
        nearest
    } else {
        before
    };
    set(measured, found);
    let mut as_good = tried
        .iter()
        .filter(|choice| !is_nearer(best, choice.1))
        .map(|choice| choice.0);
    let (low, high) = (as_good.next(), as_good.next_back());
    let low = low.expect("the nearest is as good");
    let high = high.unwrap_or(low);
    // If all choices fit equally well, nothing has been measured.
    if (low, high) != (0.0, 1.0) {
        measured.figures.push(Measurement {
            name: name.to_owned(),
            value: found,
            low,
            high,
            unit: "of a segment",
            how: "writes of up to two segments: the sixteenth with which the fitted profile best reproduces them",
            samples: samples.len() as u64,
        });
    }
    Ok(())
}

/// Times a sequence of reads. Also returns the spindle's angle at its beginning, in revolutions.
fn sequence(watch: &mut Stopwatch<'_>, end: Lbn) -> Result<(Vec<Sample>, f64), ProbeError> {
    let seed = watch.rng.bits();
    let (began, turns) = begin(watch)?;
    let mut samples = Vec::new();
    let times = if watch.deviation() < STEADY_MS {
        1
    } else {
        UNSTEADY
    };
    for (workload, count) in [("mixed", MIXED * times), ("sequential", SEQUENTIAL * times)] {
        let requests = requests(workload, RUN, count, end, seed, false);
        samples.extend(time(watch, requests, began)?);
    }
    Ok((samples, turns))
}

/// Reads the reference sector, which ends all other activity of the drive. Drive and simulation
/// then begin in the same state. Returns the time and the spindle's angle, in revolutions.
fn begin(watch: &mut Stopwatch<'_>) -> Result<(f64, f64), ProbeError> {
    watch.read_reference()?;
    let began = watch.now();
    Ok((began, watch.angle(began)))
}

/// Times requests. Each is sent when the previous one is complete. `began` is the time from which
/// their sending is counted, in milliseconds.
fn time(
    watch: &mut Stopwatch<'_>,
    requests: Vec<Request>,
    began: f64,
) -> Result<Vec<Sample>, ProbeError> {
    let sample = |request| {
        let timing = watch.send(request)?;
        Ok(Sample {
            request,
            sent: timing.sent - began,
            response: timing.response(),
        })
    };
    requests.into_iter().map(sample).collect()
}

/// The host that sends requests to the drive.
enum Host {
    /// Its times are accurate to a few microseconds.
    Steady,
    /// It receives completions late. These are samples of the delay, in milliseconds.
    Unsteady(Vec<f64>),
}

impl Host {
    fn of(watch: &Stopwatch<'_>) -> Host {
        if watch.deviation() < STEADY_MS {
            return Host::Steady;
        }
        Host::Unsteady(
            watch
                .deviations_ms
                .iter()
                .copied()
                .filter(|late| late.abs() < TYPICAL_LATE_MS_MAX)
                .collect(),
        )
    }

    /// The improvement that chance explains on this host.
    fn chance(&self) -> (f64, f64) {
        match self {
            Host::Steady => CHANCE_STEADY,
            Host::Unsteady(_) => CHANCE_UNSTEADY,
        }
    }
}

/// Returns the mean difference between the simulated response times and those of the drive, if both
/// receive each request at the same angle. A difference counts for at most a revolution.
fn in_step(mut drive: Drive, samples: &[Sample], start: f64, period: f64) -> f64 {
    let mut free = SimTime::ZERO;
    let mut sum = 0.0;
    for sample in samples {
        let now = SimTime::from_ms(start + sample.sent).max(free);
        let Some(completed) = serve(&mut drive, now, sample.request) else {
            continue;
        };
        free = completed;
        sum += (completed.since(now).as_ms() - sample.response)
            .abs()
            .min(period);
    }
    sum / samples.len() as f64
}

/// Returns the distance between the response times of the drive and those simulated with an
/// unsteady host: the mean of the demerits of the mixed and of the sequential part, without the
/// longest times.
fn as_unsteady(mut drive: Drive, samples: &[Sample], late: &[f64], seed: u64) -> f64 {
    let mut rng = Rng::new(seed);
    let mut now = SimTime::ZERO;
    let mut times = Vec::new();
    for sample in samples {
        let Some(completed) = serve(&mut drive, now, sample.request) else {
            continue;
        };
        let late = late[rng.below(late.len() as u64) as usize];
        let seen = SimTime::from_ms(completed.as_ms() + late).max(now);
        times.push(seen.since(now).as_ms());
        now = seen.max(completed);
    }
    let mut apart = 0.0;
    let mixed = samples.len() * MIXED / (MIXED + SEQUENTIAL);
    for (first, last) in [(0, mixed), (mixed, samples.len())] {
        let on_time = |times: &[f64]| {
            let mut times = times.to_vec();
            times.sort_unstable_by(f64::total_cmp);
            times.truncate(times.len() - times.len() / LONGEST_ONE_IN);
            times
        };
        let drive: Vec<f64> = samples[first..last]
            .iter()
            .map(|sample| sample.response)
            .collect();
        let fitted = times.get(first..last).unwrap_or(&[]);
        apart += demerit(&mut on_time(fitted), &mut on_time(&drive)).unwrap_or(0.0);
    }
    apart / 2.0
}

/// Returns the time at which a drive completes a request, or `None` if it refuses the request.
fn serve(drive: &mut Drive, now: SimTime, request: Request) -> Option<SimTime> {
    drive.submit(now, request).ok()?;
    loop {
        let wake = drive.next_wakeup()?;
        if let Some(completion) = drive.poll(wake) {
            return Some(completion.completed);
        }
    }
}
