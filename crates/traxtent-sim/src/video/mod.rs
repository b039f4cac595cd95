//! Video servers with disks (paper T, section 5.4): soft real time, hard real time, and a planner.
//!
//! A server works in rounds. Each round fetches an I/O for every stream, and lasts as long as the
//! I/O plays. Aligned I/Os are whole tracks of a zone; unaligned I/Os are a fixed number of sectors
//! anywhere in it. The disks of an array are independent, so one is simulated. The
//! arithmetic of rounds is in [`traxtent_layout::video`].

mod extents;
mod plan;
mod rounds;
mod soft;
mod worst;

pub use extents::{Alignment, Extents, Placement, TRACKS_MAX};
pub use plan::{Guarantee, Offer, ServerRequirements, VideoPlan, plan};
pub use rounds::{Order, run_rounds};
pub use soft::{ONE_LATE_IN, ProgressFn, ROUNDS, SoftServer};
pub use worst::{Accounting, HardServer};

use crate::SimulateError;

/// The reasons why a drive cannot serve video.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VideoError {
    /// The drive has no such zone, or the zone contains no whole track.
    #[error(
        "zone {zone}: no such zone, or no whole track in it; the drive has {zones} zones, counted from 0"
    )]
    NoSuchZone {
        /// The requested zone.
        zone: u32,
        /// The number of zones.
        zones: usize,
    },
    /// The drive has no mechanics, so its accesses take no time.
    #[error("the drive has no mechanics, so nothing limits its streams; choose another drive")]
    NoMechanics,
    /// The simulation ended early.
    #[error(transparent)]
    Simulation(#[from] SimulateError),
}
