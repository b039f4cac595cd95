//! Whose a stray is where no defect list tells: on a drive without lists, or one whose primary
//! defects have their LBNs elsewhere, too.
//!
//! With a list, a stray has a bad slot where it belongs. A single physical sector is a stray, since
//! tracks of one are rarer. A longer run is a track itself if bad slots are right behind it, which
//! say why it is so short, or if nothing else is on its track, which is next to another. Strays
//! belong where as many slots in a row are bad, or else the size expected decides. Without a list
//! there is one stray at most, if that size says so.

use std::ops::Range;

use super::{Anchor, Track};
use crate::geometry::Place;
use crate::probe::algorithm::ProbeError;
use crate::probe::ask::{are_neighbours, home};

/// A run of no more LBNs may be of strays.
const RUN_MAX: u64 = 256;

/// Of strays at a boundary, no more are sought for either track.
const EDGE_MAX: u64 = 8;

/// How far from a run of LBNs it is looked for others on the same track.
const NEARBY: [u64; 11] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023];

impl Track<'_, '_> {
    /// The LBN `outside`, if it begins what is left of a track and those before it are strays.
    pub(super) fn guessed_rest(
        &mut self,
        anchor: Anchor,
        outside: u64,
    ) -> Result<Option<Anchor>, ProbeError> {
        let (start, run) = (self.start, outside - self.start);
        let Some(rest) = self.at(outside)?.filter(|_| run <= RUN_MAX) else {
            return Ok(None);
        };
        let is_rest = if run == 1 && home(rest.place) == home(anchor.place) {
            true
        } else if self.ask.has_list {
            let before = start.checked_sub(1).and_then(|lbn| self.ask.known(lbn));
            let (beside, last) = ([Some(rest.place), before], self.ask.known(outside - 1));
            self.ask.bad().before(rest.place).len() as u64 >= run
                && !self.looks_like_a_track(start..outside, anchor.place, last, beside)?
        } else if anchor.place.slot == 0 || run > 1 {
            false
        } else {
            match self.expected {
                Some(size) if start + size < self.ask.end && size > 1 => {
                    self.is_on(rest, start + size - 1)? && !self.is_on(rest, start + size)?
                }
                _ => self.is_on(rest, outside + 1)?,
            }
        };
        Ok(Some(rest).filter(|_| is_rest))
    }

    /// The end of a track whose last LBN known to be on it is at `last`, and the one behind it,
    /// `outside`, at `next`.
    pub(super) fn guessed_end(
        &mut self,
        outside: u64,
        last: Option<Place>,
        next: Place,
    ) -> Result<u64, ProbeError> {
        let bad = self.ask.bad();
        // How many strays the track has room for, and how many more the next one may have.
        let (room, theirs_max) = if self.ask.has_list {
            let room = last.map_or(0, |last| bad.after(last).len() as u64);
            (room.min(EDGE_MAX), if room > 0 { EDGE_MAX } else { 0 })
        } else {
            let is_short = self
                .expected
                .is_some_and(|size| outside - self.start < size);
            (u64::from(is_short && next.slot > 0), 0)
        };
        let mut before = next;
        for run in 1..=room + theirs_max {
            let strays = outside..outside + run;
            if strays.end >= self.ask.end {
                let ours =
                    run <= room && !self.looks_like_a_track(strays, next, Some(before), [last])?;
                return Ok(if ours { self.ask.end } else { outside });
            }
            let Some(after) = self.ask.place(strays.end)? else {
                break;
            };
            let breaks = home(after) != home(before) || after.slot < before.slot;
            if breaks
                && self.expected != Some(strays.end - self.start)
                && self.looks_like_a_track(
                    strays.clone(),
                    next,
                    Some(before),
                    [last, Some(after)],
                )?
            {
                break;
            }
            if breaks && self.goes_on(after, strays.end)? {
                let their_row = bad.before(after).len() as u64;
                let theirs = their_row.min(run);
                if run > room + theirs {
                    break;
                }
                let possible = run - theirs..=run.min(room);
                let ours = match (room == run, their_row == run) {
                    (true, false) => run,
                    (false, true) => 0,
                    _ => self
                        .expected
                        .and_then(|size| (self.start + size).checked_sub(outside))
                        .filter(|ours| possible.contains(ours))
                        .unwrap_or(run - theirs),
                };
                return Ok(outside + ours);
            }
            before = after;
        }
        Ok(outside)
    }

    /// Whether a run of LBNs from a place to another is itself a track, however short: bad slots
    /// end it, or it is next to a track of others and nothing else is on it, as would be where
    /// LBNs are only kept.
    fn looks_like_a_track(
        &mut self,
        run: Range<u64>,
        first: Place,
        last: Option<Place>,
        beside: impl IntoIterator<Item = Option<Place>>,
    ) -> Result<bool, ProbeError> {
        if run.end - run.start <= self.ask.ratio {
            return Ok(false);
        }
        if last.is_some_and(|last| !self.ask.bad().after(last).is_empty()) {
            return Ok(true);
        }
        let mut beside = beside.into_iter().flatten();
        if !beside.any(|place| are_neighbours(home(first), home(place))) {
            return Ok(false);
        }
        let end = u64::from(first.slot) + (run.end - run.start);
        let behind = NEARBY.map(|distance| u64::from(first.slot).checked_sub(distance + 1));
        let ahead = NEARBY.map(|distance| end.checked_add(distance));
        for slot in behind.into_iter().chain(ahead).flatten() {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            let there = self.ask.lbn_at(Place { slot, ..first })?;
            if there.is_some_and(|lbn| !run.contains(&lbn)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the LBN behind one at `place` is on the same track, or none is any more.
    fn goes_on(&mut self, place: Place, lbn: u64) -> Result<bool, ProbeError> {
        let is_full = lbn + 1 >= self.ask.end || !self.ask.bad().after(place).is_empty();
        let after = self.at(lbn + 1)?;
        Ok(is_full || after.is_some_and(|after| home(after.place) == home(place)))
    }
}
