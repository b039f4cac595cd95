//! The reasons why a run ends early.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

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
    Io(FileProblem),
    /// The reader of the output has closed it. This is not a fault: the command exits with status
    /// 0.
    #[error("the reader of the output has closed it")]
    Closed,
    /// [`Observer::stop`](crate::Observer::stop) has stopped the run.
    #[error("the run was stopped")]
    Stopped,
}

/// The reason why a file cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}")]
pub struct FileProblem {
    /// One line for the user, with the path.
    pub line: String,
    /// The file, if known.
    pub path: Option<PathBuf>,
    /// The operating system's error number, if the system has reported the problem.
    pub errno: Option<i32>,
}

impl FileProblem {
    /// Returns the problem of a file, with the number of the system's error if there is one.
    pub fn new(line: String, path: &Path, error: Option<&io::Error>) -> FileProblem {
        FileProblem {
            line,
            path: Some(path.to_owned()),
            errno: error.and_then(errno),
        }
    }
}

/// Returns the number of the system's error. `tempfile` adds its path to an error, which then has
/// the number only in its text.
fn errno(error: &io::Error) -> Option<i32> {
    let in_text = || {
        let text = error.to_string();
        let (_, after) = text.split_once(" (os error ")?;
        after.split_once(')')?.0.parse().ok()
    };
    error.raw_os_error().or_else(in_text)
}

/// A problem that the operating system has not reported.
impl From<String> for FileProblem {
    fn from(line: String) -> FileProblem {
        FileProblem {
            line,
            path: None,
            errno: None,
        }
    }
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
        let line = format!("{}: {}", path.display(), system_message(error));
        RunError::Io(FileProblem::new(line, path, Some(error)))
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
                let line = format!("{}: cannot be created: {why}", path.display());
                RunError::Io(FileProblem::new(line, path, Some(error)))
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

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::Path;

    use super::RunError;

    /// Is the number of the system's error kept, also if `tempfile` has added a path? Is there none
    /// if the system has reported no error?
    #[test]
    fn numbers_of_errors() {
        let errno = |error: &io::Error| match RunError::file(Path::new("a"), error) {
            RunError::Io(problem) => problem.errno,
            other => panic!("{other:?}"),
        };
        let plain = std::fs::read("/no/such/file").unwrap_err();
        let wrapped = tempfile::NamedTempFile::new_in("/no/such/directory").unwrap_err();
        for error in [&plain, &wrapped] {
            assert_eq!(errno(error), Some(2), "{error:?}");
        }
        assert_eq!(errno(&io::Error::other("no number")), None);
    }
}
