//! The minimum time in which a drive moves from one sector to another.
//!
//! This is Worthington's MTBRC ("On-line extraction of SCSI disk drive parameters", 1995): of all
//! times between the completions of two requests, the minimum contains no rotational wait. Here the
//! second request is sent a trial time before its sector has passed. It either catches the sector
//! or completes a revolution late, and bisection finds the minimum. Each trial gives one bit,
//! however noisy its time is, because only whole revolutions are distinguished.

use super::measurement::{Estimate, wrapped};
use super::stopwatch::{OFF_ANGLE_MS, Stopwatch, line};
use crate::ProbeError;
use traxtent_units::Lbn;
use traxtent_units::request::Op;
use traxtent_units::stats::median;
use traxtent_units::turns::fraction;

/// The number of reads that determine the angle of the second sector in [`min_time`].
const ANGLE_READS: usize = 5;
/// The number of requests that do so in [`min_time_by`].
const ANGLE_REQUESTS: usize = 7;
/// The number of trials after which the result is no longer checked.
const CHECKED_TRIALS_MAX: u64 = 60;
/// The largest number of trials. A search in a correct range takes about ten.
const TRIALS_MAX: u64 = 80;
/// The largest number of attempts at a trial. It is repeated if its reading is off the angle.
const TRIAL_ATTEMPTS: u32 = 8;

/// The number of reads that determine the angle of the sector in [`min_time_again`].
const AGAIN_ANGLE_READS: usize = 25;
/// The distance by which the lower bound is reduced if it catches the sector, as a multiple of the
/// desired precision.
const BACK_PRECISIONS: f64 = 4.0;

/// A pair of sectors, and the parameters of the search.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorPair {
    pub(super) from: Lbn,
    pub(super) to: Lbn,
    /// The number of sectors of the second request.
    pub(super) sectors: u32,
    /// The expected bounds of the time, in milliseconds. The search extends them if they do not
    /// hold.
    pub(super) lower: f64,
    pub(super) upper: f64,
    /// The desired precision, in milliseconds.
    pub(super) within: f64,
}

/// Finds the minimum response time of a read of sector `to` directly after one of sector `from`.
pub(super) fn min_time(
    watch: &mut Stopwatch<'_>,
    pair: SectorPair,
) -> Result<Estimate, ProbeError> {
    let target = watch.sector_angle(pair.to, ANGLE_READS)?;
    let media = watch.media;
    search(watch, pair, target, media, media)
}

/// The same as [`min_time`] for other kinds of requests, each with or without FUA.
pub(super) fn min_time_by(
    watch: &mut Stopwatch<'_>,
    pair: SectorPair,
    from: (Op, bool),
    to: (Op, bool),
) -> Result<Estimate, ProbeError> {
    let mut angles = Vec::new();
    for _ in 0..ANGLE_REQUESTS {
        watch.refresh()?;
        let timing = watch.media_by(pair.to, pair.sectors, to)?;
        angles.push(watch.angle(timing.completed));
    }
    let around: Vec<f64> = angles
        .iter()
        .map(|angle| wrapped(angle - angles[0]))
        .collect();
    let middle = median(&around);
    let near: Vec<f64> = around
        .into_iter()
        .filter(|a| (a - middle).abs() * watch.period < OFF_ANGLE_MS)
        .collect();
    let target = Estimate::of(&near);
    let target = Estimate {
        value: fraction(angles[0] + target.value),
        ..target
    };
    search(watch, pair, target, from, to)
}

/// A read of a sector that has just been read.
#[derive(Clone, Copy, Debug)]
struct RepeatedRead {
    sent: f64,
    completed: f64,
}

/// Finds the minimum response time of a read directly after another read of the same sector, near a
/// rough value, on a host that is too unsteady for [`min_time`] to be exact.
///
/// Every read is a trial of the time from sending it to the passage of its sector, and also a
/// measurement of that passage. All measurements together are far more accurate than those before a
/// single trial, so the trials are evaluated at the end. The result is the time that best separates
/// the trials that caught the sector from those that did not, except for the few that were
/// disturbed.
pub(super) fn min_time_again(
    watch: &mut Stopwatch<'_>,
    lbn: Lbn,
    rough: f64,
) -> Result<Estimate, ProbeError> {
    /// Half the desired width of the confidence interval, in milliseconds.
    const HALF_WIDTH_MS: f64 = 0.001;
    /// The minimum and the maximum number of reads.
    const READS: (f64, f64) = (300.0, 3_000.0);
    // Trials are on both sides of the expected time. Most are above it, because a miss costs an
    // additional revolution.
    let unsure = 2.0 * watch.deviation();
    let angle = watch.sector_angle(lbn, AGAIN_ANGLE_READS)?.value;
    let wanted = 1.96 * watch.deviation() / HALF_WIDTH_MS;
    let count = (wanted * wanted).clamp(READS.0, READS.1) as usize;
    let mut reads = Vec::with_capacity(count);
    for _ in 0..count {
        watch.refresh()?;
        let lead = rough + unsure * (3.0 * watch.rng.fraction() - 1.0);
        let due = watch.next(watch.now() + lead, angle);
        watch.wait_until(due - lead);
        let timing = watch.media(lbn, 1)?;
        reads.push(RepeatedRead {
            sent: timing.sent,
            completed: timing.completed,
        });
    }
    Ok(judge(&reads, rough, watch.period))
}

/// Separates the trials that caught their sector from those that did not.
fn judge(reads: &[RepeatedRead], rough: f64, period: f64) -> Estimate {
    let first = reads[0].completed;
    let phases: Vec<f64> = reads
        .iter()
        .map(|read| wrapped((read.completed - first) / period))
        .collect();
    let middle = median(&phases);
    // A reading that came late is neither a measurement nor a trial.
    let timely: Vec<(f64, RepeatedRead)> = reads
        .iter()
        .zip(&phases)
        .filter(|(_, phase)| (wrapped(*phase - middle) * period).abs() < OFF_ANGLE_MS)
        .map(|(read, _)| {
            let turn = ((read.completed - first) / period - middle).round();
            (turn, *read)
        })
        .collect();
    let points: Vec<(f64, f64)> = timely
        .iter()
        .map(|(turn, read)| (*turn, read.completed))
        .collect();
    let (at, turn_ms, deviation) = line(&points);
    let mut trials: Vec<(f64, bool)> = timely
        .iter()
        .map(|(turn, read)| {
            let before = at + turn * turn_ms - read.sent;
            if before < rough + 0.5 * period {
                (before, true)
            } else {
                (before - period, false)
            }
        })
        .collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    // For each cut, the number of trials below it that were too late, as they should be, minus
    // those that were not.
    let mut right = 0;
    let (mut best, mut cut) = (0, 0);
    for (index, (_, caught)) in trials.iter().enumerate() {
        right += if *caught { -1 } else { 1 };
        if right > best {
            (best, cut) = (right, index + 1);
        }
    }
    let below = trials[cut.saturating_sub(1)].0;
    let above = trials[cut.min(trials.len() - 1)].0;
    Estimate {
        value: (below + above) / 2.0,
        half_width: (above - below) / 2.0 + 1.96 * deviation / (points.len() as f64).sqrt(),
        samples: reads.len() as u64,
    }
}

/// Finds the minimum time by bisection. `target` is the angle at which the second sector has
/// passed.
fn search(
    watch: &mut Stopwatch<'_>,
    pair: SectorPair,
    target: Estimate,
    from: (Op, bool),
    to: (Op, bool),
) -> Result<Estimate, ProbeError> {
    let SectorPair {
        mut lower,
        mut upper,
        within,
        ..
    } = pair;
    let (mut lower_fails, mut upper_catches) = (false, false);
    let mut samples = 0;
    let mut checked = false;
    let mut step = (upper - lower).max(within);
    loop {
        if upper - lower <= within {
            if !upper_catches {
                lower = upper;
                upper += step;
                step *= 2.0;
                lower_fails = true;
            } else if !lower_fails {
                upper = lower;
                lower = (lower - step).max(0.0);
                step *= 2.0;
                upper_catches = true;
                if upper <= 0.0 {
                    break;
                }
            } else if !checked && samples < CHECKED_TRIALS_MAX {
                // One failure in a thousand is due to an additional revolution that the drive
                // itself caused, so the trial at the lower bound is repeated.
                checked = true;
                samples += 1;
                if catches(watch, &pair, target.value, lower, (from, to))? {
                    upper = lower;
                    lower = (lower - BACK_PRECISIONS * within).max(0.0);
                    lower_fails = false;
                    checked = false;
                }
                continue;
            } else {
                break;
            }
        }
        if samples >= TRIALS_MAX {
            break;
        }
        let middle = (lower + upper) / 2.0;
        samples += 1;
        if catches(watch, &pair, target.value, middle, (from, to))? {
            upper = middle;
            upper_catches = true;
        } else {
            lower = middle;
            lower_fails = true;
        }
    }
    Ok(Estimate {
        value: (lower + upper) / 2.0,
        half_width: (upper - lower) / 2.0 + target.half_width * watch.period,
        samples,
    })
}

/// Returns whether a request sent `lead` milliseconds before its sector has passed catches it. Also
/// returns true if every reading is off the angle.
fn catches(
    watch: &mut Stopwatch<'_>,
    pair: &SectorPair,
    angle: f64,
    lead: f64,
    (from, to): ((Op, bool), (Op, bool)),
) -> Result<bool, ProbeError> {
    let mut late = false;
    for _ in 0..TRIAL_ATTEMPTS {
        watch.refresh()?;
        watch.media_by(pair.from, 1, from)?;
        let now = watch.now();
        let due = watch.next(now + lead, angle);
        watch.wait_until(due - lead);
        let timing = watch.media_by(pair.to, pair.sectors, to)?;
        let turns = (timing.completed - due) / watch.period;
        if (wrapped(turns) * watch.period).abs() <= OFF_ANGLE_MS {
            late = turns.round() >= 1.0;
            break;
        }
    }
    Ok(!late)
}
