//! Modelled disks and volumes, served in real time.
//!
//! [`serve`] runs a modelled drive in real time, for programs that use a disk. [`volume`] runs
//! volumes on real members, and [`copies`] runs volumes with replicas around the track. [`export`]
//! is the one interface to all three, for the protocols in front of them.

pub mod copies;
pub mod export;
pub mod serve;
pub mod volume;
