//! What is known of each kind of layer. Fields are what the header on the media says, converted to bytes.

use serde::{Deserialize, Serialize};

/// A drive, or an image taken for one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Disk {
    /// Vendor and model, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Bytes of the unit of addressing.
    pub logical_bytes: u64,
    /// Bytes of the unit of the media.
    pub physical_bytes: u64,
    /// Who says so.
    pub physical_by: Authority,
    /// The first byte that begins a physical sector (7 × 512 on drives whose jumper shifts the numbering).
    pub first_aligned_byte: u64,
    /// Bytes that are erased at once, on solid-state drives, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erase_bytes: Option<u64>,
    /// Bytes of a chunk, if the drive is an array behind a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_bytes: Option<u64>,
    /// Bytes of a full stripe of data, if the drive is an array behind a controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stripe_bytes: Option<u64>,
    /// Its length, if it is stated: an image may be longer than the drive that it is for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_bytes: Option<u64>,
    /// What data lie on.
    pub medium: Medium,
    /// Whether it is reached by USB.
    #[serde(default)]
    pub usb: bool,
    /// Whether it is an image: the kernel has nothing to say of it.
    #[serde(default)]
    pub image: bool,
}

/// Who says how large a physical sector is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Authority {
    /// Who asked.
    Stated,
    /// The drive's own times.
    Measured,
    /// The list of drives that do not say what they are.
    Quirk,
    /// The kernel, which has it from the drive.
    Kernel,
    /// Nobody: most drives of today have 4096 bytes.
    Assumed,
}

/// What a drive keeps data on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Medium {
    /// Nobody says.
    Unknown,
    /// Turning disks.
    Rotating,
    /// Turning disks with shingled tracks, which the drive hides.
    ShingledHidden,
    /// Turning disks with shingled tracks, which the drive shows and does without.
    ShingledHostAware,
    /// Turning disks with shingled tracks; whoever writes has to obey.
    ShingledHostManaged,
    /// Flash.
    SolidState,
    /// Flash whose zones whoever writes has to fill in order.
    SolidStateZoned,
}

impl Medium {
    /// Whether it has no tracks.
    pub fn is_flash(self) -> bool {
        matches!(self, Medium::SolidState | Medium::SolidStateZoned)
    }
}

/// A partition table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// Which format.
    pub scheme: Scheme,
    /// Bytes of the sectors that it counts in.
    pub sector_bytes: u64,
    /// In what it contradicts itself; a sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

/// The format of a partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Scheme {
    /// Of the PC: four entries, and a chain of further ones.
    Mbr,
    /// Of UEFI.
    Gpt,
}

impl Scheme {
    /// Its short name.
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
    /// Its number as the kernel counts.
    pub number: u32,
    /// Primary, extended, logical.
    pub role: PartitionRole,
    /// The type as the table writes it: `83`, or a GUID.
    pub type_code: String,
    /// Its first sector, in sectors of the table.
    pub first_sector: u64,
    /// How many sectors.
    pub sectors: u64,
}

/// What a partition is in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PartitionRole {
    /// An entry of the table.
    Primary,
    /// A container of logical partitions; it holds one-sector tables, so its alignment does not matter (paper A).
    Extended,
    /// In the extended one.
    Logical,
}

/// A level of RAID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RaidLevel {
    /// One behind another.
    Linear,
    /// Striped.
    Raid0,
    /// Mirrored.
    Raid1,
    /// Striped, parity on one member.
    Raid4,
    /// Striped, parity on each member in turn.
    Raid5,
    /// Striped, two parities.
    Raid6,
    /// Striped and mirrored.
    Raid10,
    /// Several paths, or something else that has no chunks.
    Other,
}

impl RaidLevel {
    /// Its usual name.
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
    /// Bytes of a chunk; 0 where there are none.
    pub chunk_bytes: u64,
    /// Where its data begin.
    pub data_start: u64,
    /// How many bytes it has for data.
    pub data_bytes: u64,
    /// How many of them the array uses.
    pub used_bytes: u64,
    /// How many members the array has.
    pub members: u32,
    /// Its position among them; none for a spare.
    pub role: Option<u32>,
    /// The array's UUID.
    pub array: String,
    /// Bytes of the array.
    pub array_bytes: u64,
}

/// An md array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Array {
    /// The level.
    pub level: RaidLevel,
    /// The layout, as md writes it.
    pub layout: u32,
    /// Bytes of a chunk; 0 where there are none.
    pub chunk_bytes: u64,
    /// Bytes of data in a full stripe; 0 where there are no stripes.
    pub stripe_bytes: u64,
    /// How many members it should have.
    pub members: u32,
    /// The UUID.
    pub uuid: String,
}

/// A physical volume of LVM2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhysicalVolume {
    /// Its UUID.
    pub uuid: String,
    /// The volume group, if it is in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Where its first extent begins.
    pub data_start: u64,
    /// Bytes of an extent; 0 outside a group.
    pub extent_bytes: u64,
}

/// A logical volume of LVM2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogicalVolume {
    /// The volume group.
    pub group: String,
    /// The type of its segments: `linear`, `striped`, `raid5`, `thin`.
    pub segment: String,
    /// Bytes of a chunk, where it is striped; else 0.
    pub chunk_bytes: u64,
    /// Bytes of data in a full stripe, where it is striped; else 0.
    pub stripe_bytes: u64,
}

/// A pool of LVM2 that thin volumes take chunks from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThinPool {
    /// The volume group.
    pub group: String,
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
}

/// A header of LUKS. Nothing of its key slots is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Luks {
    /// 1 or 2.
    pub version: u16,
    /// Bytes of a sector that is encrypted at once.
    pub sector_bytes: u64,
    /// Where the encrypted data begin.
    pub data_start: u64,
    /// How many bytes of them, unless they go to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_bytes: Option<u64>,
    /// The UUID.
    pub uuid: String,
}

/// A block device that the kernel has made of others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opened {
    /// By what.
    pub by: Opener,
    /// The name that it was given: `luks-home`, `mpatha`.
    pub title: String,
}

/// What makes block devices of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Opener {
    /// dm-crypt.
    Crypt,
    /// dm-multipath.
    Multipath,
    /// A target of device mapper that is not known.
    Mapper,
}

impl Opener {
    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Opener::Crypt => "dm-crypt",
            Opener::Multipath => "multipath",
            Opener::Mapper => "device mapper",
        }
    }
}

/// ext2, ext3 or ext4.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ext {
    /// `ext2`, `ext3` or `ext4`, by its features.
    pub version: String,
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How many blocks.
    pub blocks: u64,
    /// The first block of the first group: 1 with blocks of 1024 bytes, else 0.
    pub first_block: u64,
    /// Blocks of a group.
    pub group_blocks: u64,
    /// Blocks of a chunk of the array that it was made for; 0 if of none.
    pub stride_blocks: u64,
    /// Blocks of data in a full stripe of that array; 0 if of none.
    pub stripe_blocks: u64,
}

/// XFS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Xfs {
    /// Bytes of a block.
    pub block_bytes: u64,
    /// How many blocks.
    pub blocks: u64,
    /// Bytes of a sector.
    pub sector_bytes: u64,
    /// Bytes of a stripe unit; 0 if of none.
    pub unit_bytes: u64,
    /// Bytes of a stripe's width; 0 if of none.
    pub width_bytes: u64,
    /// Bytes that the log is written in; 0 if in sectors.
    pub log_unit_bytes: u64,
    /// Whether the log is inside.
    pub log_inside: bool,
    /// Blocks of an allocation group.
    pub group_blocks: u64,
}

/// Btrfs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Btrfs {
    /// Bytes of a sector, its unit of data.
    pub sector_bytes: u64,
    /// Bytes of a node of its trees.
    pub node_bytes: u64,
    /// Bytes on this device.
    pub device_bytes: u64,
    /// How many devices it has.
    pub devices: u64,
    /// The UUID of the file system.
    pub uuid: String,
}

/// A member of a ZFS pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zfs {
    /// The binary logarithm of the least that is written; none if no label says.
    pub ashift: Option<u32>,
    /// `disk`, `mirror`, `raidz`.
    pub vdev: String,
    /// Where its data begin: behind two labels and the boot area.
    pub data_start: u64,
}

/// Swap space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// How many pages.
    pub pages: u64,
}

/// Something that is not checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "unknown", content = "what", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Unknown {
    /// Its format has a name.
    Named(String),
    /// Nothing but zeros where headers would be.
    Blank,
    /// Nobody knows.
    Nameless,
    /// It lies on something that has not been given, or that only the kernel can open.
    Elsewhere(String),
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// It says what it is, and cannot be that, for this reason.
    Damaged(String),
}
