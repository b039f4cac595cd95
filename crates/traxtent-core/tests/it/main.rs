//! Tests of the core against closed formulas, other programs' output and reference data.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod disk;
mod disksim_files;
mod disksim_layouts;
mod disksim_text;
mod drive;
mod geometry_goldens;
mod geometry_naive;
mod geometry_properties;
mod hostile;
mod layout;
mod log;
mod mechanics;
mod profile_errors;
mod profiles;
mod random;
mod reference;
mod scsi;
mod shared;
mod statistics;
mod synthio;
mod traces;
mod trackmap;
mod volume;
mod workload_generator;
mod workload_grammar;
