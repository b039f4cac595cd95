//! Rebuilding and scrubbing, stripe by stripe, beside everything else that the volume does.

use std::sync::atomic::Ordering;

use super::superblock::MemberState;
use super::xor::xor;
use super::{Failures, Members, Op, Ops, State, Stripe, Volume, VolumeError, failures};
use crate::layout::raid::Level;

/// What a scrub found in a stripe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// Rows in which parity or copies did not agree with the data.
    pub wrong: u64,
    /// Chunks that could not be read and were written anew.
    pub repaired: u64,
}

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
        state.superblock.members[member].state = MemberState::Rebuilding(0);
        self.persist(&mut state).await
    }

    /// Rebuilds the next stripe of the member that is being rebuilt; false if there is none left, or no such member.
    ///
    /// # Errors
    /// If the other members cannot tell what the stripe holds; then it stays as it was.
    pub async fn rebuild_step(&self) -> Result<bool, VolumeError> {
        let state = self.gate.read().await;
        let number = self.rebuilt.load(Ordering::SeqCst);
        let mut members = state.superblock.members.iter();
        let is_rebuilding = |member: &super::superblock::MemberEntry| {
            matches!(member.state, MemberState::Rebuilding(_))
        };
        let Some(member) = members.position(is_rebuilding) else {
            return Ok(false);
        };
        if number >= self.placement.stripes() {
            drop(state);
            self.rebuild_done(member).await?;
            return Ok(false);
        }
        let stripe = self.placement.stripe(number);
        let _lock = self.stripes[self.lock_of(number)].lock().await;
        if let Some(own) = stripe.all().find(|column| column.member == member)
            && own.sectors > 0
        {
            let mut bytes = self
                .members
                .buffer(own.sectors as usize * self.sector_bytes);
            match stripe
                .columns
                .iter()
                .position(|column| column.member == member)
            {
                Some(k) => {
                    self.recover(&state, &stripe, k, 0..own.sectors, &mut bytes, None)
                        .await?
                }
                None => self.check_of(&state, &stripe, &mut bytes).await?,
            }
            let mut ops = [Op::write(member, own.at, &bytes)];
            self.members.run(&mut ops).await;
            if ops[0].outcome.is_err() {
                drop((_lock, state));
                self.fail(member).await?;
                return Ok(false);
            }
        }
        self.rebuilt.store(number + 1, Ordering::SeqCst);
        Ok(true)
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
        self.settle(&mut state, true).await?;
        if matches!(
            state.superblock.members[member].state,
            MemberState::Rebuilding(_)
        ) {
            state.superblock.members[member].state = MemberState::Active;
            self.persist(&mut state).await?;
        }
        Ok(())
    }

    /// The check of a stripe from its data.
    async fn check_of(
        &self,
        state: &State,
        stripe: &Stripe,
        into: &mut [u8],
    ) -> Result<(), VolumeError> {
        if stripe
            .columns
            .iter()
            .any(|column| !self.is_live(state, column.member, stripe.number))
        {
            // A copy, and the first is not there.
            return self
                .recover(state, stripe, 0, 0..stripe.columns[0].sectors, into, None)
                .await;
        }
        into.fill(0);
        let mut buffer = self.members.buffer(into.len() * stripe.columns.len());
        let mut ops = Ops::new();
        for (column, part) in stripe
            .columns
            .iter()
            .zip(buffer.chunks_exact_mut(into.len()))
        {
            if column.sectors > 0 {
                let part = &mut part[..column.sectors as usize * self.sector_bytes];
                ops.push(Op::read(column.member, column.at, part));
            }
        }
        self.members.run(&mut ops).await;
        for op in ops {
            match (op.outcome, op.action) {
                (Ok(()), super::Action::Read(_, part)) => xor(&mut into[..part.len()], part),
                _ => return Err(VolumeError::Unreadable(stripe.first())),
            }
        }
        Ok(())
    }

    /// Compares the parity or the copies of a stripe with its data, rewrites chunks that cannot be read, and makes the
    /// parity or the copies agree with the data.
    ///
    /// Members that are missing are left out; with one missing, there is no parity to compare. One that refuses what is
    /// written to it has failed.
    ///
    /// # Errors
    /// If a chunk cannot be read nor computed, or so many members fail that the volume cannot do without.
    pub async fn scrub(&self, number: u64) -> Result<Scrubbed, VolumeError> {
        let (scrubbed, failed) = {
            let state = self.gate.read().await;
            let stripe = self.placement.stripe(number);
            let _lock = self.stripes[self.lock_of(number)].lock().await;
            self.scrub_held(&state, &stripe).await?
        };
        self.fail_all(failed).await?;
        Ok(scrubbed)
    }

    /// What a scrub found, and the members that refused what was written to them.
    pub(super) async fn scrub_held(
        &self,
        state: &State,
        stripe: &Stripe,
    ) -> Result<(Scrubbed, Failures), VolumeError> {
        let mut scrubbed = Scrubbed::default();
        let length = stripe.rows() as usize * self.sector_bytes;
        let all: Vec<_> = stripe.all().copied().collect();
        let is_live: Vec<bool> = all
            .iter()
            .map(|column| self.is_live(state, column.member, stripe.number))
            .collect();
        let level = self.placement.level();
        if level == Level::Raid0 || length == 0 || level != Level::Raid1 && is_live.contains(&false)
        {
            return Ok((scrubbed, Failures::new()));
        }
        let mut buffer = self.members.buffer(length * all.len());
        buffer.fill(0);
        let mut ops = Ops::new();
        let columns = all
            .iter()
            .zip(&is_live)
            .zip(buffer.chunks_exact_mut(length));
        for ((column, _), part) in
            columns.filter(|((column, live), _)| **live && column.sectors > 0)
        {
            let part = &mut part[..column.sectors as usize * self.sector_bytes];
            ops.push(Op::read(column.member, column.at, part));
        }
        self.members.run(&mut ops).await;
        let failed = failures(&ops);
        drop(ops);
        for member in &failed {
            let column = all
                .iter()
                .position(|column| column.member == *member)
                .expect("it was read");
            let part =
                &mut buffer[column * length..][..all[column].sectors as usize * self.sector_bytes];
            if column < stripe.columns.len() || level == Level::Raid1 {
                let rows = 0..all[column].sectors;
                self.recover(
                    state,
                    stripe,
                    column.min(stripe.columns.len() - 1),
                    rows,
                    part,
                    Some(*member),
                )
                .await?;
                scrubbed.repaired += 1;
            }
        }
        let (data, checks) = buffer.split_at_mut(stripe.columns.len() * length);
        let mut wanted = self.members.buffer(length);
        wanted.fill(0);
        match level {
            Level::Raid1 if !is_live[0] => {
                // The first copy that there is.
                let Some(first) = is_live.iter().position(|live| *live) else {
                    return Ok((scrubbed, Failures::new()));
                };
                wanted.copy_from_slice(&checks[(first - 1) * length..][..length]);
            }
            _ => data
                .chunks_exact(length)
                .for_each(|part| xor(&mut wanted, part)),
        }
        let mut ops = Ops::new();
        for (index, column) in stripe.checks.iter().enumerate() {
            if !is_live[stripe.columns.len() + index] {
                continue;
            }
            let is = checks[index * length..][..length].chunks_exact(self.sector_bytes);
            let wrong = is
                .zip(wanted.chunks_exact(self.sector_bytes))
                .filter(|(is, wanted)| is != wanted)
                .count();
            let is_unread = level != Level::Raid1 && failed.contains(&column.member);
            match is_unread {
                true => scrubbed.repaired += 1,
                false => scrubbed.wrong += wrong as u64,
            }
            if wrong > 0 || is_unread {
                ops.push(Op::write(
                    column.member,
                    column.at,
                    &wanted[..column.sectors as usize * self.sector_bytes],
                ));
            }
        }
        if !ops.is_empty() {
            self.ring().dirty = true;
            self.members.run(&mut ops).await;
        }
        Ok((scrubbed, failures(&ops)))
    }

    /// Makes durable how far a scrub has come; the first one of all also makes the parity of a new volume.
    ///
    /// # Errors
    /// If too many members fail.
    pub async fn scrub_checkpoint(&self, next: u64) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        self.settle(&mut state, true).await?;
        let superblock = &mut state.superblock;
        if superblock.synced >= superblock.scrubbed {
            superblock.synced = superblock.synced.max(next);
        }
        superblock.scrubbed = if next >= self.placement.stripes() {
            0
        } else {
            next
        };
        self.persist(&mut state).await
    }
}
