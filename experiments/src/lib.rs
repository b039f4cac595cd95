//! Published claims of papers, and whether the model agrees with them.
//!
//! An [`Experiment`] is a text. It names the drives on which a measurement of the lab is made, and
//! the [`Claim`]s with which its numbers are compared. A [`Finding`] combines a claim with the
//! numbers measured for it. [`experiments`] lists all experiments, and [`run()`] measures a
//! [`Selection`].
//!
//! # Invariants
//! This crate depends on the lab, and no crate that measures depends on this one. A measurement
//! therefore cannot depend on a published number. A claim that is missed stays in the list, with
//! the reason as far as it is known.

mod catalogue;
mod claim;
mod data_sheet;
mod experiment;
mod finding;
pub mod jobs;
mod run;
mod store;

pub use catalogue::{PAPERS, Paper, Selection, UnknownClaim, experiments};
pub use claim::{Claim, Published, Tolerance, Unit};
pub use data_sheet::{DataSheet, data_sheet, data_sheets};
pub use experiment::{Experiment, FigureSpec, PublishedPoint, SpecError};
pub use finding::{Finding, Reason, Sample, Spread, Verdict, reasons, score};
pub use run::{RunError, RunOutcome, RunPlan, Seeds, Skipped, run};
pub use store::{Store, StoreError};
