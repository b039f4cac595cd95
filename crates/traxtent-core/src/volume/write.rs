//! Writing.

use std::ops::Range;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::record::{Entry, Record, head_sectors};
use super::ring::Kind;
use super::superblock::lost_max;
use super::xor::xor;
use super::{
    Failures, Members, Op, Ops, State, Stripe, Volume, VolumeError, WriteHole, failures,
    is_degraded, pair,
};
use crate::layout::raid::Level;
use crate::units::{Lbn, Sectors};

/// A request is cut so that none takes more stripes at a time.
const STRIPES_AT_ONCE: usize = 32;

/// What is done with a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Data as they are: nothing is computed from them, or the member with the parity is gone.
    Plain,
    /// Data to each copy.
    Copies,
    /// Parity from the new data alone.
    Whole,
    /// Parity from the old parity, old and new data.
    Modify,
    /// Parity from new data and from those that stay.
    Reconstruct,
    /// Like `Modify`; the old data of this column are computed from all others.
    Recover(usize),
}

/// A stripe being written.
struct Work<B> {
    stripe: Stripe,
    /// The rows of each column that are written, by column; empty if none.
    touched: SmallVec<[Range<u32>; 8]>,
    /// The rows from the first to the last of them.
    hull: Range<u32>,
    how: How,
    /// A member that could not read.
    unreadable: Option<usize>,
    /// The rows of the hull: of each column, then of the parity. Of the parity alone where the stripe is whole.
    buffer: Option<B>,
}

impl<M: Members> Volume<M> {
    /// Writes whole sectors. When it returns, reads see them; a flush makes them durable.
    ///
    /// # Errors
    /// If the volume has no such sectors, has stopped, or has lost too many members.
    pub async fn write(&self, at: Lbn, data: &[u8]) -> Result<(), VolumeError> {
        let range = self.check(at, data.len())?;
        let (mut from, mut rest) = (range.start, data);
        while from < range.end {
            let (end, record) = self.window(from, range.end)?;
            let (now, later) = rest.split_at((end.0 - from.0) as usize * self.sector_bytes);
            self.write_window(from..end, now, record).await?;
            (from, rest) = (end, later);
        }
        Ok(())
    }

    pub(super) fn journals(&self) -> bool {
        self.hole == WriteHole::Closed && self.placement.level() != Level::Raid0
    }

    /// How far to write at once, and the sectors that a record of it can take.
    fn window(&self, from: Lbn, end: Lbn) -> Result<(Lbn, u64), VolumeError> {
        let first = self.placement.stripe_of(from);
        let (mut entries, mut data) = (0, 0);
        let (mut to, mut sectors) = (from, 0);
        let most = self.ring().record_max();
        for number in (first..).take(STRIPES_AT_ONCE) {
            if to >= end {
                break;
            }
            let stripe = self.placement.stripe(number);
            if self.journals() {
                entries += stripe.columns.len() + stripe.checks.len();
                if self.placement.level() != Level::Raid1 {
                    data += stripe.end().0.min(end.0) - stripe.first().0.max(from.0);
                    data += u64::from(stripe.rows());
                }
                let needed = head_sectors(entries, self.sector_bytes) as u64 + data;
                if needed > most {
                    if to > from {
                        break;
                    }
                    let journal = Sectors(most * 4);
                    return Err(VolumeError::Journal {
                        journal,
                        needed: Sectors(needed * 4),
                    });
                }
                sectors = needed;
            }
            to = stripe.end().min(end);
        }
        Ok((to, sectors))
    }

    async fn write_window(
        &self,
        range: Range<Lbn>,
        data: &[u8],
        record: u64,
    ) -> Result<(), VolumeError> {
        let failed = loop {
            // Room first: whoever holds the gate must not wait for the journal to be settled.
            if !self.ring().reserve(record) {
                let mut state = self.gate.write().await;
                self.settle(&mut state, true).await?;
                continue;
            }
            let done = self.write_once(range.clone(), data).await;
            self.ring().release(record);
            match done? {
                Some(failed) => break failed,
                None => {
                    let mut state = self.gate.write().await;
                    self.settle(&mut state, true).await?;
                }
            }
        };
        self.fail_all(failed).await?;
        self.found_again(range).await
    }

    /// `None` if the journal has to be settled first.
    async fn write_once(
        &self,
        range: Range<Lbn>,
        data: &[u8],
    ) -> Result<Option<Failures>, VolumeError> {
        let state = self.gate.read().await;
        if state.broken {
            return Err(self.broken(&state));
        }
        if state.stopped {
            return Err(VolumeError::Stopped);
        }
        let numbers = self.placement.stripe_of(range.start)
            ..self.placement.stripe_of(range.end - Sectors(1)) + 1;
        let mut locks: SmallVec<[usize; STRIPES_AT_ONCE]> =
            numbers.clone().map(|number| self.lock_of(number)).collect();
        locks.sort_unstable();
        locks.dedup();
        let mut held: SmallVec<[_; STRIPES_AT_ONCE]> = SmallVec::new();
        for lock in locks {
            held.push(self.stripes[lock].lock().await);
        }
        let mut works: SmallVec<[Work<M::Buffer>; 2]> = SmallVec::new();
        for number in numbers {
            let work = self.plan(&state, self.placement.stripe(number), &range)?;
            works.push(work);
        }
        for work in &mut works {
            self.compute(&state, work, &range, data).await?;
        }
        let Some(mut failed) = self.announce(&state, &works, &range, data).await? else {
            return Ok(None);
        };
        let mut ops = Ops::new();
        for work in &works {
            self.places(&state, work, &range, data, |member, at, bytes| {
                ops.push(Op::write(member, at, bytes));
            });
        }
        self.members.run(&mut ops).await;
        failed.extend(failures(&ops));
        failed.sort_unstable();
        failed.dedup();
        Ok(Some(failed))
    }

    fn plan(
        &self,
        state: &State,
        stripe: Stripe,
        range: &Range<Lbn>,
    ) -> Result<Work<M::Buffer>, VolumeError> {
        let touched: SmallVec<[Range<u32>; 8]> = stripe
            .columns
            .iter()
            .map(|column| {
                let from = range.start.max(column.first).min(column.end());
                let to = range.end.min(column.end()).max(from);
                (from.0 - column.first.0) as u32..(to.0 - column.first.0) as u32
            })
            .collect();
        let parts = || touched.iter().filter(|rows| !rows.is_empty());
        let start = parts().map(|rows| rows.start).min().unwrap_or(0);
        let end = parts().map(|rows| rows.end).max().unwrap_or(0);
        let mut work = Work {
            hull: start..end,
            how: How::Plain,
            unreadable: None,
            buffer: None,
            touched,
            stripe,
        };
        work.how = self.how(state, &work)?;
        Ok(work)
    }

    fn how(&self, state: &State, work: &Work<M::Buffer>) -> Result<How, VolumeError> {
        let stripe = &work.stripe;
        let is_live = |member| self.is_live(state, member, stripe.number);
        match self.placement.level() {
            Level::Raid0 => return Ok(How::Plain),
            Level::Raid1 => return Ok(How::Copies),
            Level::Raid4 | Level::Raid5 => {}
        }
        let parity = stripe.checks[0].member;
        if !is_live(parity) {
            return Ok(How::Plain);
        }
        let columns = || stripe.columns.iter().zip(&work.touched);
        if columns().all(|(column, rows)| rows.len() == column.sectors as usize) {
            return Ok(How::Whole);
        }
        let is_readable = |member| is_live(member) && work.unreadable != Some(member);
        let mut absent =
            (0..stripe.columns.len()).filter(|&k| !is_readable(stripe.columns[k].member));
        let (absent, more) = (absent.next(), absent.next());
        let parity_reads = work.unreadable != Some(parity);
        match (absent, more) {
            (_, Some(_)) => Err(VolumeError::Unreadable(stripe.first())),
            (Some(_), None) if !parity_reads => Err(VolumeError::Unreadable(stripe.first())),
            // Its parity may never have been made: then nothing makes up for what cannot be read.
            (Some(k), None)
                if work.unreadable.is_some()
                    && stripe.number >= state.superblock.synced
                    && work.touched[k].len() < work.clipped(k).len() =>
            {
                Err(VolumeError::Unreadable(stripe.first()))
            }
            (Some(k), None) if !work.touched[k].is_empty() => Ok(How::Recover(k)),
            (Some(_), None) => Ok(How::Modify),
            (None, _) if !parity_reads || stripe.number >= state.superblock.synced => {
                Ok(How::Reconstruct)
            }
            (None, _) => {
                let modify: usize =
                    columns().map(|(_, rows)| rows.len()).sum::<usize>() + work.hull.len();
                let others = columns().map(|(column, rows)| {
                    let in_hull =
                        work.hull.start.min(column.sectors)..work.hull.end.min(column.sectors);
                    in_hull.len() - rows.len()
                });
                if modify <= others.sum() {
                    Ok(How::Modify)
                } else {
                    Ok(How::Reconstruct)
                }
            }
        }
    }

    /// Computes the parity of a stripe; what has to be read for it is read.
    async fn compute(
        &self,
        state: &State,
        work: &mut Work<M::Buffer>,
        range: &Range<Lbn>,
        data: &[u8],
    ) -> Result<(), VolumeError> {
        let bytes = self.sector_bytes;
        let length = work.hull.len() * bytes;
        let count = work.stripe.columns.len();
        loop {
            match work.how {
                How::Plain | How::Copies => return Ok(()),
                How::Whole => {
                    let mut parity = self.members.buffer(length);
                    parity.fill(0);
                    for k in 0..count {
                        let new = work.written(k, range, data, bytes);
                        xor(&mut parity[..new.len()], new);
                    }
                    work.buffer = Some(parity);
                    return Ok(());
                }
                How::Modify | How::Reconstruct | How::Recover(_) => {}
            }
            let mut buffer = match work.buffer.take() {
                Some(buffer) => buffer,
                None => self.members.buffer(length * (count + 1)),
            };
            let mut ops = Ops::new();
            for (k, mut part) in buffer.chunks_exact_mut(length).enumerate() {
                let (column, wanted) = match work.stripe.columns.get(k) {
                    Some(column) => (column, work.wanted(k)),
                    None if work.how == How::Reconstruct => continue,
                    None => (&work.stripe.checks[0], [work.hull.clone(), 0..0]),
                };
                let mut row = work.hull.start;
                for rows in wanted.into_iter().filter(|rows| !rows.is_empty()) {
                    let (_, behind) = part.split_at_mut((rows.start - row) as usize * bytes);
                    let (into, behind) = behind.split_at_mut(rows.len() * bytes);
                    ops.push(Op::read(column.member, column.row(rows.start), into));
                    (part, row) = (behind, rows.end);
                }
            }
            self.members.run(&mut ops).await;
            let failed = failures(&ops);
            drop(ops);
            if let Some(&member) = failed.first() {
                if failed.len() > 1 || work.unreadable.is_some() {
                    return Err(VolumeError::Unreadable(work.stripe.first()));
                }
                work.unreadable = Some(member);
                work.how = self.how(state, work)?;
                work.buffer = Some(buffer);
                continue;
            }
            let (columns, parity) = buffer.split_at_mut(length * count);
            let within = |rows: &Range<u32>| match rows.is_empty() {
                true => 0..0,
                false => {
                    let start = (rows.start - work.hull.start) as usize * bytes;
                    start..start + rows.len() * bytes
                }
            };
            if work.how == How::Reconstruct {
                parity.fill(0);
            }
            if let How::Recover(lost) = work.how {
                // The old data there are what all the others add up to.
                let rows = within(&work.touched[lost]);
                let mut old = self.members.buffer(rows.len());
                old.copy_from_slice(&parity[rows.clone()]);
                for (k, part) in columns
                    .chunks_exact(length)
                    .enumerate()
                    .filter(|(k, _)| *k != lost)
                {
                    let has = work.clipped(k);
                    let both = within(
                        &(work.touched[lost].start.min(has.end)
                            ..work.touched[lost].end.min(has.end)),
                    );
                    if !both.is_empty() {
                        xor(&mut old[..both.len()], &part[both]);
                    }
                }
                columns[lost * length..][rows].copy_from_slice(&old);
            }
            for (k, part) in columns.chunks_exact(length).enumerate() {
                let touched = within(&work.touched[k]);
                if !touched.is_empty() {
                    xor(
                        &mut parity[touched.clone()],
                        work.written(k, range, data, bytes),
                    );
                }
                if work.how == How::Reconstruct {
                    for rows in work.wanted(k) {
                        let rows = within(&rows);
                        xor(&mut parity[rows.clone()], &part[rows]);
                    }
                } else if !touched.is_empty() {
                    xor(&mut parity[touched.clone()], &part[touched]);
                }
            }
            work.buffer = Some(buffer);
            return Ok(());
        }
    }

    /// Makes a record durable before anything is written in place. `None` if the journal has to be settled first.
    async fn announce(
        &self,
        state: &State,
        works: &[Work<M::Buffer>],
        range: &Range<Lbn>,
        data: &[u8],
    ) -> Result<Option<Failures>, VolumeError> {
        let bytes = self.sector_bytes;
        let none = Ok(Some(Failures::new()));
        let mut entries: SmallVec<[Entry; 16]> = SmallVec::new();
        let mut logged: SmallVec<[&Work<M::Buffer>; 2]> = SmallVec::new();
        let mut new: SmallVec<[u64; 2]> = SmallVec::new();
        let degraded = is_degraded(&state.superblock);
        {
            let mut ring = self.ring();
            let mut kinds: SmallVec<[(u64, Kind); 2]> = SmallVec::new();
            for work in works {
                let number = work.stripe.number;
                let before = ring.kind(number);
                let copies = || {
                    work.stripe
                        .all()
                        .filter(|column| self.is_live(state, column.member, number))
                        .count()
                };
                let kind = match work.how {
                    _ if !self.journals() => None,
                    How::Plain => None,
                    How::Copies if copies() < 2 => None,
                    How::Copies => Some(Kind::Intended),
                    How::Whole if !degraded && before != Some(Kind::Logged) => Some(Kind::Intended),
                    _ => Some(Kind::Logged),
                };
                ring.dirty |= kind != Some(Kind::Logged);
                let Some(kind) = kind else { continue };
                match (kind, before) {
                    (Kind::Logged, Some(Kind::Intended)) => return Ok(None),
                    (Kind::Logged, _) => logged.push(work),
                    (Kind::Intended, None) => entries.push(Entry::Intent { stripe: number }),
                    // It is announced already.
                    (Kind::Intended, Some(_)) => continue,
                }
                kinds.push((number, kind));
            }
            for (stripe, kind) in kinds {
                if ring.set_kind(stripe, kind) {
                    new.push(stripe);
                }
            }
        }
        for work in &logged {
            let stripe = work.stripe.number;
            self.places(state, work, range, data, |member, at, bytes| {
                entries.push(Entry::Place {
                    stripe,
                    member: member as u32,
                    at,
                    sectors: (bytes.len() / self.sector_bytes) as u32,
                });
            });
        }
        if entries.is_empty() {
            return none;
        }
        let mut record = Record {
            volume: state.superblock.volume,
            epoch: state.superblock.epoch,
            sequence: 0,
            tail: 0,
            position: 0,
            entries: entries.to_vec(),
        };
        let sectors = record.sectors(bytes);
        {
            let mut ring = self.ring();
            (record.position, record.sequence) = ring.take(sectors as u64);
            record.tail = ring.tail;
        }
        let mut buffer = self.members.buffer(sectors * bytes);
        let mut end = head_sectors(entries.len(), bytes) * bytes;
        for work in &logged {
            self.places(state, work, range, data, |_, _, bytes| {
                buffer[end..end + bytes.len()].copy_from_slice(bytes);
                end += bytes.len();
            });
        }
        record.seal(&mut buffer, bytes);
        let at = state.superblock.journal.start + Sectors(record.position);
        let pair = pair(&state.superblock, record.sequence);
        let mut ops: Ops<'_> = pair
            .iter()
            .map(|&member| Op::write(member, at, &buffer))
            .collect();
        self.members.run(&mut ops).await;
        let mut failed = failures(&ops);
        failed.extend(self.sync(&pair).await);
        failed.sort_unstable();
        failed.dedup();
        if failed.len() == pair.len() {
            // Nothing was announced.
            let mut ring = self.ring();
            new.iter().for_each(|stripe| ring.forget(*stripe));
            return Err(VolumeError::Broken {
                failed: failed.len(),
                members: state.superblock.members.len(),
            });
        }
        Ok(Some(failed))
    }

    /// Names all that is written in place.
    fn places<'a>(
        &self,
        state: &State,
        work: &'a Work<M::Buffer>,
        range: &Range<Lbn>,
        data: &'a [u8],
        mut each: impl FnMut(usize, Lbn, &'a [u8]),
    ) {
        let bytes = self.sector_bytes;
        let is_live = |member| self.is_live(state, member, work.stripe.number);
        for (k, column) in work.stripe.columns.iter().enumerate() {
            let rows = &work.touched[k];
            if !rows.is_empty() && is_live(column.member) {
                each(
                    column.member,
                    column.row(rows.start),
                    work.written(k, range, data, bytes),
                );
            }
        }
        for check in &work.stripe.checks {
            if !is_live(check.member) {
                continue;
            }
            match (work.how, &work.buffer) {
                (How::Copies, _) => {
                    let rows = &work.touched[0];
                    each(
                        check.member,
                        check.row(rows.start),
                        work.written(0, range, data, bytes),
                    );
                }
                (_, Some(buffer)) => {
                    let parity = &buffer[buffer.len() - work.hull.len() * bytes..];
                    each(check.member, check.row(work.hull.start), parity);
                }
                (_, None) => {}
            }
        }
    }

    /// Lost sectors that have been written are lost no more.
    async fn found_again(&self, range: Range<Lbn>) -> Result<(), VolumeError> {
        let overlaps = |lost: &Range<u64>| lost.start < range.end.0 && range.start.0 < lost.end;
        if !self.gate.read().await.superblock.lost.iter().any(overlaps) {
            return Ok(());
        }
        let mut state = self.gate.write().await;
        // The new data are durable before the old ones cease to be lost.
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

    /// Counts a repair.
    pub(super) fn count_repair(&self, sectors: u64) {
        self.repaired.fetch_add(sectors, Ordering::Relaxed);
    }
}

impl<B> Work<B> {
    /// What is written to a column.
    fn written<'a>(
        &self,
        k: usize,
        range: &Range<Lbn>,
        data: &'a [u8],
        sector_bytes: usize,
    ) -> &'a [u8] {
        let rows = &self.touched[k];
        if rows.is_empty() {
            return &[];
        }
        let from = self.stripe.columns[k].first.0 + u64::from(rows.start) - range.start.0;
        &data[from as usize * sector_bytes..][..rows.len() * sector_bytes]
    }

    /// The rows of the hull that a column has.
    fn clipped(&self, k: usize) -> Range<u32> {
        let sectors = self.stripe.columns[k].sectors;
        self.hull.start.min(sectors)..self.hull.end.min(sectors)
    }

    /// The rows of a column that have to be read.
    fn wanted(&self, k: usize) -> [Range<u32>; 2] {
        let (touched, hull) = (self.touched[k].clone(), self.clipped(k));
        match self.how {
            How::Plain | How::Copies | How::Whole => [0..0, 0..0],
            How::Modify => [touched, 0..0],
            How::Reconstruct if touched.is_empty() => [hull, 0..0],
            How::Reconstruct => [hull.start..touched.start, touched.end..hull.end],
            How::Recover(lost) if lost == k => [0..0, 0..0],
            How::Recover(_) => [hull, 0..0],
        }
    }
}
