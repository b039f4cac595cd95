//! Running other programs.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Returns the root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies below the root")
}

/// Returns the directory of build output, in which tasks also keep their working files.
pub(crate) fn target_dir() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// Returns a command for the cargo that runs this program. The command starts in the root of the
/// workspace, without the variables that `cargo run` sets for this package.
pub(crate) fn cargo() -> Command {
    at_root(Command::new(cargo_program()))
}

/// Returns the command of [`cargo`] at the lowest priority, for work that runs alongside real-time
/// tests.
pub(crate) fn background_cargo() -> Command {
    cargo_at(19)
}

/// Returns the command of [`cargo`] at a lower priority.
pub(crate) fn cargo_at(niceness: u8) -> Command {
    at_root(at_niceness(niceness, cargo_program()))
}

/// Returns a command that runs a program at a lower priority. Niceness 0 keeps the priority, 19 is
/// the lowest.
pub(crate) fn at_niceness(niceness: u8, program: impl AsRef<OsStr>) -> Command {
    let mut nice = Command::new("nice");
    nice.arg("-n").arg(niceness.to_string()).arg(program);
    nice
}

fn cargo_program() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Makes a command run in the root of the workspace, without the variables that `cargo run` sets
/// for this package.
pub(crate) fn at_root(mut command: Command) -> Command {
    command.current_dir(root());
    without_package(command)
}

/// Makes a command run without the variables that `cargo run` sets for this package.
pub(crate) fn without_package(mut command: Command) -> Command {
    for (key, _) in env::vars_os() {
        let is_set_by_cargo = key
            .to_str()
            .is_some_and(|key| key.starts_with("CARGO_PKG_") || key.starts_with("CARGO_MANIFEST_"));
        if is_set_by_cargo {
            command.env_remove(key);
        }
    }
    command
}

/// Returns a command that runs an example of a package in release mode. Further arguments go to the
/// example.
pub(crate) fn example(package: &str, name: &str) -> Command {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--release"]);
    cargo.args(["--package", package, "--example", name, "--"]);
    cargo
}

/// Returns a command that runs a benchmark of a package; further arguments go to the benchmark.
pub(crate) fn bench(package: &str, name: &str) -> Command {
    let mut cargo = cargo();
    cargo.args(["bench", "--quiet"]);
    cargo.args(["--package", package, "--bench", name, "--"]);
    cargo
}

/// Returns the path of the program `name` in `PATH`, `/usr/sbin` or `/sbin`, if it is installed. An
/// absolute path is returned if there is such a file.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns the program of the crate `name`: the one that is installed, in whatever version, or else
/// one that is installed below the target directory and kept between runs. `features` are further
/// arguments of `cargo install`.
pub(crate) fn tool(name: &str, version: &str, features: &[&str]) -> Result<PathBuf> {
    if let Some(program) = program(name) {
        return Ok(program);
    }
    let tools = target_dir().join("tools");
    let program = tools.join("bin").join(name);
    if !program.exists() {
        eprintln!("installing {name} {version}; this takes a few minutes, once");
        let mut cargo = cargo();
        cargo.args(["install", name, "--locked", "--version", version]);
        cargo.args(features).arg("--root").arg(&tools);
        run(&mut cargo)?;
    }
    Ok(program)
}

/// Returns whether this process runs as root.
pub(crate) fn is_root() -> bool {
    output("id", ["-u"]).is_ok_and(|id| id == "0")
}

/// Runs a program and returns its trimmed output.
pub(crate) fn output<S: AsRef<OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = S>,
) -> Result<String> {
    stdout_of(Command::new(name).args(arguments))
}

/// Runs a command and returns its trimmed output. If it fails, its standard error is part of the
/// error.
pub(crate) fn stdout_of(command: &mut Command) -> Result<String> {
    let line = display(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| line.clone())?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{line}: {}\n{}",
        output.status,
        errors.trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Prints a command line, and runs it with its output shown. An error contains the command line.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = display(command);
    eprintln!("$ {line}");
    let status = command
        .stdin(Stdio::null())
        .status()
        .with_context(|| line.clone())?;
    ensure!(status.success(), "{line}: {status}");
    Ok(())
}

fn display(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
