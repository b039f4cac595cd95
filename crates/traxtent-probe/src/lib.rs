//! Finding a drive's structure from outside, by sending requests and evaluating the responses.
//!
//! - A [`Target`] is a drive as a probe sees it. [`ScsiTarget`] is a drive reached through SCSI
//!   commands.
//! - [`extract`] and [`Prober`] find track boundaries. They use timed reads, or translations of
//!   LBNs to places on the media (paper T, sections 4.1.1 and 4.1.2). [`Algorithm`] lists the
//!   algorithms.
//! - [`qualify`] finds a way to time a drive. [`check_map`] tests an old map.
//! - [`characterization`] measures the other properties of a drive and creates its fitted profile.
//!   [`survey()`] measures what [`traxtent_map::head`] needs.
//!
//! # Invariants
//! A probe never sees the profile or geometry of a model. It only reads, unless
//! [`characterization::CharacterizeOptions::destructive`] is set.
//!
//! Caching that a probe has switched off stays off until [`Target::switch_caching`] switches it on
//! again. A [`ScsiTarget`] restores it at the latest when it is dropped.
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
