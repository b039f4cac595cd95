//! Tests of the command as a user runs it.

#[cfg(feature = "lab")]
mod alignment;
mod bad_input;
mod check;
mod check_guest;
mod columns;
mod command;
mod copies;
mod demo;
mod devices;
mod drives;
mod guard;
#[cfg(feature = "lab")]
mod lab;
mod manual;
mod map;
mod outputs;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
mod plan;
mod plan_stack;
mod plot;
mod probe;
#[cfg(feature = "lab")]
mod probe_random;
mod serve;
mod serve_files;
mod sim;
mod sweep;
mod sweep_drives;
#[cfg(feature = "lab")]
mod today;
mod validate;
mod volume;
mod volume_faults;
mod volume_served;
