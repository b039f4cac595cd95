//! Tests of the crate, in one binary.

mod badblocks;
mod drives;
mod gallery;
