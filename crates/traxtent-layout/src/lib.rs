//! The layout of data along tracks.
//!
//! A [`Partition`] divides LBNs into blocks, and finds its [`Traxtent`]s and excluded blocks. An
//! [`Allocator`] chooses the blocks of a file. A [`Reserve`] preallocates traxtents and hands out
//! their blocks. [`Boundaries`] determines how a request treats track boundaries. A [`Reorganizer`]
//! moves [`File`]s to align them again; [`Aging`] produces the fragmentation that it repairs.
//! [`log`] is a log-structured layout whose segments can match tracks. [`tpl`] keeps replicas of
//! blocks at equal angles around their tracks. [`raid`] combines drives into an array whose chunks
//! can be tracks. [`video`] computes the rounds of a video server.
//!
//! The main source is paper T (Schindler, Griffin, Lumb and Ganger, "Track-Aligned Extents", FAST
//! 2002), sections 3.2 and 4.2. The modules name further sources.
//!
//! # Invariants
//! The layouts depend only on a [`TrackMap`](traxtent_map::TrackMap), not on a drive. The same code
//! therefore serves a model, a drive probed by timing, and a drive that translates addresses.
//! Nothing here does I/O: a layout returns the operations that its caller carries out. The names of
//! an enum's variants in options are defined once, by its method `name` or its `Display` form.
#![forbid(unsafe_code)]

mod aging;
mod allocator;
mod error;
mod file;
mod free_map;
mod free_space;
pub mod log;
mod nearest;
mod partition;
pub mod raid;
mod regions;
mod reorganize;
mod request;
mod reserve;
mod space;
pub mod tpl;
pub mod video;

pub use aging::Aging;
pub use allocator::{Allocator, AllocatorKind, Placement};
pub use error::LayoutError;
pub use file::{File, Piece};
pub use partition::{Partition, Traxtent, sectors_of_block};
pub use reorganize::{Move, ReorganizationPlan, Reorganizer, adopt, plan_reorganization};
pub use request::Boundaries;
pub use reserve::Reserve;
pub use space::Space;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
