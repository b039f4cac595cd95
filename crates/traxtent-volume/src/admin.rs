//! Administrative operations on an open volume.

use uuid::Uuid;

use super::superblock::MemberState;
use super::{MemberIo, Volume, VolumeError};
use traxtent_layout::raid::Level;

impl<M: MemberIo> Volume<M> {
    /// Marks a member as failed on the administrator's request. If the volume needs the member,
    /// nothing changes.
    ///
    /// # Errors
    /// Returns an error if there is no such member, if the volume needs it, if the initial sync of
    /// parity is not complete, or if too many others fail in the meantime.
    pub async fn mark_failed(&self, member: usize) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        let problem = |problem| VolumeError::Member { member, problem };
        match state.superblock.members.get(member) {
            None => return Err(problem("does not exist")),
            Some(entry) if entry.state == MemberState::Failed => return Ok(()),
            Some(_) => {}
        }
        let has_parity = matches!(self.level(), Level::Raid4 | Level::Raid5);
        if has_parity && state.superblock.synced < self.array.stripes() {
            return Err(problem(
                "cannot be marked as failed before the initial sync is complete; run `sync` first",
            ));
        }
        let broken = state.broken;
        if self.drop_member(&mut state, member).is_err() {
            state.broken = broken;
            self.publish(&state);
            return Err(problem(
                "cannot be marked as failed; the other members do not have all of its data",
            ));
        }
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
        let problem = |problem| VolumeError::Member { member, problem };
        let members = &mut state.superblock.members;
        let is_rebuilding = |state| matches!(state, MemberState::Rebuilding(_));
        if members.iter().any(|other| is_rebuilding(other.state)) {
            return Err(problem(
                "cannot be replaced yet; another member is being rebuilt",
            ));
        }
        match members.get_mut(member) {
            Some(entry) if entry.state == MemberState::Failed => {
                entry.id = id;
                entry.doubtful = false;
                self.publish(&state);
                Ok(())
            }
            Some(_) => Err(problem("has not failed; `fail` it first")),
            None => Err(problem("does not exist")),
        }
    }
}
