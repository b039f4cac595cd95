//! The share of a file on whole tracks.

use std::collections::BTreeMap;

use traxtent_check::LayerId;
use traxtent_layout::{File, Partition};
use traxtent_units::Lbn;

use crate::{FileError, FileExtent, FileSystem, TrackedDrive};

/// The relation of a contiguous part of a file to the tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PieceKind {
    /// All blocks that a track holds, in file order.
    Whole,
    /// A part of the blocks of one track.
    Part,
    /// A block that spans a boundary between tracks.
    Spanning,
}

/// The numbers of a file's bytes on whole tracks, on parts of tracks, and across boundaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The number of bytes in blocks that have a place on a drive.
    pub bytes: u64,
    /// The number of those bytes on whole tracks.
    pub whole_bytes: u64,
    /// The number of those bytes on parts of tracks.
    pub part_bytes: u64,
    /// The number of those bytes in blocks that span a boundary.
    pub spanning_bytes: u64,
    /// The number of pieces: contiguous parts that each lie on one track, and single blocks that
    /// span a boundary.
    pub pieces: u64,
    /// The number of tracks that the file fills.
    pub whole_tracks: u64,
    /// The pieces in file order as runs of one kind, with the bytes of each run. If the file is on
    /// several drives, those on the first drive come first.
    pub runs: Vec<(PieceKind, u64)>,
}

impl Summary {
    /// Returns the share of the bytes on whole tracks; 0 for a file without bytes on a drive.
    pub fn whole_share(&self) -> f64 {
        if self.bytes == 0 {
            0.0
        } else {
            self.whole_bytes as f64 / self.bytes as f64
        }
    }

    fn add(&mut self, file: &File, partition: &Partition, block_bytes: u64) {
        for piece in file.pieces(partition) {
            let bytes = (piece.blocks.end.0 - piece.blocks.start.0) * block_bytes;
            self.bytes += bytes;
            self.pieces += 1;
            let kind = if piece.whole {
                self.whole_tracks += 1;
                self.whole_bytes += bytes;
                PieceKind::Whole
            } else if piece.excluded {
                self.spanning_bytes += bytes;
                PieceKind::Spanning
            } else {
                self.part_bytes += bytes;
                PieceKind::Part
            };
            match self.runs.last_mut() {
                Some((last, sum)) if *last == kind => *sum += bytes,
                _ => self.runs.push((kind, bytes)),
            }
        }
    }
}

/// Returns how a file lies on the tracks of its drives.
///
/// On an array, a track is whole if all its blocks belong to the file, in file order among the
/// file's blocks on that drive.
///
/// # Errors
/// Returns an error if a drive has no map, if its map does not cover the file, if the file system's
/// blocks are not whole sectors of a map, or if a device below the file system places its
/// data by a rule that is not supported.
pub fn summarize(
    extents: &[FileExtent],
    system: &FileSystem,
    drives: &BTreeMap<LayerId, TrackedDrive>,
) -> Result<Summary, FileError> {
    // Blocks on a drive are counted from the first LBN at which a block can begin.
    let mut files: BTreeMap<(LayerId, u64), (Partition, File)> = BTreeMap::new();
    for extent in extents {
        for piece in system.on_drives(extent.device())? {
            let drive = drives
                .get(&piece.drive)
                .ok_or_else(|| FileError::Unsuitable {
                    path: system.device.clone(),
                    why: "a drive below it has no track map".to_owned(),
                })?;
            let phase = piece.bytes.start % system.block_bytes;
            let key = (piece.drive, phase);
            let (_, file) = match files.entry(key) {
                std::collections::btree_map::Entry::Occupied(found) => found.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    let first = Lbn(phase / drive.sector_bytes);
                    let partition = system.partition_of(drive, first..drive.map.end())?;
                    new.insert((partition, File::new()))
                }
            };
            let block = |byte: u64| traxtent_units::Block((byte - phase) / system.block_bytes);
            file.push(block(piece.bytes.start)..block(piece.bytes.end));
        }
    }
    let mut summary = Summary::default();
    for (partition, file) in files.values() {
        if let Some(end) = file.extents().iter().map(|extent| extent.end).max()
            && end.0 > partition.blocks().0
        {
            return Err(FileError::Unsuitable {
                path: system.device.clone(),
                why: format!(
                    "the track map ends before LBN {}; the file extends beyond it",
                    partition.map().end()
                ),
            });
        }
        summary.add(file, partition, system.block_bytes);
    }
    Ok(summary)
}

#[cfg(test)]
mod tests;
