//! The threads of all clients, within bounds.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The maximum number of threads of all clients together. A client's first thread is exempt. Small
/// machines can start about 30,000.
const THREADS_MAX: usize = 8192;

/// The number of threads, and their maximum per client.
#[derive(Debug)]
pub(super) struct ThreadBudget {
    threads: AtomicUsize,
    per_client: usize,
}

impl ThreadBudget {
    pub(super) fn new(per_client: usize) -> ThreadBudget {
        ThreadBudget {
            threads: AtomicUsize::new(0),
            per_client,
        }
    }

    /// Starts a thread for a client, which then has `count` threads, if the limits allow it. A
    /// client's first thread is always allowed.
    ///
    /// # Errors
    /// Returns an error if a limit has been reached, or if the system cannot start a thread.
    pub(super) fn spawn(
        self: &Arc<Self>,
        count: usize,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        let all = self.threads.fetch_add(1, Ordering::Relaxed);
        let slot = ThreadSlot(Arc::clone(self));
        if count > 1 && (count > self.per_client || all >= THREADS_MAX) {
            return Err(io::Error::other("too many threads"));
        }
        let run = move || {
            let _slot = slot;
            run();
        };
        thread::Builder::new()
            .name("client".to_owned())
            .spawn(run)
            .map(drop)
    }
}

/// A thread's share of the budget.
struct ThreadSlot(Arc<ThreadBudget>);

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        self.0.threads.fetch_sub(1, Ordering::Relaxed);
    }
}
