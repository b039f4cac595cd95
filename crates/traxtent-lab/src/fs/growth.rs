//! The creation, growth and removal of files.
//!
//! Names and inodes are written through if metadata is synchronous. Creating a file writes its
//! inode, then its directory's block. Removing it writes the directory's block, then the inode
//! (ufs_makeinode and ufs_remove of FreeBSD 4, without soft updates).

use std::ops::Range;

use traxtent_layout::AllocatorKind;
use traxtent_units::Block;

use super::file::{File, FileId, Files};
use super::simulated_host::SimulatedHost;
use super::space::one;

/// The number of names in a block of a directory: 8 KB in entries of about 24 bytes.
const NAMES_PER_BLOCK: u32 = 341;

impl SimulatedHost {
    /// Adds a directory to a group. Takes no time.
    pub fn directory(&mut self, group: u64) -> FileId {
        self.new_file(group, None)
    }

    /// Adds a file of `bytes` bytes that already exists. It is laid out as if it had been written,
    /// but it is not in memory and takes no time.
    pub fn existing(&mut self, directory: FileId, bytes: u64) -> FileId {
        let (file, _) = self.named(directory);
        let size = u64::from(self.config.block_sectors) * 512;
        self.lengthen(file, bytes.div_ceil(size));
        file
    }

    /// Adds blocks to a file that already exists. They are laid out as if they had been written.
    pub(super) fn lengthen(&mut self, file: FileId, blocks: u64) {
        for _ in 0..blocks {
            self.grow(file);
        }
        self.stop_growing(file);
        self.files.get_mut(file).written = true;
    }

    /// Creates an empty file.
    pub fn create(&mut self, directory: FileId) -> FileId {
        self.spend(self.config.cpu.call);
        self.spend(self.config.cpu.name);
        let (file, fresh) = self.named(directory);
        let File { inode, name, .. } = *self.file(file);
        if let Some(name) = name.filter(|_| fresh) {
            self.dirty(name);
        }
        self.metadata(&[Some(inode), name]);
        file
    }

    /// Removes a file.
    pub fn remove(&mut self, file: FileId) {
        self.spend(self.config.cpu.call);
        self.spend(self.config.cpu.name);
        self.stop_growing(file);
        let File {
            inode,
            name,
            ref mut blocks,
            ref mut indirect,
            ..
        } = *self.files.get_mut(file);
        let blocks = std::mem::take(blocks);
        let indirect = std::mem::take(indirect);
        for block in blocks.into_iter().chain(indirect) {
            self.cache.forget(block);
            self.space.release(&one(block));
        }
        self.metadata(&[name, Some(inode)]);
    }

    /// Changes metadata blocks, in this order.
    fn metadata(&mut self, blocks: &[Option<Block>]) {
        for block in blocks.iter().flatten() {
            self.need(*block);
            self.dirty(*block);
            if self.config.synchronous_metadata {
                self.write_through(*block);
            }
        }
    }

    /// Reads a metadata block if necessary, and waits until it is in memory.
    pub(super) fn need(&mut self, block: Block) {
        if !self.cache.is_requested(block) {
            self.fetch(self.sectors_of(block));
        }
        while !self.cache.is_in_memory(block) {
            self.wait();
        }
        self.cache.touch(block);
    }

    fn new_file(&mut self, group: u64, name: Option<Block>) -> FileId {
        let groups = self.space.groups() as usize;
        let Files {
            files,
            inodes,
            names,
        } = &mut self.files;
        inodes.resize(groups, 0);
        let number = &mut inodes[group as usize];
        let within = u64::from(*number / self.config.inodes_per_block);
        *number += 1;
        // After a copy of the superblock and the group's own metadata.
        let inode = Block(self.space.start_of(group).0 + 2 + within);
        let id = FileId(files.len() as u32);
        files.push(File {
            blocks: Vec::new(),
            indirect: Vec::new(),
            reserved: Block(0)..Block(0),
            inode,
            group,
            name,
            written: false,
            read_together: None,
        });
        names.push(0);
        id
    }

    /// Creates a file and its name in a directory. Also returns whether the name began a new block
    /// of the directory.
    fn named(&mut self, directory: FileId) -> (FileId, bool) {
        let names = &mut self.files.names[directory.0 as usize];
        let at = (*names / NAMES_PER_BLOCK) as usize;
        *names += 1;
        let fresh = self.file(directory).blocks.len() <= at;
        if fresh {
            self.grow(directory);
        }
        let File {
            ref blocks, group, ..
        } = *self.file(directory);
        let name = blocks[at];
        (self.new_file(group, Some(name)), fresh)
    }

    /// Adds a block to a file.
    ///
    /// # Panics
    /// Panics if the file system is full.
    pub(super) fn grow(&mut self, id: FileId) {
        let file = self.files.get(id);
        let (mut last, mut group) = (file.blocks.last().copied(), file.group);
        let position = (file.blocks.len() as u32).checked_sub(self.config.direct);
        let every = |count: u32| position.is_some_and(|position| position % count == 0);
        let changes_group = every(self.config.group_share) && position > Some(0);
        let needs_indirect = every(self.config.indirect);
        if let Some(before) = last.filter(|_| changes_group) {
            let next = self.space.group_of(before) + 1;
            group = self.space.group_with_room(next % self.space.groups());
            last = None;
        }
        if needs_indirect {
            let indirect = self.next_block(id, last, group);
            self.files.get_mut(id).indirect.push(indirect);
            last = Some(indirect);
        }
        let block = self.next_block(id, last, group);
        self.files.get_mut(id).blocks.push(block);
    }

    /// Returns the next block for a file. It comes from the blocks reserved for the file, or
    /// otherwise from the free blocks; in that case the blocks after it are reserved.
    fn next_block(&mut self, id: FileId, last: Option<Block>, group: u64) -> Block {
        let File {
            reserved: ahead,
            name,
            ..
        } = self.files.get_mut(id);
        if !ahead.is_empty() && last.is_some_and(|last| ahead.start.0 == last.0 + 1) {
            ahead.start.0 += 1;
            return Block(ahead.start.0 - 1);
        }
        let regular = name.is_some();
        self.release_reserved(id);
        let block = match last {
            Some(last) => self.space.allocate_after(last),
            None => self.space.allocate_in_group(group),
        };
        let block = block.expect("the experiment fits on its drive");
        if regular {
            let ahead = self.space.set_aside(block, self.config.reservation);
            self.files.get_mut(id).reserved = ahead;
        }
        block
    }

    /// Releases the blocks reserved for a file.
    fn release_reserved(&mut self, id: FileId) {
        let ahead = std::mem::replace(&mut self.files.get_mut(id).reserved, Block(0)..Block(0));
        if !ahead.is_empty() {
            self.space.release(&ahead);
        }
    }

    /// Ends the growth of a file that is closed.
    pub(super) fn stop_growing(&mut self, id: FileId) {
        self.release_reserved(id);
        self.move_into_traxtent(id);
    }

    /// Moves a file that does not lie in one traxtent but fits in one. A file with data on the disk
    /// or with an indirect block is not moved. Returns the new blocks.
    pub(super) fn move_into_traxtent(&mut self, id: FileId) -> Option<Range<Block>> {
        let File {
            blocks,
            indirect,
            written,
            ..
        } = self.file(id);
        let settled = *written || !indirect.is_empty();
        let (first, last) = (*blocks.first()?, *blocks.last()?);
        let partition = self.space.partition();
        let track = |block| partition.traxtent_of(block).map(|traxtent| traxtent.track);
        let apart = track(first) != track(last);
        if settled || !apart || self.config.placement != AllocatorKind::Traxtent {
            return None;
        }
        let old = blocks.clone();
        let new = self.space.within_traxtent(first, old.len() as u64)?;
        let moved: Vec<Block> = (new.start.0..new.end.0).map(Block).collect();
        for (old, new) in old.iter().zip(&moved) {
            if self.is_dirty(*old) {
                self.dirty(*new);
            }
            self.cache.forget(*old);
            self.space.release(&one(*old));
        }
        self.files.get_mut(id).blocks = moved;
        Some(new)
    }
}
