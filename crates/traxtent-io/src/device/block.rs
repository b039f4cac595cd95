//! A Linux block device or image file. It is read directly if possible, and written only in a range
//! that the caller has allowed.
//!
//! A read is a pread and a write a pwritev2, with O_DIRECT if the file system supports it. A flush
//! is an fdatasync. The clock is read before and after each.

use std::io::IoSlice;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, FileType, Mode, OFlags, SeekFrom};
use rustix::io::{Errno, ReadWriteFlags};
use traxtent_probe::{Identity, Target, TargetError, Timing};
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Count, Lbn, Sectors, SimTime};

use super::clock::Clock;
use super::error::DeviceError;
use super::guard::{self, DirectIo};
use super::sysfs;

/// A block device or image file as a probe's target.
#[derive(Debug)]
pub struct BlockTarget {
    file: OwnedFd,
    path: PathBuf,
    /// The device number; `None` for an image file.
    device: Option<Dev>,
    identity: Identity,
    clock: Clock,
    buffer: Buffer,
    /// The unit of offsets and lengths of reads: a sector of a device, a page of an image file.
    unit_bytes: u64,
    rotational: Option<bool>,
    scratch: Option<Box<ScratchRange>>,
    pub(super) notes: Vec<String>,
}

/// The LBNs that may be overwritten, and the data for them.
#[derive(Debug)]
struct ScratchRange {
    lbns: Range<Lbn>,
    buffer: Buffer,
    noise: Rng,
}

/// The maximum size of one read or write in bytes.
const TRANSFER_BYTES_MAX: u64 = 64 << 20;
/// The alignment in bytes of buffers, and of reads of image files. No file system requires more.
const PAGE_BYTES: usize = 4096;

impl BlockTarget {
    /// Opens a block device or image file for reading.
    ///
    /// # Errors
    /// Returns an error if the path does not exist, cannot be read or measured, or names neither a
    /// block device nor a file, or if the device is shorter than one sector.
    pub fn open(path: &Path) -> Result<BlockTarget, DeviceError> {
        let failed = |what| move |errno| DeviceError::new(path, what, errno);
        let kind = rustix::fs::stat(path).map_err(failed("read"))?;
        let device = match FileType::from_raw_mode(kind.st_mode) {
            FileType::BlockDevice => Some(kind.st_rdev),
            FileType::RegularFile => None,
            other => {
                let path = path.to_owned();
                let kind = kind_of(other);
                return Err(DeviceError::NoDisk { path, kind });
            }
        };
        let (file, direct) = open_direct(path).map_err(failed("read"))?;
        // The kernel's BLKGETSIZE64 returns the same number.
        let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(failed("measure"))?;
        let (logical_bytes, physical_bytes) = match device {
            Some(_) => (
                rustix::fs::ioctl_blksszget(&file).map_err(failed("measure"))?,
                rustix::fs::ioctl_blkpbszget(&file).map_err(failed("measure"))?,
            ),
            None => (512, 512),
        };
        let capacity = Sectors(bytes / u64::from(logical_bytes));
        if capacity.0 == 0 {
            let path = path.to_owned();
            return Err(DeviceError::Empty { path, bytes });
        }
        let mut notes = Vec::new();
        if !direct {
            notes.push("the kernel refuses direct reads; its cache may serve reads".to_owned());
        }
        let whole = device.map(|device| sysfs::whole(&sysfs::directory(device)));
        let fact = |name: &str| whole.as_deref().and_then(|whole| sysfs::text(whole, name));
        Ok(BlockTarget {
            identity: Identity {
                vendor: fact("device/vendor").unwrap_or_default(),
                product: fact("device/model").unwrap_or_default(),
                serial: whole.as_deref().and_then(sysfs::serial).unwrap_or_default(),
                capacity,
                logical_bytes,
                physical_bytes,
            },
            rotational: fact("queue/rotational").map(|flag| flag != "0"),
            unit_bytes: if device.is_some() {
                u64::from(logical_bytes)
            } else {
                PAGE_BYTES as u64
            },
            buffer: Buffer::default(),
            clock: Clock::start(),
            scratch: None,
            path: path.to_owned(),
            device,
            file,
            notes,
        })
    }

    /// Allows requests to overwrite `lbns`, and nothing else, with random numbers from `seed`. The
    /// previous content is lost. From then on, the device is locked against other users.
    ///
    /// # Errors
    /// Returns an error if the range is empty or ends beyond the device, if the device cannot be
    /// opened for writing, or if it is in use by a file system, swap, a volume or loop device,
    /// another program, or an earlier call.
    pub fn allow_writes(&mut self, lbns: Range<Lbn>, seed: u64) -> Result<(), DeviceError> {
        let path = self.path.as_path();
        let capacity = self.identity.capacity.0;
        if lbns.is_empty() || lbns.end.0 > capacity {
            let why = if lbns.is_empty() {
                "the range is empty".to_owned()
            } else {
                format!("the device ends before LBN {capacity}")
            };
            let why = format!("LBNs {}..{}: {why}", lbns.start, lbns.end);
            return Err(DeviceError::Drive {
                path: path.to_owned(),
                problem: TargetError::Refused(why),
            });
        }
        self.file = guard::open(path, DirectIo::IfPossible)?.file;
        self.scratch = Some(Box::new(ScratchRange {
            lbns,
            buffer: Buffer::default(),
            noise: Rng::new(seed),
        }));
        Ok(())
    }

    /// Returns whether the kernel classifies the device as rotational; `None` if it reports
    /// nothing. The flag is often wrong.
    pub fn rotational(&self) -> Option<bool> {
        self.rotational
    }

    /// Returns notes for the reader of a report, one per line.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Reads the bytes `[start, end)`; returns the instants before and after.
    ///
    /// An io_uring of depth one was tried as an alternative on a loop device, with 20,000 reads of
    /// 512 bytes in each of three rounds. Its median was 2.6 to 9.1 microseconds, against 2.4 in
    /// each round here. There is nothing to gain when requests are sent one at a time and a
    /// revolution takes thousands of microseconds.
    fn read(&mut self, start: u64, end: u64) -> Result<Timing, Errno> {
        let first = start / self.unit_bytes * self.unit_bytes;
        let length = (end - first).next_multiple_of(self.unit_bytes) as usize;
        let wanted = (end - first) as usize;
        let buffer = self.buffer.aligned(length);
        let mut done = 0;
        let sent = self.clock.now();
        while done < wanted {
            let part = &mut buffer[done..];
            match rustix::io::pread(&self.file, part, first + done as u64) {
                Ok(0) => return Err(Errno::NXIO),
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        let completed = self.clock.now();
        Ok(Timing { sent, completed })
    }

    /// Overwrites `bytes` bytes starting at `start`. If `durable`, they are on the media when this
    /// returns.
    fn write(&mut self, start: u64, bytes: usize, durable: bool) -> Result<Timing, Errno> {
        let Some(scratch) = &mut self.scratch else {
            return Err(Errno::ACCESS);
        };
        let flags = if durable {
            ReadWriteFlags::DSYNC
        } else {
            ReadWriteFlags::empty()
        };
        let buffer = scratch.buffer.noisy(bytes, &mut scratch.noise);
        let mut done = 0;
        let sent = self.clock.now();
        while done < bytes {
            let part = [IoSlice::new(&buffer[done..])];
            match rustix::io::pwritev2(&self.file, &part, start + done as u64, flags) {
                Ok(0) => return Err(Errno::NXIO),
                Ok(written) => done += written,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        let completed = self.clock.now();
        Ok(Timing { sent, completed })
    }

    fn flush(&mut self) -> Result<Timing, Errno> {
        let sent = self.clock.now();
        rustix::fs::fdatasync(&self.file)?;
        let completed = self.clock.now();
        Ok(Timing { sent, completed })
    }

    /// Translates a failed request into the probe's error.
    fn failed(&self, request: Request, errno: Errno) -> TargetError {
        let Request { lbn, sectors, .. } = request;
        match self.gone(errno) {
            Some(why) => TargetError::Gone(why),
            // The block layer reports media errors, checksum errors and time-outs like this.
            None if request.op == Op::Read
                && matches!(
                    errno,
                    Errno::IO | Errno::NODATA | Errno::ILSEQ | Errno::REMOTEIO | Errno::TIMEDOUT
                ) =>
            {
                TargetError::Unreadable { lbn, sectors }
            }
            None => TargetError::Refused(format!("LBN {lbn}: {errno}")),
        }
    }

    /// Returns the reason if the device is gone. A removed disk fails with the same errors as a bad
    /// sector.
    fn gone(&self, errno: Errno) -> Option<String> {
        let path = self.path.display();
        if matches!(
            errno,
            Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM | Errno::SHUTDOWN
        ) {
            return Some(format!("{path}: {errno}"));
        }
        let folder = sysfs::directory(self.device?);
        if !folder.exists() {
            return Some(format!("{path}: the kernel has removed the device"));
        }
        let state = sysfs::text(&sysfs::whole(&folder), "device/state")?;
        (state == "offline").then(|| format!("{path}: the kernel has taken the device offline"))
    }
}

impl Target for BlockTarget {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn now(&self) -> SimTime {
        self.clock.now()
    }

    fn wait_until(&mut self, at: SimTime) {
        self.clock.wait_until(at);
    }

    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        let Request {
            lbn: Lbn(lbn),
            sectors,
            op,
            fua,
        } = request;
        match op {
            Op::Read if fua => return Err(TargetError::Unsupported("force unit access")),
            Op::Verify => return Err(TargetError::Unsupported("VERIFY")),
            Op::Flush if self.scratch.is_none() => {
                return Err(TargetError::Unsupported(
                    "a flush without permission to write",
                ));
            }
            Op::Flush => return self.flush().map_err(|errno| self.failed(request, errno)),
            Op::Read | Op::Write => {}
        }
        let Sectors(capacity) = self.identity.capacity;
        let sector = u64::from(self.identity.logical_bytes);
        let bytes = u64::from(sectors) * sector;
        if sectors == 0 || bytes > TRANSFER_BYTES_MAX {
            let why = format!(
                "{} at LBN {lbn}: expected 1 to {}",
                Count(sectors, "sector"),
                TRANSFER_BYTES_MAX / sector
            );
            return Err(TargetError::Refused(why));
        }
        if request.end() > Lbn(capacity) {
            let end = request.end();
            let why = format!("LBNs {lbn}..{end}: the device ends before LBN {capacity}");
            return Err(TargetError::Refused(why));
        }
        let start = lbn * sector;
        if op == Op::Read {
            let read = self.read(start, start + bytes);
            return read.map_err(|errno| self.failed(request, errno));
        }
        let Some(lbns) = self.scratch.as_ref().map(|scratch| &scratch.lbns) else {
            return Err(TargetError::Refused("writes are not allowed".to_owned()));
        };
        if request.lbn < lbns.start || request.end() > lbns.end {
            let why = format!(
                "LBNs {lbn}..{}: only {}..{} may be overwritten",
                request.end(),
                lbns.start,
                lbns.end
            );
            return Err(TargetError::Refused(why));
        }
        let written = self.write(start, bytes as usize, fua);
        written.map_err(|errno| self.failed(request, errno))
    }
}

/// Opens for direct reads, or for plain reads if direct ones are refused. Returns whether reads are
/// direct.
fn open_direct(path: &Path) -> Result<(OwnedFd, bool), Errno> {
    let plain = OFlags::RDONLY | OFlags::CLOEXEC;
    match rustix::fs::open(path, plain | OFlags::DIRECT, Mode::empty()) {
        Err(Errno::INVAL) => Ok((rustix::fs::open(path, plain, Mode::empty())?, false)),
        opened => Ok((opened?, true)),
    }
}

fn kind_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        _ => "a special file",
    }
}

/// Memory that is aligned for direct reads and writes.
#[derive(Debug, Default)]
struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    fn aligned(&mut self, length: usize) -> &mut [u8] {
        if self.bytes.len() < length + PAGE_BYTES {
            self.bytes = vec![0; length + PAGE_BYTES];
        }
        let skip = self.bytes.as_ptr().align_offset(PAGE_BYTES);
        &mut self.bytes[skip..skip + length]
    }

    /// Returns aligned memory filled with random numbers. Drives and intermediate layers may skip
    /// writing data that they already hold.
    fn noisy(&mut self, length: usize, noise: &mut Rng) -> &[u8] {
        let is_new = self.bytes.len() < length + PAGE_BYTES;
        let bytes = self.aligned(length);
        // A new buffer is filled once; after that, one number in each page changes with each
        // request.
        let step = if is_new { 8 } else { PAGE_BYTES };
        for place in bytes.chunks_mut(step) {
            let number = noise.bits().to_le_bytes();
            let some = place.len().min(8);
            place[..some].copy_from_slice(&number[..some]);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a file opened with plain reads if its file system refuses direct ones, and is this
    /// reported?
    #[test]
    fn plain_reads_where_direct_ones_are_refused() {
        let path = Path::new("/proc/version");
        if !path.exists() {
            testkit::skip!("there is no /proc");
        }
        let (_, direct) = open_direct(path).unwrap();
        assert!(!direct);
    }

    /// Is nothing written without permission, and only the permitted range with it?
    #[test]
    fn only_the_range_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("disk.img");
        let old = vec![7; 1 << 20];
        std::fs::write(&path, &old).unwrap();
        let mut target = match BlockTarget::open(&path) {
            Ok(target) if target.notes().is_empty() => target,
            _ => testkit::skip!("files here do not support direct writes"),
        };
        let write = |target: &mut BlockTarget, lbn, sectors| {
            let write = Request::write(Lbn(lbn), sectors);
            target.request(Request { fua: true, ..write })
        };
        assert!(write(&mut target, 64, 8).is_err());
        assert!(target.request(Request::flush()).is_err());
        for (lbns, why) in [
            (
                Lbn(0)..Lbn(2049),
                "LBNs 0..2049: the device ends before LBN 2048",
            ),
            (Lbn(8)..Lbn(8), "LBNs 8..8: the range is empty"),
        ] {
            let error = target.allow_writes(lbns, 1).unwrap_err().to_string();
            assert!(error.ends_with(why), "{error}");
        }
        target.allow_writes(Lbn(64)..Lbn(128), 1).unwrap();
        for (lbn, sectors) in [(56, 16), (120, 16), (0, 8), (2040, 8)] {
            let error = write(&mut target, lbn, sectors).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("only 64..128 may be"), "{text}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), old);
        write(&mut target, 64, 8).unwrap();
        write(&mut target, 120, 8).unwrap();
        target.request(Request::flush()).unwrap();
        let new = std::fs::read(&path).unwrap();
        for (page, (old, new)) in old.chunks(4096).zip(new.chunks(4096)).enumerate() {
            assert_eq!(old != new, [8, 15].contains(&page), "page {page}");
        }
    }

    /// Is the buffer aligned at any length?
    #[test]
    fn buffers_are_aligned() {
        let mut buffer = Buffer::default();
        for length in [4096, 512, 65_536, 512] {
            let bytes = buffer.aligned(length);
            assert_eq!(bytes.len(), length);
            assert_eq!(bytes.as_ptr() as usize % PAGE_BYTES, 0);
        }
    }
}
