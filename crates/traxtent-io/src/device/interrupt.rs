//! Interruption of a probe by a signal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// A flag that is set when the process receives a signal to end.
///
/// After [`Interrupt::catch`], the signals only set this flag. The code that runs a probe checks
/// it, for example in a sink that is called for each track, and returns. The drive's mode pages are
/// restored on the way, either by the code that changed them or when the target is dropped.
#[derive(Clone, Debug)]
pub struct Interrupt {
    raised: Arc<AtomicBool>,
}

impl Interrupt {
    /// Catches SIGINT, SIGTERM and SIGHUP for the rest of the process.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses.
    pub fn catch() -> io::Result<Interrupt> {
        let raised = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&raised))?;
        }
        Ok(Interrupt { raised })
    }

    /// Returns whether a signal has arrived.
    pub fn raised(&self) -> bool {
        self.raised.load(Ordering::Relaxed)
    }
}
