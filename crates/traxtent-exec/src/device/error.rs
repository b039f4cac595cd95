//! Why a device cannot be used.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use traxtent_core::probe::TargetError;

use super::guard::Refusal;

/// Why a device cannot be opened as a probe's target.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is none.
    #[error("{}: there is no such device or file", path.display())]
    Missing {
        /// Where.
        path: PathBuf,
    },
    /// It may not be read.
    #[error(
        "{}: no permission to {what} it; disks are root's, or the group disk's",
        path.display()
    )]
    NoPermission {
        /// Which.
        path: PathBuf,
        /// What is not allowed.
        what: &'static str,
    },
    /// It is something else.
    #[error("{}: {kind}, no block device or image file", path.display())]
    NoDisk {
        /// Which.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// It takes no SCSI commands.
    #[error("{}: it takes no SCSI commands", path.display())]
    NoScsi {
        /// Which.
        path: PathBuf,
    },
    /// Another program holds it for itself alone.
    #[error("{}: another program holds it", path.display())]
    Busy {
        /// Which.
        path: PathBuf,
    },
    /// It must not be written to.
    #[error(transparent)]
    Guarded(#[from] Refusal),
    /// It is empty, or shorter than one sector.
    #[error("{}: it has {bytes} bytes, less than a sector", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
        /// How many.
        bytes: u64,
    },
    /// The drive behind it does not say what a probe must know.
    #[error("{}: {problem}", path.display())]
    Drive {
        /// Which.
        path: PathBuf,
        /// What it answers.
        problem: TargetError,
    },
    /// The kernel refuses.
    #[error("{}: cannot {what} it: {source}", path.display())]
    System {
        /// Which.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the kernel says.
        source: Errno,
    },
}

impl DeviceError {
    pub(super) fn new(path: &Path, what: &'static str, source: Errno) -> DeviceError {
        let path = path.to_owned();
        match source {
            Errno::NOENT | Errno::NXIO | Errno::NODEV | Errno::NOMEDIUM => {
                DeviceError::Missing { path }
            }
            Errno::ACCESS | Errno::PERM => DeviceError::NoPermission { path, what },
            Errno::BUSY => DeviceError::Busy { path },
            source => DeviceError::System { path, what, source },
        }
    }
}
