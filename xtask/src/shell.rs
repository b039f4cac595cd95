//! Running other programs.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// The root of the workspace.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask lies below the root")
}

/// The folder for what builds, searches and packaging leave behind.
pub(crate) fn target_dir() -> PathBuf {
    root().join(env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

/// The cargo that runs us, at the root of the workspace, free of what `cargo run` sets for us.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    for (key, _) in env::vars_os() {
        let ours = key
            .to_str()
            .is_some_and(|key| key.starts_with("CARGO_PKG_") || key.starts_with("CARGO_MANIFEST_"));
        if ours {
            cargo.env_remove(key);
        }
    }
    cargo
}

/// An example of a package, built for speed; arguments added are its own.
pub(crate) fn example(package: &str, name: &str) -> Command {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--release"]);
    cargo.args(["--package", package, "--example", name, "--"]);
    cargo
}

/// Where the program `name` is installed, if it is; administrators' folders are searched too.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Whether we are root.
pub(crate) fn is_root() -> bool {
    output("id", ["-u"]).is_ok_and(|id| id == "0")
}

/// What a program prints, without the white space around it.
pub(crate) fn output<S: AsRef<OsStr>>(
    name: &str,
    arguments: impl IntoIterator<Item = S>,
) -> Result<String> {
    stdout_of(Command::new(name).args(arguments))
}

/// What a command prints, without the white space around it. Its standard error is part of the
/// error if it fails.
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

/// Runs a command whose output is the developer's to see, or fails with its command line.
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
