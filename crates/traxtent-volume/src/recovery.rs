//! Recovery: replays the writes in the journal, and records lost data.
//!
//! The journal is searched in pieces, on all members at once. Only the positions of records are
//! kept in memory, and each record is read again when it is replayed. Memory therefore does not
//! grow with the journal's size, except for a few dozen bytes per record.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use smallvec::SmallVec;

use super::record::{HEAD_BYTES_MAX, JournalRecord, RecordEntry};
use super::superblock::{Superblock, lost_max};
use super::{Action, Failures, MemberIo, Op, Ops, State, Volume, VolumeError, failures, live};
use traxtent_layout::raid::{ChunkContents, Stripe};
use traxtent_units::Sectors;

/// The number of bytes of each member's journal that are searched at once.
const SEARCH_BYTES: usize = 1 << 20;

/// The position of a record.
struct RecordPosition {
    /// The record's first sector, counted from the beginning of the journal.
    position: u64,
    /// The number of sectors of its head and data.
    sectors: usize,
    /// The members that have its head.
    members: SmallVec<[u8; 2]>,
}

impl<M: MemberIo> Volume<M> {
    /// Replays the journal. Returns the number of records replayed, and the ranges that are lost.
    pub(super) async fn replay(
        &self,
        state: &State,
    ) -> Result<(u64, Vec<Range<u64>>), VolumeError> {
        let mut records = 0;
        let mut intents = BTreeSet::new();
        for place in self.search(&state.superblock).await.into_values() {
            let Some((record, data)) = self.record_at(&state.superblock, &place).await else {
                // The record never became durable, so none of its writes was started.
                continue;
            };
            for entry in &record.entries {
                if let RecordEntry::Intent { stripe } = *entry
                    && stripe < self.array.stripes()
                {
                    intents.insert(stripe);
                }
            }
            self.replay_record(state, &record, &data).await?;
            records += u64::from(!record.entries.is_empty());
        }
        let mut lost = Vec::new();
        for number in intents {
            let stripe = self.stripe(number);
            self.resync(state, &stripe, &mut lost).await?;
        }
        let mut ops: Ops<'_> = live(&state.superblock).map(Op::flush).collect();
        self.members.run(&mut ops).await;
        check_no_failures(&failures(&ops))?;
        Ok((records, lost))
    }

    /// Writes the data of a record to its places.
    async fn replay_record(
        &self,
        state: &State,
        record: &JournalRecord,
        data: &[u8],
    ) -> Result<(), VolumeError> {
        let mut rest = data;
        let mut ops = Ops::new();
        for entry in &record.entries {
            let RecordEntry::Place {
                stripe,
                member,
                at,
                sectors,
            } = *entry
            else {
                continue;
            };
            let (now, later) = rest.split_at(sectors as usize * self.sector_bytes);
            rest = later;
            let entry = state.superblock.members.get(member as usize);
            let end = at.0.checked_add(sectors.into());
            let fits = entry
                .zip(end)
                .is_some_and(|(entry, end)| at >= entry.data.start && end <= entry.data.end.0);
            if !fits {
                return Err(VolumeError::Record { member, at });
            }
            if self.is_live(state, member as usize, stripe) {
                ops.push(Op::write(member as usize, at, now));
            }
        }
        self.members.run(&mut ops).await;
        check_no_failures(&failures(&ops))
    }

    /// Returns the positions of the records that are not settled, keyed by sequence number.
    async fn search(&self, superblock: &Superblock) -> BTreeMap<u64, RecordPosition> {
        let bytes = self.sector_bytes;
        let journal = superblock.journal.end.0 - superblock.journal.start.0;
        let step = (SEARCH_BYTES / bytes) as u64;
        // A head that begins in one piece may end in the next.
        let overlap = HEAD_BYTES_MAX.div_ceil(bytes) as u64;
        let members: SmallVec<[usize; 8]> = live(superblock).collect();
        let mut records: BTreeMap<u64, RecordPosition> = BTreeMap::new();
        let mut tail = 0;
        for first in (0..journal).step_by(step as usize) {
            let end = (first + step).min(journal);
            let sectors = (end + overlap).min(journal) - first;
            let pieces = self.pieces(superblock, &members, first, sectors).await;
            for (&member, piece) in members.iter().zip(&pieces) {
                for position in first..end {
                    let at = (position - first) as usize * bytes;
                    let (volume, epoch) = (superblock.volume, superblock.epoch);
                    let head =
                        JournalRecord::read_head(&piece[at..], position, volume, epoch, bytes);
                    let Some((record, _)) = head else { continue };
                    tail = tail.max(record.tail);
                    let sectors = record.sectors(bytes);
                    if record.sequence >= tail && position + sectors as u64 <= journal {
                        let place =
                            records
                                .entry(record.sequence)
                                .or_insert_with(|| RecordPosition {
                                    position,
                                    sectors,
                                    members: SmallVec::new(),
                                });
                        if (place.position, place.sectors) == (position, sectors) {
                            place.members.push(member as u8);
                        }
                    }
                }
            }
            if records
                .first_key_value()
                .is_some_and(|(sequence, _)| *sequence < tail)
            {
                records = records.split_off(&tail);
            }
        }
        records
    }

    /// Reads a piece of the journal of each member, with zeros for sectors that cannot be read. The
    /// affected records may have copies on other members.
    async fn pieces(
        &self,
        superblock: &Superblock,
        members: &[usize],
        first: u64,
        sectors: u64,
    ) -> Vec<M::Buffer> {
        let bytes = self.sector_bytes;
        let length = sectors as usize * bytes;
        let at = superblock.journal.start + Sectors(first);
        let mut pieces: Vec<M::Buffer> = members
            .iter()
            .map(|_| self.members.buffer(length))
            .collect();
        let mut ops: Ops<'_> = members
            .iter()
            .zip(&mut pieces)
            .map(|(&member, piece)| Op::read(member, at, piece))
            .collect();
        self.members.run(&mut ops).await;
        for op in ops {
            let (Err(_), Action::Read(at, piece)) = (op.outcome, op.action) else {
                continue;
            };
            for (index, sector) in piece.chunks_exact_mut(bytes).enumerate() {
                let mut ops = [Op::read(op.member, at + Sectors(index as u64), sector)];
                self.members.run(&mut ops).await;
                if ops[0].outcome.is_err() {
                    sector.fill(0);
                }
            }
        }
        pieces
    }

    /// Returns a record and its data, from the first member that has all of it.
    async fn record_at(
        &self,
        superblock: &Superblock,
        place: &RecordPosition,
    ) -> Option<(JournalRecord, Vec<u8>)> {
        let at = superblock.journal.start + Sectors(place.position);
        let mut bytes = self.members.buffer(place.sectors * self.sector_bytes);
        for &member in &place.members {
            let mut ops = [Op::read(member.into(), at, &mut bytes)];
            self.members.run(&mut ops).await;
            if ops[0].outcome.is_err() {
                continue;
            }
            let found = JournalRecord::read(
                &bytes,
                place.position,
                superblock.volume,
                superblock.epoch,
                self.sector_bytes,
            );
            if let Some((record, data)) = found {
                return Some((record, data.to_vec()));
            }
        }
        None
    }

    /// Makes the parity or the replicas consistent in a stripe that was being written during the
    /// crash. Adds ranges for which this is impossible to `lost`.
    async fn resync(
        &self,
        state: &State,
        stripe: &Stripe<'_>,
        lost: &mut Vec<Range<u64>>,
    ) -> Result<(), VolumeError> {
        let Some(parity) = stripe.parity_member() else {
            return match self.sync_held(state, stripe).await {
                Ok((_, failed)) => check_no_failures(&failed),
                // No replica can be read; reads will report it.
                Err(VolumeError::Unreadable(_)) => Ok(()),
                Err(error) => Err(error),
            };
        };
        let mut buffers = self.take_buffers();
        let buffer = self.prepare_buffer(&mut buffers, 0, state, stripe, stripe.logical());
        if buffer.health.failed.has(parity) {
            return Ok(());
        }
        match self.rewrite(state, parity, &mut buffers.buffers[..1]).await {
            Ok(failed) => check_no_failures(&failed),
            Err(VolumeError::Unreadable(_)) => {
                let absent = buffers.buffers[0].health.absent();
                let gone = stripe.chunks().filter(|chunk| absent.has(chunk.member));
                let gone = gone.filter_map(|chunk| match chunk.holds {
                    ChunkContents::Data(k) => Some(stripe.logical_of(k)),
                    ChunkContents::Parity => None,
                });
                let gone = gone.map(|range| range.start.0..range.end.0);
                lost.extend(gone.filter(|range| !range.is_empty()));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns an error that names the first of the members that failed, if any.
fn check_no_failures(failed: &Failures) -> Result<(), VolumeError> {
    match failed.first() {
        None => Ok(()),
        Some(&member) => Err(VolumeError::Member {
            member,
            problem: "failed while the journal was replayed; omit it",
        }),
    }
}

/// Adds lost ranges to those that a superblock already lists.
///
/// # Errors
/// Returns an error if there are more ranges than the superblock can hold.
pub(super) fn note_lost(
    superblock: &mut Superblock,
    lost: Vec<Range<u64>>,
) -> Result<(), VolumeError> {
    let mut all: Vec<Range<u64>> = superblock.lost.iter().cloned().chain(lost).collect();
    all.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for range in all {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    let most = lost_max(superblock.members.len());
    if merged.len() > most {
        return Err(VolumeError::TooMuchLost(most));
    }
    superblock.lost = merged;
    Ok(())
}
