//! Tests of the executors.

mod character;
mod host;
mod validate;
