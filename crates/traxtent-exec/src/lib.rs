//! Executors: what runs the pure core on a clock.
//!
//! [`simulate()`] runs it on the virtual clock, as fast as the machine allows.

pub mod sim_target;
pub mod simulate;

pub use sim_target::{Faults, Noise, Obedience, SimTarget, TRANSLATION};
pub use simulate::{Host, Outcome, SimulateError, simulate};
