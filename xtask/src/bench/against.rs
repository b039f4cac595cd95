//! A benchmark program of this checkout and of another commit, run alternately, so that other work
//! on the machine affects both alike.
//!
//! The placement of functions in a program changes its speed by several per cent, also for the same
//! instructions. Both programs are therefore linked anew for each round, with their functions in a
//! random order.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::nbd::median;
use crate::shell;

/// Builds the benchmark `bench` of `package`, of `commit` and of this checkout, and runs each
/// `rounds` times with `arguments`, alternately. For each rate in `unit` that they print, prints
/// both medians, and the median and the range of the rounds' ratios.
pub(super) fn run(
    package: &str,
    bench: &str,
    commit: &str,
    rounds: usize,
    arguments: &[String],
    unit: &str,
) -> Result<()> {
    let (commit, folder) = checkout(commit)?;
    let sides = [
        (folder.clone(), folder.join("target")),
        (shell::root().to_owned(), shell::target_dir()),
    ];
    let mut measured = Vec::new();
    for round in 1..=rounds {
        eprintln!("round {round} of {rounds}");
        let [other, here] = sides.each_ref().map(|(checkout, target)| {
            let program = build(package, bench, round, checkout, target)?;
            rates(&program, arguments, unit)
        });
        measured.push([other?, here?]);
    }
    println!(
        "{:<14} {:>14} {:>14} {:>16}",
        "workload", commit, "here", "ratio by round"
    );
    let loads = measured[0].iter().map(Vec::len).min().unwrap_or(0);
    ensure!(loads > 0, "the programs print no rates in {unit}");
    for load in 0..loads {
        let side = |side: usize| median(measured.iter().map(|both| both[side][load]));
        let mut ratios: Vec<f64> = measured
            .iter()
            .map(|[other, here]| here[load] / other[load])
            .collect();
        ratios.sort_by(f64::total_cmp);
        println!(
            "{:<14} {:>14.0} {:>14.0} {:>7.3} ({:.3} to {:.3})",
            load + 1,
            side(0),
            side(1),
            ratios[rounds / 2],
            ratios[0],
            ratios[rounds - 1],
        );
    }
    Ok(())
}

/// Checks `commit` out below the target directory, unless it is there, and returns its short name
/// and the directory.
pub(super) fn checkout(commit: &str) -> Result<(String, PathBuf)> {
    let commit = shell::output("git", ["rev-parse", "--short=12", commit])?;
    let folder = shell::target_dir().join("against").join(&commit);
    if !folder.exists() {
        let mut git = Command::new("git");
        git.args(["worktree", "add", "--detach", "--quiet"]);
        shell::run(git.arg(&folder).arg(&commit))?;
    }
    Ok((commit, folder))
}

/// Builds a benchmark of a checkout, with its functions in the random order of `seed`, and returns
/// its program.
fn build(
    package: &str,
    bench: &str,
    seed: usize,
    checkout: &Path,
    target: &Path,
) -> Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.args(["rustc", "--quiet", "--profile", "bench"]);
    cargo.args(["--package", package, "--bench", bench]);
    cargo.args(["--message-format", "json", "--"]);
    // Rust's linker on x86-64 Linux has this option; others may not.
    if cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        cargo.arg(format!("-Clink-arg=-Wl,--shuffle-sections=.text*={seed}"));
    }
    cargo.current_dir(checkout).env("CARGO_TARGET_DIR", target);
    let messages = shell::stdout_of(&mut cargo)?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == bench)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .with_context(|| format!("{} has no benchmark {bench}", checkout.display()))
}

/// Runs a benchmark and returns the rates that it prints in `unit`, in order.
fn rates(program: &Path, arguments: &[String], unit: &str) -> Result<Vec<f64>> {
    let output = shell::stdout_of(Command::new(program).args(arguments))?;
    let rate = |line: &str| {
        line.split_once(unit)?
            .0
            .split_whitespace()
            .last()?
            .parse()
            .ok()
    };
    Ok(output.lines().filter_map(rate).collect())
}
