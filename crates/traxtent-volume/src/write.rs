//! Writing to a volume.

use std::ops::Range;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::error::no_plan;
use super::journal_space::{JournalSpace, RecordKind};
use super::record::{JournalRecord, RecordEntry, head_sectors};
use super::stripe_buffer::{StripeBuffer, StripeBuffers, WriteData};
use super::superblock::{MemberState, lost_max};
use super::sync::Synced;
use super::{
    AT_ONCE, Failures, MemberIo, NoSpace, Op, Ops, PLANNER, State, Volume, VolumeError, WriteHole,
    failures, is_degraded, pair,
};
use traxtent_layout::raid::Level;
use traxtent_units::{Lbn, Sectors};

/// The largest number of stripes that are written together. Longer requests are split.
const STRIPES_AT_ONCE: usize = 32;

/// The outcome of an attempt to write, or to make its record durable.
enum Attempt {
    /// It succeeded, except on the members that failed.
    Done(Failures),
    /// Nothing was written. The journal has to be settled first.
    Unsettled,
    /// Nothing was written in place. All members to which the record was written failed.
    Unrecorded(Failures),
}

impl<M: MemberIo> Volume<M> {
    /// Writes whole sectors. Reads see them once this returns; a flush makes them durable.
    ///
    /// # Errors
    /// Returns an error if the length is not a whole number of sectors, if the range is not within
    /// the volume, if the volume is stopped, broken or open for reading only, if a member has no
    /// space, if the journal is too small for a stripe, if sectors needed to compute parity cannot
    /// be read, if too many members fail, or if a superblock cannot list the ranges that remain
    /// lost.
    pub async fn write(&self, at: Lbn, data: &[u8]) -> Result<(), VolumeError> {
        let range = self.check(at, data.len())?;
        if self.level() == Level::Raid0 {
            return self.write_unprotected(range, data).await;
        }
        let (mut from, mut rest) = (range.start, data);
        while from < range.end {
            let (end, record) = self.window(from..range.end)?;
            let (now, later) = rest.split_at((end.0 - from.0) as usize * self.sector_bytes);
            self.write_window(from..end, now, record).await?;
            (from, rest) = (end, later);
        }
        Ok(())
    }

    /// Writes parts of stripes independently, since there is no redundancy to keep consistent.
    async fn write_unprotected(&self, range: Range<Lbn>, data: &[u8]) -> Result<(), VolumeError> {
        let state = self.gate.read().await;
        self.check_open(&state)?;
        self.ring().dirty = true;
        let mut work = self.take_buffers();
        let mut failed = Failures::new();
        let mut ops = Ops::new();
        let mut rest = data;
        for (stripe, part) in self.array.stripes_of(range) {
            let buffer = self.prepare_buffer(&mut work, 0, &state, &stripe, part.clone());
            let planned = PLANNER.write(&stripe, part, buffer.health, &mut buffer.plan);
            planned.map_err(no_plan)?;
            self.reserve(&state, std::slice::from_ref(buffer))?;
            for write in &buffer.plan.writes {
                let sectors = (write.rows.end - write.rows.start) as usize;
                let (now, later) = rest.split_at(sectors * self.sector_bytes);
                ops.push(Op::write(write.member, write.lbn, now));
                rest = later;
                if ops.len() == AT_ONCE {
                    self.members.run(&mut ops).await;
                    failed.extend(failures(&ops));
                    ops.clear();
                }
            }
        }
        self.members.run(&mut ops).await;
        failed.extend(failures(&ops));
        self.return_buffers(work);
        drop(state);
        self.fail_all(failed).await
    }

    fn check_open(&self, state: &State) -> Result<(), VolumeError> {
        if state.broken {
            return Err(self.broken(state));
        }
        if state.stopped {
            return Err(VolumeError::Stopped);
        }
        if state.read_only {
            return Err(VolumeError::ReadOnly);
        }
        Ok(())
    }

    pub(super) fn journals(&self) -> bool {
        self.hole == WriteHole::Closed && self.level() != Level::Raid0
    }

    /// Returns the end of the next part to write at once, and the largest number of sectors that
    /// its record can take.
    fn window(&self, range: Range<Lbn>) -> Result<(Lbn, u64), VolumeError> {
        let first = range.start;
        let (mut to, mut sectors) = (first, 0);
        let (mut entries, mut data) = (0, 0);
        let journals = self.journals();
        let most = if journals {
            self.ring().record_max()
        } else {
            0
        };
        for (stripe, part) in self.array.stripes_of(range).take(STRIPES_AT_ONCE) {
            if journals {
                // A data chunk is written as one extent, parity as at most two.
                entries += stripe.members() + 1;
                if let Some(parity) = stripe.parity_member() {
                    data += part.end.0 - part.start.0 + stripe.sectors_on(parity).0;
                }
                let needed = head_sectors(entries, self.sector_bytes) as u64 + data;
                if needed > most {
                    if to > first {
                        break;
                    }
                    return Err(VolumeError::Journal {
                        journal: Sectors(self.ring().size()),
                        needed: Sectors(JournalSpace::size_for(needed)),
                    });
                }
                sectors = needed;
            }
            to = part.end;
        }
        Ok((to, sectors))
    }

    async fn write_window(
        &self,
        range: Range<Lbn>,
        data: &[u8],
        record: u64,
    ) -> Result<(), VolumeError> {
        let mut synced = Synced::new();
        let failed = loop {
            // Space is reserved first: a caller that holds the gate must not wait for the journal
            // to be settled.
            if record > 0 && !self.ring().reserve(record) {
                let mut state = self.gate.write().await;
                self.settle(&mut state, true).await?;
                continue;
            }
            let done = self.write_once(range.clone(), data).await;
            if record > 0 {
                self.ring().release(record);
            }
            match done {
                Err(VolumeError::Unreadable(sector))
                    if self.sync_for(sector, &mut synced).await => {}
                Err(error) => return Err(error),
                Ok(Attempt::Done(failed)) => break failed,
                // The remaining members take the record, if they are enough.
                Ok(Attempt::Unrecorded(failed)) => self.fail_all(failed).await?,
                Ok(Attempt::Unsettled) => {
                    let mut state = self.gate.write().await;
                    self.settle(&mut state, true).await?;
                }
            }
        };
        self.fail_all(failed).await?;
        self.clear_lost(range).await
    }

    /// Attempts the write once.
    async fn write_once(&self, range: Range<Lbn>, data: &[u8]) -> Result<Attempt, VolumeError> {
        let state = self.gate.read().await;
        self.check_open(&state)?;
        let stripes = || {
            let all = self.array.stripes_of(range.clone());
            all.map(|(stripe, part)| (self.lock_of(stripe.number()), stripe, part))
        };
        let mut locks: SmallVec<[usize; STRIPES_AT_ONCE]> =
            stripes().map(|(lock, ..)| lock).collect();
        locks.sort_unstable();
        locks.dedup();
        let mut held: SmallVec<[_; STRIPES_AT_ONCE]> = SmallVec::new();
        for lock in locks {
            held.push(self.stripes[lock].lock().await);
        }
        let given = WriteData {
            first: range.start,
            bytes: data,
        };
        let mut work = self.take_buffers();
        let mut count = 0;
        for (_, stripe, part) in stripes() {
            self.prepare_buffer(&mut work, count, &state, &stripe, part);
            count += 1;
        }
        self.carry_out(
            &mut work.buffers[..count],
            given,
            |stripe, part, health, plan| PLANNER.write(stripe, part, health, plan),
        )
        .await?;
        self.reserve(&state, &work.buffers[..count])?;
        let mut attempt = self.write_record(&state, &mut work, count, given).await;
        if let Attempt::Done(failed) = &mut attempt {
            failed.extend(self.write_planned(&work.buffers[..count], given).await);
            failed.sort_unstable();
            failed.dedup();
        }
        self.return_buffers(work);
        Ok(attempt)
    }

    /// Checks that members have space for the writes of plans, and for the journal.
    pub(super) fn reserve(
        &self,
        state: &State,
        buffers: &[StripeBuffer<M::Buffer>],
    ) -> Result<(), VolumeError> {
        let members = state.superblock.members.iter().enumerate();
        let active = members.filter(|(_, member)| member.state == MemberState::Active);
        let journal = &state.superblock.journal;
        let journals = active.map(|(member, _)| (member, journal.clone()));
        let writes = buffers.iter().flat_map(|buffer| &buffer.plan.writes);
        let writes = writes.map(|write| {
            let sectors = Sectors(write.rows.end - write.rows.start);
            (write.member, write.lbn..write.lbn + sectors)
        });
        let mut all = journals.chain(writes);
        all.try_for_each(|(member, sectors)| {
            let reserved = self.members.reserve(member, sectors);
            reserved.map_err(|NoSpace| VolumeError::NoSpace { member })
        })
    }

    /// Returns the kind of record that the journal needs before a stripe is written.
    fn kind(
        &self,
        buffer: &StripeBuffer<M::Buffer>,
        before: Option<RecordKind>,
        degraded: bool,
    ) -> Option<RecordKind> {
        let journals = self.journals();
        match self.level() {
            Level::Raid0 => None,
            Level::Raid1 => {
                (journals && buffer.plan.writes.len() > 1).then_some(RecordKind::Intended)
            }
            // There is no parity to update, or its member is gone.
            Level::Raid4 | Level::Raid5 if buffer.plan.sums.is_empty() => None,
            Level::Raid4 | Level::Raid5 => {
                let whole = buffer.is_whole && !degraded && before != Some(RecordKind::Logged);
                journals.then_some(if whole {
                    RecordKind::Intended
                } else {
                    RecordKind::Logged
                })
            }
        }
    }

    /// Makes a record durable before anything is written in place.
    async fn write_record(
        &self,
        state: &State,
        work: &mut StripeBuffers<M::Buffer>,
        count: usize,
        given: WriteData<'_>,
    ) -> Attempt {
        let bytes = self.sector_bytes;
        let StripeBuffers { buffers, entries } = work;
        let buffers = &buffers[..count];
        let mut logged: SmallVec<[&StripeBuffer<M::Buffer>; STRIPES_AT_ONCE]> = SmallVec::new();
        let mut new: SmallVec<[u64; STRIPES_AT_ONCE]> = SmallVec::new();
        let degraded = is_degraded(&state.superblock);
        entries.clear();
        {
            let mut ring = self.ring();
            let mut kinds: SmallVec<[(u64, RecordKind); STRIPES_AT_ONCE]> = SmallVec::new();
            for buffer in buffers {
                let stripe = buffer.plan.stripe;
                let before = ring.kind(stripe);
                let kind = self.kind(buffer, before, degraded);
                ring.dirty |= kind != Some(RecordKind::Logged);
                let Some(kind) = kind else { continue };
                match (kind, before) {
                    (RecordKind::Logged, Some(RecordKind::Intended)) => return Attempt::Unsettled,
                    (RecordKind::Logged, _) => logged.push(buffer),
                    (RecordKind::Intended, None) => entries.push(RecordEntry::Intent { stripe }),
                    // A record of the intent already exists.
                    (RecordKind::Intended, Some(_)) => continue,
                }
                kinds.push((stripe, kind));
            }
            for (stripe, kind) in kinds {
                if ring.set_kind(stripe, kind) {
                    new.push(stripe);
                }
            }
        }
        for buffer in &logged {
            entries.extend(buffer.plan.writes.iter().map(|write| RecordEntry::Place {
                stripe: buffer.plan.stripe,
                member: write.member as u32,
                at: write.lbn,
                sectors: (write.rows.end - write.rows.start) as u32,
            }));
        }
        if entries.is_empty() {
            return Attempt::Done(Failures::new());
        }
        let mut record = JournalRecord {
            volume: state.superblock.volume,
            epoch: state.superblock.epoch,
            sequence: 0,
            tail: 0,
            position: 0,
            entries: std::mem::take(entries),
        };
        let sectors = record.sectors(bytes);
        {
            let mut ring = self.ring();
            (record.position, record.sequence) = ring.take(sectors as u64);
            record.tail = ring.tail;
        }
        let mut buffer = self.members.buffer(sectors * bytes);
        let mut end = head_sectors(record.entries.len(), bytes) * bytes;
        for (_, bytes) in logged.iter().flat_map(|buffer| buffer.writes(given)) {
            buffer[end..end + bytes.len()].copy_from_slice(bytes);
            end += bytes.len();
        }
        record.seal(&mut buffer, bytes);
        *entries = record.entries;
        let at = state.superblock.journal.start + Sectors(record.position);
        let pair = pair(&state.superblock, record.sequence);
        let mut ops: Ops<'_> = pair
            .iter()
            .map(|&member| Op::write(member, at, &buffer))
            .collect();
        self.members.run(&mut ops).await;
        let mut failed = failures(&ops);
        failed.extend(self.flush_members(&pair).await);
        failed.sort_unstable();
        failed.dedup();
        if failed.len() == pair.len() {
            // The record is not durable on any member.
            let mut ring = self.ring();
            new.iter().for_each(|stripe| ring.forget(*stripe));
            return Attempt::Unrecorded(failed);
        }
        Attempt::Done(failed)
    }

    /// Removes newly written sectors from the list of lost ranges.
    async fn clear_lost(&self, range: Range<Lbn>) -> Result<(), VolumeError> {
        let overlaps = |lost: &Range<u64>| lost.start < range.end.0 && range.start.0 < lost.end;
        if !self.gate.read().await.superblock.lost.iter().any(overlaps) {
            return Ok(());
        }
        let mut state = self.gate.write().await;
        // The new data must be durable before the sectors cease to be recorded as lost.
        self.settle(&mut state, true).await?;
        let mut left = Vec::new();
        for lost in &state.superblock.lost {
            for part in [
                lost.start..lost.end.min(range.start.0),
                lost.start.max(range.end.0)..lost.end,
            ] {
                if part.start < part.end {
                    left.push(part);
                }
            }
        }
        let most = lost_max(state.superblock.members.len());
        if left.len() > most {
            return Err(VolumeError::TooMuchLost(most));
        }
        state.superblock.lost = left;
        self.persist(&mut state).await
    }

    /// Counts repaired sectors.
    pub(super) fn count_repair(&self, sectors: Sectors) {
        self.repaired.fetch_add(sectors.0, Ordering::Relaxed);
    }
}
