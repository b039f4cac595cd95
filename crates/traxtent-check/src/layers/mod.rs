//! The layers, a file each: what a header says of alignment, and the parser that reads it.
//!
//! A parser is a pure function of a [`Source`](crate::Source): nothing if the bytes are something else, what they
//! say if they are what it reads, or why they cannot be that. It reads a bounded number of bytes and never panics.

mod kinds;

pub use kinds::*;
