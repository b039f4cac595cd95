//! The contents of a stripe on its members, row by row, for syncs and scrubs.
//!
//! A row has one sector of each chunk that is long enough. In a consistent stripe with parity, the
//! exclusive or of a row is zero. In a consistent stripe of RAID-1, all sectors of a row are equal.

use std::ops::Range;

use smallvec::SmallVec;

use super::{Action, Failures, MemberIo, NoSpace, Op, Ops, State, Volume, VolumeError, failures};
use traxtent_layout::raid::{Chunk, Stripe};
use traxtent_units::Sectors;

/// A chunk that was read.
#[derive(Debug)]
pub(super) struct ChunkRows<B> {
    pub(super) chunk: Chunk,
    pub(super) bytes: B,
    /// Rows that could not be read, ascending. Their bytes are zeros.
    pub(super) unreadable: Vec<u64>,
    /// Rows that were changed after they were read, ascending.
    changed: Vec<u64>,
}

/// The chunks of a stripe on the members that are valid for it.
#[derive(Debug)]
pub(super) struct StripeRows<B> {
    pub(super) chunks: SmallVec<[ChunkRows<B>; 8]>,
    /// Whether all chunks of the stripe are included.
    pub(super) is_complete: bool,
    sector_bytes: usize,
}

impl<B: std::ops::DerefMut<Target = [u8]>> ChunkRows<B> {
    fn has(&self, row: u64) -> bool {
        row < self.chunk.sectors.0
    }

    pub(super) fn can_read(&self, row: u64) -> bool {
        self.unreadable.binary_search(&row).is_err()
    }

    pub(super) fn row(&self, row: u64, sector_bytes: usize) -> &[u8] {
        &self.bytes[row as usize * sector_bytes..][..sector_bytes]
    }

    /// Replaces a row, and marks it as readable.
    pub(super) fn set_row(&mut self, row: u64, bytes: &[u8]) {
        self.bytes[row as usize * bytes.len()..][..bytes.len()].copy_from_slice(bytes);
        self.unreadable.retain(|other| *other != row);
        if self.changed.last() != Some(&row) {
            self.changed.push(row);
        }
    }
}

impl<B: std::ops::DerefMut<Target = [u8]>> StripeRows<B> {
    /// Returns the rows of the longest chunk.
    pub(super) fn rows(&self) -> Range<u64> {
        let sectors = self.chunks.iter().map(|chunk| chunk.chunk.sectors.0);
        0..sectors.max().unwrap_or(0)
    }

    /// Returns whether all chunks could be read and are equal.
    pub(super) fn all_equal(&self) -> bool {
        let all_read = self.chunks.iter().all(|chunk| chunk.unreadable.is_empty());
        let mut pairs = self.chunks.windows(2);
        all_read && pairs.all(|pair| *pair[0].bytes == *pair[1].bytes)
    }

    /// Returns the number of changed rows in all chunks.
    pub(super) fn changed(&self) -> Sectors {
        Sectors(
            self.chunks
                .iter()
                .map(|chunk| chunk.changed.len() as u64)
                .sum(),
        )
    }

    /// Returns the indexes of the chunks that have a row.
    pub(super) fn with(&self, row: u64) -> impl Iterator<Item = usize> {
        (0..self.chunks.len()).filter(move |index| self.chunks[*index].has(row))
    }

    /// Returns the indexes of the chunks whose sector in a row cannot be read.
    pub(super) fn unreadable_at(&self, row: u64) -> SmallVec<[usize; 4]> {
        self.with(row)
            .filter(|index| !self.chunks[*index].can_read(row))
            .collect()
    }

    /// Computes the exclusive or of a row, without the chunk of the index `without`.
    pub(super) fn sum(&self, row: u64, without: Option<usize>, into: &mut [u8]) {
        into.fill(0);
        for index in self.with(row).filter(|index| Some(*index) != without) {
            let bytes = self.chunks[index].row(row, self.sector_bytes);
            into.iter_mut()
                .zip(bytes)
                .for_each(|(sum, byte)| *sum ^= byte);
        }
    }
}

impl<M: MemberIo> Volume<M> {
    /// Reads a stripe whose lock is held, from all members that are valid for it. If a member
    /// cannot read its chunk in one request, the chunk is read sector by sector.
    pub(super) async fn read_rows(
        &self,
        state: &State,
        stripe: &Stripe<'_>,
    ) -> StripeRows<M::Buffer> {
        let bytes = self.sector_bytes;
        let all = stripe.chunks().filter(|chunk| chunk.sectors.0 > 0);
        let here = all.filter(|chunk| self.is_live(state, chunk.member, stripe.number()));
        let mut chunks: SmallVec<[ChunkRows<M::Buffer>; 8]> = here
            .map(|chunk| ChunkRows {
                chunk,
                bytes: self.members.buffer(chunk.sectors.0 as usize * bytes),
                unreadable: Vec::new(),
                changed: Vec::new(),
            })
            .collect();
        let mut ops = Ops::new();
        for rows in &mut chunks {
            ops.push(Op::read(rows.chunk.member, rows.chunk.lbn, &mut rows.bytes));
        }
        self.members.run(&mut ops).await;
        let mut unreadable: SmallVec<[(usize, Vec<u64>); 2]> = SmallVec::new();
        for op in ops {
            let (Err(_), Action::Read(at, into)) = (op.outcome, op.action) else {
                continue;
            };
            let mut rows = Vec::new();
            for (row, sector) in into.chunks_exact_mut(bytes).enumerate() {
                let mut ops = [Op::read(op.member, at + Sectors(row as u64), sector)];
                self.members.run(&mut ops).await;
                if ops[0].outcome.is_err() {
                    sector.fill(0);
                    rows.push(row as u64);
                }
            }
            unreadable.push((op.member, rows));
        }
        for (member, rows) in unreadable {
            let mut chunks = chunks.iter_mut();
            let of = chunks.find(|chunk| chunk.chunk.member == member);
            of.expect("the chunk was read").unreadable = rows;
        }
        let members = stripe.chunks().filter(|chunk| chunk.sectors.0 > 0).count();
        StripeRows {
            is_complete: chunks.len() == members,
            chunks,
            sector_bytes: bytes,
        }
    }

    /// Writes the rows that have changed. Returns the members that failed.
    ///
    /// # Errors
    /// Returns an error if a member has no space for them. Nothing is written in that case.
    pub(super) async fn write_changed(
        &self,
        rows: &StripeRows<M::Buffer>,
    ) -> Result<Failures, VolumeError> {
        let bytes = self.sector_bytes;
        let mut ops = Ops::new();
        for chunk in &rows.chunks {
            for run in chunk.changed.chunk_by(|row, next| row + 1 == *next) {
                let first = run[0] as usize * bytes;
                let data = &chunk.bytes[first..first + run.len() * bytes];
                let at = chunk.chunk.lbn + Sectors(run[0]);
                let (member, sectors) = (chunk.chunk.member, Sectors(run.len() as u64));
                let reserved = self.members.reserve(member, at..at + sectors);
                reserved.map_err(|NoSpace| VolumeError::NoSpace { member })?;
                ops.push(Op::write(chunk.chunk.member, at, data));
            }
        }
        if ops.is_empty() {
            return Ok(Failures::new());
        }
        self.ring().dirty = true;
        self.members.run(&mut ops).await;
        Ok(failures(&ops))
    }

    /// Returns the volume's sector in the first data chunk of a row.
    pub(super) fn sector_of(stripe: &Stripe<'_>, row: u64) -> traxtent_units::Lbn {
        let mut sectors = stripe.chunks().filter(|chunk| row < chunk.sectors.0);
        let sector = sectors.find_map(|chunk| stripe.logical_at(chunk.member, row));
        sector.unwrap_or(stripe.logical().start)
    }

    /// Returns whether a row has no sectors recorded as lost. Parity cannot be checked for rows
    /// with lost sectors.
    pub(super) fn is_kept(state: &State, stripe: &Stripe<'_>, row: u64) -> bool {
        let lost = &state.superblock.lost;
        lost.is_empty()
            || stripe
                .chunks()
                .filter(|chunk| row < chunk.sectors.0)
                .filter_map(|chunk| stripe.logical_at(chunk.member, row))
                .all(|sector| !lost.iter().any(|lost| lost.contains(&sector.0)))
    }

    /// Returns the error for a sector of a row that cannot be read.
    pub(super) fn unreadable(stripe: &Stripe<'_>, row: u64) -> VolumeError {
        VolumeError::Unreadable(Self::sector_of(stripe, row))
    }
}
