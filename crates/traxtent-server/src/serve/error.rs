//! The errors of opening a drive for serving.

use std::io;
use std::path::{Path, PathBuf};

use traxtent_model::disk::{DiskError, ScenarioError};
use traxtent_model::profile::ProfileError;

use crate::control::ControlError;
use crate::service::FileRole;
use traxtent_io::device::guard::Refusal;

/// The reason why a drive cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An invalid profile.
    #[error("{}: {error}", path.display())]
    Profile {
        /// The profile's file, or the name of a built-in drive.
        path: PathBuf,
        /// The problem with the profile.
        error: ProfileError,
    },
    /// A data file that does not exist, and is not created because the drive is read-only.
    #[error("data file {}: it does not exist, and a read-only drive does not create it", .0.display())]
    Missing(PathBuf),
    /// A data file that is too small for the drive.
    #[error("data file {}: {bytes} bytes are too few; the drive needs {needed}", path.display())]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: u64,
        /// The size of the drive in bytes.
        needed: u64,
    },
    /// A data file that is in use or is not suitable.
    #[error("data file {0}")]
    Guarded(Refusal),
    /// An output path that is not suitable.
    #[error("{role} {refusal}")]
    Output {
        /// The purpose of the output.
        role: FileRole,
        /// The reason.
        refusal: Refusal,
    },
    /// A data file that its file system cannot store, because the drive is too large.
    #[error(
        "data file {}: the drive needs {needed} bytes, but files on this file system have at most {longest}; \
         use another file system, such as XFS, or a block device",
        path.display()
    )]
    FileTooLarge {
        /// The path.
        path: PathBuf,
        /// The size of the drive in bytes.
        needed: u64,
        /// The maximum size of a file in bytes.
        longest: u64,
    },
    /// A file that cannot be used.
    #[error("{role} {}: cannot {what} it: {error}", path.display())]
    File {
        /// The file's purpose.
        role: FileRole,
        /// The path.
        path: PathBuf,
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A control socket that cannot be created.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// An invalid scenario.
    #[error("scenario {}: {error}", path.display())]
    Scenario {
        /// The scenario's file.
        path: PathBuf,
        /// The problem with the scenario.
        error: ScenarioError,
    },
    /// A scenario that does not fit the drive.
    #[error("scenario {}: {error}", path.display())]
    ScenarioMismatch {
        /// The scenario's file.
        path: PathBuf,
        /// The problem with the scenario.
        error: DiskError,
    },
}

impl ServeError {
    pub(super) fn file(
        role: FileRole,
        path: &Path,
        what: &'static str,
        error: io::Error,
    ) -> ServeError {
        let path = path.to_owned();
        ServeError::File {
            role,
            path,
            what,
            error,
        }
    }
}
