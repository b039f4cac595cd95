//! All tests of the workspace: built once, then run, two test binaries at a time.
//!
//! `cargo test` runs one test binary after the other. The tests of the command mostly wait for
//! drives in real time, so the other tests run beside them, at a lower priority.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;
use serde::Deserialize;

use crate::libtest::{Shown, run_tests};
use crate::shell;
use crate::tally::Tally;

/// Selects the whole workspace, with the features of the released packages.
pub(crate) const RELEASED: [&str; 3] = ["--workspace", "--features", "traxtent/parquet"];

/// The package whose tests mostly wait. The tests of all others run beside them.
const WAITING: &str = "traxtent";

/// The longest job of the others, which an emulated machine on one processor makes up. It begins
/// first, so that it does not run alone at the end.
const LONGEST: &str = "crates/traxtent-check: it";

/// The niceness of the other tests.
const OTHERS_NICENESS: u8 = 10;

/// The part of cargo's messages that describes a test binary.
#[derive(Deserialize)]
struct Artifact {
    #[serde(default)]
    manifest_path: PathBuf,
    target: Target,
    #[serde(default)]
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Default, Deserialize)]
struct Profile {
    test: bool,
}

/// A set of tests that one command runs.
struct Job {
    name: String,
    command: Command,
}

/// Runs all tests of the workspace, including doctests.
pub(crate) fn run() -> Result<Tally> {
    let binaries = build()?;
    ensure!(!binaries.is_empty(), "cargo built no test");
    let (mut waiting, mut others) = (Vec::new(), VecDeque::new());
    for binary in &binaries {
        let folder = binary.manifest_path.parent().context("no folder")?;
        match folder.file_name() {
            Some(name) if name == WAITING => waiting.push(binary.job(folder, 0)?),
            _ => {
                let job = binary.job(folder, OTHERS_NICENESS)?;
                match job.name == LONGEST {
                    true => others.push_front(job),
                    false => others.push_back(job),
                }
            }
        }
    }
    let mut doctests = test_workspace(shell::cargo_at(OTHERS_NICENESS));
    doctests.args(["--doc", "--", "--show-output"]);
    others.push_back(Job {
        name: "doctests".to_owned(),
        command: doctests,
    });
    let (all, others) = (Mutex::new(Tally::default()), Mutex::new(others));
    let run_others = || {
        while let Some(job) = { others.lock().pop_front() } {
            job.run(&all);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(run_others);
        waiting.into_iter().for_each(|job| job.run(&all));
        run_others();
    });
    Ok(all.into_inner())
}

/// Returns the command that builds and runs the tests of the workspace with `cargo`.
fn test_workspace(mut cargo: Command) -> Command {
    cargo.arg("test").args(RELEASED);
    cargo
}

/// Builds the tests, and returns their binaries.
fn build() -> Result<Vec<Artifact>> {
    let mut cargo = test_workspace(shell::cargo());
    cargo.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    let built = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let built = built.context("cargo test --no-run")?;
    if !built.status.success() {
        bail!("cargo test --no-run: {}", built.status);
    }
    // Messages of other kinds have other keys.
    let messages = built.stdout.split(|byte| *byte == b'\n');
    let artifacts = messages.filter_map(|line| serde_json::from_slice::<Artifact>(line).ok());
    let is_test = |artifact: &Artifact| artifact.profile.test && artifact.executable.is_some();
    Ok(artifacts.filter(is_test).collect())
}

impl Artifact {
    /// Returns the job that runs the binary in its package's directory, like `cargo test`.
    fn job(&self, folder: &Path, niceness: u8) -> Result<Job> {
        let package = folder.strip_prefix(shell::root())?.display();
        let program = self.executable.as_ref().context("no binary")?;
        let mut command = shell::at_niceness(niceness, program);
        command.current_dir(folder).arg("--show-output");
        Ok(Job {
            name: format!("{package}: {}", self.target.name),
            command: shell::without_package(command),
        })
    }
}

impl Job {
    /// Runs the tests and counts them. Prints their results together at the end.
    fn run(self, all: &Mutex<Tally>) {
        let Job { name, command } = self;
        let begun = Instant::now();
        let (result, lines) = run_tests(command, &name, Shown::AtEnd);
        let mut all = all.lock();
        println!("{name}: {:.1} s", begun.elapsed().as_secs_f64());
        lines.iter().for_each(|line| println!("    {line}"));
        match result {
            Ok(tests) => all.add(tests),
            Err(error) => all.check(&name, Err(error)),
        }
    }
}
