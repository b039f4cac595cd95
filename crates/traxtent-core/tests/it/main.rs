//! Tests of the core against closed formulas, other programs' output and reference data.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod disksim_files;
mod profiles;
mod hostile;
mod reference;
mod shared;
mod statistics;
mod synthio;
mod traces;
mod workload_generator;
mod workload_grammar;
