//! The `traxtent` command, run in the process of Python.

use std::ffi::OsString;
use std::io::Write as _;

use pyo3::prelude::*;

use crate::errors::guarded;

/// Runs the command, and returns its exit status. ``program`` has the words that start the command
/// again.
#[pyfunction]
pub(crate) fn run_command(
    py: Python<'_>,
    program: Vec<OsString>,
    arguments: Vec<OsString>,
) -> PyResult<u8> {
    guarded(|| {
        Ok(py.detach(|| {
            let status = run(program, arguments);
            // At its end, a program in Rust does this by itself; Python does not.
            let _ = std::io::stdout().flush();
            status
        }))
    })
}

#[cfg(feature = "command")]
fn run(program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    traxtent::run(traxtent::Invocation { program, arguments })
}

#[cfg(not(feature = "command"))]
fn run(_: Vec<OsString>, _: Vec<OsString>) -> u8 {
    eprintln!("traxtent: this build of the package lacks the command");
    2
}
