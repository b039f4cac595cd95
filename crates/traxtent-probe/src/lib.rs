//! Finding a drive's structure from outside, by sending requests and evaluating the responses.
//!
//! - A [`Target`] is a drive as a probe sees it. [`ScsiTarget`] is one that is reached through SCSI
//!   commands.
//! - [`extract`] and [`Prober`] find track boundaries. Two kinds of requests do so: timed reads,
//!   and translations of an LBN to its place on the media (paper T, sections 4.1.1 and 4.1.2).
//!   [`Algorithm`] lists the ways to use them.
//! - [`qualify`] finds out how a drive can be timed. [`check_map`] tests an old map.
//! - [`characterization`] measures the rest of a drive, and makes its fitted profile. [`survey()`]
//!   measures what [`traxtent_map::head`] needs.
//!
//! # Invariants
//! A probe never sees the profile or geometry of a model. It only reads, unless its target has been
//! told to allow writes, and it restores what it changes on a drive.
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
mod defect_lists;
mod dixtrac;
mod extraction;
mod jump;
mod median;
mod method;
mod observed;
mod pattern;
mod planned;
mod remapped;
mod scan;
mod scsi;
mod spindle;
mod survey;
mod target;
mod track_address;
mod track_end;
mod translation;
mod tree;
mod walk;

pub use algorithm::{Prober, extract};
pub use check::{CheckSample, MapCheck, MovedBoundary, check_map};
pub use extraction::{Extraction, ProbeError, TrackSink};
pub use method::{MethodEvidence, QualifiedMethod, RejectedMethod, TimingMethod, qualify};
pub use observed::{ObservedTarget, RequestCounts, TargetObserver, TargetOperation};
pub use remapped::remapped_lbns;
pub use scsi::{CachingOff, ScsiTarget};
pub use survey::survey;
pub use target::{Defects, Target, TargetError};
pub use traxtent_map::{Algorithm, Confirm, Found, Identity, Region, Verify};
pub use traxtent_units::request::Timing;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
