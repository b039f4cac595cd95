//! What a layout in partitions refuses, and why.

use crate::units::Lbn;

/// Why a layout in partitions cannot be made, opened, or do as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TplError {
    /// A count that is no power of two from 1 to 32.
    #[error("{0} partitions of a track: expected 1, 2, 4, 8, 16 or 32")]
    Count(u32),
    /// A lower bound above the upper one.
    #[error("at least {least} partitions of a track, and at most {most}: the bounds are crossed")]
    Bounds {
        /// The lower bound.
        least: u32,
        /// The upper bound.
        most: u32,
    },
    /// A figure out of its bounds.
    #[error("{figure} is {value}: expected {expected}")]
    Figure {
        /// Its name.
        figure: &'static str,
        /// What was given.
        value: u64,
        /// The bound, in words.
        expected: &'static str,
    },
    /// No track has a block for each of the most partitions.
    #[error(
        "{most} partitions of a track: the largest track of LBNs {start} to {end} has {blocks} blocks"
    )]
    DoesNotFit {
        /// The upper bound.
        most: u32,
        /// The first LBN.
        start: Lbn,
        /// The LBN behind the last.
        end: Lbn,
        /// Blocks of the largest track.
        blocks: u64,
    },
    /// No room for the table and a track of data.
    #[error("LBNs {start} to {end} of the map have no room for the table and a track of data")]
    NoRoom {
        /// The first LBN.
        start: Lbn,
        /// The LBN behind the last.
        end: Lbn,
    },
    /// Blocks that the layout does not have.
    #[error("blocks {from} to {to}: the layout has {blocks}")]
    NoSuchBlock {
        /// The first of them.
        from: u64,
        /// Behind the last of them.
        to: u64,
        /// How many there are.
        blocks: u64,
    },
    /// A track that cannot be split, and why.
    #[error("track {track} of {count} partitions is not split: {why}")]
    NotSplit {
        /// Its position in the map.
        track: usize,
        /// Its partitions.
        count: u32,
        /// What stands against it.
        why: &'static str,
    },
    /// A plan that changes the table, while another is under way.
    #[error("a plan that changes the table is under way: finish it first")]
    Busy,
    /// A map that is not the one the layout was made with.
    #[error(
        "the map has changed: the layout was made with one of {theirs_tracks} tracks and hash {theirs:08x}, this one \
         has {ours_tracks} and {ours:08x}"
    )]
    OtherMap {
        /// Tracks of the layout's map.
        theirs_tracks: u64,
        /// Its hash.
        theirs: u32,
        /// Tracks of the map at hand.
        ours_tracks: u64,
        /// Its hash.
        ours: u32,
    },
    /// Bytes that are not what should be there.
    #[error("{what}: {problem}")]
    Format {
        /// What was to be read.
        what: &'static str,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A page of the table of which no copy is whole.
    #[error("page {page} of the table: neither copy can be believed ({first}; {second})")]
    PageLost {
        /// Its number.
        page: u32,
        /// What is wrong with the first copy.
        first: &'static str,
        /// What is wrong with the second.
        second: &'static str,
    },
}
