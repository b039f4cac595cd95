//! Partitions, files and free space for the tests of this crate.

use std::collections::BTreeSet;
use std::ops::Range;

use traxtent_layout::Partition;
use traxtent_map::TrackMap;
use traxtent_units::{Block, Lbn, Rng};

use crate::FileExtent;
use crate::supply::{Run, Source};

/// The size of a block in bytes, if a test needs one.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// Returns a partition of `tracks` tracks of random sizes that begins at a random sector of the
/// first.
pub(crate) fn any_partition(rng: &mut Rng, tracks: u64) -> Partition {
    let block_sectors = 1 + rng.below(4) as u32;
    let (least, more) = (2 + rng.below(8) as u32, 1 + rng.below(12));
    let size = |_| block_sectors * least + rng.below(u64::from(block_sectors) * more) as u32;
    let sizes: Vec<u32> = (0..tracks).map(size).collect();
    let map = TrackMap::from_sizes(sizes.iter().copied());
    let end = map.end();
    let most = end.0 - u64::from(block_sectors);
    let start = Lbn(rng.below(sizes[0].into()).min(most));
    Partition::new(map, start..end, block_sectors).unwrap()
}

/// Returns a partition of equal tracks whose boundaries are between blocks.
pub(crate) fn regular_partition(rng: &mut Rng, tracks: u64) -> Partition {
    let block_sectors = 1 + rng.below(3) as u32;
    let size = block_sectors * (3 + rng.below(10) as u32);
    Partition::whole(
        TrackMap::from_sizes((0..tracks).map(|_| size)),
        block_sectors,
    )
    .unwrap()
}

/// A file, and the blocks that are free.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    /// The block at each position of the file; `None` in holes.
    pub(crate) file: Vec<Option<u64>>,
    pub(crate) free: BTreeSet<u64>,
}

impl Scene {
    /// Places a file in the first `room` blocks: long and short runs, whole tracks, and holes. A
    /// random share of the other blocks up to `room` is free, and all blocks after them.
    pub(crate) fn any(rng: &mut Rng, partition: &Partition, room: u64) -> Scene {
        let mut unused: BTreeSet<u64> = (0..partition.blocks().0).collect();
        let mut file: Vec<Option<u64>> = Vec::new();
        let wanted = 1 + rng.below(room * 3 / 4);
        let (fragments, aligned, holes) = (rng.below(8), rng.below(8), rng.below(4));
        let mut placed = 0;
        while placed < wanted {
            let at = Block(rng.below(room));
            let longest = if rng.below(8) < fragments { 6 } else { 60 };
            let mut run = at.0..at.0 + 1 + rng.below(longest);
            if rng.below(8) < aligned
                && let Some(traxtent) = partition.traxtent_from(at)
            {
                run = traxtent.blocks.start.0..traxtent.blocks.end.0;
            }
            for block in run.start..run.end.min(room) {
                if !unused.remove(&block) {
                    break;
                }
                file.push(Some(block));
                placed += 1;
            }
            if rng.below(40) < holes {
                file.extend((0..=rng.below(9)).map(|_| None));
            }
        }
        let share = rng.fraction();
        let mut is_free = false;
        unused.retain(|&block| {
            if rng.below(5) == 0 {
                is_free = rng.chance(share);
            }
            is_free || block >= room
        });
        Scene { file, free: unused }
    }

    /// Returns the extents of the file.
    pub(crate) fn extents(&self) -> Vec<FileExtent> {
        extents(&self.file)
    }

    /// Returns the number of blocks of the file.
    pub(crate) fn blocks(&self) -> u64 {
        self.file.iter().flatten().count() as u64
    }

    /// Returns the number of runs of the file between holes.
    pub(crate) fn runs(&self) -> u64 {
        let runs = self.file.split(|block| block.is_none());
        runs.filter(|run| !run.is_empty()).count() as u64
    }

    /// Returns the free blocks as runs.
    pub(crate) fn free_runs(&self) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for &block in &self.free {
            match runs.last_mut() {
                Some(last) if last.end == block => last.end += 1,
                _ => runs.push(block..block + 1),
            }
        }
        runs
    }
}

/// Returns the extents of a file with these blocks.
pub(crate) fn extents(file: &[Option<u64>]) -> Vec<FileExtent> {
    let mut extents: Vec<FileExtent> = Vec::new();
    for (at, block) in (0..).zip(file) {
        let Some(block) = block else { continue };
        let start = at * BLOCK_BYTES;
        match extents.last_mut() {
            Some(last) if last.file.end == start && last.device().end == block * BLOCK_BYTES => {
                last.file.end += BLOCK_BYTES;
            }
            _ => extents.push(FileExtent {
                file: start..start + BLOCK_BYTES,
                device_start: block * BLOCK_BYTES,
                is_unwritten: false,
            }),
        }
    }
    extents
}

/// Returns a run of available blocks.
pub(crate) fn run(blocks: Range<u64>, donor: usize, block: u64) -> Run {
    Run {
        blocks: Block(blocks.start)..Block(blocks.end),
        source: Source { donor, block },
    }
}

/// Returns, for each position of a file, whether its block is on a whole track. Searches the file
/// for the blocks of each traxtent.
pub(crate) fn is_whole(file: &[Option<u64>], partition: &Partition) -> Vec<bool> {
    let mut whole = vec![false; file.len()];
    for traxtent in partition.traxtents() {
        let blocks: Vec<Option<u64>> = (traxtent.blocks.start.0..traxtent.blocks.end.0)
            .map(Some)
            .collect();
        if let Some(at) = file.windows(blocks.len()).position(|part| part == blocks) {
            whole[at..at + blocks.len()].fill(true);
        }
    }
    whole
}

/// Returns the largest number of blocks on a track.
pub(crate) fn largest_track(partition: &Partition) -> u64 {
    let sizes = partition.traxtents().map(|traxtent| traxtent.size().0);
    sizes.max().unwrap_or(1)
}
