//! Operations that the kernel carries out in parallel through io_uring.
//!
//! Requests wait for them no longer than the member time-out. Operations that have not returned by
//! then keep their ring, and a separate thread waits for them.

use std::cell::RefCell;
use std::io;
use std::thread;
use std::time::Duration;

use io_uring::IoUring;
use io_uring::squeue::Entry;
use io_uring::types::{SubmitArgs, Timespec};
use smallvec::SmallVec;

use super::watch::{OutstandingOp, POLL_INTERVAL};
use crate::volume::buffers::AlignedBuffer;

/// The maximum number of simultaneous operations per thread.
const ENTRIES: u32 = 64;

/// `ETIME`, for which the standard library has no error kind.
const TIMER_EXPIRED: i32 = 62;

thread_local! {
    /// The thread's ring; `None` if the kernel does not offer a suitable one. No operations are
    /// outstanding between two calls.
    static RING: RefCell<Option<IoUring>> = RefCell::new(new_ring());
}

/// An operation for the kernel, with all memory and files that the kernel uses until its end.
#[derive(Debug)]
pub(super) struct RingOp {
    /// The operation.
    pub(super) entry: Entry,
    /// Its memory, which is not shared.
    pub(super) memory: AlignedBuffer,
    /// Its record at the device, which keeps the device's file open.
    pub(super) record: OutstandingOp,
    /// The kernel's result (see `io_uring_enter(2)`).
    pub(super) result: Option<i32>,
}

/// Operations for the kernel. `None` replaces an operation that was given up.
pub(super) type RingOps = SmallVec<[Option<RingOp>; 8]>;

/// Returns whether this thread has a ring.
pub(super) fn is_offered() -> bool {
    RING.with_borrow(|ring| ring.is_some())
}

fn new_ring() -> Option<IoUring> {
    // On Linux 5.19 and later, this avoids interrupting a thread that waits.
    let cooperative = IoUring::builder().setup_coop_taskrun().build(ENTRIES);
    let ring = cooperative.or_else(|_| IoUring::new(ENTRIES)).ok()?;
    // Waits with a time limit need Linux 5.11.
    ring.params().is_feature_ext_arg().then_some(ring)
}

/// Carries out operations, and records the result of each. Devices that do not respond in time are
/// given up. Operations that are outstanding on devices that have been given up are removed from
/// `ops`. If the thread no longer has a ring, operations are left without a result.
///
/// # Safety
/// Each entry must refer to its own `memory` and to a file of its own `record`'s device.
#[allow(unsafe_code)]
pub(super) unsafe fn carry_out(ops: &mut RingOps, timeout: Duration) {
    RING.with_borrow_mut(|thread_ring| {
        let mut next = 0;
        let mut outstanding = 0;
        while next < ops.len() || outstanding > 0 {
            let Some(ring) = thread_ring else {
                return;
            };
            while next < ops.len() && outstanding < ENTRIES as usize {
                if let Some(op) = &ops[next] {
                    let entry = op.entry.clone().user_data(next as u64);
                    // SAFETY: until the operation has ended, `ops` or `late` owns the memory to
                    // which the entry points.
                    unsafe { ring.submission().push(&entry) }.expect("there is room");
                    outstanding += 1;
                }
                next += 1;
            }
            let slice = Timespec::from(POLL_INTERVAL.min(timeout));
            let bound = SubmitArgs::new().timespec(&slice);
            let entered = ring.submitter().submit_with_args(outstanding, &bound);
            if let Err(error) = entered
                && !is_transient(&error)
            {
                // The kernel may use the memory for an unknown time.
                tracing::error!("io_uring_enter: {error}");
                std::process::abort();
            }
            for completion in ring.completion() {
                let op = ops[completion.user_data() as usize].as_mut();
                op.expect("the kernel completes only submitted operations")
                    .result = Some(completion.result());
                outstanding -= 1;
            }
            if outstanding > 0 && all_given_up(&ops[..next], timeout) {
                let late = take_late(&mut ops[..next]);
                let ring = std::mem::replace(thread_ring, new_ring());
                detach_late_ops(ring, late);
                outstanding = 0;
            }
        }
    });
}

/// Gives up the devices of operations that have taken too long. Returns whether all outstanding
/// operations then belong to devices that have been given up.
fn all_given_up(ops: &[Option<RingOp>], timeout: Duration) -> bool {
    let outstanding = ops.iter().flatten().filter(|op| op.result.is_none());
    let mut all = true;
    for op in outstanding {
        op.record.check(timeout);
        all &= op.record.device().watch().is_given_up();
    }
    all
}

fn take_late(ops: &mut [Option<RingOp>]) -> Vec<(u64, RingOp)> {
    let mut late = Vec::new();
    for (number, slot) in ops.iter_mut().enumerate() {
        if let Some(op) = slot.take_if(|op| op.result.is_none()) {
            late.push((number as u64, op));
        }
    }
    late
}

/// Starts a thread that waits for operations that may never return. If the thread cannot be started
/// or cannot wait, memory and files are leaked.
fn detach_late_ops(ring: Option<IoUring>, late: Vec<(u64, RingOp)>) {
    // These must not be dropped before the kernel has returned all operations, even if the thread
    // cannot be started.
    let leaked = Box::leak(Box::new((ring, late)));
    let wait_for = || {
        let (ring_slot, late) = leaked;
        let Some(ring) = ring_slot else { return };
        while !late.is_empty() {
            if let Err(error) = ring.submit_and_wait(1)
                && !is_transient(&error)
            {
                return;
            }
            for completion in ring.completion() {
                late.retain(|(number, _)| *number != completion.user_data());
            }
        }
        *ring_slot = None;
    };
    let thread = thread::Builder::new().name("late".to_owned());
    let _ = thread.spawn(wait_for);
}

/// Returns whether the same call can succeed later.
fn is_transient(error: &io::Error) -> bool {
    error.raw_os_error() == Some(TIMER_EXPIRED)
        || matches!(
            error.kind(),
            io::ErrorKind::Interrupted
                | io::ErrorKind::WouldBlock
                | io::ErrorKind::ResourceBusy
                | io::ErrorKind::TimedOut
        )
}
