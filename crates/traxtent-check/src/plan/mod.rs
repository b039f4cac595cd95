//! What to type: recipes for a stack from scratch, and the commands that mend what is found.
//!
//! Nothing here runs a command or writes to a device.

pub mod badblocks;
pub mod ground;
pub mod mend;
pub mod recipe;
pub mod tools;
pub mod want;

pub use ground::{Ground, Site};
pub use recipe::{PlanError, Recipe, Step, plan};
pub use want::Want;
