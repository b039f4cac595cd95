//! What can be wrong with an array.

use super::Members;
use crate::units::{Lbn, Sectors};

/// Why an array cannot be made, or a question about it has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RaidError {
    /// A number of members that the level does not have.
    #[error("{level} of {members} members: it has {least} to {most}")]
    Members {
        /// The name of the level.
        level: &'static str,
        /// How many were given.
        members: usize,
        /// How many it needs.
        least: usize,
        /// How many there may be.
        most: usize,
    },
    /// Chunks of no sectors, or not of whole granules.
    #[error(
        "chunks of {chunk} with a granule of {granule}: a chunk is a multiple of it, and not empty"
    )]
    Chunk {
        /// The size of a chunk.
        chunk: Sectors,
        /// What it has to be a multiple of.
        granule: u32,
    },
    /// A granule of no sectors.
    #[error("a granule of 0 sectors: it has 1 or more")]
    Granule,
    /// A member whose range is not within its map.
    #[error(
        "member {member}: LBNs {start} to {end} are not within its map, which has LBNs {map_start} to {map_end}"
    )]
    NotCovered {
        /// Its number, from 0.
        member: usize,
        /// Where its data begin.
        start: Lbn,
        /// The LBN behind them.
        end: Lbn,
        /// The first LBN of the map.
        map_start: Lbn,
        /// The LBN behind its last.
        map_end: Lbn,
    },
    /// A member with no room for a stripe beside its spare tracks.
    #[error(
        "member {member}: LBNs {start} to {end} have no room for a chunk beside {spares} spare tracks"
    )]
    NoRoom {
        /// Its number, from 0.
        member: usize,
        /// Where its data begin.
        start: Lbn,
        /// The LBN behind them.
        end: Lbn,
        /// How many tracks are spared.
        spares: u32,
    },
    /// Tracks whose sizes change too often to be kept.
    #[error(
        "the sizes of tracks change more than {0} times: chunks by the order of tracks are not for these members"
    )]
    TooIrregular(usize),
    /// Spare tracks where chunks are not tracks.
    #[error("{0} spare tracks: only where chunks are tracks there are spare ones")]
    NoSpares(u32),
    /// A stripe, member or spare track that does not exist.
    #[error("there is no {what} {number}, but {count}")]
    Beyond {
        /// What was asked for.
        what: &'static str,
        /// Which.
        number: u64,
        /// How many there are.
        count: u64,
    },
    /// A spare track that has a chunk already.
    #[error("member {member}: spare track {spare} is in use")]
    SpareInUse {
        /// Its number, from 0.
        member: usize,
        /// The track's number.
        spare: u32,
    },
    /// More members cannot be read than the others make up for.
    #[error(
        "sector {sector}: member {absent} cannot be read, and the others cannot make up for it"
    )]
    Lost {
        /// The first sector of the array that this is about.
        sector: Lbn,
        /// Those that cannot.
        absent: Members,
    },
}
