//! The file or block device that stores the bytes of a path, also if the path is a loop device.

use std::fs::{self, File};
use std::ops::Range;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use linux_raw_sys::loop_device::{LOOP_GET_STATUS64, loop_info64};
use rustix::fs::{Dev, FileType, Stat, makedev};
use rustix::ioctl::Getter;

use super::mounts::{Mount, mounts};
use super::sysfs;

/// The size in bytes of the sectors that sysfs counts.
const SYSFS_SECTOR_BYTES: u64 = 512;

/// The place where the bytes of a file or block device are stored, independent of its path.
///
/// A loop device stores its bytes in its backing file, so it has the same storage as any other loop
/// device on the same range of this file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    file: FileId,
    bytes: Range<u64>,
}

impl Storage {
    /// Returns the storage of the file or block device with this status.
    pub fn of(stat: &Stat) -> Storage {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => Storage::of_block(stat.st_rdev),
            _ => Storage::whole(FileId::File {
                device: stat.st_dev,
                inode: stat.st_ino,
            }),
        }
    }

    /// Returns the storage of a block device. A loop device can have another loop device as its
    /// backing file.
    pub(super) fn of_block(device: Dev) -> Storage {
        let own = || Storage::whole(FileId::Block(device));
        let folder = sysfs::directory(device);
        let Some(shown) = LoopDevice::read(&sysfs::whole(&folder)) else {
            return own();
        };
        let below = match shown.file {
            FileId::Block(below) if below != device => Storage::of_block(below),
            file => Storage::whole(file),
        };
        let sectors = |attribute: &str| sysfs::text(&folder, attribute)?.parse::<u64>().ok();
        let bytes = |sectors: Option<u64>| sectors.unwrap_or(0) * SYSFS_SECTOR_BYTES;
        // Only a partition has a start.
        let start = below.bytes.start + shown.offset + bytes(sectors("start"));
        Storage {
            bytes: start..start + bytes(sectors("size")),
            ..below
        }
    }

    fn whole(file: FileId) -> Storage {
        Storage {
            file,
            bytes: 0..u64::MAX,
        }
    }

    /// Returns the number of the device whose file system holds the bytes; `None` for a block
    /// device.
    pub fn file_system(&self) -> Option<Dev> {
        self.file.file_system()
    }

    /// Returns whether a write to one of the two can change the other.
    pub fn overlaps(&self, other: &Storage) -> bool {
        let (one, two) = (&self.bytes, &other.bytes);
        self.file == other.file && one.start < two.end && two.start < one.end
    }
}

/// The identity of a file or block device, independent of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileId {
    File { device: Dev, inode: u64 },
    Block(Dev),
}

impl FileId {
    /// Returns the number of the device whose file system holds the file; `None` for a block
    /// device.
    pub(super) fn file_system(self) -> Option<Dev> {
        match self {
            FileId::File { device, .. } => Some(device),
            FileId::Block(_) => None,
        }
    }

    /// Returns the identity of the file at a path; `None` if there is no such file.
    pub(super) fn at(path: &Path) -> Option<FileId> {
        let metadata = fs::metadata(path).ok()?;
        Some(if metadata.file_type().is_block_device() {
            FileId::Block(metadata.rdev())
        } else {
            FileId::File {
                device: metadata.dev(),
                inode: metadata.ino(),
            }
        })
    }
}

/// A loop device that has a backing file.
pub(super) struct LoopDevice {
    pub(super) name: String,
    /// The backing file.
    pub(super) file: FileId,
    /// The offset of the first byte in the backing file.
    offset: u64,
}

impl LoopDevice {
    /// Returns the loop devices that have a backing file. A loop device is omitted if that file is
    /// on a file system that may not respond, unless this is the file system with the given device
    /// number.
    pub(super) fn all(file_system: Option<Dev>) -> Vec<LoopDevice> {
        let mounts = mounts().unwrap_or_default();
        let may_hang = |folder: &Path| {
            let path = sysfs::text(folder, "loop/backing_file");
            let mount = path.and_then(|path| Mount::of(Path::new(&path), &mounts));
            mount.is_some_and(|mount| mount.is_remote() && Some(mount.device) != file_system)
        };
        let names = sysfs::names(Path::new("/sys/block")).into_iter();
        names
            .map(|name| Path::new("/sys/block").join(name))
            .filter(|folder| !may_hang(folder))
            .filter_map(|folder| LoopDevice::read(&folder))
            .collect()
    }

    /// Reads the description of a loop device; `None` without a backing file.
    ///
    /// The kernel reports the path of the backing file as it is now. Other files can have this path
    /// in this process: the file can be deleted, hidden by a mount, or in another mount namespace.
    /// The path is used only if the device cannot be opened.
    fn read(folder: &Path) -> Option<LoopDevice> {
        let path = sysfs::text(folder, "loop/backing_file")?;
        let offset = sysfs::text(folder, "loop/offset")?.parse().ok()?;
        let name = sysfs::name(folder);
        let device = File::open(node(&name)).ok();
        let file = device.and_then(|device| backing_file(&device));
        Some(LoopDevice {
            file: file.or_else(|| FileId::at(Path::new(&path)))?,
            name,
            offset,
        })
    }

    /// Returns the path of the device.
    pub(super) fn path(&self) -> PathBuf {
        node(&self.name)
    }
}

fn node(name: &str) -> PathBuf {
    Path::new("/dev").join(name)
}

/// Returns the backing file of an open loop device; `None` if it has none, or if the device is no
/// loop device.
#[allow(unsafe_code)]
fn backing_file(device: &File) -> Option<FileId> {
    // SAFETY: LOOP_GET_STATUS64 fills a `loop_info64`; all its bytes may have any value.
    let request = unsafe { Getter::<{ LOOP_GET_STATUS64 }, loop_info64>::new() };
    // SAFETY: the request is one of loop devices; any other device refuses it.
    let info = unsafe { rustix::ioctl::ioctl(device, request) }.ok()?;
    Some(match info.lo_rdevice {
        0 => FileId::File {
            device: decoded(info.lo_device),
            inode: info.lo_inode,
        },
        block => FileId::Block(decoded(block)),
    })
}

/// Decodes a device number from a `loop_info64` (`new_encode_dev` in the kernel's
/// `include/linux/kdev_t.h`: 12 bits of the major number between 8 and 12 of the minor number).
fn decoded(number: u64) -> Dev {
    let major = number >> 8 & 0xfff;
    let minor = number & 0xff | number >> 12 & 0xf_ff00;
    makedev(major as u32, minor as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are device numbers decoded as the kernel encodes them, also with minor numbers above 255?
    #[test]
    fn device_numbers_are_decoded() {
        assert_eq!(decoded(0x0801), makedev(8, 1));
        assert_eq!(decoded(0x0010_0305), makedev(3, 0x105));
        assert_eq!(decoded(0xffff_ffff), makedev(0xfff, 0xf_ffff));
    }

    /// Do ranges of the same file overlap only if they share a byte?
    #[test]
    fn storage_overlaps() {
        let of = |inode, bytes| Storage {
            file: FileId::File { device: 1, inode },
            bytes,
        };
        assert!(of(1, 0..10).overlaps(&of(1, 9..20)));
        assert!(!of(1, 0..10).overlaps(&of(1, 10..20)));
        assert!(!of(1, 0..10).overlaps(&of(2, 0..10)));
        assert!(Storage::whole(FileId::Block(7)).overlaps(&Storage::whole(FileId::Block(7))));
    }
}
