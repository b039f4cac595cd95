//! Tests of the executors.

mod host;
mod method;
mod validate;
