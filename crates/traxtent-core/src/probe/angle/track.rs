//! Finding one track without a prediction to lean on, or where the prediction fails.

use super::super::algorithm::ProbeError;
use super::super::clock::{fraction, wrap};
use super::Search;
use super::pattern::Kind;
use crate::units::Lbn;

/// A line of evenly spaced sectors: where the sectors of a track pass.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// A sector on it.
    lbn: u64,
    /// Its angle.
    angle: f64,
    /// The angle of one sector.
    pitch: f64,
}

impl Line {
    fn at(&self, lbn: u64) -> f64 {
        self.angle + (lbn as f64 - self.lbn as f64) * self.pitch
    }

    /// How many sectors pass in so many revolutions.
    fn sectors_in(&self, turns: f64) -> u64 {
        (turns.max(0.0) / self.pitch) as u64
    }
}

impl Search<'_, '_> {
    /// The track that begins at `self.first`, and the angle of the next one's first sector.
    pub(super) fn find_track(&mut self, guess: Option<Kind>) -> Result<(Kind, f64), ProbeError> {
        let first = self.first;
        let start = self.angle_of_start(first, guess.map(|kind| kind.pitch))?;
        let mut line = self.line_from(first, start, guess)?;
        let mut end = self.end_of(&mut line, first, guess.map(|kind| kind.sectors))?;
        let mut next = line.at(end);
        while end < self.end {
            next = self.angle_of_start(end, Some(line.pitch))?;
            let Some(rest) = self.resumes(&line, first, end, next, guess)? else {
                break;
            };
            line = Line {
                lbn: end,
                angle: next,
                ..line
            };
            end = rest;
            next = line.at(end);
        }
        let sectors = u32::try_from(end - first).map_err(|_| self.baffled("no end in sight"))?;
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
    pub(super) fn angle_of_start(
        &mut self,
        first: u64,
        pitch: Option<f64>,
    ) -> Result<f64, ProbeError> {
        let own = self.clock.angle(first)?;
        let Some(pitch) = pitch else {
            return own.map_or_else(|| self.angle_of_start(first + 1, None), Ok);
        };
        let mut seen: Vec<(u64, f64)> = own.map(|angle| (first, angle)).into_iter().collect();
        // Two of the next few that lie on one line; far enough apart to be read in one revolution, as a rule.
        let far = (0.12 / pitch) as u64;
        for lbn in [first + far, first + 1, first + 2, first + 3, first + 5] {
            if lbn >= self.end {
                continue;
            }
            let Some(angle) = self.clock.angle(lbn)? else {
                continue;
            };
            let on_line = |(other, at): &&(u64, f64)| {
                let passed = (lbn as f64 - *other as f64) * pitch;
                wrap(angle - at - passed).abs() < self.jump_min()
            };
            if let Some((other, at)) = seen.iter().find(on_line) {
                return Ok(at - (*other - first) as f64 * pitch);
            }
            seen.push((lbn, angle));
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
        let (mut step, mut reached) = (1, 0);
        while first + step < self.end {
            if let Some(at) = self.clock.angle(first + step)? {
                let expected = line.pitch * step as f64;
                let surprise = wrap(at - angle - expected);
                // An error of the pitch doubles with the distance; a jump does not wait for that.
                let passed = expected + surprise;
                if reached > 0 && surprise.abs() > self.jump_min() || passed > 0.97 {
                    break;
                }
                line.pitch = passed / step as f64;
                reached = step;
            }
            step *= 2;
        }
        if line.pitch <= 0.0 {
            return Err(self.baffled("the angles of sectors do not advance"));
        }
        Ok(line)
    }

    /// The line with the pitch of a guess, put right where a zone changed it a little; `None` where it does not fit.
    fn confirm_pitch(&mut self, line: Line, kind: Kind) -> Result<Option<Line>, ProbeError> {
        let tolerance = self.jump_min() / 2.0;
        let half = u64::from(kind.sectors / 2);
        let quarter = half / 2;
        if quarter == 0 || line.lbn + half >= self.end {
            return Ok((self.verify_pitch_unneeded(kind)).then_some(line));
        }
        let off = |angle: f64, by: u64| wrap(angle - line.at(line.lbn + by));
        let far = self.clock.angle(line.lbn + half)?.map(|a| off(a, half));
        if far.is_some_and(|d| d.abs() <= tolerance) {
            return Ok(Some(line));
        }
        let near = self
            .clock
            .angle(line.lbn + quarter)?
            .map(|a| off(a, quarter));
        Ok(match (near, far) {
            (Some(near), Some(far))
                if far.abs() < 0.25 && (far - 2.0 * near).abs() <= tolerance =>
            {
                let pitch = line.pitch + far / half as f64;
                Some(Line { pitch, ..line })
            }
            (Some(near), _) if near.abs() <= tolerance / 2.0 => Some(line),
            _ => None,
        })
    }

    /// A guess of a track of a few sectors cannot be far off.
    fn verify_pitch_unneeded(&self, kind: Kind) -> bool {
        kind.sectors < 4
    }

    /// The first LBN behind `from` that does not follow its predecessor on the line.
    ///
    /// Refines the line as it goes. `hint` is the length of the track, if there is a guess.
    fn end_of(&mut self, line: &mut Line, from: u64, hint: Option<u32>) -> Result<u64, ProbeError> {
        // `low` is on the line; `high` is not, or too far away to be.
        let limit = (from + line.sectors_in(1.02)).min(self.end);
        let (mut low, mut high) = (from, limit);
        // Most surprises are small: look around the expected end first, further and further away.
        let mut around = hint.map(|n| from + u64::from(n) - 1);
        let mut step = 1;
        while high - low > 1 {
            let lbn = match around {
                Some(lbn) => lbn.clamp(low + 1, high - 1),
                None => low + (high - low) / 2,
            };
            let fresh = (low, high) == (from, limit);
            if self.on(line, lbn)? {
                around = around
                    .filter(|_| fresh || high == limit)
                    .map(|_| lbn + step);
                low = lbn;
            } else {
                around = around
                    .filter(|_| fresh || low == from)
                    .map(|_| lbn.saturating_sub(step));
                high = lbn;
                self.pass_moved(line, &mut low, &mut high, limit)?;
            }
            step *= 2;
        }
        if high == limit && limit < self.end {
            return self.end_without_skew(line, from, limit);
        }
        Ok(high)
    }

    /// Where the LBN at `high` is off the line but those behind it are on it, it is kept elsewhere: goes past it.
    fn pass_moved(
        &mut self,
        line: &mut Line,
        low: &mut u64,
        high: &mut u64,
        limit: u64,
    ) -> Result<(), ProbeError> {
        if *high - *low > 1 {
            return Ok(());
        }
        for behind in [1, 2, 4] {
            let lbn = *high + behind;
            if lbn < limit && self.on(line, lbn)? && (behind == 1 || self.on(line, lbn + 1)?) {
                self.result.moved.extend((*high..lbn).map(Lbn));
                (*low, *high) = (lbn, limit);
                return Ok(());
            }
        }
        Ok(())
    }

    /// Whether a sector passes where the line says; if so, it makes the pitch a little better.
    fn on(&mut self, line: &mut Line, lbn: u64) -> Result<bool, ProbeError> {
        let mut surprises: Vec<f64> = Vec::new();
        for _ in 0..8 {
            let Some(pass) = self.clock.pass(lbn)? else {
                return Ok(true);
            };
            let deviation = wrap(pass.angle - line.at(lbn));
            if deviation.abs() <= self.jump_min() {
                let distance = lbn as f64 - line.lbn as f64;
                if distance * line.pitch > 0.2 {
                    line.pitch += deviation / distance / 2.0;
                }
                return Ok(true);
            }
            let again = |d: &f64| wrap(d - deviation).abs() <= self.clock.tolerance();
            if surprises.iter().any(again) {
                return Ok(false);
            }
            surprises.push(deviation);
        }
        Ok(false)
    }

    /// The end of a track whose successor goes on at the same angle: reads across it lose a revolution.
    fn end_without_skew(&mut self, line: &Line, from: u64, limit: u64) -> Result<u64, ProbeError> {
        // A read of the sectors before `low` is not interrupted, one of those before `high` is.
        let (mut low, mut high) = (from + 1, limit + 1);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let sectors = (middle - from) as u32;
            let excess = self
                .clock
                .excess(from, sectors, line.at(from), line.pitch)?;
            match excess {
                Some(excess) if excess > 0.5 => high = middle,
                _ => low = middle,
            }
        }
        if low == limit {
            return Err(self.baffled("a track longer than a revolution"));
        }
        Ok(low)
    }

    /// Whether the track goes on at `end`, behind a gap of bad sectors, and if so, where that part ends.
    ///
    /// It can only where both parts and the gap fit into a revolution.
    fn resumes(
        &mut self,
        line: &Line,
        first: u64,
        end: u64,
        angle: f64,
        guess: Option<Kind>,
    ) -> Result<Option<u64>, ProbeError> {
        let gap = fraction(angle - line.at(end));
        let room = 1.0 - fraction(line.at(end) - line.at(first)) - gap;
        let limit = end + line.sectors_in(room) + 1;
        let mut second = Line {
            lbn: end,
            angle,
            ..*line
        };
        if room <= 0.0 || limit + 1 >= self.end || self.on(&mut second, limit + 1)? {
            return Ok(None);
        }
        let rest = self.end_of(&mut second, end, None)?;
        if rest > limit {
            return Ok(None);
        }
        if let Some(same) = self.one_track(line, (first, end), &second, (end, rest))? {
            return Ok(same.then_some(rest));
        }
        // The arm cannot tell. Where the next track begins can: one skew on from here, or two.
        let after = self.angle_of_start(rest, Some(line.pitch))?;
        let skew = |kind: Kind| wrap(after - line.at(first) - kind.skew).abs() < 0.03;
        Ok(guess.is_some_and(skew).then_some(rest))
    }

    /// Whether two lines are on one track: whether the arm gets from one to the other in no more time than
    /// from a sector to its neighbours. `None` where no two sectors lie so that it could tell.
    fn one_track(
        &mut self,
        a: &Line,
        in_a: (u64, u64),
        b: &Line,
        in_b: (u64, u64),
    ) -> Result<Option<bool>, ProbeError> {
        let turnaround = self.turnaround(a, in_a)?;
        let switch = self.clock.lead(1);
        if switch < turnaround + 0.02 {
            return Ok(None);
        }
        let hop = (turnaround + switch) / 2.0;
        for (from, in_from, to, in_to) in [(a, in_a, b, in_b), (b, in_b, a, in_a)] {
            let length = in_from.1 - in_from.0;
            for k in 0..16 {
                let u = in_from.0 + (length - 1) * k / 15;
                let ahead = fraction(from.at(u) + hop - to.at(in_to.0));
                let v = in_to.0 + to.sectors_in(ahead);
                if v >= in_to.1 {
                    continue;
                }
                return Ok(Some(self.clock.follows(u, v)?));
            }
        }
        Ok(None)
    }

    /// How soon, in revolutions, a read can follow another on the same track.
    fn turnaround(&mut self, line: &Line, within: (u64, u64)) -> Result<f64, ProbeError> {
        if let Some(turns) = self.turnaround {
            return Ok(turns);
        }
        let length = within.1 - within.0;
        // Too near, far enough.
        let (mut low, mut high) = (0, line.sectors_in(0.6).min(length - 1));
        while high - low > 1 + length / 100 {
            let middle = low + (high - low) / 2;
            if self.clock.follows(within.0, within.0 + middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        let turns = high as f64 * line.pitch;
        // A part of a track is no place to measure this for good.
        if length as f64 * line.pitch > 0.6 {
            self.turnaround = Some(turns);
        }
        Ok(turns)
    }

    fn baffled(&self, problem: &str) -> ProbeError {
        ProbeError::Baffled {
            lbn: Lbn(self.first),
            problem: problem.to_owned(),
        }
    }
}
