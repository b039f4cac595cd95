//! Tests of the drive: exact times of a tiny drive, and properties that hold for every drive.

mod arm;
mod buffer;
mod disksim;
mod host_settings;
mod partitions;
mod policy;
mod queue;
mod random;
mod reads;
mod refusals;
mod sector_by_sector;
pub(crate) mod tiny;
mod undecided;
mod writes;
