//! Where a track ends, by translations alone: the base method of the algorithms by translation.
//!
//! A track is a run of LBNs on one surface of one cylinder in which slots ascend with LBNs. An LBN
//! that is kept elsewhere does not end it: its track goes on behind it. Where such an LBN stands
//! at the very boundary, a bad slot beside the boundary tells which track it belongs to, or, on a
//! drive without defect lists, the size that the track was expected to have.

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

/// An LBN known to lie on its track, and where.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    lbn: u64,
    place: Place,
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
            continue;
        }
        if anchor.lbn == first && begins_elsewhere(ask, start, anchor, outside, expected)? {
            ask.moved(start..outside);
            let place = ask.place(outside)?.expect("it begins the track's rest");
            anchor = Anchor {
                lbn: outside,
                place,
            };
            continue;
        }
        return at_the_edge(ask, start, outside, expected);
    }
}

/// Whether an LBN lies on the track of another before it.
fn is_on(ask: &mut Ask<'_>, anchor: Anchor, lbn: u64) -> Result<bool, ProbeError> {
    let Some(place) = ask.place(lbn)? else {
        return Ok(false);
    };
    let ahead = lbn - anchor.lbn;
    Ok(home(place) == home(anchor.place)
        && u64::from(place.slot) >= u64::from(anchor.place.slot) + ahead)
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
    let bad = match ask.place(outside - 1)? {
        Some(last) => ask.bad_after(last)?,
        None => 1,
    };
    let has_list = ask.defects()?.is_some();
    let unknown = ask.place(outside)?.is_none();
    let mut steps = vec![];
    if !has_list || unknown {
        steps.extend([1, 2]);
        let left = expected.map_or(0, |size| (start + size).saturating_sub(outside + 1));
        steps.extend((left > 2).then_some(left));
    } else if bad > 0 {
        steps.extend([1, 2, 3, bad].into_iter().filter(|step| *step <= bad));
    }
    for step in steps {
        if outside + step < ask.end && is_on(ask, anchor, outside + step)? {
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
            return Ok(Some(on));
        }
    }
    Ok(None)
}

/// Whether the few LBNs from `start` are kept elsewhere and their track is that of `outside`.
fn begins_elsewhere(
    ask: &mut Ask<'_>,
    start: u64,
    anchor: Anchor,
    outside: u64,
    expected: Option<u64>,
) -> Result<bool, ProbeError> {
    let (run, Some(next)) = (outside - start, ask.place(outside)?) else {
        return Ok(false);
    };
    if run > MOVED_RUN_MAX {
        return Ok(false);
    }
    if run == 1 && home(next) == home(anchor.place) {
        return Ok(true);
    }
    if ask.defects()?.is_some() {
        if ask.bad_before(next)? < run {
            return Ok(false);
        }
        // A track of one physical sector is rarer than one kept elsewhere.
        if run <= ask.ratio {
            return Ok(true);
        }
        let before = start.checked_sub(1).and_then(|lbn| ask.known(lbn));
        for beside in [Some(next), before].into_iter().flatten() {
            if looks_like_a_track(ask, anchor.place, start..outside, beside)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if anchor.place.slot == 0 {
        return Ok(false);
    }
    let rest = Anchor {
        lbn: outside,
        place: next,
    };
    match expected {
        _ if run > 1 => Ok(false),
        Some(size) if start + size < ask.end && size > 1 => {
            Ok(is_on(ask, rest, start + size - 1)? && !is_on(ask, rest, start + size)?)
        }
        _ => Ok(outside + 1 < ask.end && is_on(ask, rest, outside + 1)?),
    }
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
    let has_list = ask.defects()?.is_some();
    if next.slot == 0 && !has_list {
        return Ok(outside);
    }
    // The next track's first LBN may be kept behind the end of this one, but not right behind it.
    if has_list && outside - start > 1 && ask.bad_before(next)? > 0 {
        let ends = (ask.place(outside - 2)?, last);
        if let (Some(one), Some(two)) = ends
            && home(one) == home(two)
            && u64::from(two.slot - one.slot.min(two.slot)) > 1 + ask.bad_after(one)?
        {
            ask.moved(outside - 1..outside);
            return Ok(outside - 1);
        }
    }
    let room = match last {
        Some(last) if has_list => ask.bad_after(last)?.min(EDGE_MAX),
        _ => u64::from(expected.is_some_and(|size| outside - start < size)),
    };
    let mut before = next;
    // Some of the next track's first LBNs may be kept right behind them.
    let runs_max = if has_list && room > 0 {
        room + EDGE_MAX
    } else {
        room
    };
    for run in 1..=runs_max {
        if outside + run >= ask.end {
            let theirs = match last {
                Some(last) => looks_like_a_track(ask, next, outside..outside + run, last)?,
                None => false,
            };
            let ours = run <= room && !theirs;
            return Ok(if ours { ask.end } else { outside });
        }
        let Some(after) = ask.place(outside + run)? else {
            break;
        };
        let breaks = home(after) != home(before) || after.slot < before.slot;
        // Bad slots right behind say that this track goes on elsewhere.
        if breaks && run > ask.ratio && ask.bad_after(before)? > 0 {
            break;
        }
        if breaks
            && run > ask.ratio
            && expected != Some(outside + run - start)
            && let Some(last) = last
            && looks_like_a_track(ask, next, outside..outside + run, last)?
        {
            break;
        }
        if breaks && goes_on(ask, after, outside + run)? {
            let theirs = ask.bad_before(after)?.min(run);
            if run > room + theirs {
                break;
            }
            let possible = run - theirs..=run.min(room);
            let ours = expected
                .and_then(|size| (start + size).checked_sub(outside))
                .filter(|ours| possible.contains(ours))
                .unwrap_or(run - theirs);
            ask.moved(outside..outside + run);
            return Ok(outside + ours);
        }
        before = after;
    }
    Ok(outside)
}

/// Whether a run of LBNs, of which the first is at a place next to a track, is itself a track,
/// however short: nothing else is on it, as would be where they are only kept.
fn looks_like_a_track(
    ask: &mut Ask<'_>,
    first: Place,
    run: Range<u64>,
    beside: Place,
) -> Result<bool, ProbeError> {
    if !are_neighbours(home(first), home(beside)) {
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
    Ok(after.is_some_and(|after| home(after) == home(place)) || ask.bad_after(place)? > 0)
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
