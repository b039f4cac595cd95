//! Executors: what runs the pure core on a clock.
//!
//! [`simulate()`] runs it on the virtual clock, as fast as the machine allows. [`SimTarget`] lets a
//! probe ask a simulated drive, [`SimTransport`] lets it ask by SCSI's bytes;
//! [`device`] lets it ask real ones. [`serve`] runs a drive in real time, for programs that want a disk;
//! [`volume`] keeps volumes on real members, [`copies`] those with copies around the track.

pub mod arrays;
pub mod copies;
pub mod device;
pub mod export;
pub mod packed;
mod port;
pub mod request_log;
pub mod serve;
mod sim_host;
pub mod sim_target;
pub mod sim_transport;
pub mod simulate;
pub mod volume;

pub use packed::Packed;
pub use sim_host::Noise;
pub use sim_target::{DefectLists, SimTarget};
pub use sim_transport::SimTransport;
pub use simulate::{Host, Outcome, QUEUE_MAX, SimulateError, simulate};
pub use traxtent_core::scsi::{Faults, Obedience};
