//! DIXtrac's five steps (paper T, section 4.1.2; J. Schindler and G. R. Ganger, "Automated Disk
//! Drive Characterization", CMU-CS-99-176): general knowledge of drives determines which
//! translations are made.
//!
//! 1. Determine the capacity and, by translating LBNs all over the drive, the surfaces
//!    ([`survey`]).
//! 2. Read the list of media defects.
//! 3. Find where the spares are, and which LBNs a slipped sector displaces ([`expert`]).
//! 4. Determine the sectors of a track without defects and spares. Then find the end of the zone,
//!    by predictions of doubling reach and bisection.
//! 5. Determine how each defect is handled: the sector after it is translated back. Its LBN shows
//!    how many LBNs the bad sectors before it still have, which also checks all predictions so far.
//!
//! A zone is predicted as a whole. It is checked at its ends, after each defect, and where
//! deviations might compensate each other. Layouts that this expertise does not cover end the
//! prediction: serpentines, surfaces of different sizes, irregular layouts, and drives without
//! defect lists. There the tracks are found as in [`walk`](mod@super::walk), and the expertise is
//! tried again after increasing numbers of tracks. A note gives the number of walked tracks.
//!
//! Not covered: the order of DIXtrac's own requests, which translates each track of each zone's
//! first cylinders several times.

mod expert;
mod follow;
mod zone;

use super::algorithm::{Extraction, ProbeError, Sink};
use super::ask::{Ask, Home, Out, home};
use super::planned::Planned;
use super::target::Target;
use super::track_end::{Search, first_track};
use super::walk::next_end;
use traxtent_map::{Confirm, Region};
use traxtent_model::geometry::{Place, Sparing};
use zone::{From, Rule, Zone};

/// The number of LBNs all over the drive that are translated to count surfaces.
const SURVEYED: u64 = 64;
/// The largest number of tracks in a plan.
const REACH_MAX: u64 = 1 << 16;
/// The number of regions with defects, and the number of all regions, on which schemes are
/// compared.
const TRIED_HURT: u64 = 4;
const TRIED_MAX: u64 = 1 << 10;
/// A zone predicted for fewer tracks per surface does not count as a success.
const WORTHWHILE: u64 = 4;

struct Dixtrac<'t, 'a, 's> {
    ask: Ask<'t>,
    out: Out<'a, 's>,
    surfaces: u16,
    /// The scheme of the last zone.
    usual: Option<Sparing>,
    /// The size of the last track.
    expected: Option<u64>,
    /// The number of tracks to walk if the expertise fails.
    patience: u64,
    walked: u64,
    predicted: u64,
    /// The LBN at which the expertise failed first.
    baffled: Option<u64>,
}

/// A track that has been walked.
#[derive(Clone, Copy, Debug)]
struct Walked {
    start: u64,
    end: u64,
    first: Place,
    last: Place,
}

/// Finds the tracks of a region.
pub(super) fn dixtrac(
    target: &mut dyn Target,
    region: Region,
    sink: &mut Sink<'_>,
) -> Result<Extraction, ProbeError> {
    let mut ask = Ask::new(target)?;
    let surfaces = survey(&mut ask)?;
    let has_list = ask.has_list;
    let first = first_track(&mut ask, region)?;
    let out = Out::new(sink, first, region, ask.end);
    let mut dixtrac = Dixtrac {
        ask,
        out,
        surfaces,
        usual: None,
        expected: None,
        patience: 0,
        walked: 0,
        predicted: 0,
        baffled: None,
    };
    while dixtrac.out.goes_on() {
        if !has_list {
            dixtrac.walk()?;
            continue;
        }
        let lbn = dixtrac.out.at;
        let mut followed = 0;
        if let Some(zone) = dixtrac.learn()? {
            followed = dixtrac.follow(zone)?;
        }
        if followed >= WORTHWHILE * u64::from(surfaces) {
            dixtrac.patience = 0;
        } else {
            // A single failure may be the end of a zone.
            if dixtrac.patience > 0 {
                dixtrac.baffled.get_or_insert(lbn);
            }
            for _ in 0..dixtrac.patience {
                if dixtrac.out.goes_on() {
                    dixtrac.walk()?;
                }
            }
            dixtrac.patience = 2 * dixtrac.patience + u64::from(surfaces);
        }
    }
    dixtrac.report(has_list);
    Ok(dixtrac.ask.finish())
}

/// Returns the number of surfaces, judging by LBNs all over the drive.
fn survey(ask: &mut Ask<'_>) -> Result<u16, ProbeError> {
    let mut most = 0;
    let end = ask.end;
    let spread =
        (0..SURVEYED).map(|k| (u128::from(end) * u128::from(k) / u128::from(SURVEYED)) as u64);
    for lbn in spread.chain(end.checked_sub(1)) {
        if let Some(place) = ask.place(lbn)? {
            most = most.max(place.surface.0);
        }
    }
    Ok(most + 1)
}

impl Dixtrac<'_, '_, '_> {
    fn report(&mut self, has_list: bool) {
        let (walked, all) = (self.walked, self.walked + self.predicted);
        if !has_list {
            self.ask.note("no defect lists: every track was walked");
        }
        if let Some(scheme) = self.usual {
            let spares = match scheme {
                Sparing::None => "no spares but behind zones".to_owned(),
                other => format!("spares as {other:?}"),
            };
            self.ask
                .note(&format!("{spares}; {walked} of {all} tracks were walked"));
        }
        if let Some(lbn) = self.baffled.filter(|_| has_list) {
            self.ask.note(&format!(
                "baffled first at LBN {lbn}: what is not known there was walked"
            ));
        }
    }

    /// Finds the end of the next track without expertise.
    fn walk(&mut self) -> Result<Option<Walked>, ProbeError> {
        let start = self.out.at;
        let end = next_end(&mut self.ask, start, self.expected, Search::Binary)?;
        let ends = (self.ask.place(start)?, self.ask.place(end - 1)?);
        self.out.track(end, Confirm::Tested)?;
        self.expected = Some(end - start);
        self.walked += 1;
        self.ask.forget_below(end);
        Ok(match ends {
            (Some(first), Some(last)) => Some(Walked {
                start,
                end,
                first,
                last,
            }),
            _ => None,
        })
    }

    /// Returns the track that an LBN is on, according to its translation.
    fn home_of(&mut self, lbn: u64) -> Result<Option<Home>, ProbeError> {
        if lbn >= self.ask.end {
            return Ok(None);
        }
        Ok(self.ask.place(lbn)?.map(home))
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
            if !self.out.goes_on() {
                return Ok(None);
            }
        }
        let Some(first) = self.ask.place(self.out.at)? else {
            self.walk()?;
            return Ok(None);
        };
        let mut walked: Vec<Walked> = Vec::new();
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
            if !self.out.goes_on() {
                return Ok(None);
            }
        }
        self.expertise(&walked)
    }

    /// Returns the zone that fits two cylinders and the tracks after them.
    fn expertise(&mut self, walked: &[Walked]) -> Result<Option<Zone>, ProbeError> {
        let bad = self.ask.bad();
        let whole = walked.iter().filter(|track| {
            home(track.first) == home(track.last) && bad.on(home(track.first)).is_empty()
        });
        let Some(slots) = whole.map(|track| track.last.slot + 1).max() else {
            return Ok(None);
        };
        let begin = walked[0].first;
        let from = From {
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
                rule: Rule {
                    sparing: Sparing::None,
                    cylinders: 1,
                    spares: 0,
                },
            };
            zones.extend(expert::candidates(&mut self.ask, plain, from)?);
        }
        zones.retain(|zone| self.fits(zone, from, walked));
        self.best(&zones, from)
    }

    /// Returns whether a zone predicts the tracks that have been walked.
    fn fits(&self, zone: &Zone, from: From, walked: &[Walked]) -> bool {
        let bad = self.ask.bad();
        let Some(first) = from.inside.and_then(|place| zone.region_of(place.cylinder)) else {
            return false;
        };
        let mut from = From {
            region: first,
            ..from
        };
        let mut plan = Vec::new();
        while plan.len() < walked.len() {
            let region = zone.plan(from, &bad);
            let Some(last) = region.last().filter(|last| last.end() > from.lbn) else {
                return false;
            };
            from = From {
                lbn: last.end(),
                region: from.region + 1,
                inside: None,
            };
            plan.extend(region.into_iter().filter(|track| track.sectors > 0));
        }
        // Step 5 may still find that LBNs of defects are remapped.
        let mut pairs = walked.iter().zip(&plan);
        pairs.all(|(seen, planned)| {
            let is_hurt = planned.is_hurt();
            is_hurt
                || (home(seen.first) == planned.track.home
                    && seen.end - seen.start == planned.sectors)
        })
    }

    /// Returns the zone that best predicts the tracks after the next defects.
    fn best(&mut self, zones: &[Zone], from: From) -> Result<Option<Zone>, ProbeError> {
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

    /// Returns how many regions a zone predicts before an error after one of the next regions with
    /// defects.
    fn held(&mut self, zone: &Zone, from: From) -> Result<u64, ProbeError> {
        let bad = self.ask.bad();
        let Some(first) = from.inside.and_then(|place| zone.region_of(place.cylinder)) else {
            return Ok(0);
        };
        let mut from = From {
            region: first,
            ..from
        };
        let mut last: Option<Planned> = None;
        let (mut held, mut hurt) = (0, 0);
        let mut tests = 0;
        for regions in 0..TRIED_MAX {
            let plan = zone.plan(from, &bad);
            let (Some(start), Some(end)) = (plan.first(), plan.last()) else {
                break;
            };
            if regions > 0 && (hurt > tests || regions == 1) {
                tests = hurt;
                if !start.begins_behind(last.as_ref(), &mut self.ask, true)? {
                    break;
                }
                held = regions;
            }
            if hurt == TRIED_HURT || end.end() >= self.ask.end {
                break;
            }
            hurt += u64::from(plan.iter().any(|track| track.is_hurt()));
            from = From {
                lbn: end.end(),
                region: from.region + 1,
                inside: None,
            };
            last = plan.into_iter().rfind(|track| track.sectors > 0).or(last);
        }
        Ok(held)
    }
}
