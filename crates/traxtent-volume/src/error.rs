//! The errors of volumes.

use traxtent_layout::raid::RaidError;
use traxtent_units::{Lbn, Sectors};

/// The reason why a volume did not carry out a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeError {
    /// Sectors beyond the end of the volume.
    #[error("sectors {first}..{end} are not within the volume, which has {capacity}")]
    Range {
        /// The first sector requested.
        first: Lbn,
        /// The first sector after the request.
        end: Lbn,
        /// The capacity of the volume.
        capacity: Sectors,
    },
    /// A length that is not a whole number of sectors.
    #[error("{bytes} bytes are not a whole number of sectors of {sector_bytes} bytes")]
    Length {
        /// The number of bytes requested.
        bytes: usize,
        /// The size of a sector in bytes.
        sector_bytes: usize,
    },
    /// Data that neither the member nor the rest of the stripe can supply.
    #[error("sector {0}: cannot be read from its member or computed from the others")]
    Unreadable(Lbn),
    /// Data that was being written during a crash, on a member that is missing: its first sector,
    /// and the first sector after it.
    #[error(
        "sectors {0}..{1} are lost: they were being written during a crash, and a member is missing; write them again"
    )]
    Lost(u64, u64),
    /// More failed members than the level tolerates.
    #[error(
        "{failed} of {members} members have failed; the volume is read-only, and only intact data can be read"
    )]
    Broken {
        /// The number of failed members.
        failed: usize,
        /// The number of all members.
        members: usize,
    },
    /// A member has no space for a write. Earlier parts of the request may have been written.
    #[error(
        "member {member}: no space left for the write; free some space on the member's file system"
    )]
    NoSpace {
        /// The member.
        member: usize,
    },
    /// A write to a volume that is open for reading only.
    #[error("the volume is open for reading only")]
    ReadOnly,
    /// A volume that cannot be read before its recovery, which would write to its members.
    #[error(
        "the volume was not stopped cleanly, and its recovery has to write to the members; run `assemble` on writable members first"
    )]
    NeedsRecovery,
    /// The volume was stopped.
    #[error("the volume has been stopped")]
    Stopped,
    /// More lost ranges than a superblock can list.
    #[error("more than {0} lost ranges would have to be listed; the list was not changed")]
    TooMuchLost(usize),
    /// A journal that cannot hold a stripe.
    #[error("the journal has {journal}, but a stripe needs {needed}; make the journal larger")]
    Journal {
        /// The size of the journal.
        journal: Sectors,
        /// The size needed.
        needed: Sectors,
    },
    /// An invalid journal record.
    #[error(
        "a journal record describes a write outside the data of member {member}, at sector {at}"
    )]
    Record {
        /// The member that the record names.
        member: u32,
        /// The LBN on that member.
        at: Lbn,
    },
    /// A repair of data while a member is doubtful.
    #[error(
        "member {member}: one of its superblocks was missing or damaged; if its data is good, run `repair-superblocks` first; if not, `fail` it and rebuild"
    )]
    Doubtful {
        /// The member.
        member: usize,
    },
    /// A member whose state does not permit the operation.
    #[error("member {member} {problem}")]
    Member {
        /// The member.
        member: usize,
        /// The problem with it.
        problem: &'static str,
    },
}

/// Converts an error in planning a stripe.
pub(super) fn no_plan(error: RaidError) -> VolumeError {
    match error {
        RaidError::Lost { sector, .. } => VolumeError::Unreadable(sector),
        other => unreachable!("only lost sectors prevent a plan: {other}"),
    }
}
