//! The errors of serving a drive and of its requests.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use traxtent_model::disk::{DiskError, FaultError, MediaError, ScenarioError};
use traxtent_model::profile::ProfileError;
use traxtent_volume::VolumeError;
use traxtent_volume::copies::CopiesError;

use super::keys::Key;
use crate::copies::ReplicaVolumeIoError;
use crate::volume::{RATE_MIN, VolumeIoError};
use traxtent_io::device::guard::Refusal;
use traxtent_sim::port::Refused;

/// The reason why a drive cannot be served, or why one of its requests failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An unknown key.
    #[error("unknown key {key:?}; the keys are {}", Key::names())]
    UnknownKey {
        /// The key as given.
        key: String,
    },
    /// A key that is given twice.
    #[error("{key}= is given twice")]
    Twice {
        /// The key.
        key: Key,
    },
    /// A required key is missing.
    #[error("{key}= is missing: {}", key.help())]
    Missing {
        /// The key.
        key: Key,
    },
    /// A value that is invalid for its key.
    #[error("{key}={value}: {problem}")]
    Value {
        /// The key.
        key: Key,
        /// The value as given.
        value: String,
        /// The expected values.
        problem: String,
    },
    /// An invalid profile.
    #[error("drive={}: {error}", path.display())]
    Profile {
        /// The profile's file.
        path: PathBuf,
        /// The problem with the profile.
        error: ProfileError,
    },
    /// A data file that is too small for the drive.
    #[error("file={}: {bytes} bytes are too few; the drive needs {needed}", path.display())]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// The size of the file in bytes.
        bytes: u64,
        /// The size of the drive in bytes.
        needed: u64,
    },
    /// A data file that must not be written to.
    #[error("file={0}")]
    Guarded(Refusal),
    /// An output that must not be written to.
    #[error("{key}={refusal}")]
    Output {
        /// The key that names the output.
        key: Key,
        /// The reason.
        refusal: Refusal,
    },
    /// A data file that would be longer than its file system permits.
    #[error(
        "file={}: the drive needs {needed} bytes, but files on this file system have at most {longest}; \
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
    #[error("{key}={}: cannot {what} it: {error}", path.display())]
    File {
        /// The key that names the file.
        key: Key,
        /// The path.
        path: PathBuf,
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A request that is not aligned to whole sectors.
    #[error("{count} bytes at byte {offset}: not aligned to the drive's sectors of {sector} bytes")]
    Misaligned {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        count: u64,
        /// The size of a sector in bytes.
        sector: u32,
    },
    /// A request beyond the end of the drive.
    #[error("{count} bytes at byte {offset}: beyond the end of the drive at byte {bytes}")]
    BeyondEnd {
        /// The first byte.
        offset: u64,
        /// The number of bytes.
        count: u64,
        /// The size of the drive in bytes.
        bytes: u64,
    },
    /// The drive failed a command.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The data cannot be transferred to the storage below.
    #[error("cannot {what} the drive's data: {error}")]
    Data {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// An invalid scenario.
    #[error("scenario={}: {error}", path.display())]
    Scenario {
        /// The scenario's file.
        path: PathBuf,
        /// The problem with the scenario.
        error: ScenarioError,
    },
    /// A scenario that does not fit the drive.
    #[error("scenario={}: {error}", path.display())]
    ScenarioMismatch {
        /// The scenario's file.
        path: PathBuf,
        /// The problem with the scenario.
        error: DiskError,
    },
    /// An order that is not a valid fault.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// Simulated time has reached its maximum, after about 106 days.
    #[error("simulated time has reached its maximum of 106 days; restart the server")]
    ClockEnded,
    /// A drive's key that is combined with a volume's.
    #[error(
        "{key}= cannot be combined with volume=; only control=, member-timeout= and sync-rate= can"
    )]
    KeyWithVolume {
        /// The key.
        key: String,
    },
    /// A volume's key that is given twice.
    #[error("{key}= is given twice")]
    VolumeKeyTwice {
        /// The key.
        key: &'static str,
    },
    /// A key that volumes with replicas do not have.
    #[error("{key}= cannot be used with a volume with replicas; remove it")]
    KeyWithReplicas {
        /// The key.
        key: &'static str,
    },
    /// An invalid rate of the initial sync.
    #[error(
        "sync-rate={value}: expected off, or bytes per second, such as 50M, of at least {RATE_MIN}"
    )]
    SyncRate {
        /// The value as given.
        value: String,
    },
    /// An invalid member time-out.
    #[error(
        "member-timeout={value}: expected whole seconds from {} to {}",
        crate::volume::MEMBER_TIMEOUTS.start(),
        crate::volume::MEMBER_TIMEOUTS.end()
    )]
    MemberTimeout {
        /// The value as given.
        value: String,
    },
    /// A volume that cannot be opened.
    #[error(transparent)]
    VolumeOpen(#[from] VolumeIoError),
    /// A volume reported an error.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// A volume with replicas that cannot be opened.
    #[error(transparent)]
    CopiesOpen(#[from] ReplicaVolumeIoError),
    /// A volume with replicas reported an error.
    #[error(transparent)]
    Copies(#[from] CopiesError),
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopped,
}

impl ServeError {
    pub(super) fn file(key: Key, path: &Path, what: &'static str, error: io::Error) -> ServeError {
        let path = path.to_owned();
        ServeError::File {
            key,
            path,
            what,
            error,
        }
    }

    /// Returns the system's error number that the client receives.
    pub fn errno(&self) -> i32 {
        match self {
            ServeError::Misaligned { .. } => Errno::INVAL.raw_os_error(),
            ServeError::BeyondEnd { .. } => Errno::NOSPC.raw_os_error(),
            ServeError::Disk(DiskError::Media(MediaError::NoSpace)) => Errno::NOSPC.raw_os_error(),
            ServeError::Data { error, .. } => error
                .raw_os_error()
                .unwrap_or_else(|| Errno::IO.raw_os_error()),
            ServeError::Volume(VolumeError::Length { .. }) => Errno::INVAL.raw_os_error(),
            ServeError::Volume(VolumeError::Range { .. }) => Errno::NOSPC.raw_os_error(),
            ServeError::Volume(VolumeError::NoSpace { .. })
            | ServeError::Copies(CopiesError::NoSpace) => Errno::NOSPC.raw_os_error(),
            ServeError::Volume(VolumeError::Broken { .. }) => Errno::ROFS.raw_os_error(),
            ServeError::Copies(CopiesError::Length { .. }) => Errno::INVAL.raw_os_error(),
            ServeError::Copies(CopiesError::Range { .. }) => Errno::NOSPC.raw_os_error(),
            ServeError::Copies(CopiesError::Broken) => Errno::ROFS.raw_os_error(),
            ServeError::Stopped => Errno::SHUTDOWN.raw_os_error(),
            _ => Errno::IO.raw_os_error(),
        }
    }
}

impl From<Refused<DiskError>> for ServeError {
    fn from(refused: Refused<DiskError>) -> ServeError {
        ServeError::Disk(refused.error)
    }
}
