//! The layers: the header fields that concern alignment, and a parser for each format.
//!
//! A parser is a pure function of a [`Source`](crate::Source). It returns the fields if the bytes
//! are in its format, `None` if they are not, and an error if they contradict the format. It reads
//! a bounded number of bytes and never panics.

pub mod btrfs;
pub mod container;
mod copies;
mod data;
mod error;
pub mod ext;
mod fields;
pub mod gpt;
mod gpt_copy;
mod kinds;
pub mod luks;
pub mod lvm;
pub mod mbr;
pub mod md;
pub mod named;
mod recognize;
mod remnants;
pub mod swap;
pub mod xfs;
pub mod zfs;

/// The maximum length of a sector, block, page or smallest write in a stack, in bytes.
pub const SIZE_MAX: u64 = 1 << 31;

pub use copies::copy_of_header;
pub(crate) use copies::lost_header;
pub use data::{first_data, first_data_in};
pub use error::{LayerError, Parsed};
pub use kinds::*;
pub use recognize::{Content, recognize};
pub(crate) use remnants::remnants;
