//! The errors of a log.

use traxtent_units::Lbn;

/// The reason why a log did not carry out a call, or could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// An unknown name.
    #[error("{text:?}: expected {expected}")]
    Name {
        /// The name given.
        text: String,
        /// The names allowed.
        expected: &'static str,
    },
    /// A configuration value out of bounds.
    #[error("{figure} is {value}: expected {expected}")]
    Figure {
        /// The name of the value.
        figure: &'static str,
        /// The value given.
        value: u64,
        /// The bound, in words.
        expected: &'static str,
    },
    /// The map does not cover all tracks of the range.
    #[error("LBNs {from} to {to} are asked for: the map covers {first} to {end}")]
    NotCovered {
        /// The first LBN of the range.
        from: Lbn,
        /// The first LBN after the range.
        to: Lbn,
        /// The first LBN of the map.
        first: Lbn,
        /// The first LBN after the map.
        end: Lbn,
    },
    /// No blocks, or more than fit in addition to the space that cleaning needs.
    #[error("{blocks} blocks: from 1 to {most} fit beside the room that cleaning needs")]
    TooMany {
        /// The number of blocks requested.
        blocks: u64,
        /// The largest possible number of blocks.
        most: u64,
    },
    /// A block that the log does not have.
    #[error("block {block}: the log has {blocks}")]
    NoSuchBlock {
        /// The block's number.
        block: u64,
        /// The number of blocks in the log.
        blocks: u64,
    },
    /// Data whose length does not fit the operation.
    #[error("{bytes} bytes where {expected} are expected")]
    Length {
        /// The number of bytes given.
        bytes: usize,
        /// The number of bytes expected.
        expected: usize,
    },
    /// Operations are pending and must be carried out first.
    #[error("operations are waiting")]
    Busy,
    /// A result for an operation that was not issued.
    #[error("no operation is under way")]
    NothingOutstanding,
    /// The device failed a write, a flush, or an essential read. Synced data is safe: recover the
    /// log.
    #[error("the device failed earlier: the log has to be recovered")]
    Failed,
    /// Nothing more can be written. This happens only because of segments that cannot be cleaned.
    #[error("no segment can be freed")]
    Full,
    /// Bytes that are not the expected structure of a log.
    #[error("LBN {at}: {what}: {problem}")]
    Format {
        /// The LBN of the structure.
        at: Lbn,
        /// The structure expected there.
        what: &'static str,
        /// The problem, in words.
        problem: &'static str,
    },
    /// A block whose bytes differ from those written.
    #[error("LBN {at}: the block there fails its checksum")]
    Damaged {
        /// The block's LBN.
        at: Lbn,
    },
    /// Neither checkpoint is intact.
    #[error("neither checkpoint is whole; the second: {0}")]
    NoCheckpoint(Box<LogError>),
}
