//! The sizes of a log's structures, and their capacities. Pure arithmetic.

use super::error::LogError;
use super::wire::{ENTRY_BYTES, PLACE_BYTES, SUMMARY_BYTES};

/// The units of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogShape {
    /// The size of a logical sector in bytes: a power of two from 512 to 65,536.
    pub sector_bytes: u32,
    /// The number of sectors per block: a multiple of the grain, and at most 16 MiB in bytes.
    pub block_sectors: u32,
    /// The number of sectors that the device writes atomically; grains are counted from LBN 0. It
    /// is the number of logical sectors per physical one: 8 on a drive with 512-byte logical and
    /// 4,096-byte physical sectors. No two writes of a log share a grain.
    pub grain_sectors: u32,
}

impl LogShape {
    const BLOCK_BYTES_MAX: u64 = 16 << 20;

    pub(super) fn check(self) -> Result<LogShape, LogError> {
        let LogShape {
            sector_bytes,
            block_sectors,
            grain_sectors,
        } = self;
        let invalid = |name, value: u32, expected| {
            Err(LogError::InvalidValue {
                name,
                value: value.into(),
                expected,
            })
        };
        if !sector_bytes.is_power_of_two() || !(512..=65_536).contains(&sector_bytes) {
            return invalid(
                "sector_bytes",
                sector_bytes,
                "a power of two from 512 to 65536",
            );
        }
        if grain_sectors == 0 {
            return invalid("grain_sectors", 0, "at least 1");
        }
        let bytes = u64::from(block_sectors) * u64::from(sector_bytes);
        if block_sectors == 0
            || !block_sectors.is_multiple_of(grain_sectors)
            || bytes > Self::BLOCK_BYTES_MAX
        {
            let expected = "a multiple of grain_sectors, at most 16 MiB in bytes";
            return invalid("block_sectors", block_sectors, expected);
        }
        Ok(self)
    }

    /// Returns the size of a block in bytes.
    pub fn block_bytes(self) -> usize {
        self.block_sectors as usize * self.sector_bytes as usize
    }

    /// Returns the size in sectors of the whole grains that hold `bytes` bytes.
    pub(super) fn sectors_for(self, bytes: u64) -> u64 {
        let sectors = bytes.div_ceil(self.sector_bytes.into());
        sectors.next_multiple_of(self.grain_sectors.into())
    }

    /// Returns the size in sectors of a summary with `entries` entries.
    pub(super) fn summary_sectors(self, entries: u64) -> u64 {
        self.sectors_for((SUMMARY_BYTES as u64).saturating_add(entries * ENTRY_BYTES as u64))
    }

    /// Returns the size of a chunk in sectors.
    pub(super) fn chunk_sectors(self, entries: u64, blocks: u64) -> u64 {
        self.summary_sectors(entries) + blocks * u64::from(self.block_sectors)
    }

    /// Returns the size in sectors of the smallest chunk that holds a block.
    pub(super) fn least_chunk(self) -> u64 {
        self.chunk_sectors(1, 1)
    }

    /// Returns how many blocks fit into `sectors` sectors as one chunk.
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

    /// Returns the number of index entries in a map page. A map page is one block.
    pub(super) fn entries_per_page(self) -> u64 {
        (self.block_bytes() / PLACE_BYTES) as u64
    }

    pub(super) fn pages(self, blocks: u64) -> u64 {
        blocks.div_ceil(self.entries_per_page())
    }
}
