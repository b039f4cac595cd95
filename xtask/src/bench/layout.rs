//! Allocations and frees that the allocators do in a second.

use anyhow::Result;

use crate::shell;

/// Measures each allocator on drives with more than a million tracks.
pub(super) fn run(seed: u64) -> Result<()> {
    shell::run(
        shell::cargo()
            .args([
                "bench",
                "--quiet",
                "--package",
                "traxtent-exec",
                "--bench",
                "layout",
                "--",
            ])
            .arg(seed.to_string()),
    )
}
