//! Which block a file gets next: groups of blocks, and the rules of placement.
//!
//! Paper T, sections 4.2.1 and 4.2.2. Left out: fragments of blocks (a file's end takes a whole block), and the rotational
//! positions of old.

use std::ops::Range;

use traxtent_core::layout::Partition;
use traxtent_core::units::Block;

use super::config::{Config, Placement};

/// The blocks of a partition and who may have them.
#[derive(Debug)]
pub(super) struct Space {
    partition: Partition,
    placement: Placement,
    group_blocks: u64,
    metadata: u64,
    used: Vec<bool>,
    /// Free blocks of each group.
    free: Vec<u64>,
}

impl Space {
    /// An empty file system.
    pub(super) fn new(partition: Partition, config: &Config) -> Space {
        let blocks = partition.blocks().0;
        let group_blocks = u64::from(config.group_blocks);
        let metadata = u64::from(config.group_metadata);
        let mut used = vec![false; blocks as usize];
        for (number, used) in used.iter_mut().enumerate() {
            *used = (number as u64) % group_blocks < metadata;
        }
        if config.placement == Placement::Traxtents {
            for excluded in partition.excluded() {
                used[excluded.0 as usize] = true;
            }
        }
        let free = used.chunks(group_blocks as usize);
        let free = free
            .map(|group| group.iter().filter(|used| !**used).count() as u64)
            .collect();
        Space {
            partition,
            placement: config.placement,
            group_blocks,
            metadata,
            used,
            free,
        }
    }

    pub(super) fn partition(&self) -> &Partition {
        &self.partition
    }

    pub(super) fn groups(&self) -> u64 {
        self.free.len() as u64
    }

    /// The group of a block.
    pub(super) fn group_of(&self, block: Block) -> u64 {
        block.0 / self.group_blocks
    }

    /// The first block of a group.
    pub(super) fn start_of(&self, group: u64) -> Block {
        Block(group * self.group_blocks)
    }

    /// The first group at or behind this one, else from the first, that has at least the mean number of free blocks.
    pub(super) fn roomy_group(&self, from: u64) -> u64 {
        let groups = self.groups();
        let mean = self.free.iter().sum::<u64>() / groups;
        (from..groups)
            .chain(0..from)
            .find(|group| self.free[*group as usize] >= mean)
            .expect("not all are below the mean")
    }

    /// A block for a file whose last block is `last`, in the same group if there is one.
    ///
    /// None if the file system is full.
    pub(super) fn follow(&mut self, last: Block) -> Option<Block> {
        let group = self.group_of(last);
        let next = Block(last.0 + 1);
        let block = if self.is_free(next) && self.group_of(next) == group {
            Some(next)
        } else if self.placement == Placement::Traxtents {
            self.closest_traxtent(last, group)
        } else {
            None
        };
        let block = block.or_else(|| self.first_free(next.0..self.end_of(group)));
        let block = block.or_else(|| self.first_in(group))?;
        self.take(block);
        Some(block)
    }

    /// A block for a file that begins in a group.
    ///
    /// None if the file system is full.
    pub(super) fn begin(&mut self, group: u64) -> Option<Block> {
        let block = self.first_in(group)?;
        self.take(block);
        Some(block)
    }

    /// So many blocks in a row within one traxtent, the closest one that can hold them from its beginning or behind what it
    /// holds already; none if there is none in the group.
    pub(super) fn within_traxtent(&mut self, near: Block, count: u64) -> Option<Range<Block>> {
        let group = self.group_of(near);
        let mut traxtent = self.partition.traxtent_from(near)?;
        while self.group_of(traxtent.blocks.start) == group {
            let end = traxtent.blocks.end.0.min(self.end_of(group));
            let start = (traxtent.blocks.start.0..end).find(|block| {
                (*block..*block + count).all(|block| block < end && self.is_free(Block(block)))
            });
            if let Some(start) = start {
                let blocks = Block(start)..Block(start + count);
                for block in start..start + count {
                    self.take(Block(block));
                }
                return Some(blocks);
            }
            traxtent = self.partition.next(&traxtent)?;
        }
        None
    }

    /// Gives a block back.
    pub(super) fn release(&mut self, block: Block) {
        let group = self.group_of(block) as usize;
        let used = &mut self.used[block.0 as usize];
        assert!(*used, "block {} was free", block.0);
        *used = false;
        self.free[group] += 1;
    }

    fn is_free(&self, block: Block) -> bool {
        self.used.get(block.0 as usize) == Some(&false)
    }

    fn take(&mut self, block: Block) {
        let group = self.group_of(block) as usize;
        let used = &mut self.used[block.0 as usize];
        assert!(!*used, "block {} was in use", block.0);
        *used = true;
        self.free[group] -= 1;
    }

    fn end_of(&self, group: u64) -> u64 {
        ((group + 1) * self.group_blocks).min(self.used.len() as u64)
    }

    /// The first block of the closest traxtent of the group that is all free, ahead of this block if there is one.
    fn closest_traxtent(&self, from: Block, group: u64) -> Option<Block> {
        let end = self.end_of(group);
        let mut next = self.partition.traxtent_from(Block(from.0 + 1));
        while let Some(traxtent) = next.filter(|traxtent| traxtent.blocks.end.0 <= end) {
            let mut blocks = traxtent.blocks.start.0..traxtent.blocks.end.0;
            if blocks.all(|block| self.is_free(Block(block))) {
                return Some(traxtent.blocks.start);
            }
            next = self.partition.next(&traxtent);
        }
        None
    }

    /// The first free block of a group, or of the first group behind it that has one.
    fn first_in(&self, group: u64) -> Option<Block> {
        let groups = self.groups();
        (group..groups)
            .chain(0..group)
            .filter(|group| self.free[*group as usize] > 0)
            .find_map(|group| {
                let start = self.start_of(group).0 + self.metadata;
                self.first_free(start..self.end_of(group))
            })
    }

    fn first_free(&self, mut blocks: Range<u64>) -> Option<Block> {
        blocks.find(|block| self.is_free(Block(*block))).map(Block)
    }
}
