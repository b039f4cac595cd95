//! Experiments and blind probes.

mod blind;
mod compare;
mod probe_table;
mod random_drives;
