//! How much is free, and in how many pieces.

use super::Partition;
use super::partition::len;
use crate::units::{Block, Blocks};

/// The free space of a partition. Runs of free blocks are cut at the ends of traxtents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Blocks in traxtents: those of the partition less the excluded ones.
    pub blocks: Blocks,
    /// Those of them that are free.
    pub free: Blocks,
    /// How many traxtents.
    pub traxtents: u64,
    /// Those of them that are free whole.
    pub free_traxtents: u64,
    /// Blocks in those.
    pub in_free_traxtents: Blocks,
    /// Runs of free blocks.
    pub free_runs: u64,
}

impl Space {
    /// Counts, with a look at every block, the free ones of a partition.
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

    /// The share of the free blocks that lie in traxtents free whole; 0 if none is free.
    pub fn share_in_free_traxtents(&self) -> f64 {
        ratio(self.in_free_traxtents.0, self.free.0)
    }

    /// The mean run of free blocks over the mean traxtent; 0 if no block is free.
    pub fn mean_run_over_traxtent(&self) -> f64 {
        ratio(self.free.0, self.free_runs) * ratio(self.traxtents, self.blocks.0)
    }

    /// The share of the blocks that is in use.
    pub fn share_in_use(&self) -> f64 {
        ratio(self.blocks.0 - self.free.0, self.blocks.0)
    }
}

fn ratio(of: u64, to: u64) -> f64 {
    if to == 0 { 0.0 } else { of as f64 / to as f64 }
}
