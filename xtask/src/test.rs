//! `cargo xtask test`: everything that is checked, in one command.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::libtest::{Reader, Show};
use crate::tally::Tally;
use crate::{fuzz, packages, shell};

/// Runs all checks, whatever fails on the way, and prints the counts.
pub(crate) fn run() -> Result<ExitCode> {
    let mut tally = Tally::default();
    heading("system packages");
    packages::install(packages::FOR_TESTS);
    heading("style and lints");
    tally.check(
        "rustfmt",
        shell::run(shell::cargo().args(["fmt", "--all", "--check"])),
    );
    tally.check("clippy", shell::run(&mut clippy()));
    tally.check("rustdoc", shell::run(&mut rustdoc()));
    heading("tests");
    tally.add(cargo_test(&mut test_command())?);
    heading("fuzzing");
    tally.add(fuzz::smoke());
    Ok(tally.report())
}

/// The tests of the whole workspace, doctests too.
pub(crate) fn test_command() -> Command {
    let mut cargo = shell::cargo();
    cargo.args([
        "test",
        "--workspace",
        "--no-fail-fast",
        "--",
        "--show-output",
    ]);
    cargo
}

/// Runs a test command and counts, test by test; shows failures and one line a test binary.
pub(crate) fn cargo_test(command: &mut Command) -> Result<Tally> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cargo test")?;
    let mut reader = Reader::default();
    for line in BufReader::new(child.stdout.take().expect("stdout is piped")).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        if reader.line(&line) == Show::Yes {
            println!("{line}");
        }
    }
    let mut tally = reader.finish();
    if !child.wait()?.success() && tally.failures.is_empty() {
        tally
            .failures
            .push("cargo test, before or outside the tests".to_owned());
    }
    Ok(tally)
}

fn clippy() -> Command {
    let mut cargo = shell::cargo();
    cargo.args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "xtask/pages",
        "--",
        "--deny",
        "warnings",
    ]);
    cargo
}

fn rustdoc() -> Command {
    let mut cargo = shell::cargo();
    cargo.args([
        "doc",
        "--workspace",
        "--no-deps",
        "--document-private-items",
    ]);
    cargo.env("RUSTDOCFLAGS", "--deny warnings");
    cargo
}

fn heading(text: &str) {
    println!("\n== {text}");
}
