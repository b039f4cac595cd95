//! Why a command ends early, and with which exit status.

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// An error on its way to the user: one line and an exit status.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What was asked for, or what a file says, makes no sense: status 2.
    Input(String),
    /// A file or device cannot be used: status 3.
    Io(String),
    /// The answer is no, or something was found: status 1.
    Finding(String),
    /// A command that was run for the user has ended so: nothing to say, its status.
    Status(u8),
    /// Whoever reads the output has seen enough: nothing to say, status 0.
    Closed,
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

impl Failure {
    pub(crate) fn input(what: impl fmt::Display) -> Failure {
        Failure::Input(what.to_string())
    }

    /// Something in `place`: a file, or a line of it.
    pub(crate) fn at(place: impl fmt::Display, what: impl fmt::Display) -> Failure {
        Failure::Input(format!("{place}: {what}"))
    }

    /// A file that cannot be used.
    pub(crate) fn file(path: &Path, error: &io::Error) -> Failure {
        Failure::Io(format!("{}: {}", path.display(), reason(error)))
    }

    /// A file that cannot be made.
    pub(crate) fn unmade(path: &Path, error: &io::Error) -> Failure {
        match path.parent() {
            Some(folder) if error.kind() == io::ErrorKind::NotFound => Failure::Io(format!(
                "{}: cannot be made: there is no folder {}",
                path.display(),
                folder.display()
            )),
            _ => Failure::file(path, error),
        }
    }

    /// Reports it, and gives the exit status.
    pub(crate) fn report(&self) -> ExitCode {
        self.line().into_iter().for_each(complain);
        ExitCode::from(match self {
            Failure::Closed => 0,
            Failure::Finding(_) => 1,
            Failure::Input(_) => 2,
            Failure::Io(_) => 3,
            Failure::Status(status) => *status,
        })
    }

    /// What there is to say.
    pub(crate) fn line(&self) -> Option<&str> {
        match self {
            Failure::Finding(line) | Failure::Input(line) | Failure::Io(line) => Some(line),
            Failure::Closed | Failure::Status(_) => None,
        }
    }
}

/// Writing to standard output has no file to name.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Failure::Closed
        } else {
            Failure::Io(format!("standard output: {}", reason(&error)))
        }
    }
}

/// Tells the user something that does not end the command.
pub(crate) fn note(what: impl fmt::Display) {
    complain(&format!("note: {what}"));
}

/// Tells the user something doubtful that does not end the command.
pub(crate) fn warn(what: impl fmt::Display) {
    complain(&format!("warning: {what}"));
}

fn complain(line: &str) {
    // A terminal that is gone must not end the command in a panic, so no `eprintln!`.
    use io::Write;
    let _ = writeln!(io::stderr(), "traxtent: {line}");
}

/// The system's words without its number.
fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
