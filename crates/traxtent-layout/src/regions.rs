//! The regions within which the allocator finds runs of blocks: traxtents, or groups that ignore
//! tracks.

use std::ops::Range;

use super::partition::len;
use super::{LayoutError, Partition};
use traxtent_units::{Block, Blocks};

/// The regions of a partition, in ascending order.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    partition: Partition,
    /// The size of a group in blocks; `None` if regions are traxtents.
    group: Option<u64>,
}

/// A region and its position. A track without a whole block is an empty region.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub(super) at: usize,
    pub(super) blocks: Range<Block>,
}

impl Regions {
    pub(super) fn traxtents(partition: Partition) -> Regions {
        Regions {
            partition,
            group: None,
        }
    }

    /// Creates groups of `size` blocks. The last group has the remaining blocks.
    pub(super) fn groups(partition: Partition, size: Blocks) -> Result<Regions, LayoutError> {
        if !(1..1 << 32).contains(&size.0) {
            return Err(LayoutError::Group(size));
        }
        Ok(Regions {
            partition,
            group: Some(size.0),
        })
    }

    pub(super) fn partition(&self) -> &Partition {
        &self.partition
    }

    pub(super) fn are_traxtents(&self) -> bool {
        self.group.is_none()
    }

    /// Returns the size of each region in blocks, in order.
    pub(super) fn sizes(&self) -> Vec<u32> {
        match self.group {
            None => {
                let tracks = self.partition.whole_blocks_by_track();
                tracks.map(|track| track.size().0 as u32).collect()
            }
            Some(group) => {
                let groups = self.partition.blocks().0.div_ceil(group) as usize;
                let sizes = (0..groups).map(|at| len(&self.group_at(at, group)).0 as u32);
                sizes.collect()
            }
        }
    }

    /// Returns the region that contains a block. `None` if the block is excluded, or beyond the end
    /// of the partition.
    pub(super) fn of(&self, block: Block) -> Option<Region> {
        self.from(block)
            .filter(|region| region.blocks.contains(&block))
    }

    /// Returns the region that contains a block, or else the first one after it.
    pub(super) fn from(&self, block: Block) -> Option<Region> {
        match self.group {
            None => self.partition.traxtent_from(block).map(|traxtent| Region {
                at: traxtent.track - self.partition.tracks().start,
                blocks: traxtent.blocks,
            }),
            Some(group) if block.0 < self.partition.blocks().0 => {
                Some(self.at((block.0 / group) as usize))
            }
            Some(_) => None,
        }
    }

    /// Returns the region at a position, which must exist.
    pub(super) fn at(&self, at: usize) -> Region {
        let blocks = match self.group {
            None => {
                let track = self.partition.tracks().start + at;
                let traxtent = self.partition.traxtent_on(track);
                traxtent.map_or(Block(0)..Block(0), |traxtent| traxtent.blocks)
            }
            Some(group) => self.group_at(at, group),
        };
        Region { at, blocks }
    }

    /// Splits a range by region. Returns each region that the range meets, with its part of the
    /// range.
    pub(super) fn parts(
        &self,
        range: Range<Block>,
    ) -> impl Iterator<Item = (Region, Range<Block>)> {
        let mut from = range.start;
        std::iter::from_fn(move || {
            let region = self.from(from).filter(|_| from < range.end)?;
            let part = region.blocks.start.max(from)..region.blocks.end.min(range.end);
            from = part.end;
            (!part.is_empty()).then_some((region, part))
        })
    }

    fn group_at(&self, at: usize, group: u64) -> Range<Block> {
        let start = at as u64 * group;
        Block(start)..Block((start + group).min(self.partition.blocks().0))
    }
}
