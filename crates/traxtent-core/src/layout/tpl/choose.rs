//! Choosing a copy from outside the drive: which passes first once the head is there?
//!
//! A [`Head`] is a state machine without I/O over a track map, where tracks begin around the platter, and how long the arm
//! takes. Time comes in with each question. Every completion corrects it: the angle at which it came, against the one
//! foretold, corrects the phase and the period (as a phase-locked loop does), and what came a revolution late, against the
//! risk foretold, corrects how sure it is. So it reports its own error ([`Head::accuracy`]).
//!
//! Angles are fractions of a revolution. The angle of a sector is that of the platter when a read of it is complete; so it
//! holds what lies between the medium and the host, as long as that does not change.
//!
//! A copy that is missed costs a revolution, one that is passed over only the way to the next. So a copy is chosen by what
//! it costs in the mean: the wait for it, and a revolution times the risk to miss it.
//!
//! Left out: several requests at the drive at once. Whoever uses a head keeps the queue, and sends one at a time.

use std::sync::Arc;

use crate::trackmap::{MappedTrack, TrackMap};
use crate::units::{Lbn, SimTime, Span};

/// What one completion corrects of the phase, once many have.
const PHASE_GAIN: f64 = 0.02;

/// What it corrects of the period.
const PERIOD_GAIN: f64 = 0.000_1;

/// How fast the trust in a prediction follows what was missed.
const TRUST_GAIN: f64 = 0.3;

/// Standard deviation of a prediction, in revolutions: the least and the most that are believed.
const SIGMA: (f64, f64) = (0.000_3, 0.2);

/// What is known of a drive before its head is followed: see [`crate::probe::survey`].
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The first track that was surveyed: its position in the map.
    pub first_track: usize,
    /// The angle of the first sector of each track from then on, in 2^-16 of a revolution.
    pub angles: Vec<u16>,
    /// How long the arm takes.
    pub reach: Reach,
    /// The time of a revolution, in picoseconds.
    pub period: f64,
    /// An instant, and the angle of the platter then.
    pub phase: (SimTime, f64),
}

/// The least time from sending a read to its completion, by how many tracks the arm crosses, in revolutions.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach(Vec<(usize, f64)>);

impl Reach {
    /// From measured points, whose distances ascend; straight lines between them.
    ///
    /// # Panics
    /// If there is no point.
    pub fn new(points: Vec<(usize, f64)>) -> Reach {
        assert!(!points.is_empty(), "no distance was measured");
        Reach(points)
    }

    /// The points.
    pub fn points(&self) -> &[(usize, f64)] {
        &self.0
    }

    /// The same, so much longer.
    pub(crate) fn later(mut self, turns: f64) -> Reach {
        for (_, least) in &mut self.0 {
            *least += turns;
        }
        self
    }

    /// Over so many tracks.
    pub fn over(&self, tracks: usize) -> f64 {
        let later = self.0.partition_point(|(distance, _)| *distance < tracks);
        let points = &self.0;
        match (
            later.checked_sub(1).map(|before| points[before]),
            points.get(later),
        ) {
            (None, Some((_, turns))) => *turns,
            (Some((_, turns)), None) => turns,
            (Some((d0, t0)), Some((d1, t1))) => {
                t0 + (t1 - t0) * (tracks - d0) as f64 / (d1 - d0) as f64
            }
            (None, None) => unreachable!("there is a point"),
        }
    }
}

/// A drive's head, followed from outside.
#[derive(Clone, Debug)]
pub struct Head {
    map: Arc<TrackMap>,
    survey: Survey,
    /// Where the arm is.
    at: usize,
    completions: u64,
    /// Mean square of the angles' errors.
    phase_variance: f64,
    /// Standard deviation of when a sector passes against when the arm is there.
    sigma: f64,
    /// Completions that came a revolution late, and how many had been expected to.
    missed: u64,
    expected: f64,
}

/// A copy that was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// Which of those that were offered.
    pub index: usize,
    /// When its first sector is read, from now.
    pub due: Span,
    /// The probability that it comes a revolution later.
    pub risk: f64,
}

/// How far a head's predictions have been off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Completions that it was corrected by.
    pub completions: u64,
    /// Root mean square of the lately foretold angles' errors, in revolutions.
    pub angle_rms: f64,
    /// The share of completions that came a revolution late.
    pub missed: f64,
    /// The share that was expected to.
    pub expected: f64,
}

/// The difference of two angles, in [-1/2, 1/2).
fn wrap(turns: f64) -> f64 {
    turns - (turns + 0.5).floor()
}

/// The fraction of a revolution, in [0, 1).
fn fraction(turns: f64) -> f64 {
    turns - turns.floor()
}

impl Head {
    /// A head of a surveyed drive.
    pub fn new(map: impl Into<Arc<TrackMap>>, survey: Survey) -> Head {
        Head {
            map: map.into(),
            at: survey.first_track,
            survey,
            completions: 0,
            phase_variance: 0.0,
            sigma: 0.005,
            missed: 0,
            expected: 0.0,
        }
    }

    /// The time of a revolution, in picoseconds.
    pub fn period(&self) -> f64 {
        self.survey.period
    }

    /// The angle of the platter.
    pub fn angle(&self, now: SimTime) -> f64 {
        let (then, angle) = self.survey.phase;
        let since = now.0 as f64 - then.0 as f64;
        // The whole revolutions go first, so that what is left is small.
        let whole = (since / self.survey.period).floor();
        fraction(angle + (since - whole * self.survey.period) / self.survey.period)
    }

    /// The angle of a sector; nothing on tracks that were not surveyed.
    pub fn angle_of(&self, lbn: Lbn) -> Option<f64> {
        let track = self.map.track_of(lbn)?;
        self.angle_on(&track, lbn)
    }

    fn angle_on(&self, track: &MappedTrack, lbn: Lbn) -> Option<f64> {
        let index = track.index.checked_sub(self.survey.first_track)?;
        let first = f64::from(*self.survey.angles.get(index)?) / 65_536.0;
        Some(first + (lbn.0 - track.first_lbn.0) as f64 / track.sectors.0 as f64)
    }

    /// Which of these reads, sent now, is likely to be done first; nothing, if none is on a surveyed track.
    pub fn choose(&self, now: SimTime, lbns: impl IntoIterator<Item = Lbn>) -> Option<Choice> {
        let angle = self.angle(now);
        let mut best: Option<(f64, Choice)> = None;
        let mut track: Option<MappedTrack> = None;
        for (index, lbn) in lbns.into_iter().enumerate() {
            // Copies stand on one track: it is looked up once.
            if track.is_none_or(|track| lbn < track.first_lbn || lbn >= track.end()) {
                track = self.map.track_of(lbn);
            }
            let Some((due, risk)) = track.and_then(|track| self.due(angle, &track, lbn)) else {
                continue;
            };
            let cost = due + risk;
            if best.is_none_or(|(least, _)| cost < least) {
                let choice = Choice {
                    index,
                    due: Span((due * self.survey.period) as u64),
                    risk,
                };
                best = Some((cost, choice));
            }
        }
        best.map(|(_, choice)| choice)
    }

    /// When the first sector is read, in revolutions from when the platter is at an angle, and the risk that it is missed.
    fn due(&self, angle: f64, track: &MappedTrack, lbn: Lbn) -> Option<(f64, f64)> {
        let lead = self.survey.reach.over(track.index.abs_diff(self.at));
        let after = fraction(self.angle_on(track, lbn)? - angle - lead);
        // It may be missed by a little, or have been reachable after all by a little less than a revolution earlier.
        let risk = 0.5 * libm::erfc(after / self.sigma * std::f64::consts::FRAC_1_SQRT_2);
        Some((lead + after, risk))
    }

    /// Takes note that the arm has been sent elsewhere by what is not corrected by: a write, a read of another length.
    pub fn moved_to(&mut self, lbn: Lbn) {
        if let Some(track) = self.map.track_of(lbn) {
            self.at = track.index;
        }
    }

    /// Corrects itself by a read from one track that was sent at one instant and complete at another; all reads that it is
    /// corrected by are of about one length.
    pub fn completed(&mut self, lbn: Lbn, sectors: u32, sent: SimTime, completed: SimTime) {
        let Some(track) = self.map.track_of(lbn) else {
            return;
        };
        let Some((due, risk)) = self.due(self.angle(sent), &track, lbn) else {
            self.at = track.index;
            return;
        };
        let last = Lbn(lbn.0 + u64::from(sectors.max(1)) - 1);
        let Some(expected) = self.angle_on(&track, last) else {
            return;
        };
        let took = completed.saturating_since(sent).0 as f64 / self.survey.period;
        let lead = self.survey.reach.over(track.index.abs_diff(self.at));
        // What comes sooner than the arm can be there comes from a cache, and tells nothing.
        if took < 0.5 * lead {
            return;
        }
        self.at = track.index;
        self.completions += 1;
        let passage = f64::from(sectors) / track.sectors.0 as f64;
        let late = took > due + passage + 0.5;
        self.missed += u64::from(late);
        self.expected += risk;
        self.trust(late, risk);
        self.correct(expected, completed);
    }

    /// Widens what is believed of the uncertainty by what is missed against expectation, and narrows it by what is not.
    fn trust(&mut self, late: bool, risk: f64) {
        let surprise = f64::from(u8::from(late)) - risk;
        let sigma = self.sigma * libm::exp(TRUST_GAIN * surprise);
        self.sigma = sigma.clamp(SIGMA.0, SIGMA.1);
    }

    /// Corrects phase and period by the angle at which a completion came.
    fn correct(&mut self, expected: f64, completed: SimTime) {
        let angle = self.angle(completed);
        let error = wrap(angle - expected);
        let gain = PHASE_GAIN.max(1.0 / self.completions as f64);
        let (then, _) = self.survey.phase;
        let turns = (completed.0 as f64 - then.0 as f64) / self.survey.period;
        // The first ones tell the phase alone.
        if self.completions > 20 && turns > 0.5 {
            self.survey.period *= 1.0 + PERIOD_GAIN * error / turns;
        }
        if self.completions > 3 {
            let weight = 0.01_f64.max(1.0 / (self.completions - 3) as f64);
            self.phase_variance += weight * (error * error - self.phase_variance);
        }
        self.survey.phase = (completed, fraction(angle - gain * error));
    }

    /// How far off it has been.
    pub fn accuracy(&self) -> Accuracy {
        let count = self.completions.max(1) as f64;
        Accuracy {
            completions: self.completions,
            angle_rms: self.phase_variance.sqrt(),
            missed: self.missed as f64 / count,
            expected: self.expected / count,
        }
    }
}
