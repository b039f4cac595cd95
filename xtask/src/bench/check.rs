//! How long a stack of eight layers takes to check.

use anyhow::Result;

use crate::packages::{self, FOR_TESTS};
use crate::shell;

/// Measures it on an image that it makes.
pub(super) fn run() -> Result<()> {
    packages::install(FOR_TESTS);
    shell::run(shell::cargo().args([
        "bench",
        "--quiet",
        "--package",
        "traxtent-check",
        "--bench",
        "stack",
    ]))
}
