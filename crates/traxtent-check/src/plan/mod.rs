//! Commands for the user: recipes that create a stack, and fixes for findings.
//!
//! Nothing here runs a command or writes to a device.

pub mod badblocks;
pub mod fix;
pub mod recipe;
pub mod stack_spec;
pub mod target_drive;
pub mod tools;

pub use recipe::{Recipe, StackPlanError, Step, plan_stack};
pub use stack_spec::StackSpec;
pub use target_drive::{DriveProperties, PartitionPlace, StartReason};
