//! Recognition of the content of a drive, a partition or a volume.

use super::data::first_data;
use super::error::LayerError;
use super::lvm::{self, Group};
use super::mbr::{FirstSector, Partitioned};
use super::{
    BootSector, Btrfs, Ext, Luks, MdMember, PhysicalVolume, Swap, Unknown, Xfs, Zfs, btrfs,
    container, ext, gpt, luks, mbr, md, named, swap, xfs, zfs,
};
use crate::source::{Source, SourceError};

/// The content of a drive, a partition or a volume.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// A partition table.
    Table(Partitioned),
    /// A member of an md array.
    MdMember(MdMember),
    /// A physical volume, and its group.
    PhysicalVolume(PhysicalVolume, Option<Group>),
    /// LUKS.
    Luks(Luks),
    /// A member of a ZFS pool.
    Zfs(Zfs),
    /// XFS.
    Xfs(Xfs),
    /// Btrfs.
    Btrfs(Btrfs),
    /// ext2, 3 or 4.
    Ext(Ext),
    /// Swap space.
    Swap(Swap),
    /// None of these.
    Unknown(Unknown),
}

impl Content {
    /// Returns the name of a known format, with its article.
    pub fn name(&self) -> Option<&str> {
        Some(match self {
            Content::Table(_) => "a partition table",
            Content::MdMember(_) => "a member of an md array",
            Content::PhysicalVolume(..) => "a physical volume of LVM",
            Content::Luks(_) => "LUKS",
            Content::Zfs(_) => "a member of a ZFS pool",
            Content::Xfs(_) => "XFS",
            Content::Btrfs(_) => "Btrfs",
            Content::Ext(_) => "an ext file system",
            Content::Swap(_) => "swap space",
            Content::Unknown(Unknown::Named(name)) => name,
            Content::Unknown(_) => return None,
        })
    }
}

/// The usual starts of a drive's first partition, in bytes: sector 63, and those of tools that
/// align partitions.
const PARTITION_STARTS: [u64; 4] = [63 * 512, 1 << 20, 2 << 20, 4 << 20];
/// The size of the block in which a file system's first bytes that are not zero are assumed.
const HEADER_BLOCK: u64 = 4096;

/// The number of bytes at the start in which a header would be.
const HEADER_BYTES: u64 = 128 << 10;

/// Recognizes the content of `source`, whose logical sectors have `sector_bytes` bytes.
///
/// Formats that wrap others are tried first: a member of a mirrored array looks like the content of
/// the array, and an image in a format such as qcow2 holds headers at wrong addresses. As in the
/// kernel, a GPT takes precedence over other content only if an MBR protects it. Otherwise it
/// counts only if nothing else is found. The same holds if only its backup is left: this is often a
/// remnant, because few formats overwrite the end of a drive.
pub fn recognize(source: &dyn Source, sector_bytes: u64) -> Content {
    attempt(source, sector_bytes).unwrap_or_else(|error| {
        let reason = error.to_string();
        Content::Unknown(match error {
            LayerError::Source(SourceError::Io { .. }) => Unknown::Unreadable(reason),
            LayerError::Source(SourceError::Absent { .. }) => Unknown::Elsewhere(reason),
            _ => Unknown::Damaged(reason),
        })
    })
}

fn attempt(source: &dyn Source, sector_bytes: u64) -> Result<Content, LayerError> {
    if let Some(name) = container::parse(source)? {
        return Ok(Content::Unknown(Unknown::Container(name.to_owned())));
    }
    let first = mbr::first_sector(source)?;
    let table = gpt::parse(source, sector_bytes)?;
    if let Some(member) = md::parse(source)?
        && !is_below_table(&member, table.as_ref(), source)?
        && !is_outgrown(&member, source, sector_bytes)?
    {
        return Ok(Content::MdMember(member));
    }
    let is_protected = matches!(first, FirstSector::Protective | FirstSector::Hybrid);
    let table = match table {
        Some((mut table, partitions)) if is_protected && !gpt::is_only_backup(&table) => {
            if first == FirstSector::Hybrid {
                table.boot_sector = BootSector::Hybrid;
            }
            return Ok(Content::Table((table, partitions)));
        }
        table => table,
    };
    let name = named::parse(source)?;
    // A CD image can also hold a partition table, so only other names mean a boot sector.
    let is_boot_sector = name.is_some_and(|name| name != named::ISO_9660);
    if first == FirstSector::Partitions
        && !is_boot_sector
        && let Some(table) = mbr::parse(source, sector_bytes)?
    {
        return Ok(Content::Table(table));
    }
    if let Some(content) = file_system_or_wrapper(source)? {
        return Ok(content);
    }
    match table {
        Some((mut table, partitions)) if !is_boot_sector => {
            if !is_protected {
                let problem = "no MBR protects it, so the kernel does not read it";
                table.damage.push(problem.to_owned());
                table.boot_sector = BootSector::Missing;
            }
            return Ok(Content::Table((table, partitions)));
        }
        _ => {}
    }
    if let Some(table) = mbr::parse(source, sector_bytes)?
        && !is_boot_sector
    {
        return Ok(Content::Table(table));
    }
    Ok(Content::Unknown(match name {
        Some(name) => Unknown::Named(name.to_owned()),
        None if source.bytes() == 0 => Unknown::Nameless,
        None => match first_data(source, 0..source.bytes())? {
            None => Unknown::Blank,
            Some(byte) => match lost_partition(source, byte) {
                None if byte < HEADER_BYTES => Unknown::Nameless,
                found => Unknown::Headless { byte, found },
            },
        },
    }))
}

/// Recognizes the other formats that are examined: LVM, LUKS, file systems and swap space.
fn file_system_or_wrapper(source: &dyn Source) -> Result<Option<Content>, LayerError> {
    if let Some((volume, group)) = lvm::parse(source)? {
        return Ok(Some(Content::PhysicalVolume(volume, group)));
    }
    if let Some(luks) = luks::parse(source)? {
        return Ok(Some(Content::Luks(luks)));
    }
    if let Some(xfs) = xfs::parse(source)? {
        return Ok(Some(Content::Xfs(xfs)));
    }
    if let Some(btrfs) = btrfs::parse(source)? {
        return Ok(Some(Content::Btrfs(btrfs)));
    }
    if let Some(ext) = ext::parse(source)? {
        return Ok(Some(Content::Ext(ext)));
    }
    if let Some(swap) = swap::parse(source)? {
        return Ok(Some(Content::Swap(swap)));
    }
    Ok(zfs::parse(source)?.map(Content::Zfs))
}

/// Returns whether an md superblock near the end belongs to a partition, not to the whole drive.
///
/// A superblock of version 0.90 does not state its position, so the superblock of the last
/// partition looks like the drive's own. A GPT whose copies are both in their places lies on the
/// drive, not in an array, because an array ends before its superblock.
fn is_below_table(
    member: &MdMember,
    table: Option<&Partitioned>,
    source: &dyn Source,
) -> Result<bool, LayerError> {
    let Some((table, _)) = table else {
        return Ok(false);
    };
    if !matches!(member.version.as_str(), "0.90" | "1.0") {
        return Ok(false);
    }
    let bytes = source.bytes();
    let is_of_last_partition = member.version == "0.90" && member.used_bytes < bytes - bytes / 1024;
    Ok(is_of_last_partition || gpt::spans(source, table.sector_bytes)?)
}

/// Returns whether an md superblock near the end is a remnant: the content at the start, which
/// would be that of the array, extends beyond the bytes that the array uses on this member, but not
/// beyond the drive. The content was therefore created on the whole drive, after the array.
fn is_outgrown(
    member: &MdMember,
    source: &dyn Source,
    sector_bytes: u64,
) -> Result<bool, LayerError> {
    // In other versions, the superblock comes before the data.
    if !matches!(member.version.as_str(), "0.90" | "1.0") {
        return Ok(false);
    }
    let end = match mbr::first_sector(source)? {
        FirstSector::Partitions => mbr::parse(source, sector_bytes)?.and_then(|(_, partitions)| {
            let ends = partitions.iter().map(|partition| {
                let end = partition.first_sector.saturating_add(partition.sectors);
                end.saturating_mul(sector_bytes)
            });
            ends.max()
        }),
        FirstSector::NoTable => match file_system_or_wrapper(source)? {
            Some(Content::Ext(ext)) => Some(ext.blocks.saturating_mul(ext.block_bytes)),
            Some(Content::Xfs(xfs)) => Some(xfs.blocks.saturating_mul(xfs.block_bytes)),
            Some(Content::Btrfs(btrfs)) => Some(btrfs.device_bytes),
            Some(Content::Swap(swap)) => Some(swap.pages.saturating_mul(swap.page_bytes)),
            _ => None,
        },
        _ => None,
    };
    Ok(end.is_some_and(|end| member.used_bytes < end && end <= source.bytes()))
}

/// Returns a description of a file system or another known format that begins at a usual start of a
/// partition, or at the first data; `None` if there is none.
fn lost_partition(source: &dyn Source, first_data: u64) -> Option<String> {
    let at_data = first_data - first_data % HEADER_BLOCK;
    let starts = PARTITION_STARTS.into_iter().chain([at_data]);
    starts
        .filter(|start| *start < source.bytes())
        .find_map(|start| {
            let content = file_system_or_wrapper(&Rest { source, start });
            let content = content.ok().flatten()?;
            let name = content.name()?;
            Some(format!("{name} begins at byte {start}"))
        })
}

/// The rest of a source.
struct Rest<'a> {
    source: &'a dyn Source,
    start: u64,
}

impl Source for Rest<'_> {
    fn bytes(&self) -> u64 {
        self.source.bytes() - self.start
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        // The sum exceeds the end of the source only if the offset exceeds that of the rest.
        self.source
            .read_at(self.start.saturating_add(offset), buffer)
    }
}
