//! Habits of the firmware that no single timing shows: found by trying.
//!
//! A sequence of reads is timed on the drive and run on a twin of each habit. The habit that comes
//! nearest is kept, if it comes nearer by more than chance does. Behind a steady host the twin's
//! spindle is in step with the drive's, and request is compared with request. An unsteady host
//! sends the next request a little early or late, which may cost or save a revolution: there the
//! twin is given a host as unsteady, and distributions are compared. The write watermark is found
//! by writes, request by request whatever the host.

use std::sync::Arc;

use super::Character;
use super::buffer::REQUEST_MAX;
use super::figure::Figure;
use super::fit::requests;
use super::stopwatch::{STEADY, Stopwatch};
use crate::drive::Drive;
use crate::geometry::Geometry;
use crate::probe::ProbeError;
use crate::request::Request;
use crate::stats::demerit;
use crate::units::{Lbn, SimTime};
use crate::workload::Rng;

/// A request of a sequence, as it went on the drive.
#[derive(Clone, Copy, Debug)]
struct Sample {
    request: Request,
    /// When it was sent, in milliseconds since the first.
    sent: f64,
    response: f64,
}

/// A habit: its name, and how to give it to a character.
struct Habit {
    name: &'static str,
    choices: &'static [f64],
    set: fn(&mut Character, f64),
    get: fn(&Character) -> f64,
}

fn is(value: f64) -> bool {
    value != 0.0
}

/// Requests of a sequential run: short ones come to many parts of the drive.
const RUN: u32 = 25;
/// Requests of the mixed and of the sequential part of the sequence; so many times as many where the host is
/// unsteady.
const MIXED: usize = 500;
const SEQUENTIAL: usize = 400;
const UNSTEADY: usize = 3;
/// Writes larger than a segment with which the write watermark is tried.
const REFILLS: usize = 32;
/// Hosts in front of the twin.
const HOSTS: u64 = 3;

const SWITCH: &[f64] = &[0.0, 1.0];

const SIXTEENTHS: &[f64] = &[
    0.0, 0.0625, 0.125, 0.1875, 0.25, 0.3125, 0.375, 0.4375, 0.5, 0.5625, 0.625, 0.6875, 0.75,
    0.8125, 0.875, 0.9375, 1.0,
];

const HABITS: &[Habit] = &[
    Habit {
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
    Habit {
        name: "cache.read_ahead.stop_in_sector",
        choices: SWITCH,
        set: |c, v| c.buffer.cache.read_ahead.stop_in_sector = is(v),
        get: |c| f64::from(u8::from(c.buffer.cache.read_ahead.stop_in_sector)),
    },
    Habit {
        name: "cache.read_ahead.on_idle_hit",
        choices: SWITCH,
        set: |c, v| c.buffer.cache.read_ahead.on_idle_hit = is(v),
        get: |c| f64::from(u8::from(c.buffer.cache.read_ahead.on_idle_hit)),
    },
    Habit {
        name: "cache.read_ahead.on_arrival",
        choices: SWITCH,
        set: |c, v| c.buffer.cache.read_ahead.on_arrival = is(v),
        get: |c| f64::from(u8::from(c.buffer.cache.read_ahead.on_arrival)),
    },
];

/// How much of a write is still in a full segment when the drive asks for more.
const WATERMARK: Habit = Habit {
    name: "cache.write_watermark",
    choices: SIXTEENTHS,
    set: |c, v| c.buffer.cache.write_watermark = v,
    get: |c| c.buffer.cache.write_watermark,
};

/// Tries the habits and keeps the best.
pub(super) fn habits(
    watch: &mut Stopwatch<'_>,
    character: &mut Character,
    end: Lbn,
) -> Result<(), ProbeError> {
    let (samples, turns) = sequence(watch, end)?;
    let Ok(geometry) = Geometry::build(&character.to_profile().geometry) else {
        return Ok(());
    };
    let geometry = Arc::new(geometry);
    let host = Host::of(watch);
    let distance = |character: &Character| {
        let profile = character.to_profile();
        let period = 60_000.0 / character.rpm();
        let start = turns * period + character.buffer.completion_ms;
        let drive = Drive::with_geometry(Arc::new(profile), geometry.clone());
        match &host {
            Host::Steady => in_step(drive, &samples, start, period),
            // Either alone is deceived: a twin that falls behind stays behind, and distributions hide what
            // seldom happens. Both count in proportion.
            Host::Unsteady(late) => {
                let apart = (0..HOSTS).map(|seed| as_unsteady(drive.clone(), &samples, late, seed));
                let apart = apart.sum::<f64>() / HOSTS as f64;
                (apart * in_step(drive, &samples, start, period)).sqrt()
            }
        }
    };
    let (share, least) = host.chance();
    let mut best = distance(character);
    for _ in 0..2 {
        for habit in HABITS {
            for &choice in habit.choices {
                let before = (habit.get)(character);
                if choice == before {
                    continue;
                }
                (habit.set)(character, choice);
                let tried = distance(character);
                if tried < share * best - least {
                    best = tried;
                } else {
                    (habit.set)(character, before);
                }
            }
        }
    }
    character.figures.push(Figure {
        name: "overheads.read_completion_ms".to_owned(),
        value: character.buffer.completion_ms,
        low: 0.0,
        high: character.buffer.hit_ms.min(character.overhead).max(0.0),
        unit: "ms",
        how: "the part of the overheads that comes last: the sixteenth of it with which a twin repeats a sequence of reads best",
        samples: samples.len() as u64,
    });
    character.notes.push(format!(
        "A twin repeats {} reads that were timed for it to {best:.3} ms, with the habits that do best: {}.",
        samples.len(),
        HABITS
            .iter()
            .filter(|habit| habit.choices.len() == 2)
            .map(|habit| format!("{} {}", habit.name, is((habit.get)(character))))
            .collect::<Vec<_>>()
            .join(", "),
    ));
    Ok(())
}

/// Finds the write watermark: writes of two segments are timed and run on a twin of each choice.
/// What they overwrite is lost. A segment that was measured wrong makes the watermark wrong, too.
pub(super) fn write_watermark(
    watch: &mut Stopwatch<'_>,
    character: &mut Character,
    end: Lbn,
) -> Result<(), ProbeError> {
    let Habit {
        name,
        choices,
        set,
        get,
    } = WATERMARK;
    let segment = character.buffer.cache.segment_sectors;
    let sectors = (2 * segment).min(REQUEST_MAX);
    if sectors <= segment || end.0 <= u64::from(sectors) {
        return Ok(());
    }
    let mut requests = Vec::new();
    for _ in 0..REFILLS {
        let lbn = Lbn(watch.rng.below(end.0 - u64::from(sectors)));
        // A write still in the buffer would be in the way of the next.
        requests.extend([Request::write(lbn, sectors), Request::flush()]);
    }
    let (began, turns) = begin(watch)?;
    let samples = time(watch, requests, began)?;
    let Ok(geometry) = Geometry::build(&character.to_profile().geometry) else {
        return Ok(());
    };
    let geometry = Arc::new(geometry);
    let period = 60_000.0 / character.rpm();
    let start = turns * period + character.buffer.completion_ms;
    let before = get(character);
    let mut distance = |choice: f64| {
        set(character, choice);
        let drive = Drive::with_geometry(Arc::new(character.to_profile()), geometry.clone());
        in_step(drive, &samples, start, period)
    };
    let usual = distance(before);
    let tried: Vec<(f64, f64)> = choices.iter().map(|&c| (c, distance(c))).collect();
    let nearest = tried.iter().copied().min_by(|a, b| a.1.total_cmp(&b.1));
    let (nearest, best) = nearest.expect("there are choices");
    let (share, least) = Host::of(watch).chance();
    let is_nearer = |apart: f64, other: f64| apart < share * other - least;
    let found = match is_nearer(best, usual) {
        true => nearest,
        false => before,
    };
    set(character, found);
    let mut as_good = tried
        .iter()
        .filter(|choice| !is_nearer(best, choice.1))
        .map(|choice| choice.0);
    let (low, high) = (as_good.next(), as_good.next_back());
    let low = low.expect("the nearest is as good");
    let high = high.unwrap_or(low);
    // Where all are as good, nothing has been measured.
    if (low, high) != (0.0, 1.0) {
        character.figures.push(Figure {
            name: name.to_owned(),
            value: found,
            low,
            high,
            unit: "of a segment",
            how: "writes of two segments: the sixteenth with which a twin repeats them best",
            samples: samples.len() as u64,
        });
    }
    Ok(())
}

/// Times a sequence of reads; also the spindle's angle when it began, in turns.
fn sequence(watch: &mut Stopwatch<'_>, end: Lbn) -> Result<(Vec<Sample>, f64), ProbeError> {
    let seed = watch.rng.bits();
    let (began, turns) = begin(watch)?;
    let mut samples = Vec::new();
    let times = match watch.deviation() < STEADY {
        true => 1,
        false => UNSTEADY,
    };
    for (workload, count) in [("mixed", MIXED * times), ("sequential", SEQUENTIAL * times)] {
        let requests = requests(workload, RUN, count, end, seed, false);
        samples.extend(time(watch, requests, began)?);
    }
    Ok((samples, turns))
}

/// Reads the reference, which ends whatever the drive does, so that drive and twin begin alike.
/// Returns the time and the spindle's angle then, in turns.
fn begin(watch: &mut Stopwatch<'_>) -> Result<(f64, f64), ProbeError> {
    watch.read_reference()?;
    let began = watch.now();
    Ok((began, watch.angle(began)))
}

/// Times requests, each sent when the one before it is complete.
fn time(
    watch: &mut Stopwatch<'_>,
    requests: Vec<Request>,
    began: f64,
) -> Result<Vec<Sample>, ProbeError> {
    let sample = |request| {
        let answer = watch.ask(request)?;
        Ok(Sample {
            request,
            sent: answer.sent - began,
            response: answer.response(),
        })
    };
    requests.into_iter().map(sample).collect()
}

/// The host in front of the drive.
enum Host {
    /// Its times are good to some microseconds.
    Steady,
    /// By how much it sees completions late, in milliseconds.
    Unsteady(Vec<f64>),
}

impl Host {
    fn of(watch: &Stopwatch<'_>) -> Host {
        if watch.deviation() < STEADY {
            return Host::Steady;
        }
        // What came more than a quarter of a millisecond late is an accident, not the host's manner.
        Host::Unsteady(
            watch
                .unsteady
                .iter()
                .copied()
                .filter(|late| late.abs() < 0.25)
                .collect(),
        )
    }

    /// How much nearer a twin comes by chance: to which part of its distance, and by how many
    /// milliseconds. Chance brings distributions nearer than requests.
    fn chance(&self) -> (f64, f64) {
        match self {
            Host::Steady => (0.98, 0.001),
            Host::Unsteady(_) => (0.9, 0.01),
        }
    }
}

/// By how much the twin's response differs from the drive's, on average, where both get each request at
/// the same angle; a difference counts for no more than a revolution.
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

/// How far apart the distributions of responses are, without the latest of each.
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
            times.truncate(times.len() - times.len() / 50);
            times
        };
        let drive: Vec<f64> = samples[first..last]
            .iter()
            .map(|sample| sample.response)
            .collect();
        let twin = times.get(first..last).unwrap_or(&[]);
        apart += demerit(&mut on_time(twin), &mut on_time(&drive)).unwrap_or(0.0);
    }
    apart / 2.0
}

/// When a drive completes a request; none if it refuses.
fn serve(drive: &mut Drive, now: SimTime, request: Request) -> Option<SimTime> {
    drive.submit(now, request).ok()?;
    loop {
        let wake = drive.next_wakeup()?;
        if let Some(completion) = drive.poll(wake) {
            return Some(completion.completed);
        }
    }
}
