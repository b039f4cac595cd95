//! The errors of this crate.

use std::io;
use std::path::PathBuf;

use traxtent_check::target::TargetError;
use traxtent_layout::LayoutError;
use traxtent_units::system_message;

/// The reason why a file cannot be located, created, moved or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The system refused an operation on a file.
    #[error("{}: cannot {what}: {}", path.display(), system_message(error))]
    System {
        /// The path of the file.
        path: PathBuf,
        /// The operation, worded to follow "cannot". "It" in these words is the file.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The file, or its file system, does not permit the operation.
    #[error("{}: {why}", path.display())]
    Unsuitable {
        /// The path of the file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The devices below the file system cannot be examined.
    #[error(transparent)]
    Device(#[from] TargetError),
    /// The track map does not cover the file system, or the blocks are not whole sectors.
    #[error("the track map: {0}")]
    Map(#[from] LayoutError),
}
