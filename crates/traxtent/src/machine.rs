//! TARGET arguments, and the observer of work without a progress bar.

use traxtent_run::{Machine, Observer};

use crate::failure::{Result, note, warn};

/// The help text of a TARGET argument.
pub(crate) const TARGET_HELP: &str = "A built-in drive's name (see `traxtent drives`), a profile \
    (my.toml), or DiskSim parameters (disksim:FILE, or disksim:FILE#DISK for one of several disks)";

/// Prints notes and warnings.
pub(crate) struct Printer;

impl Observer for Printer {
    fn note(&self, line: &str) {
        note(line);
    }

    fn warn(&self, line: &str) {
        warn(line);
    }
}

/// Loads a target, and prints its warnings.
pub(crate) fn load(target: &str) -> Result<Machine> {
    Ok(Machine::load(target, &Printer)?)
}
