//! The file system: a directory with one file, whose bytes are those of a block service.
//!
//! The requests come from the kernel through `fuser`, in a few threads. A thread serves its
//! request itself, and may block, if another one waits for the next request. Otherwise it passes
//! the request to a worker, which costs a thread switch. (`fuser` could run a session in as many
//! threads as there are requests. Each has a buffer of 16 MiB, which the C library fills with
//! zeros: 256 idle threads used 1.2 GB of memory.)
//!
//! No data is cached: files are opened for direct I/O, so every read and write reaches the service.

use std::ffi::OsStr;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use fuser::{
    BsdFileFlags, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, InitFlags, KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, Request, TimeOrNow, WriteFlags,
};
use rustix::fs::{FallocateFlags, OFlags};

use super::bytes::ByteAccess;
use crate::service::{Export, ServiceError};
use crate::workers::Workers;

/// The name of the file.
pub(super) const FILE_NAME: &str = "disk";

/// The maximum number of requests that the kernel has outstanding at a time, which is also the
/// maximum number of workers. A loop device sends up to 128, each in at most two pieces.
const REQUESTS_MAX: u16 = 256;

/// The number of threads that read requests.
pub(super) const READERS: usize = 4;

/// The file's inode. The directory's is 1.
const FILE: INodeNo = INodeNo(2);

/// The time for which the kernel may cache attributes and names. They never change.
const KEEP: Duration = Duration::from_secs(24 * 3600);

/// A directory with the file of one export.
#[derive(Debug)]
pub(super) struct ExportFileSystem {
    file: Arc<DiskFile>,
    /// The number of readers that are not serving a request. There is always at least one.
    free_readers: AtomicUsize,
    workers: Workers,
    mounted: SystemTime,
}

/// The file and its properties, shared with the workers.
#[derive(Debug)]
struct DiskFile {
    bytes: ByteAccess,
    size: u64,
    sector: u32,
    read_only: bool,
    trim_zeroes: bool,
}

impl ExportFileSystem {
    pub(super) fn new(export: &Export) -> ExportFileSystem {
        let service = &export.service;
        let file = DiskFile {
            bytes: ByteAccess::new(service.clone()),
            size: service.bytes(),
            sector: service.block_sizes().minimum,
            read_only: export.read_only,
            trim_zeroes: service.trim_zeroes(),
        };
        ExportFileSystem {
            file: Arc::new(file),
            free_readers: AtomicUsize::new(READERS),
            workers: Workers::new("fuse", usize::from(REQUESTS_MAX)),
            mounted: SystemTime::now(),
        }
    }

    /// Serves a request in this thread, or in a worker if no other thread would read the next
    /// request.
    fn run(&self, job: impl FnOnce(&DiskFile) + Send + 'static) {
        if self.free_readers.fetch_sub(1, Ordering::Relaxed) > 1 {
            job(&self.file);
            self.free_readers.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.free_readers.fetch_add(1, Ordering::Relaxed);
        let file = self.file.clone();
        if let Err(error) = self.workers.run(move || job(&file)) {
            // Without a reply, the request fails.
            tracing::error!("cannot start a thread: {error}");
        }
    }

    fn attributes(&self, inode: INodeNo) -> Result<FileAttr, Errno> {
        let (kind, size, mode, links) = match inode {
            INodeNo::ROOT => (FileType::Directory, 0, 0o500, 2),
            FILE if self.file.read_only => (FileType::RegularFile, self.file.size, 0o400, 1),
            FILE => (FileType::RegularFile, self.file.size, 0o600, 1),
            _ => return Err(Errno::ENOENT),
        };
        Ok(FileAttr {
            ino: inode,
            size,
            blocks: size.div_ceil(512),
            atime: self.mounted,
            mtime: self.mounted,
            ctime: self.mounted,
            crtime: self.mounted,
            kind,
            perm: mode,
            nlink: links,
            uid: rustix::process::getuid().as_raw(),
            gid: rustix::process::getgid().as_raw(),
            rdev: 0,
            blksize: self.file.sector.max(4096),
            flags: 0,
        })
    }
}

impl DiskFile {
    /// Returns the part of a request that is within the file.
    fn within(&self, offset: u64, count: u64) -> Range<u64> {
        let start = offset.min(self.size);
        start..start + count.min(self.size - start)
    }

    /// Returns the part of a change that is within the file, or an error if nothing can be changed.
    fn writable(&self, offset: u64, count: u64) -> Result<Range<u64>, Errno> {
        let range = self.within(offset, count);
        if self.read_only {
            Err(Errno::EROFS)
        } else if range.is_empty() && count > 0 {
            Err(Errno::ENOSPC)
        } else {
            Ok(range)
        }
    }

    fn read(&self, offset: u64, count: u32, reply: ReplyData) {
        let range = self.within(offset, u64::from(count));
        if range.is_empty() {
            return reply.data(&[]);
        }
        let count = (range.end - range.start) as usize;
        self.bytes.read(offset, count, |read| match read {
            Ok(bytes) => reply.data(bytes),
            Err(error) => reply.error(errno(&error)),
        });
    }

    fn write(&self, offset: u64, mut data: Vec<u8>, flags: OpenFlags) -> Result<u32, Errno> {
        let range = self.writable(offset, data.len() as u64)?;
        let count = (range.end - range.start) as usize;
        // O_SYNC contains O_DSYNC.
        let fua = flags.0 & OFlags::DSYNC.bits() as i32 != 0;
        if count > 0 {
            data.truncate(count);
            let written = self.bytes.write(data, offset, fua);
            written.map_err(|error| errno(&error))?;
        }
        Ok(count as u32)
    }

    fn allocate(&self, offset: u64, count: u64, mode: FallocateFlags) -> Result<(), Errno> {
        let range = self.writable(offset, count)?;
        let keeps_size = mode.contains(FallocateFlags::KEEP_SIZE);
        if !keeps_size && range.end - range.start < count {
            return Err(Errno::ENOSPC);
        }
        let done = match mode - FallocateFlags::KEEP_SIZE {
            // A hole must read as zeros. Loop devices punch holes for discards, and for zeros that
            // may be deallocated. This error tells them that the drive cannot discard.
            FallocateFlags::PUNCH_HOLE if !self.trim_zeroes => return Err(Errno::EOPNOTSUPP),
            FallocateFlags::PUNCH_HOLE => self.bytes.trim(range),
            FallocateFlags::ZERO_RANGE => self.bytes.zero(range),
            // All sectors of a drive are allocated.
            kind if kind.is_empty() => Ok(()),
            _ => return Err(Errno::EOPNOTSUPP),
        };
        done.map_err(|error| errno(&error))
    }
}

/// Returns the error number for an error of the service.
fn errno(error: &ServiceError) -> Errno {
    Errno::from_i32(error.errno())
}

impl Filesystem for ExportFileSystem {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // Without this, older kernels send the requests of one client one at a time.
        let _ = config.add_capabilities(InitFlags::FUSE_ASYNC_DIO);
        let failed = |nearest| {
            io::Error::other(format!(
                "cannot have {REQUESTS_MAX} requests outstanding; the nearest limit is {nearest}"
            ))
        };
        config.set_max_background(REQUESTS_MAX).map_err(failed)?;
        config
            .set_congestion_threshold(REQUESTS_MAX)
            .map_err(failed)?;
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.attributes(FILE) {
            Ok(attributes) if parent == INodeNo::ROOT && name == FILE_NAME => {
                reply.entry(&KEEP, &attributes, Generation(0));
            }
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Ok(attributes) => reply.attr(&KEEP, &attributes),
            Err(error) => reply.error(error),
        }
    }

    /// Ignores a truncation to a size of 0, as block devices do: the file can be opened for
    /// replacing its contents. Changes of times are ignored too. Any other change is refused.
    fn setattr(
        &self,
        _: &Request,
        inode: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        _: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        match self.attributes(inode) {
            Err(error) => reply.error(error),
            Ok(_) if mode.is_some() || uid.is_some() || gid.is_some() => reply.error(Errno::EPERM),
            Ok(attributes) => match size {
                Some(size) if size != 0 && size != attributes.size => reply.error(Errno::EINVAL),
                _ => reply.attr(&KEEP, &attributes),
            },
        }
    }

    fn readdir(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = [
            (INodeNo::ROOT, FileType::Directory, "."),
            (INodeNo::ROOT, FileType::Directory, ".."),
            (FILE, FileType::RegularFile, FILE_NAME),
        ];
        for (next, (inode, kind, name)) in (1..).zip(entries).skip(offset as usize) {
            if reply.add(inode, next, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        // A loop device uses the block size as the granularity of discards.
        let sector = self.file.sector;
        let blocks = self.file.size / u64::from(sector);
        reply.statfs(blocks, 0, 0, 2, 0, sector, FILE_NAME.len() as u32, sector);
    }

    fn open(&self, _: &Request, inode: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        if inode == FILE {
            let flags = FopenFlags::FOPEN_DIRECT_IO
                | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
                | FopenFlags::FOPEN_NOFLUSH;
            reply.opened(FileHandle(0), flags);
        } else {
            reply.error(Errno::EISDIR);
        }
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        count: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.run(move |file| file.read(offset, count, reply));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let data = data.to_vec();
        self.run(move |file| match file.write(offset, data, flags) {
            Ok(count) => reply.written(count),
            Err(error) => reply.error(error),
        });
    }

    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        self.run(move |file| match file.bytes.flush() {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(errno(&error)),
        });
    }

    fn fallocate(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        count: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let mode = FallocateFlags::from_bits_retain(mode.cast_unsigned());
        self.run(move |file| match file.allocate(offset, count, mode) {
            Ok(()) => reply.ok(),
            Err(error) => reply.error(error),
        });
    }
}
