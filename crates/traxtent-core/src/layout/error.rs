//! What can be wrong with a layout, or with what is asked of it.

use crate::units::{Block, Blocks, Lbn};

/// Why a layout cannot be made, or a question about it has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A block of no sectors.
    #[error("a block of 0 sectors: a block has 1 sector or more")]
    NoSectors,
    /// A block that begins or ends within a sector.
    #[error(
        "a block is a multiple of the drive's sector of {sector_bytes} bytes, not {block_bytes} bytes"
    )]
    PartOfSector {
        /// The size of the block.
        block_bytes: u32,
        /// That of the sector.
        sector_bytes: u32,
    },
    /// A partition that ends before it begins, or is too small for a block.
    #[error(
        "a partition of LBNs {start} to {end} has no room for a block of {block_sectors} sectors"
    )]
    NoBlocks {
        /// Its first LBN.
        start: Lbn,
        /// The LBN behind its last.
        end: Lbn,
        /// The size of a block.
        block_sectors: u32,
    },
    /// A partition that the map does not cover.
    #[error(
        "a partition of LBNs {start} to {end} is not within the map, which has LBNs {map_start} to {map_end}"
    )]
    NotCovered {
        /// Its first LBN.
        start: Lbn,
        /// The LBN behind its last.
        end: Lbn,
        /// The first LBN of the map.
        map_start: Lbn,
        /// The LBN behind its last.
        map_end: Lbn,
    },
    /// A group of no blocks, or of too many.
    #[error("groups of {0}: a group has 1 block or more, and fewer than 2^32")]
    Group(Blocks),
    /// A block behind the last of the partition.
    #[error("block {block} is beyond the partition, which has {blocks}")]
    Beyond {
        /// The block.
        block: Block,
        /// How many there are.
        blocks: Blocks,
    },
    /// A block that spans a boundary between tracks.
    #[error("block {0} is excluded: it spans a boundary between tracks")]
    Excluded(Block),
    /// A block that is in use where a free one is needed.
    #[error("block {0} is in use already")]
    InUse(Block),
    /// A block that is free where one in use is needed.
    #[error("block {0} is free already")]
    Free(Block),
    /// An allocator that does not heed tracks where one is needed that does.
    #[error("the allocator knows no tracks: files are reorganized with one that does")]
    NoTracks,
    /// More is asked for than is free.
    #[error("{wanted} are asked for, and {free} are free")]
    Full {
        /// How many are asked for.
        wanted: Blocks,
        /// How many are free.
        free: Blocks,
    },
}
