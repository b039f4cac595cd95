//! A stripe: the chunks that belong together across the members.

use std::ops::Range;

use super::{Array, Level};
use traxtent_units::{Lbn, Sectors};

/// A stripe of an array.
#[derive(Clone, Debug)]
pub struct Stripe<'a> {
    array: &'a Array,
    number: u64,
    logical: Range<Lbn>,
    sizes: &'a [u32],
}

/// The sectors of one member in a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// The member's number, from 0.
    pub member: usize,
    /// The chunk's first LBN on that member.
    pub lbn: Lbn,
    /// The number of sectors.
    pub sectors: Sectors,
    /// The kind of contents.
    pub holds: ChunkContents,
}

/// The kind of contents of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkContents {
    /// The stripe's data chunk with this number, from 0.
    Data(usize),
    /// The exclusive or of all data of the stripe. Each data chunk counts as zero beyond its end.
    Parity,
}

/// The location of a sector of an array.
#[derive(Clone, Debug)]
pub struct Location<'a> {
    /// The stripe of the sector.
    pub stripe: Stripe<'a>,
    /// The number of the data chunk in the stripe.
    pub chunk: usize,
    /// The number of sectors in the chunk before this one.
    pub offset: Sectors,
}

impl<'a> Stripe<'a> {
    pub(super) fn new(array: &'a Array, number: u64, first: Lbn, sizes: &'a [u32]) -> Stripe<'a> {
        let mut stripe = Stripe {
            array,
            number,
            logical: first..first,
            sizes,
        };
        for k in 0..stripe.data_chunks() {
            stripe.logical.end += stripe.data_sectors(k);
        }
        stripe
    }

    /// Returns the stripe's number.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the array's sectors in the stripe.
    pub fn logical(&self) -> Range<Lbn> {
        self.logical.clone()
    }

    /// Returns the number of data chunks. In RAID-1, the replicas count as one.
    pub fn data_chunks(&self) -> usize {
        data_chunks(self.level(), self.sizes.len())
    }

    /// Returns the number of sectors in a data chunk. `k` must be below [`Stripe::data_chunks`].
    pub fn data_sectors(&self, k: usize) -> Sectors {
        Sectors(data_sectors(self.level(), self.sizes, self.number, k))
    }

    /// Returns the array's sectors in a data chunk. `k` must be below [`Stripe::data_chunks`].
    pub fn logical_of(&self, k: usize) -> Range<Lbn> {
        let mut first = self.logical.start;
        for before in 0..k {
            first += self.data_sectors(before);
        }
        first..first + self.data_sectors(k)
    }

    /// Returns a data chunk; in RAID-1, that of the first member. `k` must be below
    /// [`Stripe::data_chunks`].
    pub fn data(&self, k: usize) -> Chunk {
        self.chunk_on(self.data_member(k))
    }

    /// Returns the member that holds a data chunk. In RAID-1, it is the first.
    pub(super) fn data_member(&self, k: usize) -> usize {
        data_member(self.level(), self.members(), self.number, k)
    }

    /// Returns the number of members.
    pub fn members(&self) -> usize {
        self.sizes.len()
    }

    /// Returns the array sector in a row of a member; `None` for parity.
    pub fn logical_at(&self, member: usize, row: u64) -> Option<Lbn> {
        match self.holds(member) {
            ChunkContents::Data(k) => Some(self.logical_of(k).start + Sectors(row)),
            ChunkContents::Parity => None,
        }
    }

    /// Returns the first LBN of a member's chunk.
    pub(super) fn lbn(&self, member: usize) -> Lbn {
        self.array.lbn(member, self.number)
    }

    /// Returns the parity chunk, if there is one.
    pub fn parity(&self) -> Option<Chunk> {
        Some(self.chunk_on(self.parity_member()?))
    }

    /// Returns the member that holds the parity, if there is parity.
    pub fn parity_member(&self) -> Option<usize> {
        parity_member(self.level(), self.sizes.len(), self.number)
    }

    /// Returns the chunk on a member.
    ///
    /// # Panics
    /// Panics if there is no such member.
    pub fn chunk_on(&self, member: usize) -> Chunk {
        Chunk {
            member,
            lbn: self.lbn(member),
            sectors: self.sectors_on(member),
            holds: self.holds(member),
        }
    }

    fn holds(&self, member: usize) -> ChunkContents {
        match (self.level(), self.parity_member()) {
            (Level::Raid1, _) => ChunkContents::Data(0),
            (_, None) => ChunkContents::Data(member),
            (_, Some(parity)) if parity == member => ChunkContents::Parity,
            (_, Some(parity)) => {
                let members = self.sizes.len();
                ChunkContents::Data((member + members - parity - 1) % members)
            }
        }
    }

    /// Returns the number of a member's sectors that the stripe uses. `member` must be below
    /// [`Stripe::members`].
    pub fn sectors_on(&self, member: usize) -> Sectors {
        match self.holds(member) {
            ChunkContents::Data(k) => self.data_sectors(k),
            ChunkContents::Parity => {
                let all = (0..self.data_chunks()).map(|k| self.data_sectors(k));
                all.max().unwrap_or_default()
            }
        }
    }

    /// Returns the chunk on each member.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk> {
        (0..self.sizes.len()).map(|member| self.chunk_on(member))
    }

    /// Returns the location of a sector, counted from the first of the stripe.
    pub(super) fn locate(self, mut offset: Sectors) -> Location<'a> {
        let mut chunk = 0;
        while offset >= self.data_sectors(chunk) {
            offset -= self.data_sectors(chunk);
            chunk += 1;
        }
        Location {
            stripe: self,
            chunk,
            offset,
        }
    }

    pub(super) fn level(&self) -> Level {
        self.array.shape.level
    }
}

pub(super) fn data_chunks(level: Level, members: usize) -> usize {
    match level {
        Level::Raid0 => members,
        Level::Raid1 => 1,
        Level::Raid4 | Level::Raid5 => members - 1,
    }
}

fn parity_member(level: Level, members: usize, number: u64) -> Option<usize> {
    match level {
        Level::Raid0 | Level::Raid1 => None,
        Level::Raid4 => Some(members - 1),
        Level::Raid5 => Some(members - 1 - (number % members as u64) as usize),
    }
}

fn data_member(level: Level, members: usize, number: u64, k: usize) -> usize {
    match parity_member(level, members, number) {
        Some(parity) => (parity + 1 + k) % members,
        None => k,
    }
}

/// Returns the number of sectors in a data chunk, given the capacities `sizes` of the members'
/// chunks.
pub(super) fn data_sectors(level: Level, sizes: &[u32], number: u64, k: usize) -> u64 {
    let own = sizes[data_member(level, sizes.len(), number, k)];
    let sectors = match (level, parity_member(level, sizes.len(), number)) {
        (Level::Raid1, _) => sizes.iter().copied().min().unwrap_or(0),
        (_, Some(parity)) => own.min(sizes[parity]),
        (_, None) => own,
    };
    sectors.into()
}
