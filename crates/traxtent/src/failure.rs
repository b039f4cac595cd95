//! The reasons why a command ends early, with their exit statuses.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use traxtent_run::RunError;
use traxtent_units::system_message;

/// The reason why a command ends early: an exit status, and a message for the user, if any.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The request, or the content of a file, is invalid: status 2.
    Input(String),
    /// A file or device cannot be used: status 3.
    Io(String),
    /// The result is negative, or a problem was found: status 1.
    Finding(String),
    /// The run of a served drive is not trustworthy, or had no requests: status 4. One line for
    /// each such drive.
    NotTrustworthy(String),
    /// A signal has interrupted the work: the line to print, and the signal that then ends the
    /// process.
    Interrupted(String, i32),
    /// An exit status without a message, such as that of a command that was run for the user.
    Status(u8),
    /// The reader of the output has closed it: nothing is printed, status 0.
    Closed,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn input(what: impl fmt::Display) -> Failure {
        Failure::Input(what.to_string())
    }

    /// Returns an input error in `place`, such as a file, a line in a file, or an option.
    pub(crate) fn at(place: impl fmt::Display, what: impl fmt::Display) -> Failure {
        Failure::Input(format!("{place}: {what}"))
    }

    /// Returns the error for a file that cannot be used.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Failure {
        RunError::file(path, error).into()
    }

    /// Returns the error for a file that cannot be created.
    pub(crate) fn cannot_create(path: &Path, error: &io::Error) -> Failure {
        RunError::cannot_create(path, error).into()
    }

    /// Prints the error, and returns the exit status. If a signal has interrupted the work, the
    /// process ends by this signal, so that the shell that runs it stops too.
    pub(crate) fn report(&self) -> u8 {
        let lines = self.line().into_iter().flat_map(str::lines);
        lines.for_each(print_line);
        if let Failure::Interrupted(_, signal) = self {
            // This returns only if the signal does not end processes.
            let _ = signal_hook::low_level::emulate_default_handler(*signal);
        }
        match self {
            Failure::Closed => 0,
            Failure::Finding(_) => 1,
            Failure::Input(_) => 2,
            Failure::Io(_) => 3,
            Failure::NotTrustworthy(_) => 4,
            Failure::Interrupted(_, signal) => u8::try_from(128 + signal).unwrap_or(3),
            Failure::Status(status) => *status,
        }
    }

    /// Returns the line to print, or the lines, if any.
    pub(crate) fn line(&self) -> Option<&str> {
        match self {
            Failure::Finding(line)
            | Failure::Input(line)
            | Failure::Io(line)
            | Failure::NotTrustworthy(line)
            | Failure::Interrupted(line, _) => Some(line),
            Failure::Closed | Failure::Status(_) => None,
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Failure {
        match error {
            RunError::Input(line) => Failure::Input(line),
            RunError::Closed => Failure::Closed,
            other => Failure::Io(other.to_string()),
        }
    }
}

/// An I/O error without a path is one of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::Closed
        } else {
            Failure::Io(format!("standard output: {}", system_message(&error)))
        }
    }
}

/// Whether notes and warnings are omitted.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Sets whether notes and warnings are omitted from now on.
pub(crate) fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

/// Prints a note, unless notes are omitted.
pub(crate) fn note(what: impl fmt::Display) {
    aside("note", what);
}

/// Prints a warning, unless warnings are omitted.
pub(crate) fn warn(what: impl fmt::Display) {
    aside("warning", what);
}

fn aside(kind: &str, what: impl fmt::Display) {
    if !QUIET.load(Ordering::Relaxed) {
        print_line(&format!("{kind}: {what}"));
    }
}

/// Prints a line on standard error, even if notes and warnings are omitted.
pub(crate) fn print_line(line: &str) {
    // `eprintln!` would panic if the terminal is gone.
    use io::Write;
    let _ = writeln!(io::stderr(), "traxtent: {line}");
}

/// Reports the parts of a command's work that failed while others went on, with reasons. Returns an
/// error that begins with `what` and names them, if there are any.
pub(crate) fn left_out(what: &str, failures: &[(String, RunError)]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    for (_, error) in failures {
        print_line(&error.to_string());
    }
    let names: Vec<&str> = failures.iter().map(|(name, _)| name.as_str()).collect();
    let line = format!("{what}: {}", names.join("; "));
    let is_io = |(_, error): &(String, RunError)| matches!(error, RunError::Io(_));
    Err(if failures.iter().any(is_io) {
        Failure::Io(line)
    } else {
        Failure::Finding(line)
    })
}
