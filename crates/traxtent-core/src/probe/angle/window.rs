//! Testing predicted boundaries, in the order in which they come under the heads.

use super::super::algorithm::{Confirm, ProbeError, Verify};
use super::super::clock::{Reach, fraction, wrap};
use super::pattern::Kind;
use super::track::Line;
use super::{CYLINDER, Search};

/// A test that a prediction must pass.
#[derive(Clone, Copy, Debug)]
struct Test {
    /// The boundary: the end of this predicted track.
    track: usize,
    question: Question,
}

#[derive(Clone, Copy, Debug)]
enum Question {
    /// Is the LBN before the boundary where the track goes on?
    Last,
    /// Is the LBN behind it where the next track begins?
    First,
    /// Does nothing interrupt the track?
    Whole,
    /// Is a read across the boundary interrupted?
    Across,
}

/// Predicted tracks, where they begin.
struct Window<'w> {
    kinds: &'w [Kind],
    /// First LBNs, and the LBN behind the last.
    bounds: Vec<u64>,
    /// Angles of the first sectors.
    angles: Vec<f64>,
}

impl Search<'_, '_> {
    /// Tests a prediction. Returns the tracks that hold, and whether that is all of them.
    pub(super) fn test(
        &mut self,
        predicted: &[Kind],
    ) -> Result<(Vec<(Kind, Confirm)>, bool), ProbeError> {
        let kinds = self.clip(predicted);
        if kinds.is_empty() {
            return Ok((Vec::new(), false));
        }
        let window = self.window(&kinds);
        let chosen = self.choose(&kinds);
        let mut drift = 0.0;
        let mut wrong = self.run(&window, &chosen, kinds.len(), &mut drift)?;
        let mut right = chosen.iter().copied().filter(|t| *t < wrong).max();
        // Between the last boundary that holds and the first that does not, bisect.
        let mut tested = chosen;
        while wrong < kinds.len() {
            let low = right.map_or(0, |t| t + 1);
            if low >= wrong {
                break;
            }
            let middle = low + (wrong - low) / 2;
            tested.push(middle);
            if self.run(&window, &[middle], kinds.len(), &mut drift)? <= middle {
                wrong = middle;
            } else {
                right = Some(middle);
            }
        }
        let holds = wrong.min(kinds.len());
        // What the angles have drifted by, each track has contributed to.
        let share = drift / holds.max(1) as f64;
        let known = (0..holds).map(|i| {
            let skew = kinds[i].skew + share;
            let confirm = match self.verify {
                _ if tested.contains(&i) => Confirm::Tested,
                Verify::None => Confirm::Predicted,
                Verify::Sample | Verify::Full => Confirm::Sampled,
            };
            (Kind { skew, ..kinds[i] }, confirm)
        });
        let known = known.collect();
        Ok((known, holds == predicted.len()))
    }

    /// The predicted tracks that fit before the end; the last one shortened.
    fn clip(&self, predicted: &[Kind]) -> Vec<Kind> {
        let mut room = self.end - self.first;
        let mut kinds = Vec::with_capacity(predicted.len());
        for kind in predicted {
            let sectors = room.min(u64::from(kind.sectors)) as u32;
            if sectors == 0 {
                break;
            }
            kinds.push(Kind { sectors, ..*kind });
            room -= u64::from(sectors);
        }
        kinds
    }

    fn window<'w>(&self, kinds: &'w [Kind]) -> Window<'w> {
        let (mut bounds, mut angles) = (vec![self.first], vec![self.angle]);
        for (i, kind) in kinds.iter().enumerate() {
            bounds.push(bounds[i] + u64::from(kind.sectors));
            angles.push(angles[i] + kind.skew);
        }
        Window {
            kinds,
            bounds,
            angles,
        }
    }

    /// How many tracks make a cylinder, where the tracks repeat that way.
    fn cylinder(&self) -> Option<usize> {
        self.pattern.period().filter(|p| (2..=16).contains(p))
    }

    /// Which boundaries to test.
    fn choose(&self, kinds: &[Kind]) -> Vec<usize> {
        let last = kinds.len() - 1;
        let mut chosen: Vec<usize> = match self.verify {
            Verify::None => Vec::new(),
            Verify::Full => (0..last).collect(),
            Verify::Sample => {
                // What is lost inside a cylinder may be made up for at its end: so the last boundary before that.
                let cylinder = self.cylinder();
                let every = cylinder.unwrap_or(CYLINDER);
                let largest = self.pattern.largest_skew(2 * every);
                let inner = |i: &usize| fraction(kinds[i + 1].skew) > largest - 0.01;
                let mut chosen: Vec<usize> = (0..last).filter(inner).collect();
                if cylinder.is_none() || chosen.len() > 2 * (last / every) + 2 {
                    chosen = (0..last).skip(every - 1).step_by(every).collect();
                }
                chosen
            }
        };
        let bound = self.first
            + kinds
                .iter()
                .map(|kind| u64::from(kind.sectors))
                .sum::<u64>();
        if bound == self.end && last > 0 {
            // Nothing comes behind that would show what is wrong here.
            chosen.push(last - 1);
        }
        chosen.push(last);
        chosen.dedup();
        chosen
    }

    /// Runs the tests of some boundaries. Returns the first that fails, or `count`.
    ///
    /// `drift` is how far angles are from the prediction.
    fn run(
        &mut self,
        window: &Window<'_>,
        tracks: &[usize],
        count: usize,
        drift: &mut f64,
    ) -> Result<usize, ProbeError> {
        let mut pending: Vec<Test> = Vec::with_capacity(2 * tracks.len());
        for &track in tracks {
            let at_end = window.bounds[track + 1] == self.end;
            let jump = window.kinds[track].jump();
            let pitch = window.kinds[track].pitch;
            let questions: &[Question] = match jump.abs() < self.jump_min(pitch) {
                _ if at_end => &[Question::Last],
                false if self.hides_boundaries(window.kinds[track]) => {
                    &[Question::Whole, Question::Last, Question::First]
                }
                false => &[Question::Last, Question::First],
                true => &[Question::Whole, Question::Across],
            };
            pending.extend(questions.iter().map(|&question| Test { track, question }));
        }
        let mut wrong = count;
        let mut here = 0;
        while let Some(next) = self.nearest(window, &pending, here, *drift) {
            let test = pending.swap_remove(next);
            match self.ask(window, test, here, drift)? {
                true => here = test.leaves_at(),
                false => {
                    wrong = wrong.min(test.track);
                    pending.retain(|test| test.track < wrong);
                }
            }
        }
        Ok(wrong)
    }

    /// The test whose sector can be read first.
    fn nearest(
        &self,
        window: &Window<'_>,
        pending: &[Test],
        here: usize,
        drift: f64,
    ) -> Option<usize> {
        let now = self.clock.now();
        let due = |test: &Test| {
            let angle = window.angle(*test) + drift;
            self.clock.due(now, angle, window.reach(here, *test))
        };
        let timed = pending.iter().map(due).enumerate();
        timed
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(index, _)| index)
    }

    /// Whether the drive answers as predicted; a surprise counts if it comes twice.
    fn ask(
        &mut self,
        window: &Window<'_>,
        test: Test,
        here: usize,
        drift: &mut f64,
    ) -> Result<bool, ProbeError> {
        let kind = &window.kinds[test.track];
        let (first, bound) = (window.bounds[test.track], window.bounds[test.track + 1]);
        match test.question {
            Question::Whole => {
                let line = window.line(test.track, *drift);
                let (least, most) = self.excess(&line, first, bound)?;
                Ok(most <= 0.5 && least >= -2.0 * self.jump_min(kind.pitch))
            }
            Question::Across => {
                let angle = window.angle(test) + *drift;
                let excess = self.clock.excess(bound - 1, 2, angle, kind.pitch)?;
                // The next track goes on where this one would, a revolution later.
                let tolerance = (1.5 * kind.pitch).max(4.0 * self.jump_min(kind.pitch));
                let lost = |excess: f64| excess > 0.5 && wrap(excess).abs() < tolerance;
                Ok(excess.is_none_or(lost))
            }
            Question::Last | Question::First => {
                let lbn = bound - u64::from(matches!(test.question, Question::Last));
                let jump = kind.jump().abs();
                // A track may have slipped sectors; skews vary a little. More would be another zone.
                let surprise = match (test.question, self.clock.is_noisy()) {
                    (_, true) => 0.06,
                    (Question::Last, false) => 8.0 * kind.pitch,
                    (_, false) => 0.02,
                };
                // Where a few slipped sectors look like a skew, only the very place will do.
                let seen = self.jump_min(kind.pitch);
                let tolerance = match jump < 10.0 * kind.pitch {
                    true => seen.min(jump / 2.0),
                    false => (jump / 3.0).min(surprise).max(seen / 2.0),
                };
                let mut surprises: Vec<f64> = Vec::new();
                let mut late = 0;
                let mut away = window.reach(here, test);
                for _ in 0..8 {
                    let angle = window.angle(test) + *drift;
                    let due = self.clock.due(self.clock.now(), angle, away);
                    let Some(pass) = self.clock.pass(lbn)? else {
                        return Ok(true);
                    };
                    let deviation = wrap(pass.angle - angle);
                    if deviation.abs() <= tolerance {
                        self.clock.learn(away, due, pass.took);
                        // What comes late may come at any angle: once is not enough then.
                        late += u32::from(pass.took > due + 0.5);
                        if pass.took <= due + 0.5 || late > 1 {
                            // Where it is not quite as predicted, two tracks may fit like one.
                            if matches!(test.question, Question::Last)
                                && deviation.abs() > seen
                                && (deviation < 0.0
                                    || self.is_interrupted(
                                        &window.line(test.track, *drift),
                                        first,
                                        bound,
                                    )?)
                            {
                                return Ok(false);
                            }
                            *drift += deviation / 2.0;
                            return Ok(true);
                        }
                    }
                    let again =
                        |other: &f64| wrap(other - deviation).abs() <= self.clock.tolerance();
                    if deviation.abs() > tolerance {
                        if surprises.iter().any(again) {
                            return Ok(false);
                        }
                        surprises.push(deviation);
                    }
                    away = Reach::SAME;
                }
                Ok(false)
            }
        }
    }
}

impl Test {
    /// The predicted track on which its read begins.
    fn begins_at(&self) -> usize {
        self.track + usize::from(matches!(self.question, Question::First))
    }

    /// The predicted track on which its read ends.
    fn leaves_at(&self) -> usize {
        self.track + usize::from(matches!(self.question, Question::First | Question::Across))
    }
}

impl Window<'_> {
    /// How far the read of a test is from a predicted track.
    fn reach(&self, here: usize, test: Test) -> Reach {
        let there = test.begins_at();
        match here.abs_diff(there) {
            0 => Reach::SAME,
            1 => Reach::neighbour(self.kinds[here.min(there)].skew),
            tracks => Reach::tracks(tracks),
        }
    }

    /// The line of a predicted track's sectors.
    fn line(&self, track: usize, drift: f64) -> Line {
        Line {
            lbn: self.bounds[track],
            angle: self.angles[track] + drift,
            pitch: self.kinds[track].pitch,
        }
    }

    /// The angle at which the sector of a test should pass; of the first, where there are several.
    fn angle(&self, test: Test) -> f64 {
        let kind = &self.kinds[test.track];
        let start = self.angles[test.track];
        match test.question {
            Question::Last | Question::Across => start + f64::from(kind.sectors - 1) * kind.pitch,
            Question::First => self.angles[test.track + 1],
            Question::Whole => start,
        }
    }
}
