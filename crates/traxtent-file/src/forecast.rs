//! Forecasts the result of a realignment, without I/O: the caller passes the free space.

use std::ops::Range;

use traxtent_layout::Partition;
use traxtent_units::Block;

use crate::FileExtent;
use crate::plan::{BlockMove, FilePlan, Step, pairs};
use crate::supply::{Run, Source, Supply};

/// The best possible result of a realignment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forecast {
    /// The extents of the file afterwards, in file order.
    pub extents: Vec<FileExtent>,
    /// The number of bytes that move.
    pub moved_bytes: u64,
    /// An upper bound on the bytes that would move if every track were free; 0 if nothing is worth
    /// moving.
    pub wanted_bytes: u64,
}

/// A margin of free tracks. The forecast considers twice as many as the moved blocks fill, plus
/// this number.
const ADDITIONAL_TRACKS: u64 = 64;

/// Plans the realignment of a file, as if the plan could pick any free blocks of the file
/// system. `free` lists them as byte ranges of the device. In reality the kernel chooses the
/// blocks, so the result is a best case.
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
    let size = partition.traxtent_from(Block(at / block_bytes));
    let size = size.map_or(1, |traxtent| traxtent.size().0);
    let wanted_bytes = plan.blocks().0 * block_bytes;
    let tracks_wanted = plan.blocks().0 * 2 / size + ADDITIONAL_TRACKS;
    for range in free {
        if supply.whole_traxtents() as u64 > tracks_wanted {
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
        wanted_bytes,
    }
}

/// Returns a file's extents after the moves. The moves must be in file order.
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
