//! A predicted track, and the translations that verify it.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::defect_lists::DefectLists;
use super::extraction::ProbeError;
use super::pattern::{PatternTrack, Slots, Step, step};
use super::translation::Translator;
use traxtent_model::geometry::{Place, TrackAddress};
use traxtent_units::Surface;

/// A predicted track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedTrack {
    /// The track, and the range of slots that contains its LBNs.
    pub(super) track: PatternTrack,
    pub(super) start: u64,
    pub(super) sectors: u64,
    /// The number of remapped LBNs at its beginning.
    pub(super) lead: u64,
    /// The slot of the first LBN that is not remapped.
    pub(super) slot: u32,
    /// The number of remapped LBNs at its end.
    pub(super) trail: u64,
    /// The runs of bad slots, each with the LBN that should follow it, if that LBN is on this
    /// track.
    pub(super) runs: Vec<(Range<u32>, Option<u64>)>,
}

impl PlannedTrack {
    /// Creates a track whose LBNs begin at `start`. Bad slots hold no LBN. The LBNs of some of them
    /// are remapped; the others displace all LBNs after them.
    pub(super) fn new(track: PatternTrack, start: u64, bad: &DefectLists) -> PlannedTrack {
        let slots = track.slots.range();
        let mut planned = PlannedTrack {
            track,
            start,
            sectors: 0,
            lead: 0,
            slot: slots.start,
            trail: 0,
            runs: Vec::new(),
        };
        let mut next = slots.start;
        let mut held = 0;
        for place in bad.within(track.home, slots.clone()) {
            let moved = u64::from(bad.is_remapped(*place));
            if place.slot > next {
                planned.trail = 0;
            }
            held += u64::from(place.slot - next) + moved;
            planned.trail += moved;
            next = place.slot + 1;
            if planned.slot == place.slot {
                (planned.lead, planned.slot) = (planned.lead + moved, next);
            }
            let following = (next < slots.end).then_some(start + held);
            match planned.runs.last_mut() {
                Some((run, lbn)) if run.end == place.slot => (run.end, *lbn) = (next, following),
                _ => planned.runs.push((place.slot..next, following)),
            }
        }
        planned.sectors = held + u64::from(slots.end.saturating_sub(next));
        if slots.end > next {
            planned.trail = 0;
        }
        planned
    }

    pub(super) fn end(&self) -> u64 {
        self.start + self.sectors
    }

    pub(super) fn place(&self, slot: u32) -> Place {
        let (cylinder, surface) = self.track.home;
        Place {
            cylinder,
            surface,
            slot,
        }
    }

    /// Returns whether any of its slots are listed as bad.
    pub(super) fn has_defects(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Returns the bad slots after its last LBN, if it ends with bad slots.
    pub(super) fn bad_at_end(&self) -> Option<Range<u32>> {
        match self.runs.last() {
            Some((run, None)) => Some(run.clone()),
            _ => None,
        }
    }

    /// Returns whether its first LBN that is not remapped is where it should be; false if it has no
    /// such LBN.
    pub(super) fn is_in_place(&self, translator: &mut Translator<'_>) -> Result<bool, ProbeError> {
        let first = self.start + self.lead;
        let has_one = self.sectors > self.lead && first < translator.end;
        Ok(has_one && translator.place(first)? == Some(self.place(self.slot)))
    }

    /// Returns whether the track begins where it should, after the end of `before`. One LBN decides
    /// this in most cases, and no other is translated then, unless `strict` is set.
    pub(super) fn begins_after(
        &self,
        before: Option<&PlannedTrack>,
        translator: &mut Translator<'_>,
        strict: bool,
    ) -> Result<bool, ProbeError> {
        if self.start > translator.end {
            return Ok(false);
        }
        let is_empty = self.sectors == self.lead;
        if !is_empty && !self.is_in_place(translator)? {
            return Ok(false);
        }
        let Some(before) = before.filter(|track| track.sectors > track.trail) else {
            return Ok(true);
        };
        // The LBN of a bad slot may be stored exactly where the next track could begin.
        if let Some(run) = before.bad_at_end() {
            let following = self.start + self.lead + run.len() as u64;
            if following < self.end()
                && translator.place(following)?.map(Place::track) != Some(self.track.home)
            {
                return Ok(false);
            }
        }
        // Unused slots before its first LBN could hold LBNs that precede it. Without such slots,
        // one LBN decides.
        let is_decided =
            !is_empty && self.slot == 0 && are_neighbours(before.track.home, self.track.home);
        if is_decided && !strict {
            return Ok(true);
        }
        let last = translator.place(self.start - 1 - before.trail)?;
        Ok(last.is_some_and(|place| place.track() == before.track.home))
    }
}

/// The common properties of tracks that have equal sizes in a regular layout: the surface, and the
/// step to the next track. The class distinguishes the ends of cylinders and passes, where spares
/// may be, even if every other cylinder begins on the surface on which the previous one ends.
type Class = (Surface, Step);

/// The classes and sizes that have been tested since the pattern last failed.
pub(super) type TestedClasses = BTreeSet<(Class, Slots)>;

/// Returns the boundaries to test inside a jump over the first `good` tracks of a plan, in
/// ascending order. At these boundaries, one deviation could compensate another.
///
/// They are both ends of the following tracks:
/// - the last track;
/// - each track with bad slots;
/// - each track with fewer slots than others of its class;
/// - the last track of every size on every surface, because a change in a layout persists for a
///   while;
/// - the last track of every class and size not yet in `known`. The class and size are then added
///   to it.
pub(super) fn tests(plan: &[PlannedTrack], good: usize, known: &mut TestedClasses) -> Vec<usize> {
    let class = |at: usize| {
        let (from, to) = (plan[at].track.home, plan[at + 1].track.home);
        (from.1, step(from, to))
    };
    let mut most = BTreeMap::new();
    for (at, planned) in plan[..good].iter().enumerate() {
        let most = most.entry(class(at)).or_insert(0);
        *most = planned.track.slots.count.max(*most);
    }
    let mut tests = vec![good - 1, good];
    let mut sizes = BTreeSet::new();
    for at in (0..good).rev() {
        let (planned, class) = (&plan[at], class(at));
        let slots = planned.track.slots;
        let is_new =
            planned.sectors > 0 && (sizes.insert((class.0, slots)) | known.insert((class, slots)));
        if is_new || slots.count < most[&class] || planned.has_defects() {
            tests.extend([at, at + 1]);
        }
    }
    tests.sort_unstable();
    tests.dedup();
    tests
}
/// Returns whether two tracks are adjacent.
pub(super) fn are_neighbours(one: TrackAddress, other: TrackAddress) -> bool {
    one.0.0.abs_diff(other.0.0) + u32::from(one.1.0.abs_diff(other.1.0)) == 1
}
