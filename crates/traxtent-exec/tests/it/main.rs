//! Tests of the executors.

mod drives;
mod host;
mod translate;
mod validate;
