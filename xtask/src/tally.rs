//! Counts of passed, failed and skipped checks.

use std::fmt;
use std::process::ExitCode;

/// The results so far. Failures and skips are kept with their names and reasons.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failures: Vec<String>,
    pub(crate) skips: Vec<String>,
}

impl Tally {
    /// Counts one check, and reports a failure immediately.
    pub(crate) fn check(&mut self, name: &str, result: anyhow::Result<()>) {
        match result {
            Ok(()) => self.passed += 1,
            Err(error) => {
                eprintln!("FAILED {name}: {error:#}");
                self.failures.push(name.to_owned());
            }
        }
    }

    /// Counts one check that could not be performed.
    pub(crate) fn skip(&mut self, name: &str, reason: impl fmt::Display) {
        self.skips.push(format!("{name}: {reason}"));
    }

    /// Adds the results of a part.
    pub(crate) fn add(&mut self, part: Tally) {
        self.passed += part.passed;
        self.failures.extend(part.failures);
        self.skips.extend(part.skips);
    }

    /// Prints every skip and failure, then the counts as the last line. Returns a failure if a
    /// check has failed.
    pub(crate) fn report(&self) -> ExitCode {
        println!();
        self.skips
            .iter()
            .for_each(|skip| println!("skipped {skip}"));
        self.failures
            .iter()
            .for_each(|failure| println!("FAILED {failure}"));
        println!("{self}");
        if self.failures.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failures.len(),
            self.skips.len()
        )
    }
}
