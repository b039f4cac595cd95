//! Tests of the executors.

mod drives;
mod host;
mod method;
mod translate;
mod validate;
