//! What a host asks of a drive.

use std::fmt;

use crate::units::Lbn;

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
    /// The first logical block; 0 for a flush.
    pub lbn: Lbn,
    /// How many logical sectors; 0 for a flush and for nothing else.
    pub sectors: u32,
    /// What to do.
    pub op: Op,
    /// Force unit access: the answer comes from, or stands on, the media.
    pub fua: bool,
}

impl Request {
    /// A read of `sectors` from `lbn`.
    pub fn read(lbn: Lbn, sectors: u32) -> Request {
        Request {
            op: Op::Read,
            lbn,
            sectors,
            fua: false,
        }
    }

    /// A write of `sectors` from `lbn`.
    pub fn write(lbn: Lbn, sectors: u32) -> Request {
        Request {
            op: Op::Write,
            lbn,
            sectors,
            fua: false,
        }
    }

    /// A flush of the write cache.
    pub fn flush() -> Request {
        Request {
            op: Op::Flush,
            lbn: Lbn(0),
            sectors: 0,
            fua: false,
        }
    }

    /// The first of the given LBNs, which ascend, that the request addresses.
    pub fn first_of(&self, ascending: &[Lbn]) -> Option<Lbn> {
        let first = ascending.partition_point(|lbn| *lbn < self.lbn);
        ascending
            .get(first)
            .copied()
            .filter(|lbn| *lbn < self.end())
    }

    /// The first LBN behind the request, or the last there is where that exceeds 64 bits.
    pub fn end(&self) -> Lbn {
        Lbn(self.lbn.0.saturating_add(u64::from(self.sectors)))
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Verify => "verify",
        })
    }
}
