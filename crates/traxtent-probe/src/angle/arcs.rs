//! Decomposing a track into arcs, if the search by doubling steps is inconsistent or finds a track
//! unlike those before it.
//!
//! Sectors that follow one another without a gap form an arc. A track is one arc, or several with
//! bad sectors between them. Two arcs can be on one track if there is room for both in a
//! revolution, and if a read on one can follow a read on the other sooner than heads can be
//! switched. Remapped LBNs are short arcs that lie on neither neighbour's track.

use super::super::extraction::ProbeError;
use super::pattern::TrackKind;
use super::track::{EXTRAPOLATED_SIGMAS, Line, TRACK_TURNS_MAX};
use super::{REMAPPED_LBNS_MAX, Search, skew_tolerance};
use traxtent_units::Lbn;
use traxtent_units::turns::{fraction, wrap};

/// The largest angular length of a sector, in revolutions.
const SECTOR_TURNS_MAX: f64 = 0.25;

/// The distance from its original slot, in slots, within which a remapped sector is rarely stored.
pub(super) const REMAPPED_SLOTS_MIN: f64 = 8.0;

/// The number of further undecided arcs that are examined to decide one.
const AHEAD: usize = 2;

/// The distances between the sectors of two reads that detect whether heads are switched: the
/// turnaround plus these shares of a head switch.
const HOPS: [f64; 4] = [0.5, 0.3, 0.7, 0.85];

/// The share of a head switch below which heads cannot have been switched within a gap.
const NO_SWITCH_SHARE: f64 = 0.6;

/// The shortest head switch that pairs of reads can detect, in revolutions.
const SWITCH_TURNS_MIN: f64 = 0.02;

/// The angular distance from a line's first sector above which a sector refines the line's pitch,
/// in standard deviations of an angle.
const REFINING_SIGMAS: f64 = 20.0;

/// Consecutive sectors without a gap.
#[derive(Clone, Copy, Debug)]
struct Arc {
    /// The line of the sectors, from the first of them.
    line: Line,
    /// The first LBN after the arc.
    end: u64,
}

/// The arcs found so far on a track.
#[derive(Debug)]
struct TrackArcs {
    /// The angle of the first LBN, or the angle that it would have if it were not remapped.
    start: f64,
    /// In LBN order.
    arcs: Vec<Arc>,
    /// The angle from `start` to the end of the last arc.
    span: f64,
    /// The number of remapped LBNs at the beginning of the track. They may be the last ones of the
    /// previous track.
    remapped: u64,
    /// The first LBN after the track.
    end: u64,
}

impl Arc {
    fn sectors(&self) -> u64 {
        self.end - self.line.lbn
    }

    /// The part of a revolution that it covers.
    fn span(&self) -> f64 {
        self.sectors() as f64 * self.line.pitch
    }

    fn is_short(&self) -> bool {
        self.sectors() <= u64::from(REMAPPED_LBNS_MAX)
    }

    fn as_part(&self) -> (&Line, (u64, u64)) {
        (&self.line, (self.line.lbn, self.end))
    }
}

impl TrackArcs {
    /// Creates a track that begins with `moved` remapped LBNs, followed by an arc.
    fn of(arc: Arc, moved: u64) -> TrackArcs {
        let before = moved as f64 * arc.line.pitch;
        TrackArcs {
            start: arc.line.angle - before,
            span: before + arc.span(),
            remapped: moved,
            arcs: vec![arc],
            end: arc.end,
        }
    }

    fn last(&self) -> &Arc {
        self.arcs.last().expect("a track has an arc")
    }

    /// The angle from its first LBN that is not remapped to the end of the last arc.
    fn own_span(&self) -> f64 {
        self.span - self.remapped as f64 * self.arcs[0].line.pitch
    }
}

impl Search<'_, '_> {
    /// Finds the track that begins at `self.first`, arc by arc. Returns it with the angle of the
    /// next track's first sector.
    pub(super) fn decompose(&mut self, pitch: f64) -> Result<(TrackKind, f64), ProbeError> {
        let mut track = self.opening(pitch)?;
        while track.end < self.end && self.continues(&mut track, AHEAD)? {}
        if track.remapped > 0 && track.span > 1.0 + self.jump_min(pitch) {
            return self.remapped_before(&track);
        }
        let longest = track.arcs.iter().max_by_key(|arc| arc.sectors());
        let pitch = longest.map_or(pitch, |arc| arc.line.pitch);
        let next = if track.end < self.end {
            self.angle_of_start(track.end, Some(pitch), None)?
        } else {
            track.start + track.span
        };
        let sectors = u32::try_from(track.end - self.first)
            .map_err(|_| self.inconsistent("the track has no end within its size limit"))?;
        self.angle = track.start;
        let skew = fraction(next - track.start);
        Ok((
            TrackKind {
                sectors,
                pitch,
                skew,
            },
            next,
        ))
    }

    /// Returns the remapped LBNs at `self.first` as a separate track, which can be joined to the
    /// previous one. Used if the track after them has no room for them.
    fn remapped_before(&mut self, following: &TrackArcs) -> Result<(TrackKind, f64), ProbeError> {
        let pitch = following.arcs[0].line.pitch;
        let next = following.arcs[0].line.angle;
        let first = self.first;
        self.result.remapped.retain(|moved| moved.0 < first);
        self.angle = following.start;
        let kind = TrackKind {
            sectors: following.remapped as u32,
            pitch,
            skew: fraction(next - following.start),
        };
        Ok((kind, next))
    }

    /// Returns the track at `self.first` up to the end of its first arc. LBNs of the track before
    /// that arc are remapped.
    fn opening(&mut self, pitch: f64) -> Result<TrackArcs, ProbeError> {
        let own = self.arc_from(self.first, pitch)?;
        if !own.is_short() || own.end >= self.end {
            return Ok(TrackArcs::of(own, 0));
        }
        let following = self.arc_from(own.end, pitch)?;
        let parts = TrackArcs::of(following, own.sectors());
        // A single physical sector is not a track, so the arc after it may be a track even if it is
        // short.
        let long = !following.is_short() || own.sectors() <= self.clock.physical_ratio();
        let has_room = long && self.has_room(&parts, own.sectors());
        let last = self.recent.back().map(|(line, _)| line.angle);
        let moved = self.is_moved(last, parts.start, &own, &following);
        if has_room && moved && !self.joins(&TrackArcs::of(own, 0), &following, AHEAD)? {
            self.record_remapped(&own);
            self.record_unconfirmed(&own);
            return Ok(parts);
        }
        Ok(TrackArcs::of(own, 0))
    }

    /// Adds the next arc to a track, or the one after a remapped arc, if it belongs to the track.
    /// Returns whether one was added. If only the remapped LBNs belong to the track, extends it by
    /// them.
    fn continues(&mut self, track: &mut TrackArcs, ahead: usize) -> Result<bool, ProbeError> {
        let pitch = track.arcs[0].line.pitch;
        let next = self.arc_from(track.end, pitch)?;
        if !next.is_short() || next.end >= self.end {
            let joins = self.joins(track, &next, ahead)?;
            if joins {
                self.add(track, next);
            }
            return Ok(joins);
        }
        // The next arc may be remapped.
        let following = self.arc_from(next.end, pitch)?;
        let last = *track.last();
        let to = |angle: f64| self.gap(&last.line, last.end, angle);
        let in_order = to(next.line.angle) < to(following.line.angle);
        // A remapped LBN in a spare of the same track would seem to join the track, far ahead.
        let skip = !in_order && self.joins(track, &following, ahead)?;
        if !skip && self.joins(track, &next, ahead)? {
            self.add(track, next);
            return Ok(true);
        }
        if skip || in_order && self.joins(track, &following, ahead)? {
            self.record_remapped(&next);
            self.add(track, following);
            return Ok(true);
        }
        let room = track.span + next.span() <= 1.0 + self.jump_min(pitch);
        let moved = self.is_moved(Some(track.start), following.line.angle, &next, &following);
        if room && moved && !self.joins(&TrackArcs::of(next, 0), &following, ahead)? {
            self.record_remapped(&next);
            self.record_unconfirmed(&next);
            track.end = next.end;
        }
        Ok(false)
    }

    /// Returns whether a track that begins with `moved` remapped LBNs fits in a revolution, and is
    /// not longer than a recent full track with the same pitch.
    fn has_room(&self, track: &TrackArcs, moved: u64) -> bool {
        let arc = track.last();
        let sectors = moved + arc.sectors();
        let error = self.jump_min(arc.line.pitch);
        // If angles jitter, a full track shows the maximum number of sectors.
        let is_full = |turns: f64| (turns - 1.0).abs() < error;
        let is_less = |(line, full): &(Line, u32)| {
            let off = (line.pitch - arc.line.pitch).abs() * sectors as f64;
            u64::from(*full) < sectors && is_full(f64::from(*full) * line.pitch) && off < error
        };
        track.span <= 1.0 + error && !self.recent.iter().any(is_less)
    }

    fn add(&self, track: &mut TrackArcs, arc: Arc) {
        let last = track.last();
        track.span += self.gap(&last.line, last.end, arc.line.angle) + arc.span();
        track.end = arc.end;
        track.arcs.push(arc);
    }

    /// Records remapped LBNs.
    fn record_remapped(&mut self, arc: &Arc) {
        self.result
            .remapped
            .extend((arc.line.lbn..arc.end).map(Lbn));
    }

    /// Records the first of several LBNs that count as remapped by skews alone, if they exceed a
    /// physical sector.
    fn record_unconfirmed(&mut self, arc: &Arc) {
        if arc.sectors() > self.clock.physical_ratio() {
            self.result.unconfirmed_remapped.push(Lbn(arc.line.lbn));
        }
    }

    /// Returns whether a short arc between tracks that begin at these angles is remapped, rather
    /// than a track.
    fn is_moved(&self, before: Option<f64>, after: f64, short: &Arc, following: &Arc) -> bool {
        // A single physical sector is not a track.
        if short.sectors() <= self.clock.physical_ratio() {
            return true;
        }
        let Some(before) = before else {
            return false;
        };
        let pitch = following.line.pitch;
        let track = self.is_usual(short.line.angle - before, pitch)
            || self.is_usual(following.line.angle - short.line.angle, pitch)
            || self.is_usual(after - short.line.angle, pitch);
        !track && self.is_usual(after - before, pitch)
    }

    /// Returns whether a recent track other than the last had this skew.
    fn is_usual(&self, skew: f64, pitch: f64) -> bool {
        let tolerance = skew_tolerance(self.clock.sigma, pitch);
        self.pattern.had_skew(fraction(skew), tolerance)
    }

    /// Returns whether an arc belongs to the track before it.
    fn joins(&mut self, track: &TrackArcs, arc: &Arc, ahead: usize) -> Result<bool, ProbeError> {
        let last = track.last();
        let gap = self.gap(&last.line, last.end, arc.line.angle);
        let fits = track.own_span() + gap + arc.span() <= 1.0 + self.jump_min(last.line.pitch);
        if !fits || self.differs(last, arc) {
            return Ok(false);
        }
        // If reads do not decide, the arc belongs to the track, unless it may well begin the next
        // one or be remapped.
        let usual = self.is_usual(arc.line.angle - track.start, last.line.pitch);
        let moved = arc.sectors() <= self.clock.physical_ratio()
            && gap > REMAPPED_SLOTS_MIN * last.line.pitch;
        let is_same = self.is_one_track(track, arc, ahead)?;
        Ok(is_same.unwrap_or(!usual && !moved))
    }

    /// Returns whether the sectors of two arcs differ in length.
    fn differs(&self, a: &Arc, b: &Arc) -> bool {
        let error = |arc: &Arc| 2.0 * self.jump_min(arc.line.pitch) / arc.sectors() as f64;
        (a.line.pitch - b.line.pitch).abs() > error(a) + error(b)
    }

    /// Returns whether an arc after a track is on that track, if reads decide it.
    fn is_one_track(
        &mut self,
        track: &TrackArcs,
        arc: &Arc,
        ahead: usize,
    ) -> Result<Option<bool>, ProbeError> {
        let switch = self.switch()?;
        let last = *track.last();
        if last.end == arc.line.lbn {
            if self.is_interrupted(&last.line, last.end - 1, last.end + 1)? {
                return Ok(Some(false));
            }
            // Heads could not have been switched within the gap.
            let gap = self.gap(&last.line, last.end, arc.line.angle);
            if switch.is_some_and(|switch| gap < NO_SWITCH_SHARE * switch) {
                return Ok(Some(true));
            }
        }
        let mut other = TrackArcs::of(*arc, 0);
        let is_same = self.by_hops(track, &other, switch)?;
        if is_same.is_some() || ahead == 0 {
            return Ok(is_same);
        }
        // Further arcs that belong to this one may decide. Remapped LBNs noticed here are
        // discarded, because they will be found again in their turn.
        let moved = self.result.remapped.len();
        while other.end < self.end && self.continues(&mut other, ahead - 1)? {}
        self.result.remapped.truncate(moved);
        self.by_hops(track, &other, switch)
    }

    /// Returns whether the arcs of two parts are on one track, judging by pairs of reads that
    /// follow each other too soon for a head switch.
    fn by_hops(
        &mut self,
        a: &TrackArcs,
        b: &TrackArcs,
        switch: Option<f64>,
    ) -> Result<Option<bool>, ProbeError> {
        let longest = a.arcs.iter().chain(&b.arcs).max_by_key(|arc| arc.sectors());
        let (line, within) = longest.expect("a track has an arc").as_part();
        let turnaround = self.turnaround(line, within)?;
        // The first attempt uses the shortest time possible on one track. If the second read is in
        // time, both arcs are on one track.
        let soonest = turnaround + line.pitch / 2.0;
        if let Some(true) = self.by_hop(a, b, soonest)? {
            return Ok(Some(true));
        }
        for hop in HOPS {
            let Some(switch) = switch.filter(|switch| *switch > SWITCH_TURNS_MIN) else {
                break;
            };
            if let Some(same) = self.by_hop(a, b, turnaround + hop * switch)? {
                return Ok(Some(same));
            }
        }
        Ok(None)
    }

    /// Returns whether a read can follow another after `hop` revolutions, on the first arcs of the
    /// two parts that have sectors at this distance. Returns `None` if no arcs have.
    fn by_hop(
        &mut self,
        a: &TrackArcs,
        b: &TrackArcs,
        hop: f64,
    ) -> Result<Option<bool>, ProbeError> {
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

    /// Returns the arc of consecutive sectors from `first`.
    fn arc_from(&mut self, first: u64, pitch: f64) -> Result<Arc, ProbeError> {
        let mut end_max = self.end;
        loop {
            let arc = self.line_up(first, pitch, end_max)?;
            // There may be remapped LBNs between the sectors that were read, or tracks that begin
            // where the last one ends.
            if arc.sectors() < 2 || !self.is_interrupted(&arc.line, first, arc.end)? {
                return Ok(arc);
            }
            // The sectors after the break have affected the pitch.
            end_max = self.first_break(&arc.line, first, arc.end)?;
            if !self.breaks_at(&arc.line, end_max)? {
                return Ok(arc);
            }
        }
    }

    /// Returns the sectors from `first` that pass consecutively, according to their angles.
    fn line_up(&mut self, first: u64, pitch: f64, end_max: u64) -> Result<Arc, ProbeError> {
        let Some(angle) = self.clock.angle(first)? else {
            // The sector cannot be read, so its angle is unknown.
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
        // At most one revolution, according to the pitch as it is refined.
        let reach = |line: &Line| (first + line.sectors_in(TRACK_TURNS_MAX) + 2).min(end_max);
        let (mut lower, mut step) = (first, 1);
        let mut upper = loop {
            let lbn = first + step;
            if lbn >= reach(&line) {
                break reach(&line).max(lower + 1);
            }
            if !self.lies_on(&mut line, lbn)? {
                break lbn;
            }
            (lower, step) = (lbn, 2 * step);
        };
        while upper - lower > 1 {
            let middle = lower + (upper - lower) / 2;
            if self.lies_on(&mut line, middle)? {
                lower = middle;
            } else {
                upper = middle;
            }
        }
        Ok(Arc { line, end: upper })
    }

    /// Returns the pitch at the beginning of a line: the one given, or another one that fits the
    /// next three sectors.
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
            if !(0.0..SECTOR_TURNS_MAX).contains(&own) || off.abs() > self.jump_min(line.pitch) {
                return Ok(line.pitch);
            }
        }
        Ok(pitch.unwrap_or(line.pitch))
    }

    /// Returns whether a line that seems to break before `end` does. On a noisy clock, the host may
    /// split long reads, and send the second part too late to continue in the same revolution. A
    /// read of the two sectors on both sides of the break decides.
    pub(super) fn breaks_at(&mut self, line: &Line, end: u64) -> Result<bool, ProbeError> {
        Ok(!self.clock.is_noisy() || self.is_interrupted(line, end - 1, end + 1)?)
    }

    /// Returns the LBN after the first break of the line between `from` and `to`. A read has shown
    /// that there is one.
    pub(super) fn first_break(
        &mut self,
        line: &Line,
        from: u64,
        to: u64,
    ) -> Result<u64, ProbeError> {
        let (mut lower, mut upper) = (from + 1, to);
        while upper - lower > 1 {
            let middle = lower + (upper - lower) / 2;
            if self.is_interrupted(line, lower - 1, middle)? {
                upper = middle;
            } else {
                lower = middle;
            }
        }
        Ok(lower)
    }

    /// Returns whether a sector lies on a line. If it does, and is far enough from the line's first
    /// sector, refines the line's pitch. Also returns true if the sector cannot be read.
    fn lies_on(&mut self, line: &mut Line, lbn: u64) -> Result<bool, ProbeError> {
        let Some(angle) = self.clock.angle(lbn)? else {
            return Ok(true);
        };
        let off = wrap(angle - line.at(lbn));
        if off.abs() > self.jump_min(line.pitch) + EXTRAPOLATED_SIGMAS * self.clock.sigma {
            return Ok(false);
        }
        let distance = (lbn - line.lbn) as f64;
        if distance * line.pitch > REFINING_SIGMAS * self.clock.sigma {
            line.pitch += off / distance;
        }
        Ok(true)
    }
}
