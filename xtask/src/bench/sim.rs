//! The requests per second that the simulator completes.

use anyhow::Result;

use super::against;
use crate::shell;

/// Measures two workloads, and how rate and memory change with the number of requests, up to
/// `most`.
pub(super) fn run(seed: u64, most: u64) -> Result<()> {
    shell::run(shell::bench("traxtent-sim", "sim").args([seed.to_string(), most.to_string()]))
}

/// Measures the two workloads alternately with those of another commit: small requests, then large
/// ones.
pub(super) fn compare(seed: u64, commit: &str, rounds: usize) -> Result<()> {
    let no_growth = 0;
    let arguments = [seed.to_string(), no_growth.to_string()];
    against::run(
        "traxtent-sim",
        "sim",
        commit,
        rounds,
        &arguments,
        "requests/s",
    )
}
