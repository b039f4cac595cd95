//! Laying data out along tracks, over a [`TrackMap`](crate::trackmap::TrackMap) and nothing else: no drive is known here, so
//! the same code serves a model, a drive probed by timing, and one that translates addresses.
//!
//! A [`Partition`] cuts LBNs into blocks and knows its [`Traxtent`]s and excluded blocks.
//! [`Boundaries`] shapes requests. The source is paper T (Schindler, Griffin, Lumb and Ganger,
//! "Track-Aligned Extents", FAST 2002), sections 3.2 and 4.2.

mod error;
mod partition;
mod request;

pub use error::LayoutError;
pub use partition::{Partition, Traxtent, sectors_of_block};
pub use request::Boundaries;
