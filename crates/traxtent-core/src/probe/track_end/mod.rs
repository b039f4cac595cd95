//! Where a track ends, by translations alone: the base method of the algorithms by translation.
//!
//! A track is a run of LBNs on one surface of one cylinder in which slots ascend with LBNs, and
//! pass over bad ones only. An LBN that is kept elsewhere, a stray, does not end it: the track
//! goes on behind it, and its slot there is bad. Amid a track, translations show that. At the
//! track's beginning or end, a stray may also be of the track before or behind, or a short track
//! of its own: there the defect lists tell ([`Bad`](super::bad::Bad)), or else it is a [`guess`].

mod guess;

use super::algorithm::{ProbeError, Region};
use super::ask::{Ask, home};
use crate::geometry::Place;

/// How to look for the first LBN behind a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// Ever longer steps from the track's beginning, then bisection (paper T, section 4.1).
    Binary,
    /// LBN by LBN (paper Q, section 2.3).
    Linear,
    /// Ever longer steps from the expected end in either direction, then bisection.
    Near,
}

/// Strays at a track's beginning that are kept apart from each other are sought among so many LBNs.
const APART_MAX: u64 = 32;

/// An LBN and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchor {
    pub(super) lbn: u64,
    pub(super) place: Place,
}

/// The LBN behind the last of the track that begins at `start`. `expected` is the size it should
/// have, if there is one.
pub(super) fn track_end(
    ask: &mut Ask<'_>,
    start: u64,
    expected: Option<u64>,
    search: Search,
) -> Result<u64, ProbeError> {
    let mut first = start;
    while ask.place(first)?.is_none() && first + 1 < ask.end {
        first += 1;
    }
    let Some(place) = ask.place(first)? else {
        return Ok(ask.end);
    };
    let mut anchor = Anchor { lbn: first, place };
    let mut track = Track {
        ask,
        start,
        expected,
    };
    loop {
        let outside = track.outside(anchor, search)?;
        if outside == track.ask.end {
            return Ok(outside);
        }
        if let Some(inside) = track.resumes(anchor, outside)? {
            track.ask.moved(outside..inside.lbn);
            anchor = inside;
        } else if anchor.lbn == first
            && let Some(rest) = track.begins_elsewhere(anchor, outside)?
        {
            track.ask.moved(start..rest.lbn);
            anchor = rest;
        } else if let Some(next) = track.behind_a_gap(outside)? {
            anchor = next;
        } else {
            let end = track.with_last_strays(outside)?;
            track.ask.moved(outside..end);
            return Ok(end);
        }
    }
}

/// Where the first track of a region begins.
pub(super) fn first_track(ask: &mut Ask<'_>, region: Region) -> Result<u64, ProbeError> {
    let first = region.first.0;
    if region.aligned || first == 0 || first >= ask.end {
        return Ok(first);
    }
    track_end(ask, first - 1, None, Search::Binary)
}

/// Whether two LBNs lie on one track, as far as their places tell.
pub(super) fn are_on_one_track(ask: &Ask<'_>, one: Anchor, other: Anchor) -> bool {
    let ahead = u64::from(one.place.slot) + (other.lbn - one.lbn);
    let Some(over) = u64::from(other.place.slot).checked_sub(ahead) else {
        return false;
    };
    let track = home(one.place);
    let passed = one.place.slot..other.place.slot;
    // On a drive without lists any slots may be bad.
    track == home(other.place)
        && (!ask.has_list || over <= ask.bad().within(track, passed).len() as u64)
}

/// Whether a place is on the track of another, and behind it.
fn follows(place: Place, next: Place) -> bool {
    home(place) == home(next) && place.slot < next.slot
}

/// A track whose end is sought.
struct Track<'a, 't> {
    ask: &'a mut Ask<'t>,
    start: u64,
    /// The size that it should have.
    expected: Option<u64>,
}

impl Track<'_, '_> {
    /// Whether the defect lists tell of which bad slots the LBNs are kept elsewhere.
    fn lists_tell(&self) -> bool {
        self.ask.has_list && self.ask.bad().tells_moved()
    }

    /// An LBN with its place.
    fn at(&mut self, lbn: u64) -> Result<Option<Anchor>, ProbeError> {
        if lbn >= self.ask.end {
            return Ok(None);
        }
        Ok(self.ask.place(lbn)?.map(|place| Anchor { lbn, place }))
    }

    /// Whether an LBN lies on the track of another before it.
    fn is_on(&mut self, anchor: Anchor, lbn: u64) -> Result<bool, ProbeError> {
        let at = self.at(lbn)?;
        Ok(at.is_some_and(|at| are_on_one_track(self.ask, anchor, at)))
    }

    /// An LBN that is not on the track although the one before it is.
    fn outside(&mut self, anchor: Anchor, search: Search) -> Result<u64, ProbeError> {
        let (mut inside, end) = (anchor.lbn, self.ask.end);
        if search == Search::Linear {
            while inside + 1 < end && self.is_on(anchor, inside + 1)? {
                inside += 1;
                self.ask.forget_below(self.start);
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
                // What the next track already shows tells how much too far the guess was.
                let late = self
                    .ask
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

    /// Where the track goes on behind `outside`, if that LBN is a stray.
    fn resumes(&mut self, anchor: Anchor, outside: u64) -> Result<Option<Anchor>, ProbeError> {
        let bad = self.ask.bad();
        let (last, at) = (self.ask.place(outside - 1)?, self.ask.place(outside)?);
        let run = last.map_or(&[][..], |last| bad.after(last));
        let (count, moved) = (run.len() as u64, bad.moved_of(run));
        let mut steps = vec![];
        if self.ask.has_list && at.is_some() {
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
            // The first LBN back on the track.
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
                self.ask.found_moved(run.iter().copied());
            }
            return self.at(on);
        }
        match (self.lists_tell(), last) {
            (true, Some(last)) => self.resumes_behind_a_gap(last, outside),
            _ => Ok(None),
        }
    }

    /// Where the track goes on if a gap that no list names comes after its slot `last`, and then the
    /// slots of strays, `outside` the first of them.
    fn resumes_behind_a_gap(
        &mut self,
        last: Place,
        outside: u64,
    ) -> Result<Option<Anchor>, ProbeError> {
        let bad = self.ask.bad();
        let behind = last.slot.saturating_add(1)..u32::MAX;
        let mut grown = bad.within(home(last), behind.clone()).iter();
        let Some(first) = grown.find(|place| bad.is_moved(**place)) else {
            return Ok(None);
        };
        let row = bad.after(*first).iter();
        let strays = 1 + row.take_while(|place| bad.is_moved(**place)).count() as u64;
        let Some(next) = self.at(outside + strays)? else {
            return Ok(None);
        };
        let passed = behind.start..next.place.slot;
        let resumes =
            follows(last, next.place) && bad.moved_of(bad.within(home(last), passed)) == strays;
        Ok(Some(next).filter(|_| resumes))
    }

    /// Where the track's first LBN is that is on it, if those from its start on are strays.
    fn begins_elsewhere(
        &mut self,
        anchor: Anchor,
        outside: u64,
    ) -> Result<Option<Anchor>, ProbeError> {
        if !self.lists_tell() {
            return self.guessed_rest(anchor, outside);
        }
        let bad = self.ask.bad();
        let strays_max = bad.row_max();
        if outside - self.start > strays_max {
            return Ok(None);
        }
        for lbn in outside..=outside.max(self.start + strays_max.min(APART_MAX)) {
            let rest = self.at(lbn)?;
            let moved = rest.map_or(0, |rest| bad.moved_of(bad.before(rest.place)));
            if moved >= lbn - self.start {
                return Ok(rest);
            }
        }
        Ok(None)
    }

    /// An LBN on the track of the one before it, behind slots that no list names.
    fn behind_a_gap(&mut self, lbn: u64) -> Result<Option<Anchor>, ProbeError> {
        let (last, next) = (self.ask.place(lbn - 1)?, self.at(lbn)?);
        let is_gap = |next: &Anchor| {
            last.is_some_and(|last| {
                follows(last, next.place) && self.ask.bad().after(last).is_empty()
            })
        };
        Ok(next.filter(is_gap))
    }

    /// The end of a track whose LBNs from `outside` on may be strays.
    fn with_last_strays(&mut self, outside: u64) -> Result<u64, ProbeError> {
        let last = self.ask.place(outside - 1)?;
        let Some(next) = self.ask.place(outside)? else {
            // Unreadable: the expected size decides.
            let end = self.expected.map_or(outside, |size| self.start + size);
            return Ok(end.clamp(outside, self.ask.end));
        };
        if !self.lists_tell() {
            return self.guessed_end(outside, last, next);
        }
        let bad = self.ask.bad();
        let strays = last.map_or(0, |last| bad.moved_of(bad.after(last)));
        let end = (outside + strays).min(self.ask.end);
        if strays > 0
            && let (Some(one), Some(two)) = (self.at(end - 1)?, self.at(end)?)
            && follows(one.place, two.place)
        {
            // The next track has begun before.
            return Ok(outside);
        }
        Ok(end)
    }
}
