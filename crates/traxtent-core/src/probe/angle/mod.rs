//! Track boundaries by the angles of sectors: ours.
//!
//! A sector's angle follows from when its read completes. Along a track angles advance evenly; at a
//! boundary they jump by the skew. The search predicts the coming tracks from the pattern of those
//! before them ([`pattern`]), tests as many of the boundaries as [`Verify`] asks for, in the order in
//! which they come under the heads ([`window`]), and searches by bisection only where a prediction
//! fails ([`track`]).
//!
//! A test of a boundary reads the LBN before it, which must be where the track before goes on, and
//! the LBN behind it, which must be where the next track begins. Where a boundary has no skew, angles
//! say nothing, and reads across it are timed instead: they lose a revolution.
//!
//! What it cannot see: a boundary at which the next track goes on at the very angle where the last
//! one ends, in a place where skews are seen (that takes two incomplete tracks that fit like halves).

mod pattern;
mod track;
mod window;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::algorithm::{Confirm, Extraction, Found, ProbeError, Region, Sink, Verify};
use super::clock::{Clock, fraction};
use crate::units::Lbn;
use pattern::{Kind, Pattern};
use track::Line;

/// Where there is no other clue, this many tracks count as a cylinder: as many surfaces as few drives fall short of.
const CYLINDER: usize = 4;

/// No drive has more surfaces.
const SURFACES_MAX: usize = 24;

/// No more tracks are predicted at once behind a surprise.
const REACH_AFTER: usize = 4;

/// Alternatives to a prediction are worth their reads if so many are right.
const LUCK_MIN: f64 = 0.3;

/// Found tracks are held back until this many more are known, so that they can still be put right.
const HELD: usize = 3;

/// The head switch is the least of those between so many tracks.
const RECENT: usize = 5;

/// A search in progress.
struct Search<'a, 'b> {
    clock: Clock<'a>,
    verify: Verify,
    end: u64,
    /// The first LBN of the track to be found next, and its angle.
    first: u64,
    angle: f64,
    pattern: Pattern,
    /// How many tracks to predict at once.
    reach: usize,
    /// Time for a read on the same track to follow another, in revolutions.
    turnaround: Option<f64>,
    /// What a change of heads adds to that.
    switch: Option<f64>,
    /// The last tracks, for measuring that.
    recent: VecDeque<(Line, u32)>,
    held: VecDeque<Found>,
    /// How many predictions have failed, and how often of late an alternative was right.
    surprises: u64,
    luck: f64,
    sink: &'b mut Sink<'b>,
    result: Extraction,
}

/// Finds the tracks of a region by angles.
pub(super) fn search<'b>(
    clock: Clock<'_>,
    region: Region,
    verify: Verify,
    sink: &'b mut Sink<'b>,
) -> Result<Extraction, ProbeError> {
    let mut search = Search {
        clock,
        verify,
        end: region.end.0,
        first: region.first.0,
        angle: 0.0,
        pattern: Pattern::default(),
        reach: 4,
        turnaround: None,
        switch: None,
        recent: VecDeque::new(),
        held: VecDeque::new(),
        surprises: 0,
        luck: 1.0,
        sink,
        result: Extraction::default(),
    };
    search.begin(region.aligned)?;
    while search.first < search.end {
        search.advance()?;
    }
    search.flush(0)?;
    let method = search.clock.method();
    search
        .result
        .notes
        .push(format!("timed by {}", method.name()));
    search.result.unreadable = std::mem::take(&mut search.clock.unreadable);
    Ok(search.result)
}

impl Search<'_, '_> {
    /// Finds the first track, or the end of the one that the region begins in.
    fn begin(&mut self, aligned: bool) -> Result<(), ProbeError> {
        self.angle = self.angle_of_start(self.first, None, None)?;
        if !aligned {
            let (partial, angle) = self.find_track(None)?;
            self.first += u64::from(partial.sectors);
            self.angle = angle;
        }
        Ok(())
    }

    /// Finds the next tracks: all that were predicted, or those up to the first surprise and the one behind it.
    fn advance(&mut self) -> Result<(), ProbeError> {
        let predicted = self.pattern.predict(self.reach);
        let (known, whole) = self.test(&predicted)?;
        let count = known.len();
        for (kind, confirm) in known {
            self.keep(kind, confirm)?;
        }
        if whole {
            self.reach = (2 * self.reach).min(self.reach_max());
            return Ok(());
        }
        // Where one surprise is, others are near.
        self.reach = (self.reach / 2).clamp(2, REACH_AFTER);
        let surprising = predicted.get(count).copied();
        if let Some(predicted) = surprising
            && self.first < self.end
            // Tests see the ends of a track only; a search sees all of it.
            && self.verify != Verify::Full
            && self.is_alternative(predicted)?
        {
            return Ok(());
        }
        if self.first < self.end {
            let guess = self.pattern.predict(1).first().copied();
            let (kind, angle) = self.find_or_retry(guess)?;
            if !self.join_the_last(kind, angle) {
                self.keep(kind, Confirm::Tested)?;
            }
            self.angle = angle;
        }
        Ok(())
    }

    /// Whether the next track, which is not as predicted, is one of the alternatives; if so, takes it as found.
    fn is_alternative(&mut self, predicted: Kind) -> Result<bool, ProbeError> {
        // Each costs a few reads, so where they are seldom right they are seldom tried.
        self.surprises += 1;
        if self.luck < LUCK_MIN && !self.surprises.is_multiple_of(8) {
            return Ok(false);
        }
        for kind in self.pattern.alternatives(predicted) {
            let (known, whole) = self.test(&[kind])?;
            if let (true, [(kind, confirm)]) = (whole, &known[..]) {
                self.luck += 0.1 * (1.0 - self.luck);
                self.keep(*kind, *confirm)?;
                return Ok(true);
            }
        }
        self.luck -= 0.1 * self.luck;
        Ok(false)
    }

    /// Finds a track; what baffles once may have been noise.
    fn find_or_retry(&mut self, guess: Option<Kind>) -> Result<(Kind, f64), ProbeError> {
        for guess in [guess, None] {
            match self.find_track(guess) {
                Err(ProbeError::Baffled { .. }) => {}
                found => return found,
            }
        }
        self.find_track(guess)
    }

    /// Adds the few sectors of a found track to the one before, if they are its last ones, kept elsewhere: then that
    /// track has room for them, and a skew of late leads from its start to the next track, at `behind`.
    fn join_the_last(&mut self, kind: Kind, behind: f64) -> bool {
        let (Some((line, sectors)), Some(last)) = (self.recent.back_mut(), self.held.back_mut())
        else {
            return false;
        };
        let tolerance = (6.0 * self.clock.sigma).max(0.4 * line.pitch);
        let together = *sectors + kind.sectors;
        let skew = fraction(behind - line.angle);
        let joins = kind.sectors <= 16
            && f64::from(together) * line.pitch < 1.0 + tolerance
            && self.pattern.had_skew(skew, tolerance);
        if joins {
            let first = self.first;
            self.first += u64::from(kind.sectors);
            self.result.moved.extend((first..self.first).map(Lbn));
            (*sectors, last.sectors) = (together, together);
            self.pattern.replace_last(Kind {
                sectors: together,
                pitch: line.pitch,
                skew,
            });
        }
        joins
    }

    fn reach_max(&self) -> usize {
        match self.verify {
            Verify::None => 8192,
            Verify::Sample => 128,
            Verify::Full => 48,
        }
    }

    /// Takes a track as found and goes to the next.
    fn keep(&mut self, kind: Kind, confirm: Confirm) -> Result<(), ProbeError> {
        self.held.push_back(Found {
            first_lbn: Lbn(self.first),
            sectors: kind.sectors,
            confirm,
        });
        let line = Line {
            lbn: self.first,
            angle: self.angle,
            pitch: kind.pitch,
        };
        self.recent.push_back((line, kind.sectors));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        self.first += u64::from(kind.sectors);
        self.angle += kind.skew;
        self.pattern.push(kind);
        self.flush(HELD)
    }

    /// Hands over all but the last `keep` tracks.
    fn flush(&mut self, keep: usize) -> Result<(), ProbeError> {
        while self.held.len() > keep {
            let found = self.held.pop_front().expect("it is not empty");
            if let ControlFlow::Break(()) = (self.sink)(found) {
                return Err(ProbeError::Stopped);
            }
        }
        Ok(())
    }

    /// The least jump of an angle that is seen: less than a sector, if the clock is that good.
    fn jump_min(&self, pitch: f64) -> f64 {
        (3.5 * self.clock.sigma).max(0.4 * pitch)
    }
}
