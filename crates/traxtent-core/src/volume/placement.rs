//! Where a volume's blocks lie on its members.

use smallvec::SmallVec;

use crate::layout::raid::{Array, Chunk, Level};
use crate::units::{Lbn, Sectors};

/// An [`Array`], stripe by stripe.
#[derive(Debug)]
pub(super) struct Placement(pub(super) Array);

/// The blocks that are written and computed together.
///
/// Rows count sectors from the beginning of each chunk. Columns may differ in length: a column that has
/// no such row counts as zeros there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stripe {
    /// Which it is.
    pub(super) number: u64,
    /// The data, in the order of the volume's LBNs. One column in RAID-1.
    pub(super) columns: SmallVec<[Column; 8]>,
    /// What is computed from the columns: a column of parity (as long as the longest), or the copies of the
    /// one column.
    pub(super) checks: SmallVec<[Column; 2]>,
}

/// A chunk of a stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// The member it lies on.
    pub(super) member: usize,
    /// Where it begins there.
    pub(super) at: Lbn,
    /// How many sectors it has.
    pub(super) sectors: u32,
    /// The volume's LBN of its first sector; for a check, that of the stripe.
    pub(super) first: Lbn,
}

impl Stripe {
    /// The volume's first LBN in the stripe.
    pub(super) fn first(&self) -> Lbn {
        self.columns[0].first
    }

    /// The volume's LBN behind the stripe.
    pub(super) fn end(&self) -> Lbn {
        self.columns[self.columns.len() - 1].end()
    }

    /// How many rows it has.
    pub(super) fn rows(&self) -> u32 {
        let rows = self.columns.iter().map(|column| column.sectors);
        rows.max().unwrap_or(0)
    }

    /// All that lies on members.
    pub(super) fn all(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().chain(&self.checks)
    }
}

impl Column {
    /// The volume's LBN behind its last sector.
    pub(super) fn end(&self) -> Lbn {
        self.first + Sectors(self.sectors.into())
    }

    /// Where a row lies on the member.
    pub(super) fn row(&self, row: u32) -> Lbn {
        self.at + Sectors(row.into())
    }
}

impl Placement {
    pub(super) fn level(&self) -> Level {
        self.0.shape().level
    }

    pub(super) fn stripes(&self) -> u64 {
        self.0.stripes()
    }

    pub(super) fn capacity(&self) -> Sectors {
        self.0.capacity()
    }

    /// The stripe that holds an LBN of the volume, which has been checked.
    pub(super) fn stripe_of(&self, lbn: Lbn) -> u64 {
        let location = self.0.locate(lbn).expect("the volume has it");
        location.stripe.number()
    }

    /// A stripe, of which there is one of that number.
    pub(super) fn stripe(&self, number: u64) -> Stripe {
        let stripe = self.0.stripe(number).expect("the volume has it");
        let logical = stripe.logical();
        let columns = (0..stripe.data_chunks()).scan(logical.start, |next, k| {
            let first = *next;
            *next += stripe.data_sectors(k);
            Some(column(stripe.data(k), first))
        });
        let checks = match self.level() {
            Level::Raid0 => SmallVec::new(),
            Level::Raid1 => stripe
                .chunks()
                .skip(1)
                .map(|chunk| column(chunk, logical.start))
                .collect(),
            Level::Raid4 | Level::Raid5 => stripe
                .parity()
                .map(|chunk| column(chunk, logical.start))
                .into_iter()
                .collect(),
        };
        Stripe {
            number,
            columns: columns.collect(),
            checks,
        }
    }
}

fn column(chunk: Chunk, first: Lbn) -> Column {
    Column {
        member: chunk.member,
        at: chunk.lbn,
        sectors: chunk.sectors.0 as u32,
        first,
    }
}
