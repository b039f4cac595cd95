//! The pure part of traxtent: drive profiles, geometry, mechanics, the drive as a state machine,
//! workloads and statistics.
//!
//! Nothing in this crate reads a clock, a file or unseeded randomness, and nothing in it is
//! `unsafe`. Time is passed as an argument, bytes as slices or readers, and seeds as numbers. The
//! same inputs give the same output bytes on every machine.
#![forbid(unsafe_code)]

pub mod disk;
pub mod disksim;
pub mod drive;
pub mod geometry;
mod intervals;
pub mod layout;
pub mod mechanics;
pub mod probe;
pub mod profile;
pub mod request;
pub mod scsi;
pub mod stats;
pub mod trackmap;
pub mod units;
pub mod video;
pub mod volume;
pub mod workload;
