//! `cargo xtask test`: all checks in one command.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Result, bail, ensure};

use crate::tally::Tally;
use crate::{cycles, guest, packages, python, shell, suite, words};

/// Runs all checks, even if some fail, and prints the counts.
pub(crate) fn run() -> Result<ExitCode> {
    let mut tally = Tally::default();
    heading("system packages");
    packages::install(packages::FOR_TESTS);
    guest::prepare_kernels();
    heading("style and lints");
    tally.check(
        "rustfmt",
        shell::run(shell::cargo().args(["fmt", "--all", "--check"])),
    );
    tally.check("words", check_words());
    tally.check("imports", check_imports());
    tally.check("clippy", shell::run(&mut clippy()));
    tally.check("the small install", shell::run(&mut small_install()));
    tally.check("rustdoc", shell::run(&mut rustdoc()));
    heading("tests");
    // These run beside the tests, because tests in real time often leave the processor idle.
    let environment = python::start_preparation(false);
    let packaging = std::thread::spawn(|| shell::run(&mut package()));
    match suite::run() {
        Ok(tests) => tally.add(tests),
        Err(error) => tally.check("the tests", Err(error)),
    }
    heading("the Python package");
    tally.add(python::test(environment, None));
    heading("packages");
    let packaged = packaging.join().unwrap_or_else(|_| bail!("it panicked"));
    tally.check("the crates, packaged alone", packaged);
    Ok(tally.report())
}

/// Returns the command that runs the tests of some packages, or of the whole workspace if none is
/// named. Doctests are included. With `filter`, only tests with this text in their names run.
pub(crate) fn test_command(packages: &[String], filter: Option<&str>) -> Command {
    let mut cargo = shell::cargo();
    cargo.args(["test", "--no-fail-fast"]);
    match packages {
        [] => cargo.args(suite::RELEASED),
        some => cargo.args(some.iter().flat_map(|name| ["--package", name])),
    };
    cargo.args(filter).args(["--", "--show-output"]);
    cargo
}

fn clippy() -> Command {
    let mut cargo = shell::cargo();
    cargo.args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--features",
        "xtask/pages,traxtent/parquet",
    ]);
    cargo.args(["--", "--deny", "warnings"]);
    cargo
}

/// Returns the command that checks the command without its features.
fn small_install() -> Command {
    let mut cargo = shell::cargo();
    cargo.args(["clippy", "--package", "traxtent", "--no-default-features"]);
    cargo.args(["--", "--deny", "warnings"]);
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

fn check_words() -> Result<()> {
    ensure!(
        words::check()?,
        "see the lines above, and docs/glossary.md for the terms"
    );
    Ok(())
}

fn check_imports() -> Result<()> {
    ensure!(
        cycles::check()?,
        "modules import each other; see the lines above"
    );
    Ok(())
}

/// The pure crates, which may be published, each after those that it depends on.
const PURE_CRATES: [&str; 9] = [
    "traxtent-units",
    "traxtent-model",
    "traxtent-workload",
    "traxtent-map",
    "traxtent-scsi",
    "traxtent-probe",
    "traxtent-layout",
    "traxtent-disksim",
    "traxtent-volume",
];

/// Returns a command that does the same as `cargo publish --dry-run` without contacting the
/// registry: it packs the [`PURE_CRATES`], and builds them from the packages' contents alone. It
/// runs at low priority beside the tests, in a build directory of its own, because builds in one
/// directory wait for each other. Packages of earlier runs are removed first.
fn package() -> Command {
    let folder = shell::target_dir().join("packaged");
    forget_packages(&folder);
    let mut cargo = shell::background_cargo();
    cargo.args(["package", "--quiet", "--allow-dirty", "--offline"]);
    cargo.arg("--target-dir").arg(&folder);
    cargo.args(PURE_CRATES.iter().flat_map(|name| ["--package", name]));
    // The packages are only built, never run.
    cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
    cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
    cargo
}

/// Removes the packages of earlier runs, unpacked and built. Cargo would take them for the present
/// ones, since the versions are the same.
fn forget_packages(build: &Path) {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let sources = home.and_then(|home| home.join("registry/src").read_dir().ok());
    for source in sources.into_iter().flatten().flatten() {
        for name in PURE_CRATES {
            // xtask and the crates have the version of the workspace.
            let folder = source
                .path()
                .join(format!("{name}-{}", env!("CARGO_PKG_VERSION")));
            // A directory that is absent needs no removal.
            let _ = fs::remove_dir_all(folder);
        }
    }
    let built = fs::read_dir(build.join("debug/.fingerprint"));
    for folder in built.into_iter().flatten().flatten() {
        let name = folder.file_name().to_string_lossy().into_owned();
        let library = name.rsplit_once('-').map_or("", |(name, _)| name);
        let record = format!("lib-{}.json", library.replace('-', "_"));
        let record = fs::read_to_string(folder.path().join(record)).unwrap_or_default();
        // Cargo compares files for crates of the workspace, but only versions for packages, whose
        // records contain this word.
        if PURE_CRATES.contains(&library) && record.contains("Precalculated") {
            let _ = fs::remove_dir_all(folder.path());
        }
    }
}

fn heading(text: &str) {
    println!("\n== {text}");
}
