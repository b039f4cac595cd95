//! `cargo xtask soak`: the tests at many times their usual repetitions, then long fuzzing.

use std::process::ExitCode;

use anyhow::Result;

use crate::test;

/// How long to soak.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many times as often as usual each randomized test repeats
    #[arg(long, default_value_t = 100)]
    factor: u64,
    #[command(flatten)]
    fuzz: crate::fuzz::Options,
}

/// Cases that a property test tries where nothing else is said.
const USUAL_CASES: u64 = 256;

/// Tests, then fuzzes; fails if either does.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut command = test::test_command();
    command.env("TRAXTENT_SOAK", options.factor.to_string());
    command.env("PROPTEST_CASES", (USUAL_CASES * options.factor).to_string());
    let tests = test::cargo_test(command)?.report();
    let fuzzing = crate::fuzz::run(&options.fuzz)?;
    Ok(if tests == ExitCode::SUCCESS {
        fuzzing
    } else {
        tests
    })
}
