//! The errors of devices.

use std::path::{Path, PathBuf};

use rustix::io::Errno;
use traxtent_probe::TargetError;

use super::guard::Refusal;

/// The reason why a device cannot be opened as a probe's target, or written to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The path does not exist, or its device or medium is absent.
    #[error("{}: no such device or file", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
    },
    /// Access is denied.
    #[error(
        "{}: no permission to {what} it; run as root or, for a device, join the group `disk`",
        path.display()
    )]
    NoPermission {
        /// The path.
        path: PathBuf,
        /// The action that is not permitted.
        what: &'static str,
    },
    /// The path names neither a block device nor a file.
    #[error("{}: is {kind}; expected a block device or image file", path.display())]
    NoDisk {
        /// The path.
        path: PathBuf,
        /// The kind of file.
        kind: &'static str,
    },
    /// The device does not accept SCSI commands.
    #[error("{}: the device does not accept SCSI commands", path.display())]
    NoScsi {
        /// The path.
        path: PathBuf,
    },
    /// Another program holds the device exclusively.
    #[error("{}: another program holds the device", path.display())]
    Busy {
        /// The path.
        path: PathBuf,
    },
    /// The path must not be written to, or cannot be opened for writing.
    #[error(transparent)]
    Guarded(#[from] Refusal),
    /// The device is empty, or shorter than one sector.
    #[error("{}: {bytes} bytes are less than one sector", path.display())]
    Empty {
        /// The path.
        path: PathBuf,
        /// The size in bytes.
        bytes: u64,
    },
    /// The drive cannot be used as requested.
    #[error("{}: {problem}", path.display())]
    Drive {
        /// The path.
        path: PathBuf,
        /// The problem.
        problem: TargetError,
    },
    /// The kernel refused an operation.
    #[error("{}: cannot {what} it: {source}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// The operation.
        what: &'static str,
        /// The kernel's error.
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
            // Root receives EPERM too, so it is reported as the system's own error.
            Errno::ACCESS => DeviceError::NoPermission { path, what },
            Errno::BUSY => DeviceError::Busy { path },
            source => DeviceError::System { path, what, source },
        }
    }
}
