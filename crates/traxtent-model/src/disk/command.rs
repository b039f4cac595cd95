//! The commands to a disk, and their completions.

use std::fmt;

use super::error::DiskError;
use crate::drive::{Breakdown, ServedBy};
use traxtent_units::{Count, Lbn, SimTime, Span};

/// The identifier of a command, unique and ascending over the disk's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// One command. Its data is passed separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Read sectors.
    Read {
        /// The first sector.
        lbn: Lbn,
        /// The number of sectors.
        sectors: u32,
    },
    /// Write sectors.
    Write {
        /// The first sector.
        lbn: Lbn,
        /// The number of sectors.
        sectors: u32,
        /// Force unit access: complete once these sectors are on the media. Other sectors are not
        /// affected.
        fua: bool,
    },
    /// Make durable all writes that were complete when the flush arrived.
    Flush,
    /// Discard sectors whose data is no longer needed (TRIM, UNMAP, discard). `scsi.unmap` in the
    /// profile determines their contents afterwards.
    Trim {
        /// The first sector.
        lbn: Lbn,
        /// The number of sectors.
        sectors: u32,
    },
    /// Fill sectors with zeros.
    WriteZeroes {
        /// The first sector.
        lbn: Lbn,
        /// The number of sectors.
        sectors: u32,
        /// Force unit access, same as for a write.
        fua: bool,
    },
}

/// A command that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// The tag that [`super::Disk::submit`] returned.
    pub tag: Tag,
    /// The command.
    pub command: Command,
    /// The time of submission.
    pub submitted: SimTime,
    /// The time of completion.
    pub completed: SimTime,
    /// The parts of the time from submission to completion.
    pub breakdown: Breakdown,
    /// The part of the drive that served the command, or `None` if neither media nor buffer did.
    pub served: Option<ServedBy>,
    /// Success, or the reason for the failure.
    pub outcome: Result<(), DiskError>,
}

impl Completion {
    /// The response time.
    pub fn response(&self) -> Span {
        self.completed.since(self.submitted)
    }
}

impl Command {
    /// Returns the first sector and the number of sectors, both 0 for a flush.
    pub fn sectors(&self) -> (Lbn, u32) {
        match *self {
            Command::Read { lbn, sectors }
            | Command::Write { lbn, sectors, .. }
            | Command::Trim { lbn, sectors }
            | Command::WriteZeroes { lbn, sectors, .. } => (lbn, sectors),
            Command::Flush => (Lbn(0), 0),
        }
    }

    /// The command's name in messages.
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
            (lbn, sectors) => {
                let sectors = Count(sectors, "sector");
                write!(f, "{} of {sectors} at LBN {lbn}", self.name())
            }
        }
    }
}
