//! The errors of arrays.

use super::MemberSet;
use traxtent_units::{Count, Lbn, Sectors};

/// The reason why an array cannot be made, or a query about it cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RaidError {
    /// A number of members that the level does not support.
    #[error("{level} cannot have {members} members; it needs {least} to {most}")]
    Members {
        /// The name of the level.
        level: &'static str,
        /// The number of members given.
        members: usize,
        /// The smallest number of members.
        least: usize,
        /// The largest number of members.
        most: usize,
    },
    /// A chunk size that is 0, not a multiple of the granule, or 2^32 sectors or more.
    #[error(
        "a chunk of {chunk} is not possible; it must be a positive multiple of the granule, {granule} sectors, and less than 2^32 sectors"
    )]
    Chunk {
        /// The size of a chunk.
        chunk: Sectors,
        /// The number of sectors that a chunk must be a multiple of.
        granule: u32,
    },
    /// A granule of 0 sectors.
    #[error("a granule cannot have 0 sectors; it needs at least 1")]
    Granule,
    /// A member whose range is not within its map.
    #[error(
        "member {member}: LBNs {start}..{end} are not within its map, which covers LBNs {map_start}..{map_end}"
    )]
    NotCovered {
        /// The member's number, from 0.
        member: usize,
        /// The first LBN of its data.
        start: Lbn,
        /// The first LBN after its data.
        end: Lbn,
        /// The first LBN of the map.
        map_start: Lbn,
        /// The first LBN after the map.
        map_end: Lbn,
    },
    /// A member too small for a chunk in addition to its spare tracks.
    #[error(
        "member {member}: LBNs {start}..{end} are too few for a chunk in addition to {}",
        Count(.spares, "spare track")
    )]
    NoRoom {
        /// The member's number, from 0.
        member: usize,
        /// The first LBN of its data.
        start: Lbn,
        /// The first LBN after its data.
        end: Lbn,
        /// The number of spare tracks.
        spares: u32,
    },
    /// Tracks whose sizes change so often that the array would have more than
    /// [`RUNS_MAX`](super::RUNS_MAX) runs of stripes.
    #[error(
        "track sizes change {0} times or more; members this irregular cannot have chunks that are tracks"
    )]
    TooIrregular(usize),
    /// Spare tracks requested although chunks are not tracks.
    #[error(
        "{} cannot be reserved; spare tracks need chunks that are tracks",
        Count(.0, "spare track")
    )]
    NoSpares(u32),
    /// A stripe, member or spare track that does not exist.
    #[error("{what} {number} does not exist; there are {count}")]
    Beyond {
        /// The kind of item requested.
        what: &'static str,
        /// The number requested.
        number: u64,
        /// The number that exist.
        count: u64,
    },
    /// A spare track that already holds a chunk.
    #[error("member {member}: spare track {spare} is already in use")]
    SpareInUse {
        /// The member's number, from 0.
        member: usize,
        /// The spare track's number.
        spare: u32,
    },
    /// A sector that cannot be computed: more members are unreadable than the redundancy covers, or
    /// the parity may not be used ([`StripeHealth::unsynced`](super::StripeHealth::unsynced)).
    #[error(
        "sector {sector}: member{} {absent} cannot be read, and the others are not enough to compute it",
        if .absent.count() == 1 { "" } else { "s" }
    )]
    Lost {
        /// The first affected sector of the array.
        sector: Lbn,
        /// The members that cannot be read.
        absent: MemberSet,
    },
}
