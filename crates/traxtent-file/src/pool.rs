//! Blocks that are held in files without a name, so that nobody else uses them.
//!
//! The kernel chooses the blocks of a file. To obtain whole tracks, the pool allocates more than is
//! needed, uses the tracks that happened to be whole, and gives the rest back.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use traxtent_layout::Partition;
use traxtent_units::Block;

use crate::file_extents;
use crate::supply::{Run, Source, Supply};

/// The largest number of bytes requested from the kernel at once. It is larger than the longest
/// extent of ext4 (128 MiB), so the kernel looks for its longest runs of free blocks.
const REQUEST_BYTES_MAX: u64 = 256 << 20;

/// The held blocks.
#[derive(Debug)]
pub(crate) struct Pool {
    folder: File,
    partition: Partition,
    block_bytes: u64,
    donors: Vec<File>,
    pub(crate) supply: Supply,
    /// The number of bytes that may be held at a time.
    bytes_max: u64,
    held_bytes: u64,
    /// The largest number of bytes held so far.
    pub(crate) peak_bytes: u64,
}

impl Pool {
    /// Creates an empty pool for the file system that holds the directory `folder`.
    pub(crate) fn new(
        folder: &Path,
        partition: Partition,
        block_bytes: u64,
        bytes_max: u64,
    ) -> io::Result<Pool> {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())?;
        Ok(Pool {
            folder: File::from(folder),
            supply: Supply::new(partition.clone()),
            partition,
            block_bytes,
            donors: Vec::new(),
            bytes_max,
            held_bytes: 0,
            peak_bytes: 0,
        })
    }

    /// Returns the donor file at a position.
    pub(crate) fn donor(&self, index: usize) -> &File {
        &self.donors[index]
    }

    /// Gives all held blocks back to the file system.
    pub(crate) fn release(&mut self) {
        self.donors.clear();
        self.supply = Supply::new(self.partition.clone());
        self.held_bytes = 0;
    }

    /// Returns the reason why nothing can be allocated; `None` if something can.
    pub(crate) fn shortage(&self) -> io::Result<Option<String>> {
        shortage(&self.folder, self.block_bytes)
    }

    /// Returns whether the pool holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.donors.is_empty()
    }

    /// Allocates at most `bytes` more. Never holds more than half of the space that would be free
    /// without the pool, so that other writers can continue. Returns the number of traxtents that
    /// became available as a whole, or `None` if nothing could be allocated.
    pub(crate) fn grow(&mut self, bytes: u64) -> io::Result<Option<usize>> {
        let free = fstatvfs(&self.folder)?;
        let free = free.f_bavail.saturating_mul(free.f_frsize);
        let half = (free + self.held_bytes) / 2;
        let room = self.bytes_max.min(half).saturating_sub(self.held_bytes);
        let request = bytes.min(room).min(REQUEST_BYTES_MAX) / self.block_bytes * self.block_bytes;
        if request == 0 {
            return Ok(None);
        }
        let donor = nameless(&self.folder, Mode::RUSR.union(Mode::WUSR))?;
        match fallocate(&donor, FallocateFlags::empty(), 0, request) {
            // Blocks that were found before the space ran out stay allocated.
            Ok(()) | Err(Errno::NOSPC) => {}
            Err(error) => return Err(error.into()),
        }
        let before = self.supply.whole_traxtents();
        self.donors.push(donor);
        let bytes = self.add(self.donors.len() - 1)?;
        self.held_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
        Ok((bytes > 0).then(|| self.supply.whole_traxtents() - before))
    }

    /// Makes exactly those blocks available that the donors have now. After exchanges, these
    /// include the blocks that the file has left, whatever has happened to the file meanwhile.
    pub(crate) fn refresh(&mut self) -> io::Result<()> {
        self.supply = Supply::new(self.partition.clone());
        self.held_bytes = 0;
        for donor in 0..self.donors.len() {
            self.held_bytes += self.add(donor)?;
        }
        Ok(())
    }

    /// Makes the blocks of a donor available, and returns their size in bytes.
    fn add(&mut self, donor: usize) -> io::Result<u64> {
        let mut bytes = 0;
        for extent in file_extents(&self.donors[donor])? {
            let blocks = extent.device();
            let count = self.partition.blocks().0;
            let start = Block((blocks.start / self.block_bytes).min(count));
            let end = Block((blocks.end / self.block_bytes).min(count));
            bytes += blocks.end - blocks.start;
            self.supply.add(Run {
                blocks: start..end,
                source: Source {
                    donor,
                    block: extent.file.start / self.block_bytes,
                },
            });
        }
        Ok(bytes)
    }
}

/// Creates a file without a name in a directory.
pub(crate) fn nameless(folder: &File, mode: Mode) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(folder, ".", flags, mode)?))
}

/// Returns the reason why no donor can be allocated on the file system of `folder`; `None` if one
/// can. The pool holds at most half of the available space.
pub(crate) fn shortage<Fd: std::os::fd::AsFd>(
    folder: Fd,
    block_bytes: u64,
) -> io::Result<Option<String>> {
    let free = fstatvfs(folder)?;
    let bytes = |blocks: u64| blocks.saturating_mul(free.f_frsize);
    if bytes(free.f_bavail) / 2 >= block_bytes {
        return Ok(None);
    }
    Ok(Some(
        match bytes(free.f_bfree.saturating_sub(free.f_bavail)) {
            reserved if reserved / 2 >= block_bytes => format!(
                "the file system has no available space, only {reserved} bytes that are reserved for root; free some space"
            ),
            _ => "the file system is full; free some space".to_owned(),
        },
    ))
}
