//! An empty library: this crate exists for its integration tests of the library crates.
