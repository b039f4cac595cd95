//! Steps 4 and 5: predicting a whole zone up to its end, with its defects.

use super::super::extraction::ProbeError;
use super::super::planned::{PlannedTrack, TestedClasses, tests};
use super::zone::{PlanStart, Zone};
use super::{Dixtrac, REACH_MAX};
use traxtent_map::Confirm;
use traxtent_model::geometry::{Place, Sparing};

impl Dixtrac<'_, '_, '_> {
    /// Outputs the tracks of a zone up to the first prediction that is wrong with every sparing
    /// scheme tried. Returns the number of these tracks.
    pub(super) fn follow(&mut self, mut zone: Zone) -> Result<u64, ProbeError> {
        let mut followed = 0;
        let (mut from, mut reach) = (self.next_start(&zone)?, 1);
        let mut is_new = false;
        while let Some(start) = from.filter(|_| self.out.wants_more()) {
            let plan = self.plan_ahead(&zone, start, reach);
            let Some(last) = plan.len().checked_sub(1) else {
                break;
            };
            let Some(correct) = self.correct_tracks(&plan, last)? else {
                continue;
            };
            self.output_tracks(&plan, correct)?;
            followed += correct as u64;
            if correct == 0 && is_new {
                break;
            }
            is_new = false;
            let next_region = start.region + reach;
            if last > 0
                && correct == last
                && zone.region_of(plan[last].track.home.0) == Some(next_region)
            {
                from = Some(PlanStart {
                    lbn: plan[last].start,
                    region: next_region,
                    inside: None,
                });
                let tracks = u64::from(zone.rule.cylinders) * u64::from(zone.surfaces);
                reach = (2 * reach).min(REACH_MAX.div_ceil(tracks));
                self.usual = Some(zone.rule.sparing);
                continue;
            }
            reach = 1;
            from = self.next_start(&zone)?;
            match from {
                Some(from) if self.out.wants_more() => {
                    match self.with_other_sparing(&zone, from)? {
                        Some(revised) => (zone, is_new) = (revised, true),
                        None => break,
                    }
                }
                _ => break,
            }
        }
        self.predicted += followed;
        Ok(followed)
    }

    /// Returns the start of a plan at the next track.
    fn next_start(&mut self, zone: &Zone) -> Result<Option<PlanStart>, ProbeError> {
        let lbn = self.out.at;
        if lbn >= self.translator.end {
            return Ok(None);
        }
        let Some(place) = self.translator.place(lbn)? else {
            return Ok(None);
        };
        Ok(zone.region_of(place.cylinder).map(|region| PlanStart {
            lbn,
            region,
            inside: Some(place),
        }))
    }

    /// Returns the tracks with LBNs in the next `reach` regions, and the track that should follow
    /// them.
    fn plan_ahead(&self, zone: &Zone, mut from: PlanStart, reach: u64) -> Vec<PlannedTrack> {
        let bad = self.translator.bad();
        let mut plan: Vec<PlannedTrack> = Vec::new();
        for region in 0..=reach {
            let tracks = zone.plan(from, &bad);
            let Some(end) = tracks.last().map(PlannedTrack::end) else {
                break;
            };
            let first = tracks.iter().position(|track| track.sectors > 0);
            from = PlanStart {
                lbn: end,
                region: from.region + 1,
                inside: None,
            };
            if region == reach {
                plan.extend(first.map(|first| tracks[first].clone()));
                break;
            }
            plan.extend(tracks.into_iter().filter(|track| track.sectors > 0));
            if end >= self.translator.end {
                break;
            }
        }
        // At the drive's end, an empty track follows.
        let beyond = plan
            .iter()
            .position(|track| track.start >= self.translator.end);
        plan.truncate(beyond.map_or(plan.len(), |beyond| beyond + 1));
        if let Some(last) = plan.last().cloned()
            && last.start < self.translator.end
            && last.end() == self.translator.end
        {
            plan.push(PlannedTrack {
                start: last.end(),
                ..last
            });
        }
        if let Some(last) = plan.last_mut()
            && last.start == self.translator.end
        {
            (last.sectors, last.lead) = (0, 0);
        }
        plan
    }

    /// Returns how many of the first `max` tracks of a plan are correct. Returns `None` if the LBNs
    /// of bad slots prove to be remapped, which requires a new plan.
    fn correct_tracks(
        &mut self,
        plan: &[PlannedTrack],
        max: usize,
    ) -> Result<Option<usize>, ProbeError> {
        let mut correct = self.correct_prefix(plan, max)?;
        'recheck: loop {
            for (at, track) in plan.iter().enumerate().take((correct + 1).min(max)) {
                if !self.check_defects(track)? {
                    return Ok(None);
                }
                let has_bad_end = track.bad_at_end().is_some();
                if has_bad_end && at == correct && self.is_remapped_at_end(plan, at)? {
                    return Ok(None);
                }
            }
            let tests = if correct > 0 {
                tests(plan, correct, &mut TestedClasses::new())
            } else {
                vec![]
            };
            for at in tests.into_iter().filter(|at| *at > 0) {
                let before = Some(&plan[at - 1]);
                if !plan[at].begins_after(before, &mut self.translator, at == correct)? {
                    correct = self.correct_prefix(plan, at - 1)?;
                    continue 'recheck;
                }
            }
            return Ok(Some(correct));
        }
    }

    /// Returns how many of the first tracks of a plan are correct, assuming that deviations do not
    /// cancel.
    fn correct_prefix(&mut self, plan: &[PlannedTrack], max: usize) -> Result<usize, ProbeError> {
        let (mut correct, mut incorrect, mut next) = (0, max + 1, max);
        while correct + 1 < incorrect {
            if self.begins_as_planned(plan, next)? {
                correct = next;
            } else {
                incorrect = next;
            }
            next = correct + (incorrect - correct) / 2;
        }
        Ok(correct)
    }

    /// Returns whether a track of a plan begins where it should.
    fn begins_as_planned(&mut self, plan: &[PlannedTrack], at: usize) -> Result<bool, ProbeError> {
        let before = at.checked_sub(1).map(|before| &plan[before]);
        plan[at].begins_after(before, &mut self.translator, true)
    }

    /// Performs step 5 for a track: returns whether its bad slots displaced LBNs as planned. If the
    /// LBNs of some are remapped instead, records them.
    fn check_defects(&mut self, track: &PlannedTrack) -> Result<bool, ProbeError> {
        let bad = self.translator.bad();
        for (run, lbn_after) in &track.runs {
            let Some(lbn_after) = lbn_after else { continue };
            let Some(lbn) = self.translator.lbn_at(track.place(run.end))? else {
                continue;
            };
            let places = run.clone().map(|slot| track.place(slot));
            let slipped = places.clone().filter(|place| !bad.is_remapped(*place));
            let slipped_count = slipped.count() as u64;
            if slipped_count > 0 && lbn == lbn_after + slipped_count {
                let first = lbn - run.len() as u64;
                self.translator.record_remapped_lbns(first..lbn);
                self.translator.record_remapped_places(places);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the track is correct if the LBNs of the bad slots at its end are assumed to
    /// be remapped. If so, records them.
    fn is_remapped_at_end(&mut self, plan: &[PlannedTrack], at: usize) -> Result<bool, ProbeError> {
        let (track, next) = (&plan[at], &plan[at + 1]);
        let Some((run, None)) = track.runs.last() else {
            return Ok(false);
        };
        let places = run.clone().map(|slot| track.place(slot));
        let bad = self.translator.bad();
        let places: Vec<Place> = places.filter(|place| !bad.is_remapped(*place)).collect();
        let remapped_count = places.len() as u64;
        let start = next.start + remapped_count;
        if remapped_count == 0 || start + next.lead >= self.translator.end {
            return Ok(false);
        }
        if self.translator.place(start + next.lead)? != Some(next.place(next.slot)) {
            return Ok(false);
        }
        self.translator.record_remapped_lbns(next.start..start);
        self.translator.record_remapped_places(places);
        Ok(true)
    }

    fn output_tracks(&mut self, plan: &[PlannedTrack], correct: usize) -> Result<(), ProbeError> {
        for (track, next) in plan.iter().zip(&plan[1..]).take(correct) {
            let confirm = match self.translator.known(next.start + next.lead) {
                Some(_) => Confirm::Tested,
                None => Confirm::Predicted,
            };
            self.out.track(track.end(), confirm)?;
            self.expected = Some(track.sectors);
        }
        self.translator.forget_below(self.out.at);
        Ok(())
    }

    /// Returns the zone with the sparing scheme that differs from the present one only in the LBNs
    /// that a slipped sector displaces. Returns `None` if there is no such scheme, or if it does
    /// not fit where the present one has failed.
    fn with_other_sparing(
        &mut self,
        zone: &Zone,
        from: PlanStart,
    ) -> Result<Option<Zone>, ProbeError> {
        let sparing = match zone.rule.sparing {
            Sparing::None => Sparing::SectorsPerTrack,
            Sparing::SectorsPerTrack => Sparing::None,
            Sparing::SectorsPerCylinder => Sparing::SectorsPerCylinderSlipToEnd,
            Sparing::SectorsPerCylinderSlipToEnd => Sparing::SectorsPerCylinder,
            Sparing::SectorsAtCylinderFront => Sparing::SectorsAtCylinderFrontSlipToEnd,
            Sparing::SectorsAtCylinderFrontSlipToEnd => Sparing::SectorsAtCylinderFront,
            _ => return Ok(None),
        };
        let mut zone = *zone;
        zone.rule.sparing = sparing;
        self.best(&[zone], from)
    }
}
