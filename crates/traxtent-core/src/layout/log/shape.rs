//! The sizes of a log, and how much fits where. Pure arithmetic.

use super::error::LogError;
use super::format::{ENTRY_BYTES, PLACE_BYTES, SUMMARY_BYTES};

/// The units in which a log counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of a logical sector: a power of two from 512 to 65,536.
    pub sector_bytes: u32,
    /// Sectors of a block: a multiple of the grain, and at most 16 MiB in bytes.
    pub block_sectors: u32,
    /// Sectors that a device writes as one, counted from LBN 0: 8 on a drive with 512-byte sectors
    /// over 4,096-byte ones, else 1. No two writes of a log share a grain.
    pub grain_sectors: u32,
}

impl Shape {
    const BLOCK_BYTES_MAX: u64 = 16 << 20;

    pub(super) fn check(self) -> Result<Shape, LogError> {
        let Shape {
            sector_bytes,
            block_sectors,
            grain_sectors,
        } = self;
        let figure = |figure, value: u32, expected| {
            Err(LogError::Figure {
                figure,
                value: value.into(),
                expected,
            })
        };
        if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
            return figure(
                "sector_bytes",
                sector_bytes,
                "a power of two from 512 to 65536",
            );
        }
        if grain_sectors == 0 {
            return figure("grain_sectors", 0, "at least 1");
        }
        let bytes = u64::from(block_sectors) * u64::from(sector_bytes);
        if block_sectors == 0
            || !block_sectors.is_multiple_of(grain_sectors)
            || bytes > Self::BLOCK_BYTES_MAX
        {
            let expected = "a multiple of grain_sectors, at most 16 MiB in bytes";
            return figure("block_sectors", block_sectors, expected);
        }
        Ok(self)
    }

    /// Bytes of a block.
    pub fn block_bytes(self) -> usize {
        self.block_sectors as usize * self.sector_bytes as usize
    }

    /// Whole grains that hold so many bytes, in sectors.
    pub(super) fn sectors_for(self, bytes: u64) -> u64 {
        let sectors = bytes.div_ceil(self.sector_bytes.into());
        sectors.next_multiple_of(self.grain_sectors.into())
    }

    /// Sectors of the summary of so many entries.
    pub(super) fn summary_sectors(self, entries: u64) -> u64 {
        self.sectors_for((SUMMARY_BYTES as u64).saturating_add(entries * ENTRY_BYTES as u64))
    }

    /// Sectors of a chunk.
    pub(super) fn chunk_sectors(self, entries: u64, blocks: u64) -> u64 {
        self.summary_sectors(entries) + blocks * u64::from(self.block_sectors)
    }

    /// The least that a chunk with a block takes.
    pub(super) fn least_chunk(self) -> u64 {
        self.chunk_sectors(1, 1)
    }

    /// How many blocks fit into so many sectors as one chunk.
    pub(super) fn room(self, sectors: u64) -> u64 {
        let (mut room, mut too_many) = (0, sectors / u64::from(self.block_sectors) + 1);
        while too_many - room > 1 {
            let middle = room.midpoint(too_many);
            if self.chunk_sectors(middle, middle) <= sectors {
                room = middle;
            } else {
                too_many = middle;
            }
        }
        room
    }

    /// Index entries of a map page, which is a block.
    pub(super) fn entries_per_page(self) -> u64 {
        (self.block_bytes() / PLACE_BYTES) as u64
    }

    pub(super) fn pages(self, blocks: u64) -> u64 {
        blocks.div_ceil(self.entries_per_page())
    }
}
