//! `cargo xtask mutants`: runs cargo-mutants on the modules of traxtent-model that compute places
//! and times.
//!
//! A mutant is the code with one small change: an operator replaced, a function's body replaced by
//! a constant, a match arm deleted. With it, a test should fail. A mutant that does not compile is
//! unviable. One that no test catches is a survivor: it changes nothing that matters, or a test is
//! missing.
//!
//! The tracked files are copied to `target/mutants/tree`. The copy has a further package, `judges`,
//! whose test binary consists of those files of `crates/tests/tests/library` that test the model.
//! Every mutant is first tried with the tests that take less than a second, and the survivors with
//! all tests of the binary.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{shell, tree};

/// The version that is installed if cargo-mutants is missing.
const CARGO_MUTANTS: &str = "27.1.0";

/// The modules that are changed, below `crates/traxtent-model/src`.
const MODULES: [&str; 3] = ["drive", "geometry", "mechanics"];

/// The manifest of the package with the tests.
const MANIFEST: &str = include_str!("mutants/Cargo.toml.in");

/// The files and directories of `crates/tests/tests/library` that test the model, and those that
/// they use.
const TESTS: [&str; 15] = [
    "disk",
    "disksim_files",
    "disksim_layouts",
    "drive",
    "geometry_checks",
    "geometry_goldens",
    "geometry_naive",
    "geometry_properties",
    "geometry_trees",
    "hostile",
    "mechanics",
    "profiles",
    "random",
    "reference",
    "shared",
];

/// The tests that take more than a second. Only the survivors of the other tests are tried with
/// them.
const SLOW_TESTS: [&str; 7] = [
    "disk::the_example_loses_only_unflushed_records",
    "disksim_files::drives_are_equal_as_text",
    "disksim_files::track_lists_equal_disksims",
    "drive::random::completions_do_not_depend_on_polling",
    "drive::random::every_request_completes_once_and_on_time",
    "drive::random::requests_do_not_queue_on_an_idle_drive",
    "hostile::thousands_of_slips_are_refused",
];

/// The time in seconds after which the tests of a mutant are stopped. The mutant then counts as
/// caught.
const TIMEOUT_SECONDS: &str = "180";

/// The virtual memory that each process may use, in KiB.
const MEMORY_KIB: u64 = 8 << 20;

/// The mutants to try.
#[derive(clap::Args)]
#[group(id = "mutants")]
pub(crate) struct Options {
    /// Modules of traxtent-model to change [default: drive, geometry and mechanics]
    module: Vec<String>,
    /// Try only this many mutants, chosen at random from those of the modules
    #[arg(long)]
    sample: Option<usize>,
    /// The seed of the choice
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Try only the Kth of N parts, as in 1/4; each part is itself a random sample
    #[arg(long, value_name = "K/N", value_parser = parse_shard)]
    shard: Option<(usize, usize)>,
    /// Try only the mutants that this file names, such as the survivors of an earlier run
    #[arg(long, value_name = "FILE", conflicts_with_all = ["sample", "shard"])]
    again: Option<PathBuf>,
    /// Print the mutants, and try none
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let program = shell::tool("cargo-mutants", CARGO_MUTANTS, &[])?;
    let modules = modules(&options.module)?;
    let home = shell::target_dir().join("mutants");
    let mutants = CargoMutants {
        tree: prepare(&home)?,
        program,
        globs: globs(&modules),
        home,
    };
    let all = mutants.list()?;
    let chosen = choose(&all, options)?;
    if options.list {
        chosen.iter().for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let commit = shell::output("git", ["rev-parse", "--short", "HEAD"])?;
    let (seed, tried) = (options.seed, chosen.len());
    println!(
        "{tried} of {} mutants, seed {seed}, commit {commit}",
        all.len()
    );
    mutants.check_baseline()?;
    let quick = mutants.run("quick", &chosen, &SLOW_TESTS)?;
    let mut result = quick.among(&chosen);
    if !result.survivors.is_empty() {
        let slow = mutants.run("all", &result.survivors, &[])?;
        let slow = slow.among(&result.survivors);
        result.caught.extend(slow.caught);
        result.survivors = slow.survivors;
    }
    print!("{}", table(&modules, &result));
    println!();
    result
        .survivors
        .iter()
        .for_each(|name| println!("survivor {name}"));
    Ok(ExitCode::SUCCESS)
}

fn modules(named: &[String]) -> Result<Vec<&str>> {
    if named.is_empty() {
        return Ok(MODULES.to_vec());
    }
    if let Some(unknown) = named.iter().find(|name| !MODULES.contains(&name.as_str())) {
        bail!(
            "{unknown}: no such module; the modules are {}",
            MODULES.join(", ")
        );
    }
    Ok(named.iter().map(String::as_str).collect())
}

fn globs(modules: &[&str]) -> Vec<String> {
    let glob = |module: &&str| format!("crates/traxtent-model/src/{module}/**");
    modules.iter().map(glob).collect()
}

fn parse_shard(text: &str) -> Result<(usize, usize), String> {
    text.split_once('/')
        .and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)))
        .filter(|(part, parts)| (1..=*parts).contains(part))
        .ok_or_else(|| "it must be K/N, with K from 1 to N".to_owned())
}

/// Makes the copy of the tree, with the package of tests.
fn prepare(home: &Path) -> Result<PathBuf> {
    let tree = tree::prepare(home)?;
    tree::copy(&tree)?;
    let package = tree.join("crates/judges");
    fs::create_dir_all(package.join("tests"))?;
    fs::create_dir_all(package.join("src"))?;
    fs::write(package.join("Cargo.toml"), MANIFEST)?;
    fs::write(package.join("src/lib.rs"), "")?;
    let mut main = "#![allow(clippy::disallowed_methods, dead_code)]\n".to_owned();
    for name in TESTS {
        let base = format!("../../tests/tests/library/{name}");
        let is_directory = tree.join("crates/tests/tests/library").join(name).is_dir();
        let path = base + if is_directory { "/mod.rs" } else { ".rs" };
        writeln!(main, "#[path = \"{path}\"]\nmod {name};")?;
    }
    fs::write(package.join("tests/judges.rs"), main)?;
    Ok(tree)
}

/// Returns the mutants to try: those that the file of `--again` names, or a random sample that the
/// seed determines, of which `--shard` selects a part.
fn choose(all: &[String], options: &Options) -> Result<Vec<String>> {
    if let Some(file) = &options.again {
        let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
        let named: BTreeSet<&str> = text
            .lines()
            .map(|line| line.trim_start_matches("survivor "))
            .collect();
        let known = all.iter().filter(|name| named.contains(name.as_str()));
        return Ok(known.cloned().collect());
    }
    let mut keyed: Vec<(u64, &String)> = (0..)
        .zip(all)
        .map(|(index, name)| (splitmix(options.seed, index), name))
        .collect();
    keyed.sort_unstable();
    keyed.truncate(options.sample.unwrap_or(all.len()));
    let (part, parts) = options.shard.unwrap_or((1, 1));
    let in_part = keyed.into_iter().skip(part - 1).step_by(parts);
    Ok(in_part.map(|(_, name)| name.clone()).collect())
}

/// Returns the number at `index` in the random sequence of a seed (SplitMix64).
fn splitmix(seed: u64, index: u64) -> u64 {
    let mut z = seed.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// cargo-mutants, the copy of the tree that it changes, and its build directory.
struct CargoMutants {
    program: PathBuf,
    home: PathBuf,
    tree: PathBuf,
    globs: Vec<String>,
}

impl CargoMutants {
    /// Returns a command that runs on the copy, with bounded memory.
    fn command(&self, program: &Path) -> Command {
        let mut shell = shell::at_root(Command::new("sh"));
        shell
            .args(["-c", &format!("ulimit -v {MEMORY_KIB}; exec \"$@\""), "sh"])
            .arg(program)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", self.home.join("target"))
            .stdin(Stdio::null());
        shell
    }

    fn cargo_mutants(&self) -> Command {
        let mut command = self.command(&self.program);
        command.args(["mutants", "--no-config", "--package", "traxtent-model"]);
        command.args(self.globs.iter().flat_map(|glob| ["--file", glob]));
        command
    }

    /// Returns the names of all mutants, in the order of the files.
    fn list(&self) -> Result<Vec<String>> {
        let list = shell::stdout_of(self.cargo_mutants().arg("--list"))?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// Checks that the tests pass without a mutant.
    fn check_baseline(&self) -> Result<()> {
        let mut cargo = self.command(Path::new("cargo"));
        cargo.args(["test", "--quiet", "--package", "judges", "--test", "judges"]);
        shell::run(&mut cargo).context("the tests fail without a mutant")
    }

    /// Tries mutants with all tests but `skipped`. The output is kept in the directory `round`.
    fn run(&self, round: &str, names: &[String], skipped: &[&str]) -> Result<Outcomes> {
        let folder = self.home.join(round);
        fs::create_dir_all(&folder)?;
        let mut command = self.cargo_mutants();
        command.args(["--in-place", "--baseline=skip", "--shuffle"]);
        command.args(["--test-package", "judges", "--timeout", TIMEOUT_SECONDS]);
        command.arg("--output").arg(&folder);
        // cargo-mutants 27.1.0 does not apply `--re` to mutants that delete a field. The diff
        // leaves out those in other lines.
        let diff = folder.join("lines.diff");
        fs::write(&diff, diff_of_lines(&self.tree, names)?)?;
        command.arg("--in-diff").arg(&diff);
        for name in names {
            command.arg("--re").arg(format!("^{}$", escape(name)));
        }
        command.args(["--", "--test", "judges", "--"]);
        command.args(skipped.iter().flat_map(|test| ["--skip", test]));
        let status = command.status().context("cargo-mutants")?;
        // cargo-mutants returns 2 if mutants survived, and 3 if a test timed out.
        ensure!(
            matches!(status.code(), Some(0 | 2 | 3)),
            "cargo-mutants: {status}"
        );
        Outcomes::read(&folder.join("mutants.out"))
    }
}

/// Returns a diff that claims to have added the lines of the mutants, which limits cargo-mutants to
/// them.
fn diff_of_lines(tree: &Path, names: &[String]) -> Result<String> {
    let mut lines: BTreeSet<(&str, usize)> = BTreeSet::new();
    for name in names {
        let mut parts = name.splitn(3, ':');
        let (file, line) = (
            parts.next(),
            parts.next().and_then(|line| line.parse().ok()),
        );
        let place = file.zip(line);
        lines.insert(place.with_context(|| format!("{name}: no line number"))?);
    }
    let mut diff = String::new();
    let (mut last, mut added, mut text) = ("", 0, String::new());
    for (file, line) in lines {
        if file != last {
            (last, added) = (file, 0);
            text = fs::read_to_string(tree.join(file)).with_context(|| file.to_owned())?;
            writeln!(diff, "--- a/{file}\n+++ b/{file}")?;
        }
        let content = text.lines().nth(line - 1).unwrap_or_default();
        let before = line - 1 - added;
        writeln!(diff, "@@ -{before},0 +{line},1 @@\n+{content}")?;
        added += 1;
    }
    Ok(diff)
}

/// Returns a regular expression that matches exactly the text.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        if r"\.+*?()|[]{}^$".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// The names of the mutants that a run tried, by outcome.
#[derive(Debug, Default)]
struct Outcomes {
    caught: Vec<String>,
    survivors: Vec<String>,
    unviable: Vec<String>,
}

impl Outcomes {
    fn read(folder: &Path) -> Result<Outcomes> {
        let names = |file: &str| -> Result<Vec<String>> {
            let path = folder.join(file);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        let mut caught = names("caught.txt")?;
        caught.extend(names("timeout.txt")?);
        Ok(Outcomes {
            caught,
            survivors: names("missed.txt")?,
            unviable: names("unviable.txt")?,
        })
    }

    /// Drops the mutants that were not requested.
    fn among(mut self, chosen: &[String]) -> Outcomes {
        for list in [&mut self.caught, &mut self.survivors, &mut self.unviable] {
            list.retain(|name| chosen.contains(name));
        }
        self
    }
}

/// Returns the counts by module, with the 95 % interval of the share of viable mutants caught.
fn table(modules: &[&str], outcomes: &Outcomes) -> String {
    let mut text = "\nMODULE     VIABLE  CAUGHT   SHARE  95 % INTERVAL  UNVIABLE\n".to_owned();
    let rows = modules
        .iter()
        .map(|module| (*module, format!("/src/{module}/")));
    for (name, part) in rows.chain([("all", "/src/".to_owned())]) {
        let count = |list: &[String]| list.iter().filter(|name| name.contains(&part)).count();
        let (caught, unviable) = (count(&outcomes.caught), count(&outcomes.unviable));
        let viable = caught + count(&outcomes.survivors);
        let (low, high) = interval(caught, viable);
        let share = 100.0 * caught as f64 / viable.max(1) as f64;
        let interval = format!("{:.1} to {:.1}", 100.0 * low, 100.0 * high);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{name:<10} {viable:>6}  {caught:>6}  {share:>4.1} %  {interval:>13}  {unviable:>8}"
        );
    }
    text
}

/// Returns the 95 % interval of a proportion (Wilson, 1927).
fn interval(successes: usize, trials: usize) -> (f64, f64) {
    if trials == 0 {
        return (0.0, 1.0);
    }
    let (n, z) = (trials as f64, 1.959_964);
    let p = successes as f64 / n;
    let middle = p + z * z / (2.0 * n);
    let half = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    ((middle - half) / scale, (middle + half) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(sample: Option<usize>, shard: Option<(usize, usize)>) -> Options {
        Options {
            module: Vec::new(),
            sample,
            seed: 7,
            shard,
            again: None,
            list: false,
        }
    }

    /// Is a sample the same each time, and do its shards together have each of its mutants once?
    #[test]
    fn samples_are_divided() {
        let all: Vec<String> = (0..100).map(|i| format!("mutant {i}")).collect();
        let sample = choose(&all, &options(Some(20), None)).unwrap();
        assert_eq!(sample, choose(&all, &options(Some(20), None)).unwrap());
        let mut parts = Vec::new();
        for part in 1..=3 {
            parts.extend(choose(&all, &options(Some(20), Some((part, 3)))).unwrap());
        }
        parts.sort();
        let mut sorted = sample;
        sorted.sort();
        assert_eq!(parts, sorted);
        assert_eq!(sorted.len(), 20);
    }

    /// Are the options refused that `--again` would ignore?
    #[test]
    fn again_takes_no_sample() {
        use clap::Args as _;
        let accepts = |more: &[&str]| {
            let words = ["mutants", "--again", "survivors"];
            let words = words.iter().chain(more).copied();
            let command = Options::augment_args(clap::Command::new("mutants"));
            command.try_get_matches_from(words).is_ok()
        };
        assert!(accepts(&[]));
        assert!(!accepts(&["--sample", "3"]));
        assert!(!accepts(&["--shard", "1/2"]));
    }

    /// Is the interval the published one? R. G. Newcombe, "Two-sided confidence intervals for the
    /// single proportion" (1998), table I: 81 of 263.
    #[test]
    fn intervals_are_wilsons() {
        let (low, high) = interval(81, 263);
        assert!((low - 0.2553).abs() < 5e-5 && (high - 0.3662).abs() < 5e-5);
    }

    /// Do the tests that are skipped at first exist? A test that was renamed would make every
    /// mutant slow.
    #[test]
    fn slow_tests_exist() {
        let folder = shell::root().join("crates/tests/tests/library");
        for test in SLOW_TESTS {
            let (module, name) = test.rsplit_once("::").unwrap();
            let path = folder.join(module.replace("::", "/"));
            let file = [path.with_extension("rs"), path.join("mod.rs")];
            let text = file.iter().find_map(|path| fs::read_to_string(path).ok());
            assert!(text.unwrap().contains(&format!("fn {name}()")), "{test}");
        }
    }

    /// Are the names of mutants escaped for regular expressions?
    #[test]
    fn names_are_escaped() {
        assert_eq!(
            escape("a.rs:1:2: replace || with +"),
            r"a\.rs:1:2: replace \|\| with \+"
        );
    }
}
