//! Errors in track maps.

use std::io;

use traxtent_units::Lbn;

/// A problem with a map or its text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackMapError {
    /// A line is malformed.
    #[error("line {line}: {problem}")]
    Line {
        /// The line number, from 1.
        line: u64,
        /// The problem with the line.
        problem: String,
    },
    /// The text could not be read.
    #[error("line {line}: {error}")]
    Io {
        /// The line number, from 1.
        line: u64,
        /// The cause.
        error: io::Error,
    },
    /// The bytes are not a track map.
    #[error(
        "is not a track map: its first line must be `{}` and a version",
        super::MAGIC
    )]
    NotATrackMap,
    /// The file is longer than those that this program reads.
    #[error("is longer than {} bytes", super::FILE_BYTES_MAX)]
    TooLong,
    /// The format version differs from the one that this program reads.
    #[error(
        "has format version {found}; this program reads version {}",
        super::VERSION
    )]
    Version {
        /// The version that the file states.
        found: String,
    },
    /// The file is truncated.
    #[error("is truncated: its last line is not the checksum")]
    Truncated,
    /// The checksum does not match: the file was changed after it was written.
    #[error(
        "was altered or damaged: its checksum line states {stated:08x}, but its bytes give {computed:08x}"
    )]
    Altered {
        /// The checksum in the last line.
        stated: u32,
        /// The checksum computed from the bytes.
        computed: u32,
    },
}

/// The reason why a track cannot be added to a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PushError {
    /// There is a gap or an overlap between the tracks.
    #[error("first_lbn: {first_lbn}: expected {expected}, where the previous track ends")]
    NotNext {
        /// The LBN at which the track begins.
        first_lbn: Lbn,
        /// The LBN at which it should begin.
        expected: Lbn,
    },
    /// The track is empty, or ends beyond the highest LBN.
    #[error("sectors: {sectors}: expected 1 or more, and an end below 2^64")]
    Sectors {
        /// The size of the track.
        sectors: u32,
    },
    /// The map is full.
    #[error("more than {} tracks", super::TRACKS_MAX)]
    TooMany,
}
