//! Measurements on the drive model that reproduce the numbers and figures of papers.
//!
//! A [`Measurement`] takes a drive on a [`Bench`] and returns numbers. [`MEASUREMENTS`] lists all
//! of them by name.
//!
//! # Invariants
//! The published numbers are in the crate `traxtent-experiments`, which depends on this one. A
//! measurement therefore cannot depend on the number with which it is compared. Profiles are used
//! unchanged, except for the parameters that a measurement or the caller of
//! [`Bench::with_parameters`] changes explicitly.

pub mod alignment;
pub mod assumed;
mod bench;
pub mod blind;
mod cpu;
pub mod excluded;
pub mod extraction;
mod figure;
pub mod fs;
pub mod jobs;
pub mod linux;
pub mod log;
mod measurements;
pub mod modern;
pub mod probe_table;
pub mod profiles;
pub mod rotation;
mod search;
pub mod today;
pub mod tpl;
pub mod traxtents;
pub mod video;

pub use bench::{Bench, LabError};
pub use cpu::cpu_time;
pub use figure::{BetterDirection, Figure, Panel, Series, Style};
pub use measurements::{Draw, MEASUREMENTS, Measure, Measurement, measurement};
pub use search::Search;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
