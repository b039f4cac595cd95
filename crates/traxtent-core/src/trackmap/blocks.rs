//! File-system blocks that span a boundary between tracks: the excluded blocks of paper T,
//! section 4.2.2. A file system that never allocates them reads every block without a track switch.

use std::ops::Range;

use super::TrackMap;
use crate::units::Lbn;

/// The blocks of a partition that lie on two tracks or more, ascending, counted from the
/// partition's first. A block has `block_sectors` LBNs; what does not fill a block at the end of
/// the partition belongs to none. Where the map knows no tracks there are no such blocks.
///
/// # Panics
/// If `block_sectors` is 0.
pub fn spanning_blocks(
    map: &TrackMap,
    partition: Range<Lbn>,
    block_sectors: u32,
) -> SpanningBlocks<impl Iterator<Item = Lbn>> {
    assert!(block_sectors > 0, "a block has sectors");
    let block_sectors = u64::from(block_sectors);
    let blocks = partition.end.0.saturating_sub(partition.start.0) / block_sectors;
    SpanningBlocks {
        boundaries: map.tracks().skip(1).map(|track| track.first_lbn),
        start: partition.start,
        blocks,
        block_sectors,
        next: 0,
    }
}

/// See [`spanning_blocks`].
#[derive(Clone, Debug)]
pub struct SpanningBlocks<I> {
    boundaries: I,
    start: Lbn,
    blocks: u64,
    block_sectors: u64,
    /// Blocks before this one have been told.
    next: u64,
}

impl<I: Iterator<Item = Lbn>> Iterator for SpanningBlocks<I> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        for boundary in self.boundaries.by_ref() {
            let Some(offset) = boundary.0.checked_sub(self.start.0) else {
                continue;
            };
            let block = offset / self.block_sectors;
            if block >= self.blocks {
                return None;
            }
            if offset % self.block_sectors != 0 && block >= self.next {
                self.next = block + 1;
                return Some(block);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are blocks told that hold a boundary, and none that only begin or end at one?
    #[test]
    fn blocks_across_boundaries() {
        let text = "first_lbn,sectors\n0,12\n12,12\n24,1\n25,2\n27,21\n48,10\n";
        let map = TrackMap::read_csv(text.as_bytes()).unwrap();
        let blocks = |from, to| spanning_blocks(&map, Lbn(from)..Lbn(to), 8).collect::<Vec<_>>();
        // Boundaries at 12, 24, 25, 27, 48: the third block has two of them, and begins at one.
        assert_eq!(blocks(0, 58), [1, 3]);
        assert_eq!(blocks(4, 58), [2, 5]);
        assert_eq!(blocks(0, 31), [1]);
        assert_eq!(blocks(0, 32), [1, 3]);
        assert_eq!(blocks(12, 58), [1, 4]);
        assert_eq!(blocks(58, 58), []);
    }
}
