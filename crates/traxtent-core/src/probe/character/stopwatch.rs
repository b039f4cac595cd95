//! Timing requests against the spindle.
//!
//! A request for one sector is complete when that sector has passed, so its completion, modulo a
//! revolution, is the sector's angle (H. Wong 2019). The spindle is followed by reading a
//! reference sector again every few seconds: angles are told from the last of these readings, so
//! that neither an error of the speed nor its wander adds up.

use super::figure::{Estimate, fraction, median, wrapped};
use super::physical::Grain;
use crate::probe::{ProbeError, Target, TargetError};
use crate::request::{Op, Request};
use crate::units::{Lbn, SimTime};
use crate::workload::Rng;

/// How long an angle may be told from one reading of the reference, in milliseconds.
const REFERENCE_AGE: f64 = 2_000.0;
/// Readings of the reference at a time.
const REFERENCE_READS: usize = 9;
/// How many of them the speed is fitted to.
const REFERENCES_KEPT: usize = 32;
/// A reading this far off its expected angle, in milliseconds, has been delayed on its way.
pub(super) const OFF_ANGLE: f64 = 0.2;

/// A host whose times are this good is steady: they deviate by so many milliseconds.
pub(super) const STEADY: f64 = 0.005;

/// When a request was sent and complete, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answer {
    pub(super) sent: f64,
    pub(super) completed: f64,
}

impl Answer {
    pub(super) fn response(&self) -> f64 {
        self.completed - self.sent
    }
}

/// A target with a clock that turns with its spindle.
pub(super) struct Stopwatch<'a> {
    target: &'a mut dyn Target,
    /// How the media are asked, past the cache.
    pub(super) media: (Op, bool),
    pub(super) rng: Rng,
    /// How LBNs share physical sectors, which are read whole.
    pub(super) grain: Grain,
    pub(super) requests: u64,
    pub(super) translations: u64,
    /// The best figure of a revolution, in milliseconds.
    pub(super) period: f64,
    reference: Lbn,
    /// Turns since the first, and when the reference sector had passed.
    references: Vec<(f64, f64)>,
    /// How many readings of the reference there were, and the time between the first and the last.
    pub(super) reference_reads: u64,
    first_reference: Option<(f64, f64)>,
    /// By how much readings of the reference came late, in milliseconds: how unsteady the host is.
    pub(super) unsteady: Vec<f64>,
}

impl<'a> Stopwatch<'a> {
    pub(super) fn new(target: &'a mut dyn Target, seed: u64) -> Stopwatch<'a> {
        Stopwatch {
            target,
            media: (Op::Verify, false),
            rng: Rng::new(seed),
            grain: Grain::SINGLE,
            requests: 0,
            translations: 0,
            period: 0.0,
            reference: Lbn(0),
            references: Vec::new(),
            reference_reads: 0,
            first_reference: None,
            unsteady: Vec::new(),
        }
    }

    /// What it is that reads the media past the cache.
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

    /// Sends any request.
    pub(super) fn ask(&mut self, request: Request) -> Result<Answer, ProbeError> {
        self.requests += 1;
        let timing = self.target.request(request)?;
        Ok(Answer {
            sent: timing.sent.as_ms(),
            completed: timing.completed.as_ms(),
        })
    }

    /// Reads sectors from the media, whatever a cache holds, and moves as little as can be.
    pub(super) fn media(&mut self, lbn: Lbn, sectors: u32) -> Result<Answer, ProbeError> {
        self.media_by(lbn, sectors, self.media)
    }

    /// The same by another kind of request, with or without FUA.
    pub(super) fn media_by(
        &mut self,
        lbn: Lbn,
        sectors: u32,
        by: (Op, bool),
    ) -> Result<Answer, ProbeError> {
        let (op, fua) = by;
        match self.ask(Request {
            lbn,
            sectors,
            op,
            fua,
        }) {
            Err(ProbeError::Target(TargetError::Unsupported(_))) if op == Op::Verify => {
                self.media = (Op::Read, true);
                self.media_by(lbn, sectors, self.media)
            }
            answer => answer,
        }
    }

    /// Reads sectors as any host does.
    pub(super) fn read(&mut self, lbn: Lbn, sectors: u32) -> Result<Answer, ProbeError> {
        self.ask(Request::read(lbn, sectors))
    }

    /// Writes sectors as any host does.
    pub(super) fn write(&mut self, lbn: Lbn, sectors: u32) -> Result<Answer, ProbeError> {
        self.ask(Request::write(lbn, sectors))
    }

    /// The place of an LBN, as the drive tells it.
    pub(super) fn translate(&mut self, lbn: Lbn) -> Result<crate::geometry::Place, TargetError> {
        self.translations += 1;
        self.target.translate(lbn)
    }

    /// Finds the speed by reading one sector again and again, over some seconds.
    pub(super) fn start(&mut self, reference: Lbn) -> Result<(), ProbeError> {
        self.reference = reference;
        self.media(reference, 1)?;
        let mut times = Vec::new();
        for _ in 0..64 {
            times.push(self.media(reference, 1)?.completed);
        }
        let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let coarse = median(&steps);
        // 20,000 turns a minute and more is a cache; no disk turns as slowly as 300.
        if !(3.0..=200.0).contains(&coarse) {
            return Err(ProbeError::NotRotating(format!(
                "the same sector comes again after {coarse:.3} ms; on a disk it takes a revolution, 3 to 200 ms"
            )));
        }
        let off = |step: &&f64| (wrapped(**step / coarse) * coarse).abs() > OFF_ANGLE;
        if steps.iter().filter(off).count() * 4 > steps.len() {
            return Err(ProbeError::NotRotating(format!(
                "the same sector comes again after {coarse:.3} ms or so, but not at the same angle"
            )));
        }
        self.period = coarse;
        // A line through them, the turns counted by the coarse figure as it gets finer.
        let mut span = 8;
        while span < times.len() {
            span = (span * 2).min(times.len());
            let points: Vec<(f64, f64)> = times[..span]
                .iter()
                .map(|t| (((t - times[0]) / self.period).round(), *t))
                .collect();
            self.period = line(&points).1;
        }
        for pause in [0.0, 200.0, 400.0, 800.0, 1600.0] {
            self.pause(pause);
            self.read_reference()?;
        }
        Ok(())
    }

    /// Reads the reference sector, and fits the speed to this reading and those before.
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
        self.unsteady.extend(
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

    /// A revolution over the whole time since [`Stopwatch::start`], in milliseconds.
    pub(super) fn revolution(&self) -> Estimate {
        let Some(((first, from), &(last, to))) = self.first_reference.zip(self.references.last())
        else {
            return Estimate::default();
        };
        // Each end is the mean of nine readings; their scatter is that of the line's points.
        let (at, slope, deviation) = line(&self.references);
        let _ = at;
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

    /// The angle of a time, in turns since the reference sector had passed, from 0 to 1.
    pub(super) fn angle(&self, ms: f64) -> f64 {
        let (at, slope, _) = line(&self.references);
        fraction((ms - at) / slope)
    }

    /// The standard deviation of a reading's time, in milliseconds.
    pub(super) fn deviation(&self) -> f64 {
        let late: Vec<f64> = self.unsteady.iter().map(|late| late.abs()).collect();
        if late.is_empty() {
            0.0
        } else {
            1.4826 * median(&late)
        }
    }

    /// The next time from `ms` on that has an angle.
    pub(super) fn next(&self, ms: f64, angle: f64) -> f64 {
        ms + fraction(angle - self.angle(ms)) * self.period
    }

    /// The angle at which a sector has passed, from so many readings.
    pub(super) fn sector_angle(&mut self, lbn: Lbn, reads: usize) -> Result<Estimate, ProbeError> {
        self.refresh()?;
        let mut angles = Vec::new();
        for _ in 0..reads {
            let completed = self.media(lbn, 1)?.completed;
            angles.push(self.angle(completed));
        }
        // Around the one that most others are near: any of them may be late.
        let near = |a: &f64| {
            median(
                &angles
                    .iter()
                    .map(|b| wrapped(b - a).abs())
                    .collect::<Vec<_>>(),
            )
        };
        let centre = *angles
            .iter()
            .min_by(|a, b| near(a).total_cmp(&near(b)))
            .expect("reads > 0");
        let around: Vec<f64> = angles.iter().map(|a| wrapped(a - centre)).collect();
        let estimate = Estimate::of(&around);
        Ok(Estimate {
            value: fraction(centre + estimate.value),
            ..estimate
        })
    }

    /// Reads the reference again if that is long ago.
    pub(super) fn refresh(&mut self) -> Result<(), ProbeError> {
        match self.references.last() {
            Some(&(_, at)) if self.now() - at < REFERENCE_AGE => Ok(()),
            _ => self.read_reference(),
        }
    }
}

/// The straight line through points of turns and times: the time at turn 0, the time of a turn, and
/// the standard deviation of the points from it.
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
