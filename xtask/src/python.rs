//! The Python package: built with the libraries of the tests, installed in an environment of its
//! own, and tested there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::shell;
use crate::tally::Tally;

/// The environment, while it is prepared beside the tests.
pub(crate) struct Preparation(JoinHandle<Result<PathBuf>>);

/// Begins to prepare the environment, at low priority. `soak` adds large packages.
pub(crate) fn start_preparation(soak: bool) -> Preparation {
    let list = match soak {
        true => "requirements-soak.txt",
        false => "requirements.txt",
    };
    Preparation(std::thread::spawn(move || environment(list)))
}

/// Builds the package, installs it, and runs its checks. `soak` is the factor by which the
/// repetitions of randomized tests are multiplied; tests that need large packages then run too.
pub(crate) fn test(preparation: Preparation, soak: Option<u64>) -> Tally {
    let mut tally = Tally::default();
    if shell::program("python3").is_none() {
        tally.skip("the Python package", "python3 is not installed");
        return tally;
    }
    let prepared = preparation.0.join();
    let prepared = prepared.unwrap_or_else(|_| bail!("it panicked"));
    let installed = prepared.and_then(|folder| {
        let wheel = wheel(&folder)?;
        install(&folder, &wheel)?;
        Ok(folder)
    });
    let folder = match installed {
        Ok(folder) => folder,
        Err(error) => {
            tally.check("the Python package, built and installed", Err(error));
            return tally;
        }
    };
    tally.check("the Python package, built and installed", Ok(()));
    // The static checks run one after the other, beside pytest, which has one process.
    std::thread::scope(|scope| {
        let checks = scope.spawn(|| static_checks(&folder));
        match pytest(&folder, soak) {
            Ok(tests) => tally.add(tests),
            Err(error) => tally.check("pytest", Err(error)),
        }
        for (name, result) in checks.join().unwrap_or_else(|_| panicked()) {
            tally.check(name, result);
        }
    });
    tally
}

/// Compares the stubs with the package, and checks types and style.
fn static_checks(folder: &Path) -> Vec<(&'static str, Result<()>)> {
    let tool = |arguments: &[&str]| shell::run(in_package(folder, "python").args(arguments));
    let stubs = ["-m", "mypy.stubtest", "traxtent", "--allowlist", ALLOWLIST];
    vec![
        ("stubs of the Python package", tool(&stubs)),
        ("mypy", tool(&["-m", "mypy", "--strict", "python", "tests"])),
        ("ruff", tool(&["-m", "ruff", "check", "."])),
        (
            "ruff format",
            tool(&["-m", "ruff", "format", "--check", "."]),
        ),
    ]
}

fn panicked() -> Vec<(&'static str, Result<()>)> {
    vec![(
        "static checks of the Python package",
        Err(anyhow!("they panicked")),
    )]
}

/// The list of the differences between stubs and package that are intended.
const ALLOWLIST: &str = "tests/stubtest-allowlist.txt";

/// Makes the wheel of a release below `folder`, and tries it in an environment that has nothing
/// else. Returns its path.
pub(crate) fn release(folder: &Path) -> Result<PathBuf> {
    let tools = environment("requirements.txt")?;
    let out = folder.join("wheel");
    let _ = fs::remove_dir_all(&out);
    let mut maturin = in_package(&tools, "maturin");
    maturin.args(["build", "--profile", "dist", "--locked", "--out"]);
    shell::run(maturin.arg(&out))?;
    let wheels = out.read_dir()?.collect::<Result<Vec<_>, _>>()?;
    let [wheel] = &wheels[..] else {
        bail!("{}: expected one wheel", out.display());
    };
    let trial = folder.join("wheel-trial");
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]);
    shell::stdout_of(create.arg(&trial))?;
    let mut pip = Command::new(trial.join("bin/python"));
    pip.args(PIP_INSTALL).arg("--no-deps");
    shell::run(pip.arg(wheel.path()))?;
    let mut python = Command::new(trial.join("bin/python"));
    let printed = shell::stdout_of(python.args(["-c", TRIAL]))?;
    let mut command = Command::new(trial.join("bin/traxtent"));
    let json = shell::stdout_of(command.args(["sim", "atlas10k2", TRIAL_WORKLOAD, "--json"]))?;
    ensure!(
        printed == json,
        "the package and its command differ:\n{printed}\n{json}"
    );
    Ok(wheel.path())
}

/// The arguments of Python that install packages.
const PIP_INSTALL: [&str; 5] = [
    "-m",
    "pip",
    "install",
    "--quiet",
    "--disable-pip-version-check",
];

/// The workload of the trial, which [`TRIAL`] names too.
const TRIAL_WORKLOAD: &str = "random,size=8,count=1000";

/// The Python program of the trial. The command must print the same JSON.
const TRIAL: &str = "\
import traxtent
print(traxtent.simulate('atlas10k2', 'random,size=8,count=1000').to_json())";

/// Creates the environment with the packages in the file `list`, unless there is one with the same
/// list. Returns the directory that contains it.
fn environment(list: &str) -> Result<PathBuf> {
    let folder = shell::target_dir().join("python");
    let venv = folder.join("venv");
    let list = package_folder().join("tests").join(list);
    let wanted = fs::read_to_string(&list).with_context(|| list.display().to_string())?;
    let mark = venv.join("installed.txt");
    if fs::read_to_string(&mark).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    let mut create = Command::new("python3");
    create.args(["-m", "venv", "--clear"]).arg(&venv);
    shell::stdout_of(&mut create)?;
    let mut pip = nice(&venv.join("bin/python"));
    pip.args(PIP_INSTALL).arg("-r");
    shell::stdout_of(pip.arg(&list))?;
    fs::write(&mark, wanted)?;
    Ok(folder)
}

fn nice(program: &Path) -> Command {
    let mut nice = Command::new("nice");
    nice.args(["-n", "19"]).arg(program);
    nice
}

/// Builds the extension with the profile and the features of the tests, so that cargo reuses the
/// libraries that it has built for the tests, and packs it into a wheel. A build of this package
/// alone would build most libraries again, with fewer features.
fn wheel(folder: &Path) -> Result<PathBuf> {
    let mut cargo = shell::cargo();
    cargo.args(["build", "--workspace", "--profile", "test"]);
    cargo.args(["--features", "traxtent/parquet", "--lib", "--tests"]);
    shell::run(&mut cargo)?;
    let library = shell::target_dir().join("debug/lib_traxtent.so");
    let wheels = folder.join("wheels");
    let _ = fs::remove_dir_all(&wheels);
    fs::create_dir_all(&wheels)?;
    let mut pack = in_package(folder, "python");
    pack.arg("pack.py").arg(&library).arg(&wheels);
    let wheel = PathBuf::from(shell::stdout_of(&mut pack)?);
    ensure!(wheel.is_file(), "{}: is not a file", wheel.display());
    Ok(wheel)
}

fn install(folder: &Path, wheel: &Path) -> Result<()> {
    let mut pip = in_package(folder, "python");
    pip.args(PIP_INSTALL);
    pip.args(["--no-deps", "--force-reinstall"]);
    shell::run(pip.arg(wheel))
}

/// Runs the tests, and counts them.
fn pytest(folder: &Path, soak: Option<u64>) -> Result<Tally> {
    let report = folder.join("pytest.xml");
    let _ = fs::remove_file(&report);
    let mut command = in_package(folder, "python");
    command.args([
        "-m",
        "pytest",
        "--quiet",
        "--quiet",
        "-p",
        "no:cacheprovider",
    ]);
    command.arg(format!("--junit-xml={}", report.display()));
    if let Some(factor) = soak {
        command.env("TRAXTENT_SOAK", factor.to_string());
    }
    let status = command.stdin(Stdio::null()).status().context("pytest")?;
    let text = fs::read_to_string(&report).with_context(|| report.display().to_string())?;
    let tally = count(&text);
    ensure!(
        status.success() || !tally.failures.is_empty(),
        "pytest: {status}"
    );
    Ok(tally)
}

/// Counts the tests in a report of pytest.
fn count(report: &str) -> Tally {
    let mut tally = Tally::default();
    for case in report.split("<testcase ").skip(1) {
        let case = case.split("</testcase>").next().unwrap_or(case);
        let name = format!(
            "{}::{}",
            attribute(case, "classname").unwrap_or_default(),
            attribute(case, "name").unwrap_or_default()
        );
        if let Some((_, skipped)) = case.split_once("<skipped ") {
            tally.skip(&name, attribute(skipped, "message").unwrap_or_default());
        } else if case.contains("<failure ") || case.contains("<error ") {
            tally.failures.push(name);
        } else {
            tally.passed += 1;
        }
    }
    tally
}

/// Returns the value of the first attribute of this name in a piece of XML.
fn attribute<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("{name}=\"");
    let place = match element.strip_prefix(&begin) {
        Some(rest) => rest,
        None => element.split_once(&format!(" {begin}"))?.1,
    };
    place.split_once('"').map(|(value, _)| value)
}

fn package_folder() -> PathBuf {
    shell::root().join("bindings/python")
}

/// Returns a command for a program of the environment, which starts in the directory of the
/// package.
fn in_package(folder: &Path, program: &str) -> Command {
    let bin = folder.join("venv/bin");
    let mut command = shell::at_root(Command::new(bin.join(program)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::split_paths(&path);
    if let Ok(path) = std::env::join_paths(std::iter::once(bin).chain(path)) {
        command.env("PATH", path);
    }
    command.current_dir(package_folder());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are the tests of a report counted, with the names of those that failed or were skipped?
    #[test]
    fn reports_are_counted() {
        let report = r#"<testsuite tests="3"><testcase classname="tests.a" name="one" time="0.1" />
            <testcase classname="tests.a" name="two" time="0.1"><failure message="x">y</failure></testcase>
            <testcase classname="tests.b" name="three"><skipped type="pytest.skip" message="why">z</skipped></testcase>
            </testsuite>"#;
        let tally = count(report);
        assert_eq!(tally.passed, 1);
        assert_eq!(tally.failures, ["tests.a::two"]);
        assert_eq!(tally.skips, ["tests.b::three: why"]);
    }
}
