//! The reasons why a run ends early.

use std::fmt;
use std::io;
use std::path::Path;

use traxtent_units::system_message;

/// An error of a run, with one line for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The user's input, or the content of a file, is invalid. The command exits with status 2.
    #[error("{0}")]
    Input(String),
    /// A file cannot be used. The command exits with status 3.
    #[error("{0}")]
    Io(String),
    /// The reader of the output has closed it. This is not a fault: the command exits with status
    /// 0.
    #[error("the reader of the output has closed it")]
    Closed,
    /// [`Observer::stop`](crate::Observer::stop) has stopped the run.
    #[error("the run was stopped")]
    Stopped,
}

/// A result with a [`RunError`], unless another error is given.
pub type Result<T, E = RunError> = std::result::Result<T, E>;

impl RunError {
    /// Returns an input error.
    pub fn input(what: impl fmt::Display) -> RunError {
        RunError::Input(what.to_string())
    }

    /// Returns an input error in `place`, such as a file, a line of a file, or an argument.
    pub fn at(place: impl fmt::Display, what: impl fmt::Display) -> RunError {
        RunError::Input(format!("{place}: {what}"))
    }

    /// Prefixes an input error with a place.
    #[must_use]
    pub fn within(self, place: impl fmt::Display) -> RunError {
        match self {
            RunError::Input(line) => RunError::at(place, line),
            other => other,
        }
    }

    /// Returns the error for a file that cannot be used.
    pub fn file(path: &Path, error: &io::Error) -> RunError {
        RunError::Io(format!("{}: {}", path.display(), system_message(error)))
    }

    /// Returns the error for a file that cannot be created.
    pub fn cannot_create(path: &Path, error: &io::Error) -> RunError {
        match path.parent() {
            Some(folder) if error.kind() == io::ErrorKind::NotFound => {
                // Directories such as /proc refuse a new file with the same error.
                let why = if folder == Path::new("") || folder.exists() {
                    "its directory does not accept new files".to_owned()
                } else {
                    format!("there is no directory {}", folder.display())
                };
                RunError::Io(format!("{}: cannot be created: {why}", path.display()))
            }
            _ => RunError::file(path, error),
        }
    }

    /// Returns the error for a file to which the results cannot be written: [`RunError::Closed`]
    /// for a pipe whose reader is gone.
    pub fn output(path: &Path, error: &io::Error) -> RunError {
        match error.kind() {
            io::ErrorKind::BrokenPipe => RunError::Closed,
            _ => RunError::file(path, error),
        }
    }
}
