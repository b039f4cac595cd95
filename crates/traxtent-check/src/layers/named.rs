//! Formats that are recognized by their signature and not checked further.
//!
//! Sources: the list of libblkid (util-linux), magic(5); docs/reference/volume-format.md for
//! traxtent's own formats.

use super::error::Parsed;
use super::fields::header;
use crate::source::Source;

/// The name of the format of CDs.
pub(super) const ISO_9660: &str = "ISO 9660";

/// The name of a member of this project's volumes.
pub(super) const TRAXTENT_MEMBER: &str = "part of a traxtent volume";
/// The name of this project's volumes with replicas.
pub(super) const TRAXTENT_REPLICAS: &str = "a traxtent volume with replicas";

/// A name, the offset of the signature, and the signature.
type Signature = (&'static str, u64, &'static [u8]);

const SIGNATURES: &[Signature] = &[
    (TRAXTENT_MEMBER, 0, b"traxtvol"),
    (TRAXTENT_REPLICAS, 0, b"traxtcpy"),
    ("NTFS", 3, b"NTFS    "),
    ("exFAT", 3, b"EXFAT   "),
    ("FAT", 0x36, b"FAT12   "),
    ("FAT", 0x36, b"FAT16   "),
    ("FAT", 0x52, b"FAT32   "),
    ("BitLocker", 3, b"-FVE-FS-"),
    ("F2FS", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("JFS", 32_768, b"JFS1"),
    ("ReiserFS", 65_536 + 52, b"ReIsEr"),
    ("Reiser4", 65_536, b"ReIsEr4"),
    ("NILFS2", 1024, &[2, 0, 0, 0, 0, 0, 0x34, 0x34]),
    ("OCFS2", 8192, b"OCFSV2"),
    ("GFS2", 65_536, &[0x01, 0x16, 0x19, 0x70]),
    (
        "bcache",
        4096 + 24,
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba,
            0x6d, 0x81,
        ],
    ),
    (
        "bcachefs",
        4096 + 24,
        &[
            0xc6, 0x85, 0x73, 0xf6, 0x66, 0xce, 0x90, 0xa9, 0xd9, 0x6a, 0x60, 0xcf, 0x80, 0x3d,
            0xf7, 0xef,
        ],
    ),
    ("EROFS", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    ("SquashFS", 0, b"hsqs"),
    (ISO_9660, 32_769, b"CD001"),
    ("UDF", 32_769, b"NSR02"),
    ("HFS+", 1024, b"H+\x00\x04"),
    ("APFS", 32, b"NXSB"),
    ("LVM1", 0, b"HM\x01\x00"),
    ("Stratis", 512 + 4, b"!Stra0tis\x86\xff\x02^"),
    ("VDO", 0, b"dmvdo001"),
    ("Ceph BlueStore", 0, b"bluestore block device"),
    ("DDF RAID", 0, &[0xde, 0x11, 0xde, 0x11]),
    ("dm-verity", 0, b"verity\0\0"),
    ("dm-integrity", 0, b"integrt\0"),
    ("hibernation image", 4086, b"S1SUSPEND"),
];

/// Returns the name of the format with a matching signature.
///
/// # Errors
/// Returns an error if the bytes cannot be read.
pub fn parse(source: &dyn Source) -> Parsed<&'static str> {
    for (name, at, signature) in SIGNATURES {
        let found = header(source, *at, signature.len())?;
        if found.as_deref() == Some(signature) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}
