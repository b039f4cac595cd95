//! Tests of the core from outside: against closed formulas, published programs' output and reference data.

mod disksim_files;
mod reference;
mod shared;
mod statistics;
mod synthio;
mod traces;
mod workload_generator;
mod workload_grammar;
