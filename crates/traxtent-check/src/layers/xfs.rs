//! The superblock of XFS.
//!
//! Source: struct xfs_dsb in fs/xfs/libxfs/xfs_format.h of the Linux kernel.

use super::error::{Parsed, contradiction};
use super::fields::{Fields, header, power_of_two};
use crate::layers::Xfs;
use crate::source::Source;

/// Parses a superblock.
///
/// # Errors
/// Returns an error if the bytes cannot be read, or if a size is not allowed.
pub fn parse(source: &dyn Source) -> Parsed<Xfs> {
    let Some(bytes) = header(source, 0, 512)? else {
        return Ok(None);
    };
    if !bytes.starts_with(b"XFSB") {
        return Ok(None);
    }
    let fields = Fields(&bytes);
    let block_bytes = u64::from(fields.be32(4));
    let sector_bytes = u64::from(fields.be16(102));
    if !power_of_two(block_bytes, 512..=65_536) {
        let problem = format!(
            "block size of {block_bytes} bytes is invalid; powers of two from 512 to 65536 are allowed"
        );
        return Err(contradiction("XFS", problem));
    }
    if !power_of_two(sector_bytes, 512..=32_768) || sector_bytes > block_bytes {
        let problem = format!(
            "sector size of {sector_bytes} bytes is invalid with blocks of {block_bytes} bytes"
        );
        return Err(contradiction("XFS", problem));
    }
    // A unit of 0 or 1 means that there is none.
    let log_unit = u64::from(fields.be32(196));
    Ok(Some(Xfs {
        block_bytes,
        blocks: fields.be64(8),
        sector_bytes,
        unit_bytes: u64::from(fields.be32(184)) * block_bytes,
        width_bytes: u64::from(fields.be32(188)) * block_bytes,
        log_unit_bytes: if log_unit > 1 { log_unit } else { 0 },
        log_inside: fields.be64(48) != 0,
        group_blocks: u64::from(fields.be32(84)),
    }))
}
