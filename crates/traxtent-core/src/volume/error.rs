//! Why a volume cannot do what was asked.

use crate::layout::raid::RaidError;
use crate::units::{Lbn, Sectors};

/// Why a volume cannot do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// Sectors that the volume does not have.
    #[error("sectors {first} to {end}: the volume has {capacity}")]
    Range {
        /// The first asked for.
        first: Lbn,
        /// Behind the last.
        end: Lbn,
        /// What there is.
        capacity: Sectors,
    },
    /// Not whole sectors.
    #[error("{bytes} bytes are no whole number of sectors of {sector_bytes} bytes")]
    Length {
        /// Asked for.
        bytes: usize,
        /// A sector.
        sector_bytes: usize,
    },
    /// Neither the member nor the rest of the stripe has the data.
    #[error("sector {0}: the member cannot read it, and the other members cannot make up for it")]
    Unreadable(Lbn),
    /// The data were in flight when the power went, and the member that had them is gone.
    #[error(
        "sectors {0} to {1} are lost: they were being written when the volume stopped, and a member is gone"
    )]
    Lost(u64, u64),
    /// More members have failed than the level bears.
    #[error(
        "{failed} of {members} members have failed: the volume can only be read, where its data are whole"
    )]
    Broken {
        /// How many have.
        failed: usize,
        /// Of so many.
        members: usize,
    },
    /// A member has no room for a write, of which nothing was written.
    #[error("member {member}: no space left for the write; free some where the member lies")]
    NoSpace {
        /// Which.
        member: usize,
    },
    /// It was stopped.
    #[error("the volume has been stopped")]
    Stopped,
    /// Lost ranges beyond what a superblock can name.
    #[error("more than {0} ranges would be lost; nothing was changed")]
    TooMuchLost(usize),
    /// The journal cannot hold a stripe.
    #[error("the journal has {journal}, and a stripe needs {needed}")]
    Journal {
        /// What it has.
        journal: Sectors,
        /// What is needed.
        needed: Sectors,
    },
    /// A record that no volume writes.
    #[error("the journal asks for a write outside of the data of member {member}, at sector {at}")]
    Record {
        /// Of which member.
        member: u32,
        /// Where.
        at: Lbn,
    },
    /// A repair of data, while a member is in doubt.
    #[error(
        "member {member}: a superblock of it was missing or damaged; if its data are good, `repair-superblocks` first; if not, `fail` it and rebuild"
    )]
    Doubtful {
        /// The member.
        member: usize,
    },
    /// A member is not what the order needs.
    #[error("member {member} {problem}")]
    Member {
        /// Which.
        member: usize,
        /// What it is instead.
        problem: &'static str,
    },
}

/// Why a stripe of the volume has no plan.
pub(super) fn no_plan(error: RaidError) -> VolumeError {
    match error {
        RaidError::Lost { sector, .. } => VolumeError::Unreadable(sector),
        other => unreachable!("the volume has its stripes: {other}"),
    }
}
