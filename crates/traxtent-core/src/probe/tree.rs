//! Translations only where the layout can surprise.
//!
//! One translation tells cylinder, surface and slot of an LBN. If they are as the pattern of the
//! tracks so far predicts for an LBN far ahead, then as many LBNs as predicted lie between, so
//! every boundary between is where it should be, unless deviations cancel. Jumps double as long
//! as they land well; where one does not, bisection finds the first boundary that is not as
//! predicted, and a local search ([`track_end`]) that track's end.
//!
//! **What can cancel, and what is asked for that reason.**
//! - Another size of tracks on some surface, made up for by another, or a short track somewhere
//!   else than expected: of every surface and every size on it that a jump touches, the last track
//!   is tested at both ends, since what changes in a layout stays so for a while.
//! - A slipped sector costs its track an LBN, and a spare behind it gives one back. The defect
//!   list tells which tracks have bad slots. What these cost is part of the prediction, and each
//!   such track is tested at both ends. So all that remains between two tests is of one sign: LBNs
//!   that appear in spares.
//! - A short track and one that nothing has announced, together as long as the track expected. The
//!   LBN before the boundary is asked for, too, at the end of each jump and wherever a tested
//!   boundary is between tracks that are not neighbours.
//! - Spares at the front of a region take a slip from before the bad sector. A boundary at a track
//!   whose first slots are not in use is tested by the LBN before it, too.
//! - An LBN that is kept elsewhere moves no boundary. Where one stands at a tested boundary, the
//!   local search tells it by its neighbours.
//!
//! **Without defect lists** a slipped sector whose spare is in the same cylinder leaves no trace
//! outside that cylinder: any algorithm that is always exact must ask in each region of spares,
//! so once a cylinder (`1 / surfaces` translations a track) on a drive with spares in every
//! cylinder, however regular it looks. Jumps then end with the cylinder (with the pass, in
//! seek-first orders), and its last track is tested at both ends; where the sizes of a cylinder's
//! tracks differ, all of them are. A slip that a spare of its own track takes moves no boundary.
//!
//! Trusted without a test: that a defect list is complete, and that tracks do not change their
//! size and back between two tests without a net effect.

use std::collections::{BTreeMap, BTreeSet};

use super::algorithm::{Confirm, Extraction, ProbeError, Region, Sink};
use super::ask::{Ask, Home, Out, are_neighbours, home};
use super::pattern::{Expected, Pattern, Slots};
use super::target::Target;
use super::track_end::{Search, first_track, track_end};
use crate::geometry::Place;

/// No jump is planned over more tracks.
const REACH_MAX: usize = 1 << 18;
/// A plan goes on over no more tracks without LBNs to find one that has some.
const BAD_TRACKS_MAX: usize = 1 << 16;
/// How many tracks ahead a pattern is looked for that goes on behind an exception.
const RESUME_MAX: usize = 8;
/// Without defect lists, no jump within one pass is longer.
const BLIND_MAX: usize = 256;

/// A track as it is planned to be.
#[derive(Clone, Copy, Debug)]
struct Plan {
    start: u64,
    sectors: u64,
    track: Expected,
    /// The slot of its first LBN.
    slot: u32,
    /// Whether a slot of it is listed as bad.
    hurt: bool,
    /// How many of its last slots are.
    bad_at_end: u64,
}

impl Plan {
    fn end(&self) -> u64 {
        self.start + self.sectors
    }
}

struct Tree<'t, 'a, 's> {
    ask: Ask<'t>,
    out: Out<'a, 's>,
    pattern: Pattern,
    has_list: bool,
    /// How many tracks to try next.
    reach: usize,
    /// Whether a bad slot costs its track an LBN.
    slips_cost: bool,
    /// How many tracks in a row have contradicted that.
    doubts: u32,
    /// The slots of the last track that was not as expected.
    odd: Option<Slots>,
}

/// Finds the tracks of a region.
pub(super) fn tree(
    target: &mut dyn Target,
    region: Region,
    sink: &mut Sink<'_>,
) -> Result<Extraction, ProbeError> {
    let mut ask = Ask::new(target);
    let has_list = ask.defects()?.is_some();
    let first = first_track(&mut ask, region)?;
    let out = Out::new(sink, first, region, ask.end);
    let mut tree = Tree {
        ask,
        out,
        pattern: Pattern::new(),
        has_list,
        reach: 1,
        slips_cost: true,
        doubts: 0,
        odd: None,
    };
    if !has_list {
        tree.ask
            .note("no defect lists: every cylinder or pass is asked about");
    }
    while tree.out.goes_on() {
        if !tree.leap()? {
            tree.reach = 1;
            tree.search()?;
        }
        tree.ask.forget_below(tree.out.at);
    }
    Ok(tree.ask.finish())
}

impl Tree<'_, '_, '_> {
    /// Goes on by as many predicted tracks as the reach, or by fewer if not all of them are so.
    fn leap(&mut self) -> Result<bool, ProbeError> {
        let plan = self.plan(self.reach)?;
        let Some(first) = plan.first() else {
            return Ok(false);
        };
        if !self.is_at(first)? {
            return Ok(false);
        }
        let whole = plan.len() - 1;
        let (mut good, mut bad) = (0, whole + 1);
        let mut next = whole;
        while good + 1 < bad {
            if self.begins(&plan, next, false)? {
                good = next;
            } else {
                bad = next;
            }
            next = good + (bad - good) / 2;
        }
        // What is between must not cancel.
        while good > 0 {
            match self.first_surprise(&plan, good)? {
                None => break,
                Some(safe) => good = safe,
            }
        }
        if good == 0 {
            return Ok(false);
        }
        for (track, next) in plan.iter().zip(&plan[1..]).take(good) {
            self.pattern.push(track.track);
            if track.sectors == 0 {
                continue;
            }
            let confirm = match self.ask.known(next.start) {
                Some(_) => Confirm::Tested,
                None if self.has_list => Confirm::Predicted,
                None => Confirm::Sampled,
            };
            self.out.track(track.end(), confirm)?;
        }
        self.reach = match good == whole {
            true => (2 * self.reach).min(REACH_MAX),
            false => 1,
        };
        Ok(true)
    }

    /// The next tracks, and one more, as they should be.
    fn plan(&mut self, reach: usize) -> Result<Vec<Plan>, ProbeError> {
        let mut plan: Vec<Plan> = Vec::new();
        let mut start = self.out.at;
        let slips_cost = self.slips_cost;
        let (end, list) = (self.ask.end, self.ask.defects()?.unwrap_or(&[]));
        let mut step_before = None;
        for track in self.pattern.ahead() {
            let next = planned(track, start, list, slips_cost);
            if let (Some(last), false) = (plan.last(), self.has_list) {
                // A jump ends with the cylinder or with the pass.
                let step = moves_arm(last.track.home, track.home);
                let is_new = step_before.is_some_and(|before| before != step);
                step_before = Some(step);
                if is_new || plan.len() > BLIND_MAX {
                    plan.push(next);
                    break;
                }
            }
            plan.push(next);
            start = next.end();
            let enough = plan.len() > reach && next.sectors > 0;
            if enough || start > end || plan.len() > reach + BAD_TRACKS_MAX {
                break;
            }
        }
        // A plan may end at the drive's end, where no track follows.
        if let Some(last) = plan.last().copied()
            && last.end() == end
        {
            plan.push(Plan {
                start: end,
                sectors: 0,
                ..last
            });
        }
        Ok(plan)
    }

    /// Whether a track begins where it should.
    fn is_at(&mut self, track: &Plan) -> Result<bool, ProbeError> {
        let (cylinder, surface) = track.track.home;
        let should = Place {
            cylinder,
            surface,
            slot: track.slot,
        };
        Ok(track.start < self.ask.end && self.ask.place(track.start)? == Some(should))
    }

    /// Whether track `at` of a plan, or the next that has LBNs, begins where it should.
    /// Where more than its first LBN is needed to tell, or if `strict`, the LBN before it is asked for.
    fn begins(&mut self, plan: &[Plan], at: usize, strict: bool) -> Result<bool, ProbeError> {
        if at == 0 {
            return Ok(true);
        }
        let start = plan[at].start;
        if start > self.ask.end {
            return Ok(false);
        }
        let before = plan[..at].iter().rev().find(|track| track.sectors > 0);
        let Some(before) = before else {
            return Ok(true);
        };
        let follows = plan[at..].iter().find(|track| track.sectors > 0);
        let neighbours = match follows {
            _ if start == self.ask.end => false,
            Some(track) if self.is_at(track)? => {
                // LBNs of bad slots may be kept just where a track is expected.
                let behind = start + before.bad_at_end;
                if before.bad_at_end > 0 && behind < track.end().min(self.ask.end) {
                    let there = self.ask.place(behind)?;
                    if there.map(home) != Some(track.track.home) {
                        return Ok(false);
                    }
                }
                track.slot == 0 && are_neighbours(before.track.home, track.track.home)
            }
            _ => return Ok(false),
        };
        if neighbours && !strict {
            return Ok(true);
        }
        let last = self.ask.place(start - 1)?;
        Ok(last.is_some_and(|place| home(place) == before.track.home))
    }

    /// Of the tests inside a jump over `good` tracks, the first that fails: the boundary before it
    /// that held.
    fn first_surprise(&mut self, plan: &[Plan], good: usize) -> Result<Option<usize>, ProbeError> {
        let mut held = 0;
        for at in self.tests(plan, good) {
            if !self.begins(plan, at, at == good)? {
                return Ok(Some(held));
            }
            held = at;
        }
        Ok(None)
    }

    /// The boundaries to test inside a jump, ascending.
    fn tests(&self, plan: &[Plan], good: usize) -> Vec<usize> {
        let jump = &plan[..good];
        let last = good - 1;
        let step = |at: usize| {
            let (from, to) = (plan[at].track.home, plan[at + 1].track.home);
            (
                i64::from(to.0.0) - i64::from(from.0.0),
                i32::from(to.1.0) - i32::from(from.1.0),
            )
        };
        let mut tests = vec![last, last + 1];
        if self.has_list {
            let steps = |at: usize| (at.checked_sub(1).map(|at| step(at)), step(at));
            let mut kinds = BTreeSet::new();
            let mut most = BTreeMap::new();
            for track in jump {
                let most = most.entry(track.track.home.1).or_insert(0);
                *most = track.track.slots.count.max(*most);
            }
            for (at, track) in jump.iter().enumerate().rev() {
                let kind = (track.track.home.1, track.track.slots, steps(at));
                let is_new = track.sectors > 0 && kinds.insert(kind);
                let is_short = track.track.slots.count < most[&track.track.home.1];
                if is_new || is_short || track.hurt {
                    tests.extend([at, at + 1]);
                }
            }
        } else if jump[..last]
            .iter()
            .any(|track| track.track.slots != jump[0].track.slots)
        {
            tests.extend(0..last);
        }
        tests.sort_unstable();
        tests.dedup();
        tests
    }

    /// Finds the end of a track that is not as predicted, and learns from it.
    fn search(&mut self) -> Result<(), ProbeError> {
        let start = self.out.at;
        let plan = self.plan(1)?;
        let at = self.ask.place(start)?;
        let planned = plan.first().copied();
        let as_planned = planned.filter(|plan| at.is_some_and(|at| home(at) == plan.track.home));
        let expected = match (as_planned, at) {
            (Some(plan), _) => Some(plan.sectors),
            (None, Some(at)) => {
                let slots = self.pattern.slots_of(at.surface);
                slots.map(|slots| u64::from(slots.count))
            }
            (None, None) => None,
        };
        let expected = expected.filter(|sectors| *sectors > 0);
        let end = track_end(&mut self.ask, start, expected, Search::Near)?;
        let track = self.observed(start, end)?;
        let next = match end < self.ask.end {
            true => self.ask.place(end)?.map(home),
            false => None,
        };
        self.learn(start, end, track, next);
        self.out.track(end, Confirm::Tested)
    }

    /// Where a track is and which slots it uses.
    fn observed(&mut self, start: u64, end: u64) -> Result<Option<Expected>, ProbeError> {
        let (Some(mut first), Some(mut last)) = (self.ask.place(start)?, self.ask.place(end - 1)?)
        else {
            return Ok(None);
        };
        if home(first) != home(last) {
            let Some(middle) = self.ask.place(start + (end - start) / 2)? else {
                return Ok(None);
            };
            if home(first) == home(middle) {
                last = Place {
                    slot: first.slot + (end - start - 1) as u32,
                    ..first
                };
            } else {
                first = Place {
                    slot: last.slot.saturating_sub((end - start - 1) as u32),
                    ..last
                };
            }
        }
        let usual = self.pattern.slots_of(first.surface);
        let earliest = first.slot - self.ask.bad_before(first)? as u32;
        let begin = match usual {
            Some(usual) if (earliest..first.slot).contains(&usual.first) => usual.first,
            None => earliest,
            Some(_) => first.slot,
        };
        let count = (last.slot + 1).saturating_sub(begin).max(1);
        let most = count + self.ask.bad_after(last)? as u32;
        let count = match usual {
            Some(usual) if (count..=most).contains(&usual.count) => usual.count,
            _ => count,
        };
        Ok(Some(Expected {
            home: home(first),
            slots: Slots {
                first: begin,
                count,
            },
        }))
    }

    /// Adds a track that has been searched for to the pattern. Where the pattern goes on behind it
    /// as if it had been as expected, it is added as it should have been.
    fn learn(&mut self, start: u64, end: u64, track: Option<Expected>, next: Option<Home>) {
        let ahead: Vec<Expected> = self.pattern.ahead().take(RESUME_MAX).collect();
        // Tracks may have been left out, if the pattern goes on behind this one.
        let here = track.and_then(|track| {
            let fits = |at: usize| ahead.get(at).map(|t| t.home);
            let here = ahead.iter().position(|t| t.home == track.home)?;
            (here == 0 || fits(here + 1) == next).then_some(here)
        });
        let Some(here) = here else {
            // A track kept elsewhere is between its neighbours.
            match (ahead.get(1), track) {
                (Some(behind), _) if Some(behind.home) == next => self.pattern.push(ahead[0]),
                (_, Some(track)) => self.pattern.push(track),
                (_, None) => {}
            }
            return;
        };
        let track = track.expect("it has been found in the pattern");
        ahead[..here].iter().for_each(|t| self.pattern.push(*t));
        let usual = ahead[here];
        if usual.slots == track.slots {
            self.learn_of_slips(track, end - start);
        }
        let is_known = self.odd == Some(track.slots)
            || self.pattern.slots_of(track.home.1) == Some(track.slots);
        let is_odd = usual.slots != track.slots && !is_known;
        self.pattern.push(if is_odd { usual } else { track });
        if usual.slots != track.slots {
            self.odd = Some(track.slots);
        }
    }

    /// Whether a bad slot costs its track an LBN: decided anew where two tracks contradict.
    fn learn_of_slips(&mut self, track: Expected, sectors: u64) {
        let list = self.ask.defects().ok().flatten().unwrap_or(&[]);
        let bad = bad_slots(track, list).len() as u64;
        let count = u64::from(track.slots.count);
        let cost = match count - sectors.min(count) {
            _ if bad == 0 => return,
            0 => false,
            lost if lost == bad => true,
            _ => return,
        };
        self.doubts = if cost == self.slips_cost {
            0
        } else {
            self.doubts + 1
        };
        if self.doubts == 2 {
            (self.slips_cost, self.doubts) = (cost, 0);
        }
    }
}

/// Whether the arm moves from a track to the next.
fn moves_arm(from: Home, to: Home) -> bool {
    from.0 != to.0
}

/// The bad slots among those that a track uses.
fn bad_slots(track: Expected, list: &[Place]) -> &[Place] {
    let (cylinder, surface) = track.home;
    let Slots { first, count } = track.slots;
    let before = |slot: u32| {
        let place = Place {
            cylinder,
            surface,
            slot,
        };
        list.partition_point(|bad| *bad < place)
    };
    &list[before(first)..before(first.saturating_add(count))]
}

/// A track as it should be from an LBN on.
fn planned(track: Expected, start: u64, list: &[Place], slips_cost: bool) -> Plan {
    let Slots { first, count } = track.slots;
    let bad = bad_slots(track, list);
    let all_bad = bad.len() as u64 == u64::from(count);
    let lost = if slips_cost || all_bad { bad.len() } else { 0 };
    let leading = bad.iter().zip(first..).take_while(|(b, k)| b.slot == *k);
    let end = first.saturating_add(count);
    let ending = bad.iter().rev().zip((0..end).rev());
    let ending = ending.take_while(|(b, k)| b.slot == *k);
    Plan {
        start,
        sectors: u64::from(count) - lost as u64,
        track,
        slot: first + leading.count() as u32,
        hurt: !bad.is_empty(),
        bad_at_end: ending.count() as u64,
    }
}
