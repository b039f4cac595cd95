//! The index: the place of each block. All of it is kept in memory, and its pages are kept in the
//! log, like the inode map of Sprite LFS.

use super::format;
use super::place::LogPlace;
use super::shape::LogShape;
use super::wire::PLACE_BYTES;

/// The places of all blocks, and of the map pages that hold them.
#[derive(Clone, Debug)]
pub(super) struct Index {
    blocks: Vec<LogPlace>,
    pages: Vec<LogPlace>,
    /// For each page: whether the next checkpoint writes it again.
    dirty: Vec<bool>,
    per_page: usize,
    page_bytes: usize,
}

impl Index {
    /// Creates an index of blocks that were never written.
    pub(super) fn new(shape: LogShape, blocks: u64) -> Index {
        let pages = shape.pages(blocks) as usize;
        Index {
            blocks: vec![LogPlace::NOWHERE; blocks as usize],
            pages: vec![LogPlace::NOWHERE; pages],
            dirty: vec![false; pages],
            per_page: shape.entries_per_page() as usize,
            page_bytes: shape.block_bytes(),
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.blocks.len() as u64
    }

    pub(super) fn blocks(&self) -> &[LogPlace] {
        &self.blocks
    }

    pub(super) fn block(&self, block: u64) -> LogPlace {
        self.blocks
            .get(block as usize)
            .copied()
            .unwrap_or(LogPlace::NOWHERE)
    }

    /// Moves a block and returns its previous place.
    pub(super) fn set(&mut self, block: u64, place: LogPlace) -> LogPlace {
        let block = block as usize;
        if self.blocks[block] != place {
            self.dirty[block / self.per_page] = true;
        }
        std::mem::replace(&mut self.blocks[block], place)
    }

    pub(super) fn pages(&self) -> &[LogPlace] {
        &self.pages
    }

    pub(super) fn page(&self, page: u64) -> LogPlace {
        self.pages
            .get(page as usize)
            .copied()
            .unwrap_or(LogPlace::NOWHERE)
    }

    /// Moves a page and returns its previous place.
    pub(super) fn set_page(&mut self, page: u64, place: LogPlace) -> LogPlace {
        std::mem::replace(&mut self.pages[page as usize], place)
    }

    /// Marks a page as dirty. The next checkpoint writes it again.
    pub(super) fn mark_dirty(&mut self, page: u64) {
        self.dirty[page as usize] = true;
    }

    /// Returns the pages to be written, and marks them as clean.
    pub(super) fn take_dirty(&mut self) -> Vec<u64> {
        let dirty = self.dirty.iter_mut().enumerate();
        dirty
            .filter_map(|(page, dirty)| std::mem::take(dirty).then_some(page as u64))
            .collect()
    }

    /// Returns a page's bytes.
    pub(super) fn page_bytes(&self, page: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.page_bytes);
        for place in &self.blocks[self.range(page)] {
            format::put_place(&mut bytes, *place);
        }
        bytes.resize(self.page_bytes, 0xff);
        bytes
    }

    /// Loads a page that was read.
    pub(super) fn load_page(&mut self, page: u64, bytes: &[u8]) {
        let range = self.range(page);
        for (block, bytes) in range.zip(bytes.chunks_exact(PLACE_BYTES)) {
            self.blocks[block] = format::place(bytes);
        }
    }

    fn range(&self, page: u64) -> std::ops::Range<usize> {
        let first = page as usize * self.per_page;
        first..(first + self.per_page).min(self.blocks.len())
    }
}
