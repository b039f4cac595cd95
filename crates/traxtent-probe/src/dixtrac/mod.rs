//! DIXtrac's five steps (paper T, section 4.1.2; J. Schindler and G. R. Ganger, "Automated Disk
//! Drive Characterization", CMU-CS-99-176): general knowledge of drives determines which
//! translations are made.
//!
//! 1. Determine the capacity and, by translating LBNs across the drive, the surfaces
//!    ([`count_surfaces`]).
//! 2. Read the list of media defects.
//! 3. Find where the spares are, and which LBNs a slipped sector displaces ([`expert`]).
//! 4. Determine the sectors of a track without defects or spares. Then find the end of the zone,
//!    by predicting twice as far each time, then by bisection.
//! 5. Determine how each defect is handled: the place of the sector after the defect is translated
//!    back to an LBN. That LBN shows how many of the bad sectors before it still have one. It also
//!    checks all predictions so far.
//!
//! A zone is predicted as a whole. It is checked at its ends, after each defect, and where
//! deviations might compensate each other. The expertise does not cover seek-first orders, surfaces
//! of different sizes or irregular layouts. There the tracks are found as in
//! [`walk`](mod@super::walk), and the expertise is tried again after increasing numbers of tracks.
//! On a drive without defect lists, all tracks are found in this way. If a sparing scheme was
//! recognized, a note gives the number of walked tracks.
//!
//! Not covered: DIXtrac's own sequence of requests, in which each track of each zone's first
//! cylinders is translated several times.

mod expert;
mod follow;
mod zone;

use super::extraction::{Extraction, ProbeError, TrackSink};
use super::planned::PlannedTrack;
use super::target::Target;
use super::track_end::{Search, first_track};
use super::translation::{TrackOutput, Translator};
use super::walk::next_end;
use traxtent_map::{Confirm, Region};
use traxtent_model::geometry::{Place, Sparing, TrackAddress};
use zone::{PlanStart, SparingRule, Zone};

/// The number of LBNs across the drive that are translated to count surfaces.
const SAMPLED_LBNS: u64 = 64;
/// The number of tracks above which a plan does not grow.
const REACH_MAX: u64 = 1 << 16;
/// The largest number of regions with defects on which schemes are compared.
const TRIED_DEFECTIVE: u64 = 4;
/// The largest number of regions, with or without defects, on which schemes are compared.
const TRIED_MAX: u64 = 1 << 10;
/// The smallest number of predicted tracks per surface with which a zone counts as a success.
const WORTHWHILE_TRACKS: u64 = 4;

struct Dixtrac<'t, 'a, 's> {
    translator: Translator<'t>,
    out: TrackOutput<'a, 's>,
    surfaces: u16,
    /// The sparing scheme that last predicted a region without error.
    usual: Option<Sparing>,
    /// The size of the last track.
    expected: Option<u64>,
    /// The number of tracks to walk if the expertise fails.
    tracks_to_walk: u64,
    walked: u64,
    predicted: u64,
    /// The LBN at which the expertise first failed twice in a row.
    first_failure: Option<u64>,
}

/// A track that has been walked.
#[derive(Clone, Copy, Debug)]
struct WalkedTrack {
    start: u64,
    end: u64,
    first: Place,
    last: Place,
}

/// Finds the tracks of a region.
pub(super) fn dixtrac(
    target: &mut dyn Target,
    region: Region,
    sink: &mut TrackSink<'_>,
) -> Result<Extraction, ProbeError> {
    let mut translator = Translator::new(target)?;
    let surfaces = count_surfaces(&mut translator)?;
    let has_list = translator.has_list;
    let first = first_track(&mut translator, region)?;
    let out = TrackOutput::new(sink, first, region, translator.end);
    let mut dixtrac = Dixtrac {
        translator,
        out,
        surfaces,
        usual: None,
        expected: None,
        tracks_to_walk: 0,
        walked: 0,
        predicted: 0,
        first_failure: None,
    };
    while dixtrac.out.wants_more() {
        if !has_list {
            dixtrac.walk()?;
            continue;
        }
        let lbn = dixtrac.out.at;
        let mut followed = 0;
        if let Some(zone) = dixtrac.learn()? {
            followed = dixtrac.follow(zone)?;
        }
        if followed >= WORTHWHILE_TRACKS * u64::from(surfaces) {
            dixtrac.tracks_to_walk = 0;
        } else {
            // A single failure may be the end of a zone.
            if dixtrac.tracks_to_walk > 0 {
                dixtrac.first_failure.get_or_insert(lbn);
            }
            for _ in 0..dixtrac.tracks_to_walk {
                if dixtrac.out.wants_more() {
                    dixtrac.walk()?;
                }
            }
            dixtrac.tracks_to_walk = 2 * dixtrac.tracks_to_walk + u64::from(surfaces);
        }
    }
    dixtrac.report(has_list);
    Ok(dixtrac.translator.finish())
}

/// Returns the number of surfaces, judging by LBNs across the drive.
fn count_surfaces(translator: &mut Translator<'_>) -> Result<u16, ProbeError> {
    let mut most = 0;
    let end = translator.end;
    let spread = (0..SAMPLED_LBNS)
        .map(|k| (u128::from(end) * u128::from(k) / u128::from(SAMPLED_LBNS)) as u64);
    for lbn in spread.chain(end.checked_sub(1)) {
        if let Some(place) = translator.place(lbn)? {
            most = most.max(place.surface.0);
        }
    }
    Ok(most + 1)
}

impl Dixtrac<'_, '_, '_> {
    fn report(&mut self, has_list: bool) {
        let (walked, all) = (self.walked, self.walked + self.predicted);
        if !has_list {
            self.translator
                .note("the drive has no defect lists: every track was searched individually");
        }
        if let Some(scheme) = self.usual {
            let spares = match scheme {
                Sparing::None => "no spares except at the ends of zones or of the drive".to_owned(),
                other => format!("sparing scheme {other:?}"),
            };
            self.translator.note(&format!(
                "{spares}; {walked} of {all} tracks were searched individually"
            ));
        }
        if let Some(lbn) = self.first_failure.filter(|_| has_list) {
            self.translator.note(&format!(
                "the layout is not recognized at LBN {lbn}, and possibly after it; tracks that could not be predicted were searched individually"
            ));
        }
    }

    /// Finds the end of the next track without expertise.
    fn walk(&mut self) -> Result<Option<WalkedTrack>, ProbeError> {
        let start = self.out.at;
        let end = next_end(&mut self.translator, start, self.expected, Search::Binary)?;
        let ends = (
            self.translator.place(start)?,
            self.translator.place(end - 1)?,
        );
        self.out.track(end, Confirm::Tested)?;
        self.expected = Some(end - start);
        self.walked += 1;
        self.translator.forget_below(end);
        Ok(match ends {
            (Some(first), Some(last)) => Some(WalkedTrack {
                start,
                end,
                first,
                last,
            }),
            _ => None,
        })
    }

    /// Returns the track that an LBN is on, according to its translation.
    fn home_of(&mut self, lbn: u64) -> Result<Option<TrackAddress>, ProbeError> {
        if lbn >= self.translator.end {
            return Ok(None);
        }
        Ok(self.translator.place(lbn)?.map(Place::track))
    }

    /// Walks to the first track of a cylinder and then over two cylinders, and finds the zone that
    /// fits them and the cylinders after them.
    fn learn(&mut self) -> Result<Option<Zone>, ProbeError> {
        let most = 2 * u32::from(self.surfaces);
        for _ in 0..most {
            let at = self.out.at;
            let before = match at.checked_sub(1) {
                Some(lbn) => self.home_of(lbn)?,
                None => None,
            };
            let here = self.home_of(at)?;
            if before.is_none() || here.map(|here| here.0) != before.map(|before| before.0) {
                break;
            }
            self.walk()?;
            if !self.out.wants_more() {
                return Ok(None);
            }
        }
        let Some(first) = self.translator.place(self.out.at)? else {
            self.walk()?;
            return Ok(None);
        };
        let mut walked: Vec<WalkedTrack> = Vec::new();
        let mut turned = false;
        for _ in 0..most {
            let Some(here) = self.home_of(self.out.at)? else {
                break;
            };
            let cylinders = here.0.0.wrapping_sub(first.cylinder.0);
            if cylinders > 1 || (turned && cylinders == 0) {
                break;
            }
            turned |= cylinders == 1;
            match self.walk()? {
                Some(track) => walked.push(track),
                None => return Ok(None),
            }
            if !self.out.wants_more() {
                return Ok(None);
            }
        }
        self.expertise(&walked)
    }

    /// Returns the zone that fits two cylinders and the tracks after them.
    fn expertise(&mut self, walked: &[WalkedTrack]) -> Result<Option<Zone>, ProbeError> {
        let bad = self.translator.bad();
        let whole = walked.iter().filter(|track| {
            track.first.track() == track.last.track() && bad.on(track.first.track()).is_empty()
        });
        let Some(slots) = whole.map(|track| track.last.slot + 1).max() else {
            return Ok(None);
        };
        let begin = walked[0].first;
        let from = PlanStart {
            lbn: walked[0].start,
            region: 0,
            inside: Some(begin),
        };
        let direction = |ahead: u32| {
            let mut surfaces = walked
                .iter()
                .filter(|track| track.first.cylinder.0 == begin.cylinder.0 + ahead)
                .map(|track| track.first.surface);
            let pair = (surfaces.next()?, surfaces.next()?);
            Some(pair.0 > pair.1)
        };
        let ways = match (direction(0), direction(1)) {
            _ if self.surfaces == 1 => vec![(false, false)],
            (Some(one), Some(other)) => vec![(one, one != other)],
            (None, Some(other)) => vec![(other, false), (!other, true)],
            (Some(one), None) => vec![(one, false), (one, true)],
            (None, None) => return Ok(None),
        };
        let mut zones = Vec::new();
        for (backward, alternates) in ways {
            let plain = Zone {
                first_cylinder: begin.cylinder.0,
                surfaces: self.surfaces,
                slots,
                backward,
                alternates,
                rule: SparingRule {
                    sparing: Sparing::None,
                    cylinders: 1,
                    spares: 0,
                },
            };
            zones.extend(expert::candidates(&mut self.translator, plain, from)?);
        }
        zones.retain(|zone| self.fits(zone, from, walked));
        self.best(&zones, from)
    }

    /// Returns whether a zone predicts the tracks that have been walked.
    fn fits(&self, zone: &Zone, from: PlanStart, walked: &[WalkedTrack]) -> bool {
        let bad = self.translator.bad();
        let Some(first) = from.inside.and_then(|place| zone.region_of(place.cylinder)) else {
            return false;
        };
        let mut from = PlanStart {
            region: first,
            ..from
        };
        let mut plan = Vec::new();
        while plan.len() < walked.len() {
            let region = zone.plan(from, &bad);
            let Some(last) = region.last().filter(|last| last.end() > from.lbn) else {
                return false;
            };
            from = PlanStart {
                lbn: last.end(),
                region: from.region + 1,
                inside: None,
            };
            plan.extend(region.into_iter().filter(|track| track.sectors > 0));
        }
        // Step 5 may still find that LBNs of defects are remapped.
        let mut pairs = walked.iter().zip(&plan);
        pairs.all(|(seen, planned)| {
            let is_defective = planned.has_defects();
            is_defective
                || (seen.first.track() == planned.track.home
                    && seen.end - seen.start == planned.sectors)
        })
    }

    /// Returns the zone that best predicts the tracks after the next defects.
    fn best(&mut self, zones: &[Zone], from: PlanStart) -> Result<Option<Zone>, ProbeError> {
        let mut best = None;
        for zone in zones {
            let held = self.held(zone, from)?;
            let score = (held, self.usual == Some(zone.rule.sparing));
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, *zone));
            }
        }
        Ok(best
            .filter(|((held, _), _)| *held > 0)
            .map(|(_, zone)| zone))
    }

    /// Returns the number of regions that a zone predicts without error, tested after the first
    /// region and after each of the next regions with defects.
    fn held(&mut self, zone: &Zone, from: PlanStart) -> Result<u64, ProbeError> {
        let bad = self.translator.bad();
        let Some(first) = from.inside.and_then(|place| zone.region_of(place.cylinder)) else {
            return Ok(0);
        };
        let mut from = PlanStart {
            region: first,
            ..from
        };
        let mut last: Option<PlannedTrack> = None;
        let (mut held, mut defective) = (0, 0);
        let mut tests = 0;
        for regions in 0..TRIED_MAX {
            let plan = zone.plan(from, &bad);
            let (Some(start), Some(end)) = (plan.first(), plan.last()) else {
                break;
            };
            if regions > 0 && (defective > tests || regions == 1) {
                tests = defective;
                if !start.begins_after(last.as_ref(), &mut self.translator, true)? {
                    break;
                }
                held = regions;
            }
            if defective == TRIED_DEFECTIVE || end.end() >= self.translator.end {
                break;
            }
            defective += u64::from(plan.iter().any(|track| track.has_defects()));
            from = PlanStart {
                lbn: end.end(),
                region: from.region + 1,
                inside: None,
            };
            last = plan.into_iter().rfind(|track| track.sectors > 0).or(last);
        }
        Ok(held)
    }
}
