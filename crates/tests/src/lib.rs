//! Tests of the library crates. There is nothing else here.
