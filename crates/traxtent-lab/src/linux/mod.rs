//! The structure of a drive seen from outside (the Linux validation of track-aligned extents, paper
//! Q: Qian, Meyers and Wang, 2008, section 2.3 and Figures 1 to 4).
//!
//! Every experiment sees drives as a probe does. The time of a read is the drive's time plus the
//! host's processor time, assumed as for Figures 5 to 7. The paper's reads also spent time in Linux
//! and in a RAID controller; that time is not published and is zero here.

use crate::fs::Cpu;

pub(crate) mod boundary_reads;
pub(crate) mod growing_reads;
pub(crate) mod layout;
pub(crate) mod reverse_pairs;

pub use growing_reads::{Start, bandwidth_drops, growing_reads};

/// The drive of most experiments.
pub const MAIN_DRIVE: &str = "maxtor10k5";

/// Drives of one model.
pub const ONE_MODEL: [&str; 4] = [MAIN_DRIVE, "maxtor10k5-b", "maxtor10k5-c", "maxtor10k5-d"];

/// The drives on which the paper sees no zero-latency access.
pub const DRIVES_WITHOUT_ZERO_LATENCY: [&str; 2] = ["cheetah15k4", "map3367nc"];

/// The processor time of the host for a read, in milliseconds.
fn host_ms() -> f64 {
    let Cpu {
        call,
        request,
        interrupt,
        ..
    } = Cpu::PENTIUM_D;
    (call + request + interrupt).as_ms()
}
