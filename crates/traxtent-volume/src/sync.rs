//! The initial sync, which makes parity and replicas consistent with the data in stripes that may
//! never have been initialized.
//!
//! A sync chooses by itself which data is right. It is therefore a separate step, done once for a
//! new volume. Recovery uses the same code for RAID-1 stripes that were being written during a
//! crash. Reads and writes use it for stripes that have an unreadable sector before the initial
//! sync has reached them. Later inconsistencies are left to a scrub.

use smallvec::SmallVec;

use super::stripe_rows::StripeRows;
use super::{Failures, MemberIo, State, Volume, VolumeError};
use traxtent_layout::raid::{Level, Stripe};
use traxtent_units::{Lbn, Sectors};

/// Stripes for which a sync has been considered for one request, because of an unreadable sector.
pub(super) type Synced = SmallVec<[u64; 2]>;

/// The outcome of a sync of one stripe.
#[derive(Default)]
struct SyncedRows {
    /// The number of sectors to be written.
    changed: Sectors,
    /// The number of these sectors that could not be read.
    repaired: Sectors,
    /// The first row that can neither be read nor computed.
    unreadable: Option<u64>,
}

impl<M: MemberIo> Volume<M> {
    /// Makes the parity or the replicas of a stripe consistent with its data. Replicas take the
    /// contents of the first member that can be read, with doubtful members last. Returns the
    /// number of sectors written.
    ///
    /// # Errors
    /// Returns an error if a sector can neither be read nor computed, in which case the other rows
    /// are still synced. If a member's write failed as well, the member is marked failed instead,
    /// and the next call reports the sector. Also returns an error if a member has no space, or if
    /// too many members fail, or if the volume is open for reading only.
    ///
    /// # Panics
    /// Panics if there is no such stripe.
    pub async fn sync(&self, number: u64) -> Result<Sectors, VolumeError> {
        let (written, failed) = {
            let state = self.gate.read().await;
            if state.read_only {
                return Err(VolumeError::ReadOnly);
            }
            let stripe = self.stripe(number);
            let _lock = self.stripes[self.lock_of(number)].lock().await;
            self.sync_held(&state, &stripe).await?
        };
        self.fail_all(failed).await?;
        Ok(written)
    }

    /// Syncs a stripe whose lock is held, like [`Volume::sync`]. Also returns the members that
    /// failed to write.
    pub(super) async fn sync_held(
        &self,
        state: &State,
        stripe: &Stripe<'_>,
    ) -> Result<(Sectors, Failures), VolumeError> {
        let mut rows = self.read_rows(state, stripe).await;
        let synced = match (self.level(), stripe.parity_member()) {
            (_, Some(parity)) => self.sync_parity(parity, &mut rows),
            (Level::Raid1, None) => self.sync_replicas(state, &mut rows),
            (_, None) => SyncedRows::default(),
        };
        let failed = self.write_changed(&rows).await?;
        if failed.is_empty() {
            self.count_repair(synced.repaired);
        }
        match synced.unreadable {
            // The caller must first mark the failed members.
            Some(row) if failed.is_empty() => Err(Self::unreadable(stripe, row)),
            _ => Ok((synced.changed, failed)),
        }
    }

    /// Sets the parity of each row to the exclusive or of its data. If one sector of a row cannot
    /// be read, that sector is computed from the others instead. Does nothing if a member is
    /// absent.
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
                synced.changed.0 += 1;
            }
        }
        synced
    }

    /// Sets all replicas of each row to the contents of one of them.
    fn sync_replicas(&self, state: &State, rows: &mut StripeRows<M::Buffer>) -> SyncedRows {
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
                    synced.changed.0 += 1;
                }
            }
        }
        synced
    }

    /// Syncs the stripe of an unreadable sector if the stripe's parity may never have been
    /// initialized. The sector then has the computed contents. Returns false if this does not help,
    /// or if the stripe has already been synced for this request.
    pub(super) async fn sync_for(&self, sector: Lbn, done: &mut Synced) -> bool {
        let stripe = self.stripe_of(sector);
        let number = stripe.number();
        let may_help = {
            let state = self.gate.read().await;
            let is_open = !state.broken && !state.stopped && !state.read_only;
            let is_synced = stripe.parity_member().is_none() || number < state.superblock.synced;
            is_open && !is_synced && !done.contains(&number)
        };
        done.push(number);
        may_help && self.sync(number).await.is_ok()
    }

    /// Makes the progress of the initial sync durable: stripes before `next` are done.
    ///
    /// # Errors
    /// Returns an error if too many members fail.
    pub async fn sync_checkpoint(&self, next: u64) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        self.settle(&mut state, true).await?;
        state.superblock.synced = state.superblock.synced.max(next);
        self.persist(&mut state).await
    }
}
