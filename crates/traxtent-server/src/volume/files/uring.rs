//! Operations that the kernel carries out in parallel through io_uring.
//!
//! Threads wait for them no longer than the member time-out. Operations that have not returned by
//! then stay with their ring, and a dedicated thread waits for them.

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

/// The maximum number of simultaneous operations; more wait for their turn.
const ENTRIES: u32 = 64;

/// `ETIME`, which the standard library has no error kind for.
const TIMER_EXPIRED: i32 = 62;

thread_local! {
    /// A thread's own ring, with the process that made it; `None` if the kernel refuses. No
    /// operations are outstanding between two calls.
    static RING: RefCell<(u32, Option<IoUring>)> = const { RefCell::new((0, None)) };
}

/// An operation for the kernel, with everything that the kernel may use until the operation has
/// ended.
#[derive(Debug)]
pub(super) struct RingOp {
    /// The operation.
    pub(super) entry: Entry,
    /// Its memory, which is not shared.
    pub(super) memory: AlignedBuffer,
    /// Its turn, which keeps the device's file open.
    pub(super) turn: OutstandingOp,
    /// The kernel's result (see `io_uring_enter(2)`).
    pub(super) result: Option<i32>,
}

/// Operations for the kernel. Those that were given up are replaced by `None`.
pub(super) type RingOps = SmallVec<[Option<RingOp>; 8]>;

/// Returns whether the kernel offers this thread a ring.
pub(super) fn is_offered() -> bool {
    RING.with_borrow_mut(|own| {
        let process = std::process::id();
        if own.0 != process {
            // A ring from before a fork cannot be used, because the parent also has it.
            *own = (process, new_ring());
        }
        own.1.is_some()
    })
}

fn new_ring() -> Option<IoUring> {
    // On Linux 5.19 and later, this avoids interrupting a thread that waits.
    let quiet = IoUring::builder().setup_coop_taskrun().build(ENTRIES);
    let ring = quiet.or_else(|_| IoUring::new(ENTRIES)).ok()?;
    // Waits with a time limit need Linux 5.11.
    ring.params().is_feature_ext_arg().then_some(ring)
}

/// Carries out operations, and records the result of each. Operations on devices that do not
/// respond in time, or that another thread gives up meanwhile, are taken out, and their devices are
/// given up. If the thread has no ring any more, operations are left without a result.
///
/// # Safety
/// Each entry must refer to its own `memory` and to a file of its own `turn`'s device.
#[allow(unsafe_code)]
pub(super) unsafe fn carry_out(asks: &mut RingOps, timeout: Duration) {
    RING.with_borrow_mut(|own| {
        let mut next = 0;
        let mut under_way = 0;
        while next < asks.len() || under_way > 0 {
            let Some(ring) = &mut own.1 else { return };
            while next < asks.len() && under_way < ENTRIES as usize {
                if let Some(ask) = &asks[next] {
                    let entry = ask.entry.clone().user_data(next as u64);
                    // SAFETY: the memory it points to is owned by `asks` until the operation has
                    // ended, or else by `late`.
                    unsafe { ring.submission().push(&entry) }.expect("there is room");
                    under_way += 1;
                }
                next += 1;
            }
            let slice = Timespec::from(POLL_INTERVAL.min(timeout));
            let bound = SubmitArgs::new().timespec(&slice);
            let entered = ring.submitter().submit_with_args(under_way, &bound);
            if let Err(error) = entered
                && !is_transient(&error)
            {
                // The kernel may use the memory for an unknown time.
                tracing::error!("io_uring_enter: {error}");
                std::process::abort();
            }
            for completion in ring.completion() {
                let ask = asks[completion.user_data() as usize].as_mut();
                ask.expect("it was asked").result = Some(completion.result());
                under_way -= 1;
            }
            if under_way > 0 && all_given_up(&asks[..next], timeout) {
                let late = take_late(&mut asks[..next]);
                let ring = std::mem::replace(&mut own.1, new_ring());
                detach_late_ops(ring, late);
                under_way = 0;
            }
        }
    });
}

/// Returns whether all outstanding operations belong to devices that have been given up.
fn all_given_up(asks: &[Option<RingOp>], timeout: Duration) -> bool {
    let under_way = asks.iter().flatten().filter(|ask| ask.result.is_none());
    let mut all = true;
    for ask in under_way {
        ask.turn.check(timeout);
        all &= ask.turn.device().watch().is_given_up();
    }
    all
}

fn take_late(asks: &mut [Option<RingOp>]) -> Vec<(u64, RingOp)> {
    let mut late = Vec::new();
    for (number, place) in asks.iter_mut().enumerate() {
        if let Some(ask) = place.take_if(|ask| ask.result.is_none()) {
            late.push((number as u64, ask));
        }
    }
    late
}

/// Lets a thread wait for operations that may never return. If no thread can be started, memory and
/// files are leaked.
fn detach_late_ops(ring: Option<IoUring>, late: Vec<(u64, RingOp)>) {
    // Whatever happens to the thread, this is not dropped before the kernel has returned
    // everything.
    let left = Box::leak(Box::new((ring, late)));
    let wait_for = || {
        let (place, late) = left;
        let Some(ring) = place else { return };
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
        *place = None;
    };
    let thread = thread::Builder::new().name("late".to_owned());
    let _ = thread.spawn(wait_for);
}

/// Returns whether the same call may succeed later.
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
