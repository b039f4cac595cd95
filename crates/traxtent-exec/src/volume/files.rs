//! Members that are files or block devices.

use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::thread;

use io_uring::opcode;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, FsyncFlags};
use rustix::fs::{FileType, OFlags, SeekFrom};
use rustix::io::Errno;
use smallvec::SmallVec;
use traxtent_core::units::{Lbn, Sectors};
use traxtent_core::volume::{Action, Failed, Members, NoSpace, Op};

use super::error::VolumeIoError;
use super::space::Space;
use super::uring;
use crate::device::guard::{self, Direct};

/// Direct transfers want memory at multiples of this.
const PAGE: usize = 4096;

/// Requests of a volume have seldom more operations at once.
const AT_ONCE: usize = 32;

/// An operation of io_uring moves at most so much.
const ENTRY_BYTES: usize = 1 << 30;

/// Without io_uring, operations that move more than this together are worth threads of their own.
const PARALLEL_BYTES: usize = 1 << 20;

/// At most so many buffers wait for their next use,
const BUFFERS_KEPT: usize = 64;

/// of so many bytes together.
const BYTES_KEPT: usize = 64 << 20;

/// A file or block device.
#[derive(Debug)]
pub struct Device {
    path: PathBuf,
    file: OwnedFd,
    is_file: bool,
    direct: bool,
    sector_bytes: u32,
    sectors: Sectors,
    space: Space,
    /// The number of the error that came last, or 0.
    last_error: AtomicI32,
    /// It was seen to be shorter than it was: what was cut off reads as zeros where a later write makes it longer again.
    is_cut: AtomicBool,
}

impl Device {
    /// Opens it for this process alone.
    ///
    /// # Errors
    /// If it cannot be used, is neither file nor block device, or is in use.
    pub fn open(path: &Path) -> Result<Device, VolumeIoError> {
        let failed = |what: &'static str| {
            move |errno: Errno| VolumeIoError::Device {
                path: path.to_owned(),
                what,
                error: io::Error::from(errno),
            }
        };
        let guard::Held {
            file,
            is_block,
            is_direct: direct,
        } = guard::open(path, Direct::IfPossible)?;
        let bytes = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(failed("measure"))?;
        let sector_bytes = match is_block {
            true => rustix::fs::ioctl_blksszget(&file).map_err(failed("measure"))?,
            false => 512,
        };
        // A file's page cache is what a file system has below it; direct transfers need its blocks' size.
        let direct = direct && is_block;
        if !direct {
            let flags = rustix::fs::fcntl_getfl(&file).map_err(failed("open"))?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::DIRECT).map_err(failed("open"))?;
        }
        Ok(Device {
            path: path.to_owned(),
            file,
            is_file: !is_block,
            direct,
            sector_bytes,
            sectors: Sectors(bytes / u64::from(sector_bytes)),
            space: Space::new(bytes),
            last_error: AtomicI32::new(0),
            is_cut: AtomicBool::new(false),
        })
    }

    /// Whether a path names the same file or block device, by whatever name.
    pub(super) fn is_at(&self, path: &Path) -> bool {
        let identity = |stat: rustix::fs::Stat| match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => (stat.st_rdev, None),
            _ => (stat.st_dev, Some(stat.st_ino)),
        };
        let (own, other) = (rustix::fs::fstat(&self.file), rustix::fs::stat(path));
        matches!((own, other), (Ok(own), Ok(other)) if identity(own) == identity(other))
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of a logical sector.
    pub fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// How many sectors it has.
    pub fn sectors(&self) -> Sectors {
        self.sectors
    }

    /// What the system said when it failed the last time, if it did.
    pub fn last_error(&self) -> Option<io::Error> {
        let number = self.last_error.load(Ordering::Relaxed);
        (number != 0).then(|| io::Error::from_raw_os_error(number))
    }

    fn offset(&self, at: Lbn) -> u64 {
        at.0 * u64::from(self.sector_bytes)
    }

    /// Whether an operation may be asked of it. A file that has lost some of its length is asked for nothing any more: a read
    /// finds that out by itself, a write would hide it.
    fn takes(&self, action: &Action<'_>) -> bool {
        if !self.is_file {
            return true;
        }
        let bytes = self.offset(Lbn(self.sectors.0));
        let is_writing = !matches!(action, Action::Read(..));
        let is_shorter =
            || rustix::fs::seek(&self.file, SeekFrom::End(0)).is_ok_and(|end| end < bytes);
        if !self.is_cut.load(Ordering::Relaxed) && is_writing && is_shorter() {
            self.is_cut.store(true, Ordering::Relaxed);
        }
        !self.is_cut.load(Ordering::Relaxed)
    }

    fn outcome(&self, done: Result<(), Errno>) -> Result<(), Failed> {
        done.map_err(|errno| {
            let number = errno.raw_os_error();
            self.last_error.store(number, Ordering::Relaxed);
            Failed
        })
    }

    /// An operation for io_uring, with other memory if that is given.
    fn entry(&self, action: &mut Action<'_>, bounce: Option<&mut [u8]>) -> Entry {
        let file = Fd(self.file.as_raw_fd());
        let count = |bytes: &[u8]| bytes.len().min(ENTRY_BYTES) as u32;
        match action {
            Action::Read(at, into) => {
                let into = bounce.unwrap_or(into);
                opcode::Read::new(file, into.as_mut_ptr(), count(into))
                    .offset(self.offset(*at))
                    .build()
            }
            Action::Write(at, from) => {
                let from = bounce.as_deref().unwrap_or(from);
                opcode::Write::new(file, from.as_ptr(), count(from))
                    .offset(self.offset(*at))
                    .build()
            }
            Action::Flush => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
        }
    }

    fn read(&self, at: Lbn, mut into: &mut [u8]) -> Result<(), Errno> {
        let mut offset = self.offset(at);
        while !into.is_empty() {
            match rustix::io::pread(&self.file, &mut *into, offset) {
                Ok(0) => {
                    self.is_cut.store(self.is_file, Ordering::Relaxed);
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

    fn write(&self, at: Lbn, mut from: &[u8]) -> Result<(), Errno> {
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
}

/// Devices as the members of a volume; places may be empty, and change hands.
#[derive(Clone, Debug)]
pub struct Devices(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    devices: Vec<RwLock<Option<Arc<Device>>>>,
    /// An operation has failed, and nobody has asked since.
    has_failed: AtomicBool,
    idle: Mutex<Vec<Vec<u8>>>,
}

impl Devices {
    /// The members in their order.
    pub fn new(devices: Vec<Option<Device>>) -> Devices {
        let place = |device: Option<Device>| RwLock::new(device.map(Arc::new));
        Devices(Arc::new(Shared {
            devices: devices.into_iter().map(place).collect(),
            has_failed: AtomicBool::new(false),
            idle: Mutex::default(),
        }))
    }

    /// The device of a member.
    pub fn device(&self, member: usize) -> Option<Arc<Device>> {
        let place = self.0.devices.get(member)?.read();
        place.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The device of an operation, if that may be asked of it.
    fn device_of(&self, op: &Op<'_>) -> Option<Arc<Device>> {
        let device = self.device(op.member)?;
        if !device.takes(&op.action) {
            let _ = self.outcome(&device, Err(Errno::IO));
            return None;
        }
        Some(device)
    }

    fn outcome(&self, device: &Device, done: Result<(), Errno>) -> Result<(), Failed> {
        if done.is_err() {
            self.0.has_failed.store(true, Ordering::Relaxed);
        }
        device.outcome(done)
    }

    /// Whether an operation has failed since this was last asked.
    pub(super) fn had_failures(&self) -> bool {
        // Every request asks.
        self.0.has_failed.load(Ordering::Relaxed)
            && self.0.has_failed.swap(false, Ordering::Relaxed)
    }

    /// The members whose files were seen to be cut short.
    pub(super) fn cut_short(&self) -> Vec<usize> {
        let is_cut = |device: Arc<Device>| device.is_cut.load(Ordering::Relaxed);
        let members = 0..self.0.devices.len();
        members
            .filter(|member| self.device(*member).is_some_and(is_cut))
            .collect()
    }

    /// Takes the device of a member away, and gives it another.
    pub(super) fn put(&self, member: usize, device: Option<Device>) {
        let place = self.0.devices[member].write();
        *place.unwrap_or_else(PoisonError::into_inner) = device.map(Arc::new);
    }

    /// The devices, if nobody else has them.
    pub(super) fn into_inner(self) -> Vec<Option<Device>> {
        let devices = Arc::into_inner(self.0).map_or_else(Vec::new, |shared| shared.devices);
        let device = |place: RwLock<Option<Arc<Device>>>| {
            let device = place.into_inner().unwrap_or_else(PoisonError::into_inner);
            device.and_then(Arc::into_inner)
        };
        devices.into_iter().map(device).collect()
    }

    /// Carries out an operation.
    fn perform(&self, op: &mut Op<'_>) {
        let Some(device) = self.device_of(op) else {
            op.outcome = Err(Failed);
            return;
        };
        let mut bounce = self.bounce(&device, &op.action);
        let done = match (&mut op.action, bounce.as_deref_mut()) {
            (Action::Read(at, into), None) => device.read(*at, into),
            (Action::Read(at, into), Some(bounce)) => {
                let done = device.read(*at, bounce);
                into.copy_from_slice(bounce);
                done
            }
            (Action::Write(at, from), bounce) => {
                device.write(*at, bounce.as_deref().unwrap_or(from))
            }
            (Action::Flush, _) => rustix::fs::fdatasync(&device.file),
        };
        op.outcome = self.outcome(&device, done);
    }

    /// Memory that a direct transfer takes in place of what is given, filled with what is written.
    fn bounce(&self, device: &Device, action: &Action<'_>) -> Option<Aligned> {
        match action {
            Action::Read(_, into) if device.direct && !is_aligned(into) => {
                Some(self.aligned(into.len()))
            }
            Action::Write(_, from) if device.direct && !is_aligned(from) => {
                let mut bounce = self.aligned(from.len());
                bounce.copy_from_slice(from);
                Some(bounce)
            }
            _ => None,
        }
    }

    /// Carries out operations side by side. False where the kernel does not offer it; then nothing was done.
    #[allow(unsafe_code)]
    fn perform_at_once(&self, ops: &mut [Op<'_>]) -> bool {
        let devices: SmallVec<[Option<Arc<Device>>; AT_ONCE]> =
            ops.iter().map(|op| self.device_of(op)).collect();
        let mut bounces: SmallVec<[Option<Aligned>; AT_ONCE]> = std::iter::zip(&*ops, &devices)
            .map(|(op, device)| self.bounce(device.as_deref()?, &op.action))
            .collect();
        let mut entries: SmallVec<[Entry; AT_ONCE]> = SmallVec::new();
        for (index, op) in ops.iter_mut().enumerate() {
            // Until something else is known.
            op.outcome = Err(Failed);
            if let Some(device) = &devices[index] {
                let bounce = bounces[index].as_deref_mut();
                entries.push(device.entry(&mut op.action, bounce).user_data(index as u64));
            }
        }
        let mut again: SmallVec<[usize; 4]> = SmallVec::new();
        // SAFETY: `devices` holds the files, `bounces` and whoever holds `ops` the memory, which nobody else has.
        let offered = unsafe {
            uring::carry_out(entries.into_iter(), |index, result| {
                let index = index as usize;
                let op = &mut ops[index];
                match ended(&op.action, result) {
                    Some(done) => {
                        let device = devices[index].as_ref().expect("it was asked");
                        op.outcome = self.outcome(device, done);
                    }
                    None => again.push(index),
                }
            })
        };
        for (op, bounce) in std::iter::zip(&mut *ops, &bounces) {
            if let (Action::Read(_, into), Some(bounce)) = (&mut op.action, bounce) {
                into.copy_from_slice(bounce);
            }
        }
        for index in again {
            self.perform(&mut ops[index]);
        }
        offered
    }

    fn aligned(&self, bytes: usize) -> Aligned {
        let mut idle = self.0.idle.lock().expect("nobody panics with it");
        let fits = idle.iter().rposition(|one| one.len() >= bytes + PAGE);
        let memory = match fits {
            Some(index) => idle.swap_remove(index),
            None => {
                drop(idle);
                vec![0; (bytes + PAGE).next_power_of_two()]
            }
        };
        let start = memory.as_ptr().align_offset(PAGE);
        Aligned {
            memory,
            range: start..start + bytes,
            home: Arc::clone(&self.0),
        }
    }
}

fn is_aligned(bytes: &[u8]) -> bool {
    bytes.as_ptr().align_offset(PAGE) == 0
}

/// Memory as direct transfers want it, which returns to where it came from.
#[derive(Debug)]
pub struct Aligned {
    memory: Vec<u8>,
    range: std::ops::Range<usize>,
    home: Arc<Shared>,
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        let mut idle = self.home.idle.lock().expect("nobody panics with it");
        let kept: usize = idle.iter().map(Vec::len).sum();
        if idle.len() < BUFFERS_KEPT && kept + self.memory.len() <= BYTES_KEPT {
            idle.push(std::mem::take(&mut self.memory));
        }
    }
}

impl Members for Devices {
    type Buffer = Aligned;

    fn reserve(&self, member: usize, sectors: Range<Lbn>) -> Result<(), NoSpace> {
        match self.device(member) {
            Some(device) if device.is_file => {
                let bytes = device.offset(sectors.start)..device.offset(sectors.end);
                device.space.reserve(&device.file, bytes)
            }
            _ => Ok(()),
        }
    }

    fn buffer(&self, bytes: usize) -> Aligned {
        self.aligned(bytes)
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        let bytes = |op: &Op<'_>| match &op.action {
            Action::Read(_, into) => into.len(),
            Action::Write(_, from) => from.len(),
            Action::Flush => 0,
        };
        let flush = ops.iter().any(|op| matches!(op.action, Action::Flush));
        let is_direct = |op: &Op<'_>| self.device(op.member).is_some_and(|device| device.direct);
        // What goes to files is copied to and from the page cache, in this thread's time or another's.
        let waits = ops.len() > 1 && ops.iter().any(is_direct);
        if waits && self.perform_at_once(ops) {
            return;
        }
        let is_much = flush || ops.iter().map(bytes).sum::<usize>() >= PARALLEL_BYTES;
        if !(waits && is_much) {
            ops.iter_mut().for_each(|op| self.perform(op));
            return;
        }
        // One thread a member, so that members work side by side.
        ops.sort_by_key(|op| op.member);
        thread::scope(|scope| {
            for of_member in ops.chunk_by_mut(|one, two| one.member == two.member) {
                scope.spawn(|| of_member.iter_mut().for_each(|op| self.perform(op)));
            }
        });
    }
}

/// How an operation went, by io_uring's result; `None` if it has to be asked for again, in plain words.
fn ended(action: &Action<'_>, result: i32) -> Option<Result<(), Errno>> {
    let bytes = match action {
        Action::Read(_, into) => into.len(),
        Action::Write(_, from) => from.len(),
        Action::Flush => 0,
    };
    match usize::try_from(result) {
        Ok(done) => (done == bytes).then_some(Ok(())),
        Err(_) => match Errno::from_raw_os_error(-result) {
            Errno::INTR | Errno::AGAIN | Errno::INVAL | Errno::OPNOTSUPP => None,
            errno => Some(Err(errno)),
        },
    }
}
