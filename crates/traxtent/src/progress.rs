//! A progress bar on the terminal for work that takes more than two seconds. If standard error is
//! not a terminal, a line is printed at intervals instead.

use std::io::{IsTerminal, stderr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use parking_lot::Mutex;
use traxtent_run::Observer;
use traxtent_server::remaining_time::{RemainingTime, time_left};

use crate::failure::note;
use crate::machine::Printer;

/// The time after which a bar is shown.
const SHOW_AFTER: Duration = Duration::from_secs(2);

/// The interval at which a bar is redrawn even if nothing completes, because the remaining time
/// grows.
const REDRAW_INTERVAL: Duration = Duration::from_secs(1);

/// The interval between lines if standard error is not a terminal.
const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// The progress of a piece of work, shared by its threads.
pub(crate) struct Progress {
    what: &'static str,
    total: Option<u64>,
    done: AtomicU64,
    began: Instant,
    remaining: Arc<Mutex<RemainingTime>>,
    /// `None` if standard error is not a terminal.
    bar: Option<Mutex<Option<ProgressBar>>>,
    /// The time from the beginning to the next line, if standard error is not a terminal.
    next_line: Mutex<Duration>,
}

impl Progress {
    /// Begins work on `total` items called `what`, or on an unknown number of items.
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Progress {
        Progress::resume(what, 0, total)
    }

    /// Resumes work after an earlier run that completed `first` items.
    pub(crate) fn resume(what: &'static str, first: u64, total: Option<u64>) -> Progress {
        let remaining = RemainingTime::new(first, total.unwrap_or(u64::MAX));
        Progress {
            what,
            total,
            done: AtomicU64::new(first),
            began: Instant::now(),
            remaining: Arc::new(Mutex::new(remaining)),
            bar: stderr().is_terminal().then(Mutex::default),
            next_line: Mutex::new(LINE_INTERVAL),
        }
    }

    /// Adds to the number of completed items.
    pub(crate) fn add(&self, count: u64) {
        let done = self.done.fetch_add(count, Ordering::Relaxed) + count;
        let elapsed = self.began.elapsed();
        self.remaining.lock().update(elapsed, done);
        let Some(bar) = &self.bar else {
            return self.print_line(elapsed, || self.what.to_owned());
        };
        if elapsed >= SHOW_AFTER {
            let mut bar = bar.lock();
            bar.get_or_insert_with(|| self.start()).set_position(done);
        }
    }

    /// Shows a message after the count, even before the first item is complete.
    pub(crate) fn tell(&self, message: impl FnOnce() -> String) {
        let (elapsed, message) = (self.began.elapsed(), || {
            format!("{}, {}", self.what, message())
        });
        let Some(bar) = &self.bar else {
            return self.print_line(elapsed, message);
        };
        if elapsed >= SHOW_AFTER {
            let mut bar = bar.lock();
            bar.get_or_insert_with(|| self.start())
                .set_message(message());
        }
    }

    /// Prints a line if one is due.
    fn print_line(&self, elapsed: Duration, message: impl FnOnce() -> String) {
        let mut next = self.next_line.lock();
        if elapsed < *next {
            return;
        }
        *next = elapsed + LINE_INTERVAL;
        let done = self.done.load(Ordering::Relaxed);
        let count = match self.total {
            Some(total) => format!("{done} of {total}"),
            None => done.to_string(),
        };
        let left = self.remaining.lock().left(elapsed);
        let left = left.map_or_else(String::new, |left| format!(", {}", time_left(left)));
        note(format!("{count} {}{left}", message()));
    }

    fn start(&self) -> ProgressBar {
        let (bar, shape) = match self.total {
            Some(total) => (
                ProgressBar::new(total),
                "{bar:40} {percent:>3} % of {human_len} {msg}{left}",
            ),
            None => (ProgressBar::no_length(), "{spinner} {human_pos} {msg}"),
        };
        let (remaining, began) = (Arc::clone(&self.remaining), self.began);
        let left = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
            if let Some(left) = remaining.lock().left(began.elapsed()) {
                // A line that cannot be written is not shown.
                let _ = write!(out, ", {}", time_left(left));
            }
        };
        let style = ProgressStyle::with_template(shape).expect("the template is well-formed");
        bar.enable_steady_tick(REDRAW_INTERVAL);
        bar.with_style(style.with_key("left", left))
            .with_message(self.what)
            .with_position(self.done.load(Ordering::Relaxed))
    }
}

/// The progress of simulated requests. Notes and warnings are printed.
impl Observer for Progress {
    fn add(&self, requests: u64) {
        Progress::add(self, requests);
    }

    fn note(&self, line: &str) {
        Printer.note(line);
    }

    fn warn(&self, line: &str) {
        Printer.warn(line);
    }

    fn warn_of_omission(&self, line: &str) {
        Printer.warn_of_omission(line);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take().and_then(Mutex::into_inner) {
            bar.finish_and_clear();
        }
    }
}
