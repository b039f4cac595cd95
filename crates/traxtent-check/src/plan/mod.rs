//! What to type: recipes for a stack from scratch, and the commands that mend what is found.
//!
//! Nothing here runs a command or writes to a device.

pub mod badblocks;
