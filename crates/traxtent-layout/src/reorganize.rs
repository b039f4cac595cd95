//! Reorganization (paper T, section 3.2): moves files that are broken up by aging, or that were
//! laid out for another drive's boundaries. Afterwards, as far as free space allows, they occupy
//! whole traxtents again, and the last blocks of each file are in one piece.
//!
//! On-line, the file system calls a [`Reorganizer`] for one step whenever the disk is idle, and
//! limits how many blocks it may move. Off-line, [`plan_reorganization`] takes such steps until
//! nothing more can be gained. There are two kinds of step. One *aligns*: it moves the first
//! misaligned blocks of a file into the closest traxtent that is entirely free, or all the rest of
//! the file into one run. The other *packs*: it moves a piece into a fuller traxtent, so that other
//! traxtents become entirely free. The sequence of steps is finite: each step that aligns
//! permanently lengthens the aligned part of a file. Each step that packs leaves that part as it
//! is, and increases the sum of the squares of the blocks in use in each traxtent.
//!
//! Moves are only planned here. The blocks that a move writes are free before it, and those that it
//! reads stay unchanged until the next step. A file system can therefore make each move durable
//! before it forgets the old position.

use std::ops::Range;

use super::file::Piece;
use super::partition::len;
use super::regions::Region;
use super::{Allocator, AllocatorKind, File, LayoutError, Partition, Placement};
use traxtent_units::{Block, Blocks};

/// The largest number of files examined in a step.
const FILES_PER_STEP_MAX: usize = 256;

/// A step: blocks of a file that are copied into one traxtent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The position of the file in the list.
    pub file: usize,
    /// The number of blocks of the file before the moved ones.
    pub offset: Blocks,
    /// Their present extents, in file order.
    pub from: Vec<Range<Block>>,
    /// Their new position: the same number of blocks, free until now.
    pub to: Range<Block>,
}

/// The kind of steps being searched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Align,
    Pack,
}

/// Moves files step by step. It stores no files: they can change between steps.
#[derive(Clone, Debug, Default)]
pub struct Reorganizer {
    phase: Phase,
    /// The file to be examined next.
    next: usize,
    /// The number of files examined since the last move.
    idle: usize,
}

/// The moves that lay files out along the tracks of a partition, and the resulting files.
#[derive(Clone, Debug)]
pub struct ReorganizationPlan {
    /// The moves, in order.
    pub moves: Vec<Move>,
    /// The files after all moves.
    pub files: Vec<File>,
    /// An allocator in which exactly these files' blocks are in use.
    pub allocator: Allocator,
}

/// Plans the off-line reorganization of a partition that holds only these files. They can have
/// excluded blocks, from a layout that ignored tracks.
///
/// # Errors
/// Returns the errors of [`adopt`].
pub fn plan_reorganization(
    partition: &Partition,
    files: Vec<File>,
) -> Result<ReorganizationPlan, LayoutError> {
    let mut allocator = adopt(partition, &files)?;
    let (mut files, mut moves) = (files, Vec::new());
    let mut reorganizer = Reorganizer::default();
    while !reorganizer.is_settled(&files) {
        moves.extend(reorganizer.step(&mut allocator, &mut files, Blocks(u64::MAX))?);
    }
    Ok(ReorganizationPlan {
        moves,
        files,
        allocator,
    })
}

/// Creates a track-aligned allocator in which these files' blocks are in use. Excluded blocks of a
/// file do not belong to the allocator: once the file has been moved away, they are never used
/// again.
///
/// # Errors
/// Returns an error if two files have the same block (excluded blocks are not checked), or if one
/// has a block beyond the end of the partition.
pub fn adopt(partition: &Partition, files: &[File]) -> Result<Allocator, LayoutError> {
    let mut allocator = Allocator::new(partition.clone(), AllocatorKind::Traxtent);
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
    /// Takes one step, of at most `budget` blocks. Returns `None` if no file that was examined
    /// benefits. The files and the allocator are updated as if the step had been carried out.
    ///
    /// # Errors
    /// Returns an error if the allocator ignores tracks, or if a block of a file is free in the
    /// allocator. The files are then unchanged. The allocator, which was already inconsistent, may
    /// have changed.
    pub fn step(
        &mut self,
        allocator: &mut Allocator,
        files: &mut [File],
        budget: Blocks,
    ) -> Result<Option<Move>, LayoutError> {
        if allocator.strategy() != AllocatorKind::Traxtent {
            return Err(LayoutError::NoTracks);
        }
        for _ in 0..files.len().min(FILES_PER_STEP_MAX) {
            self.wrap_around(files.len());
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

    /// Returns whether all files have been examined, for both kinds of step, since the last move.
    pub fn is_settled(&self, files: &[File]) -> bool {
        self.idle >= 2 * files.len()
    }

    fn wrap_around(&mut self, files: usize) {
        if self.next >= files {
            self.next = 0;
            self.phase = match self.phase {
                Phase::Align => Phase::Pack,
                Phase::Pack => Phase::Align,
            };
        }
    }
}

/// A part of a file, given by the number of blocks before it, and the blocks allocated for it.
type Change = (Blocks, Range<Block>);

/// Allocates a whole traxtent for the first misaligned part of a file, or one run for the rest of
/// the file if the rest is shorter than the traxtent or no traxtent is entirely free.
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

/// Allocates blocks in a fuller traxtent for a piece that does not fill its own.
fn pack(allocator: &mut Allocator, file: &File, budget: Blocks) -> Option<Change> {
    let loose = |piece: &Piece| !piece.whole && !piece.excluded && len(&piece.blocks) <= budget;
    let pieces = file.pieces(allocator.partition()).filter(loose);
    let room = |piece: Piece| Some((piece.offset, allocator.space_in_fuller(&piece.blocks)?));
    let (offset, to) = { pieces }.find_map(room)?;
    allocator.claim(&to).expect("the room is free");
    Some((offset, to))
}

/// Returns the step, and updates the file and the allocator accordingly.
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
    /// Returns the size of the closest traxtent that is entirely free.
    fn closest_whole_size(&self, near: Block) -> Option<Blocks> {
        let region = self.closest(&[&self.free.whole], near, 1)?;
        Some(len(&region.blocks))
    }

    /// Finds space for a piece in a traxtent that will then have more blocks in use than the
    /// piece's own traxtent has now. On each side, it examines only the closest partly used
    /// traxtent with enough space.
    fn space_in_fuller(&self, piece: &Range<Block>) -> Option<Range<Block>> {
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
