//! The least time in which a drive goes from one sector to another.
//!
//! Worthington's MTBRC ("On-line extraction of SCSI disk drive parameters", 1995): of all times
//! between the completions of two requests, the least contains no rotational wait. Here the second
//! request is sent when its sector is due in a time that is tried: it either catches the sector or
//! completes a revolution late, and halving the times that remain finds the least. Each trial gives
//! one bit whatever noise its time has, as only whole revolutions are told apart.

use super::figure::{Estimate, wrapped};
use super::stopwatch::{OFF_ANGLE, Stopwatch};
use crate::probe::ProbeError;
use crate::units::Lbn;

/// Which pair of sectors, and how closely.
#[derive(Clone, Copy, Debug)]
pub(super) struct Journey {
    pub(super) from: Lbn,
    pub(super) to: Lbn,
    /// Expected bounds of the time, in milliseconds; the search leaves them where they do not hold.
    pub(super) low: f64,
    pub(super) high: f64,
    /// Milliseconds to find it to.
    pub(super) within: f64,
}

/// The least response time of a read of sector `to` just after one of sector `from`.
pub(super) fn reach(watch: &mut Stopwatch<'_>, journey: Journey) -> Result<Estimate, ProbeError> {
    let target = watch.sector_angle(journey.to, 5)?;
    reach_angle(watch, journey, target)
}

/// The same, where the angle of `to` is known already.
pub(super) fn reach_angle(
    watch: &mut Stopwatch<'_>,
    journey: Journey,
    target: Estimate,
) -> Result<Estimate, ProbeError> {
    let Journey { mut low, mut high, within, .. } = journey;
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
                if catches(watch, &journey, target.value, low)? {
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
        if catches(watch, &journey, target.value, middle)? {
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
fn catches(watch: &mut Stopwatch<'_>, journey: &Journey, angle: f64, lead: f64) -> Result<bool, ProbeError> {
    let mut late = false;
    for _ in 0..8 {
        watch.refresh()?;
        watch.media(journey.from, 1)?;
        let now = watch.now();
        let due = watch.next(now + lead, angle);
        watch.wait_until(due - lead);
        let answer = watch.media(journey.to, 1)?;
        let turns = (answer.completed - due) / watch.period;
        if (wrapped(turns) * watch.period).abs() <= OFF_ANGLE {
            late = turns.round() >= 1.0;
            break;
        }
    }
    Ok(!late)
}
