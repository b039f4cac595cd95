//! Finding one track without a prediction to lean on, or where the prediction fails.

use super::super::algorithm::ProbeError;
use super::super::clock::{fraction, wrap};
use super::pattern::Kind;
use super::{RECENT, Search};
use crate::units::Lbn;

/// A gap smaller than this may be one of bad sectors, in revolutions.
const NEAR: f64 = 0.1;

/// How many LBNs in a row are kept elsewhere: one, a few, those of a physical sector or two.
const MOVED_TOGETHER: [u64; 4] = [1, 2, 8, 16];

/// A line of evenly spaced sectors: where the sectors of a track pass.
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

    /// How many sectors pass in so many revolutions.
    pub(super) fn sectors_in(&self, turns: f64) -> u64 {
        (turns.max(0.0) / self.pitch) as u64
    }
}

impl Search<'_, '_> {
    /// The track that begins at `self.first`, and the angle of the next one's first sector.
    pub(super) fn find_track(&mut self, guess: Option<Kind>) -> Result<(Kind, f64), ProbeError> {
        let first = self.first;
        let expected = Some(self.angle).filter(|_| guess.is_some());
        let mut start = self.angle_of_start(first, guess.map(|kind| kind.pitch), expected)?;
        let mut line = self.line_from(first, start, guess)?;
        if guess.is_some_and(|kind| (kind.pitch - line.pitch).abs() > 0.01 * line.pitch) {
            // It may have been reckoned back from sectors behind it with a pitch that was wrong.
            start = self.angle_of_start(first, Some(line.pitch), expected)?;
            line.angle = start;
        }
        let expected = guess.map(|kind| start + kind.skew);
        if let Some(kind) = guess
            && kind.jump().abs() < self.jump_min(line.pitch).max(3.0 * line.pitch)
            && let Some(end) = self.end_by_interruption(&line, kind.sectors)?
        {
            let next = self.angle_of_start(end, Some(line.pitch), expected)?;
            let kind = Kind {
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
        let sectors = u32::try_from(end - first).map_err(|_| self.baffled("no end in sight"))?;
        self.refine(&mut line, end - 1)?;
        let kind = Kind {
            sectors,
            pitch: line.pitch,
            skew: fraction(next - start),
        };
        self.angle = start;
        Ok((kind, next))
    }

    /// The angle of the first sector of a track, also where that sector is kept elsewhere or cannot be read:
    /// from those behind it.
    ///
    /// `expected` is where it should be, if there is a guess.
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
        // Where lines begin on which the sectors behind it lie; near ones, since the pitch is a guess. A physical
        // sector kept elsewhere is a line of its own, so the first is one beyond it.
        let mut starts: Vec<f64> = own.into_iter().collect();
        for by in [16, 1, 2, 17, 3, 5] {
            if first + by >= self.end {
                continue;
            }
            let Some(angle) = self.clock.angle(first + by)? else {
                continue;
            };
            let start = angle - by as f64 * pitch;
            // The pitch may be a little off.
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
        own.ok_or_else(|| self.baffled("the sectors here cannot be read"))
    }

    /// The line of the sectors from `first` on, by the guess or by doubling distances.
    fn line_from(
        &mut self,
        first: u64,
        angle: f64,
        guess: Option<Kind>,
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
        // The first sectors may be followed by bad ones, or be kept elsewhere.
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
        // Near a boundary there is not enough of the track to do better than the guess.
        let error = 4.0 * self.clock.sigma / reached.max(1) as f64;
        if let Some(kind) = guess.filter(|kind| (kind.pitch - line.pitch).abs() < error) {
            line.pitch = kind.pitch;
        }
        if line.pitch <= 0.0 {
            return Err(self.baffled("the angles of sectors do not advance"));
        }
        Ok(line)
    }

    /// How far sectors advance evenly from `first` on, by doubling distances, and by what angle each.
    fn pitch_from(&mut self, first: u64) -> Result<(u64, f64), ProbeError> {
        let (mut step, mut reached, mut pitch) = (1, 0, 0.0);
        let Some(angle) = self.clock.angle(first)? else {
            return Ok((0, 0.0));
        };
        while first + step < self.end {
            if let Some(at) = self.clock.angle(first + step)? {
                let expected = pitch * step as f64;
                let surprise = wrap(at - angle - expected);
                // An error of the pitch doubles with the distance; a jump does not wait for that.
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

    /// The line with the pitch of a guess, put right where a zone changed it a little; `None` where it does not fit.
    fn confirm_pitch(&mut self, line: Line, kind: Kind) -> Result<Option<Line>, ProbeError> {
        let tolerance = self.jump_min(kind.pitch) / 2.0;
        let most = u64::from(kind.sectors) * 9 / 10;
        // How far sectors are off the line, at ever shorter distances.
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
            // Sectors on both sides of a gap, or on another track, tell the pitch between them as well.
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
            // Another pitch shows everywhere in proportion; slipped sectors do not.
            let even = |part: f64, whole: f64| (whole - 2.0 * part).abs() <= tolerance;
            let proportional = far.abs() <= tolerance
                || match (off[reached + 1], off[reached + 2]) {
                    (Some(half), Some(quarter)) => even(half, far) && even(quarter, half),
                    _ => false,
                };
            if proportional {
                // A short piece says less of the pitch than the guess does.
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

    /// The first LBN behind `from` that does not follow its predecessor on the line.
    ///
    /// Refines the line as it goes. `hint` is the length of the track, if there is a guess.
    fn end_of(&mut self, line: &mut Line, from: u64, hint: Option<u32>) -> Result<u64, ProbeError> {
        // `low` is on the line; `high` is not, or too far away to be.
        let limit = (line.lbn + line.sectors_in(1.02) + 2).min(self.end);
        if from + 1 >= limit {
            return Ok(limit);
        }
        let (mut low, mut high) = (from, limit);
        // Most surprises are small: look around the expected end first, further and further away.
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
            let Some(behind) = self.behind_moved(line, high, limit)? else {
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
        self.settle(line, from, low, high)
    }

    /// The end of a track whose last sector on the line seems to be `low`, where only a jump from there to
    /// `high` makes it one.
    fn settle(
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
        // The next track may begin so near to where this one goes on that the angles tell only some way behind.
        let near = from.max(high.saturating_sub(line.sectors_in(0.4)));
        if self.is_interrupted(line, near, high + 1)? {
            return self.end_without_skew(line, near, high + 1);
        }
        let off = wrap(behind - line.at(high));
        let seen = self.jump_min(line.pitch);
        if jump < seen && off.abs() < 3.0 * seen {
            // Nothing jumps here: it is the line that runs astray.
            line.pitch += off / (high - line.lbn) as f64;
            return self.end_of(line, high, None);
        }
        Ok(high)
    }

    /// Where the LBN at `high` is off the line but those behind it are on it, it is kept elsewhere:
    /// the first that is not.
    fn behind_moved(
        &mut self,
        line: &Line,
        high: u64,
        limit: u64,
    ) -> Result<Option<u64>, ProbeError> {
        for by in MOVED_TOGETHER {
            let lbn = high + by;
            if lbn + 1 < limit && self.on(line, lbn)? && self.on(line, lbn + 1)? {
                self.result.moved.extend((high..lbn).map(Lbn));
                return Ok(Some(lbn));
            }
        }
        Ok(None)
    }

    /// Whether a sector passes where the line says.
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
            // One reading does not tell a small jump from noise.
            let sigmas = deviation.abs() / self.clock.sigma.max(f64::MIN_POSITIVE);
            if (2.0..12.0).contains(&sigmas) {
                let angle = self.clock.angle(lbn)?;
                let deviation = angle.map_or(0.0, |angle| wrap(angle - line.at(lbn)));
                return Ok(deviation.abs() <= self.jump_min(line.pitch));
            }
            if deviation.abs() <= self.jump_min(line.pitch) {
                // What comes late may come at any angle: once is not enough then.
                if pass.took <= self.clock.prompt() || late {
                    return Ok(true);
                }
                late = true;
                continue;
            }
            late |= pass.took > self.clock.prompt();
            let again = |d: &f64| wrap(d - deviation).abs() <= self.clock.tolerance();
            if surprises.iter().any(again) {
                return Ok(false);
            }
            surprises.push(deviation);
        }
        Ok(false)
    }

    /// From where a line would go on at `lbn` to `angle`, forward.
    pub(super) fn gap(&self, line: &Line, lbn: u64, angle: f64) -> f64 {
        let gap = wrap(angle - line.at(lbn));
        // What is a little negative is nothing.
        match gap.abs() < self.jump_min(line.pitch) {
            true => gap.max(0.0),
            false => fraction(gap),
        }
    }

    /// Makes the pitch right by the last sector of the line.
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

    /// The end of a track whose successor goes on at the same angle: reads across it lose a revolution.
    fn end_without_skew(&mut self, line: &Line, from: u64, limit: u64) -> Result<u64, ProbeError> {
        // A read of the sectors before `low` is not interrupted, one of those before `high` is.
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
            return Err(self.baffled("a track longer than a revolution"));
        }
        Ok(low)
    }

    /// The end of the track that begins at `self.first`, by reads that lose a revolution, where tracks have no skew;
    /// `None` where they do after all. Slipped sectors cost such reads little.
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
        // The first may be kept elsewhere.
        let base = match self.on(line, first)? {
            true => first,
            false => match self.behind_moved(line, first, limit)? {
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
            // The next track goes on along the line; what is kept elsewhere does not.
            if self.on(line, low)? {
                break;
            }
            let Some(behind) = self.behind_moved(line, low, limit)? else {
                break;
            };
            (low, high, around) = (behind + 1, limit, None);
        }
        let last = self.clock.angle(low - 1)?;
        let strays = last.map_or(0.0, |angle| wrap(angle - line.at(low - 1)));
        let slipped = (-self.jump_min(line.pitch)..NEAR).contains(&strays);
        Ok(slipped.then_some(low))
    }

    /// Whether a read of sectors that seem to lie one behind the other loses a revolution.
    pub(super) fn is_interrupted(
        &mut self,
        line: &Line,
        from: u64,
        to: u64,
    ) -> Result<bool, ProbeError> {
        let (_, most) = self.excess(line, from, to)?;
        Ok(most > 0.5)
    }

    /// How much longer reads of sectors that seem to lie one behind the other take than they should, in revolutions:
    /// the least and the most; less than nothing if the sectors are smaller than the line's.
    ///
    /// Half a revolution is read at a time: what begins longer reads anywhere on the track gains what it loses.
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
            // Sectors side by side must be in one read.
            first += u64::from(sectors) - 1;
        }
        Ok((least, most))
    }

    /// Whether two lines are on one track: whether a read on one is in time `hop` revolutions after one on the other,
    /// which is too soon where heads must be switched. `None` where no two sectors lie so that it could tell.
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

    /// How soon, in revolutions, a read can follow another on the same track.
    pub(super) fn turnaround(
        &mut self,
        line: &Line,
        within: (u64, u64),
    ) -> Result<f64, ProbeError> {
        if let Some(turns) = self.turnaround {
            return Ok(turns);
        }
        let turns = self.soonest((line, within), (line, within))?;
        // A part of a track is no place to measure this for good.
        if (within.1 - within.0) as f64 * line.pitch > 0.6 {
            self.turnaround = Some(turns);
        }
        Ok(turns)
    }

    /// How much longer, in revolutions, a read on a neighbouring track takes to follow, at the least.
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

    /// The least angle by which a sector of `b` may be behind one of `a` and still be read in the same revolution.
    fn soonest(
        &mut self,
        (a, in_a): (&Line, (u64, u64)),
        (b, in_b): (&Line, (u64, u64)),
    ) -> Result<f64, ProbeError> {
        // Too soon, late enough.
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

    pub(super) fn baffled(&self, problem: &str) -> ProbeError {
        ProbeError::Baffled {
            lbn: Lbn(self.first),
            problem: problem.to_owned(),
        }
    }
}

/// A sector of one line and one of another that ends `turns` later.
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
