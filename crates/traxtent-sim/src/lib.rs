//! Runs modelled disks on a virtual clock, as fast as the machine allows.
//!
//! [`simulate()`] runs a workload on the drives and arrays of a [`Host`]. [`SimTarget`] is a
//! simulated drive as a target of a probe; [`SimTransport`] is one that receives SCSI commands as
//! bytes. [`TestDrive`] measures workloads on one drive, [`efficiency`] compares them by request
//! size, and [`video`] plans video servers. [`port`] is the path of a request through a host's
//! queue and a drive, which the servers share with the simulation.
//!
//! # Invariants
//! Events happen in order of time. Among events at the same picosecond, completions come before
//! arrivals. The same drives, workload and seed give the same outcomes.

pub mod agreement;
pub mod arrays;
pub mod efficiency;
pub mod port;
pub mod request_log;
mod sim_host;
pub mod sim_target;
pub mod sim_transport;
pub mod simulate;
mod status;
mod test_drive;
pub mod video;

pub use sim_host::Noise;
pub use sim_target::{DefectLists, SimTarget};
pub use sim_transport::SimTransport;
pub use simulate::{Host, Outcome, QUEUE_MAX, SimulateError, simulate};
pub use status::RequestStatus;
pub use test_drive::{TestDrive, WorkloadResult};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
