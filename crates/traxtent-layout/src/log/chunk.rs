//! The chunk that is being filled in memory: the contents of the next write to the log.

use std::collections::BTreeMap;
use std::ops::Range;

use super::format::Entry;
use super::shape::LogShape;

/// Entries and blocks that have not been written yet.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenChunk {
    pub(super) entries: Vec<Entry>,
    /// The entries' blocks, one after another.
    pub(super) data: Vec<u8>,
    /// The newest version of each block in this chunk: the index of its entry, and that of its
    /// block data.
    newest: BTreeMap<u64, (usize, usize)>,
    blocks: usize,
    pub(super) youngest: u64,
}

impl OpenChunk {
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the size of the chunk in sectors once `entries` more entries and `blocks` more
    /// blocks are added.
    pub(super) fn sectors_with(&self, shape: LogShape, entries: usize, blocks: usize) -> u64 {
        let (entries, blocks) = (self.entries.len() + entries, self.blocks + blocks);
        shape.chunk_sectors(entries as u64, blocks as u64)
    }

    /// Returns a block's bytes, if its newest version is in this chunk.
    pub(super) fn find(&self, block: u64, shape: LogShape) -> Option<&[u8]> {
        let (_, slot) = *self.newest.get(&block)?;
        Some(&self.data[place(slot, shape)])
    }

    /// Replaces a block if it is already in this chunk. Returns whether it was.
    pub(super) fn replace(
        &mut self,
        block: u64,
        data: &[u8],
        youngest: u64,
        shape: LogShape,
    ) -> bool {
        let Some(&(entry, slot)) = self.newest.get(&block) else {
            return false;
        };
        let crc = crc32fast::hash(data);
        self.entries[entry] = Entry::Data { block, crc };
        self.data[place(slot, shape)].copy_from_slice(data);
        self.youngest = self.youngest.max(youngest);
        true
    }

    /// Adds an entry and its block, if it has one. `youngest` is the clock value of the entry's
    /// data.
    pub(super) fn push(&mut self, entry: Entry, data: &[u8], youngest: u64) {
        let index = self.entries.len();
        self.entries.push(entry);
        self.youngest = self.youngest.max(youngest);
        match entry {
            Entry::Data { block, .. } => {
                self.newest.insert(block, (index, self.blocks));
            }
            Entry::Map { .. } => {}
            Entry::Trim { first, count } => {
                let range = first..first + u64::from(count);
                while let Some((&block, _)) = self.newest.range(range.clone()).next() {
                    self.newest.remove(&block);
                }
            }
        }
        if !matches!(entry, Entry::Trim { .. }) {
            self.blocks += 1;
            self.data.extend_from_slice(data);
        }
    }

    /// Returns whether slot `slot` of the chunk's data holds the newest version of `block`.
    pub(super) fn is_newest(&self, block: u64, slot: usize) -> bool {
        self.newest
            .get(&block)
            .is_some_and(|newest| newest.1 == slot)
    }
}

fn place(slot: usize, shape: LogShape) -> Range<usize> {
    let size = shape.block_bytes();
    slot * size..(slot + 1) * size
}
