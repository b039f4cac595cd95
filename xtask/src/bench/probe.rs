//! The cost of each algorithm that finds tracks on each drive, and whether it finds them.

use std::env;
use std::path::PathBuf;

use anyhow::Result;

use crate::{machine, shell};

/// The drives and algorithms, and the time limit.
#[derive(clap::Args)]
pub(super) struct Options {
    /// Only drives whose names contain this; may be repeated
    #[arg(long = "drive")]
    drives: Vec<String>,
    /// Only algorithms whose names begin with this (tree, angle-full, …); may be repeated
    #[arg(long = "algorithm")]
    algorithms: Vec<String>,
    /// Processor time in seconds after which an algorithm is stopped on a drive
    #[arg(long, default_value_t = 300)]
    bound: u64,
}

/// Updates the rows of `docs/internals/probe-bench.csv` and the tables of
/// `docs/internals/probe-costs.md`.
pub(super) fn run(seed: u64, options: &Options) -> Result<()> {
    let mut cargo = shell::example("traxtent-lab", "probe_table");
    cargo.args([
        "--csv",
        "docs/internals/probe-bench.csv",
        "--page",
        "docs/internals/probe-costs.md",
    ]);
    cargo.args(["--machine", &machine::name()]);
    cargo.args(["--commit", &machine::commit()]);
    cargo.args(["--seed", &seed.to_string()]);
    cargo.args(["--bound", &options.bound.to_string()]);
    if let Some(folder) = disksim() {
        cargo.arg("--disksim").arg(folder);
    }
    for drive in &options.drives {
        cargo.args(["--drive", drive]);
    }
    for algorithm in &options.algorithms {
        cargo.args(["--algorithm", algorithm]);
    }
    shell::run(&mut cargo)
}

/// Returns the directory of DiskSim's parameter files in the reference data next to the project, if
/// it exists.
fn disksim() -> Option<PathBuf> {
    let default = || shell::root().join("../shared");
    let shared = env::var_os("TRAXTENT_SHARED").map_or_else(default, PathBuf::from);
    Some(shared.join("data/disksim")).filter(|folder| folder.exists())
}
