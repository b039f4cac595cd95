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
use crate::finding::{AffectedParts, AffectedShare, Finding, Rule};
use crate::stack::{Kind, LayerId, Stack};

/// The tracks of the drive that holds the stack, and the files to check against them.
pub struct TrackCheck<'a> {
    /// The name by which commands load the drive: a built-in drive, a profile or a track map.
    pub drive: &'a str,
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
            let spanning = crossing.len();
            crossing.retain(|index| !self.is_excluded(id, index.saturating_mul(block)));
            let excluded = spanning - crossing.len();
            let crossing = crossing.len() as u64;
            let examined = self.blocks_mapped(start, block, blocks);
            if crossing == 0 && examined == blocks {
                continue;
            }
            let mut what = format!(
                "{crossing} of the {examined} blocks of {} span a track boundary ({:.2} %)",
                stack.title(id),
                100.0 * crossing as f64 / examined.max(1) as f64
            );
            if excluded > 0 && crossing > 0 {
                what += &format!("; it excludes {excluded} others");
            }
            if examined < blocks {
                what += &format!(
                    "; not examined: {}, because the track map covers only LBNs {} to {}",
                    blocks - examined,
                    self.map.first(),
                    self.map.end().0 - 1
                );
            }
            let share = AffectedShare {
                crossing,
                of: examined,
                bytes: block,
                parts: match excluded {
                    0 => AffectedParts::Blocks,
                    _ => AffectedParts::BlocksInUse,
                },
            };
            findings.push(Finding::new(Rule::TrackCrossing, id, what).with_share(share));
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

    /// Returns the number of blocks that lie on tracks of the map. The first block begins at byte
    /// `start`.
    fn blocks_mapped(&self, start: u64, block: u64, blocks: u64) -> u64 {
        let byte = |lbn: Lbn| lbn.0.saturating_mul(self.sector_bytes);
        let first = byte(self.map.first()).saturating_sub(start).div_ceil(block);
        let end = byte(self.map.end()).saturating_sub(start) / block;
        end.min(blocks).saturating_sub(first)
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
            let mut counts = ExtentCounts::default();
            for extent in &extents {
                counts.add(self.crossing(start, &extent.bytes), &extent.bytes);
            }
            let short = counts.within + counts.crossing;
            let mut what = match short {
                0 => format!("no extent of {file} fits on a track"),
                _ => format!(
                    "{} of the {short} extents of {file} that fit on a track span a track boundary ({:.0} %)",
                    counts.crossing,
                    100.0 * counts.crossing as f64 / short as f64
                ),
            };
            if counts.longer > 0 && short > 0 {
                what += &format!("; longer than a track: {}", counts.longer);
            }
            if counts.unmapped > 0 {
                what += &format!(
                    "; not examined: {}, because the track map covers only LBNs {} to {}",
                    counts.unmapped,
                    self.map.first(),
                    self.map.end().0 - 1
                );
            }
            let share = AffectedShare {
                crossing: counts.crossing,
                of: short,
                bytes: counts.short_bytes / short.max(1),
                parts: AffectedParts::Extents,
            };
            findings.push(Finding::new(Rule::TrackCrossing, id, what).with_share(share));
        }
    }

    /// Returns how an extent of a file system that begins at byte `start` lies on the tracks.
    fn crossing(&self, start: u64, bytes: &Range<u64>) -> ExtentPlace {
        let lbn = |byte: u64| Lbn(start.saturating_add(byte) / self.sector_bytes.max(1));
        let track = |lbn| self.map.track_of(lbn);
        let last = bytes.end.saturating_sub(1);
        let (Some(first), Some(last)) = (track(lbn(bytes.start)), track(lbn(last))) else {
            return ExtentPlace::Unmapped;
        };
        let longest = first.sectors.0.max(last.sectors.0);
        let sectors = (bytes.end - bytes.start.min(bytes.end)).div_ceil(self.sector_bytes.max(1));
        if first.index == last.index {
            ExtentPlace::Within
        } else if sectors > longest {
            ExtentPlace::Longer
        } else {
            ExtentPlace::Crossing
        }
    }
}

/// The position of an extent relative to tracks.
enum ExtentPlace {
    /// On one track.
    Within,
    /// Across a boundary, although a track has room for it.
    Crossing,
    /// Longer than a track, so that it spans boundaries wherever it lies.
    Longer,
    /// Not on tracks of the map.
    Unmapped,
}

/// The numbers of a file's extents, by position.
#[derive(Default)]
struct ExtentCounts {
    within: u64,
    crossing: u64,
    longer: u64,
    unmapped: u64,
    /// The size of the extents that fit on a track.
    short_bytes: u64,
}

impl ExtentCounts {
    fn add(&mut self, place: ExtentPlace, bytes: &Range<u64>) {
        if matches!(place, ExtentPlace::Within | ExtentPlace::Crossing) {
            let bytes = bytes.end.saturating_sub(bytes.start);
            self.short_bytes = self.short_bytes.saturating_add(bytes);
        }
        *match place {
            ExtentPlace::Within => &mut self.within,
            ExtentPlace::Crossing => &mut self.crossing,
            ExtentPlace::Longer => &mut self.longer,
            ExtentPlace::Unmapped => &mut self.unmapped,
        } += 1;
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
