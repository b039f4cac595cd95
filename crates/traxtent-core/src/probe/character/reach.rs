//! The least time in which a drive goes from one sector to another.
//!
//! Worthington's MTBRC ("On-line extraction of SCSI disk drive parameters", 1995): of all times
//! between the completions of two requests, the least contains no rotational wait. Here the second
//! request is sent when its sector is due in a time that is tried: it either catches the sector or
//! completes a revolution late, and halving the times that remain finds the least. Each trial gives
//! one bit whatever noise its time has, as only whole revolutions are told apart.

use super::figure::{Estimate, fraction, median, wrapped};
use super::stopwatch::{OFF_ANGLE, Stopwatch, line};
use crate::probe::ProbeError;
use crate::request::Op;
use crate::units::Lbn;

/// Which pair of sectors, and how closely.
#[derive(Clone, Copy, Debug)]
pub(super) struct Journey {
    pub(super) from: Lbn,
    pub(super) to: Lbn,
    /// Of the second request.
    pub(super) sectors: u32,
    /// Expected bounds of the time, in milliseconds; the search leaves them where they do not hold.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Milliseconds to find it to.
    pub(super) within: f64,
}

/// The least response time of a read of sector `to` just after one of sector `from`.
pub(super) fn reach(watch: &mut Stopwatch<'_>, journey: Journey) -> Result<Estimate, ProbeError> {
    let target = watch.sector_angle(journey.to, 5)?;
    let media = watch.media;
    search(watch, journey, target, media, media)
}

/// The same for other kinds of requests, each with or without FUA.
pub(super) fn reach_by(
    watch: &mut Stopwatch<'_>,
    journey: Journey,
    from: (Op, bool),
    to: (Op, bool),
) -> Result<Estimate, ProbeError> {
    let mut angles = Vec::new();
    for _ in 0..7 {
        watch.refresh()?;
        let answer = watch.media_by(journey.to, journey.sectors, to)?;
        angles.push(watch.angle(answer.completed));
    }
    let around: Vec<f64> = angles
        .iter()
        .map(|angle| wrapped(angle - angles[0]))
        .collect();
    let middle = median(&around);
    let near: Vec<f64> = around
        .into_iter()
        .filter(|a| (a - middle).abs() * watch.period < OFF_ANGLE)
        .collect();
    let target = Estimate::of(&near);
    let target = Estimate {
        value: fraction(angles[0] + target.value),
        ..target
    };
    search(watch, journey, target, from, to)
}

/// A read of a sector that has just been read.
#[derive(Clone, Copy, Debug)]
struct Again {
    sent: f64,
    completed: f64,
}

/// The least response time of a read of a sector right behind another of the same, near a rough figure,
/// through a host that is too unsteady for [`reach`] to be exact.
///
/// Every read is a trial of the time that it was sent before its sector had passed, and a reading of when the
/// sector passes. All readings together say that far better than those before a trial can, so the trials are
/// judged at the end: the least time is that which parts those that caught the sector from those that
/// did not, but for the few that went wrong on their way.
pub(super) fn reach_again(
    watch: &mut Stopwatch<'_>,
    lbn: Lbn,
    rough: f64,
) -> Result<Estimate, ProbeError> {
    /// The interval's half width that is aimed at, in milliseconds, and how many reads that may take.
    const FINE: f64 = 0.001;
    const READS: (f64, f64) = (300.0, 3_000.0);
    // On both sides of what may be right; a miss costs a revolution more.
    let unsure = 2.0 * watch.deviation();
    let angle = watch.sector_angle(lbn, 25)?.value;
    let wanted = 1.96 * watch.deviation() / FINE;
    let count = (wanted * wanted).clamp(READS.0, READS.1) as usize;
    let mut reads = Vec::with_capacity(count);
    for _ in 0..count {
        watch.refresh()?;
        let lead = rough + unsure * (3.0 * watch.rng.fraction() - 1.0);
        let due = watch.next(watch.now() + lead, angle);
        watch.wait_until(due - lead);
        let answer = watch.media(lbn, 1)?;
        reads.push(Again {
            sent: answer.sent,
            completed: answer.completed,
        });
    }
    Ok(judge(&reads, rough, watch.period))
}

/// Parts the trials that caught their sector from those that did not.
fn judge(reads: &[Again], rough: f64, period: f64) -> Estimate {
    let first = reads[0].completed;
    let phases: Vec<f64> = reads
        .iter()
        .map(|read| wrapped((read.completed - first) / period))
        .collect();
    let middle = median(&phases);
    // What came late is no reading, and no trial either.
    let timely: Vec<(f64, Again)> = reads
        .iter()
        .zip(&phases)
        .filter(|(_, phase)| (wrapped(*phase - middle) * period).abs() < OFF_ANGLE)
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
            match before < rough + 0.5 * period {
                true => (before, true),
                false => (before - period, false),
            }
        })
        .collect();
    trials.sort_by(|a, b| a.0.total_cmp(&b.0));
    // How many more trials below each cut were too late, as they should be, than were not.
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

/// Narrows the bounds down.
fn search(
    watch: &mut Stopwatch<'_>,
    journey: Journey,
    target: Estimate,
    from: (Op, bool),
    to: (Op, bool),
) -> Result<Estimate, ProbeError> {
    let Journey {
        mut low,
        mut high,
        within,
        ..
    } = journey;
    let (mut low_fails, mut high_catches) = (false, false);
    let mut samples = 0;
    let mut checked = false;
    let mut step = (high - low).max(within);
    loop {
        if high - low <= within {
            if !high_catches {
                low = high;
                high += step;
                step *= 2.0;
                low_fails = true;
            } else if !low_fails {
                high = low;
                low = (low - step).max(0.0);
                step *= 2.0;
                high_catches = true;
                if high <= 0.0 {
                    break;
                }
            } else if !checked && samples < 60 {
                // One failure in a thousand is the drive's own: an additional revolution.
                checked = true;
                samples += 1;
                if catches(watch, &journey, target.value, low, (from, to))? {
                    high = low;
                    low = (low - 4.0 * within).max(0.0);
                    low_fails = false;
                    checked = false;
                }
                continue;
            } else {
                break;
            }
        }
        if samples >= 80 {
            break;
        }
        let middle = (low + high) / 2.0;
        samples += 1;
        if catches(watch, &journey, target.value, middle, (from, to))? {
            high = middle;
            high_catches = true;
        } else {
            low = middle;
            low_fails = true;
        }
    }
    Ok(Estimate {
        value: (low + high) / 2.0,
        half_width: (high - low) / 2.0 + target.half_width * watch.period,
        samples,
    })
}

/// Whether a request sent `lead` milliseconds before its sector has passed catches it.
fn catches(
    watch: &mut Stopwatch<'_>,
    journey: &Journey,
    angle: f64,
    lead: f64,
    (from, to): ((Op, bool), (Op, bool)),
) -> Result<bool, ProbeError> {
    let mut late = false;
    for _ in 0..8 {
        watch.refresh()?;
        watch.media_by(journey.from, 1, from)?;
        let now = watch.now();
        let due = watch.next(now + lead, angle);
        watch.wait_until(due - lead);
        let answer = watch.media_by(journey.to, journey.sectors, to)?;
        let turns = (answer.completed - due) / watch.period;
        if (wrapped(turns) * watch.period).abs() <= OFF_ANGLE {
            late = turns.round() >= 1.0;
            break;
        }
    }
    Ok(!late)
}
