//! A file as a layout sees it: its blocks, in order.

use std::ops::Range;

use super::Partition;
use super::partition::len;
use traxtent_units::{Block, Blocks};

/// The blocks of a file, in file order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// No two consecutive extents are contiguous.
    extents: Vec<Range<Block>>,
    blocks: Blocks,
}

/// A contiguous part of a file that lies within one track, or a single excluded block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of the file's blocks before this piece.
    pub offset: Blocks,
    /// The blocks of the partition that hold the piece.
    pub blocks: Range<Block>,
    /// Whether the piece is a whole traxtent.
    pub whole: bool,
    /// Whether the piece is an excluded block. No track-aligned layout allocates such a block.
    pub excluded: bool,
}

impl File {
    /// Creates a file with no blocks.
    pub fn new() -> File {
        File::default()
    }

    /// Appends blocks to the file.
    pub fn push(&mut self, blocks: Range<Block>) {
        self.blocks += len(&blocks);
        match self.extents.last_mut() {
            _ if blocks.is_empty() => {}
            Some(last) if last.end == blocks.start => last.end = blocks.end,
            _ => self.extents.push(blocks),
        }
    }

    /// Returns the number of blocks in the file.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Returns the file's runs of contiguous blocks.
    pub fn extents(&self) -> &[Range<Block>] {
        &self.extents
    }

    /// Returns the blocks that hold a part of the file. The part is counted in blocks from the
    /// beginning of the file; anything after the end of the file is omitted.
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

    /// Moves a part of the file to the blocks `to`.
    ///
    /// # Panics
    /// Panics if the file does not have that part.
    pub fn replace(&mut self, offset: Blocks, to: Range<Block>) {
        let end = offset + len(&to);
        assert!(
            end <= self.blocks,
            "the part ends after {end}, but the file has {}",
            self.blocks
        );
        let mut new = File::new();
        self.part(Blocks(0)..offset).for_each(|part| new.push(part));
        new.push(to);
        self.part(end..self.blocks).for_each(|part| new.push(part));
        *self = new;
    }

    /// Returns the file's pieces: the requests needed to read it. Each lies within one track or is
    /// for one excluded block.
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

    /// Returns the offset of the first block of the file that is not laid out along tracks. Such a
    /// block is neither in a whole traxtent nor in the last piece of the file, or it is excluded.
    /// `None` if there is no such block.
    pub fn misaligned(&self, partition: &Partition) -> Option<Blocks> {
        let mut pieces = self.pieces(partition);
        let is_last = |piece: &Piece| piece.offset + len(&piece.blocks) == self.blocks;
        let off = pieces.find(|piece| !piece.whole && (piece.excluded || !is_last(piece)));
        off.map(|piece| piece.offset)
    }
}
