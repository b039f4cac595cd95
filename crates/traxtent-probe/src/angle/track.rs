//! Finding one track without a prediction, or where the prediction fails.

use super::super::clock::INTERRUPTED_TURNS;
use super::super::extraction::ProbeError;
use super::pattern::TrackKind;
use super::{RECENT, Search};
use traxtent_units::Lbn;
use traxtent_units::turns::{fraction, wrap};

/// The deviation from a line, in revolutions, below which slipped sectors may be the cause.
const NEAR_TURNS: f64 = 0.1;

/// The numbers of LBNs that may be remapped together: one, a few, or those of one or two physical
/// sectors.
const MOVED_TOGETHER: [u64; 4] = [1, 2, 8, 16];

/// The uncertainty of an angle extrapolated to twice the distance at which the pitch was measured,
/// in standard deviations of one angle.
pub(super) const EXTRAPOLATED_SIGMAS: f64 = 4.0;

/// The relative error of a guessed pitch above which the angle of the first sector may have been
/// extrapolated wrongly.
const PITCH_WRONG: f64 = 0.01;
/// The relative error of a guessed pitch at the start of a track.
const PITCH_SLACK: f64 = 0.03;

/// The jump, in sectors, below which a boundary is sought by reads that lose a revolution.
const HIDDEN_JUMP_SECTORS: f64 = 3.0;

/// The distances, from the first sector, of the sectors that determine the line. The first distance
/// is beyond any LBNs that may be remapped together.
const STARTS_AT: [u64; 6] = [16, 1, 2, 17, 3, 5];
/// The numbers of sectors skipped at the beginning to measure a pitch, because they may be
/// remapped, or followed by bad ones.
const SKIPPED: [u64; 5] = [0, 1, 2, 5, 11];
/// The distance in sectors over which a pitch must hold, so that no further one is measured.
const PITCH_SECTORS_MIN: u64 = 16;
/// The largest angle, in revolutions, over which a pitch is measured. Sectors beyond it may be on
/// the next track.
const PITCH_TURNS_MAX: f64 = 0.97;
/// The deviation, in revolutions, beyond which a different pitch does not explain the angle of a
/// sector.
const PITCH_DEVIATION_MAX: f64 = 0.15;

/// The angle, in revolutions, that no track exceeds, with a margin for the error of the pitch.
pub(super) const TRACK_TURNS_MAX: f64 = 1.02;
/// The jump, in units of the smallest detectable one, above which it is taken for the end of a
/// track without further evidence.
const SURE_JUMPS: f64 = 4.0;
/// The deviation, in units of the smallest detectable jump, by which a line may have drifted.
const DRIFTED_JUMPS: f64 = 3.0;
/// The part of a track before its apparent end that is read again, in revolutions.
const REREAD_TURNS: f64 = 0.4;

/// The largest number of readings of a sector until it is decided whether it is on a line.
const READINGS_MAX: usize = 8;
/// The deviations, in standard deviations, between which one reading does not distinguish a small
/// jump from noise.
const UNSURE_SIGMAS: std::ops::Range<f64> = 2.0..12.0;

/// The length of a line, in revolutions, above which its last sector improves the pitch.
const REFINING_TURNS_MIN: f64 = 0.3;
/// The deviation of the last sector, in units of the smallest detectable jump, below which it
/// improves the pitch.
const REFINING_JUMPS_MAX: f64 = 2.0;

/// The part of a track, in revolutions, that counts as a whole one when the time between two reads
/// is measured.
const WHOLE_TURNS_MIN: f64 = 0.6;
/// The longest time between two reads that is tried, in revolutions.
const HOP_TURNS_MAX: f64 = 0.6;
/// The part of a revolution that one read covers. During a longer read, a drive with zero-latency
/// access would make up for the lost time.
const READ_TURNS: f64 = 0.5;

/// The distance in sectors above which an angle alone shows that the first sector is on the line.
const FAR_SECTORS: u64 = 8;
/// The part of a track over which a guessed pitch is tested first. The track may be shorter than
/// the guess.
const PITCH_TESTED: (u64, u64) = (9, 10);
/// The distance from the expected end, in sectors, beyond which the search bisects the rest.
const NEAR_END_SECTORS: u64 = 64;
/// The resolution of the time between two reads, in sectors.
const HOP_SECTORS: f64 = 1.0 / 4.0;
/// The number of sectors on one line that are tried to form a pair with one on another.
const PAIRS: u64 = 16;

/// A line of evenly spaced sectors: the angles, in revolutions, at which the sectors of a track
/// pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// A sector on it.
    pub(super) lbn: u64,
    /// Its angle.
    pub(super) angle: f64,
    /// The angle of one sector.
    pub(super) pitch: f64,
}

impl Line {
    pub(super) fn at(&self, lbn: u64) -> f64 {
        self.angle + (lbn as f64 - self.lbn as f64) * self.pitch
    }

    /// The number of sectors that pass in `turns` revolutions.
    pub(super) fn sectors_in(&self, turns: f64) -> u64 {
        (turns.max(0.0) / self.pitch) as u64
    }
}

impl Search<'_, '_> {
    /// Finds the track that begins at `self.first`. Returns it with the angle of the next track's
    /// first sector.
    pub(super) fn find_track(
        &mut self,
        guess: Option<TrackKind>,
    ) -> Result<(TrackKind, f64), ProbeError> {
        let first = self.first;
        let expected = Some(self.angle).filter(|_| guess.is_some());
        let mut start = self.angle_of_start(first, guess.map(|kind| kind.pitch), expected)?;
        let mut line = self.line_from(first, start, guess)?;
        if guess.is_some_and(|kind| (kind.pitch - line.pitch).abs() > PITCH_WRONG * line.pitch) {
            // The angle may have been extrapolated from later sectors with a wrong pitch.
            start = self.angle_of_start(first, Some(line.pitch), expected)?;
            line.angle = start;
        }
        let expected = guess.map(|kind| start + kind.skew);
        if let Some(kind) = guess
            && kind.jump().abs()
                < self
                    .jump_min(line.pitch)
                    .max(HIDDEN_JUMP_SECTORS * line.pitch)
            && let Some(end) = self.end_by_interruption(&line, kind.sectors)?
        {
            let next = self.angle_of_start(end, Some(line.pitch), expected)?;
            let kind = TrackKind {
                sectors: (end - first) as u32,
                pitch: line.pitch,
                skew: fraction(next - start),
            };
            self.angle = start;
            return Ok((kind, next));
        }
        let end = self.end_of(&mut line, first, guess.map(|kind| kind.sectors))?;
        let next = if end < self.end {
            self.angle_of_start(end, Some(line.pitch), expected)?
        } else {
            line.at(end)
        };
        let sectors = u32::try_from(end - first)
            .map_err(|_| self.inconsistent("the track has no end within its size limit"))?;
        self.refine(&mut line, end - 1)?;
        let kind = TrackKind {
            sectors,
            pitch: line.pitch,
            skew: fraction(next - start),
        };
        self.angle = start;
        Ok((kind, next))
    }

    /// Returns the angle of the first sector of a track. If that sector is remapped or cannot be
    /// read, the angle is extrapolated from the sectors after it. Without `pitch`, this is the
    /// angle of the first sector that can be read.
    ///
    /// `expected` is the expected angle, if there is a guess.
    pub(super) fn angle_of_start(
        &mut self,
        first: u64,
        pitch: Option<f64>,
        expected: Option<f64>,
    ) -> Result<f64, ProbeError> {
        let own = self.clock.angle(first)?;
        let Some(pitch) = pitch else {
            return own.map_or_else(|| self.angle_of_start(first + 1, None, None), Ok);
        };
        let tolerance = self.jump_min(pitch);
        let near = |a: f64, b: f64| wrap(a - b).abs() < tolerance;
        if let (Some(own), Some(expected)) = (own, expected)
            && near(own, expected)
        {
            return Ok(own);
        }
        // The starts of the lines on which the sectors after it lie. Near sectors are used, because
        // the pitch is a guess. A remapped physical sector forms a line of its own, so the first
        // sector tried is beyond it.
        let mut starts: Vec<f64> = own.into_iter().collect();
        for by in STARTS_AT {
            if first + by >= self.end {
                continue;
            }
            let Some(angle) = self.clock.angle(first + by)? else {
                continue;
            };
            let start = angle - by as f64 * pitch;
            // The pitch may be slightly off.
            let slack = tolerance + PITCH_SLACK * by as f64 * pitch;
            let is = |other: f64| wrap(start - other).abs() < slack;
            if own.is_some_and(is) && by > FAR_SECTORS {
                return Ok(own.unwrap_or(start));
            }
            let as_expected = expected.is_some_and(is);
            if as_expected || starts.iter().any(|other| near(*other, start)) {
                return Ok(start);
            }
            starts.push(start);
        }
        own.ok_or_else(|| self.inconsistent("the sectors here cannot be read"))
    }

    /// Returns the line of the sectors from `first`. Its pitch is that of the guess, if that fits,
    /// or is measured at doubling distances.
    fn line_from(
        &mut self,
        first: u64,
        angle: f64,
        guess: Option<TrackKind>,
    ) -> Result<Line, ProbeError> {
        let mut line = Line {
            lbn: first,
            angle,
            pitch: 0.0,
        };
        if let Some(kind) = guess {
            line.pitch = kind.pitch;
            if let Some(line) = self.confirm_pitch(line, kind)? {
                return Ok(line);
            }
            line.pitch = 0.0;
        }
        // The first sectors may be followed by bad ones, or be remapped.
        let mut reached = 0;
        for skipped in SKIPPED {
            if reached >= PITCH_SECTORS_MIN || first + skipped >= self.end {
                break;
            }
            let (far, pitch) = self.pitch_from(first + skipped)?;
            if far > reached {
                (reached, line.pitch) = (far, pitch);
            }
        }
        // Near a boundary, there is not enough of the track to improve on the guess.
        let error = EXTRAPOLATED_SIGMAS * self.clock.sigma / reached.max(1) as f64;
        if let Some(kind) = guess.filter(|kind| (kind.pitch - line.pitch).abs() < error) {
            line.pitch = kind.pitch;
        }
        if line.pitch <= 0.0 {
            return Err(self.inconsistent("the angles of consecutive sectors do not increase"));
        }
        Ok(line)
    }

    /// Returns the number of sectors over which angles advance evenly from `first`, measured at
    /// doubling distances, and the pitch.
    fn pitch_from(&mut self, first: u64) -> Result<(u64, f64), ProbeError> {
        let (mut step, mut reached, mut pitch) = (1, 0, 0.0);
        let Some(angle) = self.clock.angle(first)? else {
            return Ok((0, 0.0));
        };
        while first + step < self.end {
            if let Some(at) = self.clock.angle(first + step)? {
                let expected = pitch * step as f64;
                let deviation = wrap(at - angle - expected);
                // An error of the pitch doubles with the distance; a jump does not.
                let passed = expected + deviation;
                let jump = self.jump_min(pitch) + EXTRAPOLATED_SIGMAS * self.clock.sigma;
                if reached > 0 && deviation.abs() > jump || passed > PITCH_TURNS_MAX {
                    break;
                }
                pitch = passed / step as f64;
                reached = step;
            }
            step *= 2;
        }
        Ok((reached, pitch))
    }

    /// Returns the line with the pitch of a guess, corrected if a new zone has changed it slightly.
    /// Returns `None` if it does not fit.
    fn confirm_pitch(&mut self, line: Line, kind: TrackKind) -> Result<Option<Line>, ProbeError> {
        let tolerance = self.jump_min(kind.pitch) / 2.0;
        let most = u64::from(kind.sectors) * PITCH_TESTED.0 / PITCH_TESTED.1;
        // The deviations of sectors from the line, at decreasing distances.
        let mut off: Vec<Option<f64>> = Vec::new();
        for reached in 0..3 {
            while off.len() < reached + 3 {
                let by = most >> off.len();
                let near = by > 0 && line.lbn + by < self.end;
                let angle = if near {
                    self.clock.angle(line.lbn + by)?
                } else {
                    None
                };
                off.push(angle.map(|angle| wrap(angle - line.at(line.lbn + by))));
                if off.len() == reached + 1 && off[reached].is_some_and(|d| d.abs() <= tolerance) {
                    break;
                }
            }
            // Two sectors on the far side of a gap, or on another track, also determine the pitch
            // between them.
            let pair = (off[reached], off.get(reached + 1).copied().flatten());
            if let (Some(far), Some(near)) = pair
                && wrap(far - near).abs() <= tolerance
                && (reached == 0 || !self.clock.is_noisy())
            {
                return Ok(Some(line));
            }
            let Some(far) = off[reached].filter(|far| far.abs() < PITCH_DEVIATION_MAX) else {
                continue;
            };
            // A different pitch causes deviations proportional to the distance; slipped sectors do
            // not.
            let even = |part: f64, whole: f64| (whole - 2.0 * part).abs() <= tolerance;
            let proportional = far.abs() <= tolerance
                || match (off[reached + 1], off[reached + 2]) {
                    (Some(half), Some(quarter)) => even(half, far) && even(quarter, half),
                    _ => false,
                };
            if proportional {
                // A short part determines the pitch less well than the guess.
                let better = reached == 0 || far.abs() > tolerance;
                let by = if better {
                    far / (most >> reached) as f64
                } else {
                    0.0
                };
                let pitch = line.pitch + by;
                return Ok(Some(Line { pitch, ..line }));
            }
        }
        Ok(None)
    }

    /// Returns the first LBN after `from` that does not follow its predecessor on the line.
    ///
    /// Refines the line during the search. `hint` is the length of the track, if there is a guess.
    fn end_of(&mut self, line: &mut Line, from: u64, hint: Option<u32>) -> Result<u64, ProbeError> {
        // `lower` is on the line. `upper` is not on it, or is too far away to be.
        let end_max = (line.lbn + line.sectors_in(TRACK_TURNS_MAX) + 2).min(self.end);
        if from + 1 >= end_max {
            return Ok(end_max);
        }
        let (mut lower, mut upper) = (from, end_max);
        // Most failed predictions are off by little, so search around the expected end first, with
        // doubling steps.
        let mut around = hint.map(|n| from + u64::from(n) - 1);
        let mut step = 1;
        loop {
            while upper - lower > 1 {
                let lbn = match around {
                    Some(lbn) => lbn.clamp(lower + 1, upper - 1),
                    None => lower + (upper - lower) / 2,
                };
                let fresh = (lower, upper) == (from, end_max);
                if self.on(line, lbn)? {
                    around = around
                        .filter(|_| fresh || upper == end_max)
                        .map(|_| lbn.saturating_add(step));
                    lower = lbn;
                } else {
                    around = around
                        .filter(|_| fresh || lower == from)
                        .map(|_| lbn.saturating_sub(step));
                    upper = lbn;
                }
                step = step.saturating_mul(2);
            }
            let Some(following) = self.after_remapped(line, upper, end_max)? else {
                break;
            };
            (lower, upper) = (following, end_max);
        }
        if upper == self.end {
            return Ok(upper);
        }
        if upper == end_max {
            return self.end_without_skew(line, from, end_max);
        }
        self.confirm_end(line, from, lower, upper)
    }

    /// Returns the end of a track whose last sector on the line seems to be `lower`. The only
    /// indication is a jump of the angle from `lower` to `upper`.
    fn confirm_end(
        &mut self,
        line: &mut Line,
        from: u64,
        lower: u64,
        upper: u64,
    ) -> Result<u64, ProbeError> {
        let (Some(before), Some(following)) = (self.clock.angle(lower)?, self.clock.angle(upper)?)
        else {
            return Ok(upper);
        };
        let jump = wrap(following - before - (upper - lower) as f64 * line.pitch).abs();
        if jump > SURE_JUMPS * self.jump_min(line.pitch) {
            return Ok(upper);
        }
        // The next track may begin so close to where this one would continue that the angles differ
        // only some distance after the boundary.
        let near = from.max(upper.saturating_sub(line.sectors_in(REREAD_TURNS)));
        if self.is_interrupted(line, near, upper + 1)? {
            let end = self.end_without_skew(line, near, upper + 1)?;
            if self.breaks_at(line, end)? {
                return Ok(end);
            }
        }
        let off = wrap(following - line.at(upper));
        let seen = self.jump_min(line.pitch);
        if jump < seen && off.abs() < DRIFTED_JUMPS * seen {
            // There is no jump here; the line has drifted.
            line.pitch += off / (upper - line.lbn) as f64;
            return self.end_of(line, upper, None);
        }
        Ok(upper)
    }

    /// Returns the first LBN that is not remapped, if the LBN at `upper` is off the line but later
    /// ones are on it. Records the LBNs before it as remapped.
    fn after_remapped(
        &mut self,
        line: &Line,
        upper: u64,
        end_max: u64,
    ) -> Result<Option<u64>, ProbeError> {
        for by in MOVED_TOGETHER {
            let lbn = upper + by;
            if lbn + 1 < end_max && self.on(line, lbn)? && self.on(line, lbn + 1)? {
                self.result.remapped.extend((upper..lbn).map(Lbn));
                return Ok(Some(lbn));
            }
        }
        Ok(None)
    }

    /// Returns whether a sector passes where the line predicts. Also returns true if the sector
    /// cannot be read.
    pub(super) fn on(&mut self, line: &Line, lbn: u64) -> Result<bool, ProbeError> {
        if !self.clock.is_noisy() {
            let angle = self.clock.angle(lbn)?;
            let near = |angle: f64| wrap(angle - line.at(lbn)).abs() <= self.jump_min(line.pitch);
            return Ok(angle.is_none_or(near));
        }
        let mut surprises: Vec<f64> = Vec::new();
        let mut late = false;
        for _ in 0..READINGS_MAX {
            let Some(pass) = self.clock.pass(lbn)? else {
                return Ok(true);
            };
            let deviation = wrap(pass.angle - line.at(lbn));
            // One reading does not distinguish a small jump from noise.
            let sigmas = deviation.abs() / self.clock.sigma.max(f64::MIN_POSITIVE);
            if UNSURE_SIGMAS.contains(&sigmas) {
                let angle = self.clock.angle(lbn)?;
                let deviation = angle.map_or(0.0, |angle| wrap(angle - line.at(lbn)));
                return Ok(deviation.abs() <= self.jump_min(line.pitch));
            }
            if deviation.abs() <= self.jump_min(line.pitch) {
                // A late reading can have any angle, so a single one is not enough.
                if pass.took <= self.clock.undisturbed_turns_max() || late {
                    return Ok(true);
                }
                late = true;
                continue;
            }
            late |= pass.took > self.clock.undisturbed_turns_max();
            let again = |d: &f64| wrap(d - deviation).abs() <= self.clock.tolerance();
            if surprises.iter().any(again) {
                return Ok(false);
            }
            surprises.push(deviation);
        }
        Ok(false)
    }

    /// Returns the forward angle from where a line would continue at `lbn` to `angle`.
    pub(super) fn gap(&self, line: &Line, lbn: u64, angle: f64) -> f64 {
        let gap = wrap(angle - line.at(lbn));
        // A slightly negative gap counts as none.
        if gap.abs() < self.jump_min(line.pitch) {
            gap.max(0.0)
        } else {
            fraction(gap)
        }
    }

    /// Corrects the pitch by the last sector of the line.
    fn refine(&mut self, line: &mut Line, last: u64) -> Result<(), ProbeError> {
        let distance = last as f64 - line.lbn as f64;
        let Some(angle) = self.clock.angle(last)? else {
            return Ok(());
        };
        let deviation = wrap(angle - line.at(last));
        if distance * line.pitch > REFINING_TURNS_MIN
            && deviation.abs() < REFINING_JUMPS_MAX * self.jump_min(line.pitch)
        {
            line.pitch += deviation / distance;
        }
        Ok(())
    }

    /// Returns the end of a track whose successor continues at the same angle. Reads across it lose
    /// a revolution.
    fn end_without_skew(
        &mut self,
        line: &Line,
        from: u64,
        end_max: u64,
    ) -> Result<u64, ProbeError> {
        let end = self.first_break(line, from, end_max + 1)?;
        if end == end_max {
            return Err(self.inconsistent("the track seems to be longer than a revolution"));
        }
        Ok(end)
    }

    /// Returns the end of the track that begins at `self.first`, by reads that lose a revolution,
    /// if tracks have no skew. Returns `None` if they have a skew after all, or if the end is not
    /// found. Slipped sectors cost such reads little time, so they are not taken for the end.
    fn end_by_interruption(
        &mut self,
        line: &Line,
        expected: u32,
    ) -> Result<Option<u64>, ProbeError> {
        let first = self.first;
        let end_max = first + line.sectors_in(1.0) + 2;
        if end_max > self.end {
            return Ok(None);
        }
        // The first LBN may be remapped.
        let base = if self.on(line, first)? {
            first
        } else if let Some(next) = self.after_remapped(line, first, end_max)? {
            next
        } else {
            return Ok(None);
        };
        let (mut lower, mut upper) = (base + 1, end_max);
        let mut step = 1;
        let mut around = Some(first + u64::from(expected));
        loop {
            if !self.is_interrupted(line, lower - 1, end_max)? {
                return Ok(None);
            }
            while upper - lower > 1 {
                let middle = match around {
                    Some(lbn) => lbn.clamp(lower + 1, upper - 1),
                    None => lower + (upper - lower) / 2,
                };
                let interrupted = self.is_interrupted(line, lower - 1, middle)?;
                if interrupted {
                    upper = middle;
                } else {
                    lower = middle;
                }
                around = match (around, interrupted) {
                    (Some(_), true) if lower == base + 1 => Some(middle.saturating_sub(step)),
                    (Some(_), false) if step < NEAR_END_SECTORS => Some(middle + step),
                    _ => None,
                };
                step *= 2;
            }
            // The next track continues along the line; remapped sectors do not.
            if self.on(line, lower)? {
                break;
            }
            let Some(following) = self.after_remapped(line, lower, end_max)? else {
                break;
            };
            (lower, upper, around) = (following + 1, end_max, None);
        }
        if !self.breaks_at(line, lower)? {
            return Ok(None);
        }
        let last = self.clock.angle(lower - 1)?;
        let deviation = last.map_or(0.0, |angle| wrap(angle - line.at(lower - 1)));
        let slipped = (-self.jump_min(line.pitch)..NEAR_TURNS).contains(&deviation);
        Ok(slipped.then_some(lower))
    }

    /// Returns whether a read of sectors that seem to be consecutive loses a revolution.
    pub(super) fn is_interrupted(
        &mut self,
        line: &Line,
        from: u64,
        to: u64,
    ) -> Result<bool, ProbeError> {
        let (_, most) = self.excess(line, from, to)?;
        Ok(most > INTERRUPTED_TURNS)
    }

    /// Returns how much longer than expected reads of seemingly consecutive sectors take, in
    /// revolutions: the minimum and the maximum. Negative values mean that the sectors are shorter
    /// than those of the line.
    pub(super) fn excess(
        &mut self,
        line: &Line,
        from: u64,
        to: u64,
    ) -> Result<(f64, f64), ProbeError> {
        let half = line.sectors_in(READ_TURNS).max(2);
        let (mut least, mut most) = (0.0_f64, 0.0_f64);
        let mut first = from;
        while first + 1 < to && most <= INTERRUPTED_TURNS {
            let sectors = (to - first).min(half) as u32;
            let angle = line.at(first);
            let excess = self
                .clock
                .excess(first, sectors, angle, line.pitch)?
                .unwrap_or(0.0);
            (least, most) = (least.min(excess), most.max(excess));
            // Two adjacent sectors must be in one read.
            first += u64::from(sectors) - 1;
        }
        Ok((least, most))
    }

    /// Returns whether two lines are on one track: whether a read on one is in time `hop`
    /// revolutions after a read on the other, which is too soon if heads must be switched. Returns
    /// `None` if no two sectors have this distance.
    pub(super) fn one_track(
        &mut self,
        a: &Line,
        in_a: (u64, u64),
        b: &Line,
        in_b: (u64, u64),
        hop: f64,
    ) -> Result<Option<bool>, ProbeError> {
        for (from, to) in [((a, in_a), (b, in_b)), ((b, in_b), (a, in_a))] {
            if let Some((u, v)) = pair_apart(from, to, hop) {
                return Ok(Some(self.clock.follows(u, v)?));
            }
        }
        Ok(None)
    }

    /// The shortest time, in revolutions, after which a read can follow another on the same track.
    pub(super) fn turnaround(
        &mut self,
        line: &Line,
        within: (u64, u64),
    ) -> Result<f64, ProbeError> {
        if let Some(turns) = self.turnaround {
            return Ok(turns);
        }
        let turns = self.soonest((line, within), (line, within))?;
        // A part of a track is not enough to store this result permanently.
        if (within.1 - within.0) as f64 * line.pitch > WHOLE_TURNS_MIN {
            self.turnaround = Some(turns);
        }
        Ok(turns)
    }

    /// The minimum additional time of a read on a neighbouring track, in revolutions, or `None`
    /// while it cannot be measured.
    pub(super) fn switch(&mut self) -> Result<Option<f64>, ProbeError> {
        let lines: Vec<(Line, (u64, u64))> = self
            .recent
            .iter()
            .map(|(line, sectors)| (*line, (line.lbn, line.lbn + u64::from(*sectors))))
            .collect();
        let whole = |part: &(Line, (u64, u64))| {
            (part.1.1 - part.1.0) as f64 * part.0.pitch > WHOLE_TURNS_MIN
        };
        if self.switch.is_some()
            || self.clock.is_interleaved()
            || lines.len() < RECENT
            || !lines.iter().all(whole)
        {
            return Ok(self.switch);
        }
        let turnaround = self.turnaround(&lines[0].0, lines[0].1)?;
        let mut least = f64::INFINITY;
        for pair in lines.windows(2) {
            let turns = self.soonest((&pair[0].0, pair[0].1), (&pair[1].0, pair[1].1))?;
            least = least.min(turns - turnaround);
        }
        self.switch = Some(least.max(0.0));
        Ok(self.switch)
    }

    /// The smallest angle by which a sector of `b` can follow one of `a` and still be read in the
    /// same revolution.
    fn soonest(
        &mut self,
        (a, in_a): (&Line, (u64, u64)),
        (b, in_b): (&Line, (u64, u64)),
    ) -> Result<f64, ProbeError> {
        // `lower` is too soon, `upper` is late enough.
        let (mut lower, mut upper) = (0.0, HOP_TURNS_MAX);
        while upper - lower > HOP_SECTORS * a.pitch.min(b.pitch) {
            let middle = (lower + upper) / 2.0;
            let Some((u, v)) = pair_apart((a, in_a), (b, in_b), middle) else {
                // There is no such pair.
                lower = middle;
                continue;
            };
            if self.clock.follows(u, v)? {
                upper = middle;
            } else {
                lower = middle;
            }
        }
        Ok(upper)
    }

    pub(super) fn inconsistent(&self, problem: &str) -> ProbeError {
        ProbeError::Inconsistent {
            lbn: Lbn(self.first),
            problem: problem.to_owned(),
        }
    }
}

/// Returns a sector of one line and a sector of the other that ends `turns` revolutions later.
fn pair_apart(
    (a, in_a): (&Line, (u64, u64)),
    (b, in_b): (&Line, (u64, u64)),
    turns: f64,
) -> Option<(u64, u64)> {
    let length = in_a.1 - in_a.0;
    (0..PAIRS).find_map(|k| {
        let u = in_a.0 + (length - 1) * k / (PAIRS - 1);
        let ahead = fraction(a.at(u) + turns - b.at(in_b.0));
        let v = in_b.0 + b.sectors_in(ahead);
        (v < in_b.1).then_some((u, v))
    })
}
