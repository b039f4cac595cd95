//! `cargo xtask blind`: probes of random drives that the prober knows nothing of.

use std::process::ExitCode;

use anyhow::Result;

use crate::{machine, shell};

/// How many drives, and what else the prober's example takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many drives
    #[arg(long, default_value_t = 200)]
    drives: u64,
    /// The first drive's seed; the others count on from there
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How tracks are found; may be repeated. Without it: tree, then angle
    #[arg(long = "algorithm")]
    algorithms: Vec<String>,
    /// How much of what timing predicts is verified: none, sample or full
    #[arg(long, default_value = "full")]
    verify: String,
    /// Make clocks and drives unsteady
    #[arg(long)]
    noise: bool,
    /// How many drives at once
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Also print the drives that are recovered exactly
    #[arg(long)]
    all: bool,
    /// Probe nothing: print the tracks around this LBN of the first drive
    #[arg(long)]
    show: Option<u64>,
}

/// Fails unless every track of every drive is found, and nothing else.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    println!("{}\n", machine::header(options.seed));
    let mut cargo = shell::example("traxtent-lab", "blind");
    cargo.args(["--drives", &options.drives.to_string()]);
    cargo.args(["--seed", &options.seed.to_string()]);
    cargo.args(["--verify", &options.verify]);
    cargo.args(["--threads", &options.threads.to_string()]);
    for algorithm in &options.algorithms {
        cargo.args(["--algorithm", algorithm]);
    }
    cargo.args(options.noise.then_some("--noise"));
    cargo.args(options.all.then_some("--all"));
    if let Some(lbn) = options.show {
        cargo.args(["--show", &lbn.to_string()]);
    }
    shell::run(&mut cargo)?;
    Ok(ExitCode::SUCCESS)
}
