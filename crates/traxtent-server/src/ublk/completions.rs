//! The results that workers return to the queue's thread.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{Errno, read, write};

use super::memory::TagMemory;

/// A tag whose request is complete.
#[derive(Debug)]
pub(super) struct Completed {
    pub(super) tag: u16,
    /// The number of bytes, or the negative error number.
    pub(super) result: i32,
    /// The tag's memory.
    pub(super) data: TagMemory,
}

/// Completed tags that have not been returned to the driver.
#[derive(Debug)]
pub(super) struct Completions {
    ready: Mutex<Vec<Completed>>,
    /// An eventfd that is readable while `ready` is not empty.
    event: OwnedFd,
}

impl Completions {
    pub(super) fn new() -> Result<Completions, Errno> {
        Ok(Completions {
            ready: Mutex::default(),
            event: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        })
    }

    /// Returns the file that becomes readable when there are completions.
    pub(super) fn event(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    /// Takes all completions, and resets the event.
    pub(super) fn take(&self) -> Vec<Completed> {
        // The event is reset first, so that no completion is missed. One that arrives between the
        // two calls is taken now; the event can then be readable although nothing is left.
        let _ = read(&self.event, &mut [0; 8]);
        std::mem::take(&mut *self.ready.lock())
    }

    fn add(&self, completed: Completed) {
        let mut ready = self.ready.lock();
        ready.push(completed);
        if ready.len() == 1 {
            // This cannot fail, because the counter is far below its maximum.
            let _ = write(&self.event, &1u64.to_ne_bytes());
        }
    }
}

/// A request that a worker carries out. When this is dropped, the tag returns to the queue. Without
/// a result, for example after a panic, the request fails with an I/O error.
#[derive(Debug)]
pub(super) struct Pending {
    tag: u16,
    result: i32,
    /// The tag's memory; present until this is dropped.
    data: Option<TagMemory>,
    completions: Arc<Completions>,
}

impl Pending {
    pub(super) fn new(tag: u16, data: TagMemory, completions: &Arc<Completions>) -> Pending {
        Pending {
            tag,
            result: -Errno::IO.raw_os_error(),
            data: Some(data),
            completions: Arc::clone(completions),
        }
    }

    /// Completes the request with the result of `carry_out`, which receives the tag's memory.
    pub(super) fn complete(mut self, carry_out: impl FnOnce(&mut [u8]) -> i32) {
        if let Some(data) = &mut self.data {
            self.result = carry_out(data);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(data) = self.data.take() {
            self.completions.add(Completed {
                tag: self.tag,
                result: self.result,
                data,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn is_readable(completions: &Completions) -> bool {
        let event = completions.event();
        let now = rustix::time::Timespec::default();
        poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    /// Does each result arrive with its tag and memory, and is the event readable only while there
    /// are results?
    #[test]
    fn results_arrive() {
        let completions = Arc::new(Completions::new().unwrap());
        assert!(!is_readable(&completions));
        for tag in 0..3 {
            Pending::new(tag, TagMemory::map(2).unwrap(), &completions).complete(|data| {
                data.fill(tag as u8);
                100 + i32::from(tag)
            });
            assert!(is_readable(&completions));
        }
        let taken = completions.take();
        let taken = taken
            .into_iter()
            .map(|one| (one.tag, one.result, one.data.to_vec()));
        let expected = (0..3).map(|tag| (tag, 100 + i32::from(tag), vec![tag as u8; 2]));
        assert!(taken.eq(expected));
        assert!(!is_readable(&completions));
        assert!(completions.take().is_empty());
    }

    /// Does a request fail with an I/O error and return its memory if its worker panics, or if no
    /// worker takes it?
    #[test]
    fn abandoned_requests_fail() {
        let completions = Arc::new(Completions::new().unwrap());
        let pending = Pending::new(9, TagMemory::map(512).unwrap(), &completions);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            pending.complete(|_| panic!("a test panic"))
        }));
        assert!(panic.is_err());
        drop(Pending::new(8, TagMemory::map(512).unwrap(), &completions));
        let all = completions.take().into_iter();
        let all: Vec<_> = all
            .map(|one| (one.tag, one.result, one.data.len()))
            .collect();
        assert_eq!(all, [(9, -5, 512), (8, -5, 512)]);
    }
}
