//! The allocations and frees per second of the allocators, and the size of the table of a track
//! partition layout.

use anyhow::Result;

use crate::shell;

/// Measures each allocator, and the table, on drives with more than a million tracks.
pub(super) fn run(seed: u64) -> Result<()> {
    shell::run(shell::bench("traxtent-sim", "layout").arg(seed.to_string()))
}
