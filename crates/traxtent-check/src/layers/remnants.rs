//! Signatures of earlier uses of a drive, beside its present content.
//!
//! Tools that create a format overwrite only the places of its own headers. Headers that remain in
//! other places may be mistaken for the content. [`recognize`](super::recognize()) decides in the
//! kernel's order. This module lists the other formats: beside a partition table all of them,
//! beside an md member a table, and beside other content a GPT and a superblock of md.

use super::mbr::FirstSector;
use super::{
    Content, LayerError, Partition, Remnant, Unknown, btrfs, ext, gpt, luks, lvm, mbr, md, named,
    swap, xfs, zfs,
};
use crate::source::Source;

/// A format: its name, its names in libblkid, and the offset of its signature.
type Format = (&'static str, &'static str, u64);

/// Returns the remnants on a drive with this content. Returns no remnants if one of the formats
/// cannot be read.
pub(crate) fn remnants(source: &dyn Source, sector_bytes: u64, content: &Content) -> Vec<Unknown> {
    find(source, sector_bytes, content).unwrap_or_default()
}

fn find(
    source: &dyn Source,
    sector_bytes: u64,
    content: &Content,
) -> Result<Vec<Unknown>, LayerError> {
    match content {
        Content::Unknown(
            Unknown::Unreadable(_) | Unknown::Elsewhere(_) | Unknown::Container(_),
        ) => Ok(Vec::new()),
        Content::Table((table, partitions)) => {
            let is_mbr = table.scheme == super::Scheme::Mbr;
            let mut found: Vec<Unknown> = formats_present(source)?
                .into_iter()
                .filter(|(_, _, at)| !is_covered(*at, partitions, table.sector_bytes))
                .map(|format| remnant(format, true))
                .collect();
            if is_mbr && gpt::parse(source, sector_bytes)?.is_some() {
                found.push(remnant(("a GPT", "gpt", 0), true));
            }
            if named::parse(source)? == Some(named::ISO_9660) {
                found.push(Unknown::Named(named::ISO_9660.to_owned()));
            }
            Ok(found)
        }
        Content::MdMember(member) => {
            // In other versions, the array begins where the drive does, and holds the table.
            let is_at_start = matches!(member.version.as_str(), "1.1" | "1.2");
            let has_table = mbr::first_sector(source)? != FirstSector::NoTable;
            let is_remnant = is_at_start && has_table;
            Ok(is_remnant
                .then(|| remnant(("a partition table", "dos,PMBR,gpt", 0), true))
                .into_iter()
                .collect())
        }
        _ => {
            let is_protected = matches!(
                mbr::first_sector(source)?,
                FirstSector::Protective | FirstSector::Hybrid
            );
            let has_gpt = gpt::parse(source, sector_bytes)?.is_some();
            let table = has_gpt.then(|| remnant(("a GPT", "gpt", 0), is_protected));
            // A superblock of md takes precedence over such content unless it is a remnant.
            let superblock = superblock(source)?.map(|format| remnant(format, true));
            Ok(table.into_iter().chain(superblock).collect())
        }
    }
}

fn remnant((what, blkid_type, _): Format, is_ambiguous: bool) -> Unknown {
    Unknown::Remnant(Remnant {
        what: what.to_owned(),
        blkid_type: blkid_type.to_owned(),
        is_ambiguous,
    })
}

/// Returns the formats other than partition tables whose signatures are present.
fn formats_present(source: &dyn Source) -> Result<Vec<Format>, LayerError> {
    let mut found: Vec<Format> = superblock(source)?.into_iter().collect();
    let mut add = |is_there: bool, format: Format| found.extend(is_there.then_some(format));
    add(
        lvm::parse(source)?.is_some(),
        ("a label of LVM", "LVM2_member", 512),
    );
    add(luks::parse(source)?.is_some(), ("LUKS", "crypto_LUKS", 0));
    add(xfs::parse(source)?.is_some(), ("XFS", "xfs", 0));
    add(
        btrfs::parse(source)?.is_some(),
        ("Btrfs", "btrfs", 64 << 10),
    );
    add(
        ext::parse(source)?.is_some(),
        ("ext2, 3 or 4", "ext2,ext3,ext4", 1024),
    );
    add(swap::parse(source)?.is_some(), ("swap space", "swap", 4086));
    // Labels of a drive's last partition may look like those at the end of the drive.
    add(
        zfs::is_at_start(source)?,
        ("a label of ZFS", "zfs_member", 16 << 10),
    );
    Ok(found)
}

/// Returns the superblock of md that is present, if it belongs to the whole drive.
fn superblock(source: &dyn Source) -> Result<Option<Format>, LayerError> {
    const WHAT: &str = "a superblock of md";
    const BLKID_TYPE: &str = "linux_raid_member";
    Ok(
        md::parse(source)?.and_then(|member| match member.version.as_str() {
            // A superblock of version 0.90 does not state its position. It may be that of the last
            // partition.
            "0.90" => (member.used_bytes >= source.bytes() - source.bytes() / 1024).then_some((
                WHAT,
                BLKID_TYPE,
                member.data_bytes,
            )),
            // A superblock of version 1.0 states its position on the whole drive, so it belongs to
            // no partition, even if one extends to it.
            "1.0" => Some((
                "a superblock of md, version 1.0, at the end",
                BLKID_TYPE,
                source.bytes(),
            )),
            _ => Some((WHAT, BLKID_TYPE, member.data_start + member.data_bytes)),
        }),
    )
}

/// Returns whether a byte lies in a partition.
fn is_covered(at: u64, partitions: &[Partition], sector_bytes: u64) -> bool {
    partitions.iter().any(|partition| {
        let start = partition.first_sector.saturating_mul(sector_bytes);
        let bytes = partition.sectors.saturating_mul(sector_bytes);
        (start..start.saturating_add(bytes)).contains(&at)
    })
}
