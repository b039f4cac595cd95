//! Reorganization (paper T, section 3.2): files that age or another drive's boundaries have broken
//! are moved so that they lie in whole traxtents again, each with its last blocks in one piece.
//!
//! On-line, a [`Reorganizer`] is asked for a step whenever the disk is idle, and told how many
//! blocks it may move. Off-line, [`plan`] takes such steps until there is nothing to gain. A step
//! either *aligns*: it moves the first blocks of a file that are not aligned into the closest
//! traxtent that is free whole. Or it *packs*: it moves a piece into a traxtent that is fuller, so
//! that others become free whole. The steps come to an end: each one that aligns lengthens what is
//! aligned of a file for good, and each one that packs leaves that as it is and makes the sum of
//! the squares of the blocks in use in each traxtent larger.
//!
//! Moves are a plan only: the blocks that a move writes are free before it, and those that it
//! reads stay as they are until the next step, so that a file system can make each move durable
//! before it forgets the old place.

use std::ops::Range;

use super::file::Piece;
use super::partition::len;
use super::regions::Region;
use super::{Allocator, File, LayoutError, Partition, Placement, Strategy};
use crate::units::{Block, Blocks};

/// At most so many files are looked at in a step.
const LOOK: usize = 256;

/// A step: blocks of a file that are copied into one traxtent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The position of the file in the list.
    pub file: usize,
    /// Blocks of the file before them.
    pub offset: Blocks,
    /// Where they lie, in their order.
    pub from: Vec<Range<Block>>,
    /// Where they go: as many blocks, free until now.
    pub to: Range<Block>,
}

/// Which steps are being looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Align,
    Pack,
}

/// Moves files step by step. It keeps no files itself: they may change between steps.
#[derive(Clone, Debug, Default)]
pub struct Reorganizer {
    phase: Phase,
    /// The file to be looked at next.
    next: usize,
    /// Files looked at since the last move.
    idle: usize,
}

/// All moves that lay files out along the tracks of a partition, and the files afterwards.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The moves, in order.
    pub moves: Vec<Move>,
    /// Where the files lie when they are done.
    pub files: Vec<File>,
    /// The allocator that has those blocks in use, and no others.
    pub allocator: Allocator,
}

/// The off-line reorganization of a partition that holds these files and nothing else. Some of
/// them may have excluded blocks, from a layout that knew no tracks.
///
/// # Errors
/// If two files have the same block, or one has a block beyond the partition.
pub fn plan(partition: &Partition, files: Vec<File>) -> Result<Plan, LayoutError> {
    let mut allocator = adopt(partition, &files)?;
    let (mut files, mut moves) = (files, Vec::new());
    let mut reorganizer = Reorganizer::default();
    while !reorganizer.is_settled(&files) {
        moves.extend(reorganizer.step(&mut allocator, &mut files, Blocks(u64::MAX))?);
    }
    Ok(Plan {
        moves,
        files,
        allocator,
    })
}

/// An allocator along tracks that has the blocks of these files in use. Excluded blocks that a
/// file has are not the allocator's: once the file is moved away they are never used again.
///
/// # Errors
/// If two files have the same block (an excluded one is not looked at), or one has a block beyond
/// the partition.
pub fn adopt(partition: &Partition, files: &[File]) -> Result<Allocator, LayoutError> {
    let mut allocator = Allocator::new(partition.clone(), Strategy::Traxtent);
    for extent in files.iter().flat_map(File::extents) {
        let blocks = partition.blocks();
        if extent.end.0 > blocks.0 {
            let block = extent.start.max(Block(blocks.0));
            return Err(LayoutError::Beyond { block, blocks });
        }
        for piece in partition.pieces(extent.clone()) {
            allocator.claim(&piece)?;
        }
    }
    Ok(allocator)
}

impl Reorganizer {
    /// One step, of at most `budget` blocks. None if no file looked at gains by it. The files and
    /// the allocator are as if the step were done.
    ///
    /// # Errors
    /// If the allocator knows no tracks, or has free what a file says is its own. The files are as
    /// they were then; the allocator, which was wrong before, may have more blocks in use.
    pub fn step(
        &mut self,
        allocator: &mut Allocator,
        files: &mut [File],
        budget: Blocks,
    ) -> Result<Option<Move>, LayoutError> {
        if allocator.strategy() != Strategy::Traxtent {
            return Err(LayoutError::NoTracks);
        }
        for _ in 0..files.len().min(LOOK) {
            self.turn_around(files.len());
            let file = &mut files[self.next];
            let change = match self.phase {
                Phase::Align => align(allocator, file, budget),
                Phase::Pack => pack(allocator, file, budget),
            };
            if let Some((offset, to)) = change {
                self.idle = 0;
                return carry_out(allocator, file, self.next, offset, to).map(Some);
            }
            self.next += 1;
            self.idle += 1;
        }
        Ok(None)
    }

    /// Whether all files have been looked at, both ways, since the last move.
    pub fn is_settled(&self, files: &[File]) -> bool {
        self.idle >= 2 * files.len()
    }

    fn turn_around(&mut self, files: usize) {
        if self.next >= files {
            self.next = 0;
            self.phase = match self.phase {
                Phase::Align => Phase::Pack,
                Phase::Pack => Phase::Align,
            };
        }
    }
}

/// A part of a file, by the blocks before it, and the blocks set aside for it.
type Change = (Blocks, Range<Block>);

/// Takes a whole traxtent, or for the end of a file a run, for what is first not aligned.
fn align(allocator: &mut Allocator, file: &File, budget: Blocks) -> Option<Change> {
    let offset = file.misaligned(allocator.partition())?;
    let left = file.blocks() - offset;
    let near = match offset {
        Blocks(0) => file.extents().first()?.start,
        _ => file.part(offset - Blocks(1)..offset).next()?.end,
    };
    let whole = allocator.closest_whole_size(near);
    let to = match whole {
        Some(size) if size <= left && size <= budget => {
            allocator.allocate(near, size, Placement::Whole)?
        }
        _ if left <= budget => allocator.allocate(near, left, Placement::Together)?,
        _ => return None,
    };
    Some((offset, to))
}

/// Takes room in a fuller traxtent for a piece that does not fill its own.
fn pack(allocator: &mut Allocator, file: &File, budget: Blocks) -> Option<Change> {
    let loose = |piece: &Piece| !piece.whole && !piece.excluded && len(&piece.blocks) <= budget;
    let pieces = file.pieces(allocator.partition()).filter(loose);
    let room = |piece: Piece| Some((piece.offset, allocator.fuller(&piece.blocks)?));
    let (offset, to) = { pieces }.find_map(room)?;
    allocator.claim(&to).expect("the room is free");
    Some((offset, to))
}

/// Writes the step down, and has the file and the allocator as they are afterwards.
fn carry_out(
    allocator: &mut Allocator,
    file: &mut File,
    index: usize,
    offset: Blocks,
    to: Range<Block>,
) -> Result<Move, LayoutError> {
    let from: Vec<_> = file.part(offset..offset + len(&to)).collect();
    for extent in &from {
        let pieces: Vec<_> = allocator.partition().pieces(extent.clone()).collect();
        pieces.iter().try_for_each(|piece| allocator.free(piece))?;
    }
    file.replace(offset, to.clone());
    Ok(Move {
        file: index,
        offset,
        from,
        to,
    })
}

impl Allocator {
    /// The size of the closest traxtent that is free whole.
    fn closest_whole_size(&self, near: Block) -> Option<Blocks> {
        let region = self.closest(&[&self.free.whole], near, 1)?;
        Some(len(&region.blocks))
    }

    /// Room for a piece in a traxtent that will have more blocks in use than that of the piece
    /// has now: in the closest one before it or behind it that has room.
    fn fuller(&self, piece: &Range<Block>) -> Option<Range<Block>> {
        let size = len(piece).0 as u32;
        let home = self.regions.of(piece.start)?;
        let partial = &self.free.partial;
        let sides = [
            partial.before(home.at, size),
            partial.at_or_after(home.at + 1, size),
        ];
        let used = |region: &Region| {
            let runs = self.free_runs(region.blocks.clone());
            len(&region.blocks).0 - runs.map(|run| len(&run).0).sum::<u64>()
        };
        let now = used(&home);
        let sides = sides.into_iter().flatten().map(|at| self.regions.at(at));
        let fuller = sides.filter(|region| used(region) + u64::from(size) > now);
        let region = fuller.min_by_key(|region| region.blocks.start.0.abs_diff(piece.start.0))?;
        Some(self.run_in(region, piece.start, size).1)
    }
}
