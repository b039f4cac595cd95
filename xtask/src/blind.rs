//! `cargo xtask blind`: probes of random drives about which the prober has no information.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::{machine, shell};

/// Arguments for the prober, which also handles `--help`.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    passed: Vec<OsString>,
}

/// Runs the prober, which fails unless it finds exactly the tracks of every drive.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    println!("{}\n", machine::unseeded_header());
    shell::run(shell::example("traxtent-lab", "blind").args(&options.passed))?;
    Ok(ExitCode::SUCCESS)
}
