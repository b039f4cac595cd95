//! Finding one track without a prediction, or where the prediction fails.

use super::super::algorithm::ProbeError;
use super::super::clock::{fraction, wrap};
use super::pattern::TrackKind;
use super::{RECENT, Search};
use traxtent_units::Lbn;

/// The gap, in revolutions, below which bad sectors may be its cause.
const NEAR: f64 = 0.1;

/// The numbers of LBNs that may be remapped together: one, a few, or those of one or two physical
/// sectors.
const MOVED_TOGETHER: [u64; 4] = [1, 2, 8, 16];

/// A line of evenly spaced sectors: the angles at which the sectors of a track pass.
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
        if guess.is_some_and(|kind| (kind.pitch - line.pitch).abs() > 0.01 * line.pitch) {
            // The angle may have been extrapolated from later sectors with a wrong pitch.
            start = self.angle_of_start(first, Some(line.pitch), expected)?;
            line.angle = start;
        }
        let expected = guess.map(|kind| start + kind.skew);
        if let Some(kind) = guess
            && kind.jump().abs() < self.jump_min(line.pitch).max(3.0 * line.pitch)
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
        let next = match end < self.end {
            true => self.angle_of_start(end, Some(line.pitch), expected)?,
            false => line.at(end),
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
    /// read, the angle is extrapolated from the sectors after it.
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
        // The starts of the lines on which the sectors after it lie. The sectors are near ones,
        // because the pitch is a guess. A remapped physical sector forms a line of its own, so the
        // first sector is one beyond it.
        let mut starts: Vec<f64> = own.into_iter().collect();
        for by in [16, 1, 2, 17, 3, 5] {
            if first + by >= self.end {
                continue;
            }
            let Some(angle) = self.clock.angle(first + by)? else {
                continue;
            };
            let start = angle - by as f64 * pitch;
            // The pitch may be slightly off.
            let slack = tolerance + 0.03 * by as f64 * pitch;
            let is = |other: f64| wrap(start - other).abs() < slack;
            if own.is_some_and(is) && by > 8 {
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

    /// Returns the line of the sectors from `first`, by the guess or by doubling distances.
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
        for skipped in [0, 1, 2, 5, 11] {
            if reached >= 16 || first + skipped >= self.end {
                break;
            }
            let (far, pitch) = self.pitch_from(first + skipped)?;
            if far > reached {
                (reached, line.pitch) = (far, pitch);
            }
        }
        // Near a boundary, there is not enough of the track to improve on the guess.
        let error = 4.0 * self.clock.sigma / reached.max(1) as f64;
        if let Some(kind) = guess.filter(|kind| (kind.pitch - line.pitch).abs() < error) {
            line.pitch = kind.pitch;
        }
        if line.pitch <= 0.0 {
            return Err(self.inconsistent("the angles of consecutive sectors do not increase"));
        }
        Ok(line)
    }

    /// Returns how far sectors advance evenly from `first`, measured at doubling distances, and the
    /// angle of each sector.
    fn pitch_from(&mut self, first: u64) -> Result<(u64, f64), ProbeError> {
        let (mut step, mut reached, mut pitch) = (1, 0, 0.0);
        let Some(angle) = self.clock.angle(first)? else {
            return Ok((0, 0.0));
        };
        while first + step < self.end {
            if let Some(at) = self.clock.angle(first + step)? {
                let expected = pitch * step as f64;
                let surprise = wrap(at - angle - expected);
                // An error of the pitch doubles with the distance; a jump does not.
                let passed = expected + surprise;
                let jump = self.jump_min(pitch) + 4.0 * self.clock.sigma;
                if reached > 0 && surprise.abs() > jump || passed > 0.97 {
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
        let most = u64::from(kind.sectors) * 9 / 10;
        // The deviations of sectors from the line, at decreasing distances.
        let mut off: Vec<Option<f64>> = Vec::new();
        for reached in 0..3 {
            while off.len() < reached + 3 {
                let by = most >> off.len();
                let near = by > 0 && line.lbn + by < self.end;
                let angle = match near {
                    true => self.clock.angle(line.lbn + by)?,
                    false => None,
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
            let Some(far) = off[reached].filter(|far| far.abs() < 0.15) else {
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
        // `low` is on the line. `high` is not on it, or is too far away to be.
        let limit = (line.lbn + line.sectors_in(1.02) + 2).min(self.end);
        if from + 1 >= limit {
            return Ok(limit);
        }
        let (mut low, mut high) = (from, limit);
        // Most failed predictions are off by little, so search around the expected end first, with
        // doubling steps.
        let mut around = hint.map(|n| from + u64::from(n) - 1);
        let mut step = 1;
        loop {
            while high - low > 1 {
                let lbn = match around {
                    Some(lbn) => lbn.clamp(low + 1, high - 1),
                    None => low + (high - low) / 2,
                };
                let fresh = (low, high) == (from, limit);
                if self.on(line, lbn)? {
                    around = around
                        .filter(|_| fresh || high == limit)
                        .map(|_| lbn.saturating_add(step));
                    low = lbn;
                } else {
                    around = around
                        .filter(|_| fresh || low == from)
                        .map(|_| lbn.saturating_sub(step));
                    high = lbn;
                }
                step = step.saturating_mul(2);
            }
            let Some(behind) = self.after_remapped(line, high, limit)? else {
                break;
            };
            (low, high) = (behind, limit);
        }
        if high == self.end {
            return Ok(high);
        }
        if high == limit {
            return self.end_without_skew(line, from, limit);
        }
        self.confirm_end(line, from, low, high)
    }

    /// Returns the end of a track whose last sector on the line seems to be `low`, and which only a
    /// jump from there to `high` marks as the end.
    fn confirm_end(
        &mut self,
        line: &mut Line,
        from: u64,
        low: u64,
        high: u64,
    ) -> Result<u64, ProbeError> {
        let (Some(before), Some(behind)) = (self.clock.angle(low)?, self.clock.angle(high)?) else {
            return Ok(high);
        };
        let jump = wrap(behind - before - (high - low) as f64 * line.pitch).abs();
        if jump > 4.0 * self.jump_min(line.pitch) {
            return Ok(high);
        }
        // The next track may begin so close to where this one would continue that the angles differ
        // only some distance after the boundary.
        let near = from.max(high.saturating_sub(line.sectors_in(0.4)));
        if self.is_interrupted(line, near, high + 1)? {
            return self.end_without_skew(line, near, high + 1);
        }
        let off = wrap(behind - line.at(high));
        let seen = self.jump_min(line.pitch);
        if jump < seen && off.abs() < 3.0 * seen {
            // There is no jump here; the line has drifted.
            line.pitch += off / (high - line.lbn) as f64;
            return self.end_of(line, high, None);
        }
        Ok(high)
    }

    /// Returns the first LBN that is not remapped, if the LBN at `high` is off the line but later
    /// ones are on it.
    fn after_remapped(
        &mut self,
        line: &Line,
        high: u64,
        limit: u64,
    ) -> Result<Option<u64>, ProbeError> {
        for by in MOVED_TOGETHER {
            let lbn = high + by;
            if lbn + 1 < limit && self.on(line, lbn)? && self.on(line, lbn + 1)? {
                self.result.remapped.extend((high..lbn).map(Lbn));
                return Ok(Some(lbn));
            }
        }
        Ok(None)
    }

    /// Returns whether a sector passes where the line predicts.
    pub(super) fn on(&mut self, line: &Line, lbn: u64) -> Result<bool, ProbeError> {
        if !self.clock.is_noisy() {
            let angle = self.clock.angle(lbn)?;
            let near = |angle: f64| wrap(angle - line.at(lbn)).abs() <= self.jump_min(line.pitch);
            return Ok(angle.is_none_or(near));
        }
        let mut surprises: Vec<f64> = Vec::new();
        let mut late = false;
        for _ in 0..8 {
            let Some(pass) = self.clock.pass(lbn)? else {
                return Ok(true);
            };
            let deviation = wrap(pass.angle - line.at(lbn));
            // One reading does not distinguish a small jump from noise.
            let sigmas = deviation.abs() / self.clock.sigma.max(f64::MIN_POSITIVE);
            if (2.0..12.0).contains(&sigmas) {
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
        match gap.abs() < self.jump_min(line.pitch) {
            true => gap.max(0.0),
            false => fraction(gap),
        }
    }

    /// Corrects the pitch by the last sector of the line.
    fn refine(&mut self, line: &mut Line, last: u64) -> Result<(), ProbeError> {
        let distance = last as f64 - line.lbn as f64;
        let Some(angle) = self.clock.angle(last)? else {
            return Ok(());
        };
        let deviation = wrap(angle - line.at(last));
        if distance * line.pitch > 0.3 && deviation.abs() < 2.0 * self.jump_min(line.pitch) {
            line.pitch += deviation / distance;
        }
        Ok(())
    }

    /// Returns the end of a track whose successor continues at the same angle. Reads across it lose
    /// a revolution.
    fn end_without_skew(&mut self, line: &Line, from: u64, limit: u64) -> Result<u64, ProbeError> {
        // A read of the sectors before `low` is not interrupted; a read of those before `high` is.
        let (mut low, mut high) = (from + 1, limit + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if self.is_interrupted(line, low - 1, middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        if low == limit {
            return Err(self.inconsistent("the track seems to be longer than a revolution"));
        }
        Ok(low)
    }

    /// Returns the end of the track that begins at `self.first`, by reads that lose a revolution,
    /// if tracks have no skew. Returns `None` if they have a skew after all. Slipped sectors cost
    /// such reads little time.
    fn end_by_interruption(
        &mut self,
        line: &Line,
        expected: u32,
    ) -> Result<Option<u64>, ProbeError> {
        let first = self.first;
        let limit = first + line.sectors_in(1.0) + 2;
        if limit > self.end {
            return Ok(None);
        }
        // The first LBN may be remapped.
        let base = match self.on(line, first)? {
            true => first,
            false => match self.after_remapped(line, first, limit)? {
                Some(behind) => behind,
                None => return Ok(None),
            },
        };
        let (mut low, mut high) = (base + 1, limit);
        let mut step = 1;
        let mut around = Some(first + u64::from(expected));
        loop {
            if !self.is_interrupted(line, low - 1, limit)? {
                return Ok(None);
            }
            while high - low > 1 {
                let middle = match around {
                    Some(lbn) => lbn.clamp(low + 1, high - 1),
                    None => low + (high - low) / 2,
                };
                let interrupted = self.is_interrupted(line, low - 1, middle)?;
                if interrupted {
                    high = middle;
                } else {
                    low = middle;
                }
                around = match (around, interrupted) {
                    (Some(_), true) if low == base + 1 => Some(middle.saturating_sub(step)),
                    (Some(_), false) if step < 64 => Some(middle + step),
                    _ => None,
                };
                step *= 2;
            }
            // The next track continues along the line; remapped sectors do not.
            if self.on(line, low)? {
                break;
            }
            let Some(behind) = self.after_remapped(line, low, limit)? else {
                break;
            };
            (low, high, around) = (behind + 1, limit, None);
        }
        let last = self.clock.angle(low - 1)?;
        let strays = last.map_or(0.0, |angle| wrap(angle - line.at(low - 1)));
        let slipped = (-self.jump_min(line.pitch)..NEAR).contains(&strays);
        Ok(slipped.then_some(low))
    }

    /// Returns whether a read of sectors that seem to be consecutive loses a revolution.
    pub(super) fn is_interrupted(
        &mut self,
        line: &Line,
        from: u64,
        to: u64,
    ) -> Result<bool, ProbeError> {
        let (_, most) = self.excess(line, from, to)?;
        Ok(most > 0.5)
    }

    /// Returns how much longer than expected reads of seemingly consecutive sectors take, in
    /// revolutions: the minimum and the maximum. Negative values mean that the sectors are shorter
    /// than those of the line.
    ///
    /// Each read covers half a revolution. A drive that can begin longer reads anywhere on the
    /// track would compensate for the lost time.
    pub(super) fn excess(
        &mut self,
        line: &Line,
        from: u64,
        to: u64,
    ) -> Result<(f64, f64), ProbeError> {
        let half = line.sectors_in(0.5).max(2);
        let (mut least, mut most) = (0.0_f64, 0.0_f64);
        let mut first = from;
        while first + 1 < to && most <= 0.5 {
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
    /// `None` if no two sectors are placed so that they could decide it.
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
        if (within.1 - within.0) as f64 * line.pitch > 0.6 {
            self.turnaround = Some(turns);
        }
        Ok(turns)
    }

    /// The additional time, in revolutions, that a read on a neighbouring track needs at least.
    pub(super) fn switch(&mut self) -> Result<Option<f64>, ProbeError> {
        let lines: Vec<(Line, (u64, u64))> = self
            .recent
            .iter()
            .map(|(line, sectors)| (*line, (line.lbn, line.lbn + u64::from(*sectors))))
            .collect();
        let whole = |part: &(Line, (u64, u64))| (part.1.1 - part.1.0) as f64 * part.0.pitch > 0.6;
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

    /// The smallest angle by which a sector of `b` may be after one of `a` and still be read in the
    /// same revolution.
    fn soonest(
        &mut self,
        (a, in_a): (&Line, (u64, u64)),
        (b, in_b): (&Line, (u64, u64)),
    ) -> Result<f64, ProbeError> {
        // `low` is too soon, `high` is late enough.
        let (mut low, mut high) = (0.0, 0.6);
        while high - low > a.pitch.min(b.pitch) / 4.0 {
            let middle = (low + high) / 2.0;
            let Some((u, v)) = pair_apart((a, in_a), (b, in_b), middle) else {
                // There is no such pair.
                low = middle;
                continue;
            };
            if self.clock.follows(u, v)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        Ok(high)
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
    (0..16).find_map(|k| {
        let u = in_a.0 + (length - 1) * k / 15;
        let ahead = fraction(a.at(u) + turns - b.at(in_b.0));
        let v = in_b.0 + b.sectors_in(ahead);
        (v < in_b.1).then_some((u, v))
    })
}
