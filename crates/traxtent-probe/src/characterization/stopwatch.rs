//! Timing requests against the spindle.
//!
//! A request for one sector completes when that sector has passed, so its completion time, modulo a
//! revolution, gives the sector's angle (H. Wong 2019). The spindle is tracked by rereading a
//! reference sector when its last reading is too old. Angles are computed from a line through the
//! latest of these readings, so that an error of the speed, or its wander, does not accumulate.

use super::measurement::{Estimate, MEDIAN_TO_DEVIATION, wrapped};
use super::sector_grouping::SectorGrouping;
use crate::{ProbeError, Target, TargetError};
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::stats::median;
use traxtent_units::turns::fraction;
use traxtent_units::{Lbn, SimTime};

/// The time for which a reading of the reference sector can be used for angles, in milliseconds.
const REFERENCE_AGE_MAX_MS: f64 = 2_000.0;
/// The number of reads of the reference sector at a time.
const REFERENCE_READS: usize = 9;
/// The number of latest readings to which the speed is fitted. Each is the mean of
/// [`REFERENCE_READS`] reads.
const REFERENCES_KEPT: usize = 32;
/// The distance from the expected angle, in milliseconds, beyond which a reading counts as delayed.
pub(super) const OFF_ANGLE_MS: f64 = 0.2;

/// The standard deviation of times, in milliseconds, below which a host counts as steady.
pub(super) const STEADY_MS: f64 = 0.005;

/// The number of readings of the reference sector that determine the speed.
const SPEED_READS: usize = 64;
/// The plausible times of a revolution of a disk, in milliseconds. Responses that would need more
/// than 20,000 revolutions per minute come from a cache. No disk turns as slowly as 300 per minute.
const REVOLUTION_MS: std::ops::RangeInclusive<f64> = 3.0..=200.0;
/// One in this many intervals between readings may differ from whole revolutions, because the host
/// received a completion late.
const OFF_ANGLE_ONE_IN: usize = 4;
/// Half the number of readings to which the period is fitted first. The number doubles with each
/// fit, to avoid miscounting revolutions.
const COARSE_READS: usize = 8;
/// The pauses before the first readings of the reference sector, in milliseconds. They grow, to
/// avoid miscounting revolutions.
const FIRST_PAUSES_MS: [f64; 5] = [0.0, 200.0, 400.0, 800.0, 1600.0];

/// The times at which a request was sent and completed, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseTimes {
    pub(super) sent: f64,
    pub(super) completed: f64,
}

impl ResponseTimes {
    pub(super) fn response(&self) -> f64 {
        self.completed - self.sent
    }
}

/// A target with a clock that follows its spindle.
pub(super) struct Stopwatch<'a> {
    target: &'a mut dyn Target,
    /// The kind of request that reads the media and bypasses the cache, and whether it has FUA.
    pub(super) media: (Op, bool),
    pub(super) rng: Rng,
    /// The grouping of LBNs into physical sectors, which are read as a whole.
    pub(super) grouping: SectorGrouping,
    pub(super) requests: u64,
    pub(super) translations: u64,
    /// The best estimate of a revolution, in milliseconds.
    pub(super) period: f64,
    reference: Lbn,
    /// For each of the latest readings: the number of revolutions since the first reading, and the
    /// time at which the reference sector had passed.
    references: Vec<(f64, f64)>,
    /// The number of readings of the reference sector.
    pub(super) reference_reads: u64,
    first_reference: Option<(f64, f64)>,
    /// The deviations of readings of the reference sector from their mean, in milliseconds. They
    /// show how unsteady the host is.
    pub(super) deviations_ms: Vec<f64>,
}

impl<'a> Stopwatch<'a> {
    pub(super) fn new(target: &'a mut dyn Target, seed: u64) -> Stopwatch<'a> {
        Stopwatch {
            target,
            media: (Op::Verify, false),
            rng: Rng::new(seed),
            grouping: SectorGrouping::SINGLE,
            requests: 0,
            translations: 0,
            period: 0.0,
            reference: Lbn(0),
            references: Vec::new(),
            reference_reads: 0,
            first_reference: None,
            deviations_ms: Vec::new(),
        }
    }

    /// The name of the request that reads the media and bypasses the cache.
    pub(super) fn method(&self) -> &'static str {
        match self.media.0 {
            Op::Verify => "VERIFY",
            _ => "READ with FUA",
        }
    }

    pub(super) fn now(&self) -> f64 {
        self.target.now().as_ms()
    }

    pub(super) fn wait_until(&mut self, ms: f64) {
        self.target.wait_until(SimTime::from_ms(ms));
    }

    pub(super) fn pause(&mut self, ms: f64) {
        let until = self.now() + ms;
        self.wait_until(until);
    }

    /// Sends a request and returns its times.
    pub(super) fn send(&mut self, request: Request) -> Result<ResponseTimes, ProbeError> {
        self.requests += 1;
        let timing = self.target.request(request)?;
        Ok(ResponseTimes {
            sent: timing.sent.as_ms(),
            completed: timing.completed.as_ms(),
        })
    }

    /// Reads sectors from the media, regardless of the contents of a cache, with as little data
    /// transfer as possible.
    pub(super) fn media(&mut self, lbn: Lbn, sectors: u32) -> Result<ResponseTimes, ProbeError> {
        self.media_by(lbn, sectors, self.media)
    }

    /// The same as [`Stopwatch::media`] with another kind of request, with or without FUA. If the
    /// drive does not support VERIFY, this and later reads of the media use READ with FUA.
    pub(super) fn media_by(
        &mut self,
        lbn: Lbn,
        sectors: u32,
        by: (Op, bool),
    ) -> Result<ResponseTimes, ProbeError> {
        let (op, fua) = by;
        match self.send(Request {
            lbn,
            sectors,
            op,
            fua,
        }) {
            Err(ProbeError::Target(TargetError::Unsupported(_))) if op == Op::Verify => {
                self.media = (Op::Read, true);
                self.media_by(lbn, sectors, self.media)
            }
            timing => timing,
        }
    }

    /// Reads sectors by a plain read.
    pub(super) fn read(&mut self, lbn: Lbn, sectors: u32) -> Result<ResponseTimes, ProbeError> {
        self.send(Request::read(lbn, sectors))
    }

    /// Writes sectors by a plain write.
    pub(super) fn write(&mut self, lbn: Lbn, sectors: u32) -> Result<ResponseTimes, ProbeError> {
        self.send(Request::write(lbn, sectors))
    }

    /// Returns the place of an LBN according to the drive.
    pub(super) fn translate(
        &mut self,
        lbn: Lbn,
    ) -> Result<traxtent_model::geometry::Place, TargetError> {
        self.translations += 1;
        self.target.translate(lbn)
    }

    /// Measures the speed by reading one sector repeatedly for a few seconds.
    pub(super) fn start(&mut self, reference: Lbn) -> Result<(), ProbeError> {
        self.reference = reference;
        self.media(reference, 1)?;
        let mut times = Vec::new();
        for _ in 0..SPEED_READS {
            times.push(self.media(reference, 1)?.completed);
        }
        let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let coarse = median(&steps);
        if !REVOLUTION_MS.contains(&coarse) {
            return Err(ProbeError::NotRotating(format!(
                "the same sector can be read again after {coarse:.3} ms; on a disk this takes one revolution, 3 to 200 ms"
            )));
        }
        let off = |step: &&f64| (wrapped(**step / coarse) * coarse).abs() > OFF_ANGLE_MS;
        if steps.iter().filter(off).count() * OFF_ANGLE_ONE_IN > steps.len() {
            return Err(ProbeError::NotRotating(format!(
                "the same sector can be read again after about {coarse:.3} ms, but not at the same angle"
            )));
        }
        self.period = coarse;
        // Fits a line through the times. Revolutions are counted with the coarse period, which is
        // refined as the span grows.
        let mut span = COARSE_READS;
        while span < times.len() {
            span = (span * 2).min(times.len());
            let points: Vec<(f64, f64)> = times[..span]
                .iter()
                .map(|t| (((t - times[0]) / self.period).round(), *t))
                .collect();
            self.period = line(&points).1;
        }
        for pause in FIRST_PAUSES_MS {
            self.pause(pause);
            self.read_reference()?;
        }
        Ok(())
    }

    /// Reads the reference sector, and fits the speed to this reading and the previous ones.
    pub(super) fn read_reference(&mut self) -> Result<(), ProbeError> {
        self.media(self.reference, 1)?;
        let mut times = Vec::new();
        for _ in 0..REFERENCE_READS {
            times.push(self.media(self.reference, 1)?.completed);
        }
        self.reference_reads += REFERENCE_READS as u64;
        let first = times[0];
        let offsets: Vec<f64> = times
            .iter()
            .map(|t| wrapped((t - first) / self.period) * self.period)
            .collect();
        let centre = Estimate::of(&offsets).value;
        self.deviations_ms.extend(
            offsets
                .iter()
                .map(|offset| wrapped((offset - centre) / self.period) * self.period),
        );
        let passed = first + centre;
        let turns = match self.references.last() {
            Some(&(turns, at)) => turns + ((passed - at) / self.period).round(),
            None => 0.0,
        };
        self.first_reference.get_or_insert((turns, passed));
        self.references.push((turns, passed));
        if self.references.len() > REFERENCES_KEPT {
            self.references.remove(0);
        }
        if self.references.len() > 2 {
            self.period = line(&self.references).1;
        }
        Ok(())
    }

    /// The mean time of a revolution since [`Stopwatch::start`], in milliseconds.
    pub(super) fn revolution(&self) -> Estimate {
        let Some(((first, from), &(last, to))) = self.first_reference.zip(self.references.last())
        else {
            return Estimate::default();
        };
        // Both ends are points of the line, so their standard deviation is that of its points.
        let (_, slope, deviation) = line(&self.references);
        let turns = (last - first).max(1.0);
        Estimate {
            value: if turns > 1.0 {
                (to - from) / turns
            } else {
                slope
            },
            half_width: (1.96 * deviation.max(1e-6) * 2f64.sqrt()) / turns,
            samples: self.reference_reads,
        }
    }

    /// Returns the angle at a time, in revolutions since the reference sector had passed, from 0 to
    /// 1.
    pub(super) fn angle(&self, ms: f64) -> f64 {
        let (at, slope, _) = line(&self.references);
        fraction((ms - at) / slope)
    }

    /// The standard deviation of a reading's time, in milliseconds.
    pub(super) fn deviation(&self) -> f64 {
        let late: Vec<f64> = self.deviations_ms.iter().map(|late| late.abs()).collect();
        if late.is_empty() {
            0.0
        } else {
            MEDIAN_TO_DEVIATION * median(&late)
        }
    }

    /// Returns the first time, at or after `ms`, at which the platter has the given angle.
    pub(super) fn next(&self, ms: f64, angle: f64) -> f64 {
        ms + fraction(angle - self.angle(ms)) * self.period
    }

    /// Measures the angle at which a sector has passed, from `reads` readings.
    pub(super) fn sector_angle(&mut self, lbn: Lbn, reads: usize) -> Result<Estimate, ProbeError> {
        self.refresh()?;
        let mut angles = Vec::new();
        for _ in 0..reads {
            let completed = self.media(lbn, 1)?.completed;
            angles.push(self.angle(completed));
        }
        // Centre on the reading that most others are near, because any of them may be late.
        let median_distance = |a: &f64| {
            median(
                &angles
                    .iter()
                    .map(|b| wrapped(b - a).abs())
                    .collect::<Vec<_>>(),
            )
        };
        let centre = *angles
            .iter()
            .min_by(|a, b| median_distance(a).total_cmp(&median_distance(b)))
            .expect("reads > 0");
        let around: Vec<f64> = angles.iter().map(|a| wrapped(a - centre)).collect();
        let estimate = Estimate::of(&around);
        Ok(Estimate {
            value: fraction(centre + estimate.value),
            ..estimate
        })
    }

    /// Rereads the reference sector if the last reading is too old.
    pub(super) fn refresh(&mut self) -> Result<(), ProbeError> {
        match self.references.last() {
            Some(&(_, at)) if self.now() - at < REFERENCE_AGE_MAX_MS => Ok(()),
            _ => self.read_reference(),
        }
    }
}

/// Fits a straight line through points of revolutions and times. Returns the time at revolution 0,
/// the time per revolution, and the standard deviation of the points from the line.
pub(super) fn line(points: &[(f64, f64)]) -> (f64, f64, f64) {
    let n = points.len() as f64;
    let mean = |f: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(f).sum::<f64>() / n;
    let (x, y) = (mean(&|p| p.0), mean(&|p| p.1));
    let mut xy = 0.0;
    let mut xx = 0.0;
    for p in points {
        xy += (p.0 - x) * (p.1 - y);
        xx += (p.0 - x) * (p.0 - x);
    }
    if xx == 0.0 {
        return (y, 1.0, 0.0);
    }
    let slope = xy / xx;
    let off = |p: &(f64, f64)| p.1 - y - slope * (p.0 - x);
    let squares: f64 = points.iter().map(|p| off(p) * off(p)).sum();
    let deviation = (squares / (n - 2.0).max(1.0)).sqrt();
    (y - slope * x, slope, deviation)
}
