//! Members that are files or block devices.
//!
//! A member can stop responding forever, and operations that the kernel has accepted then cannot be
//! cancelled. A request's own thread therefore performs only operations that do not block. All
//! others are passed to the kernel (io_uring) or to the device's threads. Such an operation owns
//! its memory until it returns. Requests wait for it no longer than the member time-out. A device
//! that does not respond in time is given up, and all later operations on it fail immediately.
//!
//! A request's own thread reads and writes files in memory (tmpfs), reads data that is in the page
//! cache, and writes whole pages to the page cache of the usual local file systems. Such a write
//! can block if the file system is frozen or its disk hangs. It is therefore passed to another
//! thread while any other operation, typically a flush, takes longer than usual.

mod lanes;
mod uring;
mod watch;

use std::io;
use std::io::IoSliceMut;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::Fd;
use parking_lot::{Mutex, RwLock};
use rustix::fs::{FileType, OFlags, SeekFrom, Stat};
use rustix::io::{Errno, ReadWriteFlags};
use smallvec::SmallVec;
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::{Action, Failed, MemberIo, NoSpace, Op};

pub use super::buffers::AlignedBuffer;
use super::buffers::Buffers;
use super::error::VolumeIoError;
use super::space::ReservedSpace;
use lanes::{Batch, DeviceThreads, Task};
use traxtent_io::device::guard::{self, Access, DirectIo};
use uring::{RingOp, RingOps};
pub(super) use watch::with_timeout;
pub use watch::{MEMBER_TIMEOUT, MEMBER_TIMEOUTS};
use watch::{OutstandingOp, OutstandingOps};

/// The number of simultaneous operations that a request to a volume seldom exceeds.
const OPS_INLINE: usize = 32;

/// The maximum number of bytes that one io_uring operation transfers.
const ENTRY_BYTES: usize = 1 << 30;

/// The size of a page in the page cache, or a divisor of it. Writes that begin and end at multiples
/// of the page size need no read first.
const PAGE: u64 = 4096;

/// The age of the oldest operation at which a device counts as slow.
const SLOW_AFTER: Duration = Duration::from_millis(500);

/// The age of an operation at which its device is reported as not responding.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// The state of a member whose file system has no space left.
const FULL: &str = "no space left below it: writes fail with ENOSPC";

/// The kind of storage that holds a member. It determines which operations can block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Backing {
    /// A block device with direct I/O.
    Block,
    /// A block device, through the page cache.
    Cached,
    /// Memory.
    Memory,
    /// A file system on a disk.
    Disk,
    /// A program, another machine, or anything else.
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

/// The identity of a file or block device, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    file: Option<u64>,
}

impl Identity {
    /// Returns the identity of the file at a path.
    pub(super) fn at(path: &Path, timeout: Duration) -> Result<Identity, VolumeIoError> {
        let own = path.to_owned();
        let stat = with_timeout(timeout, move || rustix::fs::stat(&own));
        let failed = |error| VolumeIoError::Device {
            path: path.to_owned(),
            what: "open",
            error,
        };
        match stat {
            Some(stat) => Ok(Identity::of(&stat.map_err(|errno| failed(errno.into()))?)),
            None => Err(failed(no_answer(timeout))),
        }
    }

    fn of(stat: &Stat) -> Identity {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => Identity {
                device: stat.st_rdev,
                file: None,
            },
            _ => Identity {
                device: stat.st_dev,
                file: Some(stat.st_ino),
            },
        }
    }
}

/// A file or block device.
#[derive(Debug)]
pub struct Device {
    path: PathBuf,
    file: OwnedFd,
    identity: Identity,
    below: Backing,
    sector_bytes: u32,
    sectors: Sectors,
    space: ReservedSpace,
    /// The number of the last error, or 0.
    last_error: AtomicI32,
    /// Whether the last allocation found no space.
    is_full: AtomicBool,
    /// Whether the file was found to be shorter than before. Otherwise a later write could extend
    /// it again, and the missing part would read as zeros.
    is_cut: AtomicBool,
    /// Whether the kernel cannot tell if a read would block.
    never_cached: AtomicBool,
    watch: OutstandingOps,
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
            identity: Identity::of(&rustix::fs::fstat(&file).map_err(failed("measure"))?),
            file,
            below,
            sector_bytes,
            sectors: Sectors(bytes / u64::from(sector_bytes)),
            space: ReservedSpace::new(bytes),
            last_error: AtomicI32::new(0),
            is_full: AtomicBool::new(false),
            is_cut: AtomicBool::new(false),
            never_cached: AtomicBool::new(false),
            watch: OutstandingOps::default(),
            lanes: DeviceThreads::default(),
        })
    }

    /// Opens the device with the given access as [`Device::open`] does, within the time-out.
    ///
    /// # Errors
    /// Returns the errors of [`Device::open`], or an error if there is no response in time.
    pub(super) fn open_within(
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
    pub(super) fn is_zero(&self, range: Range<Lbn>, timeout: Duration) -> bool {
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

    pub(super) fn identity(&self) -> Identity {
        self.identity
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

    /// Returns the system's most recent error, if any.
    pub fn last_error(&self) -> Option<io::Error> {
        if let Some(silent) = self.watch.given_up_after() {
            let why = format!("no response for {:.1} s", silent.as_secs_f64());
            return Some(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        if self.is_full.load(Ordering::Relaxed) {
            return Some(io::Error::new(io::ErrorKind::StorageFull, FULL));
        }
        let number = self.last_error.load(Ordering::Relaxed);
        (number != 0).then(|| io::Error::from_raw_os_error(number))
    }

    fn offset(&self, at: Lbn) -> u64 {
        at.0 * u64::from(self.sector_bytes)
    }

    fn watch(&self) -> &OutstandingOps {
        &self.watch
    }

    fn lanes(&self) -> &DeviceThreads {
        &self.lanes
    }

    fn is_file(&self) -> bool {
        !matches!(self.below, Backing::Block | Backing::Cached)
    }

    /// Returns an error if the device's file has been shortened. It is not accessed any more.
    fn takes_reads(&self) -> Result<(), Errno> {
        if self.is_cut.load(Ordering::Relaxed) {
            Err(Errno::IO)
        } else {
            Ok(())
        }
    }

    /// Returns an error if the device's file has been shortened. Unlike a read, a write would not
    /// detect this, but hide it.
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

    fn outcome(&self, done: Result<(), Errno>) -> Result<(), Failed> {
        done.map_err(|errno| {
            let number = errno.raw_os_error();
            self.last_error.store(number, Ordering::Relaxed);
            Failed
        })
    }

    /// Returns an io_uring entry for a read or write of the whole memory.
    fn entry(&self, task: Task, memory: &mut [u8]) -> Option<Entry> {
        let file = Fd(self.file.as_raw_fd());
        let count = memory.len().min(ENTRY_BYTES) as u32;
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
            // its end.
            Task::Flush | Task::Reserve(..) => None,
        }
    }

    /// Reads; may block.
    pub(super) fn read(&self, at: Lbn, into: &mut [u8]) -> Result<(), Errno> {
        self.takes_reads()?;
        let read = self.read_by(at, into, |into, offset| {
            rustix::io::pread(&self.file, into, offset)
        });
        read.map(drop)
    }

    /// Writes; may block.
    pub(super) fn write(&self, at: Lbn, mut from: &[u8]) -> Result<(), Errno> {
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
    pub(super) fn flush(&self) -> Result<(), Errno> {
        self.takes_writes()?;
        rustix::fs::fdatasync(&self.file)
    }

    /// Reserves space for sectors of a file; may block.
    pub(super) fn reserve(&self, from: Lbn, to: Lbn) -> Result<(), Errno> {
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
    fn without_blocking(self: &Arc<Device>, action: &mut Action<'_>) -> Option<Result<(), Errno>> {
        match (self.below, action) {
            (Backing::Memory, Action::Read(at, into)) => Some(self.read(*at, into)),
            (Backing::Memory, Action::Write(at, from)) => Some(self.write(*at, from)),
            (Backing::Memory, Action::Flush) => Some(self.flush()),
            (Backing::Disk, Action::Read(at, into)) => self.read_cached(*at, into),
            (Backing::Disk, Action::Write(at, from)) if self.takes_pages(*at, from.len()) => {
                // If the write blocks after all, it is at least reported as outstanding.
                let _turn = OutstandingOp::new(Arc::clone(self));
                Some(self.write(*at, from))
            }
            _ => None,
        }
    }

    /// Reads data that is in the page cache.
    fn read_cached(&self, at: Lbn, into: &mut [u8]) -> Option<Result<(), Errno>> {
        if self.never_cached.load(Ordering::Relaxed) {
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
                self.never_cached.store(true, Ordering::Relaxed);
                None
            }
            done => Some(done),
        }
    }

    /// Returns whether a write consists of whole pages, and the file system below responds as
    /// usual.
    fn takes_pages(&self, at: Lbn, bytes: usize) -> bool {
        let whole = self.offset(at).is_multiple_of(PAGE) && (bytes as u64).is_multiple_of(PAGE);
        whole && self.watch.oldest().is_none_or(|oldest| oldest < SLOW_AFTER)
    }
}

/// The devices of a volume's members. A member can be without a device, and devices can be
/// replaced.
#[derive(Clone, Debug)]
pub struct Devices(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    devices: Vec<RwLock<Option<Arc<Device>>>>,
    /// Whether an operation has failed since the last check.
    has_failed: AtomicBool,
    /// The devices of former members, which can have outstanding operations.
    let_go: Mutex<Vec<Weak<Device>>>,
    timeout_ms: AtomicU64,
    buffers: Arc<Buffers>,
}

/// A device that does not respond.
#[derive(Debug)]
pub(super) struct UnresponsiveMember {
    pub(super) member: usize,
    pub(super) path: PathBuf,
    pub(super) seconds: f64,
}

impl Devices {
    /// Creates the set from the members' devices in their order.
    pub fn new(devices: Vec<Option<Device>>) -> Devices {
        let devices = devices.into_iter();
        Devices::of(devices.map(|device| device.map(Arc::new)).collect())
    }

    pub(super) fn of(devices: Vec<Option<Arc<Device>>>) -> Devices {
        Devices(Arc::new(Shared {
            devices: devices.into_iter().map(RwLock::new).collect(),
            has_failed: AtomicBool::new(false),
            let_go: Mutex::default(),
            timeout_ms: AtomicU64::new(MEMBER_TIMEOUT.as_millis() as u64),
            buffers: Arc::default(),
        }))
    }

    /// Sets the member time-out. A device that does not return an operation within this time is
    /// given up.
    pub fn set_timeout(&self, timeout: Duration) {
        let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
        self.0.timeout_ms.store(timeout_ms, Ordering::Relaxed);
    }

    /// Returns the member time-out.
    pub(super) fn timeout(&self) -> Duration {
        Duration::from_millis(self.0.timeout_ms.load(Ordering::Relaxed))
    }

    /// Returns the device of a member.
    pub fn device(&self, member: usize) -> Option<Arc<Device>> {
        self.0.devices.get(member)?.read().clone()
    }

    fn outcome(&self, device: &Device, done: Result<(), Errno>) -> Result<(), Failed> {
        if done.is_err() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
        device.outcome(done)
    }

    /// Returns whether an operation has failed since the last call.
    pub(super) fn had_failures(&self) -> bool {
        // Every request calls this, so the common case is only a load.
        self.0.has_failed.load(Ordering::Relaxed)
            && self.0.has_failed.swap(false, Ordering::Relaxed)
    }

    /// Returns the members whose files have been shortened, and those that have been given up.
    /// Neither accepts operations any more.
    pub(super) fn unusable(&self) -> Vec<usize> {
        let is_unusable = |device: Arc<Device>| {
            device.is_cut.load(Ordering::Relaxed) || device.watch.is_given_up()
        };
        let members = 0..self.0.devices.len();
        members
            .filter(|member| self.device(*member).is_some_and(is_unusable))
            .collect()
    }

    /// Returns the age of a member's oldest outstanding operation, if it is at least
    /// [`REPORTED_AFTER`].
    pub(super) fn waiting(&self, member: usize) -> Option<Duration> {
        let oldest = self.device(member)?.watch.oldest()?;
        (oldest >= REPORTED_AFTER).then_some(oldest)
    }

    /// Returns the first member that has outstanding operations and has returned none for at least
    /// `least`.
    pub(super) fn waited_for(&self, least: Duration) -> Option<UnresponsiveMember> {
        (0..self.0.devices.len()).find_map(|member| {
            let device = self.device(member)?;
            let still = device.watch.still()?;
            let is_waited_for = still >= least && !device.watch.is_given_up();
            is_waited_for.then(|| UnresponsiveMember {
                member,
                path: device.path.clone(),
                seconds: still.as_secs_f64(),
            })
        })
    }

    /// Returns the paths of devices that have been given up and have outstanding operations.
    pub(super) fn devices_with_outstanding(&self) -> Vec<PathBuf> {
        let let_go = self.0.let_go.lock();
        let let_go = let_go.iter().filter_map(Weak::upgrade);
        let members = (0..self.0.devices.len()).filter_map(|member| self.device(member));
        let all = members.chain(let_go);
        let late = all.filter(|one| one.watch.is_given_up() && one.watch.outstanding() > 0);
        late.map(|device| device.path.clone()).collect()
    }

    /// Gives a member up if its oldest outstanding operation is at least `least` old.
    pub(super) fn give_up(&self, member: usize, least: Duration) {
        let oldest = |one: &Device| one.watch.oldest().unwrap_or_default();
        if let Some(device) = self.device(member).filter(|one| oldest(one) >= least) {
            device.watch.give_up();
        }
    }

    /// Replaces the device of a member.
    pub(super) fn set_device(&self, member: usize, device: Option<Arc<Device>>) {
        let before = std::mem::replace(&mut *self.0.devices[member].write(), device);
        let Some(before) = before else { return };
        let mut let_go = self.0.let_go.lock();
        let_go.retain(|device| device.strong_count() > 0);
        let_go.push(Arc::downgrade(&before));
        drop(let_go);
        // Closing the device can also block.
        let thread = thread::Builder::new().name("close".to_owned());
        let before = Box::leak(Box::new(Some(before)));
        let _ = thread.spawn(|| *before = None);
    }

    /// Returns the number of outstanding operations of current and former members' devices.
    pub(super) fn outstanding(&self, of: impl Fn(&Device) -> bool) -> usize {
        let let_go = self.0.let_go.lock();
        let let_go = let_go.iter().filter_map(Weak::upgrade);
        let members = (0..self.0.devices.len()).filter_map(|member| self.device(member));
        let all = members.chain(let_go).filter(|device| of(device));
        all.map(|device| device.watch.outstanding()).sum()
    }

    /// Removes and returns the devices of all members.
    pub(super) fn take_all(self) -> Vec<Option<Arc<Device>>> {
        let devices = self.0.devices.iter();
        devices.map(|place| place.write().take()).collect()
    }

    /// Carries out operations that may block, in parallel.
    #[allow(unsafe_code)]
    fn run_blocking(&self, ops: &mut [Op<'_>], apart: &mut [(usize, Option<Arc<Device>>)]) {
        let timeout = self.timeout();
        let is_block = |device: &Option<Arc<Device>>| {
            device
                .as_ref()
                .is_some_and(|one| one.below == Backing::Block)
        };
        let is_offered = apart.iter().any(|(_, one)| is_block(one)) && uring::is_offered();
        let mut batch = None;
        let mut asks = RingOps::new();
        // The indices in `ops` of the operations in `batch` and in `asks`.
        let mut of_batch: SmallVec<[usize; OPS_INLINE]> = SmallVec::new();
        let mut of_asks: SmallVec<[usize; OPS_INLINE]> = SmallVec::new();
        for (index, device) in apart {
            let device = device.take().expect("each is taken once");
            let (task, mut memory) = self.task(&ops[*index].action);
            let direct = device.below == Backing::Block && is_offered;
            let memory_of = memory.as_deref_mut().filter(|_| direct);
            match memory_of.and_then(|memory| device.entry(task, memory)) {
                Some(entry) => {
                    of_asks.push(*index);
                    asks.push(Some(RingOp {
                        entry,
                        memory: memory.expect("the entry names it"),
                        turn: OutstandingOp::new(device),
                        result: None,
                    }));
                }
                None => {
                    of_batch.push(*index);
                    let batch = batch.get_or_insert_with(Batch::new);
                    batch.push(device, task, memory);
                }
            }
        }
        if !asks.is_empty() {
            // SAFETY: each entry was made for its own memory and device.
            unsafe { uring::carry_out(&mut asks, timeout) };
        }
        for (ask, index) in asks.into_iter().zip(of_asks) {
            let op = &mut ops[index];
            let Some(RingOp {
                memory,
                turn,
                result,
                ..
            }) = ask
            else {
                op.outcome = self.silence(op.member);
                continue;
            };
            let device = Arc::clone(turn.device());
            drop(turn);
            match result.and_then(|result| ended(memory.len(), result)) {
                Some(done) => {
                    if let (Action::Read(_, into), Ok(())) = (&mut op.action, done) {
                        into.copy_from_slice(&memory);
                    }
                    op.outcome = self.outcome(&device, done);
                }
                None => {
                    let task = task_of(&op.action);
                    of_batch.push(index);
                    let batch = batch.get_or_insert_with(Batch::new);
                    batch.push(device, task, Some(memory));
                }
            }
        }
        let Some(batch) = batch else { return };
        batch.wait(timeout, |number, done, memory| {
            let op = &mut ops[of_batch[number]];
            if let (Action::Read(_, into), Ok(()), Some(memory)) = (&mut op.action, done, memory) {
                into.copy_from_slice(memory);
            }
            op.outcome = match self.device(op.member) {
                Some(device) => self.outcome(&device, done),
                None => done.map_err(|_| Failed),
            };
        });
    }

    /// Reserves space in one of the device's threads, because the file system might not respond.
    fn reserve_apart(&self, device: &Arc<Device>, sectors: &Range<Lbn>) -> Result<(), Errno> {
        let batch = Batch::new();
        let task = Task::Reserve(sectors.start, sectors.end);
        batch.push(Arc::clone(device), task, None);
        let mut outcome = Ok(());
        batch.wait(self.timeout(), |_, done, _| outcome = done);
        outcome
    }

    /// Returns an action's task and its memory. For a write, the memory holds the data.
    fn task(&self, action: &Action<'_>) -> (Task, Option<AlignedBuffer>) {
        let memory = match action {
            Action::Read(_, into) => Some(self.0.buffers.take(into.len())),
            Action::Write(_, from) => {
                let mut memory = self.0.buffers.take(from.len());
                memory.copy_from_slice(from);
                Some(memory)
            }
            Action::Flush => None,
        };
        (task_of(action), memory)
    }

    /// Records and returns the outcome of an operation on a member that does not respond.
    fn silence(&self, member: usize) -> Result<(), Failed> {
        match self.device(member) {
            Some(device) => self.outcome(&device, Err(Errno::TIMEDOUT)),
            None => Err(Failed),
        }
    }
}

impl MemberIo for Devices {
    type Buffer = AlignedBuffer;

    fn reserve(&self, member: usize, sectors: Range<Lbn>) -> Result<(), NoSpace> {
        let Some(device) = self.device(member).filter(|one| one.is_file()) else {
            return Ok(());
        };
        let bytes = device.offset(sectors.start)..device.offset(sectors.end);
        if device.watch.is_given_up() || device.space.is_reserved(&bytes) {
            return Ok(());
        }
        let done = match device.below {
            Backing::Memory => device.reserve(sectors.start, sectors.end),
            _ => self.reserve_apart(&device, &sectors),
        };
        match done {
            Err(Errno::NOSPC | Errno::DQUOT) => {
                if !device.is_full.swap(true, Ordering::Relaxed) {
                    let path = device.path.display();
                    tracing::warn!("member {member}: {path}: {FULL}");
                }
                Err(NoSpace)
            }
            // The write will report another error.
            Err(_) => Ok(()),
            Ok(()) => {
                if device.is_full.swap(false, Ordering::Relaxed) {
                    tracing::info!("member {member}: there is space below it again");
                }
                Ok(())
            }
        }
    }

    fn buffer(&self, bytes: usize) -> AlignedBuffer {
        self.0.buffers.take(bytes)
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        let mut apart: SmallVec<[(usize, Option<Arc<Device>>); OPS_INLINE]> = SmallVec::new();
        for (index, op) in ops.iter_mut().enumerate() {
            let Some(device) = self.device(op.member) else {
                op.outcome = Err(Failed);
                continue;
            };
            if device.watch.is_given_up() {
                op.outcome = self.outcome(&device, Err(Errno::TIMEDOUT));
                continue;
            }
            match device.without_blocking(&mut op.action) {
                Some(done) => op.outcome = self.outcome(&device, done),
                None => apart.push((index, Some(device))),
            }
        }
        if !apart.is_empty() {
            self.run_blocking(ops, &mut apart);
        }
    }
}

pub(super) fn no_answer(timeout: Duration) -> io::Error {
    let why = format!("no response within {} s", timeout.as_secs());
    io::Error::new(io::ErrorKind::TimedOut, why)
}

fn task_of(action: &Action<'_>) -> Task {
    match action {
        Action::Read(at, _) => Task::Read(*at),
        Action::Write(at, _) => Task::Write(*at),
        Action::Flush => Task::Flush,
    }
}

/// Converts io_uring's result for an operation of `bytes` bytes. Returns `None` if a blocking
/// system call must repeat the operation.
fn ended(bytes: usize, result: i32) -> Option<Result<(), Errno>> {
    match usize::try_from(result) {
        Ok(done) => (done == bytes).then_some(Ok(())),
        Err(_) => match Errno::from_raw_os_error(-result) {
            Errno::INTR | Errno::AGAIN | Errno::INVAL | Errno::OPNOTSUPP => None,
            errno => Some(Err(errno)),
        },
    }
}
