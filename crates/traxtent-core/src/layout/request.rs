//! Requests that keep to traxtents (paper T, sections 3.2 and 4.2.2; paper Q, section 2.4).
//!
//! A file system that reads ahead or writes back knows which blocks it wants at least, and which
//! it could take along because they are contiguous and not cached yet, or dirty. [`Boundaries`]
//! says what becomes of that at a boundary between tracks. Excluded blocks already part most
//! traxtents; where two touch without one, the request has to be cut here.

use std::ops::Range;

use super::Partition;
use super::partition::len;
use crate::units::{Block, Blocks};

/// What a request does at the boundaries of traxtents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Boundaries {
    /// It does not know them: what is wanted is asked for.
    #[default]
    Ignore,
    /// It ends at the first boundary behind its beginning.
    Clip,
    /// It takes all that could be taken along of the traxtent in which what is wanted begins.
    Extend,
}

impl Boundaries {
    /// All of them.
    pub const ALL: [Boundaries; 3] = [Boundaries::Ignore, Boundaries::Clip, Boundaries::Extend];

    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        match self {
            Boundaries::Ignore => "ignore",
            Boundaries::Clip => "clip",
            Boundaries::Extend => "extend",
        }
    }

    /// The request for the blocks `wanted`.
    ///
    /// `available` is what could be taken along, with `wanted` in it: for reading ahead, the
    /// contiguous blocks of the file from the first that is not cached; for writing back, the run
    /// of dirty blocks. The request never leaves it, and begins no later than `wanted`. An
    /// excluded block that is wanted first is asked for alone.
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

    /// All requests for the blocks `wanted`, one after another, each of `most` blocks at most.
    ///
    /// # Panics
    /// If `most` is none.
    pub fn requests(
        self,
        partition: &Partition,
        wanted: Range<Block>,
        most: Blocks,
    ) -> impl Iterator<Item = Range<Block>> {
        assert!(most.0 > 0, "a request has blocks");
        let mut left = wanted;
        std::iter::from_fn(move || {
            let request = self.request(partition, left.clone(), &left);
            let end = request.start + most.min(len(&request));
            left.start = end;
            (request.start < end).then_some(request.start..end)
        })
    }
}
