//! The buffer cache: blocks of the partition, the least recently used ones leave first.

use lru::LruCache;
use traxtent_core::units::{Block, SimTime};

/// What is known of a block in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    /// Sectors from its first on that are there or have been asked for.
    pub(super) asked: u32,
    /// Sectors that are there.
    pub(super) there: u32,
    /// Since when it has differed from the disk.
    pub(super) dirty: Option<SimTime>,
    /// Whether reading it is the time to look what has been read ahead.
    pub(super) mark: bool,
    /// Writes of it under way.
    pub(super) writing: u32,
}

impl Buffer {
    /// Whether it has to stay where it is.
    fn is_held(&self) -> bool {
        self.there < self.asked || self.dirty.is_some() || self.writing > 0
    }
}

/// Blocks in memory.
#[derive(Debug)]
pub(super) struct Cache {
    buffers: LruCache<Block, Buffer>,
    capacity: usize,
    block_sectors: u32,
}

impl Cache {
    pub(super) fn new(capacity: usize, block_sectors: u32) -> Cache {
        Cache {
            buffers: LruCache::unbounded(),
            capacity,
            block_sectors,
        }
    }

    /// How many blocks it holds.
    pub(super) fn len(&self) -> usize {
        self.buffers.len()
    }

    /// Sectors of a block that are there or have been asked for.
    pub(super) fn asked(&self, block: Block) -> u32 {
        self.buffers.peek(&block).map_or(0, |buffer| buffer.asked)
    }

    /// Whether all of a block has been asked for.
    pub(super) fn has(&self, block: Block) -> bool {
        self.asked(block) == self.block_sectors
    }

    /// Whether all of a block is there.
    pub(super) fn is_there(&self, block: Block) -> bool {
        let buffer = self.buffers.peek(&block);
        buffer.is_some_and(|buffer| buffer.there == self.block_sectors)
    }

    /// Makes a block the most recently used one.
    pub(super) fn touch(&mut self, block: Block) {
        self.buffers.promote(&block);
    }

    /// Marks a block, if it is in memory.
    pub(super) fn mark(&mut self, block: Block) {
        if let Some(buffer) = self.get(block) {
            buffer.mark = true;
        }
    }

    /// Takes the mark off a block; says whether there was one.
    pub(super) fn take_mark(&mut self, block: Block) -> bool {
        let buffer = self.get(block);
        buffer.is_some_and(|buffer| std::mem::take(&mut buffer.mark))
    }

    /// A block that is in memory.
    pub(super) fn get(&mut self, block: Block) -> Option<&mut Buffer> {
        self.buffers.peek_mut(&block)
    }

    /// A block, which comes into memory empty if it is not there. None, if every buffer is held.
    pub(super) fn claim(&mut self, block: Block) -> Option<&mut Buffer> {
        if !self.buffers.contains(&block) && !self.make_room() {
            return None;
        }
        Some(self.buffers.get_or_insert_mut(block, Buffer::default))
    }

    /// Forgets a block.
    pub(super) fn forget(&mut self, block: Block) {
        self.buffers.pop(&block);
    }

    /// Whether there is room for one block more, after the least recently used one that may leave has left.
    fn make_room(&mut self) -> bool {
        let mut passed = 0;
        while self.buffers.len() >= self.capacity {
            if passed == self.buffers.len() {
                return false;
            }
            match self.buffers.peek_lru() {
                Some((&block, buffer)) if buffer.is_held() => {
                    self.buffers.promote(&block);
                    passed += 1;
                }
                _ => {
                    self.buffers.pop_lru();
                }
            }
        }
        true
    }
}
