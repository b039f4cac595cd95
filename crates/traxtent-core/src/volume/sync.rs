//! The initial sync: parity and copies are made to agree with the data, where nobody may have made them yet.
//!
//! It decides which side is right without being asked, so it is a step of its own: a new volume has it once. Recovery
//! uses the same for stripes of mirrors that were being written in a crash. What disagrees later is a matter for a scrub.

use smallvec::SmallVec;

use super::stripe_rows::StripeRows;
use super::{Failures, Members, State, Volume, VolumeError};
use crate::layout::raid::{Level, Stripe};
use crate::units::{Lbn, Sectors};

/// Stripes that have been synced since a sector that cannot be read was asked for.
pub(super) type Synced = SmallVec<[u64; 2]>;

/// The outcome of a sync of one stripe.
#[derive(Default)]
struct SyncedRows {
    /// Sectors that change.
    written: Sectors,
    /// Those of them that could not be read.
    repaired: Sectors,
    /// The first row that can neither be read nor computed.
    unreadable: Option<u64>,
}

impl<M: Members> Volume<M> {
    /// Makes the parity or the copies of a stripe agree with its data. Of copies, that on the first member is taken, unless
    /// the member is doubtful and another is not. Returns how many sectors were written.
    ///
    /// # Errors
    /// If a sector can neither be read nor computed (the other rows are synced all the same), or so many members fail that
    /// the volume cannot do without.
    pub async fn sync(&self, number: u64) -> Result<Sectors, VolumeError> {
        let (written, failed) = {
            let state = self.gate.read().await;
            let stripe = self.stripe(number);
            let _lock = self.stripes[self.lock_of(number)].lock().await;
            self.sync_held(&state, &stripe).await?
        };
        self.fail_all(failed).await?;
        Ok(written)
    }

    /// [`Volume::sync`] of a stripe whose lock is held; returns also the members that refused to be written.
    pub(super) async fn sync_held(
        &self,
        state: &State,
        stripe: &Stripe<'_>,
    ) -> Result<(Sectors, Failures), VolumeError> {
        let mut rows = self.read_rows(state, stripe).await;
        let synced = match (self.level(), stripe.parity_member()) {
            (_, Some(parity)) => self.sync_parity(parity, &mut rows),
            (Level::Raid1, None) => self.sync_copies(state, &mut rows),
            (_, None) => SyncedRows::default(),
        };
        let failed = self.write_changed(&rows).await?;
        if failed.is_empty() {
            self.count_repair(synced.repaired);
        }
        match synced.unreadable {
            // Members that failed have to be dropped first.
            Some(row) if failed.is_empty() => Err(Self::unreadable(stripe, row)),
            _ => Ok((synced.written, failed)),
        }
    }

    /// Sets the parity of rows to the sum of their data, and sectors that cannot be read to what parity tells of them.
    fn sync_parity(&self, parity: usize, rows: &mut StripeRows<M::Buffer>) -> SyncedRows {
        let mut synced = SyncedRows::default();
        if !rows.is_complete {
            return synced;
        }
        let mut sum = vec![0; self.sector_bytes];
        for row in rows.rows() {
            let unreadable = rows.unreadable_at(row);
            let target = match unreadable[..] {
                [] => {
                    let is_parity = |index: &usize| rows.chunks[*index].chunk.member == parity;
                    rows.with(row).find(is_parity)
                }
                [one] => Some(one),
                _ => {
                    synced.unreadable.get_or_insert(row);
                    None
                }
            };
            let Some(target) = target else { continue };
            rows.sum(row, Some(target), &mut sum);
            let chunk = &mut rows.chunks[target];
            if !chunk.can_read(row) || chunk.row(row, self.sector_bytes) != sum {
                synced.repaired.0 += u64::from(!chunk.can_read(row));
                chunk.set_row(row, &sum);
                synced.written.0 += 1;
            }
        }
        synced
    }

    /// Sets all copies of rows to one of them.
    fn sync_copies(&self, state: &State, rows: &mut StripeRows<M::Buffer>) -> SyncedRows {
        let mut synced = SyncedRows::default();
        let is_doubtful = |chunk: &usize| {
            let member = rows.chunks[*chunk].chunk.member;
            state.superblock.members[member].doubtful
        };
        let mut order: SmallVec<[usize; 8]> = (0..rows.chunks.len()).collect();
        order.sort_by_key(is_doubtful);
        let mut right = vec![0; self.sector_bytes];
        for row in rows.rows() {
            let mut sources = order
                .iter()
                .filter(|index| rows.chunks[**index].can_read(row));
            let Some(&source) = sources.next() else {
                synced.unreadable.get_or_insert(row);
                continue;
            };
            right.copy_from_slice(rows.chunks[source].row(row, self.sector_bytes));
            for chunk in &mut rows.chunks {
                if !chunk.can_read(row) || chunk.row(row, self.sector_bytes) != right {
                    synced.repaired.0 += u64::from(!chunk.can_read(row));
                    chunk.set_row(row, &right);
                    synced.written.0 += 1;
                }
            }
        }
        synced
    }

    /// Syncs the stripe of a sector that cannot be read, if all that is amiss may be that its parity was never made: from
    /// then on the sector is what was computed. False where that does not help; no stripe is synced twice.
    pub(super) async fn sync_for(&self, sector: Lbn, done: &mut Synced) -> bool {
        let stripe = self.stripe_of(sector);
        let number = stripe.number();
        let may_help = {
            let state = self.gate.read().await;
            let is_open = !state.broken && !state.stopped;
            let is_synced = stripe.parity_member().is_none() || number < state.superblock.synced;
            is_open && !is_synced && !done.contains(&number)
        };
        done.push(number);
        may_help && self.sync(number).await.is_ok()
    }

    /// Makes durable how far the initial sync has come: stripes before `next` are done.
    ///
    /// # Errors
    /// If too many members fail.
    pub async fn sync_checkpoint(&self, next: u64) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        self.settle(&mut state, true).await?;
        state.superblock.synced = state.superblock.synced.max(next);
        self.persist(&mut state).await
    }
}
