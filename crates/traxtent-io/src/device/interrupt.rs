//! Interruption of long work by a signal.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that is set when the process receives a signal to end.
///
/// After [`Interrupt::catch`], the signals only set this flag. The code that runs a probe checks
/// it, for example in a sink that is called for each track, and returns. The drive's mode pages are
/// restored on the way, either by the code that changed them or when the target is dropped.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
    /// The number of the last signal.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches SIGINT, SIGTERM and, unless it is ignored, SIGHUP for the rest of the process.
    ///
    /// # Errors
    /// Returns the system's error if a signal handler cannot be installed.
    pub fn catch() -> io::Result<Interrupt> {
        let interrupt = Interrupt {
            raised: Arc::default(),
            signal: Arc::default(),
        };
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup) {
            let number = usize::try_from(signal).expect("signals have positive numbers");
            let last = Arc::clone(&interrupt.signal);
            // Handlers run in this order, so the flag implies a number.
            signal_hook::flag::register_usize(signal, last, number)?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.raised))?;
        }
        Ok(interrupt)
    }

    /// Returns whether a signal has arrived.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }

    /// Returns the flag, for code that checks it without this type.
    pub fn flag(&self) -> &AtomicBool {
        &self.raised
    }

    /// Returns the number of the last signal that has arrived, if one has.
    pub fn signal(&self) -> Option<i32> {
        let number = self.signal.load(Ordering::Relaxed);
        i32::try_from(number).ok().filter(|number| *number > 0)
    }
}

/// Returns whether this process ignores a signal. `nohup` starts programs that ignore SIGHUP, and
/// such a program must continue to ignore it.
pub fn is_ignored(signal: i32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
