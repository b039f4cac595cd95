//! The requests per second that the simulator completes.

use anyhow::Result;

use crate::shell;

/// Measures two workloads, and the growth up to `most` requests.
pub(super) fn run(seed: u64, most: u64) -> Result<()> {
    shell::run(shell::bench("traxtent-sim", "sim").args([seed.to_string(), most.to_string()]))
}
