//! Predicting the next tracks from the sequence of tracks found so far.
//!
//! Zones repeat one track, cylinders a few, and serpentines hundreds. The predictor treats them
//! alike: it finds how many tracks ago the latest changes from one kind of track to another
//! occurred in the same way. The tracks after that point show when the size or skew changes, and to
//! which value. Where they do not change, the prediction continues with the last track. A new zone
//! therefore costs one failed prediction rather than one per track.
//!
//! A track whose size or skew is not as predicted does not change the pattern until the same
//! deviation occurs on the next track or one period later. Until then, the deviation counts as the
//! track's own.

use std::collections::{BTreeMap, VecDeque};
use traxtent_units::turns::{fraction, wrap};

/// The longest period that is recognized, in tracks.
const PERIOD_MAX: usize = 32_768;

/// The number of past occurrences of a change that are stored.
const RECALL: usize = 64;

/// The number of recent tracks whose sizes are alternatives to a predicted one.
const RECENT: usize = 6;

/// The largest number of alternatives that are tested.
const ALTERNATIVES: usize = 2;

/// The number of tracks in a row above which they count as a pass over a surface, rather than a
/// cylinder.
const PASS_MIN: usize = 24;

/// The largest difference in sectors from a regular track that bad sectors may explain.
pub(super) const SLIPS: u32 = 16;

/// The difference below which skews count as equal, in revolutions.
pub(super) const SAME_SKEW_TURNS: f64 = 0.02;

/// On a steady clock, the difference in sectors below which skews count as equal, if that is
/// smaller.
const SAME_SECTORS: f64 = 0.75;

/// The weight of a change that bad sectors may have caused, as evidence for the period.
const SLIP_WEIGHT: f64 = 0.25;
/// The share of a period's score that each change subtracts, to reduce the weight of old changes.
const SCORE_DECAY: f64 = 0.03;
/// The number of candidate periods above which those with a low score are discarded.
const CANDIDATES_MAX: usize = 4096;
/// The score above which a candidate is kept.
const CANDIDATE_SCORE_MIN: f64 = 0.5;
/// The score above which the best period counts: more than one change has recurred.
const SCORE_MIN: f64 = 1.5;
/// The share of the best score that a shorter period needs. Multiples of the period score nearly as
/// much as it does.
const SCORE_SHARE: f64 = 0.95;
/// The same for the estimate of the number of surfaces.
const SCORE_SHARE_SURFACES: f64 = 0.97;
/// The share of a track's deviation by which the level of skews follows it. A single skew is weak
/// evidence for a fraction of a sector.
const LEVEL_SHARE: f64 = 1.0 / 8.0;
/// On a steady clock, the smallest difference, in sectors, at which a skew counts as the track's
/// own.
const OWN_SKEW_SECTORS: f64 = 1.0 / 4.0;
/// The number of recent tracks with which a track is compared.
const COMPARED: usize = 24;

/// The number of recent tracks over which the smallest skew is computed.
const LEAST_OF: usize = 16;
/// The number of recent tracks over which the mean skew is computed.
const MEAN_OF: usize = 48;

/// A track as the pattern represents it. Angles are in revolutions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrackKind {
    pub(super) sectors: u32,
    /// The angle of one sector.
    pub(super) pitch: f64,
    /// The angle from its first sector to the first sector of the next track.
    pub(super) skew: f64,
}

impl TrackKind {
    /// The angle between the next track's first sector and the point where this track's sectors
    /// would continue.
    pub(super) fn jump(&self) -> f64 {
        wrap(self.skew - f64::from(self.sectors) * self.pitch)
    }

    /// Returns the same kind, with the pitch limited so that all sectors fit on one track.
    pub(super) fn within_a_turn(self) -> TrackKind {
        let most = 1.0 / f64::from(self.sectors.max(1));
        TrackKind {
            pitch: self.pitch.min(most),
            ..self
        }
    }

    fn is_like(&self, other: &TrackKind, steady: bool) -> bool {
        self.sectors == other.sectors && self.skews_like(other, steady)
    }

    fn skews_like(&self, other: &TrackKind, steady: bool) -> bool {
        let same = if steady {
            SAME_SKEW_TURNS.min(SAME_SECTORS * self.pitch)
        } else {
            SAME_SKEW_TURNS
        };
        wrap(self.skew - other.skew).abs() < same
    }

    /// Sets the size to that of another kind.
    fn resize(&mut self, other: &TrackKind) {
        (self.sectors, self.pitch) = (other.sectors, other.pitch);
    }
}

/// The class of a change: the numbers of sectors before and after, and whether the skew grows.
type Change = (u32, u32, bool);

fn change(from: TrackKind, to: TrackKind) -> Change {
    (from.sectors, to.sectors, wrap(to.skew - from.skew) > 0.0)
}

/// Returns the weight of a change as evidence for the period. It is small if bad sectors may be the
/// cause.
fn weight(from: TrackKind, to: TrackKind, steady: bool) -> f64 {
    let slips = from.sectors.abs_diff(to.sectors) <= SLIPS;
    if slips && from.skews_like(&to, steady) {
        SLIP_WEIGHT
    } else {
        1.0
    }
}

/// A track found earlier.
#[derive(Clone, Copy, Debug)]
struct PastTrack {
    /// The track as it was found.
    kind: TrackKind,
    /// The track as it would be without bad sectors of its own.
    regular: TrackKind,
    /// The prediction for following tracks if nothing changes.
    level: TrackKind,
}

/// The sequence of tracks.
#[derive(Debug, Default)]
pub(super) struct TrackPredictor {
    /// Whether skews are known to a fraction of a sector.
    steady: bool,
    /// The recent tracks, oldest first.
    past: VecDeque<PastTrack>,
    /// The number of tracks before the oldest in `past`.
    dropped: usize,
    /// The positions of each class of change.
    changes: BTreeMap<Change, VecDeque<usize>>,
    /// The score of each period. The better a period explains the changes, the higher its score.
    score: BTreeMap<usize, f64>,
    period: Option<usize>,
}

impl TrackPredictor {
    /// Creates an empty sequence. `steady` states whether the clock is steady.
    pub(super) fn new(steady: bool) -> TrackPredictor {
        TrackPredictor {
            steady,
            ..TrackPredictor::default()
        }
    }

    pub(super) fn push(&mut self, kind: TrackKind) {
        let expected = self.predict(1).first().copied().unwrap_or(kind);
        let past = self.judge(kind, expected);
        if let Some(last) = self.last() {
            if !last.is_like(&kind, self.steady) {
                self.changed(last, kind);
            } else if !last.is_like(&expected, self.steady) {
                self.not_changed(last, expected);
            }
        }
        self.past.push_back(past);
        if self.past.len() > PERIOD_MAX + 2 {
            self.past.pop_front();
            self.dropped += 1;
        }
    }

    /// Returns the next track with its regular form, given the expected one. Also updates the
    /// regular forms of the last track and of the track one period ago, if they have the same
    /// deviation.
    fn judge(&mut self, kind: TrackKind, expected: TrackKind) -> PastTrack {
        let own_size = kind.sectors != expected.sectors;
        let mut regular = kind;
        if own_size {
            regular.resize(&expected);
        }
        // A skew that results from bad sectors at the beginning of a track is the track's own too.
        let same = if self.steady {
            OWN_SKEW_SECTORS * kind.pitch
        } else {
            SAME_SKEW_TURNS
        };
        let own_skew = wrap(kind.skew - expected.skew).abs() >= same;
        if own_skew {
            regular.skew = expected.skew;
        }
        // A deviation that occurs twice in a row, or one period apart, is regular.
        for by in self.period.into_iter().chain([1]) {
            let Some(index) = self.past.len().checked_sub(by) else {
                continue;
            };
            let past = &mut self.past[index];
            if own_size && past.kind.sectors == kind.sectors {
                past.regular.resize(&kind);
                regular.resize(&kind);
            }
            let again = by > 1 || wrap(past.kind.skew - past.regular.skew).abs() >= same;
            if own_skew && again && wrap(past.kind.skew - kind.skew).abs() < same {
                past.regular.skew = past.kind.skew;
                regular.skew = kind.skew;
            }
        }
        let mut level = self.past.back().map_or(kind, |last| last.level);
        let skew = if self.steady { regular.skew } else { kind.skew };
        let off = wrap(skew - level.skew);
        if off.abs() < kind.pitch {
            level.skew += LEVEL_SHARE * off;
        } else if self
            .last()
            .is_none_or(|last| last.skews_like(&kind, self.steady))
        {
            level.skew = skew;
        }
        level.resize(&regular);
        PastTrack {
            kind,
            regular,
            level,
        }
    }

    /// Returns the periods after which a change from one kind of track to another recurs now.
    fn periods_to(&self, from: TrackKind, to: TrackKind) -> Vec<usize> {
        let at = self.dropped + self.past.len();
        let is = |index: Option<usize>, kind: TrackKind| {
            let past = index.and_then(|index| self.past.get(index));
            past.is_some_and(|past| past.kind.is_like(&kind, self.steady))
        };
        let before = self.changes.get(&change(from, to)).into_iter().flatten();
        let same = before.filter(|&&then| {
            let index = then.checked_sub(self.dropped);
            then < at && is(index, to) && is(index.and_then(|index| index.checked_sub(1)), from)
        });
        let periods = same.map(|then| at - then);
        periods.filter(|period| *period <= PERIOD_MAX).collect()
    }

    /// Updates the scores after a change.
    fn changed(&mut self, from: TrackKind, to: TrackKind) {
        let weight = weight(from, to, self.steady);
        for score in self.score.values_mut() {
            *score *= 1.0 - SCORE_DECAY * weight;
        }
        for period in self.periods_to(from, to) {
            *self.score.entry(period).or_default() += weight;
        }
        let at = self.dropped + self.past.len();
        let before = self.changes.entry(change(from, to)).or_default();
        before.push_back(at);
        if before.len() > RECALL {
            before.pop_front();
        }
        if self.score.len() > CANDIDATES_MAX {
            self.score.retain(|_, score| *score > CANDIDATE_SCORE_MIN);
        }
        self.choose_period();
    }

    /// Updates the scores after a predicted change that did not occur.
    fn not_changed(&mut self, from: TrackKind, to: TrackKind) {
        for period in self.periods_to(from, to) {
            *self.score.entry(period).or_default() -= weight(from, to, self.steady);
        }
        self.choose_period();
    }

    fn choose_period(&mut self) {
        self.period = self.shortest(SCORE_SHARE);
    }

    /// Returns the shortest period whose score is at least `nearly` times the best, if the best is
    /// above [`SCORE_MIN`].
    fn shortest(&self, nearly: f64) -> Option<usize> {
        let best = self.score.values().fold(0.0, |a: f64, b| a.max(*b));
        let mut good = self
            .score
            .iter()
            .filter(|(_, score)| **score >= nearly * best);
        good.next()
            .filter(|_| best > SCORE_MIN)
            .map(|(period, _)| *period)
    }

    /// The period after which the tracks repeat, if it is known.
    pub(super) fn period(&self) -> Option<usize> {
        self.period
    }

    /// Returns an estimate of the number of surfaces, if each surface has many tracks in a row. The
    /// estimate may be too low: a period contains one pass over each surface, or two if every other
    /// sweep runs back over the surfaces. The repetition does not show which.
    pub(super) fn surfaces(&self) -> Option<usize> {
        let period = self.shortest(SCORE_SHARE_SURFACES)?;
        let recent = self.past.range(self.past.len().checked_sub(period + 1)?..);
        let recent: Vec<&TrackKind> = recent.map(|past| &past.regular).collect();
        let changes: Vec<usize> = (1..recent.len())
            .filter(|&i| !recent[i].is_like(recent[i - 1], self.steady))
            .collect();
        let gaps = changes.windows(2).map(|pair| pair[1] - pair[0]);
        let mut gaps: Vec<usize> = gaps.filter(|gap| *gap > PASS_MIN).collect();
        gaps.sort_unstable();
        let pass = gaps.get(gaps.len() / 2)?;
        Some(period / pass / 2)
    }

    /// Returns alternatives to a prediction that failed: the size of a recent track, or of a track
    /// about one period ago, or an unchanged skew.
    pub(super) fn alternatives(&self, predicted: TrackKind) -> Vec<TrackKind> {
        let mut all: Vec<TrackKind> = Vec::new();
        let Some(last) = self.past.back() else {
            return all;
        };
        let then = self
            .period
            .and_then(|period| self.past.len().checked_sub(period));
        let then = then.map(|index| index.saturating_sub(1)..(index + 2).min(self.past.len()));
        let of_then = then
            .into_iter()
            .flat_map(|indices| self.past.range(indices));
        let of_recent = self.past.iter().rev().take(RECENT);
        let sizes = of_recent.chain(of_then).map(|past| TrackKind {
            skew: predicted.skew,
            ..past.kind
        });
        let unchanged_skew = TrackKind {
            skew: last.level.skew,
            ..predicted
        };
        for kind in std::iter::once(unchanged_skew).chain(sizes) {
            let is_new = |other: &TrackKind| !other.is_like(&kind, self.steady);
            if is_new(&predicted) && all.iter().all(is_new) && all.len() < ALTERNATIVES {
                all.push(kind);
            }
        }
        all
    }

    /// The number of sectors of the regular form of the track `by` tracks back; `by` is 1 for the
    /// last track.
    pub(super) fn sectors_back(&self, by: usize) -> Option<u32> {
        let index = self.past.len().checked_sub(by)?;
        self.past.get(index).map(|past| past.regular.sectors)
    }

    /// The smallest recent skew, in either direction.
    pub(super) fn least_skew(&self) -> Option<f64> {
        let recent = self.past.iter().rev().take(LEAST_OF);
        let skews = recent.map(|past| wrap(past.kind.skew).abs());
        skews.min_by(f64::total_cmp)
    }

    /// The largest skew among the last `count` tracks.
    pub(super) fn largest_skew(&self, count: usize) -> f64 {
        let recent = self.past.iter().rev().take(count);
        recent
            .map(|past| fraction(past.kind.skew))
            .fold(0.0, f64::max)
    }

    /// The mean recent skew, in the direction of rotation.
    pub(super) fn mean_skew(&self) -> f64 {
        let recent = self.past.iter().rev().take(MEAN_OF);
        let count = recent.len().max(1) as f64;
        recent.map(|past| fraction(past.kind.skew)).sum::<f64>() / count
    }

    /// Returns whether a recent track other than the last had this skew.
    pub(super) fn had_skew(&self, skew: f64, tolerance: f64) -> bool {
        let mut recent = self.past.iter().rev().skip(1).take(COMPARED);
        recent.any(|past| wrap(past.kind.skew - skew).abs() < tolerance)
    }

    /// Returns whether a recent track had this number of sectors.
    pub(super) fn had_sectors(&self, sectors: u32) -> bool {
        let mut recent = self.past.iter().rev().take(COMPARED);
        recent.any(|past| past.kind.sectors == sectors)
    }

    /// Returns whether a recent track had this pitch.
    pub(super) fn had_pitch(&self, pitch: f64, tolerance: f64) -> bool {
        let mut recent = self.past.iter().rev().take(COMPARED);
        recent.any(|past| (past.kind.pitch - pitch).abs() < tolerance)
    }

    /// Removes the last tracks.
    pub(super) fn forget_last(&mut self, count: usize) {
        self.past.truncate(self.past.len().saturating_sub(count));
    }

    /// Replaces the last track.
    pub(super) fn replace_last(&mut self, kind: TrackKind) {
        if self.past.pop_back().is_some() {
            self.push(kind);
        }
    }

    /// The last track.
    pub(super) fn last(&self) -> Option<TrackKind> {
        self.past.back().map(|past| past.kind)
    }

    /// The difference between the level of skews now and one period ago, or 0 if it is unknown or
    /// large.
    fn drift(&self) -> f64 {
        let level = |by: usize| {
            let index = self.past.len().checked_sub(by)?;
            Some(self.past.get(index)?.level.skew)
        };
        let then = self.period.and_then(|period| level(period + 1));
        match (then, level(1)) {
            (Some(then), Some(now)) if wrap(now - then).abs() < SAME_SKEW_TURNS => wrap(now - then),
            _ => 0.0,
        }
    }

    /// Returns the predicted next `count` tracks. Empty before the first track.
    pub(super) fn predict(&self, count: usize) -> Vec<TrackKind> {
        let mut next: Vec<TrackKind> = Vec::with_capacity(count);
        let Some(last) = self.past.back() else {
            return next;
        };
        let mut level = last.level;
        let mut first = last.level;
        let before = self
            .period
            .and_then(|period| self.past.len().checked_sub(period + 1));
        if before.is_some_and(|index| self.past[index].regular.skews_like(&last.kind, self.steady))
        {
            // The last track's skew is the same as one period ago, so the skew continues.
            let at_level = last.kind.skews_like(&level, self.steady);
            first.skew = if at_level { level.skew } else { last.kind.skew };
        }
        let drift = self.drift();
        for k in 0..count {
            let mut guess = next.last().copied().unwrap_or(first);
            let back = |by: usize| -> Option<TrackKind> {
                if by <= k {
                    return Some(next[k - by]);
                }
                let index = (self.past.len() + k).checked_sub(by)?;
                self.past.get(index).map(|past| past.regular)
            };
            if let Some(period) = self.period
                && let (Some(then), Some(before)) = (back(period), back(period + 1))
            {
                if then.sectors != before.sectors {
                    guess.resize(&then);
                }
                if !then.skews_like(&before, self.steady) {
                    // The level is an average of many tracks, the skew that of one.
                    let back_to_level = then.skews_like(&level, self.steady);
                    guess.skew = if back_to_level { level.skew } else { then.skew };
                }
                if self.steady && then.skews_like(&guess, self.steady) {
                    guess.skew = then.skew + drift;
                }
            }
            if next
                .last()
                .is_some_and(|last| last.skews_like(&guess, self.steady))
            {
                level.skew = guess.skew;
            }
            next.push(guess);
        }
        next
    }
}
