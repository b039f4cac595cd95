//! The free blocks of all regions: their positions, the lengths of their runs, and their number.

use std::ops::Range;

use super::Space;
use super::free_map::FreeMap;
use super::nearest::MaxTree;
use super::partition::len;
use super::regions::Region;
use traxtent_units::{Block, Blocks};

/// Free blocks, indexed by block and by region, with their totals.
#[derive(Clone, Debug)]
pub(super) struct FreeSpace {
    pub(super) map: FreeMap,
    /// The size of each region that is entirely free, and 0 for the others.
    pub(super) whole: MaxTree,
    /// The longest free run of each region that is not entirely free, and 0 for the others.
    pub(super) partial: MaxTree,
    pub(super) space: Space,
}

impl FreeSpace {
    /// Creates the free space of a partition of `blocks` blocks, all free. `sizes` are the sizes of
    /// the regions, which do not contain excluded blocks.
    pub(super) fn new(blocks: Blocks, sizes: Vec<u32>) -> FreeSpace {
        let sum = Blocks(sizes.iter().map(|&size| u64::from(size)).sum());
        let count = sizes.iter().filter(|&&size| size > 0).count() as u64;
        FreeSpace {
            map: FreeMap::new(blocks),
            partial: MaxTree::new(vec![0; sizes.len()]),
            whole: MaxTree::new(sizes),
            space: Space {
                blocks: sum,
                free: sum,
                traxtents: count,
                free_traxtents: count,
                in_free_traxtents: sum,
                free_runs: count,
            },
        }
    }

    /// Returns the length of the longest run of free blocks in any region.
    pub(super) fn longest(&self) -> u32 {
        self.whole.largest().max(self.partial.largest())
    }

    /// Marks free blocks of one region as used.
    pub(super) fn use_run(&mut self, region: &Region, blocks: &Range<Block>) {
        let free = self.run_around(region, blocks);
        self.map.set_used(blocks, true);
        let (left, right) = (free.start..blocks.start, blocks.end..free.end);
        let space = &mut self.space;
        space.free -= len(blocks);
        space.free_runs -= 1;
        space.free_runs += u64::from(!left.is_empty()) + u64::from(!right.is_empty());
        let longest = if free == region.blocks {
            self.whole.set(region.at, 0);
            space.free_traxtents -= 1;
            space.in_free_traxtents -= len(&free);
            len(&left).max(len(&right)).0 as u32
        } else if u64::from(self.partial.get(region.at)) > len(&free).0 {
            return;
        } else {
            let runs = self.map.free_runs(region.blocks.clone());
            runs.map(|run| len(&run).0).max().unwrap_or(0) as u32
        };
        self.partial.set(region.at, longest);
    }

    /// Marks used blocks of one region as free.
    pub(super) fn free_run(&mut self, region: &Region, blocks: &Range<Block>) {
        self.map.set_used(blocks, false);
        let free = self.run_around(region, blocks);
        let space = &mut self.space;
        space.free += len(blocks);
        space.free_runs += 1;
        space.free_runs -= u64::from(free.start < blocks.start) + u64::from(blocks.end < free.end);
        let length = len(&free).0 as u32;
        if free == region.blocks {
            self.partial.set(region.at, 0);
            self.whole.set(region.at, length);
            space.free_traxtents += 1;
            space.in_free_traxtents += len(&free);
        } else {
            let longest = self.partial.get(region.at).max(length);
            self.partial.set(region.at, longest);
        }
    }

    /// Returns the region's run of free blocks that contains `blocks`.
    fn run_around(&self, region: &Region, blocks: &Range<Block>) -> Range<Block> {
        let before = region.blocks.start..blocks.start;
        let after = blocks.end..region.blocks.end;
        let start = self.map.last_used(&before);
        let start = start.map_or(before.start, |used| used + Blocks(1));
        let end = self.map.first(&after, true).unwrap_or(after.end);
        start..end
    }
}
