//! What comes next: the sequence of tracks seen so far, and how it repeats.
//!
//! Zones repeat a track, cylinders a few, serpentines hundreds. All are the same to a predictor that
//! asks how far back the last changes from one kind of track to another happened in the same way.

use std::collections::{BTreeMap, VecDeque};

use super::super::clock::{fraction, wrap};

/// The longest period that is looked for, in tracks.
const PERIOD_MAX: usize = 8192;

/// How many past occurrences of a change are remembered.
const RECALL: usize = 24;

/// Skews closer than this are one, in revolutions.
const SAME_SKEW: f64 = 0.02;

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

    fn is_like(&self, other: &Kind) -> bool {
        self.sectors == other.sectors && wrap(self.skew - other.skew).abs() < SAME_SKEW
    }
}

/// The sequence.
#[derive(Debug, Default)]
pub(super) struct Pattern {
    /// The last tracks, oldest first.
    past: VecDeque<Kind>,
    /// How many there were before the oldest.
    dropped: usize,
    /// Where the tracks changed from so many sectors to so many others.
    changes: BTreeMap<(u32, u32), VecDeque<usize>>,
    /// How well each period explains the changes.
    score: BTreeMap<usize, f64>,
    period: Option<usize>,
}

impl Pattern {
    pub(super) fn push(&mut self, kind: Kind) {
        let at = self.dropped + self.past.len();
        if let Some(last) = self.past.back().copied()
            && !last.is_like(&kind)
        {
            self.changed(at, last, kind);
        }
        self.past.push_back(kind);
        if self.past.len() > 3 * PERIOD_MAX + 1 {
            self.past.pop_front();
            self.dropped += 1;
        }
    }

    fn changed(&mut self, at: usize, from: Kind, to: Kind) {
        for score in self.score.values_mut() {
            *score *= 0.97;
        }
        let before = self.changes.entry((from.sectors, to.sectors)).or_default();
        for &then in before.iter() {
            let Some(period) = at.checked_sub(then).filter(|p| *p <= PERIOD_MAX) else {
                continue;
            };
            let same = then.checked_sub(self.dropped).is_some_and(|i| {
                i > 0 && self.past[i].is_like(&to) && self.past[i - 1].is_like(&from)
            });
            if same {
                *self.score.entry(period).or_default() += 1.0;
            }
        }
        before.push_back(at);
        if before.len() > RECALL {
            before.pop_front();
        }
        if self.score.len() > 4096 {
            self.score.retain(|_, score| *score > 0.5);
        }
        let best = self.score.values().fold(0.0, |a: f64, b| a.max(*b));
        self.period = (best > 1.5)
            .then(|| {
                let good = self.score.iter().filter(|(_, score)| **score >= 0.8 * best);
                good.map(|(period, _)| *period).min()
            })
            .flatten();
    }

    /// The period in which the tracks repeat, as far as it is known.
    pub(super) fn period(&self) -> Option<usize> {
        self.period
    }

    /// The least skew of late, in either direction.
    pub(super) fn least_skew(&self) -> Option<f64> {
        let late = self.past.iter().rev().take(16);
        let skews = late.map(|kind| wrap(kind.skew).abs());
        skews.min_by(f64::total_cmp)
    }

    /// The largest skew among so many last tracks.
    pub(super) fn largest_skew(&self, count: usize) -> f64 {
        let late = self.past.iter().rev().take(count);
        late.map(|kind| fraction(kind.skew)).fold(0.0, f64::max)
    }

    /// Whether a track of late had this skew; the last does not count.
    pub(super) fn had_skew(&self, skew: f64, tolerance: f64) -> bool {
        let mut late = self.past.iter().rev().skip(1).take(24);
        late.any(|kind| wrap(kind.skew - skew).abs() < tolerance)
    }

    /// Whether a track of late had so many sectors.
    pub(super) fn had_sectors(&self, sectors: u32) -> bool {
        let mut late = self.past.iter().rev().take(24);
        late.any(|kind| kind.sectors == sectors)
    }

    /// Whether a track of late had this pitch.
    pub(super) fn had_pitch(&self, pitch: f64, tolerance: f64) -> bool {
        let mut late = self.past.iter().rev().take(24);
        late.any(|kind| (kind.pitch - pitch).abs() < tolerance)
    }

    /// Puts the last track right.
    pub(super) fn replace_last(&mut self, kind: Kind) {
        if self.past.pop_back().is_some() {
            self.push(kind);
        }
    }

    /// The last track.
    pub(super) fn last(&self) -> Option<Kind> {
        self.past.back().copied()
    }

    /// The next `count` tracks; empty before the first.
    pub(super) fn predict(&self, count: usize) -> Vec<Kind> {
        let mut next: Vec<Kind> = Vec::with_capacity(count);
        let Some(last) = self.last() else {
            return next;
        };
        for k in 0..count {
            let back = |by: usize| -> Option<Kind> {
                if by <= k {
                    return Some(next[k - by]);
                }
                let index = (self.past.len() + k).checked_sub(by)?;
                self.past.get(index).copied()
            };
            let guess = match self.period {
                Some(period) => match (back(period), back(2 * period), back(3 * period)) {
                    // A defect a period ago is no reason to expect one now.
                    (Some(a), Some(b), Some(c)) if !a.is_like(&b) && b.is_like(&c) => b,
                    (Some(a), _, _) => a,
                    (None, _, _) => back(1).unwrap_or(last),
                },
                None => back(1).unwrap_or(last),
            };
            next.push(guess);
        }
        next
    }
}
