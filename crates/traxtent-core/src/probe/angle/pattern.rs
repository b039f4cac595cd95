//! What comes next: the sequence of tracks seen so far, and how it repeats.
//!
//! Zones repeat a track, cylinders a few, serpentines hundreds. All are the same to a predictor that
//! asks how far back the last changes from one kind of track to another happened in the same way.
//! What it takes from there is when size or skew change and to what; where they do not, tracks go on
//! as the last ones, so that a zone costs one surprise and not one a track.
//!
//! A track that is a few sectors short, or has a skew of its own, is no pattern until a period later
//! there is one again: its defects are its own.

use std::collections::{BTreeMap, VecDeque};

use super::super::clock::{fraction, wrap};

/// The longest period that is looked for, in tracks.
const PERIOD_MAX: usize = 32_768;

/// How many past occurrences of a change are remembered.
const RECALL: usize = 64;

/// So many of the last tracks say what the next may be instead of what was predicted.
const LATE: usize = 6;

/// No more alternatives are worth a test.
const ALTERNATIVES: usize = 2;

/// So many tracks in a row, and more, are a pass over a surface rather than a cylinder.
const PASS_MIN: usize = 24;

/// A track that differs by no more sectors from what is regular may have as many bad ones.
pub(super) const SLIPS: u32 = 16;

/// Skews closer than this are one, in revolutions.
pub(super) const SAME_SKEW: f64 = 0.02;

/// On a steady clock, skews that differ by fewer sectors than this are one, where that is less.
const SAME_SECTORS: f64 = 0.75;

/// A track as the pattern knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind {
    pub(super) sectors: u32,
    /// The angle of one sector.
    pub(super) pitch: f64,
    /// From its first sector to the first of the next track.
    pub(super) skew: f64,
}

impl Kind {
    /// By how much the next track's first sector is off where this track's sectors would go on.
    pub(super) fn jump(&self) -> f64 {
        wrap(self.skew - f64::from(self.sectors) * self.pitch)
    }

    /// The same, with sectors small enough for all of them to lie on one track.
    pub(super) fn within_a_turn(self) -> Kind {
        let most = 1.0 / f64::from(self.sectors.max(1));
        Kind {
            pitch: self.pitch.min(most),
            ..self
        }
    }

    fn is_like(&self, other: &Kind, steady: bool) -> bool {
        self.sectors == other.sectors && self.turns_like(other, steady)
    }

    fn turns_like(&self, other: &Kind, steady: bool) -> bool {
        let same = match steady {
            true => SAME_SKEW.min(SAME_SECTORS * self.pitch),
            false => SAME_SKEW,
        };
        wrap(self.skew - other.skew).abs() < same
    }

    /// Takes the sectors of another.
    fn resize(&mut self, other: &Kind) {
        (self.sectors, self.pitch) = (other.sectors, other.pitch);
    }
}

/// The sort of a change: from so many sectors to so many others, and to a larger skew or not.
type Change = (u32, u32, bool);

fn change(from: Kind, to: Kind) -> Change {
    (from.sectors, to.sectors, wrap(to.skew - from.skew) > 0.0)
}

/// What a change says about the period: little, if it may be one of bad sectors.
fn weight(from: Kind, to: Kind, steady: bool) -> f64 {
    let slips = from.sectors.abs_diff(to.sectors) <= SLIPS;
    if slips && from.turns_like(&to, steady) {
        0.25
    } else {
        1.0
    }
}

/// A track of the past.
#[derive(Clone, Copy, Debug)]
struct Past {
    /// As it was found.
    kind: Kind,
    /// As it would be without bad sectors of its own.
    regular: Kind,
    /// As tracks go on behind it.
    level: Kind,
}

/// The sequence.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// Whether skews are known to a fraction of a sector.
    steady: bool,
    /// The last tracks, oldest first.
    past: VecDeque<Past>,
    /// How many there were before the oldest.
    dropped: usize,
    /// Where the tracks changed.
    changes: BTreeMap<Change, VecDeque<usize>>,
    /// How well each period explains the changes.
    score: BTreeMap<usize, f64>,
    period: Option<usize>,
}

impl Pattern {
    /// An empty one, for a clock that is steady or not.
    pub(super) fn new(steady: bool) -> Pattern {
        Pattern {
            steady,
            ..Pattern::default()
        }
    }

    pub(super) fn push(&mut self, kind: Kind) {
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

    /// The next track and what is regular about it, where this track is expected; and, of the last and of that a
    /// period ago, what it confirms.
    fn judge(&mut self, kind: Kind, expected: Kind) -> Past {
        let own_size = kind.sectors != expected.sectors;
        let mut regular = kind;
        if own_size {
            regular.resize(&expected);
        }
        // Bad sectors at the beginning of a track are its own, too.
        let same = match self.steady {
            true => kind.pitch / 4.0,
            false => SAME_SKEW,
        };
        let own_skew = wrap(kind.skew - expected.skew).abs() >= same;
        if own_skew {
            regular.skew = expected.skew;
        }
        // Twice in a row, or a period apart, is no accident.
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
        let skew = match self.steady {
            true => regular.skew,
            false => kind.skew,
        };
        let off = wrap(skew - level.skew);
        if off.abs() < kind.pitch {
            // One track's skew says little to the fraction of a sector.
            level.skew += off / 8.0;
        } else if self
            .last()
            .is_none_or(|last| last.turns_like(&kind, self.steady))
        {
            level.skew = skew;
        }
        level.resize(&regular);
        Past {
            kind,
            regular,
            level,
        }
    }

    /// Which periods have a change from one kind of track to another come now.
    fn periods_to(&self, from: Kind, to: Kind) -> Vec<usize> {
        let at = self.dropped + self.past.len();
        let is = |index: Option<usize>, kind: Kind| {
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

    /// Learns from a change that has come.
    fn changed(&mut self, from: Kind, to: Kind) {
        let weight = weight(from, to, self.steady);
        for score in self.score.values_mut() {
            *score *= 1.0 - 0.03 * weight;
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
        if self.score.len() > 4096 {
            self.score.retain(|_, score| *score > 0.5);
        }
        self.choose_period();
    }

    /// Learns from a change that should have come.
    fn not_changed(&mut self, from: Kind, to: Kind) {
        for period in self.periods_to(from, to) {
            *self.score.entry(period).or_default() -= weight(from, to, self.steady);
        }
        self.choose_period();
    }

    fn choose_period(&mut self) {
        self.period = self.shortest(0.95);
    }

    /// The shortest period that explains changes nearly as well as the best: by so much.
    fn shortest(&self, nearly: f64) -> Option<usize> {
        let best = self.score.values().fold(0.0, |a: f64, b| a.max(*b));
        let mut good = self
            .score
            .iter()
            .filter(|(_, score)| **score >= nearly * best);
        good.next()
            .filter(|_| best > 1.5)
            .map(|(period, _)| *period)
    }

    /// The period in which the tracks repeat, as far as it is known.
    pub(super) fn period(&self) -> Option<usize> {
        self.period
    }

    /// How many surfaces take turns, where each has many tracks in a row, or fewer: a period then has a pass over each,
    /// or two, if every other sweep goes back over the surfaces. Nothing that repeats tells which.
    pub(super) fn surfaces(&self) -> Option<usize> {
        let period = self.shortest(0.97)?;
        let late = self.past.range(self.past.len().checked_sub(period + 1)?..);
        let late: Vec<&Kind> = late.map(|past| &past.regular).collect();
        let changes: Vec<usize> = (1..late.len())
            .filter(|&i| !late[i].is_like(late[i - 1], self.steady))
            .collect();
        let gaps = changes.windows(2).map(|pair| pair[1] - pair[0]);
        let mut gaps: Vec<usize> = gaps.filter(|gap| *gap > PASS_MIN).collect();
        gaps.sort_unstable();
        let pass = gaps.get(gaps.len() / 2)?;
        Some(period / pass / 2)
    }

    /// What the next track may be if it is not as predicted: a size of late, or of a period ago, or no turn.
    pub(super) fn alternatives(&self, predicted: Kind) -> Vec<Kind> {
        let mut all: Vec<Kind> = Vec::new();
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
        let of_late = self.past.iter().rev().take(LATE);
        let sizes = of_late.chain(of_then).map(|past| Kind {
            skew: predicted.skew,
            ..past.kind
        });
        let no_turn = Kind {
            skew: last.level.skew,
            ..predicted
        };
        for kind in std::iter::once(no_turn).chain(sizes) {
            let is_new = |other: &Kind| !other.is_like(&kind, self.steady);
            if is_new(&predicted) && all.iter().all(is_new) && all.len() < ALTERNATIVES {
                all.push(kind);
            }
        }
        all
    }

    /// How many regular sectors the track so far back has; 1 is the last.
    pub(super) fn sectors_back(&self, by: usize) -> Option<u32> {
        let index = self.past.len().checked_sub(by)?;
        self.past.get(index).map(|past| past.regular.sectors)
    }

    /// The least skew of late, in either direction.
    pub(super) fn least_skew(&self) -> Option<f64> {
        let late = self.past.iter().rev().take(16);
        let skews = late.map(|past| wrap(past.kind.skew).abs());
        skews.min_by(f64::total_cmp)
    }

    /// The largest skew among so many last tracks.
    pub(super) fn largest_skew(&self, count: usize) -> f64 {
        let late = self.past.iter().rev().take(count);
        late.map(|past| fraction(past.kind.skew))
            .fold(0.0, f64::max)
    }

    /// The mean skew of late, in the direction of rotation.
    pub(super) fn mean_skew(&self) -> f64 {
        let late = self.past.iter().rev().take(48);
        let count = late.len().max(1) as f64;
        late.map(|past| fraction(past.kind.skew)).sum::<f64>() / count
    }

    /// Whether a track of late had this skew; the last does not count.
    pub(super) fn had_skew(&self, skew: f64, tolerance: f64) -> bool {
        let mut late = self.past.iter().rev().skip(1).take(24);
        late.any(|past| wrap(past.kind.skew - skew).abs() < tolerance)
    }

    /// Whether a track of late had so many sectors.
    pub(super) fn had_sectors(&self, sectors: u32) -> bool {
        let mut late = self.past.iter().rev().take(24);
        late.any(|past| past.kind.sectors == sectors)
    }

    /// Whether a track of late had this pitch.
    pub(super) fn had_pitch(&self, pitch: f64, tolerance: f64) -> bool {
        let mut late = self.past.iter().rev().take(24);
        late.any(|past| (past.kind.pitch - pitch).abs() < tolerance)
    }

    /// Forgets the last tracks.
    pub(super) fn forget_last(&mut self, count: usize) {
        self.past.truncate(self.past.len().saturating_sub(count));
    }

    /// Puts the last track right.
    pub(super) fn replace_last(&mut self, kind: Kind) {
        if self.past.pop_back().is_some() {
            self.push(kind);
        }
    }

    /// The last track.
    pub(super) fn last(&self) -> Option<Kind> {
        self.past.back().map(|past| past.kind)
    }

    /// By how much tracks turn more than a period ago.
    fn drift(&self) -> f64 {
        let level = |by: usize| {
            let index = self.past.len().checked_sub(by)?;
            Some(self.past.get(index)?.level.skew)
        };
        let then = self.period.and_then(|period| level(period + 1));
        match (then, level(1)) {
            (Some(then), Some(now)) if wrap(now - then).abs() < SAME_SKEW => wrap(now - then),
            _ => 0.0,
        }
    }

    /// The next `count` tracks; empty before the first.
    pub(super) fn predict(&self, count: usize) -> Vec<Kind> {
        let mut next: Vec<Kind> = Vec::with_capacity(count);
        let Some(last) = self.past.back() else {
            return next;
        };
        let mut level = last.level;
        let mut first = last.level;
        let before = self
            .period
            .and_then(|period| self.past.len().checked_sub(period + 1));
        if before.is_some_and(|index| self.past[index].regular.turns_like(&last.kind, self.steady))
        {
            // It has turned as a period ago, and goes on so.
            let steady = last.kind.turns_like(&level, self.steady);
            first.skew = if steady { level.skew } else { last.kind.skew };
        }
        let drift = self.drift();
        for k in 0..count {
            let mut guess = next.last().copied().unwrap_or(first);
            let back = |by: usize| -> Option<Kind> {
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
                if !then.turns_like(&before, self.steady) {
                    // The level is of many tracks, and that one's skew of one.
                    let back_to_level = then.turns_like(&level, self.steady);
                    guess.skew = if back_to_level { level.skew } else { then.skew };
                }
                if self.steady && then.turns_like(&guess, self.steady) {
                    guess.skew = then.skew + drift;
                }
            }
            if next
                .last()
                .is_some_and(|last| last.turns_like(&guess, self.steady))
            {
                level.skew = guess.skew;
            }
            next.push(guess);
        }
        next
    }
}
