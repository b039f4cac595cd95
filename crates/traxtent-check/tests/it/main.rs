//! Tests of the crate, in one binary.

mod badblocks;
mod gallery;
