//! Steps 4 and 5: predicting a whole zone up to its end, with its defects.

use super::super::extraction::ProbeError;
use super::super::planned::{Known, PlannedTrack, tests};
use super::zone::{PlanStart, Zone};
use super::{Dixtrac, REACH_MAX};
use traxtent_map::Confirm;
use traxtent_model::geometry::{Place, Sparing};

impl Dixtrac<'_, '_, '_> {
    /// Passes on the tracks of a zone as long as they are as predicted. Returns their number.
    pub(super) fn follow(&mut self, mut zone: Zone) -> Result<u64, ProbeError> {
        let mut followed = 0;
        let (mut from, mut reach) = (self.here(&zone)?, 1);
        let mut is_new = false;
        while let Some(begin) = from.filter(|_| self.out.wants_more()) {
            let plan = self.ahead(&zone, begin, reach);
            let Some(last) = plan.len().checked_sub(1) else {
                break;
            };
            let Some(good) = self.good(&plan, last)? else {
                continue;
            };
            self.hand_over(&plan, good)?;
            followed += good as u64;
            if good == 0 && is_new {
                break;
            }
            is_new = false;
            let behind = begin.region + reach;
            if last > 0 && good == last && zone.region_of(plan[last].track.home.0) == Some(behind) {
                from = Some(PlanStart {
                    lbn: plan[last].start,
                    region: behind,
                    inside: None,
                });
                let tracks = u64::from(zone.rule.cylinders) * u64::from(zone.surfaces);
                reach = (2 * reach).min(REACH_MAX.div_ceil(tracks));
                self.usual = Some(zone.rule.sparing);
                continue;
            }
            reach = 1;
            from = self.here(&zone)?;
            match from {
                Some(from) if self.out.wants_more() => match self.reconsidered(&zone, from)? {
                    Some(other) => (zone, is_new) = (other, true),
                    None => break,
                },
                _ => break,
            }
        }
        self.predicted += followed;
        Ok(followed)
    }

    /// Returns the beginning of a plan at the next track.
    fn here(&mut self, zone: &Zone) -> Result<Option<PlanStart>, ProbeError> {
        let lbn = self.out.at;
        if lbn >= self.ask.end {
            return Ok(None);
        }
        let Some(place) = self.ask.place(lbn)? else {
            return Ok(None);
        };
        Ok(zone.region_of(place.cylinder).map(|region| PlanStart {
            lbn,
            region,
            inside: Some(place),
        }))
    }

    /// Returns the tracks with LBNs of the next `reach` regions, and the track that should follow
    /// them.
    fn ahead(&self, zone: &Zone, mut from: PlanStart, reach: u64) -> Vec<PlannedTrack> {
        let bad = self.ask.bad();
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
            if end >= self.ask.end {
                break;
            }
        }
        // Nothing follows the drive's last track.
        let beyond = plan.iter().position(|track| track.start >= self.ask.end);
        plan.truncate(beyond.map_or(plan.len(), |beyond| beyond + 1));
        if let Some(last) = plan.last().cloned()
            && last.start < self.ask.end
            && last.end() == self.ask.end
        {
            plan.push(PlannedTrack {
                start: last.end(),
                ..last
            });
        }
        if let Some(last) = plan.last_mut()
            && last.start == self.ask.end
        {
            (last.sectors, last.lead) = (0, 0);
        }
        plan
    }

    /// Returns how many of the first `most` tracks of a plan are right. Returns `None` if the plan
    /// must be remade, because the LBNs of bad slots turn out to be remapped.
    fn good(&mut self, plan: &[PlannedTrack], most: usize) -> Result<Option<usize>, ProbeError> {
        let mut good = self.right_until(plan, most)?;
        'anew: loop {
            for (at, track) in plan.iter().enumerate().take((good + 1).min(most)) {
                if !self.check_defects(track)? {
                    return Ok(None);
                }
                let is_open = track.bad_at_end().is_some();
                if is_open && at == good && self.keeps_last(plan, at)? {
                    return Ok(None);
                }
            }
            let tests = if good > 0 {
                tests(plan, good, &mut Known::new())
            } else {
                vec![]
            };
            for at in tests.into_iter().filter(|at| *at > 0) {
                let before = Some(&plan[at - 1]);
                if !plan[at].begins_after(before, &mut self.ask, at == good)? {
                    good = self.right_until(plan, at - 1)?;
                    continue 'anew;
                }
            }
            return Ok(Some(good));
        }
    }

    /// Returns how many of the first tracks of a plan are right, provided that deviations do not
    /// cancel.
    fn right_until(&mut self, plan: &[PlannedTrack], most: usize) -> Result<usize, ProbeError> {
        let (mut good, mut bad, mut next) = (0, most + 1, most);
        while good + 1 < bad {
            if self.right(plan, next)? {
                good = next;
            } else {
                bad = next;
            }
            next = good + (bad - good) / 2;
        }
        Ok(good)
    }

    /// Returns whether a track of a plan begins where it should.
    fn right(&mut self, plan: &[PlannedTrack], at: usize) -> Result<bool, ProbeError> {
        let before = at.checked_sub(1).map(|before| &plan[before]);
        plan[at].begins_after(before, &mut self.ask, true)
    }

    /// Performs step 5 for a track: returns whether its bad slots displaced LBNs as planned. If the
    /// LBNs of some turn out to be remapped, records them.
    fn check_defects(&mut self, track: &PlannedTrack) -> Result<bool, ProbeError> {
        let bad = self.ask.bad();
        for (run, behind) in &track.runs {
            let Some(behind) = behind else { continue };
            let Some(lbn) = self.ask.lbn_at(track.place(run.end))? else {
                continue;
            };
            let places = run.clone().map(|slot| track.place(slot));
            let slipped = places.clone().filter(|place| !bad.is_remapped(*place));
            let more = slipped.count() as u64;
            if more > 0 && lbn == behind + more {
                let first = lbn - run.len() as u64;
                self.ask.moved(first..lbn);
                self.ask.found_moved(places);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether the track is right if the LBNs of the bad slots at its end are remapped. If
    /// so, records them.
    fn keeps_last(&mut self, plan: &[PlannedTrack], at: usize) -> Result<bool, ProbeError> {
        let (track, next) = (&plan[at], &plan[at + 1]);
        let Some((run, None)) = track.runs.last() else {
            return Ok(false);
        };
        let places = run.clone().map(|slot| track.place(slot));
        let bad = self.ask.bad();
        let places: Vec<Place> = places.filter(|place| !bad.is_remapped(*place)).collect();
        let more = places.len() as u64;
        let start = next.start + more;
        if more == 0 || start + next.lead >= self.ask.end {
            return Ok(false);
        }
        if self.ask.place(start + next.lead)? != Some(next.place(next.slot)) {
            return Ok(false);
        }
        self.ask.moved(next.start..start);
        self.ask.found_moved(places);
        Ok(true)
    }

    fn hand_over(&mut self, plan: &[PlannedTrack], good: usize) -> Result<(), ProbeError> {
        for (track, next) in plan.iter().zip(&plan[1..]).take(good) {
            let confirm = match self.ask.known(next.start + next.lead) {
                Some(_) => Confirm::Tested,
                None => Confirm::Predicted,
            };
            self.out.track(track.end(), confirm)?;
            self.expected = Some(track.sectors);
        }
        self.ask.forget_below(self.out.at);
        Ok(())
    }

    /// Returns the zone under another scheme with spares at the same places, if it fits where the
    /// present one does not.
    fn reconsidered(&mut self, zone: &Zone, from: PlanStart) -> Result<Option<Zone>, ProbeError> {
        let other = match zone.rule.sparing {
            Sparing::None => Sparing::SectorsPerTrack,
            Sparing::SectorsPerTrack => Sparing::None,
            Sparing::SectorsPerCylinder => Sparing::SectorsPerCylinderSlipToEnd,
            Sparing::SectorsPerCylinderSlipToEnd => Sparing::SectorsPerCylinder,
            Sparing::SectorsAtCylinderFront => Sparing::SectorsAtCylinderFrontSlipToEnd,
            Sparing::SectorsAtCylinderFrontSlipToEnd => Sparing::SectorsAtCylinderFront,
            _ => return Ok(None),
        };
        let mut zone = *zone;
        zone.rule.sparing = other;
        self.best(&[zone], from)
    }
}
