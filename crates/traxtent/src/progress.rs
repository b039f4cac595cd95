//! A progress bar on the terminal for work that takes more than two seconds.

use std::io::{IsTerminal, stderr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use parking_lot::Mutex;

/// Work that takes less than this shows no bar.
const SHOW_AFTER: Duration = Duration::from_secs(2);

/// The progress of some work, shared by the threads that do it.
pub(crate) struct Progress {
    what: &'static str,
    total: Option<u64>,
    done: AtomicU64,
    began: Instant,
    /// `None` if standard error is not a terminal.
    bar: Option<Mutex<Option<ProgressBar>>>,
}

impl Progress {
    /// The number of items after which workers should call [`Progress::add`].
    pub(crate) const STEP: u64 = 1 << 14;

    /// Begins work on `total` items called `what`, or on an unknown number of items.
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Progress {
        Progress {
            what,
            total,
            done: AtomicU64::new(0),
            began: Instant::now(),
            bar: stderr().is_terminal().then(Mutex::default),
        }
    }

    /// Adds to the number of completed items.
    pub(crate) fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        let Some(bar) = &self.bar else { return };
        if self.began.elapsed() < SHOW_AFTER {
            return;
        }
        let mut bar = bar.lock();
        bar.get_or_insert_with(|| self.start()).set_position(done);
    }

    fn start(&self) -> ProgressBar {
        let (bar, shape) = match self.total {
            Some(total) => (
                ProgressBar::new(total),
                "{bar:40} {percent:>3} % of {human_len} {msg}, {eta} left",
            ),
            None => (ProgressBar::no_length(), "{spinner} {human_pos} {msg}"),
        };
        let style = ProgressStyle::with_template(shape).expect("the template is well-formed");
        bar.with_style(style).with_message(self.what)
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take().and_then(Mutex::into_inner) {
            bar.finish_and_clear();
        }
    }
}
