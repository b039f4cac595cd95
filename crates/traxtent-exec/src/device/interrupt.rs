//! A probe that is asked to end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Whether the process has been asked to end.
///
/// From [`Interrupt::catch`] on, the signals only raise this flag. Whoever runs a probe looks at it
/// (a sink does, for each track) and returns, and on that way the drive's mode pages are restored:
/// by whoever changed them, or when the target is dropped.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
}

impl Interrupt {
    /// Catches SIGINT, SIGTERM and SIGHUP for the rest of the process.
    ///
    /// # Errors
    /// Where the kernel refuses.
    pub fn catch() -> io::Result<Interrupt> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&raised))?;
        }
        Ok(Interrupt { raised })
    }

    /// Whether one has come.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }
}
