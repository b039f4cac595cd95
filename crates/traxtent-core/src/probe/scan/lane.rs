//! The search in one place, written as if it were the only one.

use super::super::algorithm::ProbeError;
use super::super::clock::{fraction, wrap};
use super::{Shared, turn};
use crate::units::Lbn;

/// Readings of one sector until two agree.
const READINGS_MAX: usize = 20;

/// Runs of sectors kept elsewhere are not longer than this.
const MOVED_MAX: u64 = 4;

/// The arm is given so much more time than it seems to need, in revolutions.
const MARGIN: f64 = 0.1;

/// By this much, in revolutions, less and less time is tried.
const STEP: f64 = 0.15;

/// The time given to the arm where it cannot be measured.
const LEAD_UNKNOWN: f64 = 2.4;

/// What comes later than this lost a revolution.
const LOST: f64 = 0.5;

/// A gap smaller than this may be one of bad sectors, in revolutions.
const NEAR: f64 = 0.1;

/// So many of the last skews are remembered.
const SKEWS: usize = 8;

/// Two measurements of one skew differ by less than this, in revolutions.
const SAME: f64 = 0.01;

/// A search in one place.
pub(super) struct Lane<'s, 'c, 'a> {
    shared: &'s Shared<'c, 'a>,
    index: usize,
    /// The first LBN of the track to be found next.
    first: u64,
    /// A sector of the track that is being searched, and where it passes.
    at: (u64, f64),
    /// The angle of one sector.
    pitch: f64,
    /// How long before its first sector has passed a read is sent, in revolutions.
    lead: f64,
    /// Whether that is the time that the arm needs from where it comes from.
    calibrated: bool,
    /// The lane that read before this one.
    before: Option<usize>,
    /// The lately found skews that are beyond doubt.
    skews: Vec<f64>,
}

impl<'s, 'c, 'a> Lane<'s, 'c, 'a> {
    pub(super) fn new(shared: &'s Shared<'c, 'a>, index: usize, first: u64) -> Lane<'s, 'c, 'a> {
        Lane {
            shared,
            index,
            first,
            at: (first, 0.0),
            pitch: 0.0,
            lead: LEAD_UNKNOWN,
            calibrated: false,
            before: None,
            skews: Vec::new(),
        }
    }

    /// Finds tracks until the first bound of the next lane, or to the end of the region.
    ///
    /// `aligned` says that the lane begins with a track.
    pub(super) async fn run(mut self, aligned: bool) -> Result<(), ProbeError> {
        let mut sectors = None;
        if aligned {
            self.keep(self.first);
        } else {
            self.anchor().await?;
            self.first = self.learn_pitch(None).await?;
            self.first = self.end_of_track(None).await?;
            self.keep(self.first);
        }
        while self.first < self.shared.end && !self.has_met() {
            let end = match sectors {
                Some(sectors) if self.is_equal(sectors).await? => self.first + sectors,
                _ => self.end_of_track(sectors).await?,
            };
            sectors = Some(end - self.first);
            self.first = end;
            self.keep(end);
        }
        Ok(())
    }

    fn keep(&self, bound: u64) {
        self.shared.bounds[self.index].borrow_mut().push(bound);
    }

    fn has_met(&self) -> bool {
        self.shared.met(self.index, self.first).is_some()
    }

    /// Learns how long the arm needs to come back here, by readings of a sector.
    async fn calibrate(&mut self, lbn: u64) -> Result<(), ProbeError> {
        while !self.calibrated {
            self.calibrated = true;
            self.lead = f64::INFINITY;
            let Some(angle) = self.angle_of(lbn).await? else {
                self.lead = LEAD_UNKNOWN;
                break;
            };
            while self.calibrated && self.lead.is_finite() && self.lead > MARGIN + STEP {
                let lead = self.lead - MARGIN - STEP;
                match self.read(lead, (lbn, angle), 1).await? {
                    Some(excess) if excess < LOST => self.lead -= STEP,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Begins this lane's turn. If the arm comes from another lane than before, it needs another time.
    async fn turn(&mut self) {
        turn().await;
        let before = self.shared.last.replace(Some(self.index));
        if before != self.before {
            self.before = before;
            self.calibrated = false;
        }
    }

    /// Whether the next track is like the last: it runs on for so many sectors, and no further.
    async fn is_equal(&mut self, sectors: u64) -> Result<bool, ProbeError> {
        let end = self.first + sectors;
        if end >= self.shared.capacity || !self.runs_on(self.first, end).await? {
            return Ok(false);
        }
        let Some(skew) = self.excess(end - 1, end + 1).await? else {
            return Ok(false);
        };
        let known = |other: &f64| (other - skew).abs() < SAME;
        let full = sectors as f64 * self.pitch > 1.0 - self.pitch / 2.0;
        let ends = skew > self.jump_min() && (full || self.skews.iter().any(known));
        if ends {
            if skew < LOST && self.skews.iter().any(known) {
                self.shared.learn_skew(skew);
            }
            self.remember(skew);
            self.at = (end, self.angle_at(end) + skew);
        }
        Ok(ends)
    }

    /// The LBN behind the track that begins at `self.first`, or behind the rest of it; by the base method.
    async fn end_of_track(&mut self, guess: Option<u64>) -> Result<u64, ProbeError> {
        self.anchor().await?;
        let anchor = self.learn_pitch(guess).await?;
        // From the first sector to the one at which it broke off last, gaps included.
        let mut span = (anchor - self.first) as f64 * self.pitch;
        let mut from = anchor;
        let mut hint = guess.map(|sectors| self.first + sectors);
        loop {
            let stop = self.end_of_run(from, 1.0 - span, hint.take()).await?;
            if stop == self.shared.capacity {
                return Ok(stop);
            }
            span += (stop - from) as f64 * self.pitch;
            let gap = self.excess(stop - 1, stop + 1).await?.unwrap_or(0.0);
            let next = (stop, self.angle_at(stop) + gap);
            let full = span > 1.0 - self.pitch / 2.0;
            if !full && let Some(behind) = self.behind_moved(stop).await? {
                span += (behind - stop) as f64 * self.pitch;
                from = behind;
                continue;
            }
            self.at = next;
            let room = 1.0 - span - gap;
            if full || gap > LOST || room < self.pitch / 2.0 {
                self.remember(gap);
                return Ok(stop);
            }
            // The last sector that can be on this track, and one more.
            let beyond = stop + (room / self.pitch + 0.5) as u64 + 1;
            if beyond <= self.shared.capacity && self.runs_on(stop, beyond).await? {
                self.remember(gap);
                return Ok(stop);
            }
            self.at = next;
            let least = self.shared.least_skew.get();
            if least.is_some_and(|least| gap > 0.6 * least) {
                return Ok(stop);
            }
            span += gap;
            from = stop;
        }
    }

    /// Takes note of the skew of a boundary.
    fn remember(&mut self, skew: f64) {
        self.skews.retain(|other| (other - skew).abs() > SAME);
        self.skews.push(skew);
        if self.skews.len() > SKEWS {
            self.skews.remove(0);
        }
    }

    /// The first LBN at or just behind `self.first` that another follows, with its angle in `self.at`. Those
    /// before it are kept elsewhere or cannot be read.
    async fn anchor(&mut self) -> Result<u64, ProbeError> {
        let mut moved = Vec::new();
        for lbn in self.first..(self.first + MOVED_MAX).min(self.shared.capacity) {
            let Some(angle) = self.angle_of(lbn).await? else {
                continue;
            };
            self.at = (lbn, angle);
            // Before the pitch is known, two sectors tell nothing.
            let gap = match self.pitch > 0.0 && lbn + 2 <= self.shared.capacity {
                true => self.excess(lbn, lbn + 2).await?,
                false => Some(0.0),
            };
            match gap {
                Some(gap) if gap.abs() <= self.jump_min() => {
                    self.shared.moved.borrow_mut().append(&mut moved);
                    return Ok(lbn);
                }
                Some(gap) if gap > NEAR => moved.push(Lbn(lbn)),
                _ => {}
            }
        }
        match self.angle_of(self.first).await? {
            Some(angle) => self.at = (self.first, angle),
            None => return Err(self.baffled("the sectors here cannot be read")),
        }
        Ok(self.first)
    }

    /// The linear model: what a sector more costs, by reads of 1, 2, 4, … sectors more. Returns where the reads began.
    async fn learn_pitch(&mut self, guess: Option<u64>) -> Result<u64, ProbeError> {
        let old = self.pitch;
        let anchor = self.at;
        // A quarter of the track tells whether the old model still holds.
        let quarter = anchor.0 + guess.unwrap_or(0) / 4;
        if old > 0.0 && quarter > anchor.0 + 1 && quarter < self.shared.capacity {
            if self.runs_on(anchor.0, quarter).await? {
                return Ok(anchor.0);
            }
            self.at = anchor;
        }
        for _ in 0..READINGS_MAX {
            if self.double().await? {
                return Ok(self.at.0);
            }
            if old > 0.0 {
                self.pitch = old;
                return Ok(self.at.0);
            }
            // A gap right here is no model: a little further on.
            let next = self.at.0 + 1;
            if let Some(angle) = self.angle_of(next).await? {
                self.at = (next, angle);
            }
        }
        Err(self.baffled("longer reads take times that fit no model"))
    }

    /// Learns the model from ever longer reads; `false` where the first of them disagree.
    async fn double(&mut self) -> Result<bool, ProbeError> {
        let (first, _) = self.at;
        let (mut reached, mut more) = (0, 1);
        self.pitch = 0.0;
        while first + more < self.shared.capacity {
            let Some(excess) = self.excess(first, first + more + 1).await? else {
                break;
            };
            let passed = more as f64 * self.pitch + excess;
            if reached > 0 && excess.abs() > self.jump_min() || passed > LOST {
                break;
            }
            self.pitch = passed / more as f64;
            reached = more;
            more *= 2;
        }
        Ok(reached > 1 && self.pitch > 0.0)
    }

    /// Where the sectors from `from` on stop passing one behind the other: the first LBN that does not follow.
    ///
    /// `room` is what is left of the revolution.
    async fn end_of_run(
        &mut self,
        from: u64,
        room: f64,
        mut hint: Option<u64>,
    ) -> Result<u64, ProbeError> {
        let half = self.half();
        // Far behind a boundary, a smaller pitch could just make up for the skew.
        let limit = (from + (room / self.pitch) as u64 + 2).min(self.shared.capacity);
        // The sectors up to `low` follow each other, those up to `high` do not.
        let (mut low, mut high) = (from + 1, limit + 1);
        while high - low > 1 {
            let aim = match hint {
                Some(end) if low < end && end < high => end,
                Some(end) if low == end => end + 1,
                _ if high > limit => limit,
                _ => low + (high - low) / 2,
            };
            if hint.is_some_and(|end| low >= end || high <= end) {
                hint = None;
            }
            let to = aim.min(low - 1 + half).min(high - 1);
            match self.runs_on(low - 1, to).await? {
                true => low = to,
                false => high = to,
            }
        }
        if low == limit && limit < self.shared.capacity {
            return Err(self.baffled("a track longer than a revolution"));
        }
        Ok(low)
    }

    /// Whether the LBNs at `stop` are kept elsewhere, and if so, the first behind them that is not: it passes
    /// where it would if nothing had happened.
    async fn behind_moved(&mut self, stop: u64) -> Result<Option<u64>, ProbeError> {
        let (before, angle) = self.at;
        let end = (stop + MOVED_MAX + 1).min(self.shared.capacity);
        let expected = move |lane: &Self, lbn: u64| angle + (lbn - before) as f64 * lane.pitch;
        let Some(there) = self.angle_of(stop).await? else {
            return self.behind_unreadable(stop).await;
        };
        self.at = (stop, there);
        let runs_on = self.runs_on(stop, end).await?;
        self.at = (before, angle);
        if runs_on {
            return Ok(None);
        }
        for lbn in stop + 1..end {
            let Some(there) = self.angle_of(lbn).await? else {
                continue;
            };
            if wrap(there - expected(self, lbn)).abs() < self.jump_min() {
                self.at = (lbn, there);
                let moved = (stop..lbn).map(Lbn);
                self.shared.moved.borrow_mut().extend(moved);
                return Ok(Some(lbn));
            }
        }
        Ok(None)
    }

    /// The LBN behind one that cannot be read, if it passes where it would on the same track.
    async fn behind_unreadable(&mut self, lbn: u64) -> Result<Option<u64>, ProbeError> {
        for behind in lbn + 1..(lbn + 1 + MOVED_MAX).min(self.shared.capacity) {
            if let Some(there) = self.angle_of(behind).await? {
                let on = wrap(there - self.angle_at(behind)).abs() < self.jump_min();
                if on {
                    self.at = (behind, there);
                }
                return Ok(on.then_some(behind));
            }
        }
        Ok(None)
    }

    /// Whether the sectors of `[from, to)` pass one behind the other, `from` where it is expected.
    ///
    /// The linear model is made better by what is read.
    async fn runs_on(&mut self, from: u64, to: u64) -> Result<bool, ProbeError> {
        let mut first = from;
        while first + 1 < to {
            let end = to.min(first + self.half());
            let Some(excess) = self.excess(first, end).await? else {
                return Ok(false);
            };
            if excess.abs() > self.jump_min() {
                return Ok(false);
            }
            let more = (end - 1 - first) as f64;
            let passed = self.angle_at(end - 1) + excess;
            if more * self.pitch > 0.2 {
                self.pitch += excess / more;
            }
            self.at = (end - 1, passed);
            // Sectors side by side must be in one read.
            first = end - 1;
        }
        Ok(true)
    }

    /// How much longer a read of `[from, to)` takes than the linear model says; `None` where it fails.
    async fn excess(&mut self, from: u64, to: u64) -> Result<Option<f64>, ProbeError> {
        let start = (from, self.angle_at(from));
        let sectors = (to - from) as u32;
        let mut least = f64::INFINITY;
        let (mut seen, mut given) = (0, self.lead);
        // Whatever goes wrong makes it longer, so the shortest of several counts.
        while seen < READINGS_MAX {
            if !self.calibrated {
                self.calibrate(from).await?;
                given = self.lead;
                continue;
            }
            let lead = self.lead + [0.0, 0.3, 0.15, 0.25][seen % 4];
            let excess = self.read(lead, start, sectors).await?;
            if !self.calibrated {
                continue;
            }
            let Some(excess) = excess else {
                return Ok(None);
            };
            seen += 1;
            if excess < -self.jump_min() {
                // The arm came so early that the drive began with what lies further on; or the model is wrong.
                if (excess - least).abs() < SAME {
                    self.lead = given;
                    return Ok(Some(excess));
                }
                least = excess;
                self.lead = (self.lead - STEP.max((-excess).round())).max(STEP);
                continue;
            }
            let known = |other: &f64| *other < LOST && (other - excess).abs() < SAME;
            if excess < self.jump_min() || self.skews.iter().any(known) {
                if least < f64::INFINITY {
                    // It was late before.
                    self.lead += MARGIN / 2.0;
                }
                return Ok(Some(excess));
            }
            let settled = (excess - least).abs() < SAME;
            least = least.min(excess);
            if settled {
                break;
            }
        }
        Ok(Some(least))
    }

    /// The angle of a sector, by readings until two agree; `None` where it cannot be read.
    async fn angle_of(&mut self, lbn: u64) -> Result<Option<f64>, ProbeError> {
        let mut seen: Vec<f64> = Vec::new();
        while seen.len() < READINGS_MAX {
            let before = self.before;
            self.turn().await;
            let clock = &mut self.shared.clock.borrow_mut();
            let Some(pass) = clock.pass(lbn)? else {
                return Ok(None);
            };
            if self.before == before {
                self.lead = self.lead.min(pass.took + MARGIN);
            }
            let near = |other: &&f64| wrap(**other - pass.angle).abs() <= clock.tolerance();
            if let Some(other) = seen.iter().find(near) {
                return Ok(Some(pass.angle + wrap(other - pass.angle) / 2.0));
            }
            seen.push(pass.angle);
        }
        Err(self.baffled("reads took times that do not agree"))
    }

    /// One read in this lane's turn.
    async fn read(
        &mut self,
        lead: f64,
        (lbn, angle): (u64, f64),
        sectors: u32,
    ) -> Result<Option<f64>, ProbeError> {
        self.turn().await;
        let clock = &mut self.shared.clock.borrow_mut();
        clock.overrun(lead, lbn, sectors, fraction(angle), self.pitch)
    }

    /// Where a sector passes that is on the track being searched.
    fn angle_at(&self, lbn: u64) -> f64 {
        let (known, angle) = self.at;
        angle + (lbn as f64 - known as f64) * self.pitch
    }

    /// The least gap that is seen: less than a sector, if the clock is that good.
    fn jump_min(&self) -> f64 {
        let sigma = self.shared.clock.borrow().sigma;
        (3.5 * sigma).max(0.4 * self.pitch).max(1e-6)
    }

    /// Sectors that pass in half a revolution, and so many more that two reads that overlap cover a track.
    fn half(&self) -> u64 {
        (0.5 / self.pitch) as u64 + 2
    }

    fn baffled(&self, problem: &str) -> ProbeError {
        ProbeError::Baffled {
            lbn: Lbn(self.first),
            problem: problem.to_owned(),
        }
    }
}
