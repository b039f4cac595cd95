//! Tests of the core from outside.

mod disksim_files;
mod shared;
