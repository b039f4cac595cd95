//! Members that are files or block devices.
//!
//! A member can stop responding forever, and operations that the kernel has accepted then cannot be
//! cancelled. A request's own thread therefore performs only operations that normally do not block.
//! All others are passed to the kernel (io_uring) or to the device's threads. Such an operation
//! owns its memory until it returns. Requests wait for it no longer than the member time-out. A
//! device that does not respond in time is given up, and all later operations on it fail
//! immediately.
//!
//! A request's own thread reads and writes files in memory (tmpfs), reads data that is in the page
//! cache, and writes whole pages to the page cache of the usual local file systems. Such a write
//! can block if the file system is frozen or its disk hangs. It is therefore passed to another
//! thread while an operation on the device, typically a flush, has been outstanding for half a
//! second or longer.

mod device;
mod lanes;
mod uring;
mod watch;

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use rustix::io::Errno;
use smallvec::SmallVec;
use traxtent_units::Lbn;
use traxtent_volume::{Action, Failed, MemberIo, NoSpace, Op};

pub use super::buffers::AlignedBuffer;
use super::buffers::Buffers;
use device::Backing;
pub use device::Device;
pub(super) use device::storage_at;
use lanes::{Batch, Task};
use uring::{RingOp, RingOps};
use watch::OutstandingOp;
pub(super) use watch::with_timeout;
pub use watch::{MEMBER_TIMEOUT, MEMBER_TIMEOUTS};

/// The number of simultaneous operations that a request to a volume seldom exceeds.
const OPS_INLINE: usize = 32;

/// The age of an operation at which its device is reported as not responding.
const REPORTED_AFTER: Duration = Duration::from_secs(1);

/// The message that a member's file system has no space left.
const FULL: &str = "no space left below it: writes fail with ENOSPC";

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
    former: Mutex<Vec<Weak<Device>>>,
    timeout_ms: AtomicU64,
    buffers: Arc<Buffers>,
}

/// A member whose device does not respond.
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
            former: Mutex::default(),
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

    /// Returns the first member that has not been given up, has outstanding operations, and has
    /// returned none for at least `least`.
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
        let former = self.0.former.lock();
        let former = former.iter().filter_map(Weak::upgrade);
        let members = (0..self.0.devices.len()).filter_map(|member| self.device(member));
        let all = members.chain(former);
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
        let mut former = self.0.former.lock();
        former.retain(|device| device.strong_count() > 0);
        former.push(Arc::downgrade(&before));
        drop(former);
        // Closing the device can also block.
        let thread = thread::Builder::new().name("close".to_owned());
        let before = Box::leak(Box::new(Some(before)));
        let _ = thread.spawn(|| *before = None);
    }

    /// Returns the number of outstanding operations on the devices for which `of` returns true. The
    /// devices of former members are included.
    pub(super) fn outstanding(&self, of: impl Fn(&Device) -> bool) -> usize {
        let former = self.0.former.lock();
        let former = former.iter().filter_map(Weak::upgrade);
        let members = (0..self.0.devices.len()).filter_map(|member| self.device(member));
        let all = members.chain(former).filter(|device| of(device));
        all.map(|device| device.watch.outstanding()).sum()
    }

    /// Removes and returns the devices of all members.
    pub(super) fn take_all(self) -> Vec<Option<Arc<Device>>> {
        let devices = self.0.devices.iter();
        devices.map(|place| place.write().take()).collect()
    }

    /// Carries out operations that may block, in parallel. `apart` holds their indices in `ops`,
    /// and their devices.
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
        let mut ring_ops = RingOps::new();
        // The indices in `ops` of the operations in `batch` and in `ring_ops`.
        let mut batch_indices: SmallVec<[usize; OPS_INLINE]> = SmallVec::new();
        let mut ring_indices: SmallVec<[usize; OPS_INLINE]> = SmallVec::new();
        for (index, device) in apart {
            let device = device.take().expect("each is taken once");
            let (task, mut memory) = self.task(&ops[*index].action);
            let direct = device.below == Backing::Block && is_offered;
            let memory_of = memory.as_deref_mut().filter(|_| direct);
            match memory_of.and_then(|memory| device.entry(task, memory)) {
                Some(entry) => {
                    ring_indices.push(*index);
                    ring_ops.push(Some(RingOp {
                        entry,
                        memory: memory.expect("the entry names it"),
                        record: OutstandingOp::new(device),
                        result: None,
                    }));
                }
                None => {
                    batch_indices.push(*index);
                    let batch = batch.get_or_insert_with(Batch::new);
                    batch.push(device, task, memory);
                }
            }
        }
        if !ring_ops.is_empty() {
            // SAFETY: each entry was made for its own memory and device.
            unsafe { uring::carry_out(&mut ring_ops, timeout) };
        }
        for (ring_op, index) in ring_ops.into_iter().zip(ring_indices) {
            let op = &mut ops[index];
            let Some(RingOp {
                memory,
                record,
                result,
                ..
            }) = ring_op
            else {
                op.outcome = self.silence(op.member);
                continue;
            };
            let device = Arc::clone(record.device());
            drop(record);
            match result.and_then(|result| ended(memory.len(), result)) {
                Some(done) => {
                    if let (Action::Read(_, into), Ok(())) = (&mut op.action, done) {
                        into.copy_from_slice(&memory);
                    }
                    op.outcome = self.outcome(&device, done);
                }
                None => {
                    let task = task_of(&op.action);
                    batch_indices.push(index);
                    let batch = batch.get_or_insert_with(Batch::new);
                    batch.push(device, task, Some(memory));
                }
            }
        }
        let Some(batch) = batch else { return };
        batch.wait(timeout, |number, done, memory| {
            let op = &mut ops[batch_indices[number]];
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
            // The write will report any other error.
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
