//! The outstanding operations of a device.
//!
//! An operation that is stuck in the kernel cannot be cancelled. A thread stops waiting for it
//! after the member time-out. The operation keeps its memory and the open file until it returns,
//! which may never happen. It can still take effect later.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};

use super::Device;

/// The default member time-out, the same as that of the kernel's SCSI layer.
pub const MEMBER_TIMEOUT: Duration = Duration::from_secs(30);

/// The range of the member time-out in seconds. A disk that retries a bad sector takes seconds to
/// respond.
pub const MEMBER_TIMEOUTS: std::ops::RangeInclusive<u64> = 1..=3600;

/// The poll interval of threads that wait for operations. Between polls, another thread can give
/// the device up.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A device's outstanding operations, and whether the device has been given up.
#[derive(Debug)]
pub(super) struct OutstandingOps {
    times: Mutex<OpTimes>,
    /// The age of the oldest operation when the device was given up, in milliseconds plus one; 0 if
    /// it was not given up.
    given_up: AtomicU64,
}

#[derive(Debug)]
struct OpTimes {
    /// The start of each operation; entries are reused.
    begun: Vec<Option<Instant>>,
    last_returned: Instant,
}

impl Default for OutstandingOps {
    fn default() -> OutstandingOps {
        OutstandingOps {
            times: Mutex::new(OpTimes {
                begun: Vec::new(),
                last_returned: Instant::now(),
            }),
            given_up: AtomicU64::new(0),
        }
    }
}

impl OutstandingOps {
    /// Returns the number of outstanding operations.
    pub(super) fn outstanding(&self) -> usize {
        self.lock().begun.iter().flatten().count()
    }

    /// Returns the age of the oldest outstanding operation.
    pub(super) fn oldest(&self) -> Option<Duration> {
        let begun = self.lock().begun.iter().flatten().min().copied();
        begun.map(|begun| begun.elapsed())
    }

    /// Returns how long operations have been outstanding without any being returned.
    pub(super) fn still(&self) -> Option<Duration> {
        let times = self.lock();
        let begun = times.begun.iter().flatten().min().copied()?;
        Some(begun.max(times.last_returned).elapsed())
    }

    /// Returns whether the device has been given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) != 0
    }

    /// Returns the age of the oldest operation when the device was given up; `None` if it was not.
    pub(super) fn given_up_after(&self) -> Option<Duration> {
        let noted = self.given_up.load(Ordering::Relaxed);
        noted.checked_sub(1).map(Duration::from_millis)
    }

    /// Gives the device up. Outstanding operations and all later ones fail.
    pub(super) fn give_up(&self) {
        let silent = self.oldest().unwrap_or_default().as_millis();
        let noted = u64::try_from(silent).unwrap_or(u64::MAX - 1) + 1;
        // Only the first call takes effect.
        let order = Ordering::Relaxed;
        let _ = self.given_up.compare_exchange(0, noted, order, order);
    }

    fn lock(&self) -> MutexGuard<'_, OpTimes> {
        self.times.lock()
    }
}

/// An operation that is outstanding from the creation of this value until it is dropped. It keeps
/// the device open.
#[derive(Debug)]
pub(super) struct OutstandingOp {
    device: Arc<Device>,
    place: usize,
    begun: Instant,
}

impl OutstandingOp {
    pub(super) fn new(device: Arc<Device>) -> OutstandingOp {
        let begun = Instant::now();
        let place = {
            let mut times = device.watch().lock();
            let free = times.begun.iter().position(Option::is_none);
            let place = free.unwrap_or(times.begun.len());
            match free {
                Some(place) => times.begun[place] = Some(begun),
                None => times.begun.push(Some(begun)),
            }
            place
        };
        OutstandingOp {
            device,
            place,
            begun,
        }
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Gives the device up if this operation has taken too long.
    pub(super) fn check(&self, timeout: Duration) {
        if self.begun.elapsed() >= timeout {
            self.device.watch().give_up();
        }
    }
}

impl Drop for OutstandingOp {
    fn drop(&mut self) {
        let mut times = self.device.watch().lock();
        times.begun[self.place] = None;
        times.last_returned = Instant::now();
    }
}

/// Runs a function that may never return, and waits for it no longer than `timeout`. A later result
/// is dropped. Also returns `None` if no thread can be started.
pub(in crate::volume) fn with_timeout<T: Send + 'static>(
    timeout: Duration,
    what: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let run = move || {
        let _ = sender.send(what());
    };
    let thread = thread::Builder::new().name("patient".to_owned());
    thread.spawn(run).ok()?;
    receiver.recv_timeout(timeout).ok()
}
