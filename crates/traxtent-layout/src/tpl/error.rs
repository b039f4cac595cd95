//! The errors of a track partition layout.

use traxtent_units::{Count, Lbn};

/// The reason why a track partition layout cannot be made or opened, or refuses an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TplError {
    /// A number of partitions per track, and thus of replicas, that is not a power of two from 1 to
    /// 32.
    #[error("{0} replicas: expected 1, 2, 4, 8, 16 or 32")]
    Count(u32),
    /// A lower bound above the upper one.
    #[error("the lower bound, {least} replicas, exceeds the upper bound, {most}")]
    Bounds {
        /// The lower bound.
        least: u32,
        /// The upper bound.
        most: u32,
    },
    /// A value that is not possible.
    #[error("{name} is {value}: expected {expected}")]
    InvalidValue {
        /// The name of the value.
        name: &'static str,
        /// The value given.
        value: u64,
        /// The bound, in words.
        expected: &'static str,
    },
    /// No track has a block for each partition of the largest count.
    #[error(
        "a track cannot have {}: the largest track in LBNs {start}..{end} has {}",
        Count(.most, "partition"),
        Count(.blocks, "block")
    )]
    DoesNotFit {
        /// The upper bound.
        most: u32,
        /// The first LBN.
        start: Lbn,
        /// The first LBN after the range.
        end: Lbn,
        /// The number of blocks on the largest track.
        blocks: u64,
    },
    /// A range too small for the table and a track of data.
    #[error("LBNs {start}..{end} of the map are too few for the table and a track of data")]
    NoRoom {
        /// The first LBN.
        start: Lbn,
        /// The first LBN after the range.
        end: Lbn,
    },
    /// Blocks that the layout does not have, or an empty range of blocks.
    #[error(
        "blocks {from}..{to} are not all in the layout, which has {}",
        Count(.blocks, "block")
    )]
    NoSuchBlock {
        /// The first of them.
        from: u64,
        /// The first block after them.
        to: u64,
        /// The number of blocks in the layout.
        blocks: u64,
    },
    /// A track that cannot be split.
    #[error("track {track} with {} cannot be split: {why}", Count(.count, "partition"))]
    NotSplit {
        /// The track's position in the map.
        track: usize,
        /// The track's number of partitions.
        count: u32,
        /// The reason.
        why: &'static str,
    },
    /// An operation that must wait for the plan in progress.
    #[error("a plan is in progress; finish it first")]
    Busy,
    /// A map that differs from the one that the layout was made with.
    #[error(
        "the map has changed: the layout was made with one of {theirs_tracks} tracks and hash {theirs:08x}, this one \
         has {ours_tracks} and {ours:08x}"
    )]
    OtherMap {
        /// The number of tracks in the layout's map.
        theirs_tracks: u64,
        /// The hash of the layout's map.
        theirs: u32,
        /// The number of tracks in the given map.
        ours_tracks: u64,
        /// The hash of the given map.
        ours: u32,
    },
    /// Bytes that are not the expected structure.
    #[error("{what}: {problem}")]
    Format {
        /// The structure expected.
        what: &'static str,
        /// The problem with the bytes.
        problem: &'static str,
    },
    /// A page of the table without an intact copy.
    #[error("page {page} of the table: both copies are unusable ({first}; {second})")]
    PageLost {
        /// The page's number.
        page: u32,
        /// The problem with the first copy.
        first: &'static str,
        /// The problem with the second copy.
        second: &'static str,
    },
}
