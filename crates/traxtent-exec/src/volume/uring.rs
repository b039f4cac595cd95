//! Operations that the kernel carries out side by side, by its io_uring.
//!
//! Threads wait for them no longer than the member time-out. Operations that have not returned by then stay with the ring that
//! they were asked on, and a thread that does nothing else waits for them.

use std::cell::RefCell;
use std::io;
use std::thread;
use std::time::Duration;

use io_uring::IoUring;
use io_uring::squeue::Entry;
use io_uring::types::{SubmitArgs, Timespec};
use smallvec::SmallVec;

use super::buffers::Aligned;
use super::watch::{SLICE, Turn};

/// So many are under way at once; more wait for their turn.
const ENTRIES: u32 = 64;

/// `ETIME`, which has no kind in the standard library.
const TIMER_EXPIRED: i32 = 62;

thread_local! {
    /// A thread's own ring, with the process that made it; none where the kernel refuses. Nothing is under way between two calls.
    static RING: RefCell<(u32, Option<IoUring>)> = const { RefCell::new((0, None)) };
}

/// An operation for the kernel, with all that the kernel may use until it has ended.
#[derive(Debug)]
pub(super) struct Ask {
    /// The operation.
    pub(super) entry: Entry,
    /// Its memory, which is nobody else's.
    pub(super) memory: Aligned,
    /// Its device: the file stays open.
    pub(super) turn: Turn,
    /// What the kernel returned (see `io_uring_enter(2)`).
    pub(super) result: Option<i32>,
}

/// Operations for the kernel. Those that were given up are gone from it.
pub(super) type Asks = SmallVec<[Option<Ask>; 8]>;

/// Whether the kernel offers this thread a ring.
pub(super) fn is_offered() -> bool {
    RING.with_borrow_mut(|own| {
        let process = std::process::id();
        if own.0 != process {
            // Not the one before a fork: it is the parent's too.
            *own = (process, new_ring());
        }
        own.1.is_some()
    })
}

fn new_ring() -> Option<IoUring> {
    // Who waits is not interrupted besides, by Linux 5.19 and later.
    let quiet = IoUring::builder().setup_coop_taskrun().build(ENTRIES);
    let ring = quiet.or_else(|_| IoUring::new(ENTRIES)).ok()?;
    // Waits with a bound are as old as Linux 5.11.
    ring.params().is_feature_ext_arg().then_some(ring)
}

/// Carries out operations, and notes each one's result. Those on devices that do not answer in time, or are given up by another
/// thread meanwhile, are taken out, and their devices are given up. Where the thread has no ring any more, operations are left
/// without a result.
///
/// # Safety
/// Entries must name their own `memory`, and files of their own `turn`'s device.
#[allow(unsafe_code)]
pub(super) unsafe fn carry_out(asks: &mut Asks, timeout: Duration) {
    RING.with_borrow_mut(|own| {
        let mut next = 0;
        let mut under_way = 0;
        while next < asks.len() || under_way > 0 {
            let Some(ring) = &mut own.1 else { return };
            while next < asks.len() && under_way < ENTRIES as usize {
                if let Some(ask) = &asks[next] {
                    let entry = ask.entry.clone().user_data(next as u64);
                    // SAFETY: what it points to is in `asks`, which keeps it until it has ended; else `late` does.
                    unsafe { ring.submission().push(&entry) }.expect("there is room");
                    under_way += 1;
                }
                next += 1;
            }
            let slice = Timespec::from(SLICE.min(timeout));
            let bound = SubmitArgs::new().timespec(&slice);
            let entered = ring.submitter().submit_with_args(under_way, &bound);
            if let Err(error) = entered
                && !is_passing(&error)
            {
                // The kernel may have the memory, and there is no telling until when.
                eprintln!("traxtent: io_uring_enter: {error}");
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
                leave(ring, late);
                under_way = 0;
            }
        }
    });
}

/// Whether nobody waits any more for what is under way.
fn all_given_up(asks: &[Option<Ask>], timeout: Duration) -> bool {
    let under_way = asks.iter().flatten().filter(|ask| ask.result.is_none());
    let mut all = true;
    for ask in under_way {
        ask.turn.check(timeout);
        all &= ask.turn.device().watch().is_given_up();
    }
    all
}

fn take_late(asks: &mut [Option<Ask>]) -> Vec<(u64, Ask)> {
    let mut late = Vec::new();
    for (number, place) in asks.iter_mut().enumerate() {
        if let Some(ask) = place.take_if(|ask| ask.result.is_none()) {
            late.push((number as u64, ask));
        }
    }
    late
}

/// Lets a thread wait for what may never return. Where there is no thread, memory and files are kept for good.
fn leave(ring: Option<IoUring>, late: Vec<(u64, Ask)>) {
    // Whatever becomes of the thread, this is not dropped before the kernel has returned all.
    let left = Box::leak(Box::new((ring, late)));
    let wait_for = || {
        let (place, late) = left;
        let Some(ring) = place else { return };
        while !late.is_empty() {
            if let Err(error) = ring.submit_and_wait(1)
                && !is_passing(&error)
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

/// Whether the same call will do later.
fn is_passing(error: &io::Error) -> bool {
    error.raw_os_error() == Some(TIMER_EXPIRED)
        || matches!(
            error.kind(),
            io::ErrorKind::Interrupted
                | io::ErrorKind::WouldBlock
                | io::ErrorKind::ResourceBusy
                | io::ErrorKind::TimedOut
        )
}
