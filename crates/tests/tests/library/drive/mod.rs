//! The drive: exact times of a tiny one, and properties that hold for every one.

mod disksim;
mod host_settings;
mod partitions;
mod queue;
mod random;
mod reads;
mod refusals;
pub(crate) mod tiny;
mod undecided;
mod writes;
