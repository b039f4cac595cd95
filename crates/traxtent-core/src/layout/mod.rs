//! Laying data out along tracks, over a [`TrackMap`](crate::trackmap::TrackMap) and nothing else: no drive is known here, so
//! the same code serves a model, a drive probed by timing, and one that translates addresses.
//!
//! A [`Partition`] cuts LBNs into blocks and knows its [`Traxtent`]s and excluded blocks.
//! An [`Allocator`] says which blocks a file gets, a [`Reserve`]
//! keeps traxtents whole while they fill, [`Boundaries`] shapes requests.
//! A [`Reorganizer`] moves [`File`]s so that they are aligned again; [`Aging`] is what makes that
//! worth while. [`log`] writes all that changes behind what was written last, a traxtent at a time. [`tpl`] keeps copies of
//! blocks around their tracks. [`raid`] joins several drives into one whose chunks are tracks.
//!
//! Variants stand by name in one list each: [`Strategy`], [`Placement`], [`Boundaries`].
//!
//! The source is paper T (Schindler, Griffin, Lumb and Ganger,
//! "Track-Aligned Extents", FAST 2002), sections 3.2 and 4.2.

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

pub use aging::Aging;
pub use allocator::{Allocator, Placement, Strategy};
pub use error::LayoutError;
pub use file::{File, Piece};
pub use partition::{Partition, Traxtent, sectors_of_block};
pub use reorganize::{Move, Plan, Reorganizer, adopt, plan};
pub use request::Boundaries;
pub use reserve::Reserve;
pub use space::Space;
