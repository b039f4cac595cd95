//! The least time in which a drive goes from one sector to another.
//!
//! Worthington's MTBRC ("On-line extraction of SCSI disk drive parameters", 1995): of all times
//! between the completions of two requests, the least contains no rotational wait. Here the second
//! request is sent when its sector is due in a time that is tried: it either catches the sector or
//! completes a revolution late, and halving the times that remain finds the least. Each trial gives
//! one bit whatever noise its time has, as only whole revolutions are told apart.

use super::figure::{Estimate, fraction, median, wrapped};
use super::stopwatch::{OFF_ANGLE, Stopwatch};
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
