//! Allocation of blocks, with and without regard to tracks (paper T, sections 3.2 and 4.2.2).
//!
//! The paper's rule: a file continues in the next block. If that block is excluded or in use, the
//! file continues at the beginning of the closest traxtent that is entirely free. A medium-sized
//! file is placed where it fits within one traxtent. When no traxtent is entirely free, the
//! allocator takes the closest run of free blocks that is large enough, then the closest of half
//! that size, and so on. The conventional allocator, which ignores tracks, makes this search
//! whenever a file cannot continue in the next block. This is the clustered allocation of FFS
//! (paper T, section 4.2.1), in which groups of blocks preserve locality.
//!
//! Each query takes time logarithmic in the number of tracks, plus a scan of one traxtent's bits.
//! Blocks take one bit each once a block near them has been used; tracks take 9 bytes each. Crash
//! safety is left out: the file system must store which blocks are in use.

use std::ops::Range;

use super::free_space::FreeSpace;
use super::nearest::MaxTree;
use super::partition::len;
use super::regions::{Region, Regions};
use super::{LayoutError, Partition, Space};
use traxtent_units::{Block, Blocks};

/// Whether an allocator takes tracks into account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocatorKind {
    /// Runs of free blocks, regardless of boundaries. No block is excluded.
    Conventional,
    /// Runs of free blocks within traxtents.
    Traxtent,
}

impl AllocatorKind {
    /// All kinds.
    pub const ALL: [AllocatorKind; 2] = [AllocatorKind::Conventional, AllocatorKind::Traxtent];

    /// The kind's name in options.
    pub fn name(self) -> &'static str {
        match self {
            AllocatorKind::Conventional => "conventional",
            AllocatorKind::Traxtent => "traxtent",
        }
    }
}

/// The blocks that an allocation looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Continue at the given block: take blocks from there if they are free, up to the requested
    /// count or to the end of the traxtent. Otherwise take the first blocks of the closest traxtent
    /// that is entirely free; a conventional allocator omits this. Otherwise take the closest run
    /// that is long enough, or half as long, and so on. The result can be shorter than requested,
    /// but holds at least one block if any is free.
    Next,
    /// All blocks in the closest run of free blocks that is long enough. The run lies in one
    /// traxtent, or in one group of a conventional allocator.
    Together,
    /// Like `Together`, but does not break up a traxtent that is entirely free.
    Partial,
    /// The whole of the closest traxtent that is entirely free, even if fewer blocks are requested.
    Whole,
}

impl Placement {
    /// All placements.
    pub const ALL: [Placement; 4] = [
        Placement::Next,
        Placement::Together,
        Placement::Partial,
        Placement::Whole,
    ];

    /// The placement's name in options.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Next => "next",
            Placement::Together => "together",
            Placement::Partial => "partial",
            Placement::Whole => "whole",
        }
    }
}

/// The record of a partition's used blocks, and the allocation of free ones.
#[derive(Clone, Debug)]
pub struct Allocator {
    pub(super) regions: Regions,
    pub(super) free: FreeSpace,
}

impl Allocator {
    /// The size of a group of the conventional allocator: 32 MB of 8 KB blocks, as in paper T.
    pub const GROUP: Blocks = Blocks(4096);

    /// Creates an allocator for the partition's blocks, all free.
    pub fn new(partition: Partition, strategy: AllocatorKind) -> Allocator {
        match strategy {
            AllocatorKind::Traxtent => Allocator::of(Regions::traxtents(partition)),
            AllocatorKind::Conventional => Allocator::in_groups(partition, Allocator::GROUP)
                .expect("the size of a group is in bounds"),
        }
    }

    /// Creates a conventional allocator with groups of this size. No run is allocated across the
    /// end of a group.
    ///
    /// # Errors
    /// Returns an error if a group has no blocks, or 2^32 or more.
    pub fn in_groups(partition: Partition, group: Blocks) -> Result<Allocator, LayoutError> {
        Ok(Allocator::of(Regions::groups(partition, group)?))
    }

    fn of(regions: Regions) -> Allocator {
        let free = FreeSpace::new(regions.partition().blocks(), regions.sizes());
        Allocator { regions, free }
    }

    /// The partition.
    pub fn partition(&self) -> &Partition {
        self.regions.partition()
    }

    /// Returns whether the allocator takes tracks into account.
    pub fn strategy(&self) -> AllocatorKind {
        if self.regions.are_traxtents() {
            AllocatorKind::Traxtent
        } else {
            AllocatorKind::Conventional
        }
    }

    /// Returns the free space, which is updated on each change. For a conventional allocator,
    /// groups take the place of traxtents; [`Space::count`] counts its free blocks by tracks.
    pub fn space(&self) -> Space {
        self.free.space
    }

    /// Returns whether a block can be allocated: it is not in use, not excluded, and not beyond the
    /// end of the partition.
    pub fn is_free(&self, block: Block) -> bool {
        self.regions.of(block).is_some() && self.free.map.is_free(block)
    }

    /// Allocates free blocks in one run, as close to the block `near` as `placement` allows. The
    /// run has at most `count` blocks, except with [`Placement::Whole`]. Returns `None` if there is
    /// no such run, or if `count` is 0.
    pub fn allocate(
        &mut self,
        near: Block,
        count: Blocks,
        placement: Placement,
    ) -> Option<Range<Block>> {
        if count.0 == 0 {
            return None;
        }
        let count = u32::try_from(count.0).unwrap_or(u32::MAX);
        let (region, blocks) = match placement {
            Placement::Next => self.following(near, count)?,
            Placement::Together => self.closest_run(near, count)?,
            Placement::Partial => self.partial_run(near, count)?,
            Placement::Whole => self.closest_whole(near, u32::MAX)?,
        };
        self.free.use_run(&region, &blocks);
        Some(blocks)
    }

    /// Allocates `count` blocks for a file. A file that is no larger than the traxtent of `near` is
    /// placed within one traxtent if any has enough space. A larger file is allocated piece by
    /// piece with [`Placement::Next`], each piece near the preceding one, until the rest can be
    /// placed within one traxtent.
    ///
    /// # Errors
    /// Returns an error if fewer than `count` blocks are free. None is then allocated.
    pub fn allocate_file(
        &mut self,
        near: Block,
        count: Blocks,
    ) -> Result<Vec<Range<Block>>, LayoutError> {
        let free = self.free.space.free;
        if count > free {
            return Err(LayoutError::Full {
                wanted: count,
                free,
            });
        }
        let (mut near, mut left, mut extents) = (near, count, Vec::new());
        while left.0 > 0 {
            let fits = self
                .regions
                .from(near)
                .is_none_or(|region| left <= len(&region.blocks));
            let together = fits.then(|| self.allocate(near, left, Placement::Together));
            let extent = together
                .flatten()
                .or_else(|| self.allocate(near, left, Placement::Next))
                .expect("the count of free blocks is correct");
            near = extent.end;
            left -= len(&extent);
            extents.push(extent);
        }
        Ok(extents)
    }

    /// Allocates exactly these blocks.
    ///
    /// # Errors
    /// Returns an error if one of them is in use, excluded, or beyond the end of the partition.
    /// None is then allocated.
    pub fn claim(&mut self, blocks: &Range<Block>) -> Result<(), LayoutError> {
        self.check_inside(blocks)?;
        if let Some(used) = self.free.map.first(blocks, true) {
            return Err(LayoutError::InUse(used));
        }
        if let Some(excluded) = self.first_excluded(blocks) {
            return Err(LayoutError::Excluded(excluded));
        }
        for (region, part) in self.regions.parts(blocks.clone()) {
            self.free.use_run(&region, &part);
        }
        Ok(())
    }

    /// Frees blocks. They need not have been allocated together.
    ///
    /// # Errors
    /// Returns an error if one of them is free, excluded, or beyond the end of the partition. None
    /// is then freed.
    pub fn free(&mut self, blocks: &Range<Block>) -> Result<(), LayoutError> {
        self.check_inside(blocks)?;
        if let Some(free) = self.free.map.first(blocks, false) {
            return Err(match self.regions.of(free) {
                Some(_) => LayoutError::Free(free),
                None => LayoutError::Excluded(free),
            });
        }
        for (region, part) in self.regions.parts(blocks.clone()) {
            self.free.free_run(&region, &part);
        }
        Ok(())
    }

    /// Returns the runs of free blocks in a range, cut at the ends of traxtents or groups.
    pub fn free_runs(&self, blocks: Range<Block>) -> impl Iterator<Item = Range<Block>> {
        let parts = self.regions.parts(blocks);
        parts.flat_map(|(_, part)| self.free.map.free_runs(part))
    }

    fn check_inside(&self, range: &Range<Block>) -> Result<(), LayoutError> {
        let blocks = self.partition().blocks();
        if range.start < range.end && range.end.0 > blocks.0 {
            let block = range.start.max(Block(blocks.0));
            return Err(LayoutError::Beyond { block, blocks });
        }
        Ok(())
    }

    fn first_excluded(&self, blocks: &Range<Block>) -> Option<Block> {
        let mut next = blocks.start;
        for (_, part) in self.regions.parts(blocks.clone()) {
            if part.start > next {
                break;
            }
            next = part.end;
        }
        (next < blocks.end).then_some(next)
    }

    fn following(&self, near: Block, count: u32) -> Option<(Region, Range<Block>)> {
        let whole = || match self.strategy() {
            AllocatorKind::Traxtent => self.closest_whole(near, count),
            AllocatorKind::Conventional => None,
        };
        let longest = count.min(self.free.longest());
        let halves = std::iter::successors(Some(longest), |least| Some(least / 2));
        let mut halves = halves.take_while(|&least| least > 0);
        self.run_at(near, count)
            .or_else(whole)
            .or_else(|| halves.find_map(|least| self.closest_run(near, least)))
    }

    /// Returns the blocks starting at `near` if they are free: `count` of them, or all to the end
    /// of the region.
    fn run_at(&self, near: Block, count: u32) -> Option<(Region, Range<Block>)> {
        let region = self.regions.of(near)?;
        let end = Block(near.0 + u64::from(count)).min(region.blocks.end);
        let free = self.free.map.first(&(near..end), true).is_none();
        free.then_some((region, near..end))
    }

    /// Returns up to `count` blocks of the closest traxtent that is entirely free.
    fn closest_whole(&self, near: Block, count: u32) -> Option<(Region, Range<Block>)> {
        let region = self.closest(&[&self.free.whole], near, 1)?;
        let start = region.blocks.start;
        let end = Block(start.0 + u64::from(count)).min(region.blocks.end);
        Some((region, start..end))
    }

    fn closest_run(&self, near: Block, count: u32) -> Option<(Region, Range<Block>)> {
        let region = self.closest(&[&self.free.whole, &self.free.partial], near, count)?;
        Some(self.run_in(region, near, count))
    }

    fn partial_run(&self, near: Block, count: u32) -> Option<(Region, Range<Block>)> {
        let region = self.closest(&[&self.free.partial], near, count)?;
        Some(self.run_in(region, near, count))
    }

    /// Returns the region closest to `near` for which one of `numbers` is at least `least`.
    pub(super) fn closest(&self, numbers: &[&MaxTree], near: Block, least: u32) -> Option<Region> {
        let here = self.regions.from(near);
        let from = here.as_ref().map_or(usize::MAX, |region| region.at);
        let after = numbers
            .iter()
            .filter_map(|row| row.at_or_after(from, least));
        let after = after.min();
        if let Some(here) = here.filter(|here| after == Some(from) && here.blocks.start <= near) {
            return Some(here);
        }
        let before = numbers.iter().filter_map(|row| row.before(from, least));
        let at = |at| self.regions.at(at);
        match (after.map(at), before.max().map(at)) {
            (Some(after), Some(before)) => {
                let ahead = distance(&after.blocks, near) <= distance(&before.blocks, near);
                Some(if ahead { after } else { before })
            }
            (after, before) => after.or(before),
        }
    }

    /// Returns `count` blocks of the region's free run that is closest to `near`. If tracks do not
    /// matter, they start at `near` where possible. Otherwise they start at the beginning of the
    /// run, which leaves one free run instead of two.
    pub(super) fn run_in(&self, region: Region, near: Block, count: u32) -> (Region, Range<Block>) {
        let count = u64::from(count);
        let runs = self.free.map.free_runs(region.blocks.clone());
        let starts = runs
            .filter(|run| len(run).0 >= count)
            .map(|run| match self.strategy() {
                AllocatorKind::Traxtent => run.start,
                AllocatorKind::Conventional => near.clamp(run.start, Block(run.end.0 - count)),
            });
        let start = starts
            .min_by_key(|start| start.0.abs_diff(near.0))
            .expect("the longest run of each region is known");
        (region, start..start + Blocks(count))
    }
}

/// The distance in blocks from `near` to the first block of a region, or 0 if `near` is within it.
fn distance(region: &Range<Block>, near: Block) -> u64 {
    if region.contains(&near) {
        0
    } else {
        region.start.0.abs_diff(near.0)
    }
}
