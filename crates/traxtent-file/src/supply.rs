//! Blocks to which parts of files can be moved.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use traxtent_layout::{Partition, Traxtent};
use traxtent_units::{Block, Blocks};

/// The source of a run of available blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Source {
    /// The position of the donor file in its pool.
    pub(crate) donor: usize,
    /// The position in the donor file, in blocks, of the first block of the run.
    pub(crate) block: u64,
}

/// A run of available blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) blocks: Range<Block>,
    pub(crate) source: Source,
}

impl Run {
    /// Returns the part of the run within `range`.
    fn within(&self, range: &Range<Block>) -> Run {
        let start = self.blocks.start.max(range.start);
        let end = self.blocks.end.min(range.end).max(start);
        Run {
            blocks: start..end,
            source: Source {
                donor: self.source.donor,
                block: self.source.block + (start.0 - self.blocks.start.0),
            },
        }
    }
}

/// The available blocks of a partition, and the traxtents that are available as a whole.
#[derive(Clone, Debug)]
pub(crate) struct Supply {
    partition: Partition,
    /// Disjoint runs by their first block.
    runs: BTreeMap<u64, Run>,
    /// The positions in the map of the tracks on which all whole blocks are available.
    whole: BTreeSet<usize>,
}

/// The number of tracks on each side of a block that are searched for space for the last blocks of
/// a stretch. The block's own track counts as the first one after it.
const TRACKS_SEARCHED: usize = 64;

impl Supply {
    /// Creates an empty supply.
    pub(crate) fn new(partition: Partition) -> Supply {
        Supply {
            partition,
            runs: BTreeMap::new(),
            whole: BTreeSet::new(),
        }
    }

    /// Returns the partition.
    pub(crate) fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Returns the number of traxtents that are available as a whole.
    pub(crate) fn whole_traxtents(&self) -> usize {
        self.whole.len()
    }

    /// Adds blocks that are not in the supply yet.
    pub(crate) fn add(&mut self, run: Run) {
        if run.blocks.is_empty() {
            return;
        }
        debug_assert!(
            !self.covers_any(&run.blocks),
            "{:?} is available twice",
            run.blocks
        );
        let blocks = run.blocks.clone();
        self.runs.insert(blocks.start.0, run);
        let mut next = self.partition.traxtent_from(blocks.start);
        while let Some(traxtent) = next.filter(|found| found.blocks.start < blocks.end) {
            if self.covers(&traxtent.blocks) {
                self.whole.insert(traxtent.track);
            }
            next = self.partition.next(&traxtent);
        }
    }

    /// Removes available blocks, and returns their runs in order.
    ///
    /// # Panics
    /// Panics if a block is not available.
    pub(crate) fn take(&mut self, blocks: &Range<Block>) -> Vec<Run> {
        assert!(self.covers(blocks), "{blocks:?} is not available");
        let mut taken = Vec::new();
        let mut at = blocks.start;
        while at < blocks.end {
            let (&key, _) = self.runs.range(..=at.0).next_back().expect("covered");
            let run = self.runs.remove(&key).expect("found above");
            let part = run.within(&(at..blocks.end));
            let before = run.within(&(run.blocks.start..at));
            let after = run.within(&(part.blocks.end..run.blocks.end));
            for rest in [before, after] {
                if !rest.blocks.is_empty() {
                    self.runs.insert(rest.blocks.start.0, rest);
                }
            }
            at = part.blocks.end;
            taken.push(part);
        }
        let mut next = self.partition.traxtent_from(blocks.start);
        while let Some(traxtent) = next.filter(|found| found.blocks.start < blocks.end) {
            self.whole.remove(&traxtent.track);
            next = self.partition.next(&traxtent);
        }
        taken
    }

    /// Returns the traxtent closest to a block among those that are available as a whole.
    pub(crate) fn closest_whole(&self, near: Block) -> Option<Traxtent> {
        let track = self.track_near(near);
        let before = self.whole.range(..track).next_back();
        let after = self.whole.range(track..).next();
        let found = match (before, after) {
            (Some(&before), Some(&after)) if track - before < after - track => before,
            (_, Some(&after)) => after,
            (Some(&before), None) => before,
            (None, None) => return None,
        };
        self.partition.traxtent_on(found)
    }

    /// Returns `count` available blocks on one track, close to a block, for the last blocks of a
    /// stretch. Prefers tracks that are not available as a whole.
    pub(crate) fn closest_run(&self, near: Block, count: Blocks) -> Option<Range<Block>> {
        let track = self.track_near(near);
        let tracks = self.partition.tracks();
        let low = track.saturating_sub(TRACKS_SEARCHED).max(tracks.start);
        let high = (track + TRACKS_SEARCHED).min(tracks.end);
        let mut candidates: Vec<usize> = (low..high)
            .filter(|track| !self.whole.contains(track))
            .collect();
        candidates.sort_by_key(|candidate| candidate.abs_diff(track));
        let partial = candidates
            .into_iter()
            .filter_map(|track| self.partition.traxtent_on(track))
            .find_map(|traxtent| self.run_in(&traxtent.blocks, count));
        partial.or_else(|| {
            let whole = self.closest_whole(near)?.blocks;
            let run = whole.start..whole.start + count;
            (run.end <= whole.end).then_some(run)
        })
    }

    /// Returns the first available run of `count` blocks within a range.
    fn run_in(&self, range: &Range<Block>, count: Blocks) -> Option<Range<Block>> {
        let first = self.runs.range(..=range.start.0).next_back();
        let rest = self.runs.range(range.start.0 + 1..range.end.0);
        let mut found: Option<Range<Block>> = None;
        for (_, run) in first.into_iter().chain(rest) {
            let part = run.within(range).blocks;
            match &mut found {
                _ if part.is_empty() => {}
                Some(joined) if joined.end == part.start => joined.end = part.end,
                _ => found = Some(part),
            }
            if let Some(joined) = &found
                && joined.start + count <= joined.end
            {
                return Some(joined.start..joined.start + count);
            }
        }
        None
    }

    fn track_near(&self, block: Block) -> usize {
        let last = self.partition.tracks().end.saturating_sub(1);
        self.partition
            .traxtent_from(block)
            .map_or(last, |traxtent| traxtent.track)
    }

    fn covers(&self, blocks: &Range<Block>) -> bool {
        let mut at = blocks.start;
        while at < blocks.end {
            match self.runs.range(..=at.0).next_back() {
                Some((_, run)) if run.blocks.end > at => at = run.blocks.end,
                _ => return false,
            }
        }
        true
    }

    fn covers_any(&self, blocks: &Range<Block>) -> bool {
        let before = self.runs.range(..blocks.end.0).next_back();
        before.is_some_and(|(_, run)| run.blocks.end > blocks.start)
    }
}

#[cfg(test)]
mod tests;
