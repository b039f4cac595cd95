//! The superblock of ext2, ext3 and ext4.
//!
//! Source: Documentation/filesystems/ext4/super.rst of the Linux kernel.

use super::error::{Parsed, contradiction};
use super::fields::{Fields, header};
use crate::layers::Ext;
use crate::source::Source;

/// The offset of the superblock.
const AT: u64 = 1024;

const HAS_JOURNAL: u32 = 0x4;
const IS_JOURNAL: u32 = 0x8;
const HAS_64BIT: u32 = 0x80;
/// The incompatible features of ext4: extents, 64 bit, multiple mount protection, flexible groups,
/// and later ones.
const INCOMPATIBLE_OF_4: u32 = !0x1f;
/// The read-only compatible features of ext4: huge files, group checksums, many links, large
/// inodes, and later ones.
const READ_ONLY_OF_4: u32 = !0x7;

/// Parses a superblock.
///
/// # Errors
/// Returns an error if the bytes cannot be read, if the superblock is that of an external journal,
/// or if a size or the first block is not allowed.
pub fn parse(source: &dyn Source) -> Parsed<Ext> {
    let Some(bytes) = header(source, AT, 1024)? else {
        return Ok(None);
    };
    let fields = Fields(&bytes);
    if fields.le16(56) != 0xef53 {
        return Ok(None);
    }
    let incompatible = fields.le32(96);
    if incompatible & IS_JOURNAL != 0 {
        return Err(contradiction("ext", "it is a journal, not a file system"));
    }
    let shift = fields.le32(24);
    if shift > 6 {
        let problem =
            format!("block size of 2^(10+{shift}) bytes is invalid; at most 2^16 are allowed");
        return Err(contradiction("ext", problem));
    }
    let block_bytes = 1024u64 << shift;
    let high = if incompatible & HAS_64BIT != 0 {
        u64::from(fields.le32(0x150)) << 32
    } else {
        0
    };
    let group_blocks = u64::from(fields.le32(32));
    // With clusters, the bitmap of a group has one bit per cluster, so the group has more blocks.
    let clusters = u64::from(fields.le32(36));
    if clusters == 0 || clusters > 8 * block_bytes || group_blocks < clusters {
        let problem = format!(
            "group size of {group_blocks} blocks is invalid; the bitmap has room for {}",
            8 * block_bytes
        );
        return Err(contradiction("ext", problem));
    }
    let first_block = u64::from(fields.le32(20));
    if first_block != u64::from(block_bytes == 1024) && group_blocks == clusters {
        let problem =
            format!("first block {first_block} is invalid with blocks of {block_bytes} bytes");
        return Err(contradiction("ext", problem));
    }
    Ok(Some(Ext {
        version: version(fields.le32(92), incompatible, fields.le32(100)).to_owned(),
        block_bytes,
        blocks: high | u64::from(fields.le32(4)),
        first_block,
        group_blocks,
        stride_blocks: u64::from(fields.le16(0x164)),
        stripe_blocks: u64::from(fields.le32(0x170)),
    }))
}

fn version(compatible: u32, incompatible: u32, read_only: u32) -> &'static str {
    if incompatible & INCOMPATIBLE_OF_4 != 0 || read_only & READ_ONLY_OF_4 != 0 {
        "ext4"
    } else if compatible & HAS_JOURNAL != 0 {
        "ext3"
    } else {
        "ext2"
    }
}
