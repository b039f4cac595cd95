//! Tests of the executors.

mod host;
mod validate;
