//! Testing predicted boundaries in the order in which they come under the heads.

use super::super::clock::{ArmDistance, INTERRUPTED_TURNS, MISSED_TURNS};
use super::super::extraction::ProbeError;
use super::pattern::{SAME_SKEW_TURNS, SLIPS, TrackKind};
use super::track::Line;
use super::{CYLINDER, REACH_AFTER, SURFACES_MAX, Search};
use traxtent_map::{Confirm, Verify};
use traxtent_units::turns::{fraction, wrap};

/// The tolerance on the loss of one revolution at boundaries without skew, in revolutions.
const LOST_TOLERANCE_TURNS: f64 = 0.1;

/// The jump, in sectors, below which bad sectors may be the cause.
const FEW_SECTORS: f64 = 10.0;

/// The largest deviation, in revolutions, at which a boundary may still be the predicted one on a
/// noisy clock. A larger deviation indicates another zone.
const DEVIATION_NOISY_TURNS: f64 = 0.06;
/// The same for the beginning of a track on a steady clock, in revolutions.
const DEVIATION_SKEW_TURNS: f64 = 0.02;
/// The same for the end of a track, which may have slipped sectors, in sectors.
const DEVIATION_SECTORS: f64 = 8.0;

/// The largest number of readings of a sector until it is decided whether it is at the predicted
/// angle.
const READINGS_MAX: usize = 8;

/// The numbers of tracks after which a pattern may repeat by cylinder. A longer period is that of a
/// pass over a surface.
const CYLINDER_TRACKS: std::ops::RangeInclusive<usize> = 2..=16;

/// The largest difference between the largest skew and the skew at the end of a cylinder, in
/// revolutions.
const LARGEST_SKEW_SLACK_TURNS: f64 = 0.01;

/// The jump, in sectors, below which a boundary is tested by a read across it: an angle that has
/// drifted by a sector would hide a jump of one.
const HIDDEN_JUMP_SECTORS: f64 = 1.5;

/// The largest correction of a skew by noisy angles, in sectors.
const CORRECTED_SECTORS_MAX: f64 = 1.0 / 4.0;

/// A test that a prediction must pass.
#[derive(Clone, Copy, Debug)]
struct Test {
    /// The boundary: the end of this predicted track.
    track: usize,
    check: BoundaryTest,
}

#[derive(Clone, Copy, Debug)]
enum BoundaryTest {
    /// Is the LBN before the boundary where the track continues?
    Last,
    /// Is the LBN at the boundary where the next track begins?
    First,
    /// Is the track free of interruptions?
    Whole,
    /// Is a read across the boundary interrupted?
    Across,
    /// Do the tracks before the boundary have the predicted numbers of sectors, judging by any
    /// sector of the track after it?
    Shift,
}

/// The result of testing a prediction.
#[derive(Debug, Default)]
pub(super) struct Tested {
    /// The tracks whose predictions hold.
    pub(super) known: Vec<(TrackKind, Confirm)>,
    /// Whether all predictions hold.
    pub(super) whole: bool,
    /// The track that seems to follow them, if the predicted one does not hold.
    pub(super) replacement: Option<TrackKind>,
}

/// The boundaries to test.
#[derive(Debug, Default)]
struct ChosenTests {
    /// Tested on both sides.
    both: Vec<usize>,
    /// Tested by a single read.
    once: Vec<usize>,
}

/// Predicted tracks with their positions.
pub(super) struct Window<'w> {
    pub(super) kinds: &'w [TrackKind],
    /// The first LBN of each track, and the first LBN after the last.
    pub(super) boundaries: Vec<u64>,
    /// The predicted angles of these LBNs.
    pub(super) angles: Vec<f64>,
}

/// The deviation of angles from the prediction: a constant plus a rate per track.
#[derive(Clone, Debug, Default)]
pub(super) struct Drift {
    /// The deviations measured so far, by predicted track.
    seen: Vec<(usize, f64)>,
    /// The constant deviation.
    constant: f64,
    /// The sum of the products of deviation and track, for the line through the origin that fits
    /// the deviations best.
    products: f64,
    /// The sum of the squares of the tracks, for the same line.
    squares: f64,
}

impl Drift {
    fn rate_per_track(&self) -> f64 {
        if self.squares > 0.0 {
            self.products / self.squares
        } else {
            0.0
        }
    }

    /// The deviation at the first sector of a predicted track.
    pub(super) fn at(&self, track: usize) -> f64 {
        self.constant + self.rate_per_track() * track as f64
    }

    /// The deviation at the first sector of a predicted track, interpolated between the
    /// measurements before and after it.
    fn between(&self, track: usize) -> f64 {
        let mut before = (0, 0.0);
        let mut following: Option<(usize, f64)> = None;
        for &(seen, off) in &self.seen {
            if seen <= track {
                if seen >= before.0 {
                    before = (seen, off);
                }
            } else if following.is_none_or(|(b, _)| seen < b) {
                following = Some((seen, off));
            }
        }
        let Some(following) = following else {
            return before.1;
        };
        let part = (track - before.0) as f64 / (following.0 - before.0) as f64;
        before.1 + part * (following.1 - before.1)
    }

    /// Updates the drift by a sector whose angle was off by `off`, in addition to the drift known
    /// so far.
    pub(super) fn learn(&mut self, track: usize, off: f64) {
        let (all, track) = (self.at(track) + off, track as f64);
        self.seen.push((track as usize, all));
        self.products += all * track;
        self.squares += track * track;
        self.constant += (all - self.constant - self.rate_per_track() * track) / 2.0;
    }
}

impl Search<'_, '_> {
    /// Tests a prediction.
    pub(super) fn test(&mut self, predicted: &[TrackKind]) -> Result<Tested, ProbeError> {
        let kinds = self.clip(predicted);
        if kinds.is_empty() {
            return Ok(Tested::default());
        }
        let window = self.window(&kinds);
        let chosen = self.choose(&kinds);
        let mut drift = Drift::default();
        let mut tests = self.tests(&window, &chosen.both);
        tests.extend(self.single_tests(&window, &chosen.once));
        let mut tested = chosen.both;
        let mut wrong = kinds.len();
        while let Some(failed) = self.run(&window, &mut tests, &mut drift)? {
            // Bisect between the last boundary that holds and the first that does not.
            wrong = failed;
            loop {
                let lower = self.lower(&tests, &tested, wrong);
                if lower >= wrong {
                    break;
                }
                let middle = lower + (wrong - lower) / 2;
                tests.retain(|test| test.track != middle);
                tested.push(middle);
                let mut one = self.tests(&window, &[middle]);
                if self.run(&window, &mut one, &mut drift)?.is_some() {
                    wrong = middle;
                }
            }
            tests.retain(|test| test.track < wrong);
        }
        let instead = match self.verify {
            Verify::None | Verify::Sample if wrong < kinds.len() => {
                self.instead(&window, wrong, &drift)?
            }
            _ => None,
        };
        let holds = wrong.min(kinds.len());
        drift.seen.retain(|(track, _)| *track <= holds);
        let skews = self.skews(&kinds[..holds], &drift);
        let known = skews.into_iter().enumerate().map(|(i, skew)| {
            let confirm = match self.verify {
                _ if tested.contains(&i) => Confirm::Tested,
                Verify::None => Confirm::Predicted,
                Verify::Sample | Verify::Full => Confirm::Sampled,
            };
            (TrackKind { skew, ..kinds[i] }, confirm)
        });
        Ok(Tested {
            known: known.collect(),
            whole: holds == predicted.len(),
            replacement: instead,
        })
    }

    /// Returns the skews of tracks whose predictions hold, corrected by the drift of angles. On a
    /// noisy clock, each skew is corrected by a fraction of a sector. The rest of the drift goes to
    /// the first skew that differs from the last known one, or to the first of all.
    fn skews(&self, kinds: &[TrackKind], drift: &Drift) -> Vec<f64> {
        let mut skews: Vec<f64> = kinds.iter().map(|kind| kind.skew).collect();
        if !self.clock.is_noisy() {
            for (track, skew) in skews.iter_mut().enumerate() {
                *skew += drift.between(track + 1) - drift.between(track);
            }
            return skews;
        }
        let all = drift.at(kinds.len());
        let mut rest = all;
        for (skew, kind) in skews.iter_mut().zip(kinds) {
            let most = CORRECTED_SECTORS_MAX * kind.pitch;
            let share = (all / kinds.len() as f64).clamp(-most, most);
            *skew += share;
            rest -= share;
        }
        let level = self.pattern.last().map_or(0.0, |last| last.skew);
        let changed = kinds
            .iter()
            .position(|kind| wrap(kind.skew - level).abs() > SAME_SKEW_TURNS);
        if let Some(skew) = skews.get_mut(changed.unwrap_or(0)) {
            *skew += rest;
        }
        skews
    }

    /// Returns the predicted tracks that begin before the drive's end. Shortens the last one if it
    /// does not fit.
    fn clip(&self, predicted: &[TrackKind]) -> Vec<TrackKind> {
        let mut room = self.end - self.first;
        let mut kinds = Vec::with_capacity(predicted.len());
        for kind in predicted {
            let sectors = room.min(u64::from(kind.sectors)) as u32;
            if sectors == 0 {
                break;
            }
            kinds.push(TrackKind { sectors, ..*kind });
            room -= u64::from(sectors);
        }
        kinds
    }

    fn window<'w>(&self, kinds: &'w [TrackKind]) -> Window<'w> {
        let (mut boundaries, mut angles) = (vec![self.first], vec![self.angle]);
        for (i, kind) in kinds.iter().enumerate() {
            boundaries.push(boundaries[i] + u64::from(kind.sectors));
            angles.push(angles[i] + kind.skew);
        }
        Window {
            kinds,
            boundaries,
            angles,
        }
    }

    /// The number of tracks per cylinder, if the tracks repeat that way.
    fn cylinder(&self) -> Option<usize> {
        self.pattern
            .period()
            .filter(|tracks| CYLINDER_TRACKS.contains(tracks))
    }

    /// Chooses the boundaries to test.
    fn choose(&self, kinds: &[TrackKind]) -> ChosenTests {
        let last = kinds.len() - 1;
        let mut chosen = match self.verify {
            Verify::None => ChosenTests::default(),
            Verify::Sample if kinds.len() > REACH_AFTER => self.sample(kinds),
            // After one failed prediction, there may be others that compensate it.
            Verify::Sample if !self.skew_changed && self.shifts_are_conclusive(kinds[0].pitch) => {
                ChosenTests {
                    both: Vec::new(),
                    once: (0..last).collect(),
                }
            }
            Verify::Sample | Verify::Full => ChosenTests {
                both: (0..last).collect(),
                once: Vec::new(),
            },
        };
        let boundary = self.first
            + kinds
                .iter()
                .map(|kind| u64::from(kind.sectors))
                .sum::<u64>();
        if boundary == self.end && last > 0 {
            // No track follows that would reveal an error here.
            chosen.both.push(last - 1);
        }
        chosen.both.push(last);
        chosen.both.sort_unstable();
        chosen.both.dedup();
        chosen.once.retain(|track| !chosen.both.contains(track));
        chosen
    }

    /// Chooses one boundary per cylinder, and both boundaries of each track whose size differs from
    /// those of earlier tracks.
    fn sample(&self, kinds: &[TrackKind]) -> ChosenTests {
        let last = kinds.len() - 1;
        // A deviation inside a cylinder may be compensated at its end, so the last boundary before
        // the end is chosen.
        let cylinder = self.cylinder();
        let surfaces = self.pattern.surfaces().filter(|n| *n <= SURFACES_MAX);
        let every = cylinder.unwrap_or(surfaces.unwrap_or(0).max(CYLINDER));
        let largest = self.pattern.largest_skew(2 * every);
        let inner = |i: &usize| fraction(kinds[i + 1].skew) > largest - LARGEST_SKEW_SLACK_TURNS;
        let mut regular: Vec<usize> = (0..last).filter(inner).collect();
        if cylinder.is_none() || regular.len() > 2 * (last / every) + 2 {
            regular = (0..last).skip(every - 1).step_by(every).collect();
        }
        // A track that differs from the one a cylinder earlier, or differs slightly from the one
        // before, may be a copy of a track with bad sectors.
        let back = |i: usize, by: usize| match i.checked_sub(by) {
            Some(then) => Some(kinds[then].sectors),
            None => self.pattern.sectors_back(by - i),
        };
        let differs = |i: usize| {
            let from = |by: usize| back(i, by).map_or(0, |then| then.abs_diff(kinds[i].sectors));
            from(cylinder.unwrap_or(1)) > 0 || (1..=SLIPS).contains(&from(1))
        };
        let irregular = (0..last).filter(|&i| differs(i + 1) || differs(i));
        // The LBN before a boundary reveals shrinking tracks immediately, and growing tracks one
        // cylinder later.
        let (both, once): (Vec<usize>, Vec<usize>) = (0..regular.len()).partition(|i| i % 2 == 1);
        let of = |indices: Vec<usize>| indices.into_iter().map(|i| regular[i]);
        ChosenTests {
            both: of(both).chain(irregular).collect(),
            once: of(once).collect(),
        }
    }

    /// Returns the tests of the given boundaries.
    fn tests(&self, window: &Window<'_>, tracks: &[usize]) -> Vec<Test> {
        let mut tests: Vec<Test> = Vec::with_capacity(2 * tracks.len());
        for &track in tracks {
            let at_end = window.boundaries[track + 1] == self.end;
            let jump = window.kinds[track].jump();
            let pitch = window.kinds[track].pitch;
            let hidden = jump.abs() < self.jump_min(pitch).max(HIDDEN_JUMP_SECTORS * pitch);
            let checks: &[BoundaryTest] = if at_end {
                &[BoundaryTest::Last]
            } else if hidden && self.verify == Verify::Full {
                &[BoundaryTest::Whole, BoundaryTest::Across]
            } else if hidden {
                &[BoundaryTest::Across]
            } else if self.hides_boundaries(window.kinds[track]) {
                &[BoundaryTest::Whole, BoundaryTest::Last, BoundaryTest::First]
            } else {
                &[BoundaryTest::Last, BoundaryTest::First]
            };
            tests.extend(checks.iter().map(|&check| Test { track, check }));
        }
        tests
    }

    /// Returns one test for each of the given boundaries.
    fn single_tests(&self, window: &Window<'_>, tracks: &[usize]) -> Vec<Test> {
        if tracks.is_empty() || !self.shifts_are_conclusive(window.kinds[0].pitch) {
            let mut tests = self.tests(window, tracks);
            tests.retain(|test| !matches!(test.check, BoundaryTest::First));
            return tests;
        }
        let check = BoundaryTest::Shift;
        tracks.iter().map(|&track| Test { track, check }).collect()
    }

    /// Runs tests up to the first that fails, and returns its boundary.
    ///
    /// `drift` is the deviation of angles from the prediction.
    fn run(
        &mut self,
        window: &Window<'_>,
        tests: &mut Vec<Test>,
        drift: &mut Drift,
    ) -> Result<Option<usize>, ProbeError> {
        let mut here = 0;
        while let Some(next) = self.nearest(window, tests, here, drift) {
            let test = tests.swap_remove(next);
            if !self.run_test(window, test, here, drift)? {
                return Ok(Some(test.track));
            }
            here = test.leaves_at();
        }
        Ok(None)
    }

    /// Finds the last boundary before `wrong` that has been tested and holds. Returns the boundary
    /// after it, or 0 if there is none.
    fn lower(&self, pending: &[Test], tested: &[usize], wrong: usize) -> usize {
        let holds =
            |track: &&usize| **track < wrong && !pending.iter().any(|test| test.track == **track);
        tested
            .iter()
            .filter(holds)
            .max()
            .map_or(0, |track| track + 1)
    }

    /// Returns the index of the test whose sector can be read first.
    fn nearest(
        &self,
        window: &Window<'_>,
        pending: &[Test],
        here: usize,
        drift: &Drift,
    ) -> Option<usize> {
        let now = self.clock.now();
        let due = |test: &Test| {
            if matches!(test.check, BoundaryTest::Shift) {
                return self.clock.lead(window.reach(here, *test));
            }
            let angle = window.angle(*test) + drift.at(test.begins_at());
            self.clock.due(now, angle, window.reach(here, *test))
        };
        let timed = pending.iter().map(due).enumerate();
        timed
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(|(index, _)| index)
    }

    /// Returns whether the drive behaves as predicted.
    fn run_test(
        &mut self,
        window: &Window<'_>,
        test: Test,
        here: usize,
        drift: &mut Drift,
    ) -> Result<bool, ProbeError> {
        let kind = &window.kinds[test.track];
        let boundary = window.boundaries[test.track + 1];
        match test.check {
            BoundaryTest::Whole => self.is_whole(&window.line(test.track, drift), boundary),
            BoundaryTest::Across => {
                let angle = window.angle(test) + drift.at(test.begins_at());
                Ok(self.is_across(kind, boundary, angle)?.unwrap_or(true))
            }
            BoundaryTest::Shift => {
                if let Some(shift) = self.shift(window, test.track + 1, here, drift)? {
                    return Ok(shift == 0);
                }
                for test in self.tests(window, &[test.track]) {
                    if !self.run_test(window, test, here, drift)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            BoundaryTest::Last | BoundaryTest::First => self.test_side(window, test, here, drift),
        }
    }

    /// Returns whether the LBN before or at a boundary passes at the predicted angle. On a noisy
    /// clock, or if the reading is late, a deviation counts only if it is measured twice. An LBN
    /// that cannot be read counts as predicted.
    fn test_side(
        &mut self,
        window: &Window<'_>,
        test: Test,
        here: usize,
        drift: &mut Drift,
    ) -> Result<bool, ProbeError> {
        let is_last = matches!(test.check, BoundaryTest::Last);
        let lbn = window.boundaries[test.track + 1] - u64::from(is_last);
        let tolerance = self.side_tolerance(&window.kinds[test.track], test.check);
        let mut deviations: Vec<f64> = Vec::new();
        let mut late = 0;
        let mut away = window.reach(here, test);
        for _ in 0..READINGS_MAX {
            let angle = window.angle(test) + drift.at(test.begins_at());
            let due = self.clock.due(self.clock.now(), angle, away);
            let Some(pass) = self.clock.pass(lbn)? else {
                return Ok(true);
            };
            let deviation = wrap(pass.angle - angle);
            if deviation.abs() <= tolerance {
                self.clock.learn(away, due, pass.took);
                // A late reading can have any angle, so a single one is not enough.
                let is_late = pass.took > due + MISSED_TURNS;
                late += u32::from(is_late);
                if !is_late || late > 1 {
                    return self.accept(window, test, here, drift, deviation);
                }
            } else {
                let again = |other: &f64| wrap(other - deviation).abs() <= self.clock.tolerance();
                let sure =
                    !self.clock.is_noisy() && pass.took <= self.clock.undisturbed_turns_max();
                if sure || deviations.iter().any(again) {
                    return self.accept_drift(window, test, drift, deviation);
                }
                deviations.push(deviation);
            }
            away = ArmDistance::SAME;
        }
        Ok(false)
    }

    /// The largest deviation at which the LBN before or at a boundary counts as being at the
    /// predicted angle.
    fn side_tolerance(&self, kind: &TrackKind, check: BoundaryTest) -> f64 {
        let jump = kind.jump().abs();
        // If a few slipped sectors look like a skew, only the exact position is accepted.
        let seen = self.jump_min(kind.pitch);
        if jump < FEW_SECTORS * kind.pitch {
            return seen.min(jump / 2.0);
        }
        let most = match check {
            _ if self.clock.is_noisy() => DEVIATION_NOISY_TURNS,
            BoundaryTest::Last => DEVIATION_SECTORS * kind.pitch,
            _ => DEVIATION_SKEW_TURNS,
        };
        (jump / 3.0).min(most).max(seen / 2.0)
    }

    /// Returns whether the prediction holds although the LBN before or at a boundary deviates by
    /// `deviation`, which is within the tolerance.
    fn accept(
        &mut self,
        window: &Window<'_>,
        test: Test,
        here: usize,
        drift: &mut Drift,
        deviation: f64,
    ) -> Result<bool, ProbeError> {
        let is_last = matches!(test.check, BoundaryTest::Last);
        let (first, boundary) = (
            window.boundaries[test.track],
            window.boundaries[test.track + 1],
        );
        let is_exact = deviation.abs() <= self.jump_min(window.kinds[test.track].pitch);
        // If the angle is not exactly as predicted, two tracks may fit together like one.
        if is_last
            && self.verify == Verify::Full
            && !is_exact
            && (deviation < 0.0
                || self.is_interrupted(&window.line(test.track, drift), first, boundary)?)
        {
            return Ok(false);
        }
        let decides = self.clock.is_noisy() || self.verify == Verify::Full || is_exact;
        if !decides && !is_last {
            // The sector may be another one of the track, if the tracks before it are short.
            let last = Test {
                check: BoundaryTest::Last,
                ..test
            };
            if !self.run_test(window, last, here, drift)? {
                return Ok(false);
            }
        }
        if decides || !is_last {
            drift.learn(test.begins_at(), deviation);
        }
        Ok(true)
    }

    /// Returns whether the prediction holds although the LBN before or at a boundary deviates by
    /// more than the tolerance. A small jump proves nothing if the prediction has drifted by as
    /// much, so a read across the boundary decides.
    fn accept_drift(
        &mut self,
        window: &Window<'_>,
        test: Test,
        drift: &mut Drift,
        deviation: f64,
    ) -> Result<bool, ProbeError> {
        let kind = &window.kinds[test.track];
        let boundary = window.boundaries[test.track + 1];
        let doubtful = self.verify != Verify::Full
            && boundary < self.end
            && deviation.abs().max(kind.jump().abs()) < FEW_SECTORS * kind.pitch;
        if !doubtful {
            return Ok(false);
        }
        let last = Test {
            check: BoundaryTest::Last,
            ..test
        };
        let angle = window.angle(last) + drift.at(test.track) + deviation;
        let across = self.is_across(kind, boundary, angle)?;
        if across == Some(true) {
            drift.learn(test.begins_at(), deviation);
        }
        Ok(across.unwrap_or(false))
    }

    /// Returns whether a read of the LBNs on both sides of a boundary, the first of them at
    /// `angle`, loses a revolution plus the jump between them. Returns `None` if the sectors cannot
    /// be read.
    fn is_across(
        &mut self,
        kind: &TrackKind,
        boundary: u64,
        angle: f64,
    ) -> Result<Option<bool>, ProbeError> {
        let excess = self.clock.excess(boundary - 1, 2, angle, kind.pitch)?;
        // A boundary that loses less than a revolution has a skew that can be detected.
        let as_predicted = |excess: f64| wrap(excess - kind.jump()).abs() < LOST_TOLERANCE_TURNS;
        Ok(excess.map(|excess| excess > INTERRUPTED_TURNS && as_predicted(excess)))
    }
}

impl Test {
    /// The predicted track on which its read begins.
    fn begins_at(&self) -> usize {
        self.track
            + usize::from(matches!(
                self.check,
                BoundaryTest::First | BoundaryTest::Shift
            ))
    }

    /// The predicted track on which its read ends.
    fn leaves_at(&self) -> usize {
        self.track
            + usize::from(!matches!(
                self.check,
                BoundaryTest::Last | BoundaryTest::Whole
            ))
    }
}

impl Window<'_> {
    /// The distance from a predicted track to the read of a test.
    fn reach(&self, here: usize, test: Test) -> ArmDistance {
        self.distance(here, test.begins_at())
    }

    /// The distance between two predicted tracks.
    pub(super) fn distance(&self, here: usize, there: usize) -> ArmDistance {
        match here.abs_diff(there) {
            0 => ArmDistance::SAME,
            1 => ArmDistance::neighbour(self.kinds[here.min(there)].skew),
            tracks => ArmDistance::tracks(tracks),
        }
    }

    /// The line of a predicted track's sectors.
    pub(super) fn line(&self, track: usize, drift: &Drift) -> Line {
        Line {
            lbn: self.boundaries[track],
            angle: self.angles[track] + drift.at(track),
            pitch: self.kinds[track].pitch,
        }
    }

    /// The angle at which the sector of a test should pass. If there are several sectors, this is
    /// the angle of the first.
    fn angle(&self, test: Test) -> f64 {
        let kind = &self.kinds[test.track];
        let start = self.angles[test.track];
        match test.check {
            BoundaryTest::Last | BoundaryTest::Across => {
                start + f64::from(kind.sectors - 1) * kind.pitch
            }
            BoundaryTest::First | BoundaryTest::Shift => self.angles[test.track + 1],
            BoundaryTest::Whole => start,
        }
    }
}
