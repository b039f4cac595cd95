//! Rebuilding a member, stripe by stripe, beside everything else that the volume does.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_lock::Mutex;
use smallvec::SmallVec;

use super::desk::{Desk, Desks, Given};
use super::superblock::MemberState;
use super::{Failures, Members, PLANNER, State, Volume, VolumeError};

impl<M: Members> Volume<M> {
    /// Begins to rebuild a failed member, whose place another may have taken.
    ///
    /// # Errors
    /// If the member has not failed.
    pub async fn begin_rebuild(&self, member: usize) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        let problem = |problem| VolumeError::Member { member, problem };
        if state.superblock.members[member].state != MemberState::Failed {
            return Err(problem("has not failed"));
        }
        let others = state.superblock.members.iter();
        if others
            .into_iter()
            .any(|other| matches!(other.state, MemberState::Rebuilding(_)))
        {
            return Err(problem("has to wait until another is rebuilt"));
        }
        self.settle(&mut state, true).await?;
        self.rebuilt.store(0, Ordering::SeqCst);
        self.rebuild_next.lock().await.stripe = 0;
        state.superblock.members[member].state = MemberState::Rebuilding(0);
        self.persist(&mut state).await
    }

    /// Rebuilds the next stripes of the member that is being rebuilt, at most so many; false if there are none left, or no such
    /// member. Several at a time keep all members busy: some read, one sums, some write. How far the member is rebuilt grows in
    /// the stripes' order.
    ///
    /// # Errors
    /// If the other members cannot tell what a stripe holds; then all of them stay as they were.
    pub async fn rebuild_step(&self, stripes: u64) -> Result<bool, VolumeError> {
        let state = self.gate.read().await;
        let mut members = state.superblock.members.iter();
        let is_rebuilding = |member: &super::superblock::MemberEntry| {
            matches!(member.state, MemberState::Rebuilding(_))
        };
        let Some(member) = members.position(is_rebuilding) else {
            return Ok(false);
        };
        let mut next = self.rebuild_next.lock().await;
        let first = next.stripe;
        let numbers = first..self.array.stripes().min(first + stripes);
        if numbers.is_empty() {
            // What is under way counts.
            drop(next.last.lock().await);
            drop((next, state));
            self.rebuild_done(member).await?;
            return Ok(false);
        }
        // While nobody else takes stripes: who comes later does not hold what is wanted here.
        let mut locks: SmallVec<[usize; 16]> =
            numbers.clone().map(|number| self.lock_of(number)).collect();
        locks.sort_unstable();
        locks.dedup();
        let mut held: SmallVec<[_; 16]> = SmallVec::new();
        for lock in locks {
            held.push(self.stripes[lock].lock().await);
        }
        let own = Arc::new(Mutex::new(()));
        let turn = own.try_lock().expect("nobody else has it yet");
        let before = std::mem::replace(&mut next.last, Arc::clone(&own));
        next.stripe = numbers.end;
        drop(next);
        let mut desks = self.desks();
        let written = self
            .rebuild_stripes(member, numbers.clone(), &state, &mut desks)
            .await;
        self.clear_away(desks);
        // Stripes count in their order.
        drop(before.lock().await);
        let is_next = self.rebuilt.load(Ordering::SeqCst) == first;
        if is_next && matches!(&written, Ok(failed) if failed.is_empty()) {
            self.rebuilt.store(numbers.end, Ordering::SeqCst);
        }
        drop(held);
        if written.is_err() {
            // They are taken again by who tries again.
            self.rebuild_next.lock().await.stripe = self.rebuilt.load(Ordering::SeqCst);
        }
        drop((turn, state));
        if !written?.is_empty() {
            self.fail(member).await?;
        }
        Ok(true)
    }

    /// Computes what a member has of stripes, whose locks are held, and writes it there. Returns who refused.
    async fn rebuild_stripes(
        &self,
        member: usize,
        numbers: Range<u64>,
        state: &State,
        desks: &mut Desks<M::Buffer>,
    ) -> Result<Failures, VolumeError> {
        let stripes = numbers.map(|number| self.stripe(number));
        let mut count = 0;
        for stripe in stripes.filter(|stripe| stripe.sectors_on(member).0 > 0) {
            self.desk(desks, count, state, &stripe, stripe.logical());
            count += 1;
        }
        self.rewrite(state, member, &mut desks.desks[..count]).await
    }

    /// Makes durable how far a rebuild has come, so that it goes on from there after a stop.
    ///
    /// # Errors
    /// If too many members fail.
    pub async fn rebuild_checkpoint(&self) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        // What was written to stripes before they were rebuilt has to be durable too.
        self.settle(&mut state, true).await?;
        let rebuilt = self.rebuilt.load(Ordering::SeqCst);
        for member in &mut state.superblock.members {
            if let MemberState::Rebuilding(stripe) = &mut member.state {
                *stripe = rebuilt;
            }
        }
        self.persist(&mut state).await
    }

    async fn rebuild_done(&self, member: usize) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        let members = &state.superblock.members;
        let is_whole = self.rebuilt.load(Ordering::SeqCst) == self.array.stripes();
        if !is_whole || !matches!(members[member].state, MemberState::Rebuilding(_)) {
            return Ok(());
        }
        self.settle(&mut state, true).await?;
        let own = &mut state.superblock.members[member].state;
        if matches!(own, MemberState::Rebuilding(_)) {
            *own = MemberState::Active;
            // What it has was computed from the others, parity included: it agrees with them everywhere.
            state.superblock.synced = self.array.stripes();
            self.persist(&mut state).await?;
        }
        Ok(())
    }

    /// Writes what a member has of stripes, whose locks are held, from what the others have. The desks are prepared.
    pub(super) async fn rewrite(
        &self,
        state: &State,
        member: usize,
        work: &mut [Desk<M::Buffer>],
    ) -> Result<Failures, VolumeError> {
        self.carry_out(work, Given::NONE, |stripe, _, health, plan| {
            PLANNER.rebuild(stripe, member, health, plan)
        })
        .await?;
        self.reserve(state, work)?;
        Ok(self.put(work, Given::NONE).await)
    }
}
