//! Experiments and blind probes.

mod blind;
mod compare;
mod copies;
mod excluded;
mod fs;
mod linux;
mod log;
mod probe_table;
mod random_drives;
mod today;
