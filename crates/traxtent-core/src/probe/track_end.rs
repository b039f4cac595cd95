//! Where a track ends, by translations alone: the base method of the algorithms by translation.
//!
//! A track is a run of LBNs on one surface of one cylinder in which slots ascend with LBNs, and
//! pass over bad ones only. An LBN that is kept elsewhere does not end it: its track goes on
//! behind it. Such a stray has left a bad slot at home. Where that is amid a track, translations
//! show it. Where it is at the track's beginning or end, the stray might also be of the track
//! before or behind, or a short track of its own. There the defect lists tell ([`Bad`]), or else,
//! in this order: a single physical sector is a stray, since tracks of one are rarer; a run with
//! nothing else on its track, next to another, is a track; and the size expected decides.
//!
//! [`Bad`]: super::bad::Bad

use std::ops::Range;

use super::algorithm::ProbeError;
use super::ask::{Ask, are_neighbours, home};
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

/// A run of no more LBNs may be one that is kept elsewhere.
const MOVED_RUN_MAX: u64 = 256;

/// Of a run that is kept elsewhere, no more LBNs are sought on either side of a boundary.
const EDGE_MAX: u64 = 8;

/// How far from a run of LBNs it is looked for others on the same track.
const NEARBY: [u64; 11] = [0, 1, 3, 7, 15, 31, 63, 127, 255, 511, 1023];

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
    let mut anchor = match ask.place(first)? {
        Some(place) => Anchor { lbn: first, place },
        None => return Ok(ask.end),
    };
    loop {
        let outside = outside(ask, start, anchor, expected, search)?;
        if outside == ask.end {
            return Ok(outside);
        }
        if let Some(inside) = resumes(ask, start, anchor, outside, expected)? {
            ask.moved(outside..inside);
            let place = ask.place(inside)?.expect("it is on the track");
            anchor = Anchor { lbn: inside, place };
        } else if anchor.lbn == first
            && let Some(rest) = begins_elsewhere(ask, start, anchor, outside, expected)?
        {
            ask.moved(start..rest.lbn);
            anchor = rest;
        } else if let Some(place) = behind_a_gap(ask, outside)? {
            let lbn = outside;
            anchor = Anchor { lbn, place };
        } else {
            return at_the_edge(ask, start, outside, expected);
        }
    }
}

/// Whether an LBN lies on the track of another before it.
fn is_on(ask: &mut Ask<'_>, anchor: Anchor, lbn: u64) -> Result<bool, ProbeError> {
    Ok(ask
        .place(lbn)?
        .is_some_and(|place| are_on_one_track(ask, anchor, Anchor { lbn, place })))
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

/// Where an LBN is that is on the track of the one before it, behind slots that no list names.
fn behind_a_gap(ask: &mut Ask<'_>, lbn: u64) -> Result<Option<Place>, ProbeError> {
    let (Some(last), Some(next)) = (ask.place(lbn - 1)?, ask.place(lbn)?) else {
        return Ok(None);
    };
    let is_gap = follows(last, next) && ask.bad().after(last).is_empty();
    Ok(is_gap.then_some(next))
}

/// Whether a place is on the track of another, and behind it.
fn follows(place: Place, next: Place) -> bool {
    home(place) == home(next) && place.slot < next.slot
}

/// An LBN that is not on the track although the one before it is.
fn outside(
    ask: &mut Ask<'_>,
    start: u64,
    anchor: Anchor,
    expected: Option<u64>,
    search: Search,
) -> Result<u64, ProbeError> {
    let (mut inside, end) = (anchor.lbn, ask.end);
    if search == Search::Linear {
        while inside + 1 < end && is_on(ask, anchor, inside + 1)? {
            inside += 1;
            ask.forget_below(start);
        }
        return Ok(inside + 1);
    }
    let mut beyond = None;
    if let (Search::Near, Some(size)) = (search, expected) {
        let guess = (start + size).clamp(inside + 1, end);
        let mut step = 1;
        if guess < end && is_on(ask, anchor, guess)? {
            inside = guess;
        } else {
            beyond = Some(guess);
            // What the next track already shows tells how much too far the guess was.
            let late = ask.known(guess).map_or(0, |place| u64::from(place.slot));
            let mut back = guess.saturating_sub(late.min(size)).max(inside + 1);
            if back == guess {
                back = (guess - 1).max(inside + 1);
            }
            while back > inside {
                if is_on(ask, anchor, back)? {
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
            if next == end || !is_on(ask, anchor, next)? {
                break next;
            }
            inside = next;
            step *= 2;
        },
    };
    while beyond - inside > 1 {
        let middle = inside + (beyond - inside) / 2;
        if is_on(ask, anchor, middle)? {
            inside = middle;
        } else {
            beyond = middle;
        }
    }
    Ok(beyond)
}

/// Where the track goes on behind `outside`, if that LBN is only kept elsewhere.
fn resumes(
    ask: &mut Ask<'_>,
    start: u64,
    anchor: Anchor,
    outside: u64,
    expected: Option<u64>,
) -> Result<Option<u64>, ProbeError> {
    let bad = ask.bad();
    let run = match ask.place(outside - 1)? {
        Some(last) => bad.after(last),
        None => &[],
    };
    let count = run.len() as u64;
    let mut steps = vec![];
    if !ask.has_list || ask.place(outside)?.is_none() {
        steps.extend([1, 2]);
        let left = expected.map_or(0, |size| (start + size).saturating_sub(outside + 1));
        steps.extend((left > 2).then_some(left));
    } else {
        let likely = [bad.moved_of(run), 1, 2, 3, count];
        steps.extend(likely.into_iter().filter(|step| (1..=count).contains(step)));
    }
    for step in steps {
        if outside + step >= ask.end || !is_on(ask, anchor, outside + step)? {
            continue;
        }
        // The first LBN back on the track.
        let (mut off, mut on) = (outside, outside + step);
        while on - off > 1 {
            let middle = off + (on - off) / 2;
            if is_on(ask, anchor, middle)? {
                on = middle;
            } else {
                off = middle;
            }
        }
        if on - outside > bad.moved_of(run) {
            ask.found_moved(run.iter().copied());
        }
        return Ok(Some(on));
    }
    Ok(None)
}

/// Where the track's first LBN is that is on it, if those from `start` on are kept elsewhere.
fn begins_elsewhere(
    ask: &mut Ask<'_>,
    start: u64,
    anchor: Anchor,
    outside: u64,
    expected: Option<u64>,
) -> Result<Option<Anchor>, ProbeError> {
    let bad = ask.bad();
    let run = outside - start;
    if bad.tells_moved() && ask.has_list {
        // Those kept elsewhere may be kept apart.
        for lbn in outside..=start + bad.row_max() {
            if lbn < ask.end
                && let Some(place) = ask.place(lbn)?
                && bad.moved_of(bad.before(place)) >= lbn - start
            {
                return Ok(Some(Anchor { lbn, place }));
            }
        }
        return Ok(None);
    }
    let Some(next) = ask.place(outside)?.filter(|_| run <= MOVED_RUN_MAX) else {
        return Ok(None);
    };
    let rest = Anchor {
        lbn: outside,
        place: next,
    };
    let is_rest = if run == 1 && home(next) == home(anchor.place) {
        true
    } else if ask.has_list {
        let before = start.checked_sub(1).and_then(|lbn| ask.known(lbn));
        bad.before(next).len() as u64 >= run
            && !looks_like_a_track(ask, anchor.place, start..outside, [Some(next), before])?
    } else if anchor.place.slot == 0 || run > 1 {
        false
    } else {
        match expected {
            Some(size) if start + size < ask.end && size > 1 => {
                is_on(ask, rest, start + size - 1)? && !is_on(ask, rest, start + size)?
            }
            _ => outside + 1 < ask.end && is_on(ask, rest, outside + 1)?,
        }
    };
    Ok(is_rest.then_some(rest))
}

/// The boundary, if the LBNs from `outside` on may be kept elsewhere and belong to the track.
fn at_the_edge(
    ask: &mut Ask<'_>,
    start: u64,
    outside: u64,
    expected: Option<u64>,
) -> Result<u64, ProbeError> {
    let (last, Some(next)) = (ask.place(outside - 1)?, ask.place(outside)?) else {
        // Unreadable: the expected size decides.
        return Ok(expected.map_or(outside, |size| (start + size).max(outside).min(ask.end)));
    };
    let bad = ask.bad();
    let behind = last.map_or(&[][..], |last| bad.after(last));
    let end = if ask.has_list && bad.tells_moved() {
        let end = (outside + bad.moved_of(behind)).min(ask.end);
        // They might still be where the next track begins.
        let places = match outside < end && end < ask.end {
            true => ask.place(end - 1)?.zip(ask.place(end)?),
            false => None,
        };
        match places {
            Some((last, next)) if follows(last, next) => outside,
            _ => end,
        }
    } else if ask.has_list {
        let room = (behind.len() as u64).min(EDGE_MAX);
        guessed_end(ask, start, outside, expected, next, room)?
    } else if next.slot == 0 {
        outside
    } else {
        let room = u64::from(expected.is_some_and(|size| outside - start < size));
        guessed_end(ask, start, outside, expected, next, room)?
    };
    ask.moved(outside..end);
    Ok(end)
}

/// The same where no list tells: up to `room` LBNs from `outside`, at `next`, may be the track's.
fn guessed_end(
    ask: &mut Ask<'_>,
    start: u64,
    outside: u64,
    expected: Option<u64>,
    next: Place,
    room: u64,
) -> Result<u64, ProbeError> {
    let bad = ask.bad();
    let last = ask.known(outside - 1);
    // Some of the next track's first LBNs may be kept right behind them.
    let theirs_max = if room > 0 && ask.has_list {
        EDGE_MAX
    } else {
        0
    };
    let mut before = next;
    for run in 1..=room + theirs_max {
        let strays = outside..outside + run;
        if strays.end >= ask.end {
            let ours = run <= room && !looks_like_a_track(ask, next, strays, [last])?;
            return Ok(if ours { ask.end } else { outside });
        }
        let Some(after) = ask.place(strays.end)? else {
            break;
        };
        let breaks = home(after) != home(before) || after.slot < before.slot;
        if breaks && run > ask.ratio {
            // Bad slots right behind say that this is a track with no more room.
            let is_full = !bad.after(before).is_empty();
            let is_expected = expected == Some(strays.end - start);
            if is_full || (!is_expected && looks_like_a_track(ask, next, strays.clone(), [last])?) {
                break;
            }
        }
        if breaks && goes_on(ask, after, strays.end)? {
            let theirs = (bad.before(after).len() as u64).min(run);
            if run > room + theirs {
                break;
            }
            let possible = run - theirs..=run.min(room);
            let ours = expected
                .and_then(|size| (start + size).checked_sub(outside))
                .filter(|ours| possible.contains(ours))
                .unwrap_or(run - theirs);
            return Ok(outside + ours);
        }
        before = after;
    }
    Ok(outside)
}

/// Whether a run of LBNs, of which the first is at a place next to one of others, is itself a
/// track, however short: nothing else is on it, as would be where they are only kept.
fn looks_like_a_track(
    ask: &mut Ask<'_>,
    first: Place,
    run: Range<u64>,
    beside: impl IntoIterator<Item = Option<Place>>,
) -> Result<bool, ProbeError> {
    let mut beside = beside.into_iter().flatten();
    let is_beside = beside.any(|place| are_neighbours(home(first), home(place)));
    if run.end - run.start <= ask.ratio || !is_beside {
        return Ok(false);
    }
    let end = u64::from(first.slot) + (run.end - run.start);
    let behind = NEARBY.map(|distance| u64::from(first.slot).checked_sub(distance + 1));
    let ahead = NEARBY.map(|distance| end.checked_add(distance));
    for slot in behind.into_iter().chain(ahead).flatten() {
        let slot = u32::try_from(slot).unwrap_or(u32::MAX);
        let there = ask.lbn_at(Place { slot, ..first })?;
        if there.is_some_and(|lbn| !run.contains(&lbn)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the LBN behind one at `place` is on the same track.
fn goes_on(ask: &mut Ask<'_>, place: Place, lbn: u64) -> Result<bool, ProbeError> {
    if lbn + 1 >= ask.end {
        return Ok(true);
    }
    let after = ask.place(lbn + 1)?;
    let is_full = !ask.bad().after(place).is_empty();
    Ok(is_full || after.is_some_and(|after| home(after) == home(place)))
}

/// Where the first track of a region begins.
pub(super) fn first_track(
    ask: &mut Ask<'_>,
    region: super::algorithm::Region,
) -> Result<u64, ProbeError> {
    let first = region.first.0;
    if region.aligned || first == 0 || first >= ask.end {
        return Ok(first);
    }
    track_end(ask, first - 1, None, Search::Binary)
}
