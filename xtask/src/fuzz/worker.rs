//! One process of the engine: its command line, its progress and its outcome.

use std::fmt;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::shell;

/// The time-out: a target breaks on an input that takes longer. It is far above the time that any
/// input needs, because the machine may be busy.
const TIMEOUT_SECONDS: u32 = 10;
/// The time-out of a canary. One of them hangs, so its run takes this long.
const CANARY_TIMEOUT_SECONDS: u32 = 1;
const PROGRESS_EVERY: Duration = Duration::from_secs(10);

/// A search of one target by one process.
pub(super) struct Job {
    pub(super) target: String,
    /// Distinguishes the processes that share a target.
    pub(super) share: u32,
    pub(super) seed: u32,
    pub(super) runs: u64,
    pub(super) seconds_max: Option<u32>,
    /// Whether the search also starts from the inputs that earlier searches found.
    pub(super) resume: bool,
    /// Whether the target has a planted bug, which the search must find.
    pub(super) expect_failure: bool,
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (seed {})", self.target, self.seed)
    }
}

/// The outcome of a search.
pub(super) enum Outcome {
    /// No input broke the target.
    Sound { summary: String },
    /// An input broke the target, or the engine failed. `input` is `None` if no input was saved.
    Broken {
        cause: String,
        input: Option<PathBuf>,
    },
}

/// Runs a job to its end, and prints its progress at most every [`PROGRESS_EVERY`].
pub(super) fn run(program: &Path, job: &Job) -> Result<Outcome> {
    let folders = Folders::make(job)?;
    let mut child = command(program, job, &folders)
        .spawn()
        .context("cannot start the engine")?;
    let mut log = Log::default();
    let started = Instant::now();
    let mut shown = started;
    for line in BufReader::new(child.stderr.take().expect("stderr is piped")).split(b'\n') {
        log.line(&String::from_utf8_lossy(&line?));
        if shown.elapsed() >= PROGRESS_EVERY {
            println!("fuzz {job}: {} of {}", log.status, job.runs);
            shown = Instant::now();
        }
    }
    let status = child.wait()?;
    if status.success() {
        let seconds = started.elapsed().as_secs_f64();
        let summary = format!("{} in {seconds:.1} s", log.status);
        return Ok(Outcome::Sound { summary });
    }
    let cause = if log.cause.is_empty() {
        format!("the engine ended with {status}")
    } else {
        log.cause.join("\n")
    };
    Ok(Outcome::Broken {
        cause,
        input: log.saved,
    })
}

/// Runs a target on one input, and shows all output.
pub(super) fn replay(program: &Path, target: &str, input: &Path) -> Result<ExitCode> {
    let mut command = Command::new(program);
    command
        .arg(input)
        .env("FUZZ_TARGET", target)
        .env("RUST_BACKTRACE", "1");
    command.arg(format!("-timeout={TIMEOUT_SECONDS}"));
    let sound = command.status()?.success();
    println!(
        "the target {} this input",
        if sound { "handles" } else { "breaks on" }
    );
    Ok(if sound {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

struct Folders {
    /// The inputs made by hand, which are part of the project.
    by_hand: PathBuf,
    dictionary: PathBuf,
    /// The inputs that this process finds.
    found: PathBuf,
    /// The path prefix for inputs that break the target.
    broken: PathBuf,
}

impl Folders {
    fn make(job: &Job) -> Result<Folders> {
        let corpus = shell::root().join("fuzz/corpus");
        let ours = shell::target_dir().join("fuzz-runs").join(&job.target);
        let found = ours.join(format!("found-{}", job.share));
        if !job.resume && found.exists() {
            fs::remove_dir_all(&found)?;
        }
        fs::create_dir_all(&found)?;
        let dictionary = corpus.join(format!("{}.dict", job.target));
        Ok(Folders {
            by_hand: corpus.join(&job.target),
            dictionary,
            found,
            broken: ours.join("broken-"),
        })
    }
}

fn command(program: &Path, job: &Job, folders: &Folders) -> Command {
    let mut engine = Command::new(program);
    engine
        .env("FUZZ_TARGET", &job.target)
        .env("RUST_BACKTRACE", "0");
    engine
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let timeout = if job.expect_failure {
        CANARY_TIMEOUT_SECONDS
    } else {
        TIMEOUT_SECONDS
    };
    engine
        .arg(format!("-seed={}", job.seed))
        .arg(format!("-runs={}", job.runs))
        .arg(format!("-timeout={timeout}"));
    engine.arg(format!("-artifact_prefix={}", folders.broken.display()));
    // Inputs that other processes find would make the search depend on their speed.
    engine.arg("-reload=0").arg("-print_final_stats=1");
    if let Some(seconds) = job.seconds_max {
        engine.arg(format!("-max_total_time={seconds}"));
    }
    if folders.dictionary.exists() {
        engine.arg(format!("-dict={}", folders.dictionary.display()));
    }
    engine.arg(&folders.found);
    if folders.by_hand.exists() {
        engine.arg(&folders.by_hand);
    }
    engine
}

/// The relevant parts of libFuzzer's output.
#[derive(Default)]
struct Log {
    /// The numbers of runs, of edges seen and of inputs kept, as text.
    status: String,
    /// The lines of the panic, then libFuzzer's verdict.
    cause: Vec<String>,
    saved: Option<PathBuf>,
    /// Whether the verdict has been read; the lines after it repeat the input.
    judged: bool,
}

impl Log {
    fn line(&mut self, line: &str) {
        const CAUSE_LINES: usize = 20;
        if let Some(progress) = line.strip_prefix('#')
            && progress.starts_with(|first: char| first.is_ascii_digit())
        {
            self.progress(progress);
        } else if let Some((_, path)) = line.split_once("Test unit written to ") {
            self.saved = Some(path.into());
        } else if let Some((_, verdict)) = line.split_once("SUMMARY: libFuzzer: ") {
            self.cause.push(verdict.to_owned());
            self.judged = true;
        } else if !self.judged && self.cause.len() < CAUSE_LINES && is_cause(line) {
            self.cause.push(line.to_owned());
        }
    }

    /// Parses lines such as `#65536 pulse cov: 40 ft: 132 corp: 65/1402b lim: 652 exec/s: 32768 …`.
    fn progress(&mut self, line: &str) {
        let runs = line.split_whitespace().next().unwrap_or("0");
        let after = |key: &str| {
            let value = line
                .split_whitespace()
                .skip_while(|word| *word != key)
                .nth(1);
            value.unwrap_or("0").split('/').next().unwrap_or("0")
        };
        self.status = format!(
            "{runs} runs, {} edges, {} inputs kept",
            after("cov:"),
            after("corp:")
        );
    }
}

/// Returns whether a line states a cause: a line of a panic, or the message of the allocator at its
/// limit. All other lines begin in known ways.
fn is_cause(line: &str) -> bool {
    const OTHERS: &[&str] = &[
        "INFO:",
        "WARNING:",
        "NOTE:",
        "==",
        "MS:",
        "0x",
        "artifact_prefix",
        "Base64:",
        "Done ",
        "stat::",
        "ALARM:",
        "      ",
        "\"",
        "note:",
        "This may also",
    ];
    !line.trim().is_empty() && !OTHERS.iter().any(|prefix| line.starts_with(prefix))
}
