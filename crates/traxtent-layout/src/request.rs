//! Requests that keep to traxtents (paper T, sections 3.2 and 4.2.2; paper Q, section 2.4).
//!
//! A file system that reads ahead or writes back has a minimum of blocks that it wants, and further
//! blocks that it could include because they are contiguous and either not yet cached, or dirty.
//! [`Boundaries`] determines how such a request is formed at a boundary between tracks. Excluded
//! blocks already separate most traxtents. A request is cut here where two traxtents are adjacent
//! without an excluded block.

use std::ops::Range;

use super::Partition;
use super::partition::len;
use traxtent_units::{Block, Blocks};

/// The treatment of traxtent boundaries by a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boundaries {
    /// Ignore boundaries, and request exactly the wanted blocks.
    #[default]
    Ignore,
    /// End the request at the first boundary after its beginning.
    Clip,
    /// Request exactly the available blocks of the traxtent in which the wanted blocks begin.
    Extend,
}

impl Boundaries {
    /// All variants.
    pub const ALL: [Boundaries; 3] = [Boundaries::Ignore, Boundaries::Clip, Boundaries::Extend];

    /// The variant's name in options.
    pub fn name(self) -> &'static str {
        match self {
            Boundaries::Ignore => "ignore",
            Boundaries::Clip => "clip",
            Boundaries::Extend => "extend",
        }
    }

    /// Returns the request for the blocks `wanted`.
    ///
    /// `available` is the range that the request may cover, and contains `wanted`. For reading
    /// ahead, it is the contiguous blocks of the file from the first that is not cached. For
    /// writing back, it is the run of dirty blocks. The request never leaves it, and begins no
    /// later than `wanted`. Except with [`Boundaries::Ignore`], a first wanted block that is
    /// excluded is requested alone.
    pub fn request(
        self,
        partition: &Partition,
        wanted: Range<Block>,
        available: &Range<Block>,
    ) -> Range<Block> {
        let wanted = wanted.start.max(available.start)..wanted.end.min(available.end);
        if self == Boundaries::Ignore || wanted.is_empty() {
            return wanted;
        }
        let track = match partition.traxtent_of(wanted.start) {
            Some(traxtent) => traxtent.blocks,
            None => wanted.start..wanted.start + Blocks(1),
        };
        match self {
            Boundaries::Extend => track.start.max(available.start)..track.end.min(available.end),
            Boundaries::Ignore | Boundaries::Clip => wanted.start..wanted.end.min(track.end),
        }
    }

    /// Returns all requests for the blocks `wanted`, one after another, each of at most `most`
    /// blocks.
    ///
    /// # Panics
    /// Panics if `most` is 0.
    pub fn requests(
        self,
        partition: &Partition,
        wanted: Range<Block>,
        most: Blocks,
    ) -> impl Iterator<Item = Range<Block>> {
        assert!(most.0 > 0, "a request needs at least one block");
        let mut left = wanted;
        std::iter::from_fn(move || {
            let request = self.request(partition, left.clone(), &left);
            let end = request.start + most.min(len(&request));
            left.start = end;
            (request.start < end).then_some(request.start..end)
        })
    }
}
