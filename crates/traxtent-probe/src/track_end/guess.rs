//! Assigning a remapped LBN to a track when no defect list decides: on a drive without lists, on
//! one that lists no grown defects, or on one where LBNs of primary defects are remapped too.
//!
//! With a list, a remapped LBN has a bad slot on the track that it belongs to. A run no longer
//! than one physical sector counts as remapped, because tracks of that size are rarer than remapped
//! sectors. A longer run is itself a track in two cases: if bad slots follow it directly, which
//! explain why it is so short; or if no other LBN is on its track, and that track is next to the
//! track of the LBN before or after the run. Remapped LBNs belong to the track that has the same
//! number of bad slots in a row. If this is not conclusive, the expected size decides. Without a
//! list, at most one LBN at each end of a track counts as remapped, and the expected size decides,
//! if it is known.

use std::ops::Range;

use super::{LbnPlace, Track};
use crate::extraction::ProbeError;
use crate::planned::are_neighbours;
use traxtent_model::geometry::Place;

/// The longest run of LBNs that may be remapped.
const RUN_MAX: u64 = 256;

/// The largest number of remapped LBNs sought on each side of a boundary.
const EDGE_MAX: u64 = 8;

/// The distances, in slots, from a run of LBNs at which other LBNs on the same track are sought.
const NEARBY: [u64; 11] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023];

impl Track<'_, '_> {
    /// Returns the LBN `outside` if it begins the rest of a track whose earlier LBNs are remapped.
    pub(super) fn guessed_rest(
        &mut self,
        anchor: LbnPlace,
        outside: u64,
    ) -> Result<Option<LbnPlace>, ProbeError> {
        let (start, run) = (self.start, outside - self.start);
        let Some(rest) = self.at(outside)?.filter(|_| run <= RUN_MAX) else {
            return Ok(None);
        };
        let is_rest = if run == 1 && rest.place.track() == anchor.place.track() {
            true
        } else if self.translator.has_list {
            let before = start
                .checked_sub(1)
                .and_then(|lbn| self.translator.known(lbn));
            let (neighbours, last) = (
                [Some(rest.place), before],
                self.translator.known(outside - 1),
            );
            self.translator.bad().before(rest.place).len() as u64 >= run
                && !self.is_track(start..outside, anchor.place, last, neighbours)?
        } else if anchor.place.slot == 0 || run > 1 {
            false
        } else {
            match self.expected {
                Some(size) if start + size < self.translator.end && size > 1 => {
                    self.is_on(rest, start + size - 1)? && !self.is_on(rest, start + size)?
                }
                _ => self.is_on(rest, outside + 1)?,
            }
        };
        Ok(Some(rest).filter(|_| is_rest))
    }

    /// Returns the end of a track. The last LBN known to be on it is at `last`, and the following
    /// LBN, `outside`, is at `next`.
    pub(super) fn guessed_end(
        &mut self,
        outside: u64,
        last: Option<Place>,
        next: Place,
    ) -> Result<u64, ProbeError> {
        let bad = self.translator.bad();
        // The number of remapped LBNs that fit on this track, and the number of further ones that
        // the next track may have.
        let (room, theirs_max) = if self.translator.has_list {
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
            let remapped = outside..outside + run;
            if remapped.end >= self.translator.end {
                let ours = run <= room && !self.is_track(remapped, next, Some(before), [last])?;
                return Ok(if ours { self.translator.end } else { outside });
            }
            let Some(after) = self.translator.place(remapped.end)? else {
                break;
            };
            let breaks = after.track() != before.track() || after.slot < before.slot;
            if breaks
                && self.expected != Some(remapped.end - self.start)
                && self.is_track(remapped.clone(), next, Some(before), [last, Some(after)])?
            {
                break;
            }
            if breaks && self.continues(after, remapped.end)? {
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

    /// Returns whether a run of LBNs, from the place `first` to `last`, is itself a track. A run no
    /// longer than a physical sector is not. A longer one is a track if bad slots end it, or if it
    /// is next to the track of other LBNs and holds no others. A track that merely stores remapped
    /// LBNs would hold others.
    fn is_track(
        &mut self,
        run: Range<u64>,
        first: Place,
        last: Option<Place>,
        neighbours: impl IntoIterator<Item = Option<Place>>,
    ) -> Result<bool, ProbeError> {
        if run.end - run.start <= self.translator.ratio {
            return Ok(false);
        }
        if last.is_some_and(|last| !self.translator.bad().after(last).is_empty()) {
            return Ok(true);
        }
        let mut neighbours = neighbours.into_iter().flatten();
        if !neighbours.any(|place| are_neighbours(first.track(), place.track())) {
            return Ok(false);
        }
        let end = u64::from(first.slot) + (run.end - run.start);
        let before = NEARBY.map(|distance| u64::from(first.slot).checked_sub(distance + 1));
        let ahead = NEARBY.map(|distance| end.checked_add(distance));
        for slot in before.into_iter().chain(ahead).flatten() {
            let slot = u32::try_from(slot).unwrap_or(u32::MAX);
            let there = self.translator.lbn_at(Place { slot, ..first })?;
            if there.is_some_and(|lbn| !run.contains(&lbn)) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the LBN after one at `place` is on the same track, or the track is full.
    fn continues(&mut self, place: Place, lbn: u64) -> Result<bool, ProbeError> {
        let is_full =
            lbn + 1 >= self.translator.end || !self.translator.bad().after(place).is_empty();
        let after = self.at(lbn + 1)?;
        Ok(is_full || after.is_some_and(|after| after.place.track() == place.track()))
    }
}
