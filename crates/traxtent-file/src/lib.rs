//! Files on whole tracks, on an unmodified Linux kernel (paper T, section 3.2; paper Q, section
//! 2.4).
//!
//! - [`FileSystem`] finds the drives below a mounted file system, and the place of its bytes on
//!   them. [`file_extents`] asks the kernel where a file's bytes are. [`summarize`] computes the
//!   share of them on whole tracks.
//! - [`realign()`] moves an existing file of ext4 onto whole tracks, and [`allocate()`] makes a new
//!   one there. [`forecast()`] computes the best possible result of `realign`.
//! - [`TrackReader`] reads a file in requests that each stay on one track.
//!
//! # Invariants
//! The content of a file is the same at every moment and after any crash: only the kernel moves
//! data, under its own locks and its journal. Blocks that are held meanwhile belong to files
//! without a name, so they are free again once the process ends, however it ends.

mod allocate;
mod error;
mod extents;
mod forecast;
mod place;
mod plan;
mod pool;
mod read;
mod realign;
mod summary;
mod supply;
#[cfg(test)]
mod testing;

pub use allocate::allocate;
pub use error::FileError;
pub use extents::{FileExtent, file_extents};
pub use forecast::{Forecast, forecast};
pub use place::{DrivePiece, FileSystem, TrackedDrive, device_of};
pub use read::TrackReader;
pub use realign::{
    Outcome, RealignOptions, RealignReport, extra_obstacle, obstacle, realign, space_obstacle,
};
pub use summary::{PieceKind, Summary, summarize};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
