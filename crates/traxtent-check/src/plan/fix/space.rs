//! The space into which a partition can move.

use super::FindingContext;
use crate::layers::{Scheme, Table};
use crate::stack::{Kind, Layer};

/// The smallest space, in sectors, that sfdisk recognizes between two partitions. libfdisk's
/// `new_freespace` (table.c) ignores a space of one sector, although a move by one would fit in it.
const SPACE_SECTORS_MIN: u64 = 2;

/// The smallest space, in sectors, that sfdisk recognizes after the last partition.
/// `fdisk_get_freespaces` compares with the last usable sector less one.
const LAST_SPACE_SECTORS_MIN: u64 = 3;

/// The sectors at the end of a drive that may hold a copy of a GPT, if the table does not state the
/// last sector that partitions may use.
const GPT_RESERVE_SECTORS: u64 = 64;

/// The size of the smallest list of partitions that sfdisk leaves room for at the end of a drive.
const GPT_LIST_BYTES: u64 = 16 << 10;

/// The first sector that an MBR cannot address.
const MBR_SECTORS_MAX: u64 = 1 << 32;

/// The free space after a partition.
#[derive(Clone, Copy, Default)]
pub(super) struct FreeSpace {
    /// The number of sectors.
    pub(super) sectors: u64,
    /// The number of sectors below which sfdisk does not recognize the space.
    pub(super) sectors_min: u64,
}

impl FindingContext<'_> {
    /// Returns the free space after a primary partition; `None` if it ends after that space.
    pub(super) fn space_after(&self, layer: &Layer, drive: &Layer) -> Option<FreeSpace> {
        let place = layer.on.first()?;
        let sector = self.sector_bytes();
        let end = place.start.checked_add(layer.bytes)?.div_ceil(sector);
        let starts = self.stack.layers.iter().filter_map(|other| {
            let start = other.on.first().filter(|on| on.layer == place.layer)?.start / sector;
            (matches!(other.kind, Kind::Partition(_)) && start >= end).then_some(start)
        });
        let (until, sectors_min) = match starts.min() {
            Some(next) => (next, SPACE_SECTORS_MIN),
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
