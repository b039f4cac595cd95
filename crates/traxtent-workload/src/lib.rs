//! The requests that a simulation issues, and their times: synthetic workloads and traces.
//!
//! - [`WorkloadSpec`] is a synthetic workload, read from a line or a TOML table in workload
//!   grammar 2. [`RequestGenerator`] makes its requests and [`Synthetic`] schedules them.
//! - [`TraceReader`] reads traces of real disks, and [`Replay`] schedules them.
//! - [`Synthio`] is DiskSim's synthetic workload of several processes.
//!
//! # Invariants
//! [`Synthetic`], [`Replay`] and [`Synthio`] implement [`RequestSource`]: they report when their
//! next request is due, and receive completions. They read no clock and open no file. The same
//! specification and seed give the same requests on every machine.
#![forbid(unsafe_code)]

mod distribution;
mod generate;
mod quantity;
mod replay;
mod source;
mod spec;
mod synthio;
mod toml_table;
pub mod trace;

pub use distribution::{CHOICES_MAX, Distribution, POISSON_MEAN_MAX, WeightedChoice};
pub use generate::{CapacityOnly, RequestGenerator, TrackSource};
pub use quantity::{Length, LengthUnit};
pub use replay::{Replay, ReplayPace};
pub use source::{Arrival, NextStep, RequestSource, Synthetic, Urgency};
pub use spec::{
    ArrivalModel, GRAMMAR_VERSION, RequestSizes, StartAlignment, WORKLOAD_KEYS,
    WORKLOAD_OUTSTANDING_MAX, WorkloadError, WorkloadKind, WorkloadProblem, WorkloadRegion,
    WorkloadSpec,
};
pub use synthio::{Synthio, SynthioError, SynthioGenerator, SynthioSpec};
pub use trace::{TraceError, TraceFormat, TraceOptions, TraceProblem, TraceReader, TraceRecord};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
