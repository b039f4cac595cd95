//! An empty library: this crate exists for its integration tests of the library crates.

/// Does the example in the README compile and run?
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
