//! Commands for the user: recipes for a stack from scratch, and the fixes of findings.
//!
//! Nothing here runs a command or writes to a device.

pub mod badblocks;
pub mod ground;
pub mod mend;
pub mod recipe;
pub mod tools;
pub mod want;

pub use ground::{DriveProperties, PartitionPlace};
pub use recipe::{Recipe, StackPlanError, Step, plan_stack};
pub use want::StackSpec;
