//! The tracks and defects of a generated drive, used to list its traps and to reject drives whose
//! tracks timing cannot distinguish.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use traxtent_model::geometry::{Geometry, Replacement, Track};
use traxtent_units::Lbn;

/// All tracks of a drive and their defects.
pub(super) struct LayoutSurvey {
    pub(super) tracks: Vec<Track>,
    /// Runs of slipped bad slots, by cylinder and surface.
    pub(super) slipped: BTreeMap<(u32, u16), Vec<Range<u32>>>,
    /// The remapped LBNs, ascending.
    pub(super) remapped: Vec<Lbn>,
    /// The first LBNs of tracks that the layout lists in parts.
    split: BTreeSet<Lbn>,
}

/// Returns the tracks of a drive in LBN order. A layout can list a track in parts, around its
/// defects.
pub(super) fn whole_tracks(geometry: &Geometry) -> impl Iterator<Item = Track> {
    let mut parts = geometry.tracks().peekable();
    std::iter::from_fn(move || {
        let mut track = parts.next()?;
        let home = (track.cylinder, track.surface);
        while let Some(part) = parts.next_if(|part| (part.cylinder, part.surface) == home) {
            track.sectors += part.sectors;
        }
        Some(track)
    })
}

impl LayoutSurvey {
    pub(super) fn of(geometry: &Geometry) -> LayoutSurvey {
        let mut slipped: BTreeMap<_, Vec<Range<u32>>> = BTreeMap::new();
        let mut remapped = Vec::new();
        for defect in geometry.defects() {
            let place = defect.place;
            match defect.remedy {
                Replacement::Remapped(lbn, _) => remapped.push(lbn),
                Replacement::Slipped => {
                    let runs = slipped
                        .entry((place.cylinder.0, place.surface.0))
                        .or_default();
                    let run = place.slot..place.slot + defect.slots;
                    match runs.last_mut() {
                        Some(last) if last.end == run.start => last.end = run.end,
                        _ => runs.push(run),
                    }
                }
            }
        }
        remapped.sort_unstable();
        let tracks: Vec<Track> = whole_tracks(geometry).collect();
        let parts = |track: &&Track| geometry.track_end(track.first_lbn) != Some(track.end_lbn());
        LayoutSurvey {
            split: tracks.iter().filter(parts).map(|t| t.first_lbn).collect(),
            tracks,
            slipped,
            remapped,
        }
    }

    /// The runs of bad slots of a track.
    pub(super) fn runs_of(&self, track: &Track) -> &[Range<u32>] {
        let place = (track.cylinder.0, track.surface.0);
        self.slipped.get(&place).map_or(&[], Vec::as_slice)
    }

    /// The remapped LBNs of a track.
    fn remapped_of(&self, track: &Track) -> &[Lbn] {
        let from = self.remapped.partition_point(|&lbn| lbn < track.first_lbn);
        let to = self.remapped.partition_point(|&lbn| lbn < track.end_lbn());
        &self.remapped[from..to]
    }

    /// Lists the tracks around an LBN with their defects, one line each.
    pub(super) fn around(&self, lbn: Lbn) -> String {
        let at = self.tracks.partition_point(|track| track.end_lbn() <= lbn);
        let from = at.saturating_sub(3);
        let some = self.tracks.iter().skip(from).take(7);
        let line = |track: &Track| {
            let mut line = format!(
                "LBN {:>9} + {:<5} cylinder {:>5}, surface {:>2}, {:>4} slots from {:.4} turns",
                track.first_lbn,
                track.sectors,
                track.cylinder,
                track.surface,
                track.slots,
                track.origin.as_turns()
            );
            for run in self.runs_of(track) {
                line += &format!(", slots {}..{} bad", run.start, run.end);
            }
            for lbn in self.remapped_of(track) {
                line += &format!(", LBN {lbn} remapped");
            }
            line + "\n"
        };
        some.map(line).collect()
    }

    /// The arcs, in turns, that the LBNs of a track occupy on the track itself, in LBN order.
    fn arcs(&self, geometry: &Geometry, track: &Track) -> Vec<Arc> {
        let slots = f64::from(track.slots);
        let arc = |slots_used: Range<u32>| Arc {
            start: track.origin.as_turns() + f64::from(slots_used.start) / slots,
            length: f64::from(slots_used.end - slots_used.start) / slots,
        };
        let remapped = self.remapped_of(track);
        let mut runs: Vec<Range<u32>> = Vec::new();
        let mut lbn = track.first_lbn;
        while lbn < track.end_lbn() {
            // Remapped LBNs are skipped. Sectors among bad slots are handled one by one.
            if remapped.binary_search(&lbn).is_ok() {
                lbn.0 += 1;
                continue;
            }
            let left = (track.end_lbn().0 - lbn.0) as u32;
            let whole = geometry.piece(lbn, left);
            let sectors = if whole.slots == whole.sectors {
                whole.sectors
            } else {
                1
            };
            let slot = whole.first_slot;
            match runs.last_mut() {
                Some(last) if last.end == slot => last.end = slot + sectors,
                _ => runs.push(slot..slot + sectors),
            }
            lbn.0 += u64::from(sectors);
        }
        runs.into_iter().map(arc).collect()
    }

    /// Returns whether timing distinguishes every track from its neighbours.
    ///
    /// Timing distinguishes two tracks from one by a pair of sectors, one on each side. The second
    /// sector must arrive too early for a head that has to change track first, but not too early
    /// for a command. If there is no such pair in either direction, no order of requests shows a
    /// difference. This happens only with long gaps on both sides, between tracks of a few sectors
    /// or within one track. Timing cannot distinguish a track of a single physical sector (`ratio`
    /// LBNs) from a remapped sector either.
    pub(super) fn can_be_timed(&self, geometry: &Geometry, times: Times, ratio: u32) -> bool {
        let arcs = |track: &Track| self.arcs(geometry, track);
        let distinguished = |left: &[Arc], right: &[Arc]| {
            let pairs = || left.iter().flat_map(|a| right.iter().map(move |b| (a, b)));
            let (Some(last), Some(first)) = (left.last(), right.first()) else {
                return false;
            };
            // One request across both, or two requests.
            last.gap_to(first) < times.switch
                || pairs().any(|(a, b)| {
                    a.overlaps(b) || a.distinguishes(b, times) || b.distinguishes(a, times)
                })
        };
        let inside = |track: &Track| {
            let irregular = !self.runs_of(track).is_empty()
                || !self.remapped_of(track).is_empty()
                || self.split.contains(&track.first_lbn);
            !irregular || {
                let arcs = arcs(track);
                (1..arcs.len()).all(|cut| distinguished(&arcs[..cut], &arcs[cut..]))
            }
        };
        let share = |track: &Track| f64::from(track.sectors) / f64::from(track.slots);
        let neighbours = |pair: &[Track]| {
            share(&pair[0]) + share(&pair[1]) > 1.0
                || distinguished(&arcs(&pair[0]), &arcs(&pair[1]))
        };
        self.tracks.iter().all(|track| track.sectors > ratio)
            && self.tracks.iter().all(inside)
            && self.tracks.windows(2).all(neighbours)
    }
}

/// An arc of a track, in turns.
#[derive(Clone, Copy)]
struct Arc {
    start: f64,
    length: f64,
}

/// Durations on a drive, in turns.
#[derive(Clone, Copy)]
pub(super) struct Times {
    /// The shortest track switch, less a margin.
    pub(super) switch: f64,
    /// An upper bound on the time from the end of a request until the next one can begin on the
    /// same track.
    pub(super) overhead: f64,
}

impl Arc {
    fn overlaps(&self, other: &Arc) -> bool {
        let ahead = (other.start - self.start).rem_euclid(1.0);
        let behind = (self.start - other.start).rem_euclid(1.0);
        ahead < self.length || behind < other.length
    }

    /// Returns the angle from the end of this arc to the beginning of another that does not overlap
    /// it.
    fn gap_to(&self, other: &Arc) -> f64 {
        (other.start - self.start - self.length).rem_euclid(1.0)
    }

    /// Returns whether a request in this arc, followed by one in the other, shows whether a track
    /// switch lies between them.
    fn distinguishes(&self, other: &Arc, times: Times) -> bool {
        let gap = self.gap_to(other);
        gap < times.switch && gap + self.length + other.length > times.overhead
    }
}
