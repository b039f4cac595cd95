//! The kernel's description of block devices in sysfs.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, major, makedev, minor};

/// Returns the sysfs directory of a block device.
pub(super) fn directory(device: Dev) -> PathBuf {
    PathBuf::from(format!(
        "/sys/dev/block/{}:{}",
        major(device),
        minor(device)
    ))
}

/// Parses a device number such as `8:1`.
pub(super) fn parse_number(text: &str) -> Option<Dev> {
    let (major, minor) = text.split_once(':')?;
    Some(makedev(major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the name of a block device, such as `sda`.
pub(super) fn name(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let name = real.file_name().unwrap_or_default();
    // Sysfs writes an exclamation mark for a slash.
    name.to_string_lossy().replace('!', "/")
}

/// Returns the text of an attribute without surrounding white space; `None` if it is absent or
/// empty.
pub(super) fn text(folder: &Path, attribute: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(attribute)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns whether the kernel refuses writes to a device.
pub(super) fn is_read_only(folder: &Path) -> bool {
    text(folder, "ro").is_some_and(|text| text == "1")
}

/// Returns whether a device is a partition of another.
pub(super) fn is_partition(folder: &Path) -> bool {
    folder.join("partition").exists()
}

/// Returns whether a device is a whole SCSI disk. Partitions and mapped devices pass commands on to
/// a disk whose LBNs differ from theirs.
pub(super) fn is_scsi_disk(folder: &Path) -> bool {
    folder.join("device/scsi_level").exists()
}

/// Returns the sysfs directory of the disk that a device is or, for a partition, is part of.
pub(super) fn whole(folder: &Path) -> PathBuf {
    if is_partition(folder) {
        folder.join("..")
    } else {
        folder.to_owned()
    }
}

/// Returns the serial number. Different kinds of disks report it in different attributes.
pub(super) fn serial(whole: &Path) -> Option<String> {
    text(whole, "serial")
        .or_else(|| text(whole, "device/serial"))
        .or_else(|| {
            // SCSI: the raw unit serial number page, after its header of four bytes.
            let page = fs::read(whole.join("device/vpd_pg80")).ok()?;
            let serial = String::from_utf8_lossy(page.get(4..)?);
            let serial = serial.trim_matches(|c: char| c.is_whitespace() || c == '\0');
            (!serial.is_empty()).then(|| serial.to_owned())
        })
}

/// Returns the names in a directory in ascending order; empty if there is no such directory.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
