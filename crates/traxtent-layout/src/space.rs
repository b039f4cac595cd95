//! The amount of free space, and its fragmentation.

use super::Partition;
use super::partition::len;
use traxtent_units::{Block, Blocks};

/// The free space of a partition. Runs of free blocks are cut at the ends of traxtents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// The number of blocks in traxtents: all blocks of the partition except the excluded ones.
    pub blocks: Blocks,
    /// The number of those blocks that are free.
    pub free: Blocks,
    /// The number of traxtents.
    pub traxtents: u64,
    /// The number of traxtents that are entirely free.
    pub free_traxtents: u64,
    /// The number of blocks in traxtents that are entirely free.
    pub in_free_traxtents: Blocks,
    /// The number of runs of free blocks.
    pub free_runs: u64,
}

impl Space {
    /// Counts the free blocks of a partition by examining every block.
    pub fn count(partition: &Partition, is_free: impl Fn(Block) -> bool) -> Space {
        let mut space = Space::default();
        for traxtent in partition.traxtents() {
            let (mut free, mut before) = (0, false);
            for block in (traxtent.blocks.start.0..traxtent.blocks.end.0).map(Block) {
                let now = is_free(block);
                free += u64::from(now);
                space.free_runs += u64::from(now && !before);
                before = now;
            }
            let size = len(&traxtent.blocks);
            space.blocks += size;
            space.free += Blocks(free);
            space.traxtents += 1;
            if free == size.0 {
                space.free_traxtents += 1;
                space.in_free_traxtents += size;
            }
        }
        space
    }

    /// Returns the share of the free blocks that lie in entirely free traxtents, or 0 if none is
    /// free.
    pub fn share_in_free_traxtents(&self) -> f64 {
        ratio(self.in_free_traxtents.0, self.free.0)
    }

    /// Returns the mean length of runs of free blocks divided by the mean size of traxtents, or 0
    /// if no block is free.
    pub fn mean_run_over_traxtent(&self) -> f64 {
        ratio(self.free.0, self.free_runs) * ratio(self.traxtents, self.blocks.0)
    }

    /// Returns the share of the blocks that are in use.
    pub fn share_in_use(&self) -> f64 {
        ratio(self.blocks.0 - self.free.0, self.blocks.0)
    }
}

fn ratio(of: u64, to: u64) -> f64 {
    if to == 0 { 0.0 } else { of as f64 / to as f64 }
}
