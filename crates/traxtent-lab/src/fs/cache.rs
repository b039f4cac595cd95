//! The buffer cache: blocks of the partition, evicted in least recently used order.

use lru::LruCache;
use traxtent_units::{Block, SimTime};

/// The state of a block in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Buffer {
    /// The number of sectors, from its first, that are in memory or have been requested.
    pub(super) requested_sectors: u32,
    /// The number of sectors that are in memory.
    pub(super) valid_sectors: u32,
    /// The time since which the block has differed from the disk.
    pub(super) dirty: Option<SimTime>,
    /// Whether reading this block triggers a check of the read-ahead.
    pub(super) mark: bool,
    /// The number of its outstanding writes.
    pub(super) writing: u32,
}

impl Buffer {
    /// Returns whether the block cannot be evicted.
    fn is_pinned(&self) -> bool {
        self.valid_sectors < self.requested_sectors || self.dirty.is_some() || self.writing > 0
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

    /// The number of blocks in the cache.
    pub(super) fn len(&self) -> usize {
        self.buffers.len()
    }

    /// The number of sectors of a block that are in memory or have been requested.
    pub(super) fn requested_sectors(&self, block: Block) -> u32 {
        self.buffers
            .peek(&block)
            .map_or(0, |buffer| buffer.requested_sectors)
    }

    /// Returns whether all of a block has been requested.
    pub(super) fn is_requested(&self, block: Block) -> bool {
        self.requested_sectors(block) == self.block_sectors
    }

    /// Returns whether all of a block is in memory.
    pub(super) fn is_in_memory(&self, block: Block) -> bool {
        let buffer = self.buffers.peek(&block);
        buffer.is_some_and(|buffer| buffer.valid_sectors == self.block_sectors)
    }

    /// Makes a block the most recently used one.
    pub(super) fn touch(&mut self, block: Block) {
        self.buffers.promote(&block);
    }

    /// Marks a block, if it is in the cache.
    pub(super) fn mark(&mut self, block: Block) {
        if let Some(buffer) = self.get(block) {
            buffer.mark = true;
        }
    }

    /// Removes the mark of a block. Returns whether there was one.
    pub(super) fn take_mark(&mut self, block: Block) -> bool {
        let buffer = self.get(block);
        buffer.is_some_and(|buffer| std::mem::take(&mut buffer.mark))
    }

    /// Returns a block, if it is in the cache.
    pub(super) fn get(&mut self, block: Block) -> Option<&mut Buffer> {
        self.buffers.peek_mut(&block)
    }

    /// Returns a block. If it is not in the cache, it is added empty. Returns `None` if no buffer
    /// can be evicted.
    pub(super) fn claim(&mut self, block: Block) -> Option<&mut Buffer> {
        if !self.buffers.contains(&block) && !self.make_room() {
            return None;
        }
        Some(self.buffers.get_or_insert_mut(block, Buffer::default))
    }

    /// Removes a block from the cache.
    pub(super) fn forget(&mut self, block: Block) {
        self.buffers.pop(&block);
    }

    /// Evicts the least recently used blocks that are not pinned until there is room for one more
    /// block. Returns whether there is.
    fn make_room(&mut self) -> bool {
        let mut passed = 0;
        while self.buffers.len() >= self.capacity {
            if passed == self.buffers.len() {
                return false;
            }
            match self.buffers.peek_lru() {
                Some((&block, buffer)) if buffer.is_pinned() => {
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
