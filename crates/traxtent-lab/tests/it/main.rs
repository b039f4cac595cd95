//! Experiments and blind probes.

mod compare;
mod random_drives;
