//! The choice among replicas from outside the drive, by predicting when each passes under the head.
//!
//! A [`HeadTracker`] is a state machine without I/O. It uses a track map, the angle at which each
//! track begins, and the seek times. The current time is an argument of each call. Every completion
//! corrects the state. The difference between the observed and the predicted angle corrects the
//! phase and the period, as in a phase-locked loop. A completion is late if it took an extra
//! revolution. The difference between the observed and the predicted rate of late completions
//! corrects the uncertainty. The tracker therefore also reports its own error
//! ([`HeadTracker::accuracy`]).
//!
//! Angles are fractions of a revolution. The angle of a sector is the platter's angle when a read
//! of that sector is complete. It therefore includes all delays between the media and the host, as
//! long as they are constant.
//!
//! Missing a replica costs a revolution; passing one over costs only the time to the next. A
//! replica is therefore chosen by its mean cost: the wait for it, plus a revolution times the
//! probability of missing it.
//!
//! Left out: several requests outstanding at the drive. The caller keeps the queue and sends one
//! request at a time.

use std::sync::Arc;

use crate::{MappedTrack, TrackMap};
use traxtent_units::turns::{fraction, wrap};
use traxtent_units::{Lbn, SimTime, Span};

/// The gain with which a completion corrects the phase, after many completions.
const PHASE_GAIN: f64 = 0.02;

/// The gain with which a completion corrects the period.
const PERIOD_GAIN: f64 = 0.000_1;

/// The gain with which a completion changes the uncertainty of predictions.
const TRUST_GAIN: f64 = 0.3;

/// The lower and upper bound for the standard deviation of a prediction, in revolutions.
const SIGMA: (f64, f64) = (0.000_3, 0.2);

/// The measurements of a drive that a [`HeadTracker`] needs; see `survey` of traxtent-probe.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The position in the map of the first track that was surveyed.
    pub first_track: usize,
    /// The angle of the first sector of each track from there on, in units of 2^-16 of a
    /// revolution.
    pub angles: Vec<u16>,
    /// The positioning times.
    pub reach: PositioningCurve,
    /// The duration of a revolution in picoseconds.
    pub period: f64,
    /// A point in time, and the angle of the platter at that time.
    pub phase: (SimTime, f64),
}

/// The minimum time in revolutions from sending a read to its completion, by the number of tracks
/// that the seek crosses.
#[derive(Clone, Debug, PartialEq)]
pub struct PositioningCurve(Vec<(usize, f64)>);

impl PositioningCurve {
    /// Creates a curve from measured points with ascending distances. It is linear between points,
    /// and constant before the first and after the last.
    ///
    /// # Panics
    /// Panics if there is no point.
    pub fn new(points: Vec<(usize, f64)>) -> PositioningCurve {
        assert!(!points.is_empty(), "no distance was measured");
        PositioningCurve(points)
    }

    /// Returns the points.
    pub fn points(&self) -> &[(usize, f64)] {
        &self.0
    }

    /// Returns the same curve, increased by `turns`.
    pub fn delayed_by(mut self, turns: f64) -> PositioningCurve {
        for (_, least) in &mut self.0 {
            *least += turns;
        }
        self
    }

    /// Returns the minimum time for a seek over `tracks` tracks.
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
            (None, None) => unreachable!("a curve has at least one point"),
        }
    }
}

/// A drive's head position, followed from outside the drive.
#[derive(Clone, Debug)]
pub struct HeadTracker {
    map: Arc<TrackMap>,
    survey: Survey,
    /// The track that the head is on.
    at: usize,
    completions: u64,
    /// The mean square of recent errors in predicted angles, in revolutions squared.
    phase_variance: f64,
    /// The standard deviation of the predicted margin between the arrivals of the head and of the
    /// sector, in revolutions.
    sigma: f64,
    /// The number of completions that came a revolution late.
    missed: u64,
    /// The predicted number of completions that come a revolution late.
    expected: f64,
}

/// A replica that was chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Choice {
    /// The index of the replica among those offered.
    pub index: usize,
    /// The time until its first sector is read.
    pub due: Span,
    /// The probability that it completes a revolution later.
    pub risk: f64,
}

/// The accuracy of a tracker's predictions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// The number of completions that corrected the tracker.
    pub completions: u64,
    /// The root mean square of recent errors in predicted angles, in revolutions.
    pub angle_rms: f64,
    /// The share of completions that came a revolution late.
    pub missed: f64,
    /// The share of completions that was expected to come late.
    pub expected: f64,
}

impl HeadTracker {
    /// Creates the tracker for a surveyed drive.
    pub fn new(map: impl Into<Arc<TrackMap>>, survey: Survey) -> HeadTracker {
        HeadTracker {
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

    /// Returns the duration of a revolution in picoseconds.
    pub fn period(&self) -> f64 {
        self.survey.period
    }

    /// Returns the angle of the platter.
    pub fn angle(&self, now: SimTime) -> f64 {
        let (then, angle) = self.survey.phase;
        let since = now.0 as f64 - then.0 as f64;
        // Whole revolutions are subtracted first to keep the remainder small.
        let whole = (since / self.survey.period).floor();
        fraction(angle + (since - whole * self.survey.period) / self.survey.period)
    }

    /// Returns the angle of a sector; `None` on tracks that were not surveyed.
    pub fn angle_of(&self, lbn: Lbn) -> Option<f64> {
        let track = self.map.track_of(lbn)?;
        self.angle_on(&track, lbn)
    }

    fn angle_on(&self, track: &MappedTrack, lbn: Lbn) -> Option<f64> {
        let index = track.index.checked_sub(self.survey.first_track)?;
        let first = f64::from(*self.survey.angles.get(index)?) / 65_536.0;
        Some(first + (lbn.0 - track.first_lbn.0) as f64 / track.sectors.0 as f64)
    }

    /// Returns the read with the lowest mean cost if sent now; `None` if none is on a surveyed
    /// track.
    pub fn choose(&self, now: SimTime, lbns: impl IntoIterator<Item = Lbn>) -> Option<Choice> {
        let angle = self.angle(now);
        let mut best: Option<(f64, Choice)> = None;
        let mut track: Option<MappedTrack> = None;
        for (index, lbn) in lbns.into_iter().enumerate() {
            // Replicas on the same track need only one look-up.
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

    /// Returns the time until the first sector is read, in revolutions from the moment at which the
    /// platter is at `angle`, and the probability of missing it.
    fn due(&self, angle: f64, track: &MappedTrack, lbn: Lbn) -> Option<(f64, f64)> {
        let lead = self.survey.reach.over(track.index.abs_diff(self.at));
        let after = fraction(self.angle_on(track, lbn)? - angle - lead);
        // This is the risk of missing the sector by a small margin. The opposite error is not
        // counted: the sector may have been reachable almost a revolution earlier.
        let risk = 0.5 * libm::erfc(after / self.sigma * std::f64::consts::FRAC_1_SQRT_2);
        Some((lead + after, risk))
    }

    /// Records a seek caused by a request that does not correct the tracker: a write, or a read of
    /// another length.
    pub fn moved_to(&mut self, lbn: Lbn) {
        if let Some(track) = self.map.track_of(lbn) {
            self.at = track.index;
        }
    }

    /// Corrects the tracker with a read within one track, sent and completed at the given times.
    /// All reads used for correction should have about the same length.
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
        // A read that takes less than half of the shortest possible time was served from a cache,
        // and gives no information.
        if took < 0.5 * lead {
            return;
        }
        self.at = track.index;
        self.completions += 1;
        let passage = f64::from(sectors) / track.sectors.0 as f64;
        let late = took > due + passage + 0.5;
        self.missed += u64::from(late);
        self.expected += risk;
        self.update_uncertainty(late, risk);
        self.correct(expected, completed);
    }

    /// Increases the assumed uncertainty after unexpected misses, and decreases it otherwise.
    fn update_uncertainty(&mut self, late: bool, risk: f64) {
        let excess = f64::from(u8::from(late)) - risk;
        let sigma = self.sigma * libm::exp(TRUST_GAIN * excess);
        self.sigma = sigma.clamp(SIGMA.0, SIGMA.1);
    }

    /// Corrects phase and period by the angle at which a completion came.
    fn correct(&mut self, expected: f64, completed: SimTime) {
        let angle = self.angle(completed);
        let error = wrap(angle - expected);
        let gain = PHASE_GAIN.max(1.0 / self.completions as f64);
        let (then, _) = self.survey.phase;
        let turns = (completed.0 as f64 - then.0 as f64) / self.survey.period;
        // The first completions correct only the phase.
        if self.completions > 20 && turns > 0.5 {
            self.survey.period *= 1.0 + PERIOD_GAIN * error / turns;
        }
        if self.completions > 3 {
            let weight = 0.01_f64.max(1.0 / (self.completions - 3) as f64);
            self.phase_variance += weight * (error * error - self.phase_variance);
        }
        self.survey.phase = (completed, fraction(angle - gain * error));
    }

    /// Returns the accuracy of the predictions so far.
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
