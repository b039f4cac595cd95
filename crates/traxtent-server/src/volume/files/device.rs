//! A file or block device that holds a member: opening it, and the operations on it.
//!
//! The storage behind the device determines which operations can block.

use std::fs;
use std::io;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::Fd;
use parking_lot::Mutex;
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use traxtent_io::device::Storage;
use traxtent_io::device::guard::{self, Access, DirectIo};
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::{Action, Failed};

use super::lanes::{DeviceThreads, Task};
use super::watch::{OutstandingOp, OutstandingOps, with_timeout};
use super::{FULL, no_answer};
use crate::volume::error::VolumeIoError;
use crate::volume::space::ReservedSpace;

/// The maximum number of bytes that one io_uring operation transfers.
const ENTRY_BYTES_MAX: usize = 1 << 30;

/// The size in bytes of a page of the page cache on most machines. A write of whole pages needs no
/// read first.
const PAGE_BYTES: u64 = 4096;

/// The age of the oldest operation at which a device counts as slow.
const SLOW_AFTER: Duration = Duration::from_millis(500);

/// The kind of storage that holds a member. It determines which operations can block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backing {
    /// A block device with direct I/O.
    Block,
    /// A block device, through the page cache.
    Cached,
    /// A file system in memory.
    Memory,
    /// One of the usual local file systems, on a disk.
    Disk,
    /// Any other file system, such as one of a program or of another machine.
    Other,
}

impl Backing {
    /// Classifies a file by the magic number of its file system (`statfs(2)`).
    fn of(file: &OwnedFd) -> Backing {
        const TMPFS: u32 = 0x0102_1994;
        const RAMFS: u32 = 0x8584_58f6;
        const EXT: u32 = 0xef53;
        const XFS: u32 = 0x5846_5342;
        const BTRFS: u32 = 0x9123_683e;
        match rustix::fs::fstatfs(file).map(|fs| fs.f_type as u32) {
            Ok(TMPFS | RAMFS) => Backing::Memory,
            Ok(EXT | XFS | BTRFS) => Backing::Disk,
            _ => Backing::Other,
        }
    }
}

/// Returns the storage of the file or block device at a path, within the time-out.
pub(in crate::volume) fn storage_at(
    path: &Path,
    timeout: Duration,
) -> Result<Storage, VolumeIoError> {
    let own = path.to_owned();
    let storage = with_timeout(timeout, move || {
        rustix::fs::stat(&own).map(|stat| Storage::of(&stat))
    });
    let failed = |error| VolumeIoError::Device {
        path: path.to_owned(),
        what: "open",
        error,
    };
    match storage {
        Some(storage) => storage.map_err(|errno| failed(errno.into())),
        None => Err(failed(no_answer(timeout))),
    }
}

/// The errors that the system has returned for a device.
#[derive(Clone, Copy, Debug)]
pub struct DeviceErrors {
    /// The system's number of the last error.
    pub number: i32,
    /// The number of errors.
    pub count: u64,
    /// The time of the last error.
    pub last: Instant,
}

/// A file or block device.
#[derive(Debug)]
pub struct Device {
    pub(super) path: PathBuf,
    file: OwnedFd,
    storage: Storage,
    pub(super) below: Backing,
    sector_bytes: u32,
    sectors: Sectors,
    pub(super) space: ReservedSpace,
    errors: Mutex<Option<DeviceErrors>>,
    /// Whether the last allocation found no space.
    pub(super) is_full: AtomicBool,
    /// Whether the file was found to be shorter than before. It is then not accessed any more: a
    /// write could extend it again, and the missing part would read as zeros.
    pub(super) is_cut: AtomicBool,
    /// Whether the kernel cannot tell if a read would block.
    lacks_nowait: AtomicBool,
    pub(super) watch: OutstandingOps,
    lanes: DeviceThreads,
}

impl Device {
    /// Opens the device for exclusive use by this process.
    ///
    /// # Errors
    /// Returns an error if the path cannot be used, is neither a file nor a block device, or is in
    /// use.
    pub fn open(path: &Path) -> Result<Device, VolumeIoError> {
        Device::open_for(path, Access::Write)
    }

    fn open_for(path: &Path, access: Access) -> Result<Device, VolumeIoError> {
        let failed = |what: &'static str| {
            move |errno: Errno| VolumeIoError::Device {
                path: path.to_owned(),
                what,
                error: io::Error::from(errno),
            }
        };
        let guard::LockedFile {
            file,
            is_block,
            is_direct: direct,
        } = guard::open_for(path, DirectIo::IfPossible, access)?;
        let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(failed("measure"))?;
        let sector_bytes = if is_block {
            rustix::fs::ioctl_blksszget(&file).map_err(failed("measure"))?
        } else {
            512
        };
        // Files are accessed through the page cache, because direct I/O would need the file
        // system's block size.
        let direct = direct && is_block;
        if !direct {
            let flags = rustix::fs::fcntl_getfl(&file).map_err(failed("open"))?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::DIRECT).map_err(failed("open"))?;
        }
        let below = match (is_block, direct) {
            (true, true) => Backing::Block,
            (true, false) => Backing::Cached,
            (false, _) => Backing::of(&file),
        };
        Ok(Device {
            path: path.to_owned(),
            storage: Storage::of(&rustix::fs::fstat(&file).map_err(failed("measure"))?),
            file,
            below,
            sector_bytes,
            sectors: Sectors(bytes / u64::from(sector_bytes)),
            space: ReservedSpace::new(bytes),
            errors: Mutex::default(),
            is_full: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            lacks_nowait: AtomicBool::new(false),
            watch: OutstandingOps::default(),
            lanes: DeviceThreads::default(),
        })
    }

    /// Opens the device like [`Device::open`], but with the given access and within the time-out.
    ///
    /// # Errors
    /// Returns the errors of [`Device::open`], or an error if there is no response in time.
    pub(in crate::volume) fn open_within(
        path: &Path,
        access: Access,
        timeout: Duration,
    ) -> Result<Device, VolumeIoError> {
        let own = path.to_owned();
        with_timeout(timeout, move || Device::open_for(&own, access)).unwrap_or_else(|| {
            Err(VolumeIoError::Device {
                path: path.to_owned(),
                what: "open",
                error: no_answer(timeout),
            })
        })
    }

    /// Returns whether the sectors of a range are known to be zero without reading them. This is so
    /// if the device is a file with a hole there.
    pub(in crate::volume) fn is_zero(&self, range: Range<Lbn>, timeout: Duration) -> bool {
        let (first, end) = (self.offset(range.start), self.offset(range.end));
        if !self.is_file() || range.is_empty() {
            return false;
        }
        let Ok(file) = self.file.try_clone() else {
            return false;
        };
        let data = with_timeout(timeout, move || {
            rustix::fs::seek(&file, SeekFrom::Data(first))
        });
        match data {
            Some(Ok(data)) => data >= end,
            // There is no data after this offset.
            Some(Err(Errno::NXIO)) => true,
            Some(Err(_)) | None => false,
        }
    }

    /// Returns whether a write to the device can change the bytes of this storage.
    pub(in crate::volume) fn is_on(&self, storage: &Storage) -> bool {
        self.storage.overlaps(storage)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the size of a logical sector in bytes.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// Returns the number of sectors.
    pub fn sectors(&self) -> Sectors {
        self.sectors
    }

    /// Returns the reason why the device was given up, is no longer accessed, or has no space. If
    /// none of these applies, returns the system's most recent error, if any.
    pub fn last_error(&self) -> Option<io::Error> {
        if let Some(silent) = self.watch.given_up_after() {
            let why = format!("no response for {:.1} s", silent.as_secs_f64());
            return Some(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        if self.is_cut.load(Ordering::Relaxed) {
            let why = "the file has become shorter";
            return Some(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        if self.is_full.load(Ordering::Relaxed) {
            return Some(io::Error::new(io::ErrorKind::StorageFull, FULL));
        }
        let errors = self.errors()?;
        Some(io::Error::from_raw_os_error(errors.number))
    }

    /// Returns whether the device is a file that has been deleted: its data is lost once it is
    /// closed. Only the kernel's name of the open file is read, which never waits for a file
    /// system.
    pub fn is_deleted(&self) -> bool {
        const MARK: &[u8] = b" (deleted)";
        let link = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        let name = fs::read_link(link).unwrap_or_default();
        let has_mark = |path: &Path| path.as_os_str().as_bytes().ends_with(MARK);
        self.is_file() && has_mark(&name) && !has_mark(&self.path)
    }

    /// Returns the errors since the device was opened, if there are any.
    pub fn errors(&self) -> Option<DeviceErrors> {
        *self.errors.lock()
    }

    pub(super) fn offset(&self, at: Lbn) -> u64 {
        at.0 * u64::from(self.sector_bytes)
    }

    pub(super) fn watch(&self) -> &OutstandingOps {
        &self.watch
    }

    pub(super) fn lanes(&self) -> &DeviceThreads {
        &self.lanes
    }

    pub(super) fn is_file(&self) -> bool {
        !matches!(self.below, Backing::Block | Backing::Cached)
    }

    /// Returns an error if the device's file was found to be shortened. It is then not accessed any
    /// more.
    fn takes_reads(&self) -> Result<(), Errno> {
        if self.is_cut.load(Ordering::Relaxed) {
            Err(Errno::IO)
        } else {
            Ok(())
        }
    }

    /// Checks whether the device's file has been shortened, and returns an error if so. Unlike a
    /// read, a write would not detect this, but hide it.
    fn takes_writes(&self) -> Result<(), Errno> {
        self.takes_reads()?;
        let bytes = self.offset(Lbn(self.sectors.0));
        let is_shorter =
            || rustix::fs::seek(&self.file, SeekFrom::End(0)).is_ok_and(|end| end < bytes);
        if self.is_file() && is_shorter() {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        self.takes_reads()
    }

    /// Counts an error, unless the operation was given up or not begun because the device is not
    /// accessed any more.
    pub(super) fn outcome(&self, done: Result<(), Errno>) -> Result<(), Failed> {
        done.map_err(|errno| {
            let is_own = match errno {
                Errno::TIMEDOUT => self.watch.is_given_up(),
                Errno::IO => self.is_cut.load(Ordering::Relaxed),
                _ => false,
            };
            if is_own {
                return Failed;
            }
            let mut errors = self.errors.lock();
            *errors = Some(DeviceErrors {
                number: errno.raw_os_error(),
                count: errors.map_or(1, |before| before.count.saturating_add(1)),
                last: Instant::now(),
            });
            Failed
        })
    }

    /// Returns an io_uring entry for a read or write of the whole memory, or of as much as one
    /// entry can transfer; `None` for other tasks.
    pub(super) fn entry(&self, task: Task, memory: &mut [u8]) -> Option<Entry> {
        let file = Fd(self.file.as_raw_fd());
        let count = memory.len().min(ENTRY_BYTES_MAX) as u32;
        let start = memory.as_mut_ptr();
        match task {
            Task::Read(at) => {
                let read = opcode::Read::new(file, start, count);
                Some(read.offset(self.offset(at)).build())
            }
            Task::Write(at) => {
                let write = opcode::Write::new(file, start, count);
                Some(write.offset(self.offset(at)).build())
            }
            // In io_uring, a kernel thread would run these, and the process could not exit before
            // they end.
            Task::Flush | Task::Reserve(..) => None,
        }
    }

    /// Reads; may block.
    pub(in crate::volume) fn read(&self, at: Lbn, into: &mut [u8]) -> Result<(), Errno> {
        self.takes_reads()?;
        let read = self.read_by(at, into, |into, offset| {
            rustix::io::pread(&self.file, into, offset)
        });
        read.map(drop)
    }

    /// Writes; may block.
    pub(in crate::volume) fn write(&self, at: Lbn, mut from: &[u8]) -> Result<(), Errno> {
        self.takes_writes()?;
        let mut offset = self.offset(at);
        while !from.is_empty() {
            match rustix::io::pwrite(&self.file, from, offset) {
                Ok(0) => return Err(Errno::IO),
                Ok(count) => {
                    from = &from[count..];
                    offset += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Makes written data durable; may block.
    pub(in crate::volume) fn flush(&self) -> Result<(), Errno> {
        self.takes_writes()?;
        rustix::fs::fdatasync(&self.file)
    }

    /// Reserves space for sectors of a file; may block.
    pub(in crate::volume) fn reserve(&self, from: Lbn, to: Lbn) -> Result<(), Errno> {
        let bytes = self.offset(from)..self.offset(to);
        self.space.reserve(&self.file, bytes)
    }

    fn read_by(
        &self,
        at: Lbn,
        mut into: &mut [u8],
        read: impl Fn(&mut [u8], u64) -> Result<usize, Errno>,
    ) -> Result<(), Errno> {
        let mut offset = self.offset(at);
        while !into.is_empty() {
            match read(into, offset) {
                Ok(0) => {
                    self.is_cut.store(self.is_file(), Ordering::Relaxed);
                    return Err(Errno::IO);
                }
                Ok(count) => {
                    into = &mut into[count..];
                    offset += count as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }

    /// Carries out an action, or returns `None` if it could block.
    pub(super) fn without_blocking(
        self: &Arc<Device>,
        action: &mut Action<'_>,
    ) -> Option<Result<(), Errno>> {
        match (self.below, action) {
            (Backing::Memory, Action::Read(at, into)) => Some(self.read(*at, into)),
            (Backing::Memory, Action::Write(at, from)) => Some(self.write(*at, from)),
            (Backing::Memory, Action::Flush) => Some(self.flush()),
            (Backing::Disk, Action::Read(at, into)) => self.read_cached(*at, into),
            (Backing::Disk, Action::Write(at, from)) if self.takes_pages(*at, from.len()) => {
                // If the write blocks after all, it is at least reported as outstanding.
                let _record = OutstandingOp::new(Arc::clone(self));
                Some(self.write(*at, from))
            }
            _ => None,
        }
    }

    /// Reads data that is in the page cache. Returns `None` if it is not, or if the kernel cannot
    /// tell.
    fn read_cached(&self, at: Lbn, into: &mut [u8]) -> Option<Result<(), Errno>> {
        if self.lacks_nowait.load(Ordering::Relaxed) {
            return None;
        }
        let read = self.takes_reads().and_then(|()| {
            self.read_by(at, into, |into, offset| {
                let mut into = [IoSliceMut::new(into)];
                let flags = ReadWriteFlags::NOWAIT;
                rustix::io::preadv2(&self.file, &mut into, offset, flags)
            })
        });
        match read {
            Err(Errno::AGAIN) => None,
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                self.lacks_nowait.store(true, Ordering::Relaxed);
                None
            }
            done => Some(done),
        }
    }

    /// Returns whether a write consists of whole pages, and the file system below responds as
    /// usual.
    fn takes_pages(&self, at: Lbn, bytes: usize) -> bool {
        let whole =
            self.offset(at).is_multiple_of(PAGE_BYTES) && (bytes as u64).is_multiple_of(PAGE_BYTES);
        whole && self.watch.oldest().is_none_or(|oldest| oldest < SLOW_AFTER)
    }
}

#[cfg(test)]
mod tests {
    use super::{Device, Errno, Ordering};

    /// Are the errors that the system returned for a device counted, and is the last one kept? Are
    /// operations not counted that failed because the device is not accessed any more?
    #[test]
    fn errors_are_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(1 << 20).unwrap();
        let device = Device::open(file.path()).unwrap();
        assert!(device.outcome(Ok(())).is_ok());
        assert!(device.errors().is_none() && device.last_error().is_none());
        for (count, errno) in [(1, Errno::NXIO), (2, Errno::TIMEDOUT), (3, Errno::IO)] {
            assert!(device.outcome(Err(errno)).is_err());
            let errors = device.errors().unwrap();
            assert_eq!((errors.count, errors.number), (count, errno.raw_os_error()));
        }
        let last = device.last_error().and_then(|error| error.raw_os_error());
        assert_eq!(last, Some(Errno::IO.raw_os_error()));
        device.is_cut.store(true, Ordering::Relaxed);
        assert!(device.outcome(Err(Errno::IO)).is_err());
        device.watch.give_up();
        assert!(device.outcome(Err(Errno::TIMEDOUT)).is_err());
        assert_eq!(device.errors().unwrap().count, 3);
    }
}
