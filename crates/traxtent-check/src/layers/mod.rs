//! The layers, a file each: what a header says of alignment, and the parser that reads it.
//!
//! A parser is a pure function of a [`Source`](crate::Source): nothing if the bytes are something else, what they
//! say if they are what it reads, or why they cannot be that. It reads a bounded number of bytes and never panics.

pub mod btrfs;
mod error;
pub mod ext;
mod fields;
pub mod gpt;
mod kinds;
pub mod luks;
pub mod lvm;
pub mod mbr;
pub mod md;
pub mod named;
mod recognize;
pub mod swap;
pub mod xfs;
pub mod zfs;

/// No sector, block or chunk is longer than this.
pub const SIZE_MAX: u64 = 1 << 31;

pub use error::{LayerError, Parsed};
pub use kinds::*;
pub use recognize::{Content, recognize};
