//! Checks before a device or file is opened for writing. Block devices and files are opened with
//! [`open`]. Other devices, such as SCSI generic nodes, are checked with [`check_unused`].
//!
//! [`open`] refuses devices and files that are in use, regardless of the caller's options. A block
//! device is in use if it or one of its partitions is mounted, is swap, is part of another device,
//! or is held by another program. A file is in use if it backs a loop device or is swap. Both are
//! also refused if another process has locked them. [`volume_on`] finds this project's volumes,
//! which other programs do not recognize. [`refuse_output`] keeps reports, logs and maps off block
//! devices, and [`open_output`] also locks them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use traxtent_units::Sectors;
use traxtent_volume::copies::{CopiesError, find_superblock};
use traxtent_volume::superblock::SuperblockError;
use traxtent_volume::{Action, Failed, MemberIo, Op, read_superblocks};

use super::{in_use, sysfs};
use futures_lite::future::block_on;

/// The time to wait for the last user of a file or device to release it. The user can be a program
/// that is ending, or a forked process that has not yet called exec.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(500);

/// The reason why a path must not be written to, or cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The device or file is in use.
    #[error("{}: in use: {user}; release it before writing to it", path.display())]
    InUse {
        /// The path.
        path: PathBuf,
        /// A description of its user.
        user: String,
    },
    /// Another server or command has locked the path.
    #[error("{}: locked by another process", .0.display())]
    Locked(PathBuf),
    /// The path names neither a file nor a block device.
    #[error("{}: neither a file nor a block device", .0.display())]
    Kind(PathBuf),
    /// An output would overwrite a device.
    #[error("{}: is a block device; name a file for the output", .0.display())]
    Output(PathBuf),
    /// The system refused an operation.
    #[error("{}: cannot {what} it: {error}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
}

/// A file or block device that is open and locked. A device that is open for writing is also held
/// exclusively.
#[derive(Debug)]
pub struct LockedFile {
    /// The open file.
    pub file: OwnedFd,
    /// Whether it is a block device.
    pub is_block: bool,
    /// Whether it was opened for direct I/O.
    pub is_direct: bool,
}

/// The operations for which a path is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Read,
    /// Reads and writes.
    Write,
}

/// Whether to use direct I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DirectIo {
    /// Never.
    No,
    /// If the file system supports it.
    IfPossible,
}

/// Opens a file or block device for reading and writing, unless it is in use.
///
/// # Errors
/// Returns an error if the path is in use or locked, is neither a file nor a block device, or
/// cannot be opened.
pub fn open(path: &Path, direct: DirectIo) -> Result<LockedFile, Refusal> {
    open_for(path, direct, Access::Write)
}

/// Opens a file or block device like [`open`], or only for reading. A path that is only read may be
/// in use, unless another process has locked it for writing.
///
/// # Errors
/// Returns the errors of [`open`].
pub fn open_for(path: &Path, direct: DirectIo, access: Access) -> Result<LockedFile, Refusal> {
    let failed = |what| {
        move |errno: Errno| Refusal::System {
            path: path.to_owned(),
            what,
            error: errno.into(),
        }
    };
    let stat = rustix::fs::stat(path).map_err(failed("open"))?;
    let kind = FileType::from_raw_mode(stat.st_mode);
    let is_block = kind == FileType::BlockDevice;
    if !is_block && kind != FileType::RegularFile {
        return Err(Refusal::Kind(path.to_owned()));
    }
    // The kernel opens a read-only block device for writing, and refuses each write.
    if is_block && access == Access::Write && sysfs::is_read_only(&sysfs::directory(stat.st_rdev)) {
        let error = io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "the device is read-only");
        return Err(Refusal::System {
            path: path.to_owned(),
            what: "write",
            error,
        });
    }
    let begun = Instant::now();
    let (mode, lock) = match access {
        Access::Read => (OFlags::RDONLY, FlockOperation::NonBlockingLockShared),
        Access::Write => {
            unused(path, begun)?;
            (OFlags::RDWR, FlockOperation::NonBlockingLockExclusive)
        }
    };
    let mut flags = mode | OFlags::CLOEXEC;
    if is_block && access == Access::Write {
        // With O_EXCL, the kernel decides whether the device is in use, and excludes others from
        // now on.
        flags |= OFlags::EXCL;
    }
    let plain = || rustix::fs::open(path, flags, Mode::empty()).map(|file| (file, false));
    let opened = match direct {
        DirectIo::No => plain(),
        DirectIo::IfPossible => match rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty())
        {
            Err(Errno::INVAL) => plain(),
            opened => opened.map(|file| (file, true)),
        },
    };
    let (file, is_direct) = opened.map_err(failed("open"))?;
    lock_since(begun, &file, path, lock)?;
    Ok(LockedFile {
        file,
        is_block,
        is_direct,
    })
}

/// Opens a file for output, creating it if it does not exist, and locks it. Its content stays until
/// the caller truncates it. Special files, such as pipes, are not locked.
///
/// # Errors
/// Returns an error if the path is locked, names a block device, or cannot be opened.
pub fn open_output(path: &Path) -> Result<File, Refusal> {
    refuse_output(path)?;
    let mut options = OpenOptions::new();
    let opened = options.write(true).create(true).truncate(false).open(path);
    let file = opened.map_err(|error| Refusal::System {
        path: path.to_owned(),
        what: "write",
        error,
    })?;
    if file.metadata().is_ok_and(|meta| meta.is_file()) {
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        lock_since(Instant::now(), &file, path, exclusive)?;
    }
    Ok(file)
}

/// Locks an open file. The last user has [`RELEASE_TIMEOUT`] from `begun` to release it.
fn lock_since(
    begun: Instant,
    file: impl AsFd,
    path: &Path,
    lock: FlockOperation,
) -> Result<(), Refusal> {
    loop {
        let locked = match lock {
            FlockOperation::NonBlockingLockExclusive if has_record_lock(&file) => {
                Err(Errno::WOULDBLOCK)
            }
            _ => rustix::fs::flock(&file, lock),
        };
        match locked {
            Ok(()) => return Ok(()),
            Err(Errno::WOULDBLOCK) if begun.elapsed() < RELEASE_TIMEOUT => {
                thread::sleep(Duration::from_millis(5));
            }
            Err(Errno::WOULDBLOCK) => return Err(Refusal::Locked(path.to_owned())),
            Err(errno) => {
                return Err(Refusal::System {
                    path: path.to_owned(),
                    what: "lock",
                    error: errno.into(),
                });
            }
        }
    }
}

/// Returns whether another process has locked a part of a file with `fcntl`, as QEMU does. The lock
/// that tests this is not kept: on SMB, it would conflict with that of `flock`.
fn has_record_lock(file: impl AsFd) -> bool {
    match rustix::fs::fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::AGAIN | Errno::ACCESS) => true,
        // The file system has no such locks.
        Err(_) => false,
        Ok(()) => {
            let _ = rustix::fs::fcntl_lock(file, FlockOperation::NonBlockingUnlock);
            false
        }
    }
}

/// Refuses a path that is in use. Use this for devices that are written without [`open`], for
/// example with SCSI commands.
///
/// # Errors
/// Returns an error that names the current user.
pub fn check_unused(path: &Path) -> Result<(), Refusal> {
    unused(path, Instant::now())
}

fn unused(path: &Path, begun: Instant) -> Result<(), Refusal> {
    loop {
        let Some(user) = in_use(path) else {
            return Ok(());
        };
        // A loop device may still be detaching, or a program ending.
        if begun.elapsed() >= RELEASE_TIMEOUT {
            let path = path.to_owned();
            return Err(Refusal::InUse { path, user });
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Refuses a block device as the output for a report, a log or a map.
///
/// # Errors
/// Returns an error if the path names a block device.
pub fn refuse_output(path: &Path) -> Result<(), Refusal> {
    match fs::metadata(path) {
        Ok(metadata) if metadata.file_type().is_block_device() => {
            Err(Refusal::Output(path.to_owned()))
        }
        _ => Ok(()),
    }
}

/// Returns a description of the content of a file or block device: of this project's volume on it,
/// and of the content that `other` recognizes; `None` if neither is found. A device can have both,
/// if it was a member of a volume and has been reused.
pub fn content_on(path: &Path, other: impl Fn(&Path) -> Option<String>) -> Option<String> {
    match (volume_on(path), other(path)) {
        (Some(volume), Some(other)) => Some(format!("{volume}, and {other}")),
        (volume, other) => volume.or(other),
    }
}

/// Returns a description of this project's volume on a file or block device, even if its superblock
/// is damaged or cannot be read. Returns `None` if there is no volume, or if the device cannot be
/// opened or measured.
pub fn volume_on(path: &Path) -> Option<String> {
    let file = File::open(path).ok()?;
    let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).ok()?;
    let is_block = file.metadata().ok()?.file_type().is_block_device();
    let sector_bytes = if is_block {
        rustix::fs::ioctl_blksszget(&file).ok()?
    } else {
        512
    };
    let sectors = Sectors(bytes / u64::from(sector_bytes));
    let reader = Reader { file, sector_bytes };
    let pairs = block_on(read_superblocks(&reader, &[(sectors, sector_bytes)]));
    match pairs[0].usable() {
        Err(SuperblockError::None) => {}
        Ok(found) => return Some(format!("member {} of volume {}", found.index, found.volume)),
        Err(damaged) => return Some(damaged.to_string()),
    }
    match block_on(find_superblock(&reader, sectors, sector_bytes)) {
        Err(CopiesError::Superblock(SuperblockError::None)) => None,
        Ok(found) => Some(format!("volume {} with replicas", found.volume)),
        Err(damaged) => Some(damaged.to_string()),
    }
}

/// Returns the first range of a file, at or after `from`, that the file system does not report as a
/// hole (`SEEK_DATA`); `None` if there is none. The range can hold zeros. A file system that does
/// not support holes reports the whole file as data.
///
/// # Errors
/// Returns the system's error.
pub fn next_data(file: &File, from: u64) -> io::Result<Option<Range<u64>>> {
    let first = match rustix::fs::seek(file, SeekFrom::Data(from)) {
        Ok(first) => first,
        // There is no data at or after this offset.
        Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    let end = rustix::fs::seek(file, SeekFrom::Hole(first))?;
    Ok(Some(first..end))
}

/// A file or device that is only read.
struct Reader {
    file: File,
    sector_bytes: u32,
}

impl MemberIo for Reader {
    type Buffer = Vec<u8>;

    fn buffer(&self, bytes: usize) -> Vec<u8> {
        vec![0; bytes]
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        for op in ops {
            op.outcome = match &mut op.action {
                Action::Read(at, into) => {
                    let offset = at.0 * u64::from(self.sector_bytes);
                    let read = self.file.read_exact_at(into, offset);
                    read.map_err(|_| Failed)
                }
                Action::Write(..) | Action::Flush => Err(Failed),
            };
        }
    }
}
