//! What can be wrong with a track map.

use std::io;

use crate::units::Lbn;

/// What is wrong with a map, or its text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackMapError {
    /// A line that makes no sense.
    #[error("line {line}: {problem}")]
    Line {
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The text could not be read.
    #[error("line {line}: {error}")]
    Io {
        /// Which line, from 1.
        line: u64,
        /// Why not.
        error: io::Error,
    },
    /// The bytes are those of something else.
    #[error(
        "is no track map: its first line is not `{}` and a version",
        super::MAGIC
    )]
    NoMap,
    /// The format is one of another version of this program.
    #[error(
        "has format version {found}; this program reads version {}",
        super::VERSION
    )]
    Version {
        /// What the file says.
        found: String,
    },
    /// The file ends too early.
    #[error("is cut short: its last line is not the checksum")]
    CutShort,
    /// The file is not as it was written.
    #[error(
        "was altered or damaged: its checksum is {stated:08x}, that of its bytes {computed:08x}"
    )]
    Altered {
        /// What its last line says.
        stated: u32,
        /// What its bytes come to.
        computed: u32,
    },
}

/// Why a track cannot be the next one of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// There is a gap or an overlap.
    #[error("first_lbn: {first_lbn}: the track before ends at LBN {expected}")]
    NotNext {
        /// Where the track begins.
        first_lbn: Lbn,
        /// Where it should.
        expected: Lbn,
    },
    /// The track is empty, or ends beyond all LBNs.
    #[error("sectors: {sectors}: expected 1 or more, and an end below 2^64")]
    Sectors {
        /// The size of the track.
        sectors: u32,
    },
    /// The map is full.
    #[error("more than {} tracks", super::TRACKS_MAX)]
    TooMany,
}
