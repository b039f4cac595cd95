//! Runs modelled disks on a virtual clock, as fast as the machine allows.
//!
//! [`simulate()`] runs a workload on the drives and arrays of a [`Host`]. [`SimTarget`] is a
//! simulated drive as a target of a probe; [`SimTransport`] is a simulated drive that takes SCSI
//! commands as bytes. [`port`] queues requests in front of a drive, in the simulation and in the
//! servers.
//!
//! # Invariants
//! Events happen in order of time. Among events at the same picosecond, completions come before
//! arrivals. The same drives, workload and seed give the same outcomes.

pub mod arrays;
pub mod port;
pub mod request_log;
mod sim_host;
pub mod sim_target;
pub mod sim_transport;
pub mod simulate;

pub use sim_host::Noise;
pub use sim_target::{DefectLists, SimTarget};
pub use sim_transport::SimTransport;
pub use simulate::{Host, Outcome, QUEUE_MAX, SimulateError, simulate};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
