//! Allocation of blocks along tracks (paper T, sections 3.2 and 4.2.2), and without them.
//!
//! The rule of the paper: a file goes on in the next block; where that is excluded or in use, it
//! goes on at the beginning of the closest traxtent that is free whole. A file of middling size is
//! put where it fits within one traxtent. When no traxtent is free whole, and for the allocator
//! that knows no tracks, it is the closest run of free blocks that is large enough, and then half
//! of that, and so on: the clustered allocation of FFS (paper T, section 4.2.1), where what is
//! close is kept in groups of blocks.
//!
//! Every question costs the logarithm of the number of tracks, and the look at the bits of one
//! traxtent. Blocks take a bit once a block near them was used, tracks 9 bytes. Left out: whatever
//! must survive a crash, which is for the file system that keeps the record of what is in use.

use std::ops::Range;

use super::free_space::FreeSpace;
use super::nearest::Largest;
use super::partition::len;
use super::regions::{Region, Regions};
use super::{LayoutError, Partition, Space};
use crate::units::{Block, Blocks};

/// Whether an allocator heeds tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Runs of free blocks, wherever boundaries are; no block is excluded.
    Conventional,
    /// Runs of free blocks within traxtents.
    Traxtent,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Strategy; 2] = [Strategy::Conventional, Strategy::Traxtent];

    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        match self {
            Strategy::Conventional => "conventional",
            Strategy::Traxtent => "traxtent",
        }
    }
}

/// Which blocks an allocation looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// To go on: the blocks from the given one on if they are free, as many as are asked for or up
    /// to the end of the traxtent; else the first of the closest traxtent that is free whole; else
    /// the closest run that is long enough, or half as long, and so on. Fewer blocks may be had
    /// than are asked for, but one always, if any is free.
    Next,
    /// All in the closest run of free blocks that holds them, which lies in one traxtent.
    Together,
    /// The same, but no traxtent that is free whole is broken for it.
    Partial,
    /// The closest traxtent that is free whole, all of it, even if fewer blocks are asked for.
    Whole,
}

impl Placement {
    /// All of them.
    pub const ALL: [Placement; 4] = [
        Placement::Next,
        Placement::Together,
        Placement::Partial,
        Placement::Whole,
    ];

    /// The name by which it is chosen.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Next => "next",
            Placement::Together => "together",
            Placement::Partial => "partial",
            Placement::Whole => "whole",
        }
    }
}

/// Which blocks of a partition are in use, and which to use next.
#[derive(Clone, Debug)]
pub struct Allocator {
    pub(super) regions: Regions,
    pub(super) free: FreeSpace,
}

impl Allocator {
    /// Blocks of a group of the conventional allocator: 32 MB of 8 KB blocks, as paper T has them.
    pub const GROUP: Blocks = Blocks(4096);

    /// An allocator of the partition's blocks, all free.
    pub fn new(partition: Partition, strategy: Strategy) -> Allocator {
        match strategy {
            Strategy::Traxtent => Allocator::of(Regions::traxtents(partition)),
            Strategy::Conventional => Allocator::in_groups(partition, Allocator::GROUP)
                .expect("the size of a group is in bounds"),
        }
    }

    /// A conventional allocator with groups of this size; no run is allocated across their ends.
    ///
    /// # Errors
    /// If a group has no block, or 2^32 or more.
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

    /// Whether it heeds tracks.
    pub fn strategy(&self) -> Strategy {
        if self.regions.are_traxtents() {
            Strategy::Traxtent
        } else {
            Strategy::Conventional
        }
    }

    /// The free space, counted as it changes. For a conventional allocator, groups stand for
    /// traxtents; [`Space::count`] tells how its free blocks lie on tracks.
    pub fn space(&self) -> Space {
        self.free.space
    }

    /// Whether a block can be allocated: it is not in use, not excluded, not beyond the partition.
    pub fn is_free(&self, block: Block) -> bool {
        self.regions.of(block).is_some() && self.free.map.is_free(block)
    }

    /// Uses free blocks, at most `count` of them in one run, as close to the block `near` as
    /// `placement` allows; none if there are none such.
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

    /// Uses blocks for a file of so many: within one traxtent if it fits into that of `near`, else
    /// in traxtents that are free whole, the last one in part, as close to each other as may be.
    ///
    /// # Errors
    /// If there are not so many free blocks; then none is used.
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
                .expect("free blocks are counted right");
            near = extent.end;
            left -= len(&extent);
            extents.push(extent);
        }
        Ok(extents)
    }

    /// Uses these very blocks.
    ///
    /// # Errors
    /// If one of them is in use, excluded, or beyond the partition; then none is used.
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

    /// Frees blocks, which may be any that are in use.
    ///
    /// # Errors
    /// If one of them is free, excluded, or beyond the partition; then none is freed.
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

    /// The runs of free blocks in a range, cut at the ends of traxtents.
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
            Strategy::Traxtent => self.closest_whole(near, count),
            Strategy::Conventional => None,
        };
        let longest = count.min(self.free.longest());
        let halves = std::iter::successors(Some(longest), |least| Some(least / 2));
        let mut halves = halves.take_while(|&least| least > 0);
        self.at_once(near, count)
            .or_else(whole)
            .or_else(|| halves.find_map(|least| self.closest_run(near, least)))
    }

    /// The blocks from `near` on, if they are free: all that are asked for, or all to the end.
    fn at_once(&self, near: Block, count: u32) -> Option<(Region, Range<Block>)> {
        let region = self.regions.of(near)?;
        let end = Block(near.0 + u64::from(count)).min(region.blocks.end);
        let free = self.free.map.first(&(near..end), true).is_none();
        free.then_some((region, near..end))
    }

    /// The closest traxtent that is free whole, up to so many blocks.
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

    /// The region closest to a block for which one of the numbers is at least `least`.
    pub(super) fn closest(&self, numbers: &[&Largest], near: Block, least: u32) -> Option<Region> {
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

    /// So many blocks of the free run of a region that is closest to a block: from that block on
    /// if tracks do not matter, else from the beginning of the run, so that none breaks in three.
    pub(super) fn run_in(&self, region: Region, near: Block, count: u32) -> (Region, Range<Block>) {
        let count = u64::from(count);
        let runs = self.free.map.free_runs(region.blocks.clone());
        let starts = runs
            .filter(|run| len(run).0 >= count)
            .map(|run| match self.strategy() {
                Strategy::Traxtent => run.start,
                Strategy::Conventional => near.clamp(run.start, Block(run.end.0 - count)),
            });
        let start = starts
            .min_by_key(|start| start.0.abs_diff(near.0))
            .expect("the longest run of each region is known");
        (region, start..start + Blocks(count))
    }
}

/// Blocks between a block and the first of a region, 0 if it is within.
fn distance(region: &Range<Block>, near: Block) -> u64 {
    if region.contains(&near) {
        0
    } else {
        region.start.0.abs_diff(near.0)
    }
}
