//! `cargo xtask fuzz`: builds the engine of the `fuzz` package with coverage and runs it.
//!
//! libFuzzer is guided by coverage, which is recorded by code that LLVM's coverage pass inserts.
//! Flags of rustc enable this pass, so the stable compiler is sufficient. The sanitizers themselves
//! need the nightly compiler and are left out. In their place are an allocator with a bound, a
//! time-out, debug assertions and overflow checks.

mod worker;

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use parking_lot::Mutex;

use crate::tally::Tally;
use crate::{machine, packages, shell};
use worker::{Job, Outcome};

/// The compiler flags that record how often each edge of the control flow is taken, and the
/// operands of each comparison.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "-Ccodegen-units=1",
];

/// The number of inputs that a smoke run tries in each target.
const SMOKE_RUNS: u64 = 5_000;
const SMOKE_SEED: u32 = 1;
/// The cargo profile of smoke runs. It builds in half the time of the other.
const SMOKE_PROFILE: &str = "fuzz-smoke";
/// The cargo profile of full searches.
const SEARCH_PROFILE: &str = "fuzz";
/// The number of seconds after which a smoke run of a target or canary ends, even if it has not
/// tried all inputs.
const SMOKE_SECONDS: u32 = 20;
/// The maximum number of inputs that are tried in a canary. The four bytes that trigger its bug are
/// found after far fewer.
const CANARY_RUNS: u64 = 2_000_000;

/// The parameters of the search.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Target to run [default: all]
    target: Option<String>,
    /// Inputs to try in each target
    #[arg(long, default_value_t = 10_000_000)]
    runs: u64,
    /// Positive number that fixes the search [default: from the time of day]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    seed: Option<u32>,
    /// Number of concurrent processes [default: the number of cores]
    #[arg(long)]
    jobs: Option<usize>,
    /// Also start from the inputs that earlier searches found
    #[arg(long)]
    resume: bool,
    /// Do not search: run the target on this one file
    #[arg(long, requires = "target", value_name = "FILE")]
    input: Option<PathBuf>,
    /// List the targets and the canaries
    #[arg(long)]
    list: bool,
}

/// Runs a full search, lists the targets, or runs a target on one input.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    packages::install(packages::FOR_TESTS);
    ensure!(
        shell::program("c++").is_some(),
        "the engine needs a C++ compiler, and c++ is not installed"
    );
    let engine = Engine::build(SEARCH_PROFILE, shell::cargo())?;
    if options.list {
        engine
            .targets
            .iter()
            .chain(&engine.canaries)
            .for_each(|name| println!("{name}"));
        return Ok(ExitCode::SUCCESS);
    }
    let targets = match &options.target {
        None => engine.targets.clone(),
        Some(name) => {
            let known = engine
                .targets
                .iter()
                .chain(&engine.canaries)
                .any(|known| known == name);
            ensure!(
                known,
                "unknown target {name:?}; the targets are {}",
                engine.targets.join(", ")
            );
            vec![name.clone()]
        }
    };
    if let Some(input) = &options.input {
        return worker::replay(&engine.program, &targets[0], input);
    }
    let jobs = options.jobs.unwrap_or_else(cores).max(1);
    let seed = options.seed.unwrap_or_else(seed_from_time);
    println!("{}", machine::header(seed.into()));
    let divided = |target: &String| {
        // Each target has as many processes as run at a time, each with a seed of its own and a
        // share of the runs.
        let shares = jobs as u64;
        (0..shares)
            .map(move |share| Job {
                target: target.clone(),
                share: share as u32,
                seed: seed.wrapping_add(share as u32).max(1),
                runs: options.runs / shares + u64::from(share < options.runs % shares),
                seconds_max: None,
                resume: options.resume,
                expect_failure: false,
            })
            .collect::<Vec<_>>()
    };
    let work = targets
        .iter()
        .flat_map(divided)
        .filter(|job| job.runs > 0)
        .collect();
    Ok(engine.run(work, jobs).report())
}

/// Runs every target briefly, and checks that the planted bug of every canary is found.
pub(crate) fn smoke() -> Tally {
    let mut tally = Tally::default();
    if shell::program("c++").is_none() {
        tally.skip("fuzzing", "c++ is not installed");
        return tally;
    }
    let engine = match Engine::build(SMOKE_PROFILE, shell::cargo()) {
        Ok(engine) => engine,
        Err(error) => {
            tally.check("fuzz targets build", Err(error));
            return tally;
        }
    };
    let job = |target: &String, expect_failure| Job {
        target: target.clone(),
        share: 0,
        seed: SMOKE_SEED,
        runs: if expect_failure {
            CANARY_RUNS
        } else {
            SMOKE_RUNS
        },
        seconds_max: Some(SMOKE_SECONDS),
        resume: false,
        expect_failure,
    };
    let canaries = engine.canaries.iter().map(|name| job(name, true));
    let work = engine
        .targets
        .iter()
        .map(|name| job(name, false))
        .chain(canaries)
        .collect();
    engine.run(work, cores())
}

struct Engine {
    program: PathBuf,
    targets: Vec<String>,
    canaries: Vec<String>,
}

impl Engine {
    /// Builds the engine with one of the workspace's profiles, and asks it for the names of the
    /// targets and canaries.
    fn build(profile: &str, mut cargo: Command) -> Result<Engine> {
        let host = host_triple()?;
        // With `--target`, the flags do not apply to build scripts and procedural macros.
        cargo.args([
            "build",
            "--quiet",
            "--package",
            "fuzz",
            "--features",
            "engine",
            "--profile",
            profile,
            "--target",
            &host,
        ]);
        cargo.env("CARGO_ENCODED_RUSTFLAGS", COVERAGE.join("\x1f"));
        shell::run(&mut cargo)?;
        let program = shell::target_dir().join(host).join(profile).join("fuzz");
        let list = shell::stdout_of(Command::new(&program).env("FUZZ_TARGET", "list"))?;
        let named = |kind: &str| {
            list.lines()
                .filter_map(|line| line.strip_prefix(kind))
                .map(|name| name.trim().to_owned())
                .collect()
        };
        Ok(Engine {
            program,
            targets: named("target "),
            canaries: named("canary "),
        })
    }

    /// Runs the jobs, `at_a_time` of them concurrently.
    fn run(&self, work: VecDeque<Job>, at_a_time: usize) -> Tally {
        let work = Mutex::new(work);
        let tally = Mutex::new(Tally::default());
        std::thread::scope(|scope| {
            for _ in 0..at_a_time {
                scope.spawn(|| {
                    loop {
                        let Some(job) = work.lock().pop_front() else {
                            return;
                        };
                        let result = worker::run(&self.program, &job)
                            .and_then(|outcome| check_outcome(&job, outcome));
                        tally.lock().check(&format!("fuzz {job}"), result);
                    }
                });
            }
        });
        tally.into_inner()
    }
}

/// Checks that an outcome is the one that the job expects.
fn check_outcome(job: &Job, outcome: Outcome) -> Result<()> {
    match (job.expect_failure, outcome) {
        (false, Outcome::Sound { summary }) => println!("fuzz {job}: {summary}"),
        (true, Outcome::Broken { .. }) => println!("fuzz {job}: the planted bug is found"),
        (true, Outcome::Sound { summary }) => bail!("the planted bug is not found: {summary}"),
        (false, Outcome::Broken { cause, input }) => {
            bail!("{cause}\n{}", describe(job, input.as_deref())?)
        }
    }
    Ok(())
}

/// Describes the input that broke a target, and the command that runs it again.
fn describe(job: &Job, input: Option<&Path>) -> Result<String> {
    const SHOWN_BYTES: usize = 400;
    let Some(input) = input else {
        return Ok("the input could not be saved".to_owned());
    };
    let bytes = fs::read(input).with_context(|| input.display().to_string())?;
    let rest = if bytes.len() > SHOWN_BYTES {
        " …"
    } else {
        ""
    };
    Ok(format!(
        "input of {} bytes: {}{rest}\nagain: cargo xtask fuzz {} --input {}",
        bytes.len(),
        bytes[..bytes.len().min(SHOWN_BYTES)].escape_ascii(),
        job.target,
        input.strip_prefix(shell::root()).unwrap_or(input).display(),
    ))
}

fn host_triple() -> Result<String> {
    let version = shell::output("rustc", ["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn seed_from_time() -> u32 {
    let time = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    (time.as_nanos() as u32).max(1)
}
