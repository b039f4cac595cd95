//! Shared test support for several crates: skipping with a reason, reference data, tools, soak
//! runs, guests, and mounted file systems.
//!
//! A test that cannot run reports it with [`skip!`] and returns; `cargo xtask test` counts it as
//! skipped and prints the reason.

pub mod guest;
pub mod mount;

use std::env;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Ends the test, which then counts as skipped for the given reason.
///
/// The reason is formatted as by `format!`. `cargo xtask test` parses the printed line.
#[macro_export]
macro_rules! skip {
    ($($reason:tt)+) => {{
        eprintln!("skipped: {}", format_args!($($reason)+));
        return;
    }};
}

/// Returns the path of a reference file or directory, or skips the test.
#[macro_export]
macro_rules! shared_data {
    ($relative:expr) => {
        match $crate::shared_data($relative) {
            Some(path) => path,
            None => $crate::skip!("reference data {} is not available", $relative),
        }
    };
}

/// Returns the path of an installed program, or skips the test.
#[macro_export]
macro_rules! tool {
    ($name:expr) => {
        match $crate::tool($name) {
            Some(path) => path,
            None => $crate::skip!("{} is not installed", $name),
        }
    };
}

/// Returns the root of the workspace.
pub fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// Returns the path of reference data: `relative` in the subdirectory `data` of the directory that
/// `TRAXTENT_SHARED` names, by default `shared` next to the workspace. Returns `None` if it is
/// absent.
pub fn shared_data(relative: &str) -> Option<PathBuf> {
    let shared =
        env::var_os("TRAXTENT_SHARED").map_or_else(|| workspace().join("../shared"), PathBuf::from);
    Some(shared.join("data").join(relative)).filter(|path| path.exists())
}

/// Returns the path of the program `name`, if it is installed. Searches `/usr/sbin` and `/sbin`
/// too.
pub fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// Returns the number of repetitions of a test: `usually`, times the factor in `TRAXTENT_SOAK` if
/// that is set.
///
/// # Panics
/// Panics if `TRAXTENT_SOAK` is set to something other than a whole number.
pub fn repeats(usually: u64) -> u64 {
    let factor = env::var("TRAXTENT_SOAK").map_or(1, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("TRAXTENT_SOAK is {text:?}; it must be a whole number"))
    });
    usually.saturating_mul(factor)
}

/// The progress of a test that takes a long time in a soak run: at most one line every ten seconds,
/// which bypasses the capture of test output.
#[derive(Debug)]
pub struct SoakProgress {
    what: &'static str,
    of: u64,
    began: Instant,
    reported: Mutex<Instant>,
}

impl SoakProgress {
    /// Starts to report the progress of a test that performs `of` steps; `what` names the steps.
    pub fn new(what: &'static str, of: u64) -> SoakProgress {
        let now = Instant::now();
        SoakProgress {
            what,
            of,
            began: now,
            reported: Mutex::new(now),
        }
    }

    /// In a soak run, prints that `done` steps are complete, at most once every ten seconds.
    pub fn at(&self, done: u64) {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        if reported.elapsed() >= Duration::from_secs(10) && env::var_os("TRAXTENT_SOAK").is_some() {
            *reported = Instant::now();
            let seconds = self.began.elapsed().as_secs_f64();
            let rate = done as f64 / seconds;
            let left = self.of.saturating_sub(done) as f64 / rate.max(1e-9);
            let (what, of) = (self.what, self.of);
            // A failure to print is harmless.
            let _ = writeln!(
                io::stderr(),
                "{done} of {of} {what}, {rate:.0} per second, about {left:.0} s left"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are tools found by name, and is a missing one `None`?
    #[test]
    fn tools_are_found() {
        assert!(tool("sh").is_some());
        assert_eq!(tool("no-such-program-anywhere"), None);
    }

    /// Is the path of absent reference data `None`?
    #[test]
    fn absent_data_is_none() {
        assert_eq!(shared_data("no/such/file"), None);
    }
}
