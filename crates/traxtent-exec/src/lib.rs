//! Executors, which run the pure core on a clock.
//!
//! [`simulate()`] runs it on the virtual clock, as fast as the machine allows. [`SimTarget`] lets a
//! probe measure a simulated drive; [`SimTransport`] does so through SCSI commands; [`device`] does
//! so with real drives. [`serve`] delivers a drive in real time, for programs that need a disk.
//! [`volume`] runs volumes on real members, and [`copies`] runs volumes with replicas around the
//! track.

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
