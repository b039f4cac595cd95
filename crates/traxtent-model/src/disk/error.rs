//! The errors of a disk.

use super::media::MediaError;
use crate::drive::RequestError;
use crate::profile::ProfileError;
use traxtent_units::Count;

/// The reason why a disk could not be created, or did not carry out a command or a fault.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The drive's profile is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The drive cannot serve the request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The length of the data does not match the request, or is not a whole number of sectors.
    #[error("{bytes} bytes of data; expected {expected}")]
    Length {
        /// The number of bytes given.
        bytes: usize,
        /// The number of bytes expected, in words.
        expected: String,
    },
    /// The storage for the media failed: no space, or an error of its own.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// A sector cannot be read until it is written again (a medium error).
    #[error("LBN {lbn} cannot be read")]
    Unreadable {
        /// The first such sector of the request.
        lbn: u64,
    },
    /// The drive does not respond.
    #[error("the drive does not respond")]
    Unresponsive,
    /// The power was cut while the request was outstanding.
    #[error("power was cut during the request")]
    PowerCut,
    /// The disk's clock reached its end before the request was complete.
    #[error(
        "the disk's clock has reached its end, after 106 days, before the request was complete"
    )]
    EndOfTime,
    /// A fault refers to sectors that the drive does not have.
    #[error(
        "{fault} of {} at LBN {lbn}: the drive ends before LBN {capacity}",
        Count(sectors, "sector")
    )]
    FaultBeyondEnd {
        /// The fault's name.
        fault: &'static str,
        /// The first sector.
        lbn: u64,
        /// The number of sectors.
        sectors: u32,
        /// The drive's capacity in sectors.
        capacity: u64,
    },
    /// A bad sector cannot be moved to a spare.
    #[error("the physical sector that begins at LBN {lbn} cannot be moved to a spare: {problem}")]
    NoSpare {
        /// The first LBN of the bad physical sector.
        lbn: u64,
        /// The reason.
        problem: String,
    },
}
