//! The angle at which each track begins.
//!
//! Within a part of the drive that has a uniform format, three numbers determine the angle: the
//! skew from track to track within a run, the angle at which each run of the repetition begins, and
//! the advance from one repetition to the next. Skew and advance are measured between tracks that
//! lie increasingly far apart, which divides the error of an angle among many tracks. If a
//! prediction fails, a new part begins.

use super::layout::TrackLayout;
use super::measurement::{Estimate, Measurement, wrapped};
use super::stopwatch::Stopwatch;
use crate::{ProbeError, TargetError};
use traxtent_map::TrackMap;
use traxtent_units::turns::fraction;
use traxtent_units::{Lbn, Sectors};

/// The number of readings of a sector for its angle.
const READS: usize = 4;
/// The largest error of a correct prediction, in revolutions, if the host is steady.
const MISS_TURNS: f64 = 0.004;
/// The largest expected number of uniform parts of a drive. Beyond that, predictions are no longer
/// checked.
const PATCHES_MAX: usize = 600;

/// The smallest number of tracks of a patch for which figures are given. Smaller patches are
/// defects rather than a format.
const FIGURE_TRACKS_MIN: usize = 64;
/// The largest number of runs of a patch for which figures are given. A patch with more runs is a
/// collection of defects rather than a format.
const FIGURE_RUNS_MAX: usize = 63;
/// The smallest number of tracks of a patch whose slots without LBNs are measured.
const SLACK_TRACKS_MIN: usize = 8;
/// The smallest number of slots without LBNs that counts: half of a slot.
const SLACK_SLOTS_MIN: f64 = 0.5;
/// The smallest number of repetitions that are a format. One or two odd ones are defects, or an
/// incomplete last part.
const REPETITIONS_MIN: usize = 3;
/// The largest error of an angle, in standard deviations of the difference of two angles.
const MISS_DEVIATIONS: f64 = 5.0;
/// The largest error of a prediction from a guessed step, in revolutions, at which the guess is
/// corrected rather than discarded.
const GUESS_MISS_TURNS: f64 = 0.05;

/// The number of measurements of the slots without LBNs on a track. Each measurement compares the
/// angles of the track's first and last sectors.
const SLACK_TRIALS: usize = 6;
/// The number of sectors at the beginning of a track, one of which must be readable.
const BEGINNING_SECTORS: u64 = 16;
/// The number of repetitions up to which an offset is measured only in the first.
const REPETITIONS_FEW: usize = 4;
/// The number of measurements of an offset.
const OFFSETS: usize = 3;
/// The smallest length in tracks of a run that is expected to keep its step when the format
/// changes.
const GUESSED_RUN_MIN: usize = 4;

/// The angles of a run of the repetition, in revolutions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RunAngles {
    /// The angle from the beginning of the repetition's first track to that of the run's first
    /// track.
    pub(super) offset: f64,
    /// The angle from track to track.
    pub(super) step: f64,
    /// The number of slots around a track, including those that hold no LBN.
    pub(super) slots: u32,
}

/// Repetitions of a repeating section with a uniform format. Angles are in revolutions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FormatPatch {
    /// The index of the repeating section.
    pub(super) section: usize,
    /// The first track.
    pub(super) first: usize,
    /// The number of tracks.
    pub(super) tracks: usize,
    pub(super) runs: Vec<RunAngles>,
    /// The angle from the beginning of a repetition to that of the next.
    pub(super) advance: f64,
    /// The angle at which the first track begins.
    pub(super) origin: f64,
    /// Half the width of the widest confidence interval of an angle.
    pub(super) half_width: f64,
}

/// The angles of a drive.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Angles {
    pub(super) patches: Vec<FormatPatch>,
    /// The estimated number of slots without LBNs on a track, by number of sectors, from all
    /// patches.
    pub(super) slack: Vec<(u32, Estimate)>,
}

impl Angles {
    /// Returns the patch that holds a track.
    pub(super) fn patch(&self, track: usize) -> &FormatPatch {
        &self.patches[self.patches.partition_point(|patch| patch.first <= track) - 1]
    }

    /// Returns the angle at which a track begins, in revolutions from 0 to 1, and its number of
    /// slots.
    pub(super) fn start(&self, layout: &TrackLayout, track: usize) -> (f64, u32) {
        let patch = self.patch(track);
        let section = &layout.sections[patch.section];
        let index = track - patch.first;
        let (times, mut rest) = (index / section.period(), index % section.period());
        for (run, angles) in section.runs.iter().zip(&patch.runs) {
            if rest < run.tracks {
                let turns = patch.origin
                    + times as f64 * patch.advance
                    + angles.offset
                    + rest as f64 * angles.step;
                return (fraction(turns), angles.slots);
            }
            rest -= run.tracks;
        }
        unreachable!("a remainder is smaller than its divisor")
    }
}

/// Returns the skews and sizes of the patches that are a format rather than defects, one set of
/// figures per patch.
pub(super) fn figures(angles: &Angles, layout: &TrackLayout) -> Vec<Measurement> {
    let mut found = Vec::new();
    let usual = angles
        .patches
        .iter()
        .filter(|patch| patch.tracks >= FIGURE_TRACKS_MIN && patch.runs.len() <= FIGURE_RUNS_MAX);
    for (zone, patch) in usual.enumerate() {
        let section = &layout.sections[patch.section];
        let (run, turns) = (section.runs[0], patch.runs[0]);
        let turn = |name: &str, value: f64, share: f64, how: &'static str| {
            let half_width = patch.half_width * 2f64.sqrt() / share.max(1.0);
            let estimate = Estimate {
                value: fraction(value),
                half_width,
                samples: 2 * READS as u64,
            };
            Measurement::around(
                &format!("geometry.zones.{zone}.{name}"),
                estimate,
                "revolutions",
                how,
            )
        };
        let inner = if run.step.surface != 0 {
            "track_skew"
        } else {
            "cylinder_skew"
        };
        found.push(turn(
            inner,
            turns.step,
            run.tracks as f64 - 1.0,
            "angles of tracks at doubling distances",
        ));
        if let Some(next) = patch
            .runs
            .get(1)
            .map(|next| next.offset)
            .or(Some(patch.advance))
        {
            let outer = if run.step.surface != 0 {
                "cylinder_skew"
            } else {
                "turn_skew"
            };
            let value = next - turns.offset - (run.tracks as f64 - 1.0) * turns.step;
            found.push(turn(
                outer,
                value,
                1.0,
                "angles of the last track of a run and the first of the next",
            ));
        }
        let slots = f64::from(turns.slots);
        // The patch is large enough for its track size to have an estimate.
        let width = angles
            .slack
            .iter()
            .find(|(usual, slack)| usual + empty_slots(slack) == turns.slots)
            .map_or(0.0, |(_, slack)| slack.half_width);
        found.push(Measurement::around(
            &format!("geometry.zones.{zone}.slots"),
            Estimate { value: slots, half_width: width, samples: 2 * (SLACK_TRIALS * READS) as u64 },
            "sectors around the first track",
            "the angle between the first and the last sector of a track; equal to the number of LBNs unless the angle contradicts it",
        ));
    }
    found
}

/// Returns the number of slots without LBNs. They are assumed only if the whole interval of their
/// number is above the smallest number that counts.
fn empty_slots(slack: &Estimate) -> u32 {
    if slack.value - slack.half_width > SLACK_SLOTS_MIN {
        slack.value.round() as u32
    } else {
        0
    }
}

/// Measures the angles of all tracks.
pub(super) fn angles(
    watch: &mut Stopwatch<'_>,
    map: &TrackMap,
    layout: &TrackLayout,
    progress: &mut dyn FnMut(f64),
) -> Result<Angles, ProbeError> {
    let sectors: Vec<u32> = map.tracks().map(|track| track.sectors.0 as u32).collect();
    let starts: Vec<Lbn> = map.tracks().map(|track| track.first_lbn).collect();
    let mut meter = AngleMeter {
        watch,
        starts: &starts,
        sectors: &sectors,
        trusting: false,
    };
    let mut found = Angles {
        patches: Vec::new(),
        slack: Vec::new(),
    };
    for (number, section) in layout.sections.iter().enumerate() {
        let period = section.period();
        for (from, repetitions, nominal) in
            alike(&sectors[section.first..][..section.tracks], section)
        {
            let mut first = section.first + from * period;
            let end = (first + repetitions * period).min(section.first + section.tracks);
            while first < end {
                meter.trusting = found.patches.len() > PATCHES_MAX;
                progress(first as f64 / sectors.len() as f64);
                let runs: Vec<usize> = section.runs.iter().map(|run| run.tracks).collect();
                let before = found.patches.last().filter(|patch| patch.section == number);
                let patch = meter.patch(first, end - first, &runs, &nominal, before)?;
                first += patch.tracks;
                found.patches.push(FormatPatch {
                    section: number,
                    ..patch
                });
            }
        }
    }
    let mut tried = std::collections::BTreeSet::new();
    for patch in &mut found.patches {
        let usual = patch.runs[0].slots;
        if patch.tracks < SLACK_TRACKS_MIN || !tried.insert(usual) {
            continue;
        }
        let track = (patch.first..patch.first + patch.tracks)
            .find(|&track| sectors[track] == usual)
            .unwrap_or(patch.first);
        found.slack.push((usual, meter.slack(track)?));
    }
    for patch in &mut found.patches {
        for run in &mut patch.runs {
            let slack = found
                .slack
                .iter()
                .find(|(usual, _)| *usual == run.slots)
                .map(|(_, slack)| slack);
            run.slots += slack.map_or(0, empty_slots);
        }
    }
    Ok(found)
}

/// Divides a repeating section where the usual sizes of its tracks change. Parts of fewer than
/// [`REPETITIONS_MIN`] repetitions belong to the part before, if there is one. Returns for each
/// part the first repetition, the number of repetitions, and the sizes by run.
fn alike(
    sectors: &[u32],
    section: &super::layout::RepeatingSection,
) -> Vec<(usize, usize, Vec<u32>)> {
    let usual = |repetition: &[u32]| {
        let mut at = 0;
        let sizes = section.runs.iter().map(|run| {
            let tracks =
                &repetition[at.min(repetition.len())..(at + run.tracks).min(repetition.len())];
            at += run.tracks;
            tracks.iter().copied().max().unwrap_or(0)
        });
        sizes.collect::<Vec<u32>>()
    };
    let mut found: Vec<(usize, usize, Vec<u32>)> = Vec::new();
    for (number, repetition) in sectors.chunks(section.period()).enumerate() {
        let sizes = usual(repetition);
        match found.last_mut() {
            Some((_, count, before)) if *before == sizes => *count += 1,
            _ => found.push((number, 1, sizes)),
        }
    }
    let mut merged: Vec<(usize, usize, Vec<u32>)> = Vec::new();
    for (number, count, sizes) in found {
        match merged.last_mut() {
            Some((_, before, usual)) if count < REPETITIONS_MIN || *usual == sizes => {
                *before += count
            }
            _ => merged.push((number, count, sizes)),
        }
    }
    merged
}

/// Measures the angles of tracks.
pub(super) struct AngleMeter<'a, 'b> {
    pub(super) watch: &'a mut Stopwatch<'b>,
    /// The first LBN of each track.
    pub(super) starts: &'a [Lbn],
    /// The number of sectors of each track.
    pub(super) sectors: &'a [u32],
    /// Whether any measured angles are accepted as constant steps.
    pub(super) trusting: bool,
}

impl AngleMeter<'_, '_> {
    /// Returns the angle at which a track with `slots` slots begins.
    pub(super) fn begins(&mut self, track: usize, slots: u32) -> Result<Estimate, ProbeError> {
        let mut past = 0;
        loop {
            let lbn = self.starts[track] + Sectors(past);
            match self.watch.sector_angle(lbn, READS) {
                Err(ProbeError::Target(TargetError::Unreadable { .. }))
                    if past + 1 < u64::from(self.sectors[track]).min(BEGINNING_SECTORS) =>
                {
                    past += 1;
                }
                angle => {
                    let angle = angle?;
                    // The whole physical sector has passed.
                    let passed = (self.watch.grouping.end(lbn).0 - self.starts[track].0) as f64;
                    let turns = angle.value - passed / f64::from(slots);
                    return Ok(Estimate {
                        value: fraction(turns),
                        ..angle
                    });
                }
            }
        }
    }

    /// Finds the constant step between the angles of items `0..count`, by measurements at doubling
    /// distances. If `guess` nearly fits the last and the middle item, it is only corrected.
    /// Returns the step and the number of items that follow it.
    pub(super) fn constant(
        &mut self,
        count: usize,
        guess: Option<f64>,
        angle: &mut dyn FnMut(&mut Self, usize) -> Result<f64, ProbeError>,
    ) -> Result<(f64, usize), ProbeError> {
        if count < 2 {
            return Ok((guess.unwrap_or(0.0), count));
        }
        let first = angle(self, 0)?;
        let unsure = MISS_DEVIATIONS * (2.0 / READS as f64).sqrt() * self.watch.deviation()
            / self.watch.period;
        let most = if self.trusting {
            0.5
        } else {
            MISS_TURNS.max(unsure)
        };
        let miss = |turn: f64, k: usize, seen: f64| wrapped(seen - first - turn * k as f64);
        if let Some(turn) = guess {
            let apart = miss(turn, count - 1, angle(self, count - 1)?);
            let half = count / 2;
            if apart.abs() < GUESS_MISS_TURNS
                && miss(turn, half, angle(self, half)?).abs() < GUESS_MISS_TURNS
            {
                return Ok((turn + apart / (count - 1) as f64, count));
            }
        }
        let mut turn = fraction(angle(self, 1)? - first);
        // Angles are accurate to a few hundredths of a millisecond, and so are predictions from
        // them.
        let (mut good, mut bad) = (1, None);
        while good + 1 < count {
            let next = (good * 2).min(count - 1);
            let off = miss(turn, next, angle(self, next)?);
            let sure = most * (next as f64 / good as f64) + most;
            if off.abs() > sure {
                bad = Some(next);
                break;
            }
            turn += off / next as f64;
            good = next;
        }
        let Some(mut bad) = bad else {
            return Ok((turn, count));
        };
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            let off = miss(turn, middle, angle(self, middle)?);
            if off.abs() > 2.0 * most {
                bad = middle;
            } else {
                turn += off / middle as f64;
                good = middle;
            }
        }
        Ok((turn, bad))
    }

    /// Measures the angles of the patch that begins at track `first` and has at most `most` tracks.
    /// `runs` and `usual` are the numbers of tracks of its runs and the usual sizes of these
    /// tracks. `before` is the previous patch of the section, if any.
    fn patch(
        &mut self,
        first: usize,
        most: usize,
        runs: &[usize],
        usual: &[u32],
        before: Option<&FormatPatch>,
    ) -> Result<FormatPatch, ProbeError> {
        let period: usize = runs.iter().sum();
        let mut width = 0.0_f64;
        let repetitions = most.div_ceil(period);
        let (advance, alike) = self.constant(repetitions, None, &mut |meter, k| {
            let angle = meter.begins(first + k * period, usual[0])?;
            Ok(angle.value)
        })?;
        let tracks = most.min(alike * period);
        let mut begin = 0;
        let mut origin = 0.0;
        let mut found: Vec<RunAngles> = Vec::new();
        for (number, &length) in runs.iter().enumerate() {
            let slots = usual[number].max(1);
            let mut angles = RunAngles {
                slots,
                ..RunAngles::default()
            };
            if begin < tracks {
                let samples = if alike > REPETITIONS_FEW {
                    [0, alike / 3, alike - 2]
                } else {
                    [0; OFFSETS]
                };
                let mut offsets = Vec::new();
                for k in samples {
                    let seen = self.begins(first + k * period + begin, slots)?;
                    width = width.max(seen.half_width);
                    offsets.push(seen.value - k as f64 * advance);
                }
                let around: Vec<f64> = offsets.iter().map(|o| wrapped(o - offsets[0])).collect();
                let start = offsets[0] + around.iter().sum::<f64>() / OFFSETS as f64;
                if number == 0 {
                    origin = fraction(start);
                }
                angles.offset = fraction(start - origin);
                let guess = found
                    .iter()
                    .zip(runs)
                    .find(|(other, others)| other.slots == slots && **others == length)
                    .map(|(other, _)| other.step)
                    .or(before
                        .filter(|_| length >= GUESSED_RUN_MIN)
                        .map(|patch| patch.runs[number].step));
                let length = length.min(tracks - begin);
                let at = first + begin;
                angles.step = self
                    .constant(length, guess, &mut |meter, k| {
                        Ok(meter.begins(at + k, slots)?.value)
                    })?
                    .0;
            }
            begin += length;
            found.push(angles);
        }
        let patch = FormatPatch {
            section: 0,
            first,
            tracks,
            runs: found,
            advance,
            origin,
            half_width: width,
        };
        Ok(patch)
    }

    /// Measures the number of slots of a track that hold no LBN, by the angle between its first and
    /// last sector.
    fn slack(&mut self, track: usize) -> Result<Estimate, ProbeError> {
        let sectors = f64::from(self.sectors[track]);
        let (first, last) = (
            self.starts[track],
            self.starts[track] + Sectors(u64::from(self.sectors[track]) - 1),
        );
        let one = (self.watch.grouping.end(first).0 - first.0) as f64;
        let mut samples = Vec::new();
        for _ in 0..SLACK_TRIALS {
            let turns = wrapped(
                self.watch.sector_angle(first, READS)?.value
                    - self.watch.sector_angle(last, READS)?.value,
            );
            // Between the last sector and the first are the empty slots and one physical sector:
            // turns = (slack + one) / slots.
            samples.push((turns * sectors - one) / (1.0 - turns));
        }
        Ok(Estimate::of(&samples))
    }
}

#[cfg(test)]
mod tests {
    use super::super::layout::{ConstantSteps, RepeatingSection, TrackPosition};
    use super::*;

    /// Does the interval of a zone's slots come from its own tracks, whether the sizes of tracks
    /// ascend or descend, and whether or not some slots hold no LBN?
    #[test]
    fn slots_have_the_interval_of_their_own_tracks() {
        let at = TrackPosition {
            cylinder: 0,
            surface: 0,
        };
        let step = TrackPosition {
            cylinder: 1,
            surface: 0,
        };
        let runs = vec![ConstantSteps {
            at,
            step,
            tracks: 100,
        }];
        let estimate = |value, half_width| Estimate {
            value,
            half_width,
            samples: 1,
        };
        // Sectors per track, its slots, and the estimated number of slots without LBNs.
        let mut sizes = [
            (300, 300, estimate(0.0, 0.1)),
            (400, 403, estimate(3.0, 0.2)),
            (402, 402, estimate(0.2, 0.3)),
        ];
        for _ in 0..2 {
            let patches = sizes.iter().enumerate().map(|(number, &(_, slots, _))| {
                let run = RunAngles {
                    offset: 0.0,
                    step: 0.1,
                    slots,
                };
                FormatPatch {
                    section: 0,
                    first: 100 * number,
                    tracks: 100,
                    runs: vec![run],
                    advance: 0.1,
                    origin: 0.0,
                    half_width: 0.001,
                }
            });
            let angles = Angles {
                patches: patches.collect(),
                slack: sizes
                    .iter()
                    .map(|&(usual, _, slack)| (usual, slack))
                    .collect(),
            };
            let layout = TrackLayout::new(vec![RepeatingSection {
                first: 0,
                tracks: 300,
                runs: runs.clone(),
                advance: 100,
            }]);
            let found = figures(&angles, &layout);
            for (zone, (_, slots, slack)) in sizes.iter().enumerate() {
                let name = format!("geometry.zones.{zone}.slots");
                let figure = found.iter().find(|one| one.name == name).unwrap();
                assert_eq!(figure.value, f64::from(*slots), "{name}");
                let half_width = (figure.high - figure.low) / 2.0;
                assert!(
                    (half_width - slack.half_width).abs() < 1e-9,
                    "{name}: {half_width}"
                );
            }
            sizes.reverse();
        }
    }
}
