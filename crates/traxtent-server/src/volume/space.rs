//! Allocation for members that are sparse files. Space is allocated one region at a time, before
//! data is written.
//!
//! Writes to a full file system fail, and a member whose write fails is marked failed. A volume
//! therefore reserves space before a write. If there is none, only the client's write fails. This
//! does not cover file systems without fallocate, file systems that write allocated blocks
//! elsewhere (Btrfs, snapshots), or thinly provisioned block devices. There, a write to a full disk
//! still fails the member.

use std::ops::Range;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::fs::FallocateFlags;
use rustix::io::Errno;

/// The size of a region in bytes.
const REGION_BYTES: u64 = 1 << 20;

/// The number of regions per word of the bitmap.
const REGIONS_PER_WORD: u64 = 64;

/// The regions of a file whose space is known to be allocated.
#[derive(Debug)]
pub(super) struct ReservedSpace {
    bytes: u64,
    /// One bit per region.
    reserved: Vec<AtomicU64>,
    /// Whether the file system does not support preallocation. If set, no further attempt is made.
    is_unsupported: AtomicBool,
}

impl ReservedSpace {
    /// Creates the record for a file of `bytes` bytes, without reserved regions.
    pub(super) fn new(bytes: u64) -> ReservedSpace {
        let words = bytes.div_ceil(REGION_BYTES * REGIONS_PER_WORD);
        ReservedSpace {
            bytes,
            reserved: (0..words).map(|_| AtomicU64::new(0)).collect(),
            is_unsupported: AtomicBool::new(false),
        }
    }

    /// Returns whether a range of bytes needs no further reservation.
    pub(super) fn is_reserved(&self, bytes: &Range<u64>) -> bool {
        self.is_unsupported.load(Ordering::Relaxed)
            || self.regions(bytes).all(|region| self.has(region))
    }

    fn regions(&self, bytes: &Range<u64>) -> Range<u64> {
        bytes.start / REGION_BYTES..bytes.end.min(self.bytes).div_ceil(REGION_BYTES)
    }

    fn has(&self, region: u64) -> bool {
        let word = self.reserved[(region / REGIONS_PER_WORD) as usize].load(Ordering::Relaxed);
        word & (1 << (region % REGIONS_PER_WORD)) != 0
    }

    /// Reserves space for a range of bytes of the file; may block.
    ///
    /// # Errors
    /// Returns `NOSPC` if there is no space, and `DQUOT` if a quota is exhausted.
    pub(super) fn reserve(&self, file: impl AsFd, bytes: Range<u64>) -> Result<(), Errno> {
        let end = bytes.end.min(self.bytes);
        for region in self.regions(&bytes) {
            if self.is_unsupported.load(Ordering::Relaxed) {
                return Ok(());
            }
            if self.has(region) {
                continue;
            }
            let (word, bit) = (
                (region / REGIONS_PER_WORD) as usize,
                1 << (region % REGIONS_PER_WORD),
            );
            let whole = region * REGION_BYTES..((region + 1) * REGION_BYTES).min(self.bytes);
            let part = whole.start.max(bytes.start)..whole.end.min(end);
            match allocate(&file, whole) {
                Ok(()) => drop(self.reserved[word].fetch_or(bit, Ordering::Relaxed)),
                // The remaining space may suffice for this write.
                Err(Errno::NOSPC | Errno::DQUOT) => {
                    if let Err(full @ (Errno::NOSPC | Errno::DQUOT)) = allocate(&file, part) {
                        return Err(full);
                    }
                }
                Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::PERM) => {
                    self.is_unsupported.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                // The write will report the error.
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Allocates a range of bytes. Keeps the file's length: extending a file that was shortened would
/// hide that from later writes.
fn allocate(file: impl AsFd, bytes: Range<u64>) -> Result<(), Errno> {
    let length = bytes.end - bytes.start;
    rustix::io::retry_on_intr(|| {
        rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, bytes.start, length)
    })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;

    use super::*;

    /// Is a region allocated once, whole, within the file, and without changing the file's length?
    #[test]
    fn regions_are_reserved_once() {
        let file = tempfile::tempfile().unwrap();
        let bytes = 3 * REGION_BYTES + 4096;
        file.set_len(bytes).unwrap();
        let blocks = || rustix::fs::fstat(&file).unwrap().st_blocks;
        let space = ReservedSpace::new(bytes);
        let at = 2 * REGION_BYTES - 512;
        space.reserve(&file, at..at + 1024).unwrap();
        if space.is_unsupported.load(Ordering::Relaxed) {
            testkit::skip!("the file system has no fallocate");
        }
        assert_eq!(space.reserved[0].load(Ordering::Relaxed), 0b0110);
        assert!(blocks() >= 2 * REGION_BYTES as i64 / 512);
        file.set_len(0).unwrap();
        space.reserve(&file, at..at + 1024).unwrap();
        assert_eq!(blocks(), 0, "a reserved region is allocated again");
        space.reserve(&file, 3 * REGION_BYTES..bytes).unwrap();
        assert_eq!(file.metadata().unwrap().len(), 0);
    }

    /// Is remaining space of less than a region used before an error is returned?
    #[test]
    fn what_is_left_is_used() {
        let mount = testkit::tool!("mount");
        let folder = tempfile::tempdir().unwrap();
        let small = ["-t", "tmpfs", "-o", "size=1536k", "tmpfs"];
        let mounted = Command::new(mount).args(small).arg(folder.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            testkit::skip!("a small file system cannot be mounted here");
        }
        let file = File::create(folder.path().join("member")).unwrap();
        file.set_len(4 * REGION_BYTES).unwrap();
        let space = ReservedSpace::new(4 * REGION_BYTES);
        let parts = (0..64).map(|part| part << 16..(part + 1) << 16);
        let reserved = parts.map(|part| space.reserve(&file, part));
        let reserved: Vec<bool> = reserved.map(|reserved| reserved.is_ok()).collect();
        drop(file);
        let _ = Command::new("umount").arg(folder.path()).status();
        // One region, and half of one in parts of 64 KiB.
        assert_eq!(
            reserved.iter().position(|is_reserved| !is_reserved),
            Some(24)
        );
        assert!(reserved[24..].iter().all(|is_reserved| !is_reserved));
    }
}
