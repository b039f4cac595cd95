//! The errors of volumes with replicas.

use crate::superblock::SuperblockError;
use crate::{Failed, NoSpace};
use traxtent_layout::tpl::TplError;
use traxtent_units::{Lbn, Sectors};

/// The reason why a volume with replicas cannot be opened, or did not carry out a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopiesError {
    /// Sectors beyond the end of the volume.
    #[error("sectors {first}..{end} are not within the volume, which has {capacity}")]
    Range {
        /// The first sector requested.
        first: Lbn,
        /// The first sector after the request.
        end: Lbn,
        /// The capacity of the volume.
        capacity: Sectors,
    },
    /// A length that is not a whole number of sectors.
    #[error("{bytes} bytes are not a whole number of sectors of {sector_bytes} bytes")]
    Length {
        /// The number of bytes requested.
        bytes: usize,
        /// The size of a sector in bytes.
        sector_bytes: usize,
    },
    /// No current replica can be read.
    #[error("sector {0}: no current replica can be read")]
    Unreadable(Lbn),
    /// No replica can be written. For a durable write and a flush, only the first replica counts.
    #[error("sector {0}: no suitable replica can be written")]
    Unwritable(Lbn),
    /// A page of the table could not be written.
    #[error("the table cannot be written; the volume is read-only")]
    Broken,
    /// The device has no space for a write. Earlier parts of the request may have been written.
    #[error("no space left for the write; free some space on the device's file system")]
    NoSpace,
    /// The volume was stopped.
    #[error("the volume has been stopped")]
    Stopped,
    /// An operation that the device cannot perform.
    #[error("the device cannot {0}")]
    Device(&'static str),
    /// Neither superblock is usable.
    #[error(transparent)]
    Superblock(#[from] SuperblockError),
    /// A device whose sectors differ in number or size.
    #[error(
        "the device has {found} of {sector_bytes} bytes, but the volume was made on a device with {expected} of {expected_bytes}"
    )]
    Size {
        /// The number of sectors that the device has.
        found: Sectors,
        /// The size of the device's sectors in bytes.
        sector_bytes: u32,
        /// The number of sectors that the device had when the volume was made.
        expected: Sectors,
        /// The size of a sector in bytes when the volume was made.
        expected_bytes: u32,
    },
    /// An attachment with two damaged copies.
    #[error("both copies of the volume's {0} are damaged")]
    Damaged(&'static str),
    /// A table of tracks without an intact header.
    #[error(
        "the table of the volume's tracks cannot be read ({0}), so nothing says where its data is; create the volume anew, and restore the data from a backup"
    )]
    Table(&'static str),
    /// An error of the layout.
    #[error(transparent)]
    Layout(#[from] TplError),
}

impl From<NoSpace> for CopiesError {
    fn from(_: NoSpace) -> CopiesError {
        CopiesError::NoSpace
    }
}

impl From<Failed> for CopiesError {
    fn from(_: Failed) -> CopiesError {
        CopiesError::Device("complete the operation")
    }
}
