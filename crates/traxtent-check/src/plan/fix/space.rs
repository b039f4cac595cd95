//! The space into which a partition can move.

use super::FindingContext;
use crate::layers::{Scheme, Table};
use crate::stack::{Kind, Layer};

/// The smallest space, in sectors, that sfdisk recognizes between two partitions. libfdisk's
/// `new_freespace` (table.c) ignores a space of one sector, although a move by one would fit in it.
pub(super) const SPACE_SECTORS_MIN: u64 = 2;

/// The smallest space, in sectors, that sfdisk recognizes after the last partition.
/// `fdisk_get_freespaces` compares with the last usable sector less one.
const LAST_SPACE_SECTORS_MIN: u64 = 3;

/// The sectors at the end of a drive that may hold a copy of a GPT, if the table does not state the
/// last sector that partitions may use.
const GPT_RESERVE_SECTORS: u64 = 64;

/// The first byte that sfdisk uses for partitions. Before it, boot loaders may lie.
const FIRST_BYTE: u64 = 1 << 20;

/// The size of the smallest list of partitions that sfdisk leaves room for at the end of a drive.
const GPT_LIST_BYTES: u64 = 16 << 10;

/// The first sector that an MBR cannot address.
const MBR_SECTORS_MAX: u64 = 1 << 32;

/// The free space before or after a partition.
#[derive(Clone, Copy, Default)]
pub(super) struct FreeSpace {
    /// The number of sectors.
    pub(super) sectors: u64,
    /// The number of sectors below which sfdisk does not recognize the space.
    pub(super) sectors_min: u64,
}

impl FreeSpace {
    /// Returns whether sfdisk can move the partition by this number of sectors into the space.
    pub(super) fn holds(self, sectors: u64) -> bool {
        self.sectors >= sectors.max(self.sectors_min)
    }
}

impl FindingContext<'_> {
    /// Returns the partition that begins next after the end of a partition, in the same table.
    pub(super) fn next(&self, partition: &Layer) -> Option<&Layer> {
        let end = end_of(partition)?;
        self.beside(partition)
            .filter(|other| start_of(other) >= Some(end))
            .min_by_key(|other| start_of(other))
    }

    /// Returns the partition that ends last before the start of a partition, in the same table.
    pub(super) fn previous(&self, partition: &Layer) -> Option<&Layer> {
        let start = start_of(partition)?;
        self.beside(partition)
            .filter(|other| end_of(other).is_some_and(|end| end <= start))
            .max_by_key(|other| end_of(other))
    }

    /// Returns the partitions of the table of a partition, with itself.
    fn beside(&self, partition: &Layer) -> impl Iterator<Item = &Layer> {
        let table = partition.on.first().map(|on| on.layer);
        self.stack.layers.iter().filter(move |other| {
            matches!(other.kind, Kind::Partition(_)) && other.on.first().map(|on| on.layer) == table
        })
    }

    /// Returns the free space before a primary partition.
    pub(super) fn space_before(&self, partition: &Layer) -> FreeSpace {
        let sector = self.sector_bytes();
        let start = start_of(partition).unwrap_or(0) / sector;
        let end = self.previous(partition).and_then(end_of).unwrap_or(0);
        FreeSpace {
            sectors: start.saturating_sub(end.max(FIRST_BYTE).div_ceil(sector)),
            sectors_min: SPACE_SECTORS_MIN,
        }
    }

    /// Returns the free space after a primary partition; `None` if it ends after that space.
    pub(super) fn space_after(&self, layer: &Layer, drive: &Layer) -> Option<FreeSpace> {
        let sector = self.sector_bytes();
        let end = end_of(layer)?.div_ceil(sector);
        let (until, sectors_min) = match self.next(layer).and_then(start_of) {
            Some(next) => (next / sector, SPACE_SECTORS_MIN),
            None => (self.usable_end(drive), LAST_SPACE_SECTORS_MIN),
        };
        Some(FreeSpace {
            sectors: until.checked_sub(end)?,
            sectors_min,
        })
    }

    /// Returns the first sector after those that partitions of the drive may use.
    fn usable_end(&self, drive: &Layer) -> u64 {
        let sector = self.sector_bytes();
        let sectors = drive.bytes / sector;
        match self.table_below() {
            Some((_, table)) if table.scheme == Scheme::Mbr => sectors.min(MBR_SECTORS_MAX),
            Some((
                _,
                Table {
                    last_usable_sector: Some(last),
                    ..
                },
            )) => {
                let list = GPT_LIST_BYTES.div_ceil(sector);
                sectors.saturating_sub(list + 1).min(last.saturating_add(1))
            }
            _ => sectors.saturating_sub(GPT_RESERVE_SECTORS),
        }
    }
}

/// Returns the first byte of a partition.
fn start_of(partition: &Layer) -> Option<u64> {
    Some(partition.on.first()?.start)
}

/// Returns the first byte after a partition.
fn end_of(partition: &Layer) -> Option<u64> {
    start_of(partition)?.checked_add(partition.bytes)
}

/// Returns the number of bytes between two partitions; 0 if they overlap.
pub(super) fn gap(before: &Layer, after: &Layer) -> u64 {
    let start = start_of(after).unwrap_or(0);
    start.saturating_sub(end_of(before).unwrap_or(0))
}
