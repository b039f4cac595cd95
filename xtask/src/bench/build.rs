//! The time of a clean release build with two jobs, including dependencies.

use std::fs;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::shell;

/// Builds into an empty directory and prints the time and the binary's size. Dependencies are
/// downloaded before the clock starts.
pub(super) fn run() -> Result<()> {
    shell::run(shell::cargo().args(["fetch", "--locked"]))?;
    let folder = shell::target_dir().join("bench-build");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut cargo = shell::cargo();
    cargo.args([
        "build",
        "--release",
        "--locked",
        "--package",
        "traxtent",
        "--jobs",
        "2",
    ]);
    cargo
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
    println!(
        "clean release build, 2 jobs: {seconds:.1} s; traxtent is {:.1} MB",
        bytes as f64 / 1e6
    );
    Ok(())
}
