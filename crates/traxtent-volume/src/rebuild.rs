//! Rebuilding a member, stripe by stripe, while the volume is in use.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_lock::Mutex;
use smallvec::SmallVec;

use super::stripe_buffer::{StripeBuffer, StripeBuffers, WriteData};
use super::superblock::MemberState;
use super::{Failures, MemberIo, PLANNER, State, Volume, VolumeError};

impl<M: MemberIo> Volume<M> {
    /// Begins to rebuild a failed member, which may have been replaced.
    ///
    /// # Errors
    /// Returns an error if the member has not failed, if another is being rebuilt, or if too many
    /// members fail.
    ///
    /// # Panics
    /// Panics if there is no such member.
    pub async fn begin_rebuild(&self, member: usize) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        let problem = |problem| VolumeError::Member { member, problem };
        if state.superblock.members[member].state != MemberState::Failed {
            return Err(problem("has not failed; `fail` it first"));
        }
        let others = state.superblock.members.iter();
        if others
            .into_iter()
            .any(|other| matches!(other.state, MemberState::Rebuilding(_)))
        {
            return Err(problem(
                "cannot be rebuilt yet; another member is being rebuilt",
            ));
        }
        self.settle(&mut state, true).await?;
        self.rebuilt.store(0, Ordering::SeqCst);
        self.rebuild_next.lock().await.stripe = 0;
        state.superblock.members[member].state = MemberState::Rebuilding(0);
        self.persist(&mut state).await
    }

    /// Rebuilds at most `stripes` further stripes of the member that is being rebuilt. Returns
    /// false if none are left, or if there is no such member. Several concurrent calls keep all
    /// members busy: some read, one computes, some write. The progress advances in the order of
    /// stripes.
    ///
    /// # Errors
    /// Returns an error if the other members cannot supply the contents of a stripe, or if a member
    /// has no space. Nothing is written in these cases. Also returns an error if too many members
    /// fail.
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
            // Steps in progress may still fail, or complete the rebuild.
            drop(next.last.lock().await);
            drop((next, state));
            self.rebuild_done(member).await?;
            return Ok(false);
        }
        // The stripe locks are taken while no other call can take stripes. Later calls therefore do
        // not hold the locks needed here.
        let mut locks: SmallVec<[usize; 16]> =
            numbers.clone().map(|number| self.lock_of(number)).collect();
        locks.sort_unstable();
        locks.dedup();
        let mut held: SmallVec<[_; 16]> = SmallVec::new();
        for lock in locks {
            held.push(self.stripes[lock].lock().await);
        }
        let own = Arc::new(Mutex::new(()));
        let turn = own.try_lock().expect("no other task holds it yet");
        let before = std::mem::replace(&mut next.last, Arc::clone(&own));
        next.stripe = numbers.end;
        drop(next);
        let mut buffers = self.take_buffers();
        let written = self
            .rebuild_stripes(member, numbers.clone(), &state, &mut buffers)
            .await;
        self.return_buffers(buffers);
        // Stripes are counted as rebuilt in ascending order.
        drop(before.lock().await);
        let is_next = self.rebuilt.load(Ordering::SeqCst) == first;
        if is_next && matches!(&written, Ok(failed) if failed.is_empty()) {
            self.rebuilt.store(numbers.end, Ordering::SeqCst);
        }
        drop(held);
        if written.is_err() {
            // The stripes are taken again by the next attempt.
            self.rebuild_next.lock().await.stripe = self.rebuilt.load(Ordering::SeqCst);
        }
        drop((turn, state));
        if !written?.is_empty() {
            self.fail(member).await?;
        }
        Ok(true)
    }

    /// Computes and writes a member's chunks of some stripes, whose locks must be held. Returns the
    /// members that failed.
    async fn rebuild_stripes(
        &self,
        member: usize,
        numbers: Range<u64>,
        state: &State,
        buffers: &mut StripeBuffers<M::Buffer>,
    ) -> Result<Failures, VolumeError> {
        let stripes = numbers.map(|number| self.stripe(number));
        let mut count = 0;
        for stripe in stripes.filter(|stripe| stripe.sectors_on(member).0 > 0) {
            self.prepare_buffer(buffers, count, state, &stripe, stripe.logical());
            count += 1;
        }
        self.rewrite(state, member, &mut buffers.buffers[..count])
            .await
    }

    /// Makes the progress of a rebuild durable, so that it continues from there after a stop.
    ///
    /// # Errors
    /// Returns an error if too many members fail.
    pub async fn rebuild_checkpoint(&self) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        // Data written to stripes before they were rebuilt must be durable too.
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
            // The member's chunks, parity included, were computed from the others, so all stripes
            // are consistent.
            state.superblock.synced = self.array.stripes();
            self.persist(&mut state).await?;
        }
        Ok(())
    }

    /// Rewrites a member's chunks of some stripes from the other members. The stripes' locks must
    /// be held, and the stripe buffers prepared.
    pub(super) async fn rewrite(
        &self,
        state: &State,
        member: usize,
        work: &mut [StripeBuffer<M::Buffer>],
    ) -> Result<Failures, VolumeError> {
        self.carry_out(work, WriteData::NONE, |stripe, _, health, plan| {
            PLANNER.rebuild(stripe, member, health, plan)
        })
        .await?;
        self.reserve(state, work)?;
        Ok(self.write_planned(work, WriteData::NONE).await)
    }
}
