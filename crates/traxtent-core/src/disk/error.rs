//! What a host is told when it does not get what it asked for.

use super::media::MediaError;
use crate::drive::RequestError;
use crate::profile::ProfileError;

/// Why a disk did not do what it was told.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DiskError {
    /// The drive's profile is bad.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// No request that the drive can serve.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// Data of another length than the request names, or than whole sectors have.
    #[error("{bytes} bytes of data for {expected}")]
    Length {
        /// How many bytes there are.
        bytes: usize,
        /// How many there should be, in words.
        expected: String,
    },
    /// The medium below failed: no room, or an error of its own.
    #[error(transparent)]
    Media(#[from] MediaError),
    /// A sector cannot be read until it is written anew (a medium error).
    #[error("LBN {lbn} cannot be read")]
    Unreadable {
        /// The first such sector of the request.
        lbn: u64,
    },
    /// The drive does not answer.
    #[error("the drive is gone")]
    Gone,
    /// The power went while the request was under way.
    #[error("the power went")]
    PowerCut,
    /// A fault names sectors that the drive does not have.
    #[error("{fault} of {sectors} sectors at LBN {lbn}: the drive ends at LBN {capacity}")]
    FaultBeyondEnd {
        /// The fault's name.
        fault: &'static str,
        /// First sector.
        lbn: u64,
        /// How many.
        sectors: u32,
        /// Sectors of the drive.
        capacity: u64,
    },
    /// A bad sector found no place to go.
    #[error("LBN {lbn} cannot be moved to a spare: {problem}")]
    NoSpare {
        /// The bad sector.
        lbn: u64,
        /// Why not.
        problem: String,
    },
}
