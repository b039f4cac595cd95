//! Which blocks of a file move where. Pure: the blocks that are available are an argument.
//!
//! A file is a list of runs between holes, and a run is a list of pieces, each on one track. Pieces
//! that are whole tracks stay. A *stretch* is what lies between two of them. The blocks of a
//! stretch move to whole tracks one after another, and those that are left at its end move to one
//! track together. If that would leave less than [`WHOLE_SHARE_GOAL`] of the file on whole tracks,
//! because too many ends are left, everything after the first block that is not on a whole track
//! moves instead.

use std::collections::VecDeque;
use std::ops::Range;

use traxtent_layout::{File, Partition};
use traxtent_units::{Block, Blocks};

use crate::FileExtent;
use crate::supply::{Run, Source, Supply};

/// The share of a file on whole tracks from which it is left as it is.
///
/// A file in one piece has 97 to 99 % on whole tracks of 65 to 250 blocks without any effort: only
/// its ends, and the blocks that span boundaries, are not.
pub(crate) const WHOLE_SHARE_GOAL: f64 = 0.95;

/// A step: consecutive blocks of a file that move to one track.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BlockMove {
    /// The position in the file of the first block that moves.
    pub(crate) file_block: u64,
    /// The blocks that hold them now, in file order.
    pub(crate) from: Vec<Range<Block>>,
    /// The available blocks that they move to.
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
        let gaps: Vec<Stretch> = runs
            .iter()
            .flat_map(|(first, run)| stretches(*first, run, partition))
            .collect();
        let left: u64 = gaps
            .iter()
            .map(|gap| gap.blocks % size_near(partition, gap.near))
            .sum();
        let stretches = if (blocks - left) as f64 >= WHOLE_SHARE_GOAL * blocks as f64 {
            gaps
        } else {
            let all = |(first, run): &(u64, File)| rest(*first, run, partition);
            runs.iter().filter_map(all).collect()
        };
        let is_worth_it = |stretch: &Stretch| stretch.is_worth_it(partition);
        FilePlan {
            stretches: stretches.into_iter().filter(is_worth_it).collect(),
        }
    }

    /// Returns the number of blocks in the stretches that are left, an upper bound of those that
    /// will move.
    pub(crate) fn blocks(&self) -> Blocks {
        Blocks(self.stretches.iter().map(|stretch| stretch.blocks).sum())
    }

    /// Returns the next step. The blocks that a move uses are still available afterwards; the
    /// caller takes them, and adds those that become available.
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
        self.extents.push_back(blocks);
    }

    /// Returns whether fewer pieces than now can hold the blocks.
    fn is_worth_it(&self, partition: &Partition) -> bool {
        let mut file = File::new();
        self.extents.iter().cloned().for_each(|run| file.push(run));
        let needed = self.blocks.div_ceil(size_near(partition, self.near));
        file.pieces(partition).count() as u64 > needed
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

    /// Removes the first blocks, and returns them.
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

/// Returns the number of blocks on the track at or after a block; 1 if there is none.
fn size_near(partition: &Partition, block: Block) -> u64 {
    let traxtent = partition.traxtent_from(block);
    traxtent.map_or(1, |traxtent| traxtent.size().0)
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

/// Returns what lies between the whole tracks of a run.
fn stretches(first: u64, run: &File, partition: &Partition) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    let mut near = None;
    let mut is_open = false;
    for piece in run.pieces(partition) {
        if piece.whole {
            near = Some(piece.blocks.end);
            is_open = false;
            continue;
        }
        if !is_open {
            let near = near.unwrap_or(piece.blocks.start);
            found.push(Stretch::new(first + piece.offset.0, near));
            is_open = true;
        }
        let stretch = found.last_mut().expect("it has just been opened");
        stretch.push(piece.blocks);
    }
    found
}

/// Returns everything from the first block of a run that is not on a whole track.
fn rest(first: u64, run: &File, partition: &Partition) -> Option<Stretch> {
    let mut near = None;
    let start = run.pieces(partition).find(|piece| {
        if piece.whole {
            near = Some(piece.blocks.end);
        }
        !piece.whole
    })?;
    let near = near.unwrap_or(start.blocks.start);
    let mut stretch = Stretch::new(first + start.offset.0, near);
    run.part(start.offset..run.blocks())
        .for_each(|part| stretch.push(part));
    Some(stretch)
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

/// The result that a realignment can have at best.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// The extents of the file afterwards, in file order.
    pub extents: Vec<FileExtent>,
    /// The number of bytes that move.
    pub moved_bytes: u64,
}

/// Plans the realignment of a file, as if the file system's free space, given as byte ranges of its
/// device, could be used as the plan wishes. The kernel chooses the blocks in fact, so the result
/// is an upper bound.
pub fn forecast(
    extents: &[FileExtent],
    partition: &Partition,
    block_bytes: u64,
    free: &[Range<u64>],
) -> Forecast {
    let mut plan = FilePlan::new(extents, partition, block_bytes);
    let mut supply = Supply::new(partition.clone());
    let at = extents.first().map_or(0, |extent| extent.device_start);
    let mut free: Vec<_> = free.to_vec();
    free.sort_by_key(|range| range.start.abs_diff(at));
    let wanted = plan.blocks().0.saturating_mul(4);
    for range in free {
        if supply.blocks().0 > wanted {
            break;
        }
        let end = (range.end / block_bytes).min(partition.blocks().0);
        let start = range.start.div_ceil(block_bytes).min(end);
        supply.add(Run {
            blocks: Block(start)..Block(end),
            source: Source::default(),
        });
    }
    let mut moves = Vec::new();
    while let Step::Move(step) = plan.next(&supply) {
        let taken = supply.take(&step.to);
        for (run, old) in pairs(&taken, &step.from) {
            supply.add(Run {
                blocks: old,
                source: run.source,
            });
        }
        moves.push(step);
    }
    let length = |step: &BlockMove| (step.to.end.0 - step.to.start.0) * block_bytes;
    Forecast {
        moved_bytes: moves.iter().map(length).sum(),
        extents: apply(extents, &moves, block_bytes),
    }
}

/// Returns a file's extents after moves, which are in file order.
fn apply(extents: &[FileExtent], moves: &[BlockMove], block_bytes: u64) -> Vec<FileExtent> {
    let mut after: Vec<FileExtent> = Vec::new();
    let mut push = |extent: FileExtent| match after.last_mut() {
        Some(last)
            if last.file.end == extent.file.start
                && last.device().end == extent.device_start
                && last.is_unwritten == extent.is_unwritten =>
        {
            last.file.end = extent.file.end;
        }
        _ if extent.file.is_empty() => {}
        _ => after.push(extent),
    };
    let mut moves = moves.iter().peekable();
    for extent in extents {
        let mut at = extent.file.start;
        while at < extent.file.end {
            let next = moves.peek().map(|step| {
                let start = step.file_block * block_bytes;
                let length = (step.to.end.0 - step.to.start.0) * block_bytes;
                (start..start + length, step.to.start.0 * block_bytes)
            });
            let (end, device_start) = match next {
                Some((range, to)) if range.contains(&at) => {
                    (range.end.min(extent.file.end), to + (at - range.start))
                }
                next => {
                    let end = next.map_or(extent.file.end, |(range, _)| range.start);
                    let end = end.min(extent.file.end);
                    (end, extent.device_start + (at - extent.file.start))
                }
            };
            push(FileExtent {
                file: at..end,
                device_start,
                is_unwritten: extent.is_unwritten,
            });
            at = end;
            if let Some(step) = moves.peek() {
                let blocks = step.to.end.0 - step.to.start.0;
                if (step.file_block + blocks) * block_bytes <= at {
                    moves.next();
                }
            }
        }
    }
    after
}
