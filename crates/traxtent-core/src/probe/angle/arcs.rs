//! Taking a place apart, where a search by leaps does not end as tracks before it did.
//!
//! Sectors that follow one another without a gap are an arc. A track is one arc; or several, with bad
//! sectors between them. Two arcs are on one track where there is room for both in a revolution, and
//! where a read on one can follow a read on the other sooner than heads can be switched. LBNs kept
//! elsewhere are short arcs that lie on neither neighbour's track.

use super::super::algorithm::ProbeError;
use super::super::clock::{fraction, wrap};
use super::pattern::Kind;
use super::track::Line;
use super::{MOVED_MAX, Search};
use crate::units::Lbn;

/// No sector is longer, in revolutions.
const PITCH_MAX: f64 = 0.25;

/// A sector kept elsewhere is hardly ever so few slots behind where it should be.
pub(super) const SLOTS: f64 = 8.0;

/// How many undecided arcs ahead are looked at to decide one.
const AHEAD: usize = 2;

/// Shares of a head switch by which one read follows another, to see whether heads are switched.
const HOPS: [f64; 4] = [0.5, 0.3, 0.7, 0.85];

/// Sectors side by side.
#[derive(Clone, Copy, Debug)]
struct Arc {
    /// From the first of them on.
    line: Line,
    /// The LBN behind the last.
    end: u64,
}

/// What is known of a track.
#[derive(Debug)]
struct Parts {
    /// The angle of the first LBN, or where it would be, were it not kept elsewhere.
    start: f64,
    /// In the order of LBNs.
    arcs: Vec<Arc>,
    /// From `start` to the end of the last arc.
    span: f64,
    /// How many of its first LBNs are kept elsewhere; they may be the last ones of the track before.
    strays: u64,
    /// The LBN behind the last.
    end: u64,
}

impl Arc {
    fn sectors(&self) -> u64 {
        self.end - self.line.lbn
    }

    /// How much of a revolution it covers.
    fn span(&self) -> f64 {
        self.sectors() as f64 * self.line.pitch
    }

    fn is_short(&self) -> bool {
        self.sectors() <= u64::from(MOVED_MAX)
    }

    fn as_part(&self) -> (&Line, (u64, u64)) {
        (&self.line, (self.line.lbn, self.end))
    }
}

impl Parts {
    /// A track that begins with so many LBNs kept elsewhere, then an arc.
    fn of(arc: Arc, moved: u64) -> Parts {
        let before = moved as f64 * arc.line.pitch;
        Parts {
            start: arc.line.angle - before,
            span: before + arc.span(),
            strays: moved,
            arcs: vec![arc],
            end: arc.end,
        }
    }

    fn last(&self) -> &Arc {
        self.arcs.last().expect("a track has an arc")
    }

    /// From its first LBN that is not kept elsewhere to the end of the last arc.
    fn own_span(&self) -> f64 {
        self.span - self.strays as f64 * self.arcs[0].line.pitch
    }
}

impl Search<'_, '_> {
    /// The track that begins at `self.first`, arc by arc, and the angle of the next one's first sector.
    pub(super) fn take_apart(&mut self, pitch: f64) -> Result<(Kind, f64), ProbeError> {
        let mut track = self.opening(pitch)?;
        while track.end < self.end && self.goes_on(&mut track, AHEAD)? {}
        if track.strays > 0 && track.span > 1.0 + self.jump_min(pitch) {
            return self.strays_before(&track);
        }
        let longest = track.arcs.iter().max_by_key(|arc| arc.sectors());
        let pitch = longest.map_or(pitch, |arc| arc.line.pitch);
        let next = match track.end < self.end {
            true => self.angle_of_start(track.end, Some(pitch), None)?,
            false => track.start + track.span,
        };
        let sectors =
            u32::try_from(track.end - self.first).map_err(|_| self.baffled("no end in sight"))?;
        self.angle = track.start;
        let skew = fraction(next - track.start);
        Ok((
            Kind {
                sectors,
                pitch,
                skew,
            },
            next,
        ))
    }

    /// The LBNs at `self.first` that are kept elsewhere, where the track behind them has no room for them: as a track of
    /// their own, which can join the one before.
    fn strays_before(&mut self, behind: &Parts) -> Result<(Kind, f64), ProbeError> {
        let pitch = behind.arcs[0].line.pitch;
        let next = behind.arcs[0].line.angle;
        let first = self.first;
        self.result.moved.retain(|moved| moved.0 < first);
        self.angle = behind.start;
        let kind = Kind {
            sectors: behind.strays as u32,
            pitch,
            skew: fraction(next - behind.start),
        };
        Ok((kind, next))
    }

    /// The first arc of the track at `self.first`; its first LBNs may be kept elsewhere.
    fn opening(&mut self, pitch: f64) -> Result<Parts, ProbeError> {
        let own = self.arc_from(self.first, pitch)?;
        if !own.is_short() || own.end >= self.end {
            return Ok(Parts::of(own, 0));
        }
        let behind = self.arc_from(own.end, pitch)?;
        let parts = Parts::of(behind, own.sectors());
        // A physical sector is no track, so what lies behind it need not be long to be one.
        let long = !behind.is_short() || own.sectors() <= self.clock.physical_ratio();
        let has_room = long && self.has_room(&parts, own.sectors());
        let last = self.recent.back().map(|(line, _)| line.angle);
        let moved = self.is_moved(last, parts.start, &own, &behind);
        if has_room && moved && !self.joins(&Parts::of(own, 0), &behind, AHEAD)? {
            self.note_moved(&own);
            return Ok(parts);
        }
        Ok(Parts::of(own, 0))
    }

    /// Adds what comes next to a track, if it is a part of it.
    fn goes_on(&mut self, track: &mut Parts, ahead: usize) -> Result<bool, ProbeError> {
        let pitch = track.arcs[0].line.pitch;
        let next = self.arc_from(track.end, pitch)?;
        if !next.is_short() || next.end >= self.end {
            let joins = self.joins(track, &next, ahead)?;
            if joins {
                self.add(track, next);
            }
            return Ok(joins);
        }
        // It may be kept elsewhere.
        let behind = self.arc_from(next.end, pitch)?;
        let last = *track.last();
        let to = |angle: f64| self.gap(&last.line, last.end, angle);
        let in_order = to(next.line.angle) < to(behind.line.angle);
        // A spare sector of this very track would seem to join it, far ahead.
        let skip = !in_order && self.joins(track, &behind, ahead)?;
        if !skip && self.joins(track, &next, ahead)? {
            self.add(track, next);
            return Ok(true);
        }
        if skip || in_order && self.joins(track, &behind, ahead)? {
            self.note_moved(&next);
            self.add(track, behind);
            return Ok(true);
        }
        let room = track.span + next.span() <= 1.0 + self.jump_min(pitch);
        let moved = self.is_moved(Some(track.start), behind.line.angle, &next, &behind);
        if room && moved && !self.joins(&Parts::of(next, 0), &behind, ahead)? {
            self.note_moved(&next);
            track.end = next.end;
        }
        Ok(false)
    }

    /// Whether a track that begins with so many LBNs kept elsewhere fits a revolution.
    fn has_room(&self, track: &Parts, moved: u64) -> bool {
        let arc = track.last();
        let sectors = moved + arc.sectors();
        let error = self.jump_min(arc.line.pitch);
        // Where angles jitter, a track that was full tells how many it can have at most.
        let is_full = |turns: f64| (turns - 1.0).abs() < error;
        let is_less = |(line, full): &(Line, u32)| {
            let off = (line.pitch - arc.line.pitch).abs() * sectors as f64;
            u64::from(*full) < sectors && is_full(f64::from(*full) * line.pitch) && off < error
        };
        track.span <= 1.0 + error && !self.recent.iter().any(is_less)
    }

    fn add(&self, track: &mut Parts, arc: Arc) {
        let last = track.last();
        track.span += self.gap(&last.line, last.end, arc.line.angle) + arc.span();
        track.end = arc.end;
        track.arcs.push(arc);
    }

    /// Notes that LBNs are kept elsewhere.
    fn note_moved(&mut self, arc: &Arc) {
        self.result.moved.extend((arc.line.lbn..arc.end).map(Lbn));
    }

    /// Whether a short arc between tracks that begin at these angles is kept elsewhere, rather than a track.
    fn is_moved(&self, before: Option<f64>, after: f64, short: &Arc, behind: &Arc) -> bool {
        // A physical sector is no track.
        if short.sectors() <= self.clock.physical_ratio() {
            return true;
        }
        let Some(before) = before else {
            return false;
        };
        let pitch = behind.line.pitch;
        let track = self.is_usual(short.line.angle - before, pitch)
            || self.is_usual(behind.line.angle - short.line.angle, pitch)
            || self.is_usual(after - short.line.angle, pitch);
        !track && self.is_usual(after - before, pitch)
    }

    /// Whether tracks of late had this skew.
    fn is_usual(&self, skew: f64, pitch: f64) -> bool {
        let tolerance = (6.0 * self.clock.sigma).max(0.4 * pitch);
        self.pattern.had_skew(fraction(skew), tolerance)
    }

    /// Whether an arc belongs to the track before it.
    fn joins(&mut self, track: &Parts, arc: &Arc, ahead: usize) -> Result<bool, ProbeError> {
        let last = track.last();
        let gap = self.gap(&last.line, last.end, arc.line.angle);
        let fits = track.own_span() + gap + arc.span() <= 1.0 + self.jump_min(last.line.pitch);
        if !fits || self.differs(last, arc) {
            return Ok(false);
        }
        // Where reads do not tell it is, unless it may well begin the next track.
        let usual = self.is_usual(arc.line.angle - track.start, last.line.pitch);
        let moved = arc.sectors() <= self.clock.physical_ratio() && gap > SLOTS * last.line.pitch;
        let told = self.is_one_track(track, arc, ahead)?;
        Ok(told.unwrap_or(!usual && !moved))
    }

    /// Whether the sectors of two arcs are not of one length.
    fn differs(&self, a: &Arc, b: &Arc) -> bool {
        let error = |arc: &Arc| 2.0 * self.jump_min(arc.line.pitch) / arc.sectors() as f64;
        (a.line.pitch - b.line.pitch).abs() > error(a) + error(b)
    }

    /// Whether an arc that follows a track is on it, if reads tell.
    fn is_one_track(
        &mut self,
        track: &Parts,
        arc: &Arc,
        ahead: usize,
    ) -> Result<Option<bool>, ProbeError> {
        let switch = self.switch()?;
        let last = *track.last();
        if last.end == arc.line.lbn {
            if self.is_interrupted(&last.line, last.end - 1, last.end + 1)? {
                return Ok(Some(false));
            }
            // No heads could have been switched within the gap.
            let gap = self.gap(&last.line, last.end, arc.line.angle);
            if switch.is_some_and(|switch| gap < 0.6 * switch) {
                return Ok(Some(true));
            }
        }
        let mut other = Parts::of(*arc, 0);
        let told = self.by_hops(track, &other, switch)?;
        if told.is_some() || ahead == 0 {
            return Ok(told);
        }
        // What belongs to the arc may tell; what else is seen there is seen again in its turn.
        let moved = self.result.moved.len();
        while other.end < self.end && self.goes_on(&mut other, ahead - 1)? {}
        self.result.moved.truncate(moved);
        self.by_hops(track, &other, switch)
    }

    /// Whether parts are on one track: by reads of which one follows the other too soon for another head.
    fn by_hops(
        &mut self,
        a: &Parts,
        b: &Parts,
        switch: Option<f64>,
    ) -> Result<Option<bool>, ProbeError> {
        let longest = a.arcs.iter().chain(&b.arcs).max_by_key(|arc| arc.sectors());
        let (line, within) = longest.expect("a track has an arc").as_part();
        let turnaround = self.turnaround(line, within)?;
        // As soon as on one track, and no later: what is in time then, is on it.
        let soonest = turnaround + line.pitch / 2.0;
        if let Some(true) = self.by_hop(a, b, soonest)? {
            return Ok(Some(true));
        }
        for hop in HOPS {
            let Some(switch) = switch.filter(|switch| *switch > 0.02) else {
                break;
            };
            if let Some(same) = self.by_hop(a, b, turnaround + hop * switch)? {
                return Ok(Some(same));
            }
        }
        Ok(None)
    }

    /// Whether a read can follow another, on some arcs of two parts, `hop` revolutions behind it.
    fn by_hop(&mut self, a: &Parts, b: &Parts, hop: f64) -> Result<Option<bool>, ProbeError> {
        for (from, to) in a
            .arcs
            .iter()
            .flat_map(|a| b.arcs.iter().map(move |b| (a, b)))
        {
            let ((line_a, in_a), (line_b, in_b)) = (from.as_part(), to.as_part());
            if let Some(same) = self.one_track(line_a, in_a, line_b, in_b, hop)? {
                return Ok(Some(same));
            }
        }
        Ok(None)
    }

    /// The sectors side by side from `first` on.
    fn arc_from(&mut self, first: u64, pitch: f64) -> Result<Arc, ProbeError> {
        let mut limit = self.end;
        loop {
            let arc = self.line_up(first, pitch, limit)?;
            // LBNs kept elsewhere between those looked at, and tracks that go on where the last one ends.
            if arc.sectors() < 2 || !self.is_interrupted(&arc.line, first, arc.end)? {
                return Ok(arc);
            }
            // What lies behind has had a part in the pitch.
            limit = self.first_break(&arc.line, first, arc.end)?;
        }
    }

    /// The sectors from `first` on that pass one behind the other, by their angles.
    fn line_up(&mut self, first: u64, pitch: f64, limit: u64) -> Result<Arc, ProbeError> {
        let Some(angle) = self.clock.angle(first)? else {
            // It cannot be read, and lies anywhere.
            let line = Line {
                lbn: first,
                angle: 0.0,
                pitch,
            };
            return Ok(Arc {
                line,
                end: first + 1,
            });
        };
        let mut line = Line {
            lbn: first,
            angle,
            pitch,
        };
        line.pitch = self.pitch_at(line)?;
        // As far as a revolution goes, by the pitch as it becomes better.
        let limit = |line: &Line| (first + line.sectors_in(1.02) + 2).min(limit);
        let (mut low, mut step) = (first, 1);
        let mut high = loop {
            let lbn = first + step;
            if lbn >= limit(&line) {
                break limit(&line).max(low + 1);
            }
            if !self.lies_on(&mut line, lbn)? {
                break lbn;
            }
            (low, step) = (lbn, 2 * step);
        };
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.lies_on(&mut line, middle)? {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(Arc { line, end: high })
    }

    /// The pitch where a line begins: the one given, or another on which the next three sectors agree.
    fn pitch_at(&mut self, line: Line) -> Result<f64, ProbeError> {
        let lbn = line.lbn;
        if self.clock.is_noisy()
            || lbn + 3 >= self.end
            || self.lies_on(&mut line.clone(), lbn + 1)?
        {
            return Ok(line.pitch);
        }
        let mut pitch = None;
        for by in 1..=3 {
            let Some(angle) = self.clock.angle(lbn + by)? else {
                return Ok(line.pitch);
            };
            let own = *pitch.get_or_insert(wrap(angle - line.angle));
            let off = wrap(angle - line.angle - by as f64 * own);
            if !(0.0..PITCH_MAX).contains(&own) || off.abs() > self.jump_min(line.pitch) {
                return Ok(line.pitch);
            }
        }
        Ok(pitch.unwrap_or(line.pitch))
    }

    /// Where the line first breaks between `from` and `to`, which a read shows not to be one.
    fn first_break(&mut self, line: &Line, from: u64, to: u64) -> Result<u64, ProbeError> {
        let (mut low, mut high) = (from + 1, to);
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            match self.is_interrupted(line, low - 1, middle)? {
                true => high = middle,
                false => low = middle,
            }
        }
        Ok(low)
    }

    /// Whether a sector lies on a line; if so, the line's pitch becomes better.
    fn lies_on(&mut self, line: &mut Line, lbn: u64) -> Result<bool, ProbeError> {
        let Some(angle) = self.clock.angle(lbn)? else {
            return Ok(true);
        };
        let off = wrap(angle - line.at(lbn));
        // What a pitch of half the distance leaves open.
        if off.abs() > self.jump_min(line.pitch) + 4.0 * self.clock.sigma {
            return Ok(false);
        }
        let distance = (lbn - line.lbn) as f64;
        if distance * line.pitch > 20.0 * self.clock.sigma {
            line.pitch += off / distance;
        }
        Ok(true)
    }
}
