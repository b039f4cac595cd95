//! The superblock of Btrfs, and its chunks.
//!
//! Source: struct btrfs_super_block in include/uapi/linux/btrfs_tree.h of the Linux kernel.

pub mod chunks;

use super::error::{Parsed, contradiction};
use super::fields::{Fields, header, power_of_two};
use crate::layers::Btrfs;
use crate::source::Source;

/// The offset of the first superblock.
const AT: u64 = 64 << 10;

/// The offset of this device's item in the superblock.
const DEVICE_AT: usize = 201;

/// Parses a superblock.
///
/// # Errors
/// Returns an error if the bytes cannot be read, or if a size is not allowed.
pub fn parse(source: &dyn Source) -> Parsed<Btrfs> {
    let Some(bytes) = header(source, AT, 512)? else {
        return Ok(None);
    };
    if bytes[64..72] != *b"_BHRfS_M" {
        return Ok(None);
    }
    let fields = Fields(&bytes);
    let size = |name: &str, at: usize| {
        let bytes = u64::from(fields.le32(at));
        if power_of_two(bytes, 512..=65_536) {
            Ok(bytes)
        } else {
            let problem = format!(
                "{name} size of {bytes} bytes is invalid; powers of two from 512 to 65536 are allowed"
            );
            Err(contradiction("Btrfs", problem))
        }
    };
    Ok(Some(Btrfs {
        sector_bytes: size("sector", 144)?,
        node_bytes: size("node", 148)?,
        device_bytes: fields.le64(DEVICE_AT + 8),
        devices: fields.le64(136),
        uuid: fields.uuid(32),
    }))
}
