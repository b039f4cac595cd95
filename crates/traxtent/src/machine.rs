//! TARGET arguments, and the notes and warnings of simulations.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use traxtent_run::{Machine, Observer};

use crate::failure::{Result, note, print_line, warn};

/// The help text of a TARGET argument.
pub(crate) const TARGET_HELP: &str = "A built-in drive's name (see `traxtent drives`), a profile \
    (my.toml), or DiskSim parameters (disksim:FILE, or disksim:FILE#DISK for one of several disks)";

/// Prints notes and warnings, each once: several runs can read the same file.
pub(crate) struct Printer;

impl Observer for Printer {
    fn note(&self, line: &str) {
        if is_new(line) {
            note(line);
        }
    }

    fn warn(&self, line: &str) {
        if is_new(line) {
            warn(line);
        }
    }

    /// Prints the warning even with `--quiet`.
    fn warn_of_omission(&self, line: &str) {
        if is_new(line) {
            print_line(&format!("warning: {line}"));
        }
    }
}

/// Returns whether a line was not printed before.
fn is_new(line: &str) -> bool {
    static PRINTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    PRINTED.lock().insert(line.to_owned())
}

/// Loads a target, and prints its warnings.
pub(crate) fn load(target: &str) -> Result<Machine> {
    Ok(Machine::load(target, &Printer)?)
}
