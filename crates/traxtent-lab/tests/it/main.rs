//! Experiments and blind probes.

mod blind;
mod compare;
mod excluded;
mod linux;
mod log;
mod probe_table;
mod random_drives;
mod today;
mod video;
