//! Tests of the experiments.

mod extraction;
mod linux;
