//! Operations for a device, and their order.

use super::table::Page;
use traxtent_units::{Lbn, Sectors};

/// One operation for the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceStep {
    /// Make all completed writes durable.
    Flush,
    /// Write these bytes of the table.
    Table {
        /// The first LBN.
        lbn: Lbn,
        /// The bytes, in whole sectors.
        bytes: Vec<u8>,
    },
    /// Write zeros at each of these places, in any order.
    Zeros {
        /// The first LBN of each place.
        to: Vec<Lbn>,
        /// The length of each place.
        sectors: Sectors,
    },
    /// Read from one place, then write the data to others, in any order.
    Copy {
        /// The first LBN to read.
        from: Lbn,
        /// The first LBN of each destination.
        to: Vec<Lbn>,
        /// The length.
        sectors: Sectors,
    },
}

/// A change of the table or of replicas and its steps, made by [`Tpl`](super::Tpl). The executor
/// completes the steps one after another, calls [`Tpl::commit`](super::Tpl::commit), and then
/// carries out the steps that it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a plan must be carried out and committed, or abandoned"]
pub struct TablePlan {
    pub(super) steps: Vec<DeviceStep>,
    pub(super) change: Change,
}

impl TablePlan {
    /// Returns the steps to complete before the change takes effect, in order.
    pub fn steps(&self) -> &[DeviceStep] {
        &self.steps
    }

    /// Returns whether the plan writes a page of the table. A plan that only synchronizes replicas
    /// does not.
    pub fn changes_table(&self) -> bool {
        matches!(self.change, Change::Page { .. })
    }
}

/// The change that [`Tpl::commit`](super::Tpl::commit) applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A page of the table has these contents.
    Page {
        number: u32,
        page: Page,
        /// Blocks whose first replica has become current.
        synced: Vec<super::BlockHome>,
    },
    /// All replicas on a track have become equal.
    Equal { track: usize },
}
