//! The choice of the blocks of a file that move, and of their new places, without I/O: the caller
//! passes the available blocks.
//!
//! A file is a list of runs between holes. A run is a list of pieces, each within one track or a
//! single block that spans a boundary. A *stretch* is a longest sequence of pieces that are not
//! whole tracks. The blocks of a stretch move to whole tracks one after another, and those that are
//! left at its end move to one track together.
//!
//! Tracks that are already whole stay in place if [`WHOLE_SHARE_GOAL`] of the file can then be on
//! whole tracks. If not, too many stretches end with part of a track. Consecutive stretches of a
//! run are then combined, together with the whole tracks between them, until that run reaches the
//! goal. Stretches are not combined if that would fill no further track.

use std::collections::VecDeque;
use std::ops::Range;

use traxtent_layout::{File, Partition};
use traxtent_units::{Block, Blocks};

use crate::FileExtent;
use crate::supply::{Run, Supply};

/// The goal for the share of a file on whole tracks. If it can be reached without moving tracks
/// that are already whole, these stay.
///
/// Without realignment, a large contiguous file has 97 to 99 % of its blocks on whole tracks, if a
/// track has 65 to 250 blocks. Only its ends, and the blocks that span boundaries, are not on them.
pub(crate) const WHOLE_SHARE_GOAL: f64 = 0.95;

/// A move: consecutive blocks of a file that go to one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockMove {
    /// The position in the file of the first block that moves.
    pub(crate) file_block: u64,
    /// The disk blocks that hold the moved data now, in file order.
    pub(crate) from: Vec<Range<Block>>,
    /// The available blocks to which the data moves.
    pub(crate) to: Range<Block>,
}

/// The next step of a plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// A move.
    Move(BlockMove),
    /// Nothing is left to be moved.
    Done,
    /// No available track is suitable.
    Starved,
}

/// The plan for a file, made step by step.
#[derive(Debug)]
pub(crate) struct FilePlan {
    stretches: VecDeque<Stretch>,
}

/// Consecutive blocks of a file that are to be moved.
#[derive(Debug)]
struct Stretch {
    file_block: u64,
    extents: VecDeque<Range<Block>>,
    /// The number of blocks in the extents.
    blocks: u64,
    /// The block near which they are best placed.
    near: Block,
}

impl FilePlan {
    /// Plans for a file with these extents.
    pub(crate) fn new(extents: &[FileExtent], partition: &Partition, block_bytes: u64) -> FilePlan {
        let runs = data_runs(extents, block_bytes);
        let blocks: u64 = runs.iter().map(|(_, run)| run.blocks().0).sum();
        let runs = runs
            .iter()
            .map(|(first, run)| sections(*first, run, partition));
        let runs: Vec<Vec<Section>> = runs.collect();
        let left: f64 = runs.iter().flatten().map(|section| section.left).sum();
        let stretches: Vec<Stretch> = if is_enough(left, blocks) {
            let separate = runs.into_iter().flatten();
            separate.map(|section| section.stretch).collect()
        } else {
            let combined = runs.into_iter().map(|run| combine(run, partition));
            combined.flatten().collect()
        };
        let is_worth_it = |stretch: &Stretch| stretch.is_worth_it(partition);
        FilePlan {
            stretches: stretches.into_iter().filter(is_worth_it).collect(),
        }
    }

    /// Returns the number of blocks in the stretches that are left, an upper bound on the number
    /// that will move.
    pub(crate) fn blocks(&self) -> Blocks {
        Blocks(self.stretches.iter().map(|stretch| stretch.blocks).sum())
    }

    /// Returns the next step. For a move, the caller must remove its target blocks from the supply,
    /// and can add the blocks that it frees as soon as they are available.
    pub(crate) fn next(&mut self, supply: &Supply) -> Step {
        while let Some(stretch) = self.stretches.front_mut() {
            match stretch.next(supply) {
                Step::Done => {
                    self.stretches.pop_front();
                }
                step => return step,
            }
        }
        Step::Done
    }
}

impl Stretch {
    /// Begins an empty stretch.
    fn new(file_block: u64, near: Block) -> Stretch {
        Stretch {
            file_block,
            extents: VecDeque::new(),
            blocks: 0,
            near,
        }
    }

    fn push(&mut self, blocks: Range<Block>) {
        self.blocks += blocks.end.0 - blocks.start.0;
        match self.extents.back_mut() {
            Some(last) if last.end == blocks.start => last.end = blocks.end,
            _ => self.extents.push_back(blocks),
        }
    }

    /// Returns whether the blocks can fill a track, or are in more fragments than necessary. Going
    /// on to the next track is faster than a seek, so an extent that crosses a boundary counts as
    /// one fragment.
    fn is_worth_it(&self, partition: &Partition) -> bool {
        let size = size_near(partition, self.near);
        self.blocks as f64 >= size || self.extents.len() > 1
    }

    fn next(&mut self, supply: &Supply) -> Step {
        let partition = supply.partition();
        loop {
            let left = self.blocks;
            let Some(front) = self.extents.front().cloned() else {
                return Step::Done;
            };
            let piece = partition.traxtent_of(front.start).map(|traxtent| {
                let end = traxtent.blocks.end.min(front.end);
                (traxtent.blocks == (front.start..end), end)
            });
            match piece {
                // Already a whole track.
                Some((true, end)) => {
                    self.near = end;
                    self.take(end.0 - front.start.0);
                    continue;
                }
                // The last part is already on one track.
                Some((false, end)) if end.0 - front.start.0 == left => return Step::Done,
                _ => {}
            }
            let whole = supply.closest_whole(self.near).map(|found| found.blocks);
            let to = match whole {
                Some(whole) if whole.end.0 - whole.start.0 <= left => whole,
                _ => match supply.closest_run(self.near, Blocks(left)) {
                    Some(run) => run,
                    None => return Step::Starved,
                },
            };
            let file_block = self.file_block;
            let from = self.take(to.end.0 - to.start.0);
            self.near = to.end;
            return Step::Move(BlockMove {
                file_block,
                from,
                to,
            });
        }
    }

    /// Removes the first `count` blocks, and returns them.
    fn take(&mut self, count: u64) -> Vec<Range<Block>> {
        let mut taken = Vec::new();
        let mut left = count;
        while left > 0 {
            let front = self
                .extents
                .pop_front()
                .expect("the stretch is long enough");
            let end = front.end.min(front.start + Blocks(left));
            left -= end.0 - front.start.0;
            if end < front.end {
                self.extents.push_front(end..front.end);
            }
            taken.push(front.start..end);
        }
        self.file_block += count;
        self.blocks -= count;
        taken
    }
}

/// Returns the mean number of whole blocks on tracks of the size found near `block`: that of the
/// track that holds it or, if none does, of the next track. Returns 1 if there is no such track. If
/// that size is not a multiple of a block, the number can differ by one between such tracks.
fn size_near(partition: &Partition, block: Block) -> f64 {
    let track = partition
        .traxtent_from(block)
        .and_then(|traxtent| partition.map().track(traxtent.track));
    track.map_or(1.0, |track| {
        let (sectors, unit) = (track.sectors.0, u64::from(partition.block_sectors()));
        // Tracks begin at each multiple of the divisor within a block, equally often.
        let divisor = gcd(sectors, unit);
        ((sectors + divisor).saturating_sub(unit).max(unit)) as f64 / unit as f64
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Returns the number of blocks that are left once as many tracks of `size` blocks as possible are
/// full.
fn left_of(blocks: u64, size: f64) -> f64 {
    blocks as f64 % size
}

/// Returns the runs of a file between holes, each with the position of its first block.
fn data_runs(extents: &[FileExtent], block_bytes: u64) -> Vec<(u64, File)> {
    let mut runs: Vec<(u64, File)> = Vec::new();
    for extent in extents {
        let blocks = extent.device();
        let blocks = Block(blocks.start / block_bytes)..Block(blocks.end / block_bytes);
        let first = extent.file.start / block_bytes;
        match runs.last_mut() {
            Some((start, run)) if *start + run.blocks().0 == first => run.push(blocks),
            _ => {
                let mut run = File::new();
                run.push(blocks);
                runs.push((first, run));
            }
        }
    }
    runs
}

/// A stretch, and the whole tracks that follow it.
#[derive(Debug)]
struct Section {
    stretch: Stretch,
    /// The number of blocks of the stretch that fill no track.
    left: f64,
    whole: Vec<Range<Block>>,
    /// The number of blocks of the whole tracks.
    whole_blocks: u64,
}

/// Returns the sections of a run. Whole tracks at its beginning belong to none.
fn sections(first: u64, run: &File, partition: &Partition) -> Vec<Section> {
    let mut found: Vec<Section> = Vec::new();
    let mut is_open = false;
    let mut near = None;
    for piece in run.pieces(partition) {
        if piece.whole {
            near = Some(piece.blocks.end);
            is_open = false;
            if let Some(section) = found.last_mut() {
                section.whole_blocks += piece.blocks.end.0 - piece.blocks.start.0;
                section.whole.push(piece.blocks);
            }
            continue;
        }
        if !is_open {
            let near = near.unwrap_or(piece.blocks.start);
            found.push(Section {
                stretch: Stretch::new(first + piece.offset.0, near),
                left: 0.0,
                whole: Vec::new(),
                whole_blocks: 0,
            });
            is_open = true;
        }
        let section = found.last_mut().expect("a section is open");
        section.stretch.push(piece.blocks);
    }
    for section in &mut found {
        let size = size_near(partition, section.stretch.near);
        section.left = left_of(section.stretch.blocks, size);
    }
    found
}

/// Combines consecutive sections of a run, as far as that is necessary for the goal.
fn combine(run: Vec<Section>, partition: &Partition) -> Vec<Stretch> {
    let mut stretches = Vec::new();
    let mut group = Vec::new();
    // The blocks of the run so far.
    let mut blocks = 0;
    // The leftover blocks of the finished groups, which fill no track.
    let mut left = 0.0;
    // The blocks of the stretches in the current group.
    let mut inside = 0;
    for section in run {
        let size = size_near(partition, section.stretch.near);
        blocks += section.stretch.blocks + section.whole_blocks;
        inside += section.stretch.blocks;
        group.push(section);
        if is_enough(left + left_of(inside, size), blocks) {
            left += left_of(inside, size);
            inside = 0;
            finish(std::mem::take(&mut group), partition, &mut stretches);
        }
    }
    finish(group, partition, &mut stretches);
    stretches
}

/// Appends the stretches of a group, combined into one if that fills a further track.
fn finish(group: Vec<Section>, partition: &Partition, stretches: &mut Vec<Stretch>) {
    let Some(first) = group.first() else { return };
    let size = size_near(partition, first.stretch.near);
    let apart: f64 = group.iter().map(|section| section.left).sum();
    let is_combined = apart >= size;
    let mut open: Option<Stretch> = None;
    let mut whole = Vec::new();
    for section in group {
        match &mut open {
            Some(open) => {
                let between = std::mem::take(&mut whole).into_iter();
                between
                    .chain(section.stretch.extents)
                    .for_each(|blocks| open.push(blocks));
            }
            None if is_combined => open = Some(section.stretch),
            None => stretches.push(section.stretch),
        }
        whole = section.whole;
    }
    stretches.extend(open);
}

/// Returns whether the goal is reached if `left` of `blocks` blocks are not on whole tracks.
fn is_enough(left: f64, blocks: u64) -> bool {
    left <= (1.0 - WHOLE_SHARE_GOAL) * blocks as f64
}

/// Matches the blocks that a move takes with those that it leaves: parts of equal length, in order.
pub(crate) fn pairs(taken: &[Run], from: &[Range<Block>]) -> Vec<(Run, Range<Block>)> {
    let mut pairs = Vec::new();
    let mut old = from.iter().cloned();
    let mut left = Block(0)..Block(0);
    for run in taken {
        let mut run = run.clone();
        while !run.blocks.is_empty() {
            if left.is_empty() {
                left = old.next().expect("both have the same length");
            }
            let length = (left.end.0 - left.start.0).min(run.blocks.end.0 - run.blocks.start.0);
            let part = Run {
                blocks: run.blocks.start..run.blocks.start + Blocks(length),
                source: run.source,
            };
            pairs.push((part, left.start..left.start + Blocks(length)));
            left.start += Blocks(length);
            run.blocks.start += Blocks(length);
            run.source.block += length;
        }
    }
    pairs
}

#[cfg(test)]
mod tests;
