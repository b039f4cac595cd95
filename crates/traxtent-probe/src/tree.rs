//! Translations only where the layout may change unexpectedly.
//!
//! One translation returns the cylinder, surface and slot of an LBN. The pattern of the tracks so
//! far predicts them for an LBN far ahead. If the prediction is right, the tracks up to that LBN
//! have as many LBNs in total as predicted. Every boundary before it is then where it should be,
//! unless deviations cancel. Jumps double in length as long as their predictions hold. If one
//! fails, bisection finds the first boundary that is not as predicted, and a local search
//! ([`track_end`]) finds that track's end.
//!
//! **Deviations that can cancel, and the translations that detect them.**
//! - Tracks of a different size on some surface, compensated by others, or a short track at an
//!   unexpected place. For every surface that a jump touches, and every size on it, the last track
//!   is tested at both ends, because a change in a layout persists for a while. Spares may be
//!   expected at one end of a serpentine's cylinders but always be at the other, with no net
//!   effect. Tracks within cylinders and tracks at their ends therefore count as separate classes
//!   until the pattern has held once for each ([`tests`]).
//! - A slipped sector costs its track an LBN, and a spare after it gives one back. The defect list
//!   shows which tracks have bad slots. Their cost is part of the prediction, and each such track
//!   is tested at both ends. All remaining deviations between two tests therefore have the same
//!   sign: LBNs that appear in spares.
//! - A short track and another unexpected one that together have the expected size. To detect them,
//!   the LBN before the boundary is translated too, at the end of each jump and wherever a tested
//!   boundary is between tracks that are not neighbours.
//! - If spares are at the front of a region, a slip displaces the LBNs before the bad sector. If
//!   the first slots of a track are not in use, its boundary is therefore also tested by the LBN
//!   before it.
//! - A remapped LBN moves no boundary, but may be mistaken for one: it may be stored exactly where
//!   a track is expected. A track that begins with bad slots begins with the LBN after them only if
//!   none of their LBNs is remapped. If bad slots are at a boundary, LBNs on both sides of them are
//!   translated ([`PlannedTrack::begins_after`]).
//!
//! **Without defect lists**, a slipped sector whose spare is in the same cylinder leaves no trace
//! outside that cylinder. Any algorithm that is always exact must make a translation in each region
//! of spares: on a drive with spares in every cylinder, once per cylinder (`1 / surfaces`
//! translations per track), however regular the drive looks. Jumps then end with the cylinder (in
//! seek-first orders, with the pass or after some 256 tracks), and their last track is tested at
//! both ends. If the sizes of a cylinder's tracks differ, all of them are tested. A slip that a
//! spare of its own track absorbs moves no boundary.
//!
//! Assumed without a test: that a defect list is complete, and that track sizes do not change and
//! change back between two tests without a net effect.

use super::defect_lists::DefectLists;
use super::extraction::{Extraction, ProbeError, TrackSink};
use super::pattern::{Pattern, PatternTrack, Slots};
use super::planned::{PlannedTrack, TestedClasses, tests};
use super::target::Target;
use super::track_end::{Search, first_track, track_end};
use super::translation::{TrackOutput, Translator};
use traxtent_map::{Confirm, Region};
use traxtent_model::geometry::{Place, TrackAddress};

/// The largest number of tracks in a jump.
const REACH_MAX: usize = 1 << 18;
/// The largest number of tracks without LBNs that a plan skips to find one with LBNs.
const BAD_TRACKS_MAX: usize = 1 << 16;
/// The number of tracks ahead among which the pattern is sought again after an exception.
const RESUME_MAX: usize = 8;
/// The number of LBNs at either end of a track among which one that is not remapped is sought.
const REMAPPED_MAX: u64 = 32;
/// The number of tracks above which a jump within one pass ends, on drives without defect lists.
const BLIND_MAX: usize = 256;

struct Tree<'t, 'a, 's> {
    translator: Translator<'t>,
    out: TrackOutput<'a, 's>,
    pattern: Pattern,
    /// The classes that have been tested since the pattern last failed.
    known: TestedClasses,
    /// The number of tracks to try next.
    reach: usize,
    /// Whether a bad slot costs its track an LBN.
    slips_cost: bool,
    /// The number of consecutive tracks that have contradicted `slips_cost`.
    contradictions: u32,
    /// The slots of the last track that was not as expected.
    last_unexpected: Option<Slots>,
}

/// Finds the tracks of a region.
pub(super) fn tree(
    target: &mut dyn Target,
    region: Region,
    sink: &mut TrackSink<'_>,
) -> Result<Extraction, ProbeError> {
    let mut translator = Translator::new(target)?;
    let first = first_track(&mut translator, region)?;
    let out = TrackOutput::new(sink, first, region, translator.end);
    let mut tree = Tree {
        translator,
        out,
        pattern: Pattern::new(),
        known: TestedClasses::new(),
        reach: 1,
        slips_cost: true,
        contradictions: 0,
        last_unexpected: None,
    };
    if !tree.translator.has_list {
        tree.translator
            .note("the drive has no defect lists: every cylinder or pass is tested by translation");
    }
    while tree.out.wants_more() {
        if !tree.jump()? {
            tree.start_small();
            tree.search()?;
        }
        tree.translator.forget_below(tree.out.at);
    }
    Ok(tree.translator.finish())
}

impl Tree<'_, '_, '_> {
    /// Advances over `reach` predicted tracks, or over fewer if not all of them are as predicted.
    /// Returns whether it advanced.
    fn jump(&mut self) -> Result<bool, ProbeError> {
        let plan = self.plan(self.reach);
        let Some(first) = plan.first() else {
            return Ok(false);
        };
        if !first.is_in_place(&mut self.translator)? {
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
        // Deviations in between could cancel; tests inside the jump detect them.
        while good > 0 {
            match self.last_good_boundary(&plan, good)? {
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
            let confirm = match self.translator.known(next.start + next.lead) {
                Some(_) => Confirm::Tested,
                None if self.translator.has_list => Confirm::Predicted,
                None => Confirm::Sampled,
            };
            self.out.track(track.end(), confirm)?;
        }
        if good == whole {
            self.reach = (2 * self.reach).min(REACH_MAX);
        } else {
            self.start_small();
        }
        Ok(true)
    }

    /// Shortens the next jump and discards the tested classes, because the pattern has failed.
    fn start_small(&mut self) {
        self.reach = 1;
        self.known.clear();
    }

    /// Returns the predicted next tracks, and one more.
    fn plan(&self, reach: usize) -> Vec<PlannedTrack> {
        let mut plan: Vec<PlannedTrack> = Vec::new();
        let mut start = self.out.at;
        let (end, bad) = (self.translator.end, self.translator.bad());
        let mut step_before = None;
        for track in self.pattern.ahead() {
            let next = planned(track, start, &bad, self.slips_cost);
            if let (Some(last), false) = (plan.last(), self.translator.has_list) {
                // A jump ends with the cylinder or with the pass.
                let step = moves_arm(last.track.home, track.home);
                let is_new = step_before.is_some_and(|before| before != step);
                step_before = Some(step);
                if is_new || plan.len() > BLIND_MAX {
                    plan.push(next);
                    break;
                }
            }
            start = next.end();
            let is_empty = next.sectors == 0;
            plan.push(next);
            let enough = plan.len() > reach && !is_empty;
            if enough || start > end || plan.len() > reach + BAD_TRACKS_MAX {
                break;
            }
        }
        // A plan may end at the drive's end, where no track follows.
        if let Some(last) = plan.last()
            && last.end() == end
        {
            let mut nothing = last.track;
            nothing.slots.count = 0;
            plan.push(PlannedTrack::new(nothing, end, &bad));
        }
        plan
    }

    /// Returns whether track `at` of a plan, or the next one that has LBNs, begins where it should.
    fn begins(
        &mut self,
        plan: &[PlannedTrack],
        at: usize,
        strict: bool,
    ) -> Result<bool, ProbeError> {
        let has_lbns = |plan: &&PlannedTrack| plan.sectors > 0;
        let start = plan[at].start;
        let follows = match plan[at..].iter().find(has_lbns) {
            None if start == self.translator.end => &plan[at],
            None => return Ok(at == 0),
            Some(track) => track,
        };
        let Some(before) = plan[..at].iter().rev().find(has_lbns) else {
            return Ok(start <= self.translator.end);
        };
        follows.begins_after(Some(before), &mut self.translator, strict)
    }

    /// Performs the tests inside a jump over `good` tracks. If one fails, returns the last boundary
    /// before it that held.
    fn last_good_boundary(
        &mut self,
        plan: &[PlannedTrack],
        good: usize,
    ) -> Result<Option<usize>, ProbeError> {
        let mut known = self.known.clone();
        let mut held = 0;
        for at in self.tests(plan, good, &mut known) {
            if !self.begins(plan, at, at == good)? {
                return Ok(Some(held));
            }
            held = at;
        }
        self.known = known;
        Ok(None)
    }

    /// Returns the boundaries to test inside a jump over `good` tracks, ascending.
    fn tests(&self, plan: &[PlannedTrack], good: usize, known: &mut TestedClasses) -> Vec<usize> {
        let slots = |planned: &PlannedTrack| planned.track.slots;
        if self.translator.has_list {
            tests(plan, good, known)
        } else if plan[1..good].iter().any(|p| slots(p) != slots(&plan[0])) {
            (0..=good).collect()
        } else {
            vec![good - 1, good]
        }
    }

    /// Finds the end of a track that is not as predicted, and updates the pattern.
    fn search(&mut self) -> Result<(), ProbeError> {
        let start = self.out.at;
        let plan = self.plan(1);
        let at = self.translator.place(start)?;
        let as_planned = plan
            .first()
            .filter(|plan| at.is_some_and(|at| at.track() == plan.track.home));
        let expected = match (as_planned, at) {
            (Some(plan), _) => Some(plan.sectors),
            (None, Some(at)) => {
                let slots = self.pattern.slots_of(at.surface);
                slots.map(|slots| u64::from(slots.count))
            }
            (None, None) => None,
        };
        let expected = expected.filter(|sectors| *sectors > 0);
        let end = track_end(&mut self.translator, start, expected, Search::Near)?;
        let track = self.observed(start, end)?;
        let next = if end < self.translator.end {
            self.translator.place(end)?.map(Place::track)
        } else {
            None
        };
        self.learn(start, end, track, next);
        self.out.track(end, Confirm::Tested)
    }

    /// Returns the position of a track and the slots that it uses.
    fn observed(&mut self, start: u64, end: u64) -> Result<Option<PatternTrack>, ProbeError> {
        let Some((first, last)) = self.ends(start, end)? else {
            return Ok(None);
        };
        let usual = self.pattern.slots_of(first.surface);
        let bad = self.translator.bad();
        let earliest = first.slot - bad.before(first).len() as u32;
        let begin = match usual {
            Some(usual) if (earliest..first.slot).contains(&usual.first) => usual.first,
            None => earliest,
            Some(_) => first.slot,
        };
        let count = (last.slot + 1).saturating_sub(begin).max(1);
        let most = count + bad.after(last).len() as u32;
        let count = match usual {
            Some(usual) if (count..=most).contains(&usual.count) => usual.count,
            _ => count,
        };
        Ok(Some(PatternTrack {
            home: first.track(),
            slots: Slots {
                first: begin,
                count,
            },
        }))
    }

    /// Returns the places of the first and the last LBN that are not remapped.
    fn ends(&mut self, start: u64, end: u64) -> Result<Option<(Place, Place)>, ProbeError> {
        let ends = (
            self.translator.place(start)?,
            self.translator.place(end - 1)?,
        );
        if let (Some(first), Some(last)) = ends
            && first.track() == last.track()
        {
            return Ok(Some((first, last)));
        }
        let middle = self
            .translator
            .place(start + (end - start) / 2)?
            .map(Place::track);
        let mut on_track = |lbn| {
            let place = self.translator.place(lbn)?;
            Ok::<_, ProbeError>(place.filter(|place| Some(place.track()) == middle))
        };
        let (mut first, mut last) = (None, None);
        for k in 0..REMAPPED_MAX.min(end - start) {
            first = first.or(on_track(start + k)?);
            last = last.or(on_track(end - 1 - k)?);
            if let (Some(first), Some(last)) = (first, last) {
                return Ok(Some((first, last)));
            }
        }
        Ok(None)
    }

    /// Adds a track found by a search to the pattern. If the pattern continues after it as if the
    /// track had been as expected, the expected track is added instead, unless the previous
    /// unexpected track, or the last track on its surface, had the same slots as this one.
    fn learn(
        &mut self,
        start: u64,
        end: u64,
        track: Option<PatternTrack>,
        next: Option<TrackAddress>,
    ) {
        let ahead: Vec<PatternTrack> = self.pattern.ahead().take(RESUME_MAX).collect();
        // Predicted tracks may be absent from the drive, provided that the pattern continues after
        // this one.
        let here = track.and_then(|track| {
            let home = |at: usize| ahead.get(at).map(|t| t.home);
            let here = ahead.iter().position(|t| t.home == track.home)?;
            (here == 0 || home(here + 1) == next).then_some(here)
        });
        let Some(here) = here else {
            // The translated LBNs may be remapped. In that case, the neighbours show which track
            // this is.
            match (ahead.get(1), track) {
                (Some(following), _) if Some(following.home) == next => self.pattern.push(ahead[0]),
                (_, Some(track)) => self.pattern.push(track),
                (_, None) => {}
            }
            return;
        };
        let track = track.expect("it has been found in the pattern");
        ahead[..here].iter().for_each(|t| self.pattern.push(*t));
        let usual = ahead[here];
        if usual.slots == track.slots {
            self.learn_slip_cost(track, end - start);
        }
        let is_known = self.last_unexpected == Some(track.slots)
            || self.pattern.slots_of(track.home.1) == Some(track.slots);
        let is_odd = usual.slots != track.slots && !is_known;
        self.pattern.push(if is_odd { usual } else { track });
        if usual.slots != track.slots {
            self.last_unexpected = Some(track.slots);
        }
    }

    /// Learns whether a bad slot costs its track an LBN. The value changes when two tracks in a row
    /// contradict it.
    fn learn_slip_cost(&mut self, track: PatternTrack, sectors: u64) {
        let bad = slipped(track, &self.translator.bad());
        let count = u64::from(track.slots.count);
        let cost = match count - sectors.min(count) {
            _ if bad == 0 => return,
            0 => false,
            lost if lost == bad => true,
            _ => return,
        };
        self.contradictions = if cost == self.slips_cost {
            0
        } else {
            self.contradictions + 1
        };
        if self.contradictions == 2 {
            (self.slips_cost, self.contradictions) = (cost, 0);
        }
    }
}

/// Returns whether the arm moves from a track to the next.
fn moves_arm(from: TrackAddress, to: TrackAddress) -> bool {
    from.0 != to.0
}

/// Returns how many of a track's slots are bad and have displaced LBNs.
fn slipped(track: PatternTrack, bad: &DefectLists) -> u64 {
    let places = bad.within(track.home, track.slots.range());
    places.len() as u64 - bad.remapped_among(places)
}

/// Returns a track that begins at `start`, as predicted.
fn planned(track: PatternTrack, start: u64, bad: &DefectLists, slips_cost: bool) -> PlannedTrack {
    let mut planned = PlannedTrack::new(track, start, bad);
    if !slips_cost && planned.sectors > 0 {
        // The track's own spares hold these LBNs.
        planned.sectors += slipped(track, bad);
    }
    planned
}
