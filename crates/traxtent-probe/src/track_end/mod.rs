//! The end of a track by translations alone: the base method of the translating algorithms.
//!
//! A track is a run of LBNs on one surface of one cylinder in which slots ascend with LBNs and skip
//! only bad slots. A remapped LBN does not end it: the track continues after it, and the LBN's own
//! slot is bad. In the middle of a track, translations show this. At the beginning or end of a
//! track, a remapped LBN may also belong to the previous or the next track, or be a short track of
//! its own. There the defect lists decide ([`DefectLists`](super::defect_lists::DefectLists)). If
//! they are not conclusive, the result is a [`guess`].

mod guess;

use super::extraction::ProbeError;
use super::translation::Translator;
use traxtent_map::Region;
use traxtent_model::geometry::Place;

/// The way to search for the first LBN after a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Increasing steps from the track's beginning, then bisection (paper T, section 4.1).
    Binary,
    /// LBN by LBN (paper Q, section 2.3).
    Linear,
    /// Increasing steps from the expected end in either direction, then bisection.
    Near,
}

/// The LBNs up to this many after a track's beginning are tried as the first that is not remapped.
const APART_MAX: u64 = 32;

/// An LBN and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct LbnPlace {
    pub(super) lbn: u64,
    pub(super) place: Place,
}

/// Returns the first LBN after the track that begins at `start`. `expected` is the expected size of
/// the track, if known.
pub(super) fn track_end(
    translator: &mut Translator<'_>,
    start: u64,
    expected: Option<u64>,
    search: Search,
) -> Result<u64, ProbeError> {
    let mut first = start;
    while translator.place(first)?.is_none() && first + 1 < translator.end {
        first += 1;
    }
    let Some(place) = translator.place(first)? else {
        return Ok(translator.end);
    };
    let mut anchor = LbnPlace { lbn: first, place };
    let mut track = Track {
        translator,
        start,
        expected,
    };
    loop {
        let outside = track.outside(anchor, search)?;
        if outside == track.translator.end {
            return Ok(outside);
        }
        if let Some(inside) = track.resumes(anchor, outside)? {
            track.translator.record_remapped_lbns(outside..inside.lbn);
            anchor = inside;
        } else if anchor.lbn == first
            && let Some(rest) = track.first_lbn_on_track(anchor, outside)?
        {
            track.translator.record_remapped_lbns(start..rest.lbn);
            anchor = rest;
        } else if let Some(next) = track.after_gap(outside)? {
            anchor = next;
        } else {
            let end = track.with_last_remapped(outside)?;
            track.translator.record_remapped_lbns(outside..end);
            return Ok(end);
        }
    }
}

/// Returns the LBN at which the first track of a region begins.
pub(super) fn first_track(
    translator: &mut Translator<'_>,
    region: Region,
) -> Result<u64, ProbeError> {
    let first = region.first.0;
    if region.aligned || first == 0 || first >= translator.end {
        return Ok(first);
    }
    track_end(translator, first - 1, None, Search::Binary)
}

/// Returns whether two LBNs may lie on one track, judging by their places.
pub(super) fn are_on_one_track(
    translator: &Translator<'_>,
    one: LbnPlace,
    other: LbnPlace,
) -> bool {
    let ahead = u64::from(one.place.slot) + (other.lbn - one.lbn);
    let Some(over) = u64::from(other.place.slot).checked_sub(ahead) else {
        return false;
    };
    let track = one.place.track();
    let passed = one.place.slot..other.place.slot;
    // On a drive without lists, any slot may be bad.
    track == other.place.track()
        && (!translator.has_list || over <= translator.bad().within(track, passed).len() as u64)
}

/// Returns whether `next` is on the same track as `place` and after it.
fn follows(place: Place, next: Place) -> bool {
    place.track() == next.track() && place.slot < next.slot
}

/// A track whose end is sought.
struct Track<'a, 't> {
    translator: &'a mut Translator<'t>,
    start: u64,
    /// The expected size of the track.
    expected: Option<u64>,
}

impl Track<'_, '_> {
    /// Returns whether the defect lists show which bad slots have remapped LBNs.
    fn lists_are_conclusive(&self) -> bool {
        self.translator.has_list && self.translator.bad().shows_remapped()
    }

    /// Returns an LBN with its place.
    fn at(&mut self, lbn: u64) -> Result<Option<LbnPlace>, ProbeError> {
        if lbn >= self.translator.end {
            return Ok(None);
        }
        Ok(self
            .translator
            .place(lbn)?
            .map(|place| LbnPlace { lbn, place }))
    }

    /// Returns whether an LBN lies on the track of the earlier LBN `anchor`.
    fn is_on(&mut self, anchor: LbnPlace, lbn: u64) -> Result<bool, ProbeError> {
        let at = self.at(lbn)?;
        Ok(at.is_some_and(|at| are_on_one_track(self.translator, anchor, at)))
    }

    /// Finds an LBN that is not on the track although the LBN before it is.
    fn outside(&mut self, anchor: LbnPlace, search: Search) -> Result<u64, ProbeError> {
        let (mut inside, end) = (anchor.lbn, self.translator.end);
        if search == Search::Linear {
            while inside + 1 < end && self.is_on(anchor, inside + 1)? {
                inside += 1;
                self.translator.forget_below(self.start);
            }
            return Ok(inside + 1);
        }
        let mut beyond = None;
        if let (Search::Near, Some(size)) = (search, self.expected) {
            let guess = (self.start + size).clamp(inside + 1, end);
            let mut step = 1;
            if guess < end && self.is_on(anchor, guess)? {
                inside = guess;
            } else {
                beyond = Some(guess);
                // If the place of the guess is already known, its slot on the next track shows by
                // how much the guess was too high.
                let late = self
                    .translator
                    .known(guess)
                    .map_or(0, |place| u64::from(place.slot));
                let mut back = guess.saturating_sub(late.min(size)).max(inside + 1);
                if back == guess {
                    back = (guess - 1).max(inside + 1);
                }
                while back > inside {
                    if self.is_on(anchor, back)? {
                        inside = back;
                        break;
                    }
                    beyond = Some(back);
                    back = back.saturating_sub(step).max(inside);
                    step *= 2;
                }
            }
        }
        let mut step = 1;
        let mut beyond = match beyond {
            Some(beyond) => beyond,
            None => loop {
                let next = inside.saturating_add(step).min(end);
                if next == end || !self.is_on(anchor, next)? {
                    break next;
                }
                inside = next;
                step *= 2;
            },
        };
        while beyond - inside > 1 {
            let middle = inside + (beyond - inside) / 2;
            if self.is_on(anchor, middle)? {
                inside = middle;
            } else {
                beyond = middle;
            }
        }
        Ok(beyond)
    }

    /// Returns where the track continues after `outside`, if `outside` is a remapped LBN.
    fn resumes(&mut self, anchor: LbnPlace, outside: u64) -> Result<Option<LbnPlace>, ProbeError> {
        let bad = self.translator.bad();
        let (last, at) = (
            self.translator.place(outside - 1)?,
            self.translator.place(outside)?,
        );
        let run = last.map_or(&[][..], |last| bad.after(last));
        let (count, moved) = (run.len() as u64, bad.remapped_among(run));
        let mut steps = vec![];
        if self.translator.has_list && at.is_some() {
            let likely = [moved, 1, 2, 3, count];
            steps.extend(likely.into_iter().filter(|step| (1..=count).contains(step)));
        } else {
            steps.extend([1, 2]);
            let end = self.expected.map_or(0, |size| self.start + size);
            steps.extend(end.checked_sub(outside + 1).filter(|left| *left > 2));
        }
        for step in steps {
            if !self.is_on(anchor, outside + step)? {
                continue;
            }
            // Find the first LBN that is back on the track.
            let (mut off, mut on) = (outside, outside + step);
            while on - off > 1 {
                let middle = off + (on - off) / 2;
                if self.is_on(anchor, middle)? {
                    on = middle;
                } else {
                    off = middle;
                }
            }
            if at.is_some() && on - outside > moved {
                self.translator.record_remapped_places(run.iter().copied());
            }
            return self.at(on);
        }
        match (self.lists_are_conclusive(), last) {
            (true, Some(last)) => self.resumes_after_gap(last, outside),
            _ => Ok(None),
        }
    }

    /// Returns where the track continues after slot `last`, a gap that no list contains, and the
    /// slots of remapped LBNs. The first of these LBNs is `outside`.
    fn resumes_after_gap(
        &mut self,
        last: Place,
        outside: u64,
    ) -> Result<Option<LbnPlace>, ProbeError> {
        let bad = self.translator.bad();
        let after = last.slot.saturating_add(1)..u32::MAX;
        let mut grown = bad.within(last.track(), after.clone()).iter();
        let Some(first) = grown.find(|place| bad.is_remapped(**place)) else {
            return Ok(None);
        };
        let row = bad.after(*first).iter();
        let remapped = 1 + row.take_while(|place| bad.is_remapped(**place)).count() as u64;
        let Some(next) = self.at(outside + remapped)? else {
            return Ok(None);
        };
        let passed = after.start..next.place.slot;
        let resumes = follows(last, next.place)
            && bad.remapped_among(bad.within(last.track(), passed)) == remapped;
        Ok(Some(next).filter(|_| resumes))
    }

    /// Returns the first LBN that is on the track itself, if the LBNs from its start are remapped.
    fn first_lbn_on_track(
        &mut self,
        anchor: LbnPlace,
        outside: u64,
    ) -> Result<Option<LbnPlace>, ProbeError> {
        if !self.lists_are_conclusive() {
            return self.guessed_rest(anchor, outside);
        }
        let bad = self.translator.bad();
        let remapped_max = bad.row_max();
        if outside - self.start > remapped_max {
            return Ok(None);
        }
        for lbn in outside..=outside.max(self.start + remapped_max.min(APART_MAX)) {
            let rest = self.at(lbn)?;
            let moved = rest.map_or(0, |rest| bad.remapped_among(bad.before(rest.place)));
            if moved >= lbn - self.start {
                return Ok(rest);
            }
        }
        Ok(None)
    }

    /// Returns the LBN if it is on the same track as the one before it, after slots that no list
    /// contains.
    fn after_gap(&mut self, lbn: u64) -> Result<Option<LbnPlace>, ProbeError> {
        let (last, next) = (self.translator.place(lbn - 1)?, self.at(lbn)?);
        let is_gap = |next: &LbnPlace| {
            last.is_some_and(|last| {
                follows(last, next.place) && self.translator.bad().after(last).is_empty()
            })
        };
        Ok(next.filter(is_gap))
    }

    /// Returns the end of a track whose LBNs from `outside` may be remapped.
    fn with_last_remapped(&mut self, outside: u64) -> Result<u64, ProbeError> {
        let last = self.translator.place(outside - 1)?;
        let Some(next) = self.translator.place(outside)? else {
            // The LBN has no translation, so the expected size decides.
            let end = self.expected.map_or(outside, |size| self.start + size);
            return Ok(end.clamp(outside, self.translator.end));
        };
        if !self.lists_are_conclusive() {
            return self.guessed_end(outside, last, next);
        }
        let bad = self.translator.bad();
        let remapped = last.map_or(0, |last| bad.remapped_among(bad.after(last)));
        let end = (outside + remapped).min(self.translator.end);
        if remapped > 0
            && let (Some(one), Some(two)) = (self.at(end - 1)?, self.at(end)?)
            && follows(one.place, two.place)
        {
            // The next track has begun earlier.
            return Ok(outside);
        }
        Ok(end)
    }
}
