//! `cargo xtask soak`: the tests at many times their usual repetitions, the checks of the Python
//! package, the book in a browser, the canaries of the fuzzing engine, then long fuzzing.

use std::process::ExitCode;

use anyhow::Result;

use crate::{book, guest, libtest, packages, python, test};

/// The extent of the soak.
#[derive(clap::Args)]
#[group(id = "soak")]
pub(crate) struct Options {
    /// Factor by which the repetitions of each randomized test are multiplied
    #[arg(long, default_value_t = 100)]
    factor: u64,
    /// Run only the tests of this package, and none of the later steps; may be repeated
    #[arg(long, short, value_name = "NAME", conflicts_with = "target")]
    package: Vec<String>,
    /// Run only the tests whose names contain this, and none of the later steps
    #[arg(long, value_name = "TEXT", conflicts_with = "target")]
    tests: Option<String>,
    #[command(flatten)]
    fuzz: crate::fuzz::Options,
}

/// The number of cases that proptest tries by default.
const USUAL_CASES: u64 = 256;

/// Runs the tests, checks the Python package, the book and the canaries, then fuzzes; fails if one
/// of these steps does. If packages or tests are selected, only their tests run.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    packages::install(packages::FOR_TESTS);
    guest::prepare_kernels();
    let mut command = test::test_command(&options.package, options.tests.as_deref());
    command.env("TRAXTENT_SOAK", options.factor.to_string());
    command.env("PROPTEST_CASES", (USUAL_CASES * options.factor).to_string());
    let mut tally = libtest::cargo_test(command)?;
    if !options.package.is_empty() || options.tests.is_some() {
        return Ok(tally.report());
    }
    tally.add(python::test(
        python::start_preparation(true),
        Some(options.factor),
    ));
    match book::check() {
        Ok(book) => tally.add(book),
        Err(error) => tally.check("the book", Err(error)),
    }
    tally.add(crate::fuzz::smoke());
    let tests = tally.report();
    let fuzzing = crate::fuzz::run(&options.fuzz)?;
    Ok(if tests == ExitCode::SUCCESS {
        fuzzing
    } else {
        tests
    })
}
