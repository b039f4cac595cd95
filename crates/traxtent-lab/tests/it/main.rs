//! Experiments and blind probes.

mod random_drives;
