//! What an allocator keeps runs of blocks within: traxtents, or groups that know no tracks.

use std::ops::Range;

use super::partition::len;
use super::{LayoutError, Partition};
use crate::units::{Block, Blocks};

/// The regions of a partition, ascending.
#[derive(Clone, Debug)]
pub(super) struct Regions {
    partition: Partition,
    /// Blocks of a group; none if regions are traxtents.
    group: Option<u64>,
}

/// A region and its position. A track without a whole block leaves an empty one.
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

    /// Groups of so many blocks; the last has what is left.
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

    /// How many blocks each region has, in order.
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

    /// The region that a block is in; none if it is excluded, or beyond the partition.
    pub(super) fn of(&self, block: Block) -> Option<Region> {
        self.from(block)
            .filter(|region| region.blocks.contains(&block))
    }

    /// The region that a block is in, or else the first one behind it.
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

    /// The region at a position.
    ///
    /// # Panics
    /// If there is none.
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

    /// The part of a range in each region that it meets.
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
