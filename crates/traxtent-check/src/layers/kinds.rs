//! The data of each kind of layer: mostly fields of its header on the media.

use serde::{Deserialize, Serialize};

use super::named::{TRAXTENT_MEMBER, TRAXTENT_REPLICAS};

/// A drive, or an image of one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// The vendor and model, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The size of a logical sector in bytes.
    pub logical_bytes: u64,
    /// The size of a physical sector in bytes.
    pub physical_bytes: u64,
    /// The source of the physical sector size.
    pub physical_by: SizeSource,
    /// The first byte that begins a physical sector (7 × 512 on drives with a jumper that shifts
    /// the numbering).
    pub first_aligned_byte: u64,
    /// The size of an erase block in bytes, on solid-state drives, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_bytes: Option<u64>,
    /// The size of a chunk in bytes, if the drive is an array behind a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<u64>,
    /// The data in a full stripe in bytes, if the drive is an array behind a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_bytes: Option<u64>,
    /// The capacity in bytes, if it is stated: an image may be longer than the drive that it is
    /// for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// The kind of media.
    pub medium: MediaKind,
    /// Whether it is connected by USB.
    #[serde(default)]
    pub usb: bool,
    /// Whether it is an image, for which the kernel reports nothing.
    #[serde(default)]
    pub image: bool,
}

/// The source of the physical sector size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SizeSource {
    /// The user.
    Stated,
    /// The response times of the drive.
    Measured,
    /// The list of drives whose reports about themselves are wrong or incomplete.
    Quirk,
    /// The kernel, which reads it from the drive.
    Kernel,
    /// An assumption: most current drives have 4096 bytes.
    Assumed,
}

/// The kind of media on which a drive keeps data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum MediaKind {
    /// Not known.
    Unknown,
    /// Rotating disks.
    Rotating,
    /// Rotating disks with shingled tracks. The drive does not report zones to the host.
    ShingledHidden,
    /// Rotating disks with shingled tracks. The drive reports its zones, but accepts writes in any
    /// order.
    ShingledHostAware,
    /// Rotating disks with shingled tracks. The host has to write each zone in order.
    ShingledHostManaged,
    /// Flash.
    SolidState,
    /// Flash with zones. The host has to write each zone in order.
    SolidStateZoned,
}

impl MediaKind {
    /// Returns whether it has no tracks.
    pub fn is_flash(self) -> bool {
        matches!(self, MediaKind::SolidState | MediaKind::SolidStateZoned)
    }
}

/// A partition table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The format.
    pub scheme: Scheme,
    /// The size in bytes of the sectors that it counts.
    pub sector_bytes: u64,
    /// The last sector that partitions of a GPT may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_usable_sector: Option<u64>,
    /// The inconsistencies in it, each as a sentence.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
    /// Whether it is a GPT whose copies are both damaged or absent. In that case, nothing on the
    /// drive states what it contained.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_intact_copy: bool,
    /// Whether it is a GPT whose copies are both intact, but differ.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copies_differ: bool,
    /// The relation between the MBR in the first sector and a GPT.
    #[serde(default, skip_serializing_if = "BootSector::is_usual")]
    pub boot_sector: BootSector,
}

/// The relation between the MBR in the first sector and a GPT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum BootSector {
    /// The usual one: an MBR without a GPT, or a GPT with the MBR that protects it.
    #[default]
    Usual,
    /// The MBR protects a GPT that is not there. The kernel then reads no partitions.
    ProtectsNothing,
    /// No MBR is there to protect the GPT.
    Missing,
    /// The MBR repeats partitions of the GPT, for systems that read no GPT.
    Hybrid,
}

impl BootSector {
    fn is_usual(&self) -> bool {
        *self == BootSector::Usual
    }
}

/// A remnant of an earlier use of a drive, beside its present content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remnant {
    /// The format: `a GPT`, `Btrfs`.
    pub what: String,
    /// The names of the format in libblkid, separated by commas, for `wipefs --types`.
    pub blkid_type: String,
    /// Whether tools or the kernel may mistake it for the content.
    pub is_ambiguous: bool,
}

/// The format of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Scheme {
    /// The format of the PC: four entries, and a chain of further ones.
    Mbr,
    /// The format of UEFI.
    Gpt,
}

impl Scheme {
    /// Returns the short name.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Mbr => "MBR",
            Scheme::Gpt => "GPT",
        }
    }
}

/// An entry of a partition table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    /// The number that the kernel gives the partition.
    pub number: u32,
    /// Primary, extended or logical.
    pub role: PartitionRole,
    /// The type as written in the table: `83`, or a GUID.
    pub type_code: String,
    /// The first sector, in sectors of the table.
    pub first_sector: u64,
    /// The number of sectors.
    pub sectors: u64,
}

/// The role of a partition in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionRole {
    /// An entry of the table.
    Primary,
    /// A container of logical partitions; it holds one-sector tables, so its alignment does not
    /// matter (paper A).
    Extended,
    /// A partition in the extended one.
    Logical,
}

/// A level of RAID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RaidLevel {
    /// One member after another.
    Linear,
    /// Striped.
    Raid0,
    /// Mirrored.
    Raid1,
    /// Striped, with parity on one member.
    Raid4,
    /// Striped, with parity that rotates over the members.
    Raid5,
    /// Striped, with two parity chunks per stripe.
    Raid6,
    /// Striped and mirrored.
    Raid10,
    /// Multipath, or another level that has no chunks.
    Other,
}

impl RaidLevel {
    /// Returns the usual name.
    pub fn name(self) -> &'static str {
        match self {
            RaidLevel::Linear => "linear",
            RaidLevel::Raid0 => "RAID 0",
            RaidLevel::Raid1 => "RAID 1",
            RaidLevel::Raid4 => "RAID 4",
            RaidLevel::Raid5 => "RAID 5",
            RaidLevel::Raid6 => "RAID 6",
            RaidLevel::Raid10 => "RAID 10",
            RaidLevel::Other => "another level",
        }
    }
}

/// A superblock of md.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MdMember {
    /// `0.90`, `1.0`, `1.1`, `1.2`.
    pub version: String,
    /// The array's level.
    pub level: RaidLevel,
    /// The array's layout, as md writes it.
    pub layout: u32,
    /// The size of a chunk in bytes; 0 if there are no chunks.
    pub chunk_bytes: u64,
    /// The offset of the data in bytes.
    pub data_start: u64,
    /// The space for data in bytes.
    pub data_bytes: u64,
    /// The part of that space that the array uses, in bytes.
    pub used_bytes: u64,
    /// The number of members of the array.
    pub members: u32,
    /// The position among the members; `None` for a spare, a failed member or a journal.
    pub role: Option<u32>,
    /// The array's UUID.
    pub array: String,
    /// The size of the array in bytes, if all members have the length of this one.
    pub array_bytes: u64,
    /// The number of updates of the superblocks. A member whose number is smaller than that of the
    /// others is no longer part of the array.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub events: u64,
    /// Whether the level, the layout, the chunk or the number of members is being changed. The
    /// other fields then state the new values, which hold for a part of the data.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_reshaping: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// An md array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// The level.
    pub level: RaidLevel,
    /// The layout, as md writes it.
    pub layout: u32,
    /// The size of a chunk in bytes; 0 if there are no chunks.
    pub chunk_bytes: u64,
    /// The data in a full stripe in bytes; 0 if there are no stripes.
    pub stripe_bytes: u64,
    /// The nominal number of members.
    pub members: u32,
    /// The UUID.
    pub uuid: String,
}

/// A physical volume of LVM2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalVolume {
    /// The UUID.
    pub uuid: String,
    /// The volume group, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The offset of the first extent in bytes.
    pub data_start: u64,
    /// The size of an extent in bytes; 0 outside a group.
    pub extent_bytes: u64,
    /// The version of the group's metadata on this volume; 0 if it has none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sequence: u64,
    /// The latest version of the group's metadata on any volume; 0 outside a group.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub group_sequence: u64,
}

/// A logical volume of LVM2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalVolume {
    /// The volume group.
    pub group: String,
    /// The type of its first segment: `linear`, `striped`, `raid5`, `thin`; `empty` if it has none.
    pub segment: String,
    /// The size of a chunk of that segment in bytes if it is striped, else 0.
    pub chunk_bytes: u64,
    /// The data in a full stripe of that segment in bytes if it is striped, else 0.
    pub stripe_bytes: u64,
}

/// A pool of LVM2 from which thin volumes take chunks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinPool {
    /// The volume group.
    pub group: String,
    /// The size of a chunk in bytes.
    pub chunk_bytes: u64,
}

/// A LUKS header without its key slots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Luks {
    /// 1 or 2.
    pub version: u16,
    /// The size of an encrypted sector in bytes.
    pub sector_bytes: u64,
    /// The offset of the encrypted data in bytes.
    pub data_start: u64,
    /// The length of the encrypted data in bytes; `None` if it extends to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// The first byte after the key slots of LUKS1; `None` for LUKS2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_slots_end: Option<u64>,
    /// The UUID.
    pub uuid: String,
}

/// A block device that the kernel has made from others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappedDevice {
    /// The part of the kernel that made it.
    pub by: Mapper,
    /// The name of the device: `luks-home`, `mpatha`.
    pub title: String,
}

/// The parts of the kernel that make block devices from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mapper {
    /// dm-crypt.
    Crypt,
    /// dm-multipath.
    Multipath,
    /// An unknown target of device mapper.
    Mapper,
}

impl Mapper {
    /// Returns the usual name.
    pub fn name(self) -> &'static str {
        match self {
            Mapper::Crypt => "dm-crypt",
            Mapper::Multipath => "multipath",
            Mapper::Mapper => "device mapper",
        }
    }
}

/// ext2, ext3 or ext4.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ext {
    /// `ext2`, `ext3` or `ext4`, according to its features.
    pub version: String,
    /// The size of a block in bytes.
    pub block_bytes: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The first block of the first group: usually 1 with blocks of 1024 bytes, else 0.
    pub first_block: u64,
    /// The number of blocks in a group.
    pub group_blocks: u64,
    /// The number of blocks in a chunk of the array that it was made for; 0 without an array.
    pub stride_blocks: u64,
    /// The number of data blocks in a full stripe of that array; 0 without an array.
    pub stripe_blocks: u64,
}

/// XFS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xfs {
    /// The size of a block in bytes.
    pub block_bytes: u64,
    /// The number of blocks.
    pub blocks: u64,
    /// The size of a sector in bytes.
    pub sector_bytes: u64,
    /// The stripe unit in bytes; 0 if none.
    pub unit_bytes: u64,
    /// The stripe width in bytes; 0 if none.
    pub width_bytes: u64,
    /// The unit of log writes in bytes; 0 if there is none.
    pub log_unit_bytes: u64,
    /// Whether the log is internal.
    pub log_inside: bool,
    /// The number of blocks in an allocation group.
    pub group_blocks: u64,
}

/// Btrfs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Btrfs {
    /// The size of a sector, the unit of data, in bytes.
    pub sector_bytes: u64,
    /// The size of a tree node in bytes.
    pub node_bytes: u64,
    /// The size of the file system on this device, in bytes.
    pub device_bytes: u64,
    /// The number of devices.
    pub devices: u64,
    /// The UUID of the file system.
    pub uuid: String,
}

/// A member of a ZFS pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zfs {
    /// The binary logarithm of the smallest write in bytes; `None` if the label does not state it.
    pub ashift: Option<u32>,
    /// `disk`, `mirror`, `raidz`.
    pub vdev: String,
    /// The offset of the data in bytes, after two labels and the boot area.
    pub data_start: u64,
}

/// Swap space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// The size of a page in bytes.
    pub page_bytes: u64,
    /// The number of pages.
    pub pages: u64,
}

/// Content that is not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "unknown", content = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Unknown {
    /// The format is known by name only.
    Named(String),
    /// An image of a disk in this format, such as qcow2. The disk in it is not examined.
    Container(String),
    /// The start, the end, and samples between them hold only zeros.
    Blank,
    /// There is data, but no header at the start.
    Headless {
        /// The offset of the first byte of data that was found.
        byte: u64,
        /// A known format that begins somewhere else, and where.
        found: Option<String>,
    },
    /// The format is not known.
    Nameless,
    /// It lies on something that is not available, or that only the kernel can open.
    Elsewhere(String),
    /// It cannot be read, for the given reason.
    Unreadable(String),
    /// The header names a format and contradicts it, for the given reason.
    Damaged(String),
    /// It is left from an earlier use of the drive.
    Remnant(Remnant),
}

impl Unknown {
    /// Returns a noun phrase for the content; `None` if it is blank.
    pub fn noun_phrase(&self) -> Option<String> {
        Some(match self {
            Unknown::Named(name) => name.clone(),
            Unknown::Container(format) => format!("a disk image in the format {format}"),
            Unknown::Blank => return None,
            Unknown::Headless {
                found: Some(found), ..
            } => format!("data without a partition table ({found})"),
            Unknown::Headless { byte, found: None } => {
                format!("data of an unknown format (at byte {byte})")
            }
            Unknown::Nameless => "data of an unknown format".to_owned(),
            Unknown::Elsewhere(reason) => format!("content that is not examined ({reason})"),
            Unknown::Unreadable(reason) => format!("content that cannot be read ({reason})"),
            Unknown::Damaged(reason) => format!("damaged content ({reason})"),
            Unknown::Remnant(remnant) => format!("{} from an earlier use", remnant.what),
        })
    }

    /// Returns whether it belongs to one of this project's volumes.
    pub fn is_traxtent_volume(&self) -> bool {
        matches!(self, Unknown::Named(name) if [TRAXTENT_MEMBER, TRAXTENT_REPLICAS].contains(&name.as_str()))
    }
}
