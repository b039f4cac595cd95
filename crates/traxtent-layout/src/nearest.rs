//! A sequence of numbers with a search for the nearest one that is large enough.

use std::ops::Range;

/// The largest number of children of a tree node.
const FANOUT: usize = 16;

/// A tree over a sequence of numbers. Each node holds the largest of its children's numbers.
#[derive(Clone, Debug)]
pub(super) struct MaxTree {
    /// The levels of the tree, starting with the numbers themselves.
    levels: Vec<Vec<u32>>,
}

impl MaxTree {
    pub(super) fn new(numbers: Vec<u32>) -> MaxTree {
        let mut levels = vec![numbers];
        while let Some(last) = levels.last().filter(|last| last.len() > 1) {
            let largest = |part: &[u32]| part.iter().copied().max().unwrap_or(0);
            let above = last.chunks(FANOUT).map(largest).collect();
            levels.push(above);
        }
        MaxTree { levels }
    }

    pub(super) fn get(&self, at: usize) -> u32 {
        self.levels[0][at]
    }

    /// Returns the largest number in the sequence.
    pub(super) fn largest(&self) -> u32 {
        let top = self.levels.last();
        top.and_then(|top| top.first()).copied().unwrap_or(0)
    }

    pub(super) fn set(&mut self, at: usize, number: u32) {
        let (mut at, mut new) = (at, number);
        for level in 0..self.levels.len() {
            let old = std::mem::replace(&mut self.levels[level][at], new);
            if old == new {
                return;
            }
            at /= FANOUT;
            let Some(above) = self.levels.get(level + 1) else {
                return;
            };
            let largest = above[at];
            // A number that was not the largest, and did not become it, changes nothing above.
            if old < largest && new <= largest {
                return;
            }
            if new < largest {
                new = self.largest_child(level, at);
            }
        }
    }

    /// Returns the first position at or after `at` whose number is at least `least`.
    pub(super) fn at_or_after(&self, at: usize, least: u32) -> Option<usize> {
        let (mut level, mut at) = (0, at.min(self.levels[0].len()));
        // Go up until this node or a sibling to its right is large enough.
        loop {
            let row = self.levels.get(level)?;
            let end = (at / FANOUT * FANOUT + FANOUT).min(row.len());
            if let Some(found) = (at..end).find(|&at| row[at] >= least) {
                return Some(self.down(level, found, |row, mut children| {
                    children.find(|&child| row[child] >= least)
                }));
            }
            at = at / FANOUT + 1;
            level += 1;
        }
    }

    /// Returns the last position before `at` whose number is at least `least`.
    pub(super) fn before(&self, at: usize, least: u32) -> Option<usize> {
        let (mut level, mut at) = (0, at.min(self.levels[0].len()));
        loop {
            let row = self.levels.get(level)?;
            let end = at.min(row.len());
            // The search here covers exactly the part of the row that is before `at` and has the
            // same parent.
            let start = at / FANOUT * FANOUT;
            if let Some(found) = (start..end).rev().find(|&at| row[at] >= least) {
                return Some(self.down(level, found, |row, mut children| {
                    children.rfind(|&child| row[child] >= least)
                }));
            }
            at /= FANOUT;
            level += 1;
        }
    }

    /// Descends from a node, taking the child that `choose` returns at each level. Returns the
    /// position of the number reached.
    fn down(
        &self,
        level: usize,
        mut at: usize,
        choose: impl Fn(&[u32], Range<usize>) -> Option<usize>,
    ) -> usize {
        for level in (0..level).rev() {
            let child = choose(&self.levels[level], self.children(level, at));
            at = child.expect("a node holds its largest child's number");
        }
        at
    }

    fn largest_child(&self, level: usize, parent: usize) -> u32 {
        let children = &self.levels[level][self.children(level, parent)];
        children.iter().copied().max().unwrap_or(0)
    }

    /// Returns the nodes of a level that are children of one node of the next level.
    fn children(&self, level: usize, parent: usize) -> Range<usize> {
        parent * FANOUT..(parent * FANOUT + FANOUT).min(self.levels[level].len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Does each query give the same result as a linear search?
        #[test]
        fn agrees_with_a_linear_search(
            numbers in prop::collection::vec(0..9_u32, 1..700),
            changes in prop::collection::vec((0..700_usize, 0..9_u32), 0..60),
        ) {
            let mut row = numbers.clone();
            let mut tree = MaxTree::new(numbers);
            for (at, number) in changes {
                let at = at % row.len();
                row[at] = number;
                tree.set(at, number);
                prop_assert_eq!(tree.largest(), row.iter().copied().max().unwrap());
                for least in [1, number, 8] {
                    let after = (at..row.len()).find(|&at| row[at] >= least);
                    prop_assert_eq!(tree.at_or_after(at, least), after);
                    let before = (0..at).rev().find(|&at| row[at] >= least);
                    prop_assert_eq!(tree.before(at, least), before);
                }
            }
            prop_assert_eq!(tree.at_or_after(row.len(), 0), None);
        }
    }
}
