//! The errors of a log.

use traxtent_units::{Count, Lbn};

/// The reason why a call to a log failed, or a log could not be read.
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
    /// A value of the configuration or the range that is not possible.
    #[error("{name} is {value}: expected {expected}")]
    InvalidValue {
        /// The name of the value.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The bound, in words.
        expected: &'static str,
    },
    /// The range is empty.
    #[error("the range of LBNs {from}..{to} is empty")]
    EmptyRange {
        /// The first LBN of the range.
        from: Lbn,
        /// The first LBN after the range.
        to: Lbn,
    },
    /// The map does not cover the range.
    #[error("LBNs {from}..{to} are not within the map, which covers {first}..{end}")]
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
    #[error("{} requested: {}", Count(.blocks, "block"), blocks_expected(*most))]
    BlockCount {
        /// The number of blocks requested.
        blocks: u64,
        /// The largest possible number of blocks.
        most: u64,
    },
    /// A block that the log does not have.
    #[error("block {block} does not exist; the log has {}", Count(.blocks, "block"))]
    NoSuchBlock {
        /// The block's number.
        block: u64,
        /// The number of blocks in the log.
        blocks: u64,
    },
    /// Data whose length does not fit the operation.
    #[error("got {bytes} bytes, expected {expected}")]
    Length {
        /// The number of bytes given.
        bytes: usize,
        /// The number of bytes expected.
        expected: usize,
    },
    /// Operations are pending and must be carried out first.
    #[error("operations are pending; carry them out first")]
    Busy,
    /// A result for an operation that was not issued.
    #[error("no operation is outstanding")]
    NothingOutstanding,
    /// The device failed a write or a flush. Synced data is safe: recover the log.
    #[error("the device failed earlier; recover the log")]
    Failed,
    /// Nothing more can be written. This happens only if segments cannot be cleaned.
    #[error("the log is full, and no segment can be cleaned")]
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
    /// A block whose bytes differ from those written, or a segment that could not be read for
    /// cleaning.
    #[error("LBN {at}: the data cannot be read, or differs from what was written")]
    Damaged {
        /// The LBN of the block or segment.
        at: Lbn,
    },
    /// Neither checkpoint is intact.
    #[error("neither checkpoint is intact; the error in the second is: {0}")]
    NoCheckpoint(Box<LogError>),
}

fn blocks_expected(most: u64) -> String {
    match most {
        0 => "the range has no room for any block beyond the space that cleaning needs".to_owned(),
        most => format!("expected 1 to {most}; cleaning needs the remaining space"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the message name a bound only if some number of blocks is possible?
    #[test]
    fn possible_numbers_of_blocks() {
        let message = |most| LogError::BlockCount { blocks: 9, most }.to_string();
        assert_eq!(
            message(8),
            "9 blocks requested: expected 1 to 8; cleaning needs the remaining space"
        );
        assert_eq!(
            message(0),
            "9 blocks requested: the range has no room for any block beyond the space that cleaning needs"
        );
    }
}
