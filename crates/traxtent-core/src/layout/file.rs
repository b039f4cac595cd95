//! A file as a layout sees it: which blocks it has, in which order.

use std::ops::Range;

use super::Partition;
use super::partition::len;
use crate::units::{Block, Blocks};

/// The blocks of a file, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// No two that follow one another are contiguous.
    extents: Vec<Range<Block>>,
    blocks: Blocks,
}

/// How a part of a file lies that is contiguous and does not leave its track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Blocks of the file before it.
    pub offset: Blocks,
    /// Where it lies.
    pub blocks: Range<Block>,
    /// Whether it is a whole traxtent.
    pub whole: bool,
    /// Whether it is an excluded block, which no layout along tracks gives.
    pub excluded: bool,
}

impl File {
    /// A file with no blocks.
    pub fn new() -> File {
        File::default()
    }

    /// Adds blocks at the end.
    pub fn push(&mut self, blocks: Range<Block>) {
        self.blocks += len(&blocks);
        match self.extents.last_mut() {
            _ if blocks.is_empty() => {}
            Some(last) if last.end == blocks.start => last.end = blocks.end,
            _ => self.extents.push(blocks),
        }
    }

    /// How many blocks it has.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Its runs of contiguous blocks.
    pub fn extents(&self) -> &[Range<Block>] {
        &self.extents
    }

    /// Where a part of it lies, counted in blocks from its beginning; what is behind its end is
    /// left out.
    pub fn part(&self, part: Range<Blocks>) -> impl Iterator<Item = Range<Block>> {
        let mut before = Blocks(0);
        self.extents.iter().filter_map(move |extent| {
            let at = |offset: Blocks| {
                let inside = offset.max(before).min(before + len(extent)) - before;
                extent.start + inside
            };
            let found = at(part.start)..at(part.end);
            before += len(extent);
            (!found.is_empty()).then_some(found)
        })
    }

    /// Puts a part of it elsewhere.
    ///
    /// # Panics
    /// If it does not have that part.
    pub fn replace(&mut self, offset: Blocks, to: Range<Block>) {
        let end = offset + len(&to);
        assert!(end <= self.blocks, "a file of {} has no {end}", self.blocks);
        let mut new = File::new();
        self.part(Blocks(0)..offset).for_each(|part| new.push(part));
        new.push(to);
        self.part(end..self.blocks).for_each(|part| new.push(part));
        *self = new;
    }

    /// Its pieces: the requests that it takes to read it, none of which leaves a track.
    pub fn pieces(&self, partition: &Partition) -> impl Iterator<Item = Piece> {
        let mut offset = Blocks(0);
        let mut left = Block(0)..Block(0);
        let mut extents = self.extents.iter();
        std::iter::from_fn(move || {
            if left.is_empty() {
                left = extents.next()?.clone();
            }
            let traxtent = partition.traxtent_of(left.start);
            let end = match &traxtent {
                Some(traxtent) => traxtent.blocks.end.min(left.end),
                None => left.start + Blocks(1),
            };
            let blocks = left.start..end;
            left.start = end;
            let piece = Piece {
                offset,
                whole: traxtent
                    .as_ref()
                    .is_some_and(|found| found.blocks == blocks),
                excluded: traxtent.is_none(),
                blocks,
            };
            offset += len(&piece.blocks);
            Some(piece)
        })
    }

    /// The first block of the file that is not laid out along tracks: not in a whole traxtent, nor
    /// in the piece with which the file ends. None if all are.
    pub fn misaligned(&self, partition: &Partition) -> Option<Blocks> {
        let mut pieces = self.pieces(partition);
        let is_last = |piece: &Piece| piece.offset + len(&piece.blocks) == self.blocks;
        let off = pieces.find(|piece| !piece.whole && (piece.excluded || !is_last(piece)));
        off.map(|piece| piece.offset)
    }
}
