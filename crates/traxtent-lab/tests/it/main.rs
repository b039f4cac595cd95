//! Experiments and blind probes.

mod blind;
mod compare;
mod extraction;
mod linux;
mod log;
mod probe_table;
mod random_drives;
