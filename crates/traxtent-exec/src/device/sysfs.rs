//! What the kernel says of a block device in sysfs.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Dev, major, minor};

/// The folder of a block device.
pub(super) fn folder(device: Dev) -> PathBuf {
    PathBuf::from(format!(
        "/sys/dev/block/{}:{}",
        major(device),
        minor(device)
    ))
}

/// The text of an attribute, without white space around it; `None` where it is absent or empty.
pub(super) fn text(folder: &Path, attribute: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(attribute)).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Whether a device is a part of another.
pub(super) fn is_partition(folder: &Path) -> bool {
    folder.join("partition").exists()
}

/// Whether it is a whole SCSI disk. Partitions and mapped devices pass commands on to a disk whose
/// LBNs are not theirs.
pub(super) fn is_scsi_disk(folder: &Path) -> bool {
    folder.join("device/scsi_level").exists()
}

/// The folder of the whole disk.
pub(super) fn whole(folder: &Path) -> PathBuf {
    if is_partition(folder) {
        folder.join("..")
    } else {
        folder.to_owned()
    }
}

/// The serial number, from where disks of different kinds have it.
pub(super) fn serial(whole: &Path) -> Option<String> {
    text(whole, "serial")
        .or_else(|| text(whole, "device/serial"))
        .or_else(|| {
            // SCSI: the unit serial number page as it came, behind a header of four bytes.
            let page = fs::read(whole.join("device/vpd_pg80")).ok()?;
            let serial = String::from_utf8_lossy(page.get(4..)?);
            let serial = serial.trim_matches(|c: char| c.is_whitespace() || c == '\0');
            (!serial.is_empty()).then(|| serial.to_owned())
        })
}

/// Names in a folder, ascending; none where there is no such folder.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
