//! The interface of a served block device, which any thread can read and write.
//!
//! A protocol needs only [`BlockService`]. The implementations are a modelled drive
//! ([`crate::serve::DriveServer`]), a volume ([`crate::volume::VolumeServer`]) and a volume with
//! replicas ([`crate::copies::ReplicaVolumeServer`]).

use std::error::Error;
use std::fmt::{self, Debug};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;
use traxtent_model::disk::{DiskError, MediaError};
use traxtent_sim::port::Refused;
use traxtent_volume::VolumeError;
use traxtent_volume::copies::CopiesError;

/// The maximum size of a read or write in bytes: the largest request that an NBD client may send
/// without negotiating a limit.
pub(crate) const REQUEST_MAX: u32 = 32 << 20;

/// A block device that is served.
///
/// Any number of threads can make requests between [`start`](BlockService::start) and
/// [`stop`](BlockService::stop). A request blocks until it is complete. Offsets and counts are in
/// bytes, and are multiples of [`BlockSizes::minimum`].
pub trait BlockService: Debug + Send + Sync {
    /// Starts the clock and the threads.
    ///
    /// # Errors
    /// Returns an error if the system cannot start a thread, or if the maintenance that begins with
    /// the server cannot begin.
    fn start(&self) -> Result<(), ServiceError>;

    /// Shuts down cleanly. Outstanding requests of a drive fail; its volatile cache is written to
    /// its data file.
    ///
    /// # Errors
    /// Returns an error if an output cannot be written, or a volume cannot be stopped cleanly.
    fn stop(&self) -> Result<(), ServiceError>;

    /// Limits the duration of a shutdown. Call it in a separate thread when the shutdown begins. It
    /// may end the process.
    fn limit_shutdown(&self) {}

    /// Writes the receipt so far, if one is kept.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn write_receipt(&self) -> Result<(), ServiceError> {
        Ok(())
    }

    /// Returns the size in bytes.
    fn bytes(&self) -> u64;

    /// Returns the block sizes to advertise to a client.
    fn block_sizes(&self) -> BlockSizes;

    /// Returns whether [`BlockService::trim`] has an effect and should be advertised.
    fn can_trim(&self) -> bool {
        true
    }

    /// Returns whether requests complete without waiting. Serving several at a time in threads of
    /// their own would then only cost time.
    fn is_immediate(&self) -> bool {
        false
    }

    /// Returns whether trimmed bytes read as zeros afterwards.
    fn trim_zeroes(&self) -> bool {
        false
    }

    /// Returns whether a power failure can lose completed writes that have not been flushed.
    fn has_write_cache(&self) -> bool {
        true
    }

    /// Returns whether the device rotates.
    fn is_rotational(&self) -> bool {
        true
    }

    /// Returns the optimal request size in bytes, such as a stripe, if there is one.
    fn optimal_bytes(&self) -> Option<u32> {
        None
    }

    /// Reads bytes starting at `offset` until the buffer is full.
    ///
    /// # Errors
    /// Returns an error if the request is misaligned or beyond the end, if the server is not
    /// running, or if the drive or the volume reports an error.
    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServiceError>;

    /// Writes bytes starting at `offset`. With `fua`, the data is durable when this returns.
    ///
    /// # Errors
    /// Returns the same errors as [`BlockService::read`].
    fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError>;

    /// Zeroes `count` bytes starting at `offset`. With `fua`, the zeros are durable when this
    /// returns.
    ///
    /// # Errors
    /// Returns the same errors as [`BlockService::read`].
    fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError>;

    /// Declares `count` bytes starting at `offset` unused. With `fua`, the change is durable when
    /// this returns.
    ///
    /// # Errors
    /// Returns the same errors as [`BlockService::read`].
    fn trim(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError>;

    /// Makes all completed writes durable.
    ///
    /// # Errors
    /// Returns the error that the drive or the volume reports.
    fn flush(&self) -> Result<(), ServiceError>;
}

/// A block device as clients see it: a service with a name, writable or not.
///
/// All front ends (NBD, FUSE, ublk) share the service. A drive therefore has one queue for all of
/// them.
#[derive(Clone, Debug)]
pub struct Export {
    /// The name that NBD clients use to choose the export.
    pub name: String,
    /// A human-readable description in one line, such as the drive's model.
    pub description: String,
    /// The device.
    pub service: Arc<dyn BlockService>,
    /// Whether writes, trims and zeros are refused.
    pub read_only: bool,
}

/// The block sizes to advertise to a client, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSizes {
    /// The size of a logical sector. Offsets and counts must be multiples of it.
    pub minimum: u32,
    /// The preferred unit, such as a physical sector or a block of a volume. Offsets and counts
    /// should be multiples of it.
    pub preferred: u32,
    /// The maximum size of one request.
    pub maximum: u32,
}

/// The purpose of a file of a served drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileRole {
    /// The drive's data.
    Data,
    /// The faults and their times.
    Scenario,
    /// The request log.
    Log,
    /// The receipt.
    Receipt,
}

impl fmt::Display for FileRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            FileRole::Data => "data file",
            FileRole::Scenario => "scenario",
            FileRole::Log => "request log",
            FileRole::Receipt => "receipt",
        })
    }
}

/// The reason why a served block device failed a request, or could not start or stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
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
    /// A modelled drive failed a command.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// An operation on the drive's data file failed outside the model, such as a flush.
    #[error("cannot {what} the drive's data: {error}")]
    Data {
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A volume reported an error.
    #[error(transparent)]
    Volume(#[from] VolumeError),
    /// A volume with replicas reported an error.
    #[error(transparent)]
    Copies(#[from] CopiesError),
    /// Simulated time has reached its maximum, after about 106 days.
    #[error("simulated time has reached its maximum of 106 days; restart the server")]
    ClockEnded,
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopped,
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// The maintenance that begins with the server cannot begin.
    #[error(transparent)]
    Maintenance(Box<dyn Error + Send + Sync>),
    /// A log or a receipt that cannot be written.
    #[error("{role} {}: cannot write it: {error}", path.display())]
    Output {
        /// The purpose of the output.
        role: FileRole,
        /// The path.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl ServiceError {
    /// Returns whether the storage below the drive or the volume is full, or the drive's data file
    /// or the device of a volume with replicas failed. A volume with members reports their failures
    /// itself.
    pub fn is_of_storage(&self) -> bool {
        matches!(
            self,
            ServiceError::Data { .. }
                | ServiceError::Disk(DiskError::Media(_))
                | ServiceError::Volume(VolumeError::NoSpace { .. })
                | ServiceError::Copies(
                    CopiesError::NoSpace | CopiesError::Broken | CopiesError::Device(_)
                )
        )
    }

    /// Returns the error number for the client.
    pub fn errno(&self) -> i32 {
        let errno = match self {
            ServiceError::Misaligned { .. }
            | ServiceError::Volume(VolumeError::Length { .. })
            | ServiceError::Copies(CopiesError::Length { .. }) => Errno::INVAL,
            ServiceError::BeyondEnd { .. }
            | ServiceError::Disk(DiskError::Media(MediaError::NoSpace))
            | ServiceError::Volume(VolumeError::Range { .. } | VolumeError::NoSpace { .. })
            | ServiceError::Copies(CopiesError::Range { .. } | CopiesError::NoSpace) => {
                Errno::NOSPC
            }
            ServiceError::Volume(VolumeError::Broken { .. } | VolumeError::ReadOnly)
            | ServiceError::Copies(CopiesError::Broken) => Errno::ROFS,
            ServiceError::Data { error, .. } => Errno::from_io_error(error).unwrap_or(Errno::IO),
            ServiceError::Stopped => Errno::SHUTDOWN,
            _ => Errno::IO,
        };
        errno.raw_os_error()
    }
}

impl From<Refused<DiskError>> for ServiceError {
    fn from(refused: Refused<DiskError>) -> ServiceError {
        ServiceError::Disk(refused.error)
    }
}
