//! Headers away from the start of a drive: backup copies, and metadata of firmware RAID at the end.
//!
//! A format whose first header is damaged can be restored from its copy. [`recognize`] does not
//! report copies, because a copy alone is often a remnant. A program that is about to overwrite a
//! drive must know about them, however. If the first header of LUKS2 or ext has been overwritten
//! with zeros, [`lost_header`] reports the loss. GPT, md and ZFS are missing here, because
//! [`recognize`] finds all their copies.
//!
//! Sources: LUKS2 On-Disk Format Specification 1.1.3, section 2.1; Documentation/filesystems/ext4
//! of the Linux kernel; fs/btrfs/disk-io.h; the list of libblkid (util-linux).
//!
//! [`recognize`]: super::recognize()

use super::LayerError;
use super::fields::{Fields, header};
use crate::source::Source;

/// The binary logarithms of the possible sizes of a LUKS2 header. The second header begins after
/// the first.
const LUKS2_HEADERS: std::ops::RangeInclusive<u32> = 14..=22;

/// The length of the binary part of a LUKS2 header.
const LUKS2_BINARY_BYTES: usize = 4096;

/// The first groups of an ext file system that hold backups of the superblock.
const EXT_GROUPS: [u64; 6] = [1, 3, 5, 7, 9, 25];

/// The binary logarithm of the largest block size of ext, in units of 1024 bytes.
const EXT_SHIFT_MAX: u32 = 6;

/// The position of a signature: its distance in bytes from the start or from the end.
#[derive(Clone, Copy)]
enum Place {
    Start(u64),
    End(u64),
}
use Place::{End, Start};

/// A description, the position of the signature, and the signature.
type HeaderCopy = (&'static str, Place, &'static [u8]);

const COPIES: &[HeaderCopy] = &[
    (
        "a copy of the superblock of Btrfs",
        Start((64 << 20) + 64),
        b"_BHRfS_M",
    ),
    (
        "a copy of the superblock of Btrfs",
        Start((256 << 30) + 64),
        b"_BHRfS_M",
    ),
    (
        "a backup of the boot sector of FAT",
        Start(6 * 512 + 0x52),
        b"FAT32   ",
    ),
    (
        "a backup of the boot sector of exFAT",
        Start(12 * 512 + 3),
        b"EXFAT   ",
    ),
    (
        "a backup of the boot sector of NTFS",
        End(512 - 3),
        b"NTFS    ",
    ),
    (
        "a copy of the superblock of F2FS",
        Start(4096 + 1024),
        &[0x10, 0x20, 0xf5, 0xf2],
    ),
    (
        "a copy of the signature of Stratis",
        Start(9 * 512 + 4),
        b"!Stra0tis\x86\xff\x02^",
    ),
    (
        "a copy of the volume header of HFS+",
        End(1024),
        b"H+\x00\x04",
    ),
    ("metadata of DDF RAID", End(512), &[0xde, 0x11, 0xde, 0x11]),
    (
        "metadata of Intel RAID",
        End(1024),
        b"Intel Raid ISM Cfg Sig.",
    ),
    ("metadata of NVIDIA RAID", End(1024), b"NVIDIA  "),
    ("metadata of LSI RAID", End(512), b"$XIDE$"),
];

/// Returns a description of the first copy of a header that is found.
///
/// # Errors
/// Returns an error if the bytes cannot be read.
pub fn copy_of_header(source: &dyn Source) -> Result<Option<&'static str>, LayerError> {
    if has_second_luks2(source)? {
        return Ok(Some("a second header of LUKS2"));
    }
    for (what, place, signature) in COPIES {
        let at = match place {
            Start(at) => Some(*at),
            End(distance) => source.bytes().checked_sub(*distance),
        };
        let Some(at) = at else { continue };
        if header(source, at, signature.len())?.as_deref() == Some(*signature) {
            return Ok(Some(what));
        }
    }
    Ok(ext_backup(source)?.map(|_| "a backup of the superblock of an ext file system"))
}

/// Returns a description of the loss of a first header if there are only zeros in its place, but a
/// copy of it is there. The description names the repair.
///
/// # Errors
/// Returns an error if the bytes cannot be read.
pub(crate) fn lost_header(source: &dyn Source) -> Result<Option<String>, LayerError> {
    let is_zero = |at, count| -> Result<bool, LayerError> {
        let bytes = header(source, at, count)?;
        Ok(bytes.is_some_and(|bytes| bytes.iter().all(|&byte| byte == 0)))
    };
    if is_zero(0, LUKS2_BINARY_BYTES)? && has_second_luks2(source)? {
        return Ok(Some(
            "the first header of LUKS2 is zero, but the second one is there (cryptsetup repair)"
                .to_owned(),
        ));
    }
    if is_zero(1024, 1024)?
        && let Some((block, block_bytes)) = ext_backup(source)?
    {
        return Ok(Some(format!(
            "the superblock of an ext file system is zero, but a backup is there (e2fsck -b {block} -B {block_bytes})"
        )));
    }
    Ok(None)
}

fn has_second_luks2(source: &dyn Source) -> Result<bool, LayerError> {
    for at in LUKS2_HEADERS.map(|power| 1 << power) {
        if header(source, at, 6)?.as_deref() == Some(b"SKUL\xba\xbe") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns the block of the first backup of an ext superblock, and the block size. The backup must
/// state its group, and the block size from which the group's position was computed.
fn ext_backup(source: &dyn Source) -> Result<Option<(u64, u64)>, LayerError> {
    for shift in 0..=EXT_SHIFT_MAX {
        let block_bytes = 1024u64 << shift;
        let first_block = u64::from(shift == 0);
        for group in EXT_GROUPS {
            let block = group * 8 * block_bytes + first_block;
            let Some(bytes) = header(source, block * block_bytes, 96)? else {
                break;
            };
            let fields = Fields(&bytes);
            if fields.le16(56) == 0xef53
                && fields.le32(24) == shift
                && u64::from(fields.le16(90)) == group
            {
                return Ok(Some((block, block_bytes)));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are copies of headers of LUKS2, FAT and ext, and metadata of DDF, found in their places? Are
    /// LUKS2 headers in other places, and ext backups that state another group, ignored?
    #[test]
    fn copies_are_found_only_in_their_places() {
        let with = |at: usize, signature: &[u8]| {
            let mut bytes = vec![0; 9 << 20];
            bytes[at..at + signature.len()].copy_from_slice(signature);
            copy_of_header(&bytes).unwrap()
        };
        let end = 9 << 20;
        assert_eq!(
            with(0x4000, b"SKUL\xba\xbe"),
            Some("a second header of LUKS2")
        );
        assert_eq!(
            with(0x40_0000, b"SKUL\xba\xbe"),
            Some("a second header of LUKS2")
        );
        assert_eq!(with(0x5000, b"SKUL\xba\xbe"), None);
        let fat = Some("a backup of the boot sector of FAT");
        assert_eq!(with(6 * 512 + 0x52, b"FAT32   "), fat);
        let ddf = Some("metadata of DDF RAID");
        assert_eq!(with(end - 512, &[0xde, 0x11, 0xde, 0x11]), ddf);
        let mut ext = [0; 96];
        ext[56..58].copy_from_slice(&[0x53, 0xef]);
        ext[90] = 1;
        let backup = Some("a backup of the superblock of an ext file system");
        assert_eq!(with(8193 * 1024, &ext), backup);
        ext[90] = 2;
        assert_eq!(with(8193 * 1024, &ext), None);
    }
}
