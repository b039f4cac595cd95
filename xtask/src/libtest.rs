//! Runs tests, and parses the output of `cargo test -- --show-output`.
//!
//! A test that printed `skipped: REASON` has passed according to the test runner; here it counts as
//! skipped. Ignored tests count as skipped too.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use crate::tally::Tally;

/// Whether a line is shown to the developer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    Yes,
    No,
}

/// When the lines that are shown are printed: at once, or by the caller at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    AtOnce,
    AtEnd,
}

/// Runs a test command and counts its tests. Shows cargo's messages, failed and ignored tests, and
/// one line per test binary.
pub(crate) fn cargo_test(command: Command) -> Result<Tally> {
    run_tests(command, "cargo test", Shown::AtOnce).0
}

/// Runs a test command of the given name, like [`cargo_test`]. With [`Shown::AtEnd`], the lines are
/// returned instead of printed.
pub(crate) fn run_tests(
    mut command: Command,
    name: &str,
    shown: Shown,
) -> (Result<Tally>, Vec<String>) {
    let mut kept = Vec::new();
    let mut run = || {
        // One pipe for both streams, so that each result stays below the name of its binary.
        let (lines, both) = std::io::pipe()?;
        command.stdin(Stdio::null()).stdout(both.try_clone()?);
        let mut child = command.stderr(both).spawn().context(name.to_owned())?;
        // The command holds our write ends of the pipe; reading ends only once they are closed.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut reader = Reader::default();
        for line in BufReader::new(lines).split(b'\n') {
            let line = line?;
            let line = String::from_utf8_lossy(&line);
            match (reader.line(&line), shown) {
                (Show::No, _) => {}
                (Show::Yes, Shown::AtOnce) => println!("{line}"),
                (Show::Yes, Shown::AtEnd) => kept.push(line.into_owned()),
            }
        }
        let mut tally = reader.finish();
        if !child.wait()?.success() && tally.failures.is_empty() {
            tally
                .failures
                .push(format!("{name}, before or outside the tests"));
        }
        Ok(tally)
    };
    let result = run();
    (result, kept)
}

/// The state of the parser: feed it the lines in order, then take the tally.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    tally: Tally,
    section: Section,
    /// Whether the binary under test has announced its tests and not yet printed their result.
    running: bool,
}

#[derive(Debug, Default)]
enum Section {
    #[default]
    /// One line per test.
    Results,
    /// The output of passed tests: the name of the current one, and whether it has been counted as
    /// skipped.
    Success { test: String, skipped: bool },
    /// The output of failed tests.
    Failures,
}

impl Reader {
    /// Processes one line of output, and returns whether it is shown.
    pub(crate) fn line(&mut self, line: &str) -> Show {
        if line.starts_with("running ") {
            self.end_binary();
            self.running = true;
            return Show::No;
        } else if line.starts_with("test result: ") {
            self.running = false;
            self.section = Section::Results;
            let empty = line.contains(" ok. 0 passed; 0 failed; 0 ignored");
            return if empty { Show::No } else { Show::Yes };
        } else if let Some(binary) = line.strip_prefix("error: test failed, to rerun pass ") {
            if std::mem::take(&mut self.running) {
                self.tally
                    .failures
                    .push(format!("{binary} ended before its tests did"));
            }
        } else if line == "successes:" {
            self.section = Section::Success {
                test: String::new(),
                skipped: false,
            };
            return Show::No;
        } else if line == "failures:" {
            self.section = Section::Failures;
        } else {
            return self.within_section(line);
        }
        Show::Yes
    }

    /// Returns the counts after the last line.
    pub(crate) fn finish(mut self) -> Tally {
        self.end_binary();
        self.tally
    }

    fn end_binary(&mut self) {
        self.section = Section::Results;
        if std::mem::take(&mut self.running) {
            self.tally
                .failures
                .push("a test binary ended before its tests did".to_owned());
        }
    }

    fn within_section(&mut self, line: &str) -> Show {
        match &mut self.section {
            Section::Results => self.result(line),
            Section::Failures => Show::Yes,
            Section::Success { test, skipped } => {
                if let Some(name) = line
                    .strip_prefix("---- ")
                    .and_then(|rest| rest.strip_suffix(" stdout ----"))
                {
                    (*test, *skipped) = (name.to_owned(), false);
                } else if let Some(reason) = line.strip_prefix("skipped: ") {
                    if !std::mem::replace(skipped, true) {
                        self.tally.passed -= 1;
                        self.tally.skip(test, reason);
                    } else if let Some(skip) = self.tally.skips.last_mut() {
                        skip.push_str("; ");
                        skip.push_str(reason);
                    }
                }
                Show::No
            }
        }
    }

    fn result(&mut self, line: &str) -> Show {
        let Some((name, outcome)) = line
            .strip_prefix("test ")
            .and_then(|rest| rest.split_once(" ... "))
        else {
            return if line.is_empty() { Show::No } else { Show::Yes };
        };
        // A test that should panic is listed as "NAME - should panic".
        let name = name.split(" - should panic").next().unwrap_or(name);
        if outcome.starts_with("ok") {
            self.tally.passed += 1;
            return Show::No;
        } else if outcome.starts_with("FAILED") {
            self.tally.failures.push(name.to_owned());
        } else if let Some(reason) = outcome.strip_prefix("ignored") {
            let reason = reason.trim_start_matches([',', ' ']);
            self.tally
                .skip(name, if reason.is_empty() { "ignored" } else { reason });
        }
        Show::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Tally {
        let mut reader = Reader::default();
        text.lines().for_each(|line| {
            reader.line(line);
        });
        reader.finish()
    }

    /// Are passes, failures, ignored tests and tests that skipped themselves distinguished?
    #[test]
    fn outcomes_are_distinguished() {
        let tally = read(
            "running 5 tests\n\
             test a::one ... ok\n\
             test a::two ... ok\n\
             test three - should panic ... ok\n\
             test four ... FAILED\n\
             test five ... ignored, takes an hour\n\
             \n\
             successes:\n\
             \n\
             ---- a::two stdout ----\n\
             skipped: fio is not installed\n\
             skipped: zstd is not installed\n\
             \n\
             \n\
             successes:\n    a::one\n    a::two\n    three\n\
             \n\
             failures:\n\
             \n\
             ---- four stdout ----\n\
             skipped: not really\n\
             \n\
             failures:\n    four\n\
             \n\
             test result: FAILED. 3 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        );
        assert_eq!(tally.passed, 2);
        assert_eq!(tally.failures, ["four"]);
        assert_eq!(
            tally.skips,
            [
                "five: takes an hour",
                "a::two: fio is not installed; zstd is not installed"
            ]
        );
        assert_eq!(tally.to_string(), "2 passed, 1 failed, 2 skipped");
    }

    /// Does a binary that crashed, and therefore printed no result, count as a failure?
    #[test]
    fn crashed_binaries_fail() {
        let good = "running 1 test\ntest one ... ok\n\ntest result: ok. 1 passed\n";
        let crashed = "running 2 tests\ntest two ... ok\n";
        assert_eq!(read(good).to_string(), "1 passed, 0 failed, 0 skipped");
        assert_eq!(
            read(&format!("{crashed}{good}")).to_string(),
            "2 passed, 1 failed, 0 skipped"
        );
        assert_eq!(
            read(&format!("{good}{crashed}")).to_string(),
            "2 passed, 1 failed, 0 skipped"
        );
    }

    /// Is a crashed binary reported under the name that cargo prints?
    #[test]
    fn crashed_binaries_are_named() {
        let tally = read(
            "running 1 test\nerror: test failed, to rerun pass `-p a --test b`\nrunning 0 tests\ntest result: ok.\n",
        );
        assert_eq!(
            tally.failures,
            ["`-p a --test b` ended before its tests did"]
        );
    }

    /// Is the output of passed tests hidden from the developer, and that of failures shown?
    #[test]
    fn failures_are_shown() {
        let mut reader = Reader::default();
        assert_eq!(reader.line("test one ... ok"), Show::No);
        assert_eq!(reader.line("test two ... FAILED"), Show::Yes);
        assert_eq!(reader.line("successes:"), Show::No);
        assert_eq!(reader.line("chatter"), Show::No);
        assert_eq!(reader.line("failures:"), Show::Yes);
        assert_eq!(reader.line("why it failed"), Show::Yes);
    }
}
