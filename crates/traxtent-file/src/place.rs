//! The drives below a mounted file system, and the place of its bytes on them.
//!
//! Partitions, linear and mirrored devices, RAID-0 and opened encrypted volumes are supported. A
//! mirror is represented by its first member. Other devices, such as RAID-5, RAID-10 and thin
//! volumes, are not supported.

mod device;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_check::drive::StatedDrive;
use traxtent_check::layers::{RaidLevel, Unknown};
use traxtent_check::stack::Spread;
use traxtent_check::target::{HostPaths, examine_targets};
use traxtent_check::{Kind, LayerId, Stack};
use traxtent_layout::{LayoutError, Partition};
use traxtent_map::TrackMap;
use traxtent_units::Lbn;

pub use device::device_of;

use crate::FileError;

/// A drive with its tracks.
#[derive(Clone, Debug)]
pub struct TrackedDrive {
    /// The tracks.
    pub map: Arc<TrackMap>,
    /// The size of a logical sector in bytes.
    pub sector_bytes: u64,
}

/// A run of bytes on a drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrivePiece {
    /// The drive, as a layer of the stack.
    pub drive: LayerId,
    /// The bytes of the drive.
    pub bytes: Range<u64>,
}

/// A mounted file system, and the devices below it.
#[derive(Clone, Debug)]
pub struct FileSystem {
    /// The block device that holds it.
    pub device: PathBuf,
    /// The name of its type, such as `ext4` or `xfs`.
    pub name: String,
    /// The size of a block in bytes.
    pub block_bytes: u64,
    stack: Stack,
    layer: LayerId,
    /// The loop devices that do not begin at the start of their files, by drive.
    loop_offsets: BTreeMap<LayerId, LoopOffset>,
}

/// The file of a loop device, which counts as the drive, and the offset of the device in it.
#[derive(Clone, Debug)]
struct LoopOffset {
    file: String,
    bytes: u64,
}

impl FileSystem {
    /// Finds the file system that holds `path`, and examines its devices.
    ///
    /// # Errors
    /// Returns an error if the path does not exist, if its file system is not on a block device, is
    /// on several devices, or is none of ext2 to ext4, XFS and Btrfs, or if the device cannot be
    /// found or read; reading it usually needs root.
    pub fn of(path: &Path, host: &HostPaths) -> Result<FileSystem, FileError> {
        let unsuitable = |why: String| FileError::Unsuitable {
            path: path.to_owned(),
            why,
        };
        let device = device_of(path, host).map_err(|error| FileError::System {
            path: path.to_owned(),
            what: "find its device",
            error,
        })?;
        let stack = examine_targets(std::slice::from_ref(&device), &StatedDrive::default(), host)?;
        let node = device.to_str();
        let below = stack
            .iter()
            .find(|(_, layer)| layer.node.as_deref() == node);
        let (below, _) = below
            .ok_or_else(|| unsuitable(format!("its device {} was not found", device.display())))?;
        let (layer, name, block_bytes) = stack
            .above(below)
            .find_map(|(id, layer)| match &layer.kind {
                Kind::Ext(ext) => Some((id, ext.version.clone(), ext.block_bytes)),
                Kind::Xfs(xfs) => Some((id, "xfs".to_owned(), xfs.block_bytes)),
                Kind::Btrfs(btrfs) => Some((id, "btrfs".to_owned(), btrfs.sector_bytes)),
                _ => None,
            })
            .ok_or_else(|| {
                let why = stack.above(below).find_map(|(_, layer)| match &layer.kind {
                    Kind::Unknown(Unknown::Unreadable(why) | Unknown::Damaged(why)) => {
                        Some(why.clone())
                    }
                    _ => None,
                });
                let why =
                    why.unwrap_or_else(|| "no ext2, ext3, ext4, XFS or Btrfs was found".to_owned());
                unsuitable(format!("{} cannot be used: {why}", device.display()))
            })?;
        let loop_offsets = stack
            .iter()
            .filter_map(|(id, layer)| Some((id, loop_offset(layer.node.as_deref()?, host)?)))
            .collect();
        Ok(FileSystem {
            device,
            name,
            block_bytes,
            stack,
            layer,
            loop_offsets,
        })
    }

    /// Returns the drives that hold parts of the file system, with their names. Of a mirror, only
    /// the first member counts.
    pub fn drives(&self) -> Vec<(LayerId, &str)> {
        let mut drives = Vec::new();
        let mut waiting = vec![self.layer];
        while let Some(id) = waiting.pop() {
            let layer = self.stack.layer(id);
            if layer.on.is_empty() && !drives.iter().any(|(known, _)| *known == id) {
                let node = layer.node.as_deref().unwrap_or(&layer.name);
                let file = self.loop_offsets.get(&id).map(|found| found.file.as_str());
                drives.push((id, file.unwrap_or(node)));
            }
            let places = layer.on.iter().take(match layer.spread {
                Spread::Mirrored => 1,
                _ => usize::MAX,
            });
            waiting.extend(places.map(|place| place.layer));
        }
        drives.sort_unstable_by_key(|(id, _)| *id);
        drives
    }

    /// Returns the drive that holds the file system in one piece, and the byte of the drive at
    /// which the file system begins.
    pub fn in_one_piece(&self) -> Option<(LayerId, u64)> {
        let (drive, start) = self.stack.in_one_piece(self.layer)?;
        Some((drive, start + self.offset_of(drive)))
    }

    fn offset_of(&self, drive: LayerId) -> u64 {
        self.loop_offsets.get(&drive).map_or(0, |found| found.bytes)
    }

    /// Returns the blocks of the file system as a layout sees them.
    ///
    /// # Errors
    /// Returns an error if the file system does not lie in one piece on one drive, if it does not
    /// begin at a sector of the drive, if its blocks are not whole sectors, or if the map does not
    /// cover it.
    pub fn partition(&self, drive: &TrackedDrive) -> Result<Partition, FileError> {
        let unsuitable = |why: &str| FileError::Unsuitable {
            path: self.device.clone(),
            why: why.to_owned(),
        };
        let (_, start) = self
            .in_one_piece()
            .ok_or_else(|| unsuitable("the file system does not lie in one piece on one drive"))?;
        if start % drive.sector_bytes != 0 {
            return Err(unsuitable("it does not begin at a sector of the drive"));
        }
        let bytes = self.stack.layer(self.layer).bytes;
        let first = start / drive.sector_bytes;
        let lbns = Lbn(first)..Lbn(first + bytes / drive.sector_bytes);
        self.partition_of(drive, lbns)
    }

    /// Divides LBNs of a drive into blocks of the file system.
    pub(crate) fn partition_of(
        &self,
        drive: &TrackedDrive,
        lbns: Range<Lbn>,
    ) -> Result<Partition, FileError> {
        let sectors = u32::try_from(self.block_bytes / drive.sector_bytes).unwrap_or(0);
        if u64::from(sectors) * drive.sector_bytes != self.block_bytes {
            return Err(LayoutError::PartOfSector {
                block_bytes: self.block_bytes as u32,
                sector_bytes: drive.sector_bytes as u32,
            }
            .into());
        }
        Ok(Partition::new(Arc::clone(&drive.map), lbns, sectors)?)
    }

    /// Returns the place of a range of the file system's bytes on drives, in order.
    ///
    /// # Errors
    /// Returns an error if a device below the file system spreads its data by a rule that is not
    /// supported, such as parity, thin provisioning, or RAID-0 on members of different sizes.
    pub fn on_drives(&self, bytes: Range<u64>) -> Result<Vec<DrivePiece>, FileError> {
        let mut pieces = Vec::new();
        self.descend(self.layer, bytes, &mut pieces)?;
        Ok(pieces)
    }

    fn descend(
        &self,
        id: LayerId,
        bytes: Range<u64>,
        pieces: &mut Vec<DrivePiece>,
    ) -> Result<(), FileError> {
        let layer = self.stack.layer(id);
        match layer.spread {
            _ if layer.on.is_empty() => {
                let offset = self.offset_of(id);
                let bytes = bytes.start + offset..bytes.end + offset;
                match pieces.last_mut() {
                    Some(last) if last.drive == id && last.bytes.end == bytes.start => {
                        last.bytes.end = bytes.end;
                    }
                    _ => pieces.push(DrivePiece { drive: id, bytes }),
                }
                Ok(())
            }
            Spread::Mirrored => {
                let place = layer.on[0];
                let below = place.start + bytes.start..place.start + bytes.end;
                self.descend(place.layer, below, pieces)
            }
            Spread::Joined => {
                let mut before = 0;
                for place in &layer.on {
                    let start = bytes.start.clamp(before, before + place.bytes);
                    let end = bytes.end.clamp(before, before + place.bytes);
                    if start < end {
                        let below = place.start + (start - before)..place.start + (end - before);
                        self.descend(place.layer, below, pieces)?;
                    }
                    before += place.bytes;
                }
                Ok(())
            }
            Spread::Striped { chunk_bytes, .. } if self.is_raid0(id) && chunk_bytes > 0 => {
                let members = layer.on.len() as u64;
                let mut at = bytes.start;
                while at < bytes.end {
                    let chunk = at / chunk_bytes;
                    let end = bytes.end.min((chunk + 1) * chunk_bytes);
                    let place = layer.on[(chunk % members) as usize];
                    let start = place.start + chunk / members * chunk_bytes + at % chunk_bytes;
                    self.descend(place.layer, start..start + (end - at), pieces)?;
                    at = end;
                }
                Ok(())
            }
            Spread::Striped { .. } | Spread::Scattered | _ => Err(FileError::Unsuitable {
                path: self.device.clone(),
                why: format!(
                    "its data is spread over {} by a rule that is not supported",
                    self.stack.title(id)
                ),
            }),
        }
    }

    /// Returns whether a layer distributes its chunks over its members in turn, and all members
    /// have the same size.
    fn is_raid0(&self, id: LayerId) -> bool {
        let layer = self.stack.layer(id);
        let first = layer.on.first().map_or(0, |place| place.bytes);
        let is_level = match &layer.kind {
            Kind::Array(array) => array.level == RaidLevel::Raid0,
            Kind::LogicalVolume(volume) => volume.segment == "striped",
            _ => false,
        };
        is_level && layer.on.iter().all(|place| place.bytes == first)
    }
}

/// Returns the offset of a loop device in its file; `None` if it is 0 or `node` is not a loop
/// device.
fn loop_offset(node: &str, host: &HostPaths) -> Option<LoopOffset> {
    let name = Path::new(node).strip_prefix(&host.dev).ok()?;
    let folder = host.sys.join("class/block").join(name).join("loop");
    let read = |what: &str| std::fs::read_to_string(folder.join(what)).ok();
    let bytes = read("offset")?
        .trim()
        .parse()
        .ok()
        .filter(|bytes| *bytes > 0)?;
    let file = read("backing_file")?.trim_end().to_owned();
    Some(LoopOffset { file, bytes })
}

#[cfg(test)]
pub(crate) mod tests;
