//! Block allocation: groups of blocks, and the rules of placement.
//!
//! The source is paper T, sections 4.2.1 and 4.2.2. Left out: fragments of blocks (a file's end
//! takes a whole block), and the rotational positions of older systems.

use std::ops::Range;

use traxtent_layout::{Allocator, AllocatorKind, Partition};
use traxtent_units::{Block, Blocks};

use super::config::{Config, Preallocation};

/// The blocks of a partition and their allocation.
#[derive(Debug)]
pub(super) struct BlockSpace {
    /// The allocator of the blocks. With [`AllocatorKind::Traxtent`], it never allocates excluded
    /// blocks.
    blocks: Allocator,
    group_blocks: u64,
    metadata: u64,
    /// The number of free blocks in each group.
    free: Vec<u64>,
}

impl BlockSpace {
    /// Creates an empty file system.
    pub(super) fn new(partition: Partition, config: &Config) -> BlockSpace {
        let group_blocks = u64::from(config.group_blocks);
        let groups = partition.blocks().0.div_ceil(group_blocks);
        let blocks = match config.placement {
            AllocatorKind::Traxtent => Allocator::new(partition, AllocatorKind::Traxtent),
            AllocatorKind::Conventional => Allocator::in_groups(partition, Blocks(group_blocks))
                .expect("a configuration's groups are in bounds"),
        };
        let mut space = BlockSpace {
            blocks,
            group_blocks,
            metadata: u64::from(config.group_metadata),
            free: vec![0; groups as usize],
        };
        for group in 0..groups {
            let (start, end) = (space.start_of(group).0, space.end_of(group));
            let metadata = start..(start + space.metadata).min(end);
            for run in space.free_runs(metadata).collect::<Vec<_>>() {
                space.blocks.claim(&run).expect("nothing is in use");
            }
            let runs = space.free_runs(start..end);
            space.free[group as usize] = runs.map(|run| run.end.0 - run.start.0).sum();
        }
        space
    }

    pub(super) fn partition(&self) -> &Partition {
        self.blocks.partition()
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

    /// The first group from this one on, wrapping around, that has at least the mean number of free
    /// blocks.
    pub(super) fn group_with_room(&self, from: u64) -> u64 {
        let groups = self.groups();
        let mean = self.free.iter().sum::<u64>() / groups;
        (from..groups)
            .chain(0..from)
            .find(|group| self.free[*group as usize] >= mean)
            .expect("not all are below the mean")
    }

    /// Allocates a block for a file whose last block is `last`, in the same group if possible.
    ///
    /// Returns `None` if the file system is full.
    pub(super) fn allocate_after(&mut self, last: Block) -> Option<Block> {
        let group = self.group_of(last);
        let next = Block(last.0 + 1);
        let block = if self.blocks.is_free(next) && self.group_of(next) == group {
            Some(next)
        } else if self.blocks.strategy() == AllocatorKind::Traxtent {
            self.closest_traxtent(last, group)
        } else {
            None
        };
        let block = block.or_else(|| self.first_free(next.0..self.end_of(group)));
        let block = block.or_else(|| self.first_in(group))?;
        self.take(&one(block));
        Some(block)
    }

    /// Allocates a block for a file that begins in a group.
    ///
    /// Returns `None` if the file system is full.
    pub(super) fn allocate_in_group(&mut self, group: u64) -> Option<Block> {
        let block = self.first_in(group)?;
        self.take(&one(block));
        Some(block)
    }

    /// Reserves the free blocks directly after a file's newest block, up to the policy's limit.
    pub(super) fn set_aside(&mut self, block: Block, how: Preallocation) -> Range<Block> {
        let next = block.0 + 1;
        let most = match how {
            Preallocation::Nothing => next,
            Preallocation::Blocks(count) => block.0 + u64::from(count),
            Preallocation::Track => {
                let traxtent = self.partition().traxtent_of(block);
                traxtent.map_or(next, |traxtent| traxtent.blocks.end.0)
            }
        };
        let end = most.min(self.end_of(self.group_of(block)));
        let run = self.free_runs(next..end.max(next)).next();
        let run = run.filter(|run| run.start.0 == next);
        let run = run.unwrap_or(Block(next)..Block(next));
        if !run.is_empty() {
            self.take(&run);
        }
        run
    }

    /// Allocates `count` consecutive blocks within one traxtent: that of `near`, or else the first
    /// one after it in the group, with a sufficient free run. Returns `None` if there is none.
    pub(super) fn within_traxtent(&mut self, near: Block, count: u64) -> Option<Range<Block>> {
        let group = self.group_of(near);
        let mut traxtent = self.partition().traxtent_from(near)?;
        while self.group_of(traxtent.blocks.start) == group {
            let end = traxtent.blocks.end.0.min(self.end_of(group));
            let mut runs = self.free_runs(traxtent.blocks.start.0..end);
            if let Some(run) = runs.find(|run| run.end.0 - run.start.0 >= count) {
                drop(runs);
                let blocks = run.start..Block(run.start.0 + count);
                self.take(&blocks);
                return Some(blocks);
            }
            drop(runs);
            traxtent = self.partition().next(&traxtent)?;
        }
        None
    }

    /// Releases blocks of one group.
    pub(super) fn release(&mut self, blocks: &Range<Block>) {
        let freed = self.blocks.free(blocks);
        freed.expect("a file's blocks are in use");
        let group = self.group_of(blocks.start) as usize;
        self.free[group] += blocks.end.0 - blocks.start.0;
    }

    /// Allocates free blocks of one group.
    fn take(&mut self, blocks: &Range<Block>) {
        let taken = self.blocks.claim(blocks);
        taken.expect("only free blocks are taken");
        let group = self.group_of(blocks.start) as usize;
        self.free[group] -= blocks.end.0 - blocks.start.0;
    }

    fn free_runs(&self, blocks: Range<u64>) -> impl Iterator<Item = Range<Block>> {
        self.blocks
            .free_runs(Block(blocks.start)..Block(blocks.end))
    }

    fn end_of(&self, group: u64) -> u64 {
        ((group + 1) * self.group_blocks).min(self.partition().blocks().0)
    }

    /// The first block of the closest traxtent of the group, after this block, that is entirely
    /// free.
    fn closest_traxtent(&self, from: Block, group: u64) -> Option<Block> {
        let end = self.end_of(group);
        let mut next = self.partition().traxtent_from(Block(from.0 + 1));
        while let Some(traxtent) = next.filter(|traxtent| traxtent.blocks.end.0 <= end) {
            let blocks = traxtent.blocks.start.0..traxtent.blocks.end.0;
            if self.free_runs(blocks).eq([traxtent.blocks.clone()]) {
                return Some(traxtent.blocks.start);
            }
            next = self.partition().next(&traxtent);
        }
        None
    }

    /// The first free block of a group, or of the next group that has one.
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

    fn first_free(&self, blocks: Range<u64>) -> Option<Block> {
        self.free_runs(blocks).next().map(|run| run.start)
    }
}

/// A run of one block.
pub(super) fn one(block: Block) -> Range<Block> {
    block..Block(block.0 + 1)
}
