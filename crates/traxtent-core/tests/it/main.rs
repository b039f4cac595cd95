//! Tests of the core from outside.

mod disksim_files;
mod shared;
//! Tests of the core against closed formulas, published programs' output and reference data.

mod reference;
mod statistics;
mod synthio;
mod traces;
mod workload_generator;
mod workload_grammar;
