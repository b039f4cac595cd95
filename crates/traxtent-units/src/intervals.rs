//! A map from ranges of numbers to values, in which a later insertion overwrites earlier ones.
//!
//! The crate `rangemap` is not used because it joins adjacent ranges with equal values, which must
//! stay apart here: each is a physical sector that takes its own retries, or becomes readable
//! alone.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges that do not overlap, each with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Intervals<T> {
    /// The end and value of each range, by its start.
    by_start: BTreeMap<u64, (u64, T)>,
}

impl<T> Default for Intervals<T> {
    fn default() -> Intervals<T> {
        Intervals {
            by_start: BTreeMap::new(),
        }
    }
}

impl<T: Copy> Intervals<T> {
    /// Returns whether no number has a value.
    pub fn is_empty(&self) -> bool {
        self.by_start.is_empty()
    }

    /// Assigns this value to every number in `range`.
    pub fn insert(&mut self, range: Range<u64>, value: T) {
        if !range.is_empty() {
            self.remove(range.clone());
            self.by_start.insert(range.start, (range.end, value));
        }
    }

    /// Removes the numbers in `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        while let Some((found, value)) = self.first_in(&range) {
            self.by_start.remove(&found.start);
            if found.start < range.start {
                self.by_start.insert(found.start, (range.start, value));
            }
            if range.end < found.end {
                self.by_start.insert(range.end, (found.end, value));
            }
        }
    }

    /// The ranges that overlap `range`, uncut and in ascending order.
    pub fn over(&self, range: &Range<u64>) -> impl Iterator<Item = (Range<u64>, T)> {
        let before = self
            .by_start
            .range(..range.start)
            .next_back()
            .filter(|(_, found)| found.0 > range.start);
        let inside = (!range.is_empty()).then(|| self.by_start.range(range.clone()));
        before
            .filter(|_| !range.is_empty())
            .into_iter()
            .chain(inside.into_iter().flatten())
            .map(|(&start, &(end, value))| (start..end, value))
    }

    fn first_in(&self, range: &Range<u64>) -> Option<(Range<u64>, T)> {
        self.over(range).next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    /// Do overlapping insertions and removals leave the same values as in a plain array?
    #[test]
    fn agrees_with_an_array() {
        for seed in 0..200 {
            let (mut rng, mut plain) = (Rng::new(seed), [None; 40]);
            let mut map = Intervals::default();
            for step in 0..30 {
                let start = rng.below(40);
                let range = start..start + rng.below(41 - start);
                let slots = &mut plain[range.start as usize..range.end as usize];
                if rng.chance(0.7) {
                    slots.fill(Some(step));
                    map.insert(range, step);
                } else {
                    slots.fill(None);
                    map.remove(range);
                }
                let (from, to) = (rng.below(41), rng.below(41));
                let queried = from.min(to)..from.max(to);
                let mut found = [None; 40];
                let mut end = 0;
                for (range, value) in map.over(&queried) {
                    assert!(
                        range.start >= end
                            && range.end > queried.start
                            && range.start < queried.end
                    );
                    end = range.end;
                    found[range.start as usize..end as usize].fill(Some(value));
                }
                let queried = queried.start as usize..queried.end as usize;
                assert_eq!(
                    found[queried.clone()],
                    plain[queried],
                    "seed {seed}, step {step}"
                );
            }
        }
    }
}
