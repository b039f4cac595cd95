//! The errors of layouts.

use traxtent_units::{Block, Blocks, Lbn};

/// The reason why a layout cannot be made, or a query about it cannot be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// A block size of 0 sectors.
    #[error("a block cannot have 0 sectors; it needs at least 1")]
    NoSectors,
    /// A block size that is not a whole number of sectors.
    #[error(
        "a block of {block_bytes} bytes is not a multiple of the drive's sector size, {sector_bytes} bytes"
    )]
    PartOfSector {
        /// The size of the block.
        block_bytes: u32,
        /// The size of the sector.
        sector_bytes: u32,
    },
    /// A partition that ends before it begins, or is too small for one block.
    #[error(
        "a partition of LBNs {start}..{end} is too small for a block of {block_sectors} sectors"
    )]
    NoBlocks {
        /// The partition's first LBN.
        start: Lbn,
        /// The first LBN after the partition.
        end: Lbn,
        /// The size of a block.
        block_sectors: u32,
    },
    /// A partition that the track map does not cover.
    #[error(
        "a partition of LBNs {start}..{end} is not within the map, which covers LBNs {map_start}..{map_end}"
    )]
    NotCovered {
        /// The partition's first LBN.
        start: Lbn,
        /// The first LBN after the partition.
        end: Lbn,
        /// The first LBN of the map.
        map_start: Lbn,
        /// The first LBN after the map.
        map_end: Lbn,
    },
    /// A group of no blocks, or of too many.
    #[error("a group of {0} is not possible; a group needs at least 1 block and fewer than 2^32")]
    Group(Blocks),
    /// A block after the last of the partition.
    #[error("block {block} is beyond the end of the partition, which has {blocks}")]
    Beyond {
        /// The block.
        block: Block,
        /// The number of blocks in the partition.
        blocks: Blocks,
    },
    /// A block that spans a boundary between tracks.
    #[error("block {0} is excluded: it spans a boundary between tracks")]
    Excluded(Block),
    /// A block that is in use where a free one is needed.
    #[error("block {0} is already in use")]
    InUse(Block),
    /// A block that is free where one in use is needed.
    #[error("block {0} is already free")]
    Free(Block),
    /// An allocator that ignores tracks, where one that follows them is needed.
    #[error("the allocator ignores tracks; reorganizing files needs a traxtent allocator")]
    NoTracks,
    /// A request for more blocks than are free.
    #[error("{wanted} requested, but only {free} free")]
    Full {
        /// The number of blocks requested.
        wanted: Blocks,
        /// The number of free blocks.
        free: Blocks,
    },
}
