//! The time of a clean release build of the command with two jobs, including its dependencies.

use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};

use super::against;
use super::nbd::median;
use crate::shell;

/// Builds into an empty directory and prints the time and the binary's size.
pub(super) fn run() -> Result<()> {
    let (seconds, bytes) = build(shell::root())?;
    println!(
        "clean release build, 2 jobs: {seconds:.1} s; traxtent is {:.1} MB",
        bytes as f64 / 1e6
    );
    Ok(())
}

/// Builds `commit` and this checkout alternately, `rounds` times each, and prints the times and the
/// median and the range of the rounds' ratios.
pub(super) fn compare(commit: &str, rounds: usize) -> Result<()> {
    let (commit, other) = against::checkout(commit)?;
    let mut ratios = Vec::new();
    println!("{:<6} {commit:>14} {:>14} {:>7}", "round", "here", "ratio");
    for round in 1..=rounds {
        let [before, now] = [build(&other)?.0, build(shell::root())?.0];
        println!(
            "{round:<6} {before:>12.1} s {now:>12.1} s {:>7.3}",
            now / before
        );
        ratios.push(now / before);
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "median {:.3} ({:.3} to {:.3})",
        median(ratios.iter().copied()),
        ratios[0],
        ratios[rounds - 1],
    );
    Ok(())
}

/// Builds a checkout into an empty directory, and returns the seconds and the program's size in
/// bytes. Dependencies are downloaded before the clock starts.
fn build(checkout: &Path) -> Result<(f64, u64)> {
    shell::run(
        shell::cargo()
            .args(["fetch", "--locked"])
            .current_dir(checkout),
    )?;
    let folder = shell::target_dir().join("bench-build");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut cargo = shell::cargo();
    cargo.args(["build", "--release", "--locked", "--quiet", "--jobs", "2"]);
    cargo.args(["--package", "traxtent"]);
    cargo
        .current_dir(checkout)
        .env("CARGO_TARGET_DIR", &folder)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let start = Instant::now();
    shell::run(&mut cargo)?;
    let seconds = start.elapsed().as_secs_f64();
    let binary = folder.join("release/traxtent");
    let bytes = fs::metadata(&binary)
        .with_context(|| binary.display().to_string())?
        .len();
    fs::remove_dir_all(&folder)?;
    Ok((seconds, bytes))
}
