//! Why a volume with copies cannot be opened, or do what was asked.

use crate::layout::tpl::TplError;
use crate::units::{Lbn, Sectors};
use crate::volume::superblock::SuperblockError;
use crate::volume::{Failed, NoSpace};

/// Why a volume with copies cannot be opened, or do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CopiesError {
    /// Sectors that the volume does not have.
    #[error("sectors {first} to {end}: the volume has {capacity}")]
    Range {
        /// The first asked for.
        first: Lbn,
        /// Behind the last.
        end: Lbn,
        /// What there is.
        capacity: Sectors,
    },
    /// Not whole sectors.
    #[error("{bytes} bytes are no whole number of sectors of {sector_bytes} bytes")]
    Length {
        /// Asked for.
        bytes: usize,
        /// A sector.
        sector_bytes: usize,
    },
    /// No current copy can be read.
    #[error("sector {0}: no current copy can be read")]
    Unreadable(Lbn),
    /// No copy can be written.
    #[error("sector {0}: no copy can be written")]
    Unwritable(Lbn),
    /// A page of the table cannot be written.
    #[error("the table cannot be written: the volume can only be read")]
    Broken,
    /// The device has no room for a write, of which nothing was written.
    #[error("no space left for the write; free some where the device lies")]
    NoSpace,
    /// It was stopped.
    #[error("the volume has been stopped")]
    Stopped,
    /// What the device does not do.
    #[error("the device cannot {0}")]
    Device(&'static str),
    /// Neither superblock.
    #[error(transparent)]
    Superblock(#[from] SuperblockError),
    /// A device of another size.
    #[error(
        "the device has {found} of {sector_bytes} bytes, and the volume was made on {expected}"
    )]
    Size {
        /// What it has.
        found: Sectors,
        /// Bytes of each.
        sector_bytes: u32,
        /// What it had.
        expected: Sectors,
    },
    /// An attachment that is damaged in both copies.
    #[error("the {0} of the volume is damaged in both copies")]
    Damaged(&'static str),
    /// What the layout says.
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
        CopiesError::Device("do what it was asked")
    }
}
