//! What a log refuses, and why.

use crate::units::Lbn;

/// Why a log did not do what it was asked, or could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// A name that is in no list.
    #[error("{text:?}: expected {expected}")]
    Name {
        /// What was given.
        text: String,
        /// What there is.
        expected: &'static str,
    },
    /// A figure of the configuration out of its bounds.
    #[error("{figure} is {value}: expected {expected}")]
    Figure {
        /// Its name.
        figure: &'static str,
        /// What was given.
        value: u64,
        /// The bound, in words.
        expected: &'static str,
    },
    /// The map does not tell where all tracks of the range are.
    #[error("LBNs {from} to {to} are asked for: the map covers {first} to {end}")]
    NotCovered {
        /// First of the range.
        from: Lbn,
        /// Behind its last.
        to: Lbn,
        /// First of the map.
        first: Lbn,
        /// Behind its last.
        end: Lbn,
    },
    /// No blocks, or more than fit beside the room that cleaning needs.
    #[error("{blocks} blocks: from 1 to {most} fit beside the room that cleaning needs")]
    TooMany {
        /// How many were asked for.
        blocks: u64,
        /// How many there may be.
        most: u64,
    },
    /// A block that the log does not have.
    #[error("block {block}: the log has {blocks}")]
    NoSuchBlock {
        /// Its number.
        block: u64,
        /// How many there are.
        blocks: u64,
    },
    /// Data of another length than the operation has.
    #[error("{bytes} bytes where {expected} are expected")]
    Length {
        /// How many came.
        bytes: usize,
        /// How many there should be.
        expected: usize,
    },
    /// Operations are waiting; they come first.
    #[error("operations are waiting")]
    Busy,
    /// A result came that was not asked for.
    #[error("no operation is under way")]
    NothingAsked,
    /// The device failed a write, a flush, or a read that cannot be done without. What is synced is
    /// safe: recover the log.
    #[error("the device failed earlier: the log has to be recovered")]
    Failed,
    /// Nothing more can be written. Only segments that cannot be cleaned bring a log to this.
    #[error("no segment can be freed")]
    Full,
    /// Bytes that are not what stands there in a log.
    #[error("LBN {at}: {what}: {problem}")]
    Format {
        /// Where.
        at: Lbn,
        /// What should be there.
        what: &'static str,
        /// What is wrong, in words.
        problem: &'static str,
    },
    /// A block's bytes are not those that were written.
    #[error("LBN {at}: the block there fails its checksum")]
    Damaged {
        /// Where it lies.
        at: Lbn,
    },
    /// Neither checkpoint is whole.
    #[error("neither checkpoint is whole; the second: {0}")]
    NoCheckpoint(Box<LogError>),
}
