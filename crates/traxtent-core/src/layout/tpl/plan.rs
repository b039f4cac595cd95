//! What a device is to do, and in which order.

use super::table::Page;
use crate::units::{Lbn, Sectors};

/// One thing that the device is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Make all writes that are complete durable.
    Flush,
    /// Write these bytes of the table.
    Table {
        /// Where they begin.
        lbn: Lbn,
        /// Whole sectors.
        bytes: Vec<u8>,
    },
    /// Write zeros at each of these places, in any order.
    Zeros {
        /// Where each place begins.
        to: Vec<Lbn>,
        /// Its length.
        sectors: Sectors,
    },
    /// Read what stands in one place, then write it to others, in any order.
    Copy {
        /// Where it begins.
        from: Lbn,
        /// Where each copy begins.
        to: Vec<Lbn>,
        /// Their length.
        sectors: Sectors,
    },
}

/// A change of the table, and what has to be done for it. Made by [`Tpl`](super::Tpl), done by an executor: each step
/// when the one before is complete, then [`Tpl::commit`](super::Tpl::commit), then the steps that this returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan is done and committed, or abandoned"]
pub struct Plan {
    pub(super) steps: Vec<Step>,
    pub(super) change: Change,
}

impl Plan {
    /// What is to be done before the change holds, in this order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Which pages of the table are written: none by what only brings copies up to date.
    pub fn changes_table(&self) -> bool {
        matches!(self.change, Change::Page { .. })
    }
}

/// What holds when a plan's steps are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A page of the table has become this.
    Page {
        number: u32,
        page: Page,
        /// Blocks whose first copy has become current.
        synced: Vec<super::Home>,
    },
    /// All copies on a track have become equal.
    Equal { track: usize },
}
