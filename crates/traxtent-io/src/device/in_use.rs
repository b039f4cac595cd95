//! Detection of the users of a device, for a check before the device is written to.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, Mode, OFlags, major, minor};
use rustix::io::Errno;

use super::mounts::{mounts, unescaped};
use super::storage::{FileId, LoopDevice, Storage};
use super::sysfs;

/// Returns a description of the user of a device, of one of its partitions, or of an image file: a
/// mounted file system, swap, a volume or loop device on top of it, or a program that holds it
/// exclusively. A user of another loop device on the same bytes counts as well. Returns `None` if
/// no user is found. Files are compared by device and inode, not by name.
///
/// A SCSI generic node is treated as the disk that it controls, but a program that holds the disk
/// exclusively is not found. A device that cannot be examined counts as unused; for a block device,
/// the kernel makes the final decision when the device is opened with O_EXCL.
pub fn in_use(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let kind = metadata.file_type();
    if kind.is_block_device() {
        block_in_use(metadata.rdev(), path)
    } else if kind.is_char_device() {
        let disk = disk_of_generic(metadata.rdev())?;
        block_in_use(disk, path)
    } else {
        file_in_use(path)
    }
}

fn block_in_use(device: Dev, path: &Path) -> Option<String> {
    let folder = sysfs::directory(device);
    let own = Storage::of_block(device);
    let loops = LoopDevice::all(own.file_system());
    user_of(device, &folder, path, &loops).or_else(|| {
        let name = sysfs::name(&sysfs::whole(&folder));
        let mut others = loops.iter().filter(|other| other.name != name);
        others.find_map(|other| {
            let path = other.path();
            let number = rdev(&path)?;
            let shows_same = Storage::of_block(number).overlaps(&own);
            let user = || user_of(number, &sysfs::directory(number), &path, &[]);
            let user = shows_same.then(user)??;
            Some(format!("{} shows the same data: {user}", path.display()))
        })
    })
}

/// Returns a description of the user of a block device or one of its partitions.
fn user_of(device: Dev, folder: &Path, path: &Path, loops: &[LoopDevice]) -> Option<String> {
    let mut parts = vec![(device, folder.to_owned())];
    for name in sysfs::names(folder) {
        let part = folder.join(name);
        if sysfs::is_partition(&part) {
            parts.extend(number(&part).map(|number| (number, part)));
        }
    }
    for (number, folder) in parts {
        let name = sysfs::name(&folder);
        if let Some(point) = mounted_on(number) {
            return Some(format!("/dev/{name} is mounted on {point}"));
        }
        if is_swap(FileId::Block(number)) {
            return Some(format!("/dev/{name} is swap space"));
        }
        if let Some(holder) = sysfs::names(&folder.join("holders")).first() {
            return Some(format!("/dev/{name} is part of /dev/{holder}"));
        }
        if let Some(above) = loop_device_on(FileId::Block(number), loops) {
            return Some(format!("/dev/{name} backs {above}"));
        }
    }
    let exclusive = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let is_block = fs::metadata(path).is_ok_and(|m| m.file_type().is_block_device());
    let open = || rustix::fs::open(path, exclusive, Mode::empty());
    let held = is_block && matches!(open(), Err(Errno::BUSY));
    held.then(|| format!("another program holds {}", path.display()))
}

fn file_in_use(path: &Path) -> Option<String> {
    let file = FileId::at(path)?;
    if is_swap(file) {
        return Some(format!("{} is swap space", path.display()));
    }
    let above = loop_device_on(file, &LoopDevice::all(file.file_system()))?;
    Some(format!("{} backs {above}", path.display()))
}

/// Returns the path of the first loop device with this backing file.
fn loop_device_on(file: FileId, loops: &[LoopDevice]) -> Option<String> {
    let above = loops.iter().find(|device| device.file == file)?;
    Some(above.path().display().to_string())
}

/// Returns the disk that a SCSI generic node controls.
fn disk_of_generic(node: Dev) -> Option<Dev> {
    let generic = format!("/sys/dev/char/{}:{}/device/block", major(node), minor(node));
    let block = Path::new(&generic);
    let disk = sysfs::names(block).into_iter().next()?;
    number(&block.join(disk))
}

/// Returns the device number that a sysfs directory describes.
fn number(folder: &Path) -> Option<Dev> {
    sysfs::parse_number(&sysfs::text(folder, "dev")?)
}

fn mounted_on(device: Dev) -> Option<String> {
    let mounts = mounts().unwrap_or_default();
    mounts.into_iter().find_map(|mount| {
        // A file system that spans devices has a device number of its own, and names one of its
        // devices.
        let is_on_it = mount.device == device || rdev(&mount.source) == Some(device);
        is_on_it.then(|| mount.point.display().to_string())
    })
}

fn is_swap(file: FileId) -> bool {
    swaps().iter().any(|swap| FileId::at(swap) == Some(file))
}

/// Returns the files and devices that the kernel swaps to.
fn swaps() -> Vec<PathBuf> {
    let table = fs::read_to_string("/proc/swaps").unwrap_or_default();
    let lines = table.lines().skip(1);
    let files = lines.filter_map(|line| line.split_whitespace().next());
    files.map(|file| unescaped(file.as_bytes())).collect()
}

fn rdev(path: &Path) -> Option<Dev> {
    let metadata = fs::metadata(path).ok()?;
    metadata
        .file_type()
        .is_block_device()
        .then(|| metadata.rdev())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a mounted device found to be in use, and a path without a disk not?
    #[test]
    fn a_mounted_device_is_in_use() {
        let mounts = mounts().unwrap();
        let Some(mount) = mounts.iter().find(|mount| rdev(&mount.source).is_some()) else {
            testkit::skip!("no block device is mounted");
        };
        let user = in_use(&mount.source).unwrap_or_default();
        assert!(user.contains(" is mounted on /"), "{user:?}");
        assert_eq!(in_use(Path::new("/dev/null")), None);
        assert_eq!(in_use(Path::new("/no/such/device")), None);
    }
}
