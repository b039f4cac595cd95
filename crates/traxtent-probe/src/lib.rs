//! Finding a drive's structure from outside, by sending requests and evaluating the responses.
//!
//! A probe sees only a [`Target`], never the profile or geometry of a model. Two kinds of requests
//! find track boundaries: timed reads, and translations of an LBN to its place on the media (paper
//! T, sections 4.1.1 and 4.1.2). [`Algorithm`] lists the ways to use them.
//!
//! An algorithm finds the tracks of a [`Region`] in ascending order and passes each track to the
//! caller once it is certain. A probe can therefore be stopped at any time and continued later
//! after the last track that it found.
#![forbid(unsafe_code)]

mod algorithm;
mod angle;
pub mod characterization;
mod check;
mod clock;
mod count;
mod defect_lists;
mod dixtrac;
mod jump;
mod method;
mod pattern;
mod planned;
mod remapped;
mod scan;
mod scsi;
mod spindle;
mod survey;
mod target;
mod track_end;
mod translation;
mod tree;
mod walk;

pub use algorithm::{Extraction, ProbeError, Prober, TrackSink, extract};
pub use check::{CheckSample, MapCheck, MovedBoundary, check_map};
pub use count::{CountingTarget, RequestCounts};
pub use method::{MethodEvidence, QualifiedMethod, RejectedMethod, TimingMethod, qualify};
pub use remapped::remapped_lbns;
pub use scsi::{CachingOff, ScsiTarget};
pub use survey::survey;
pub use target::{Defects, Target, TargetError};
pub use traxtent_map::{Algorithm, Confirm, Found, Identity, Region, Verify};
pub use traxtent_units::request::Timing;
