//! Why a drive cannot be served, and why a request fails.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use traxtent_core::disk::{DiskError, FaultError, MediaError, ScenarioError};
use traxtent_core::profile::ProfileError;
use traxtent_core::volume::VolumeError;
use traxtent_core::volume::copies::CopiesError;

use super::keys::Key;
use crate::copies::CopiesIoError;
use crate::device::guard::Refusal;
use crate::port::Refused;
use crate::volume::{LEAST_RATE, VolumeIoError};

/// Why a drive cannot be served, or one of its requests.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A key that there is not.
    #[error("there is no key {key:?}; known are {}", Key::names())]
    UnknownKey {
        /// As given.
        key: String,
    },
    /// A key that is given twice.
    #[error("{key}= is given twice")]
    Twice {
        /// Which.
        key: Key,
    },
    /// A key without which nothing can be served.
    #[error("{key}= is missing: {}", key.help())]
    Missing {
        /// Which.
        key: Key,
    },
    /// A value that a key does not take.
    #[error("{key}={value}: {problem}")]
    Value {
        /// Which.
        key: Key,
        /// As given.
        value: String,
        /// What would be right.
        problem: String,
    },
    /// A profile that is none.
    #[error("drive={}: {error}", path.display())]
    Profile {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        error: ProfileError,
    },
    /// A data file that is too small for the drive.
    #[error("file={}: it has {bytes} bytes, the drive {needed}", path.display())]
    TooSmall {
        /// Which.
        path: PathBuf,
        /// What it has.
        bytes: u64,
        /// What the drive has.
        needed: u64,
    },
    /// A data file that must not be written to.
    #[error("file={0}")]
    Guarded(Refusal),
    /// An output that must not be written to.
    #[error("{key}={refusal}")]
    Output {
        /// The key that names it.
        key: Key,
        /// Why not.
        refusal: Refusal,
    },
    /// A data file longer than its file system allows.
    #[error(
        "file={}: the drive has {needed} bytes, and files on this file system at most {longest}; \
         name a file on another, such as XFS, or a block device",
        path.display()
    )]
    FileTooLarge {
        /// Which.
        path: PathBuf,
        /// What the drive has.
        needed: u64,
        /// The most that a file may have.
        longest: u64,
    },
    /// A file that cannot be used.
    #[error("{key}={}: cannot {what} it: {error}", path.display())]
    File {
        /// The key that names it.
        key: Key,
        /// Which.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A thread that the system does not give.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A request that is not made of whole sectors.
    #[error("{count} bytes at byte {offset}: the drive has sectors of {sector} bytes")]
    Misaligned {
        /// The first byte.
        offset: u64,
        /// How many.
        count: u64,
        /// Bytes of a sector.
        sector: u32,
    },
    /// A request beyond the end of the drive.
    #[error("{count} bytes at byte {offset}: the drive has {bytes} bytes")]
    BeyondEnd {
        /// The first byte.
        offset: u64,
        /// How many.
        count: u64,
        /// Bytes of the drive.
        bytes: u64,
    },
    /// What the drive answers where it does not do what it is told.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The data cannot be brought to the disk below.
    #[error("cannot {what} the drive's data: {error}")]
    Data {
        /// What was tried.
        what: &'static str,
        /// What the system says.
        error: io::Error,
    },
    /// A scenario that is none.
    #[error("scenario={}: {error}", path.display())]
    Scenario {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        error: ScenarioError,
    },
    /// A scenario that does not fit the drive.
    #[error("scenario={}: {error}", path.display())]
    Misfit {
        /// Its file.
        path: PathBuf,
        /// What is wrong with it.
        error: DiskError,
    },
    /// An order that is no fault.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// Simulated time has come to its end, after some 106 days.
    #[error("simulated time has come to its end, after 106 days")]
    ClockEnded,
    /// A key of a drive beside one of a volume.
    #[error(
        "{key}= cannot be combined with volume=; only control=, member-timeout= and sync-rate= can"
    )]
    NotOfVolume {
        /// Which.
        key: String,
    },
    /// A key of a volume that is given twice.
    #[error("{key}= is given twice")]
    TwiceOfVolume {
        /// Which.
        key: &'static str,
    },
    /// A key that volumes with copies do not have.
    #[error("{key}= cannot be used with a volume with copies; leave it out")]
    NotOfCopies {
        /// Which.
        key: &'static str,
    },
    /// A rate of the initial sync that cannot be.
    #[error("sync-rate={value}: expected bytes a second, {LEAST_RATE} at least, or off")]
    SyncRate {
        /// As given.
        value: String,
    },
    /// A member time-out that cannot be.
    #[error(
        "member-timeout={value}: expected whole seconds from {} to {}",
        crate::volume::MEMBER_TIMEOUTS.start(),
        crate::volume::MEMBER_TIMEOUTS.end()
    )]
    MemberTimeout {
        /// As given.
        value: String,
    },
    /// A volume that cannot be opened.
    #[error(transparent)]
    VolumeOpen(#[from] VolumeIoError),
    /// What a volume reports.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// A volume with copies that cannot be opened.
    #[error(transparent)]
    CopiesOpen(#[from] CopiesIoError),
    /// What a volume with copies reports.
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

    /// What a client is told: the number that the system has for it.
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
