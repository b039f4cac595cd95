//! Reading and writing files: requested blocks, read-ahead, and write-back.
//!
//! The source is paper T, sections 4.2.1, 4.2.2 and 5.3. Where it is silent, the model follows
//! FreeBSD:
//!
//! - A file that is read from its beginning counts as sequential immediately, as in FreeBSD's
//!   vn_read. In *head*, its second block is therefore prefetched, as the paper says.
//! - FreeBSD reads blocks that are not in memory up to the end of the call, and reads ahead in a
//!   separate request. Fast start and traxtents extend the first request instead (the paper counts
//!   4,094 requests, all but one of 256 KB).
//! - The amount in memory is checked where FreeBSD checks it (cluster_read in vfs_cluster.c): at a
//!   marked block. The marked blocks are the last of each request, the first that is read ahead,
//!   the one after a missing block, and the last one that was found in memory.

use std::ops::Range;

use traxtent_units::Block;

use super::config::ReadAhead;
use super::file::{File, FileId};
use super::simulated_host::SimulatedHost;

/// The number of bytes in a sector.
const SECTOR_BYTES: u64 = 512;

/// An open file.
#[derive(Clone, Debug)]
pub struct OpenFile {
    /// The file.
    pub file: FileId,
    /// The last block that was read.
    last: Option<u64>,
    /// The number of blocks that have been read in sequence up to `last`.
    count: u32,
    /// Whether any access after the first was not sequential.
    random: bool,
    /// Consecutive sectors that have changed and are not being written.
    pending: Range<u64>,
    /// The read-ahead windows of Linux.
    pub(super) windows: Windows,
}

/// The state of a block of a file in memory.
#[derive(Clone, Copy, Debug)]
pub(super) enum BlockState {
    /// The block is in memory.
    There,
    /// The block is in memory once this block of the disk is.
    InTransit(Block),
    /// The request must be repeated once this block of the disk is in memory.
    Again(Block),
}

impl BlockState {
    /// The block of the disk that is missing.
    pub(super) fn waits_for(self) -> Option<Block> {
        match self {
            BlockState::There => None,
            BlockState::InTransit(block) | BlockState::Again(block) => Some(block),
        }
    }
}

/// The read-ahead windows of an open file, in blocks of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    pub(super) current: Range<u64>,
    pub(super) ahead: Range<u64>,
}

impl OpenFile {
    /// Records an access. Returns whether it is sequential.
    fn record_access(&mut self, block: u64) -> bool {
        let sequential = match self.last {
            None => block == 0,
            Some(last) => block == last || block == last + 1,
        };
        if !sequential {
            self.random |= self.last.is_some();
            self.count = 0;
        }
        if self.last != Some(block) || self.count == 0 {
            self.count += 1;
        }
        self.last = Some(block);
        sequential
    }
}

impl SimulatedHost {
    /// Opens a file.
    pub fn open(&mut self, file: FileId) -> OpenFile {
        self.spend(self.config.cpu.call);
        self.spend(self.config.cpu.name);
        self.need(self.file(file).inode);
        self.reopened(file)
    }

    /// Returns a file in the state of one that has just been opened.
    pub(super) fn reopened(&self, file: FileId) -> OpenFile {
        OpenFile {
            file,
            last: None,
            count: 0,
            random: false,
            pending: 0..0,
            windows: Windows::default(),
        }
    }

    /// Reads bytes of a file, and waits for them.
    pub fn read(&mut self, open: &mut OpenFile, bytes: Range<u64>) {
        self.write_old();
        self.spend(self.config.cpu.call);
        let blocks = self.blocks_with(&bytes);
        for block in blocks.clone() {
            while !self.await_block(open, block, blocks.end - block) {}
            self.copy_from_block(&bytes, block);
        }
    }

    /// Requests a block and sleeps until it is in memory. Returns false if the request must be
    /// repeated: the block was in transit already or has been evicted again, or another block had
    /// to arrive first.
    fn await_block(&mut self, open: &mut OpenFile, block: u64, in_call: u64) -> bool {
        let state = self.request_block(open, block, in_call);
        let Some(place) = state.waits_for() else {
            return true;
        };
        while self.cache.is_requested(place) && !self.cache.is_in_memory(place) {
            self.wait();
        }
        matches!(state, BlockState::InTransit(_)) && self.cache.is_in_memory(place)
    }

    /// The blocks of a file that contain these bytes.
    pub(super) fn blocks_with(&self, bytes: &Range<u64>) -> Range<u64> {
        let size = self.block_bytes();
        bytes.start / size..bytes.end.div_ceil(size)
    }

    /// Spends the time for copying the part of the bytes that lies in a block.
    pub(super) fn copy_from_block(&mut self, bytes: &Range<u64>, block: u64) {
        let size = self.block_bytes();
        let part = bytes.end.min((block + 1) * size) - bytes.start.max(block * size);
        let copy = self.config.cpu.copy_kb.0 * part / 1024;
        self.spend(traxtent_units::Span(copy) + self.config.cpu.block);
    }

    pub(super) fn block_bytes(&self) -> u64 {
        u64::from(self.config.block_sectors) * SECTOR_BYTES
    }

    /// Requests a block of a file and reads ahead. The call needs `in_call` blocks, beginning with
    /// this one. Does not wait for data; waits only if no buffer is free.
    pub(super) fn request_block(
        &mut self,
        open: &mut OpenFile,
        block: u64,
        in_call: u64,
    ) -> BlockState {
        let sequential = open.record_access(block);
        if let Some(indirect) = self.missing_indirect(open.file, block) {
            return BlockState::Again(indirect);
        }
        let file = self.file(open.file);
        let place = file.blocks[block as usize];
        let companions = file.read_together.clone();
        if let Some(group) = companions.filter(|_| !self.cache.is_requested(place)) {
            self.fetch_together(group);
        } else if let ReadAhead::Window(most) = self.config.read_ahead {
            let most = u64::from(most);
            if let Some(indirect) =
                self.read_ahead_by_windows(open, block, in_call, sequential, most)
            {
                return BlockState::Again(indirect);
            }
            // A block that no window covers, or that was evicted, is read alone.
            if !self.cache.is_requested(place) {
                self.fetch_run(open.file, block, 1);
            }
        } else if let ReadAhead::Tracks(most) = self.config.read_ahead {
            self.read_ahead_by_tracks(open, block, most);
            // The first half of a block that spans tracks may have been requested alone.
            while !self.cache.is_requested(place) {
                self.fetch_run(open.file, block, u64::MAX);
            }
        } else if !self.cache.is_requested(place) {
            self.missed(open, block, in_call, sequential);
        } else if !self.cache.is_in_memory(place) {
            // A reader that finds a block in transit sleeps until it has arrived, then reads ahead.
            return BlockState::Again(place);
        } else if sequential
            && self.cache.take_mark(place)
            && let Some(indirect) = self.read_ahead(open, block, in_call)
        {
            self.cache.mark(place);
            return BlockState::Again(indirect);
        }
        self.cache.touch(place);
        if self.cache.is_in_memory(place) {
            BlockState::There
        } else {
            BlockState::InTransit(place)
        }
    }

    /// Returns the indirect block that locates this block of the file, unless it is in memory. It
    /// is requested if necessary.
    pub(super) fn missing_indirect(&mut self, file: FileId, block: u64) -> Option<Block> {
        let (direct, pointers) = (self.config.direct, self.config.indirect);
        let indirect = self.file(file).indirect_of(block, direct, pointers)?;
        if !self.cache.is_requested(indirect) {
            self.fetch(self.sectors_of(indirect));
        }
        self.cache.touch(indirect);
        (!self.cache.is_in_memory(indirect)).then_some(indirect)
    }

    /// Reads the missing blocks and reads ahead.
    fn missed(&mut self, open: &OpenFile, block: u64, in_call: u64, sequential: bool) {
        let at_once = if self.gradual(open) {
            in_call
        } else {
            u64::from(self.config.cluster)
        };
        let place = self.file(open.file).blocks[block as usize];
        // A block on two tracks needs two requests.
        while !self.cache.is_requested(place) {
            self.fetch_run(open.file, block, at_once);
        }
        if let Some(second) = self.file(open.file).blocks.get(block as usize + 1) {
            self.cache.mark(*second);
        }
        if sequential && self.gradual(open) {
            self.read_ahead(open, block, in_call);
        }
    }

    /// Returns whether read-ahead grows with the number of blocks read in sequence.
    fn gradual(&self, open: &OpenFile) -> bool {
        open.random || self.config.read_ahead == ReadAhead::History
    }

    /// Reads ahead from the first block after this one that has not been requested, if it is less
    /// than a cluster away. Otherwise marks the last block within that distance, to check again
    /// when it is read. The first block that is read ahead is marked as well as the last
    /// (`cluster_rbuild`). Returns the indirect block that has to be in memory first.
    fn read_ahead(&mut self, open: &OpenFile, block: u64, in_call: u64) -> Option<Block> {
        let cluster = u64::from(self.config.cluster);
        let most = if self.gradual(open) {
            cluster.min(u64::from(open.count) + in_call - 1)
        } else {
            cluster
        };
        let file = self.file(open.file);
        let following = file.blocks[block as usize + 1..].iter();
        let ahead = following.take(cluster as usize - 1);
        let ahead = ahead
            .take_while(|place| self.cache.is_requested(**place))
            .count() as u64;
        let next = block + 1 + ahead;
        if ahead == cluster - 1 {
            self.cache.mark(file.blocks[next as usize - 1]);
        } else if next < file.blocks.len() as u64 {
            let indirect = self.missing_indirect(open.file, next);
            if indirect.is_some() {
                return indirect;
            }
            let first = self.file(open.file).blocks[next as usize];
            self.fetch_run(open.file, next, most);
            self.cache.mark(first);
        }
        None
    }

    /// Reads at most `most` blocks and at most a cluster of a file, beginning with the first sector
    /// of `block` that has not been requested. Stops before the first later block that has been
    /// requested or is not contiguous, and where [`SimulatedHost::clipped`] ends. Marks the last
    /// block and returns the number of blocks.
    pub(super) fn fetch_run(&mut self, file: FileId, block: u64, most: u64) -> u64 {
        let most = most.clamp(1, u64::from(self.config.cluster));
        let blocks = &self.file(file).blocks[block as usize..];
        let first = blocks[0];
        let run = blocks.iter().zip(first.0..).take(most as usize);
        let run = run
            .enumerate()
            .take_while(|(at, (place, next))| {
                place.0 == *next && (*at == 0 || self.cache.requested_sectors(**place) == 0)
            })
            .count() as u64;
        let from = self.sectors_of(first).start + u64::from(self.cache.requested_sectors(first));
        let to = self.sectors_of(Block(first.0 + run)).start;
        let sectors = self.clipped(from..to);
        let whole = sectors.end / u64::from(self.config.block_sectors);
        self.fetch(sectors);
        self.cache.mark(Block(whole.saturating_sub(1).max(first.0)));
        (whole - first.0).max(1)
    }

    /// Reads a group of files in one request.
    fn fetch_together(&mut self, blocks: Range<Block>) {
        let missing =
            (blocks.start.0..blocks.end.0).find(|block| !self.cache.is_requested(Block(*block)));
        if let Some(missing) = missing {
            self.fetch(self.sectors_of(Block(missing)).start..self.sectors_of(blocks.end).start);
        }
    }

    /// Writes bytes of a file, over existing data and beyond its end.
    pub fn write(&mut self, open: &mut OpenFile, bytes: Range<u64>) {
        self.write_old();
        self.spend(self.config.cpu.call);
        for block in self.blocks_with(&bytes) {
            while block >= self.file(open.file).blocks.len() as u64 {
                self.grow(open.file);
            }
            let place = self.file(open.file).blocks[block as usize];
            self.dirty(place);
            self.copy_from_block(&bytes, block);
            if bytes.end >= (block + 1) * self.block_bytes() {
                self.block_completed(open, place);
            }
        }
    }

    /// Handles a block that has been written to its end: writes back clusters that are complete.
    fn block_completed(&mut self, open: &mut OpenFile, place: Block) {
        let sectors = self.sectors_of(place);
        if open.pending.end == sectors.start && !open.pending.is_empty() {
            open.pending.end = sectors.end;
        } else if let Some(moved) = self.move_into_traxtent(open.file) {
            open.pending = self.sectors_of(moved.start).start..self.sectors_of(moved.end).start;
        } else {
            let before = std::mem::replace(&mut open.pending, sectors);
            self.push(open.file, before);
        }
        loop {
            let cluster = u64::from(self.config.cluster * self.config.block_sectors);
            let Range { start, end } = open.pending;
            let complete = self.clipped_write(start..end.min(start + cluster));
            if complete.end == end && complete.end - start < cluster {
                return;
            }
            open.pending.start = complete.end;
            self.push(open.file, complete);
        }
    }

    fn push(&mut self, file: FileId, sectors: Range<u64>) {
        if sectors.is_empty() {
            return;
        }
        self.files.get_mut(file).written = true;
        let first = Block(sectors.start / u64::from(self.config.block_sectors));
        if self.is_dirty(first) {
            self.write_back(sectors);
        }
    }

    /// Closes a file. Its changes stay in memory until they are old.
    pub fn close(&mut self, open: OpenFile) {
        self.spend(self.config.cpu.call);
        self.stop_growing(open.file);
    }

    /// Creates a file of `bytes` bytes, written one block at a time.
    pub fn make(&mut self, directory: FileId, bytes: u64) -> FileId {
        let file = self.create(directory);
        let mut open = self.reopened(file);
        let size = self.block_bytes();
        let mut at = 0;
        while at < bytes {
            let end = bytes.min(at + size);
            self.write(&mut open, at..end);
            at = end;
        }
        self.close(open);
        file
    }

    /// Combines the consecutive blocks of several files into one group that is read together.
    pub fn group(&mut self, files: &[FileId]) {
        let blocks = files.iter().flat_map(|file| &self.file(*file).blocks);
        let (Some(first), Some(last)) = (blocks.clone().min(), blocks.max()) else {
            return;
        };
        let group = *first..Block(last.0 + 1);
        for file in files {
            let File {
                read_together: companions,
                ..
            } = self.files.get_mut(*file);
            *companions = Some(group.clone());
        }
    }
}
