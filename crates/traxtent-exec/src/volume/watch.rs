//! The operations that a device has been asked for and has not returned.
//!
//! An operation that is stuck in the kernel cannot be cancelled. Whoever waits for it gives up after the member time-out; the
//! operation keeps its memory and the open file until it returns, which may be never, and may still be carried out.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::files::Device;

/// The member time-out, unless another is set: that of the kernel's SCSI layer.
pub const MEMBER_TIMEOUT: Duration = Duration::from_secs(30);

/// The shortest and the longest member time-out. A disk that retries a bad sector takes seconds for it.
pub const MEMBER_TIMEOUTS: std::ops::RangeInclusive<u64> = 1..=3600;

/// The poll interval of those who wait for operations: another thread may give the device up meanwhile.
pub(super) const SLICE: Duration = Duration::from_millis(100);

/// The operations that a device has not returned.
#[derive(Debug)]
pub(super) struct Watch {
    under_way: Mutex<UnderWay>,
    /// Milliseconds that the device had not answered for when it was given up, plus one; 0 if it was not.
    given_up: AtomicU64,
}

#[derive(Debug)]
struct UnderWay {
    /// When each began; places are used again.
    begun: Vec<Option<Instant>>,
    last_returned: Instant,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            under_way: Mutex::new(UnderWay {
                begun: Vec::new(),
                last_returned: Instant::now(),
            }),
            given_up: AtomicU64::new(0),
        }
    }
}

impl Watch {
    /// The number of operations that have not been returned.
    pub(super) fn outstanding(&self) -> usize {
        self.lock().begun.iter().flatten().count()
    }

    /// The age of the oldest operation that has not been returned.
    pub(super) fn oldest(&self) -> Option<Duration> {
        let begun = self.lock().begun.iter().flatten().min().copied();
        begun.map(|begun| begun.elapsed())
    }

    /// The time for which operations have been under way and none was returned.
    pub(super) fn still(&self) -> Option<Duration> {
        let under_way = self.lock();
        let begun = under_way.begun.iter().flatten().min().copied()?;
        Some(begun.max(under_way.last_returned).elapsed())
    }

    /// Whether nobody waits for the device any more.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed) != 0
    }

    /// The time for which the device had not answered when it was given up.
    pub(super) fn given_up_after(&self) -> Option<Duration> {
        let noted = self.given_up.load(Ordering::Relaxed);
        noted.checked_sub(1).map(Duration::from_millis)
    }

    /// Lets nobody wait for the device any more: what is under way has failed, and so has whatever is asked later.
    pub(super) fn give_up(&self) {
        let silent = self.oldest().unwrap_or_default().as_millis();
        let noted = u64::try_from(silent).unwrap_or(u64::MAX - 1) + 1;
        // The first to do so was right.
        let order = Ordering::Relaxed;
        let _ = self.given_up.compare_exchange(0, noted, order, order);
    }

    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().expect("nobody panics with it")
    }
}

/// An operation that is under way from when this is made until it is dropped. The device stays open as long.
#[derive(Debug)]
pub(super) struct Turn {
    device: Arc<Device>,
    place: usize,
    begun: Instant,
}

impl Turn {
    pub(super) fn new(device: Arc<Device>) -> Turn {
        let begun = Instant::now();
        let place = {
            let mut under_way = device.watch().lock();
            let free = under_way.begun.iter().position(Option::is_none);
            let place = free.unwrap_or(under_way.begun.len());
            match free {
                Some(place) => under_way.begun[place] = Some(begun),
                None => under_way.begun.push(Some(begun)),
            }
            place
        };
        Turn {
            device,
            place,
            begun,
        }
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// Gives the device up if this has taken too long.
    pub(super) fn check(&self, timeout: Duration) {
        if self.begun.elapsed() >= timeout {
            self.device.watch().give_up();
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut under_way = self.device.watch().lock();
        under_way.begun[self.place] = None;
        under_way.last_returned = Instant::now();
    }
}

/// Does something that may never return, and waits for it no longer than that. What comes later is dropped.
pub(super) fn within<T: Send + 'static>(
    timeout: Duration,
    what: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    let run = move || {
        let _ = tell.send(what());
    };
    let thread = thread::Builder::new().name("patient".to_owned());
    thread.spawn(run).ok()?;
    told.recv_timeout(timeout).ok()
}
