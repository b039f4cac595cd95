//! A partition in blocks, and its traxtents (paper T, sections 3.2 and 4.2.2; its Fig. 4).
//!
//! Blocks have a fixed size and are counted from the partition's first LBN, so some of them span
//! two or more tracks. Those are *excluded*: a file system that never allocates them reads and
//! writes every block without a track switch. The blocks between them that lie on one track are a
//! [`Traxtent`]. If a boundary falls between two blocks, the traxtents on both sides are adjacent,
//! without an excluded block between them. With blocks of one sector, the traxtents are the tracks,
//! and no block is excluded.

use std::ops::Range;
use std::sync::Arc;

use super::LayoutError;
use traxtent_map::{MappedTrack, TrackMap};
use traxtent_units::{Block, Blocks, Lbn, Sectors};

/// A range of LBNs divided into blocks, and the tracks beneath them.
#[derive(Clone, Debug)]
pub struct Partition {
    map: Arc<TrackMap>,
    lbns: Range<Lbn>,
    block_sectors: u32,
    blocks: Blocks,
    /// The positions in the map of the tracks that hold LBNs of the partition.
    tracks: Range<usize>,
}

/// The blocks that lie entirely on one track. There is at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traxtent {
    /// The position of the track in the map.
    pub track: usize,
    /// The blocks of the traxtent.
    pub blocks: Range<Block>,
}

impl Traxtent {
    /// Returns the number of blocks.
    pub fn size(&self) -> Blocks {
        len(&self.blocks)
    }
}

/// Returns the number of sectors in a block of `block_bytes` bytes.
///
/// # Errors
/// Returns an error if that is not a whole number of at least 1.
pub fn sectors_of_block(block_bytes: u32, sector_bytes: u32) -> Result<u32, LayoutError> {
    match block_bytes.checked_rem(sector_bytes) {
        Some(0) if block_bytes > 0 => Ok(block_bytes / sector_bytes),
        _ => Err(LayoutError::PartOfSector {
            block_bytes,
            sector_bytes,
        }),
    }
}

impl Partition {
    /// Creates a partition of the LBNs `lbns` of a drive with this map, in blocks of
    /// `block_sectors` LBNs. LBNs at the end that do not fill a block belong to none.
    ///
    /// # Errors
    /// Returns an error if a block has no sectors, if the partition has no blocks, or if the map
    /// does not cover the partition.
    pub fn new(
        map: impl Into<Arc<TrackMap>>,
        lbns: Range<Lbn>,
        block_sectors: u32,
    ) -> Result<Partition, LayoutError> {
        let (map, start, end) = (map.into(), lbns.start, lbns.end);
        if block_sectors == 0 {
            return Err(LayoutError::NoSectors);
        }
        let blocks = Blocks(end.0.saturating_sub(start.0) / u64::from(block_sectors));
        if blocks.0 == 0 {
            return Err(LayoutError::NoBlocks {
                start,
                end,
                block_sectors,
            });
        }
        let track = |lbn: u64| map.track_of(Lbn(lbn)).map(|track| track.index);
        let (Some(first), Some(last)) = (track(start.0), track(end.0 - 1)) else {
            return Err(LayoutError::NotCovered {
                start,
                end,
                map_start: map.first(),
                map_end: map.end(),
            });
        };
        Ok(Partition {
            map,
            lbns,
            block_sectors,
            blocks,
            tracks: first..last + 1,
        })
    }

    /// Creates a partition of all LBNs of a map.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Partition::new`].
    pub fn whole(
        map: impl Into<Arc<TrackMap>>,
        block_sectors: u32,
    ) -> Result<Partition, LayoutError> {
        let map = map.into();
        let lbns = map.first()..map.end();
        Partition::new(map, lbns, block_sectors)
    }

    /// Returns the track map of the drive.
    pub fn map(&self) -> &TrackMap {
        &self.map
    }

    /// Returns the positions in the map of the tracks that hold LBNs of the partition.
    pub fn tracks(&self) -> Range<usize> {
        self.tracks.clone()
    }

    /// Returns the partition's LBNs, including those that do not fill a block.
    pub fn lbns(&self) -> Range<Lbn> {
        self.lbns.clone()
    }

    /// Returns the number of LBNs per block.
    pub fn block_sectors(&self) -> u32 {
        self.block_sectors
    }

    /// Returns the number of blocks, including excluded ones.
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Returns the LBNs of a range of blocks.
    pub fn lbns_of(&self, blocks: &Range<Block>) -> Range<Lbn> {
        let lbn = |block: Block| self.lbns.start + Sectors(block.0 * u64::from(self.block_sectors));
        lbn(blocks.start)..lbn(blocks.end)
    }

    /// Returns the block that contains an LBN.
    pub fn block_of(&self, lbn: Lbn) -> Option<Block> {
        let block = lbn.0.checked_sub(self.lbns.start.0)? / u64::from(self.block_sectors);
        (block < self.blocks.0).then_some(Block(block))
    }

    /// Returns whether a block of the partition spans a boundary.
    pub fn is_excluded(&self, block: Block) -> bool {
        block.0 < self.blocks.0 && self.traxtent_of(block).is_none()
    }

    /// Returns the traxtent that contains a block. `None` if the block is excluded, or beyond the
    /// end of the partition.
    pub fn traxtent_of(&self, block: Block) -> Option<Traxtent> {
        self.on_track(self.track_of(block)?)
            .filter(|traxtent| traxtent.blocks.contains(&block))
    }

    /// Returns the traxtent of the track at a position of the map. `None` if the partition has no
    /// whole block there.
    pub fn traxtent_on(&self, track: usize) -> Option<Traxtent> {
        self.on_track(self.map.track(track)?)
    }

    /// Returns the traxtent that contains a block, or else the first one after it.
    pub fn traxtent_from(&self, block: Block) -> Option<Traxtent> {
        let track = self.track_of(block)?;
        self.on_track(track)
            .filter(|traxtent| traxtent.blocks.end > block)
            .or_else(|| self.first_on(track.index + 1..self.tracks.end))
    }

    /// Returns the next traxtent. The time grows with the number of tracks in between that have no
    /// traxtent; such tracks are smaller than two blocks.
    pub fn next(&self, traxtent: &Traxtent) -> Option<Traxtent> {
        self.first_on(traxtent.track + 1..self.tracks.end)
    }

    /// Returns the preceding traxtent.
    pub fn previous(&self, traxtent: &Traxtent) -> Option<Traxtent> {
        self.first_on((self.tracks.start..traxtent.track).rev())
    }

    /// Returns all traxtents, in ascending order.
    pub fn traxtents(&self) -> impl Iterator<Item = Traxtent> {
        self.whole_blocks_by_track()
            .filter(|traxtent| !traxtent.blocks.is_empty())
    }

    /// Returns the excluded blocks, in ascending order.
    pub fn excluded(&self) -> impl Iterator<Item = Block> {
        let mut from = 0;
        let ends = self.traxtents().map(|traxtent| traxtent.blocks);
        ends.chain([Block(self.blocks.0)..Block(self.blocks.0)])
            .flat_map(move |blocks| {
                let excluded = from..blocks.start.0;
                from = blocks.end.0;
                excluded.map(Block)
            })
    }

    /// Cuts a range of blocks at the boundaries. Excluded blocks, and blocks beyond the end of the
    /// partition, are omitted.
    pub fn pieces(&self, blocks: Range<Block>) -> impl Iterator<Item = Range<Block>> {
        let mut from = blocks.start;
        std::iter::from_fn(move || {
            let traxtent = self.traxtent_from(from).filter(|_| from < blocks.end)?;
            let piece = traxtent.blocks.start.max(from)..traxtent.blocks.end.min(blocks.end);
            from = piece.end;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// Returns the blocks that lie entirely on each of [`Partition::tracks`]. The range is empty if
    /// there is none.
    pub(super) fn whole_blocks_by_track(&self) -> impl Iterator<Item = Traxtent> {
        let tracks = self.map.tracks().skip(self.tracks.start);
        tracks.take(self.tracks.len()).map(|track| Traxtent {
            track: track.index,
            blocks: self.whole_blocks(track),
        })
    }

    fn track_of(&self, block: Block) -> Option<MappedTrack> {
        let first = self.lbns_of(&(block..block)).start;
        self.map.track_of(first).filter(|_| block.0 < self.blocks.0)
    }

    fn first_on(&self, mut tracks: impl Iterator<Item = usize>) -> Option<Traxtent> {
        tracks.find_map(|track| self.traxtent_on(track))
    }

    fn on_track(&self, track: MappedTrack) -> Option<Traxtent> {
        let blocks = self.whole_blocks(track);
        (!blocks.is_empty()).then_some(Traxtent {
            track: track.index,
            blocks,
        })
    }

    /// Returns the blocks that lie entirely on a track.
    fn whole_blocks(&self, track: MappedTrack) -> Range<Block> {
        let size = u64::from(self.block_sectors);
        let offset = |lbn: Lbn| lbn.0.saturating_sub(self.lbns.start.0);
        let first = offset(track.first_lbn).div_ceil(size);
        let end = (offset(track.end()) / size).min(self.blocks.0);
        Block(first)..Block(end.max(first))
    }
}

/// Returns the number of blocks in a range.
pub(super) fn len(blocks: &Range<Block>) -> Blocks {
    Blocks(blocks.end.0.saturating_sub(blocks.start.0))
}
