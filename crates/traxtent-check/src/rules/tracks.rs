//! Track crossings: the number of blocks of a file system, and of extents of files, that span a
//! track boundary.
//!
//! These findings are for information: a crossing costs a head switch, not a revolution (paper T,
//! section 2.1). The positions of blocks are known only if a file system lies on one drive in one
//! piece.

use std::ops::Range;

use traxtent_map::TrackMap;
use traxtent_units::Lbn;

use super::Findings;
use crate::finding::{AffectedShare, Finding, Rule};
use crate::stack::{Kind, LayerId, Stack};

/// The tracks of the drive that holds the stack, and the files to check against them.
pub struct TrackCheck<'a> {
    /// The track map.
    pub map: &'a TrackMap,
    /// The size of a logical sector in bytes.
    pub sector_bytes: u64,
    /// The extents of the files to check.
    pub extents: Vec<Extent>,
    /// The blocks that file systems exclude from use, as byte ranges of their layers, in order.
    pub excluded: Vec<(LayerId, Range<u64>)>,
}

/// An extent of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The layer of the file system.
    pub layer: LayerId,
    /// The name of the file, as the user gave it.
    pub file: String,
    /// The bytes of the extent in the file system.
    pub bytes: Range<u64>,
}

impl TrackCheck<'_> {
    pub(super) fn check(&self, stack: &Stack, findings: &mut Findings) {
        for (id, layer) in stack.iter() {
            let Some(block) = block_bytes(&layer.kind) else {
                continue;
            };
            let Some(start) = self.start(stack, id) else {
                continue;
            };
            let blocks = layer.bytes / block;
            let mut crossing = self.blocks_crossing(start, block, blocks);
            crossing.retain(|index| !self.is_excluded(id, index.saturating_mul(block)));
            let crossing = crossing.len() as u64;
            if crossing > 0 {
                let what = format!(
                    "{crossing} of the {blocks} blocks of {} span a track boundary ({:.2} %)",
                    stack.title(id),
                    100.0 * crossing as f64 / blocks as f64
                );
                let share = AffectedShare {
                    crossing,
                    of: blocks,
                    bytes: block,
                };
                findings.push(Finding::new(Rule::TrackCrossing, id, what).with_share(share));
            }
        }
        self.files(stack, findings);
    }

    /// Returns the first byte of a layer on the drive, if the layer lies in one piece on one drive
    /// that is not flash.
    fn start(&self, stack: &Stack, id: LayerId) -> Option<u64> {
        let (drive, start) = stack.in_one_piece(id)?;
        match &stack.layer(drive).kind {
            Kind::Disk(disk) if disk.medium.is_flash() => None,
            _ => Some(start),
        }
    }

    /// Returns whether a file system excludes the block at a byte of its layer from use.
    fn is_excluded(&self, id: LayerId, byte: u64) -> bool {
        let index = self
            .excluded
            .partition_point(|(layer, bytes)| (*layer, bytes.start) <= (id, byte));
        let before = index.checked_sub(1).map(|index| &self.excluded[index]);
        before.is_some_and(|(layer, bytes)| *layer == id && bytes.contains(&byte))
    }

    /// Returns the indices of the blocks that span a track boundary, in order. The first block
    /// begins at byte `start`.
    fn blocks_crossing(&self, start: u64, block: u64, blocks: u64) -> Vec<u64> {
        let end = start.saturating_add(blocks.saturating_mul(block));
        let mut crossing = Vec::new();
        for boundary in self.boundaries() {
            if boundary >= end {
                break;
            }
            if boundary <= start || (boundary - start).is_multiple_of(block) {
                continue;
            }
            // A block longer than a track is counted once.
            let index = (boundary - start) / block;
            if crossing.last() != Some(&index) {
                crossing.push(index);
            }
        }
        crossing
    }

    /// Returns the byte at which each track begins, in order.
    fn boundaries(&self) -> impl Iterator<Item = u64> {
        let mut at = self.map.first().0;
        let starts = self
            .map
            .runs()
            .flat_map(|(sectors, count)| (0..count).map(move |_| u64::from(sectors)));
        starts.map(move |sectors| {
            let start = at;
            at += sectors;
            start.saturating_mul(self.sector_bytes)
        })
    }

    fn files(&self, stack: &Stack, findings: &mut Findings) {
        let mut files: Vec<&str> = self
            .extents
            .iter()
            .map(|extent| extent.file.as_str())
            .collect();
        files.dedup();
        for file in files {
            let extents: Vec<&Extent> = self
                .extents
                .iter()
                .filter(|extent| extent.file == file)
                .collect();
            let Some(id) = extents.first().map(|extent| extent.layer) else {
                continue;
            };
            let Some(start) = self.start(stack, id) else {
                continue;
            };
            let crossing = extents
                .iter()
                .filter(|extent| self.is_crossed(start, &extent.bytes))
                .count();
            let what = format!(
                "{crossing} of the {} extents of {file} span a track boundary ({:.0} %)",
                extents.len(),
                100.0 * crossing as f64 / extents.len() as f64
            );
            let bytes: u64 = extents
                .iter()
                .map(|extent| extent.bytes.end.saturating_sub(extent.bytes.start))
                .fold(0, u64::saturating_add);
            let share = AffectedShare {
                crossing: crossing as u64,
                of: extents.len() as u64,
                bytes: bytes / extents.len() as u64,
            };
            findings.push(Finding::new(Rule::TrackCrossing, id, what).with_share(share));
        }
    }

    fn is_crossed(&self, start: u64, bytes: &Range<u64>) -> bool {
        let lbn = |byte: u64| Lbn(start.saturating_add(byte) / self.sector_bytes.max(1));
        let track = |lbn| self.map.track_of(lbn).map(|track| track.index);
        match (
            track(lbn(bytes.start)),
            track(lbn(bytes.end.saturating_sub(1))),
        ) {
            (Some(first), Some(last)) => first != last,
            _ => false,
        }
    }
}

fn block_bytes(kind: &Kind) -> Option<u64> {
    match kind {
        Kind::Ext(ext) => Some(ext.block_bytes),
        Kind::Xfs(xfs) => Some(xfs.block_bytes),
        Kind::Btrfs(btrfs) => Some(btrfs.sector_bytes),
        Kind::Swap(swap) => Some(swap.page_bytes),
        _ => None,
    }
}
