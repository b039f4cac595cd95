//! Administrative operations on an open volume.

use uuid::Uuid;

use super::superblock::{MemberEntry, MemberState, Superblock};
use super::{MemberIo, Volume, VolumeError};
use traxtent_layout::raid::Level;

impl Superblock {
    /// Checks that a member of a volume with this number of stripes can be marked as failed.
    ///
    /// # Errors
    /// Returns an error if there is no such member, if the volume needs it, or if the initial sync
    /// of parity is not complete.
    pub fn check_fail(&self, member: usize, stripes: u64) -> Result<(), VolumeError> {
        let problem = |problem| Err(VolumeError::Member { member, problem });
        let has_parity = matches!(self.level, Level::Raid4 | Level::Raid5);
        match self.members.get(member) {
            None => problem("does not exist"),
            Some(entry) if entry.state == MemberState::Failed => Ok(()),
            Some(_) if has_parity && self.synced < stripes => problem(
                "cannot be marked as failed before the initial sync is complete; run `sync` first",
            ),
            Some(_) if !self.is_dispensable(member) => {
                problem("cannot be marked as failed; the other members do not have all of its data")
            }
            Some(_) => Ok(()),
        }
    }

    /// Checks that a member can be replaced.
    ///
    /// # Errors
    /// Returns an error if there is no such member, if it has not failed, or if another is being
    /// rebuilt.
    pub fn check_replace(&self, member: usize) -> Result<(), VolumeError> {
        let problem = |problem| Err(VolumeError::Member { member, problem });
        let is_rebuilding = |other: &MemberEntry| matches!(other.state, MemberState::Rebuilding(_));
        match self.members.get(member) {
            None => problem("does not exist"),
            Some(entry) if entry.state != MemberState::Failed => {
                problem("has not failed; `fail` it first")
            }
            Some(_) if self.members.iter().any(is_rebuilding) => {
                problem("cannot be replaced yet; another member is being rebuilt")
            }
            Some(_) => Ok(()),
        }
    }

    /// Returns whether the other members have all of a member's data.
    pub(super) fn is_dispensable(&self, member: usize) -> bool {
        let is_active = |(index, other): &(usize, &MemberEntry)| {
            *index != member && other.state == MemberState::Active
        };
        let others = self.members.iter().enumerate().filter(is_active).count();
        let enough = match self.level {
            Level::Raid0 => self.members.len(),
            Level::Raid1 => 1,
            Level::Raid4 | Level::Raid5 => self.members.len() - 1,
        };
        others >= enough
    }
}

impl<M: MemberIo> Volume<M> {
    /// Marks a member as failed on the administrator's request. If the volume needs the member,
    /// nothing changes.
    ///
    /// # Errors
    /// Returns an error if there is no such member, if the volume needs it, if the initial sync of
    /// parity is not complete, or if too many others fail in the meantime.
    pub async fn mark_failed(&self, member: usize) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        state.superblock.check_fail(member, self.array.stripes())?;
        if state.superblock.members[member].state == MemberState::Failed {
            return Ok(());
        }
        self.drop_member(&mut state, member)?;
        self.persist(&mut state).await?;
        self.settle(&mut state, true).await
    }

    /// Records in memory that another drive, with the ID `id`, has replaced a failed member. The
    /// drive has no data yet: call [`Volume::begin_rebuild`] next, which also updates the
    /// superblocks.
    ///
    /// # Errors
    /// Returns an error if there is no such member, if it has not failed, or if another is being
    /// rebuilt.
    pub async fn replace_member(&self, member: usize, id: Uuid) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        state.superblock.check_replace(member)?;
        let entry = &mut state.superblock.members[member];
        entry.id = id;
        entry.doubtful = false;
        self.publish(&state);
        Ok(())
    }
}
