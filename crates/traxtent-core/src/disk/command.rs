//! What a host tells a disk, and what it hears.

use std::fmt;

use super::error::DiskError;
use crate::drive::{Breakdown, Served};
use crate::units::{Lbn, SimTime, Span};

/// The name of a command at its disk, unique for the disk's life and ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// One command. Data go with it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read sectors.
    Read {
        /// The first.
        lbn: Lbn,
        /// How many.
        sectors: u32,
    },
    /// Write sectors.
    Write {
        /// The first.
        lbn: Lbn,
        /// How many.
        sectors: u32,
        /// Force unit access: complete when these sectors are on the media. Says nothing of others.
        fua: bool,
    },
    /// Bring to the media whatever was complete when this came.
    Flush,
    /// Tell that nobody needs these sectors any more (TRIM, UNMAP, discard). What then stands
    /// there is the profile's matter: `scsi.unmap`.
    Trim {
        /// The first.
        lbn: Lbn,
        /// How many.
        sectors: u32,
    },
    /// Make sectors zero.
    WriteZeroes {
        /// The first.
        lbn: Lbn,
        /// How many.
        sectors: u32,
        /// As of a write.
        fua: bool,
    },
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The name that [`super::Disk::submit`] gave it.
    pub tag: Tag,
    /// What was told.
    pub command: Command,
    /// When.
    pub submitted: SimTime,
    /// When it ended.
    pub completed: SimTime,
    /// Where the time between went.
    pub breakdown: Breakdown,
    /// What served it; nothing, if the drive's media and buffer did not.
    pub served: Option<Served>,
    /// How it ended.
    pub outcome: Result<(), DiskError>,
}

impl Completion {
    /// The response time.
    pub fn response(&self) -> Span {
        self.completed.since(self.submitted)
    }
}

impl Command {
    /// The first sector and how many; a flush has none.
    pub fn sectors(&self) -> (Lbn, u32) {
        match *self {
            Command::Read { lbn, sectors }
            | Command::Write { lbn, sectors, .. }
            | Command::Trim { lbn, sectors }
            | Command::WriteZeroes { lbn, sectors, .. } => (lbn, sectors),
            Command::Flush => (Lbn(0), 0),
        }
    }

    /// The word for it.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Read { .. } => "read",
            Command::Write { .. } => "write",
            Command::Flush => "flush",
            Command::Trim { .. } => "trim",
            Command::WriteZeroes { .. } => "write-zeroes",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sectors() {
            (_, 0) => f.write_str(self.name()),
            (lbn, sectors) => write!(f, "{} of {sectors} sectors at LBN {lbn}", self.name()),
        }
    }
}
