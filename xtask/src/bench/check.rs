//! The time to check a stack of eight layers.

use anyhow::Result;

use crate::packages::{self, FOR_TESTS};
use crate::shell;

/// Runs the benchmark, which makes its own image.
pub(super) fn run() -> Result<()> {
    packages::install(FOR_TESTS);
    shell::run(&mut shell::bench("traxtent-check", "stack"))
}
