//! `cargo xtask planted`: deliberate faults in the code, each of which a named test must catch.
//!
//! A planted bug is a patch, `validation/planted/NAME.patch`. Three lines come before its diff:
//! `fault:` describes its effect; `package:` and `test:` name the test that must fail. The tracked
//! files are copied to a separate directory, with a build directory that is kept between runs.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};
use std::{fmt, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::tally::Tally;
use crate::{libtest, shell, tree};

/// The planted bugs to try.
#[derive(clap::Args)]
#[group(id = "planted")]
pub(crate) struct Options {
    /// Planted bugs to try [default: all]
    name: Vec<String>,
    /// Print the names, faults and tests, and try none
    #[arg(long)]
    list: bool,
}

/// The directory of the patches, below the root.
const FOLDER: &str = "validation/planted";

/// The option of git for the number of lines around a change that must be the same as when the
/// patch was made.
const CONTEXT: &str = "-C1";

/// Cargo's settings that build the crates of the workspace without optimization. Most of the time
/// goes into building them, and each build serves one test.
const UNOPTIMIZED: [&str; 7] = [
    "profile.test.opt-level=0",
    "profile.test.package.\"*\".opt-level=1",
    "profile.test.package.traxtent-disksim.opt-level=0",
    "profile.test.package.traxtent-model.opt-level=0",
    "profile.test.package.traxtent-probe.opt-level=0",
    "profile.test.package.traxtent-sim.opt-level=0",
    "profile.test.package.traxtent-units.opt-level=0",
];

/// A patch, and the lines before its diff.
#[derive(Debug, PartialEq, Eq)]
struct Planted {
    name: String,
    path: PathBuf,
    fault: String,
    package: String,
    test: String,
    /// The first file that the patch changes.
    file: String,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut all = all()?;
    if let Some(unknown) = options
        .name
        .iter()
        .find(|name| all.iter().all(|one| one.name != **name))
    {
        bail!("{unknown}: no such patch in {FOLDER}; --list prints all");
    }
    all.retain(|one| options.name.is_empty() || options.name.contains(&one.name));
    all.sort_by_cached_key(Planted::build_order);
    if options.list {
        for one in &all {
            println!("{}: {}", one.name, one.fault);
            println!("    {}, {}", one.package, one.test);
        }
        return Ok(ExitCode::SUCCESS);
    }
    let home = shell::target_dir().join("planted");
    let tree = tree::prepare(&home)?;
    let mut tally = Tally::default();
    let mut times = Vec::new();
    for (index, one) in all.iter().enumerate() {
        let progress = Progress {
            done: index,
            all: all.len(),
        };
        println!("\n== {progress} {}: {}", one.name, one.fault);
        times.push(Instant::now());
        if let Some(left) = progress.time_left(&times) {
            println!("about {} min are left", left.as_secs().div_ceil(60));
        }
        tree::copy(&tree)?;
        apply(&one.path, &tree)?;
        let tried = libtest::cargo_test(one.command(&tree, &home.join("target")))?;
        match one.outcome(&tried) {
            Outcome::Caught => println!("caught {} by {}", one.name, one.test),
            Outcome::Missed(_) => println!("missed {} by {}", one.name, one.test),
            Outcome::Skipped(_) => {}
        }
        match one.outcome(&tried) {
            Outcome::Caught => tally.passed += 1,
            Outcome::Missed(why) => tally.failures.push(format!("{}: {why}", one.name)),
            Outcome::Skipped(why) => tally.skip(&one.name, why),
        }
    }
    tree::copy(&tree)?;
    Ok(tally.report())
}

/// The number of planted bugs that have been tried, and the number of all.
struct Progress {
    done: usize,
    all: usize,
}

impl Progress {
    /// Estimates the time for the current bug and those after it from the times at which bugs were
    /// begun. The first one is left out, because everything is built for it. Returns `None` for the
    /// first two.
    fn time_left(&self, times: &[Instant]) -> Option<Duration> {
        let (second, last) = (times.get(1)?, times.last()?);
        let done = u32::try_from(times.len() - 2)
            .ok()
            .filter(|&done| done > 0)?;
        let rest = u32::try_from(self.all - self.done).ok()?;
        Some(last.duration_since(*second) * rest / done)
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.done + 1, self.all)
    }
}

/// The result of a test with a planted bug.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Caught,
    Missed(&'static str),
    Skipped(String),
}

impl Planted {
    /// Parses a patch.
    fn read(path: &Path) -> Result<Planted> {
        let text = fs::read_to_string(path)?;
        let head = text.lines().take_while(|line| !line.starts_with("diff "));
        let head: Vec<&str> = head.collect();
        let value = |key: &str| {
            let mut values = head.iter().filter_map(|line| line.strip_prefix(key));
            let value = values.next().map(|value| value.trim().to_owned());
            value.with_context(|| format!("{}: no line `{key}` before the diff", path.display()))
        };
        let name = path.file_stem().unwrap_or_default();
        Ok(Planted {
            name: name.to_string_lossy().into_owned(),
            path: path.to_owned(),
            fault: value("fault:")?,
            package: value("package:")?,
            test: value("test:")?,
            file: {
                let file = text.lines().find_map(|line| line.strip_prefix("+++ b/"));
                file.with_context(|| format!("{}: it changes no file", path.display()))?
                    .to_owned()
            },
        })
    }

    /// Returns a key that sorts patches so that one build has much in common with the next.
    fn build_order(&self) -> (String, String, String) {
        (self.package.clone(), self.file.clone(), self.name.clone())
    }

    /// Returns the command that runs only the patch's test.
    fn command(&self, tree: &Path, build: &Path) -> Command {
        let mut cargo = shell::cargo();
        cargo.current_dir(tree).env("CARGO_TARGET_DIR", build);
        cargo.args(["test", "--no-fail-fast", "--package", &self.package]);
        cargo.args(UNOPTIMIZED.iter().flat_map(|set| ["--config", set]));
        cargo.args(self.targets(tree)).arg(&self.test);
        cargo.args(["--", "--exact", "--show-output"]);
        cargo
    }

    /// Returns cargo's options for the targets whose source contains the test. The other targets
    /// of the package need not be built.
    fn targets(&self, tree: &Path) -> Vec<String> {
        let short = self.package.trim_start_matches("traxtent-");
        let folders = [&self.package, short].map(|name| tree.join("crates").join(name));
        let Some(folder) = folders.iter().find(|folder| folder.is_dir()) else {
            return Vec::new();
        };
        let function = format!("fn {}(", self.test.rsplit("::").next().unwrap_or_default());
        let mut targets = Vec::new();
        if folder.join("src/lib.rs").is_file() && contains(&folder.join("src"), &function) {
            targets.push("--lib".to_owned());
        }
        for entry in fs::read_dir(folder.join("tests"))
            .into_iter()
            .flatten()
            .flatten()
        {
            if contains(&entry.path(), &function) {
                let name = entry.path().with_extension("");
                let name = name.file_name().unwrap_or_default();
                targets.extend(["--test".to_owned(), name.to_string_lossy().into_owned()]);
            }
        }
        targets
    }

    fn outcome(&self, tried: &Tally) -> Outcome {
        if tried.failures.contains(&self.test) {
            return Outcome::Caught;
        }
        match (&tried.failures[..], &tried.skips[..], tried.passed) {
            ([], [], 0) => Outcome::Missed("there is no such test"),
            ([], [], _) => Outcome::Missed("the test passes"),
            ([], [why, ..], _) => Outcome::Skipped(why.clone()),
            _ => Outcome::Missed("it does not build, or another test failed"),
        }
    }
}

/// Returns whether a Rust file, or one in a directory, contains a text.
fn contains(path: &Path, text: &str) -> bool {
    if let Ok(entries) = fs::read_dir(path) {
        return entries.flatten().any(|entry| contains(&entry.path(), text));
    }
    path.extension().is_some_and(|end| end == "rs")
        && fs::read_to_string(path).is_ok_and(|content| content.contains(text))
}

/// Returns all patches, sorted by name.
fn all() -> Result<Vec<Planted>> {
    let folder = shell::root().join(FOLDER);
    let mut paths = Vec::new();
    for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        paths.extend(
            path.extension()
                .is_some_and(|end| end == "patch")
                .then_some(path),
        );
    }
    paths.sort();
    paths.iter().map(|path| Planted::read(path)).collect()
}

/// Applies a patch in a separate directory.
fn apply(patch: &Path, tree: &Path) -> Result<()> {
    let mut git = git_apply(tree);
    let status = git.arg(patch).status().context("git")?;
    ensure!(status.success(), "{}: it does not apply", patch.display());
    Ok(())
}

/// Returns a `git apply` that does not treat the directory as a part of the repository.
fn git_apply(tree: &Path) -> Command {
    let mut git = Command::new("git");
    git.args(["apply", CONTEXT]).current_dir(tree);
    let above = tree.parent().unwrap_or(tree);
    git.env("GIT_CEILING_DIRECTORIES", above)
        .env_remove("GIT_DIR");
    git
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Does every patch still apply to the tree?
    #[test]
    fn patches_apply() {
        for one in all().unwrap() {
            let mut git = Command::new("git");
            git.args(["apply", CONTEXT, "--check"]).arg(&one.path);
            let output = git.current_dir(shell::root()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: {said}", one.name);
        }
    }

    /// Is the source of each patch's test found, so that only its target is built?
    #[test]
    fn tests_exist() {
        for one in all().unwrap() {
            let targets = one.targets(shell::root());
            assert!(
                !targets.is_empty(),
                "{}: there is no test {}",
                one.name,
                one.test
            );
        }
    }

    /// Does docs/results/planted.md list exactly the planted bugs, each with its fault and its
    /// test?
    #[test]
    fn the_page_names_them() {
        let page = fs::read_to_string(shell::root().join("docs/results/planted.md")).unwrap();
        let rows: BTreeSet<String> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(str::to_owned)
            .collect();
        let row = |one: &Planted| {
            let Planted {
                name,
                fault,
                package,
                test,
                ..
            } = one;
            format!("| `{name}` | {fault} | `{package}`: `{test}` |")
        };
        let expected: BTreeSet<String> = all().unwrap().iter().map(row).collect();
        assert_eq!(rows, expected);
    }

    /// Are failing, passing, skipped and missing tests distinguished, and failed builds?
    #[test]
    fn outcomes_are_distinguished() {
        let one = Planted {
            name: "n".to_owned(),
            path: PathBuf::new(),
            fault: String::new(),
            package: String::new(),
            test: "a::b".to_owned(),
            file: String::new(),
        };
        let of = |passed, failures: &[&str], skips: &[&str]| {
            let owned = |list: &[&str]| list.iter().map(|&text| text.to_owned()).collect();
            one.outcome(&Tally {
                passed,
                failures: owned(failures),
                skips: owned(skips),
            })
        };
        assert_eq!(of(0, &["a::b"], &[]), Outcome::Caught);
        assert_eq!(of(1, &[], &[]), Outcome::Missed("the test passes"));
        assert_eq!(of(0, &[], &[]), Outcome::Missed("there is no such test"));
        assert_eq!(of(0, &[], &["why"]), Outcome::Skipped("why".to_owned()));
        assert!(matches!(of(0, &["cargo test"], &[]), Outcome::Missed(_)));
    }
}
