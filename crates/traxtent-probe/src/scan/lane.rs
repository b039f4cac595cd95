//! The search at one place of the drive, written as if it were the only one.

use super::super::extraction::ProbeError;
use super::{Shared, turn};
use traxtent_units::Lbn;
use traxtent_units::turns::{fraction, wrap};

/// The largest number of attempts at one measurement, such as the angle of a sector.
const ATTEMPTS_MAX: usize = 20;

/// The longest run of remapped or unreadable sectors that is recognized.
const MOVED_MAX: u64 = 4;

/// The margin added to the time that the arm seems to need, in revolutions.
const MARGIN_TURNS: f64 = 0.1;

/// The step by which shorter times for the arm are tried, in revolutions.
const LEAD_STEP_TURNS: f64 = 0.15;

/// The time allowed for the arm if it cannot be measured, in revolutions.
const LEAD_UNKNOWN_TURNS: f64 = 2.4;

/// The excess, in revolutions, above which a read counts as having lost a revolution.
const LOST_TURNS: f64 = 0.5;

/// The gap above which sectors count as remapped, in revolutions.
const REMAPPED_GAP_TURNS: f64 = 0.1;

/// The largest number of recent skews that are stored.
const SKEWS_MAX: usize = 8;

/// The difference, in revolutions, below which two measurements count as the same skew.
const SAME_SKEW_TURNS: f64 = 0.01;

/// The smallest jump of an angle that counts, in standard deviations.
const JUMP_SIGMAS: f64 = 3.5;
/// A lower limit of that jump, in sectors. It is below half a sector, so that every slipped sector
/// is detected.
const JUMP_SECTORS: f64 = 0.4;
/// A lower limit of that jump, in revolutions.
const JUMP_TURNS_MIN: f64 = 1e-6;

/// The share of the smallest certain skew above which a gap counts as a boundary, if nothing else
/// decides.
const GAP_SHARE: f64 = 0.6;

/// The length above which a run of sectors improves the pitch, in revolutions.
const REFINING_TURNS_MIN: f64 = 0.2;

/// The times by which successive reads are sent earlier than necessary, in revolutions.
const EARLIER_TURNS: [f64; 4] = [0.0, 0.3, 0.15, 0.25];

/// The search at one place.
pub(super) struct Lane<'s, 'c, 'a> {
    shared: &'s Shared<'c, 'a>,
    index: usize,
    /// The first LBN of the next track to be found.
    first: u64,
    /// A sector of the track being searched, and its angle.
    at: (u64, f64),
    /// The angular length of one sector, in revolutions.
    pitch: f64,
    /// The time from sending a read to the end of its first sector, in revolutions.
    lead: f64,
    /// Whether `lead` has been measured for the place that the arm comes from.
    calibrated: bool,
    /// The lane that read before this one.
    before: Option<usize>,
    /// Recent skews that are certain.
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
            lead: LEAD_UNKNOWN_TURNS,
            calibrated: false,
            before: None,
            skews: Vec::new(),
        }
    }

    /// Finds tracks until the lane reaches a boundary found by a later lane, or the end of the
    /// region.
    ///
    /// `aligned` means that a track begins at the lane's first LBN.
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
        while self.first < self.shared.end && !self.has_reached_next() {
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

    fn keep(&self, boundary: u64) {
        self.shared.boundaries[self.index]
            .borrow_mut()
            .push(boundary);
    }

    fn has_reached_next(&self) -> bool {
        self.shared
            .later_lane_with(self.index, self.first)
            .is_some()
    }

    /// Measures the time that the arm needs to return here, by reading a sector.
    async fn calibrate(&mut self, lbn: u64) -> Result<(), ProbeError> {
        while !self.calibrated {
            self.calibrated = true;
            self.lead = f64::INFINITY;
            let Some(angle) = self.angle_of(lbn).await? else {
                self.lead = LEAD_UNKNOWN_TURNS;
                break;
            };
            while self.calibrated
                && self.lead.is_finite()
                && self.lead > MARGIN_TURNS + LEAD_STEP_TURNS
            {
                let lead = self.lead - MARGIN_TURNS - LEAD_STEP_TURNS;
                match self.read(lead, (lbn, angle), 1).await? {
                    Some(excess) if excess < LOST_TURNS => self.lead -= LEAD_STEP_TURNS,
                    _ => break,
                }
            }
        }
        Ok(())
    }

    /// Waits for this lane's turn. If the lane that read last is not the one that read before this
    /// lane's previous turn, `lead` must be measured again.
    async fn turn(&mut self) {
        turn().await;
        let before = self.shared.last.replace(Some(self.index));
        if before != self.before {
            self.before = before;
            self.calibrated = false;
        }
    }

    /// Returns whether the next track has the size of the last one: it continues for `sectors`
    /// sectors and no further.
    async fn is_equal(&mut self, sectors: u64) -> Result<bool, ProbeError> {
        let end = self.first + sectors;
        if end >= self.shared.capacity || !self.runs_on(self.first, end).await? {
            return Ok(false);
        }
        let Some(skew) = self.excess(end - 1, end + 1).await? else {
            return Ok(false);
        };
        let known = |other: &f64| (other - skew).abs() < SAME_SKEW_TURNS;
        let full = sectors as f64 * self.pitch > 1.0 - self.pitch / 2.0;
        let ends = skew > self.jump_min() && (full || self.skews.iter().any(known));
        if ends {
            if skew < LOST_TURNS && self.skews.iter().any(known) {
                self.shared.learn_skew(skew);
            }
            self.remember(skew);
            self.at = (end, self.angle_at(end) + skew);
        }
        Ok(ends)
    }

    /// Searches for the end of the track, or of the rest of a track, that begins at `self.first`.
    /// Returns the first LBN after it.
    async fn end_of_track(&mut self, guess: Option<u64>) -> Result<u64, ProbeError> {
        self.anchor().await?;
        let anchor = self.learn_pitch(guess).await?;
        // The angle from the first sector to the latest break, including gaps.
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
            if !full && let Some(following) = self.after_remapped(stop).await? {
                span += (following - stop) as f64 * self.pitch;
                from = following;
                continue;
            }
            self.at = next;
            let room = 1.0 - span - gap;
            if full || gap > LOST_TURNS || room < self.pitch / 2.0 {
                self.remember(gap);
                return Ok(stop);
            }
            // The end of a read of all sectors that may be on this track, and one more.
            let beyond = stop + (room / self.pitch + 0.5) as u64 + 1;
            if beyond <= self.shared.capacity && self.runs_on(stop, beyond).await? {
                self.remember(gap);
                return Ok(stop);
            }
            self.at = next;
            let least = self.shared.least_skew.get();
            if least.is_some_and(|least| gap > GAP_SHARE * least) {
                return Ok(stop);
            }
            span += gap;
            from = stop;
        }
    }

    /// Records the skew of a boundary.
    fn remember(&mut self, skew: f64) {
        self.skews
            .retain(|other| (other - skew).abs() > SAME_SKEW_TURNS);
        self.skews.push(skew);
        if self.skews.len() > SKEWS_MAX {
            self.skews.remove(0);
        }
    }

    /// Returns the first LBN, at or shortly after `self.first`, that the next LBN directly follows;
    /// `self.first` if there is none. Stores its angle in `self.at`. The LBNs before it are
    /// remapped or cannot be read.
    async fn anchor(&mut self) -> Result<u64, ProbeError> {
        let mut moved = Vec::new();
        for lbn in self.first..(self.first + MOVED_MAX).min(self.shared.capacity) {
            let Some(angle) = self.angle_of(lbn).await? else {
                continue;
            };
            self.at = (lbn, angle);
            // Before the pitch is known, two sectors do not reveal a gap.
            let gap = if self.pitch > 0.0 && lbn + 2 <= self.shared.capacity {
                self.excess(lbn, lbn + 2).await?
            } else {
                Some(0.0)
            };
            match gap {
                Some(gap) if gap.abs() <= self.jump_min() => {
                    self.shared.moved.borrow_mut().append(&mut moved);
                    return Ok(lbn);
                }
                Some(gap) if gap > REMAPPED_GAP_TURNS => moved.push(Lbn(lbn)),
                _ => {}
            }
        }
        match self.angle_of(self.first).await? {
            Some(angle) => self.at = (self.first, angle),
            None => return Err(self.inconsistent("the sectors here cannot be read")),
        }
        Ok(self.first)
    }

    /// Learns the linear model, which is the additional time per sector, from reads of 1, 2, 4, …
    /// additional sectors. Returns the LBN at which the reads began.
    async fn learn_pitch(&mut self, guess: Option<u64>) -> Result<u64, ProbeError> {
        let old = self.pitch;
        let anchor = self.at;
        // A quarter of the track shows whether the old model still holds.
        let quarter = anchor.0 + guess.unwrap_or(0) / 4;
        if old > 0.0 && quarter > anchor.0 + 1 && quarter < self.shared.capacity {
            if self.runs_on(anchor.0, quarter).await? {
                return Ok(anchor.0);
            }
            self.at = anchor;
        }
        for _ in 0..ATTEMPTS_MAX {
            if self.learn_by_doubling().await? {
                return Ok(self.at.0);
            }
            if old > 0.0 {
                self.pitch = old;
                return Ok(self.at.0);
            }
            // There is a gap here, which no model fits, so try one sector later.
            let next = self.at.0 + 1;
            if let Some(angle) = self.angle_of(next).await? {
                self.at = (next, angle);
            }
        }
        Err(self.inconsistent("the times of longer reads do not fit a linear model"))
    }

    /// Learns the model from reads of doubling length. Returns `false` if the first of them are
    /// inconsistent.
    async fn learn_by_doubling(&mut self) -> Result<bool, ProbeError> {
        let (first, _) = self.at;
        let (mut reached, mut more) = (0, 1);
        self.pitch = 0.0;
        // On drives with zero-latency access, longer reads end one revolution after the head
        // arrives.
        while first + more < self.shared.capacity && more as f64 * self.pitch <= LOST_TURNS {
            let Some(excess) = self.excess(first, first + more + 1).await? else {
                break;
            };
            let passed = more as f64 * self.pitch + excess;
            if reached > 0 && excess.abs() > self.jump_min() || passed > LOST_TURNS {
                break;
            }
            self.pitch = passed / more as f64;
            reached = more;
            more *= 2;
        }
        Ok(reached > 1 && self.pitch > 0.0)
    }

    /// Returns the end of the run of consecutively passing sectors from `from`: the first LBN that
    /// does not follow.
    ///
    /// `room` is the remaining part of the revolution.
    async fn end_of_run(
        &mut self,
        from: u64,
        room: f64,
        mut hint: Option<u64>,
    ) -> Result<u64, ProbeError> {
        let half = self.half();
        // Far beyond a boundary, a smaller pitch could exactly compensate the skew.
        let end_max = (from + (room / self.pitch) as u64 + 2).min(self.shared.capacity);
        // The sectors before `lower` follow each other; those before `upper` do not.
        let (mut lower, mut upper) = (from + 1, end_max + 1);
        while upper - lower > 1 {
            let aim = match hint {
                Some(end) if lower < end && end < upper => end,
                Some(end) if lower == end => end + 1,
                _ if upper > end_max => end_max,
                _ => lower + (upper - lower) / 2,
            };
            if hint.is_some_and(|end| lower >= end || upper <= end) {
                hint = None;
            }
            let to = aim.min(lower - 1 + half).min(upper - 1);
            if self.runs_on(lower - 1, to).await? {
                lower = to;
            } else {
                upper = to;
            }
        }
        if lower == end_max && end_max < self.shared.capacity {
            return Err(self.inconsistent("the track seems to be longer than a revolution"));
        }
        Ok(lower)
    }

    /// If the LBNs from `stop` on are remapped or cannot be read, returns the first LBN after them
    /// that passes where it would if all LBNs were in place.
    async fn after_remapped(&mut self, stop: u64) -> Result<Option<u64>, ProbeError> {
        let (before, angle) = self.at;
        let end = (stop + MOVED_MAX + 1).min(self.shared.capacity);
        let expected = move |lane: &Self, lbn: u64| angle + (lbn - before) as f64 * lane.pitch;
        let Some(there) = self.angle_of(stop).await? else {
            return self.after_unreadable(stop).await;
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

    /// Returns the first LBN after `lbn` that can be read, if it passes where it would on the same
    /// track. `lbn` itself cannot be read.
    async fn after_unreadable(&mut self, lbn: u64) -> Result<Option<u64>, ProbeError> {
        for following in lbn + 1..(lbn + 1 + MOVED_MAX).min(self.shared.capacity) {
            if let Some(there) = self.angle_of(following).await? {
                let on = wrap(there - self.angle_at(following)).abs() < self.jump_min();
                if on {
                    self.at = (following, there);
                }
                return Ok(on.then_some(following));
            }
        }
        Ok(None)
    }

    /// Returns whether the sectors of `[from, to)` pass consecutively, with `from` at its expected
    /// angle.
    ///
    /// Refines the linear model with each long read.
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
            if more * self.pitch > REFINING_TURNS_MIN {
                self.pitch += excess / more;
            }
            self.at = (end - 1, passed);
            // Reads overlap by a sector, because a gap shows only within a read.
            first = end - 1;
        }
        Ok(true)
    }

    /// Returns how much longer a read of `[from, to)` takes than the linear model predicts, or
    /// `None` if it fails.
    async fn excess(&mut self, from: u64, to: u64) -> Result<Option<f64>, ProbeError> {
        let start = (from, self.angle_at(from));
        let sectors = (to - from) as u32;
        let mut least = f64::INFINITY;
        let (mut seen, mut given) = (0, self.lead);
        // Every disturbance makes the read longer, so the shortest of several counts.
        while seen < ATTEMPTS_MAX {
            if !self.calibrated {
                self.calibrate(from).await?;
                given = self.lead;
                continue;
            }
            let lead = self.lead + EARLIER_TURNS[seen % EARLIER_TURNS.len()];
            let excess = self.read(lead, start, sectors).await?;
            if !self.calibrated {
                continue;
            }
            let Some(excess) = excess else {
                return Ok(None);
            };
            seen += 1;
            if excess < -self.jump_min() {
                // Either the arm came so early that the drive began with later sectors, or the
                // model is wrong.
                if (excess - least).abs() < SAME_SKEW_TURNS {
                    self.lead = given;
                    return Ok(Some(excess));
                }
                least = excess;
                self.lead =
                    (self.lead - LEAD_STEP_TURNS.max((-excess).round())).max(LEAD_STEP_TURNS);
                continue;
            }
            let known =
                |other: &f64| *other < LOST_TURNS && (other - excess).abs() < SAME_SKEW_TURNS;
            if excess < self.jump_min() || self.skews.iter().any(known) {
                if least < f64::INFINITY {
                    // The previous reads were sent too late.
                    self.lead += MARGIN_TURNS / 2.0;
                }
                return Ok(Some(excess));
            }
            let settled = (excess - least).abs() < SAME_SKEW_TURNS;
            least = least.min(excess);
            if settled {
                break;
            }
        }
        Ok(Some(least))
    }

    /// Returns the angle of a sector, from readings until two agree, or `None` if it cannot be
    /// read.
    async fn angle_of(&mut self, lbn: u64) -> Result<Option<f64>, ProbeError> {
        let mut seen: Vec<f64> = Vec::new();
        while seen.len() < ATTEMPTS_MAX {
            let before = self.before;
            self.turn().await;
            let clock = &mut self.shared.clock.borrow_mut();
            let Some(pass) = clock.pass(lbn)? else {
                return Ok(None);
            };
            if self.before == before {
                self.lead = self.lead.min(pass.took + MARGIN_TURNS);
            }
            let near = |other: &&f64| wrap(**other - pass.angle).abs() <= clock.tolerance();
            if let Some(other) = seen.iter().find(near) {
                return Ok(Some(pass.angle + wrap(other - pass.angle) / 2.0));
            }
            seen.push(pass.angle);
        }
        Err(self.inconsistent("reads of one sector gave inconsistent angles"))
    }

    /// Performs one read for this lane, and returns its excess.
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

    /// The expected angle of a sector on the track being searched.
    fn angle_at(&self, lbn: u64) -> f64 {
        let (known, angle) = self.at;
        angle + (lbn as f64 - known as f64) * self.pitch
    }

    /// The smallest gap that can be detected, in revolutions: less than a sector, if the clock is
    /// good enough.
    fn jump_min(&self) -> f64 {
        let sigma = self.shared.clock.borrow().sigma;
        (JUMP_SIGMAS * sigma)
            .max(JUMP_SECTORS * self.pitch)
            .max(JUMP_TURNS_MIN)
    }

    /// The number of sectors that pass in half a revolution, with enough added for two overlapping
    /// reads to cover a track.
    fn half(&self) -> u64 {
        (0.5 / self.pitch) as u64 + 2
    }

    fn inconsistent(&self, problem: &str) -> ProbeError {
        ProbeError::Inconsistent {
            lbn: Lbn(self.first),
            problem: problem.to_owned(),
        }
    }
}
