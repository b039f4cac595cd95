//! What papers report, and whether the model agrees.
//!
//! An [`Experiment`] is a text: on which drive a measurement of the lab is made, and the [`Claim`]s that its numbers are
//! held against. A [`Finding`] sets both side by side. This crate depends on the lab and nothing that measures
//! depends on this one, so no measurement can look at a published number. A claim that is missed stays in the list,
//! with the reason as far as it is known.

mod catalogue;
mod claim;
mod data_sheet;
mod experiment;
mod finding;
pub mod jobs;
mod run;
mod store;

pub use catalogue::{PAPERS, Paper, Selection, UnknownClaim, experiments};
pub use claim::{Claim, Published, Unit, Within};
pub use data_sheet::{DataSheet, data_sheet, data_sheets};
pub use experiment::{Experiment, FigureSpec, PublishedPoint, SpecError};
pub use finding::{Finding, Reason, Sample, Spread, Verdict, reasons, score};
pub use run::{Outcome, Plan, RunError, Seeds, Skipped, run};
pub use store::{Store, StoreError};
