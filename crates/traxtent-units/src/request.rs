//! The requests that a host sends to a drive.

use std::fmt;

use crate::{Lbn, SimTime, Span};

/// The kind of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Op {
    /// Read sectors to the host.
    #[default]
    Read,
    /// Write sectors from the host.
    Write,
    /// Bring every completed write to the media; addresses no sectors.
    Flush,
    /// Read sectors from the media without a transfer to the host.
    Verify,
}

/// One request, as a host sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Request {
    /// The first LBN; 0 for a flush.
    pub lbn: Lbn,
    /// The number of logical sectors; 0 for a flush and for no other request.
    pub sectors: u32,
    /// The kind of request.
    pub op: Op,
    /// Force unit access: a read is served from the media, and a write completes only once it is on
    /// the media.
    pub fua: bool,
}

impl Request {
    /// Returns a read of `sectors` from `lbn`.
    pub fn read(lbn: Lbn, sectors: u32) -> Request {
        Request {
            op: Op::Read,
            lbn,
            sectors,
            fua: false,
        }
    }

    /// Returns a write of `sectors` from `lbn`.
    pub fn write(lbn: Lbn, sectors: u32) -> Request {
        Request {
            op: Op::Write,
            lbn,
            sectors,
            fua: false,
        }
    }

    /// Returns a flush of the write cache.
    pub fn flush() -> Request {
        Request {
            op: Op::Flush,
            lbn: Lbn(0),
            sectors: 0,
            fua: false,
        }
    }

    /// Returns the first of the given LBNs that the request addresses. The LBNs must be in
    /// ascending order.
    pub fn first_of(&self, ascending: &[Lbn]) -> Option<Lbn> {
        let first = ascending.partition_point(|lbn| *lbn < self.lbn);
        ascending
            .get(first)
            .copied()
            .filter(|lbn| *lbn < self.end())
    }

    /// The first LBN after the request, or the highest 64-bit LBN if the sum overflows.
    pub fn end(&self) -> Lbn {
        Lbn(self.lbn.0.saturating_add(u64::from(self.sectors)))
    }
}

impl Op {
    /// The name of the kind of request in messages.
    pub fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Verify => "verify",
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The times at which a request was sent and completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The time at which the host sent it.
    pub sent: SimTime,
    /// The time at which the host saw it complete.
    pub completed: SimTime,
}

impl Timing {
    /// The time from sending to completion.
    pub fn response(&self) -> Span {
        self.completed.saturating_since(self.sent)
    }
}
