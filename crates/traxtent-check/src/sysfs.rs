//! The kernel's view of block devices, in `/sys/class/block`.
//!
//! Source: Documentation/ABI/stable/sysfs-block of the Linux kernel. The directory is an argument,
//! so that a test can build its own.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use traxtent_scsi::inquiry::{Characteristics, VitalPage};

use crate::stack::Limits;

/// The block devices of a machine by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Every device with a length above zero.
    pub devices: BTreeMap<String, Device>,
}

/// A block device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The length in bytes.
    pub bytes: u64,
    /// The kernel's limits for requests.
    pub limits: Limits,
    /// For a partition, its drive and its first byte there.
    pub part_of: Option<(String, u64)>,
    /// The devices that it is made from.
    pub slaves: Vec<String>,
    /// The devices that are made from it.
    pub holders: Vec<String>,
    /// Its name and UUID in device mapper. The UUID begins with the creator: `LVM-`, `CRYPT-`,
    /// `mpath-`.
    pub mapper: Option<(String, String)>,
    /// Whether it is an md array.
    pub is_array: bool,
    /// The backing file of a loop device.
    pub file: Option<String>,
    /// Vendor and model.
    pub model: Option<String>,
    /// Whether it is connected by USB.
    pub usb: bool,
    /// The speed and zones that a SCSI or SATA drive reports (page B1h).
    pub characteristics: Option<Characteristics>,
}

impl Machine {
    /// Reads the tree at `root`, which is `/sys` on a machine.
    ///
    /// # Errors
    /// Returns an error if the list of block devices cannot be read. A device that disappears
    /// during the call is left out.
    pub fn read(root: &Path) -> io::Result<Machine> {
        let folder = root.join("class/block");
        let mut devices = BTreeMap::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let device = Device::read(&entry.path());
            devices.extend(
                device
                    .filter(|device| device.bytes > 0)
                    .map(|device| (name, device)),
            );
        }
        Ok(Machine { devices })
    }

    /// Returns the names of the drives that a device lies on, or that of the device itself if it
    /// lies on none. They are sorted. The list is empty if there is no such device.
    pub fn drives_below(&self, name: &str) -> Vec<String> {
        let mut drives = Vec::new();
        let mut seen = Vec::new();
        let mut waiting = vec![name.to_owned()];
        while let Some(name) = waiting.pop() {
            let Some(device) = self.devices.get(&name) else {
                continue;
            };
            if seen.contains(&name) {
                continue;
            }
            let drive = device.part_of.iter().map(|(drive, _)| drive);
            let below: Vec<String> = drive.chain(&device.slaves).cloned().collect();
            if below.is_empty() {
                drives.push(name.clone());
            }
            seen.push(name);
            waiting.extend(below);
        }
        drives.sort();
        drives
    }

    /// Returns the drives: the devices that lie on nothing else and are not memory, optical drives
    /// or floppy drives.
    pub fn drives(&self) -> impl Iterator<Item = &str> {
        let is_other = |name: &str| {
            ["ram", "zram", "sr", "fd"]
                .iter()
                .any(|kind| name.starts_with(kind))
        };
        let devices = self.devices.iter();
        devices
            .filter(move |(name, device)| {
                device.part_of.is_none() && device.slaves.is_empty() && !is_other(name)
            })
            .map(|(name, _)| name.as_str())
    }

    /// Returns the given drives and all drives that share an array or a volume with them.
    pub fn joined_with(&self, mut drives: Vec<String>) -> Vec<String> {
        let mut done = 0;
        while let Some(drive) = drives.get(done).cloned() {
            done += 1;
            for name in self.above(&drive) {
                for below in self.drives_below(&name) {
                    if !drives.contains(&below) {
                        drives.push(below);
                    }
                }
            }
        }
        drives.sort();
        drives
    }

    /// Returns a drive and the devices that lie on it, directly or indirectly.
    fn above(&self, drive: &str) -> Vec<String> {
        let mut above = vec![drive.to_owned()];
        let mut done = 0;
        while let Some(name) = above.get(done).cloned() {
            done += 1;
            let parts = self
                .devices
                .iter()
                .filter(|(_, device)| device.part_of.as_ref().is_some_and(|of| of.0 == name));
            let parts = parts.map(|(part, _)| part.clone());
            let holders = self.holders(&name).map(|(holder, _)| holder.to_owned());
            for next in parts.chain(holders).collect::<Vec<_>>() {
                if !above.contains(&next) {
                    above.push(next);
                }
            }
        }
        above
    }

    /// Returns the partition of a drive that begins at byte `start`.
    pub fn partition_at(&self, drive: &str, start: u64) -> Option<&str> {
        let mut devices = self.devices.iter();
        devices
            .find(|(_, device)| {
                device
                    .part_of
                    .as_ref()
                    .is_some_and(|of| of.0 == drive && of.1 == start)
            })
            .map(|(name, _)| name.as_str())
    }

    /// Returns the devices that are made from a device.
    pub fn holders(&self, name: &str) -> impl Iterator<Item = (&str, &Device)> {
        let holders = self
            .devices
            .get(name)
            .map(|device| device.holders.as_slice());
        holders
            .unwrap_or_default()
            .iter()
            .filter_map(|name| self.devices.get_key_value(name))
            .map(|(name, device)| (name.as_str(), device))
    }

    /// Returns the device-mapper device with a given UUID.
    pub fn mapped(&self, uuid: &str) -> Option<(&str, &Device)> {
        let mut devices = self.devices.iter();
        devices
            .find(|(_, device)| {
                device
                    .mapper
                    .as_ref()
                    .is_some_and(|mapper| mapper.1 == uuid)
            })
            .map(|(name, device)| (name.as_str(), device))
    }
}

impl Device {
    fn read(folder: &Path) -> Option<Device> {
        // The kernel counts in units of 512 bytes, whatever the sector size.
        let sectors = |path: &str| Some(number(folder, path)?.saturating_mul(512));
        let real = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
        let is_part = folder.join("partition").exists();
        let drive = real.parent().and_then(Path::file_name);
        let drive = drive
            .filter(|_| is_part)
            .map(|name| name.to_string_lossy().into_owned());
        // The limits of a partition are in the drive's directory.
        let queue = if is_part {
            real.parent()?.join("queue")
        } else {
            folder.join("queue")
        };
        let text = |path| text(folder, path);
        let words = [text("device/vendor"), text("device/model")];
        let model = words
            .into_iter()
            .flatten()
            // SATA drives report the vendor `ATA`, virtual drives a number.
            .filter(|word| word != "ATA" && !word.starts_with("0x"))
            .collect::<Vec<_>>()
            .join(" ");
        Some(Device {
            bytes: sectors("size")?,
            limits: limits(&queue, folder),
            part_of: drive.zip(sectors("start")),
            slaves: names(&folder.join("slaves")),
            holders: names(&folder.join("holders")),
            mapper: text("dm/name").zip(text("dm/uuid")),
            is_array: folder.join("md").exists(),
            file: text("loop/backing_file"),
            model: Some(model).filter(|model| !model.is_empty()),
            usb: real
                .components()
                .any(|part| part.as_os_str().to_string_lossy().starts_with("usb")),
            characteristics: vital(&folder.join("device/vpd_pgb1")),
        })
    }
}

/// Decodes page B1h as the drive returned it.
fn vital(file: &Path) -> Option<Characteristics> {
    match VitalPage::decode(&fs::read(file).ok()?) {
        Ok(VitalPage::Characteristics(says)) => Some(says),
        _ => None,
    }
}

fn limits(queue: &Path, device: &Path) -> Limits {
    let bytes = |name| number(queue, name);
    Limits {
        logical_bytes: bytes("logical_block_size"),
        physical_bytes: bytes("physical_block_size"),
        io_min_bytes: bytes("minimum_io_size"),
        io_opt_bytes: bytes("optimal_io_size"),
        alignment_offset: text(device, "alignment_offset").and_then(|text| text.parse().ok()),
        discard_bytes: bytes("discard_granularity"),
        rotational: bytes("rotational").map(|flag| flag != 0),
        zoned: text(queue, "zoned"),
    }
}

fn text(folder: &Path, path: &str) -> Option<String> {
    let text = fs::read_to_string(folder.join(path)).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn number(folder: &Path, path: &str) -> Option<u64> {
    text(folder, path)?.parse().ok()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
