//! The facts about a drive, from the user, the list of quirks and the kernel, in this order of
//! precedence. For the kind of media, however, zones that the kernel or the drive reports come
//! first, then the list of quirks, and then the user.

use traxtent_model::profile::Profile;
use traxtent_scsi::inquiry::{Rotation, Zoned};

use crate::layers::{Disk, MediaKind, SizeSource};
use crate::quirks;
use crate::sysfs::Device;

/// The facts that the user states about the drive below a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedDrive {
    /// The name or model.
    pub model: Option<String>,
    /// The size of a logical sector in bytes.
    pub logical_bytes: Option<u64>,
    /// The size of a physical sector in bytes.
    pub physical_bytes: Option<u64>,
    /// The first byte that begins a physical sector.
    pub first_aligned_byte: Option<u64>,
    /// The size of an erase block in bytes.
    pub erase_bytes: Option<u64>,
    /// The chunk size of the array behind a controller, in bytes.
    pub chunk_bytes: Option<u64>,
    /// The data in a full stripe of that array, in bytes.
    pub stripe_bytes: Option<u64>,
    /// The capacity in bytes.
    pub capacity_bytes: Option<u64>,
    /// Whether the drive is stated to have tracks.
    pub is_rotating: bool,
}

impl StatedDrive {
    /// Returns the facts that a profile states.
    pub fn of(profile: &Profile) -> StatedDrive {
        let sector = profile.sector;
        let logical = u64::from(sector.logical_bytes);
        StatedDrive {
            model: Some(profile.model.clone()),
            logical_bytes: Some(logical),
            physical_bytes: Some(u64::from(sector.physical_bytes)),
            first_aligned_byte: Some(u64::from(sector.lowest_aligned_lbn) * logical),
            is_rotating: profile.mechanics.is_some(),
            ..StatedDrive::default()
        }
    }

    /// Returns the facts about an image. Unless stated otherwise, it has logical sectors of 512
    /// bytes and physical sectors of 4096 bytes, like most current drives.
    pub fn image(&self) -> Disk {
        self.disk(None)
    }

    /// Returns the facts about a drive of a machine.
    pub fn device(&self, device: &Device) -> Disk {
        self.disk(Some(device))
    }

    /// Replaces the facts about a drive of an archive with those that are stated.
    pub fn apply_to(&self, disk: &mut Disk) {
        let replace = |old: &mut Option<u64>, new: Option<u64>| *old = new.or(*old);
        replace(&mut disk.erase_bytes, self.erase_bytes);
        replace(&mut disk.chunk_bytes, self.chunk_bytes);
        replace(&mut disk.stripe_bytes, self.stripe_bytes);
        replace(&mut disk.capacity_bytes, self.capacity_bytes);
        if self.model.is_some() {
            disk.model.clone_from(&self.model);
        }
        if let Some(byte) = self.first_aligned_byte {
            disk.first_aligned_byte = byte;
        }
        if let Some(bytes) = self.logical_bytes {
            disk.logical_bytes = bytes.max(1);
        }
        if let Some(bytes) = self.physical_bytes {
            disk.physical_bytes = bytes;
            disk.physical_by = SizeSource::Stated;
        }
        disk.physical_bytes = disk.physical_bytes.max(disk.logical_bytes);
        disk.medium = match disk.medium {
            MediaKind::Unknown | MediaKind::Rotating | MediaKind::SolidState => {
                if self.is_rotating {
                    MediaKind::Rotating
                } else if self.erase_bytes.is_some() {
                    MediaKind::SolidState
                } else {
                    disk.medium
                }
            }
            zoned_or_shingled => zoned_or_shingled,
        };
    }

    fn disk(&self, device: Option<&Device>) -> Disk {
        let limits = device.map(|device| &device.limits);
        let model = self.model.clone().or_else(|| match device? {
            Device {
                file: Some(file), ..
            } => Some(format!("loop device of {file}")),
            device => device.model.clone(),
        });
        let quirk = model.as_deref().and_then(quirks::find);
        let claimed = limits.and_then(|limits| limits.physical_bytes);
        let quirky = quirk
            .map(|quirk| quirk.physical_bytes)
            .filter(|&known| claimed.is_some_and(|claim| claim < known));
        let logical_bytes = self
            .logical_bytes
            .or_else(|| limits?.logical_bytes)
            .unwrap_or(512)
            .max(1);
        let (physical_bytes, physical_by) = match (self.physical_bytes, quirky, claimed) {
            (Some(bytes), ..) => (bytes, SizeSource::Stated),
            (None, Some(bytes), _) => (bytes, SizeSource::Quirk),
            (None, None, Some(bytes)) => (bytes, SizeSource::Kernel),
            (None, None, None) => (4096, SizeSource::Assumed),
        };
        let offset = limits.and_then(|limits| limits.alignment_offset);
        Disk {
            logical_bytes,
            physical_bytes: physical_bytes.max(logical_bytes),
            physical_by,
            first_aligned_byte: self
                .first_aligned_byte
                .or_else(|| u64::try_from(offset?).ok())
                .unwrap_or(0),
            erase_bytes: self.erase_bytes,
            chunk_bytes: self.chunk_bytes,
            stripe_bytes: self.stripe_bytes,
            capacity_bytes: self.capacity_bytes,
            medium: self.medium(device, quirk),
            usb: device.is_some_and(|device| device.usb),
            image: device.is_none(),
            model,
        }
    }

    fn medium(&self, device: Option<&Device>, quirk: Option<&quirks::Quirk>) -> MediaKind {
        let limits = device.map(|device| &device.limits);
        let zoned = limits.and_then(|limits| limits.zoned.as_deref());
        let reported = device
            .and_then(|device| device.characteristics)
            .unwrap_or_default();
        // Behind a bridge or controller that reports no rotation speed, the kernel's `rotational`
        // flag keeps its default, so the drive's own page takes precedence.
        let rotates = match reported.rotation {
            Rotation::Rpm(_) => Some(true),
            Rotation::None => Some(false),
            _ => limits.and_then(|limits| limits.rotational),
        };
        match (zoned, reported.zoned, rotates) {
            (Some("host-managed"), _, Some(false)) => MediaKind::SolidStateZoned,
            (Some("host-managed"), ..) => MediaKind::ShingledHostManaged,
            // Since Linux 6.8 the kernel treats host-aware drives as drives without zones. Only
            // the drive's page identifies them.
            (Some("host-aware"), ..) | (_, Zoned::HostAware, _) => MediaKind::ShingledHostAware,
            (_, Zoned::DeviceManaged, _) => MediaKind::ShingledHidden,
            _ if quirk.is_some_and(|quirk| quirk.shingled) => MediaKind::ShingledHidden,
            _ if self.is_rotating => MediaKind::Rotating,
            _ if self.erase_bytes.is_some() => MediaKind::SolidState,
            (.., Some(true)) => MediaKind::Rotating,
            (.., Some(false)) => MediaKind::SolidState,
            _ => MediaKind::Unknown,
        }
    }
}
