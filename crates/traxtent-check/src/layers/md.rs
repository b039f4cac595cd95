//! Superblocks of Linux md: versions 0.90 and 1.0 near the end, 1.1 at the start, 1.2 at byte 4096.
//!
//! Source: include/uapi/linux/raid/md_p.h and drivers/md/md.c of the Linux kernel.

use super::error::{LayerError, Parsed, contradiction};
use super::fields::{Fields, header, uuid};
use crate::layers::{MdMember, RaidLevel};
use crate::source::Source;

const MAGIC: u32 = 0xa92b_4efc;
const SECTOR_BYTES: u64 = 512;
/// The size of the space for a superblock of version 0.90. The superblock begins at a multiple of
/// it.
const RESERVED_BYTES: u64 = 64 << 10;
/// The feature bit of an array that is being reshaped. Version 0.90 has the minor version 91 for
/// it.
const RESHAPE_ACTIVE: u32 = 1 << 2;
/// The feature bit of a RAID 0 whose layout is stated. Without it, the field has no meaning.
const RAID0_LAYOUT: u32 = 1 << 12;
/// The maximum number of members that is accepted; md supports fewer.
const MEMBERS_MAX: u32 = 4096;

/// Parses a superblock of any version.
///
/// # Errors
/// Returns an error if the bytes cannot be read, or if a superblock contradicts its format.
pub fn parse(source: &dyn Source) -> Parsed<MdMember> {
    let near_end = (source.bytes() / SECTOR_BYTES)
        .checked_sub(16)
        .map(|at| at & !7);
    let places = [(0, "1.1"), (8, "1.2")].into_iter();
    for (sector, version) in places.chain(near_end.map(|at| (at, "1.0"))) {
        if let Some(found) = version_1(source, sector, version)? {
            return Ok(Some(found));
        }
    }
    version_0(source)
}

/// Parses a superblock of version 1.
fn version_1(source: &dyn Source, sector: u64, version: &str) -> Parsed<MdMember> {
    let Some(bytes) = header(source, sector * SECTOR_BYTES, 256)? else {
        return Ok(None);
    };
    let fields = Fields(&bytes);
    // A superblock states its own position, so a copy at another position is recognized and
    // ignored.
    if fields.le32(0) != MAGIC || fields.le32(4) != 1 || fields.le64(144) != sector {
        return Ok(None);
    }
    let members = members(fields.le32(92))?;
    let level = level(fields.le32(72));
    let number = u64::from(fields.le32(160));
    // The roles of the members follow the header, with two bytes per member.
    let role = header(source, sector * SECTOR_BYTES + 256 + 2 * number, 2)?
        .filter(|_| number < u64::from(fields.le32(220)))
        .map(|bytes| u32::from(Fields(&bytes).le16(0)))
        .filter(|&role| role < members);
    let bytes = |at: usize| fields.le64(at).saturating_mul(SECTOR_BYTES);
    let chunk_bytes = chunk(level, u64::from(fields.le32(88)) * SECTOR_BYTES)?;
    let data_bytes = bytes(136);
    let used_bytes = used(bytes(80), data_bytes);
    let features = fields.le32(8);
    let layout = match level {
        RaidLevel::Raid0 if features & RAID0_LAYOUT == 0 => 0,
        _ => fields.le32(76),
    };
    Ok(Some(MdMember {
        version: version.to_owned(),
        level,
        layout,
        chunk_bytes,
        data_start: bytes(128),
        data_bytes,
        used_bytes,
        members,
        role,
        array: fields.uuid(16),
        array_bytes: array_bytes(level, layout, members, used_bytes, chunk_bytes),
        events: fields.le64(200),
        is_reshaping: features & RESHAPE_ACTIVE != 0,
    }))
}

/// Parses a little-endian superblock of version 0.90. The data begins at offset 0.
fn version_0(source: &dyn Source) -> Parsed<MdMember> {
    let Some(at) = (source.bytes() & !(RESERVED_BYTES - 1)).checked_sub(RESERVED_BYTES) else {
        return Ok(None);
    };
    let Some(bytes) = header(source, at, 4096)? else {
        return Ok(None);
    };
    let fields = Fields(&bytes);
    let word = |index: usize| fields.le32(4 * index);
    if word(0) != MAGIC || word(1) != 0 || word(2) < 90 {
        return Ok(None);
    }
    let members = members(word(10))?;
    let level = level(word(7));
    let mut array = [0; 16];
    for (part, index) in array.chunks_exact_mut(4).zip([5, 13, 14, 15]) {
        part.copy_from_slice(&word(index).to_be_bytes());
    }
    let chunk_bytes = chunk(level, u64::from(word(65)))?;
    let layout = match level {
        RaidLevel::Raid0 => 0,
        _ => word(64),
    };
    let used_bytes = used(u64::from(word(8)) * 1024, at);
    Ok(Some(MdMember {
        version: "0.90".to_owned(),
        level,
        layout,
        chunk_bytes,
        data_start: 0,
        data_bytes: at,
        used_bytes,
        members,
        // The last descriptor belongs to this member.
        role: Some(word(992 + 3)).filter(|&role| role < members),
        array: uuid(array),
        array_bytes: array_bytes(level, layout, members, used_bytes, chunk_bytes),
        events: u64::from(word(39)) | u64::from(word(40)) << 32,
        is_reshaping: word(2) >= 91,
    }))
}

/// Returns the number of bytes that the array uses on a member. A stated 0 means all of them: each
/// member of a linear or striped array may use all of its bytes, even if the members differ in
/// length.
fn used(stated: u64, data_bytes: u64) -> u64 {
    if stated == 0 {
        data_bytes
    } else {
        stated.min(data_bytes)
    }
}

fn members(count: u32) -> Result<u32, LayerError> {
    if (1..=MEMBERS_MAX).contains(&count) {
        Ok(count)
    } else {
        let problem =
            format!("an array of {count} members is invalid; 1 to {MEMBERS_MAX} are allowed");
        Err(contradiction("md", problem))
    }
}

fn level(number: u32) -> RaidLevel {
    match number as i32 {
        -1 => RaidLevel::Linear,
        0 => RaidLevel::Raid0,
        1 => RaidLevel::Raid1,
        4 => RaidLevel::Raid4,
        5 => RaidLevel::Raid5,
        6 => RaidLevel::Raid6,
        10 => RaidLevel::Raid10,
        _ => RaidLevel::Other,
    }
}

fn chunk(level: RaidLevel, bytes: u64) -> Result<u64, LayerError> {
    if !level.is_striped() {
        return Ok(0);
    }
    if bytes == 0 || !bytes.is_multiple_of(SECTOR_BYTES) || bytes > 1 << 31 {
        let problem = format!(
            "chunk size of {bytes} bytes is invalid; multiples of {SECTOR_BYTES} up to 2 GiB are allowed"
        );
        return Err(contradiction("md", problem));
    }
    Ok(bytes)
}

fn array_bytes(
    level: RaidLevel,
    layout: u32,
    members: u32,
    member_bytes: u64,
    chunk_bytes: u64,
) -> u64 {
    let whole = if chunk_bytes > 0 {
        member_bytes - member_bytes % chunk_bytes
    } else {
        member_bytes
    };
    let copies = copies(layout);
    match level {
        RaidLevel::Raid1 | RaidLevel::Other => member_bytes,
        RaidLevel::Raid10 => whole.saturating_mul(u64::from(members)) / u64::from(copies),
        _ => whole.saturating_mul(u64::from(data_members(level, layout, members))),
    }
}

/// Returns the number of bytes of a member that hold data of the array. As in the kernel, each
/// member of a linear array or a RAID 0 contributes all of its bytes.
pub fn data_bytes(member: &MdMember) -> u64 {
    match member.level {
        RaidLevel::Linear | RaidLevel::Raid0 => member.data_bytes,
        _ => member.used_bytes,
    }
}

/// Returns the number of copies of each chunk in RAID 10: near copies times far copies.
fn copies(layout: u32) -> u32 {
    (layout & 0xff).max(1) * (layout >> 8 & 0xff).max(1)
}

/// Returns the number of data chunks in a stripe of an array. For an array without stripes, returns
/// the number of members that hold different data.
pub fn data_members(level: RaidLevel, layout: u32, members: u32) -> u32 {
    match level {
        RaidLevel::Raid4 | RaidLevel::Raid5 => members.saturating_sub(1).max(1),
        RaidLevel::Raid6 => members.saturating_sub(2).max(1),
        RaidLevel::Raid10 => (members / copies(layout)).max(1),
        RaidLevel::Raid0 | RaidLevel::Linear => members,
        RaidLevel::Raid1 | RaidLevel::Other => 1,
    }
}

impl RaidLevel {
    /// Returns whether data is distributed in chunks.
    pub fn is_striped(self) -> bool {
        use RaidLevel::{Raid0, Raid4, Raid5, Raid6, Raid10};
        matches!(self, Raid0 | Raid4 | Raid5 | Raid6 | Raid10)
    }
}
