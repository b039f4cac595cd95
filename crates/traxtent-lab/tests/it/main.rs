//! Experiments and blind probes.

mod blind;
mod compare;
mod random_drives;
