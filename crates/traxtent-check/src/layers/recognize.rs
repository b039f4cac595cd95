//! Recognition of the format of some bytes.

use super::error::LayerError;
use super::lvm::{self, Group};
use super::mbr::Partitioned;
use super::{
    Btrfs, Ext, Luks, MdMember, PhysicalVolume, Swap, Unknown, Xfs, Zfs, btrfs, ext, gpt, luks,
    mbr, md, named, swap, xfs, zfs,
};
use crate::source::{Source, SourceError};

/// The content of some bytes.
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

/// The number of bytes at the start that must be zero for the content to count as blank.
const BLANK_BYTES: usize = 128 << 10;

/// Recognizes the content of `source`, whose sectors have `sector_bytes`.
///
/// Formats that wrap others are tried first, because a member of a mirrored array looks like the
/// content of the array.
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
    let table = gpt::parse(source, sector_bytes)?;
    if let Some(member) = md::parse(source)?
        && !is_of_last_partition(&member, table.is_some(), source.bytes())
    {
        return Ok(Content::MdMember(member));
    }
    if let Some(table) = table {
        return Ok(Content::Table(table));
    }
    if let Some((volume, group)) = lvm::parse(source)? {
        return Ok(Content::PhysicalVolume(volume, group));
    }
    if let Some(luks) = luks::parse(source)? {
        return Ok(Content::Luks(luks));
    }
    if let Some(xfs) = xfs::parse(source)? {
        return Ok(Content::Xfs(xfs));
    }
    if let Some(btrfs) = btrfs::parse(source)? {
        return Ok(Content::Btrfs(btrfs));
    }
    if let Some(ext) = ext::parse(source)? {
        return Ok(Content::Ext(ext));
    }
    if let Some(swap) = swap::parse(source)? {
        return Ok(Content::Swap(swap));
    }
    if let Some(zfs) = zfs::parse(source)? {
        return Ok(Content::Zfs(zfs));
    }
    let name = named::parse(source)?;
    // An image of a CD may begin with a table for other drives.
    if let Some(table) = mbr::parse(source, sector_bytes)?
        && name.is_none_or(|name| name == "ISO 9660")
    {
        return Ok(Content::Table(table));
    }
    Ok(Content::Unknown(match name {
        Some(name) => Unknown::Named(name.to_owned()),
        None if is_blank(source)? => Unknown::Blank,
        None => Unknown::Nameless,
    }))
}

/// A superblock of version 0.90 does not state its position, so that of a last partition looks like
/// the drive's own.
fn is_of_last_partition(member: &MdMember, has_table: bool, bytes: u64) -> bool {
    has_table && member.version == "0.90" && member.used_bytes < bytes - bytes / 1024
}

fn is_blank(source: &dyn Source) -> Result<bool, SourceError> {
    let start = source.read_up_to(0, BLANK_BYTES)?;
    Ok(!start.is_empty() && start.iter().all(|&byte| byte == 0))
}
