//! Disk images of virtual machines in a format of their own. The bytes of the disk are in other
//! places than their addresses say, or the image is longer than the disk.
//!
//! Sources: docs/interop/qcow2.txt and block/{vdi,vmdk,vhdx,vpc}.c of QEMU; MS-VHDX; Virtual Hard
//! Disk Image Format Specification 1.0.

use super::error::Parsed;
use super::fields::header;
use crate::source::Source;

/// The length of the footer of VHD.
const VHD_FOOTER_BYTES: u64 = 512;

/// The signature of VHD: at the end of every image, and also at the start of a dynamic one.
const VHD: &[u8] = b"conectix";

/// A name, the offset of the signature, and the signature.
type Signature = (&'static str, u64, &'static [u8]);

const SIGNATURES: &[Signature] = &[
    ("qcow2", 0, b"QFI\xfb"),
    ("VDI", 0x40, &0xbeda_107f_u32.to_le_bytes()),
    ("VMDK", 0, b"KDMV"),
    ("VMDK", 0, b"# Disk DescriptorFile"),
    ("VHDX", 0, b"vhdxfile"),
    ("VHD", 0, VHD),
];

/// Returns the name of the image format with a matching signature.
///
/// # Errors
/// Returns an error if the bytes cannot be read.
pub fn parse(source: &dyn Source) -> Parsed<&'static str> {
    let footer = source.bytes().checked_sub(VHD_FOOTER_BYTES);
    let footer = footer.map(|at| ("VHD", at, VHD));
    for (name, at, signature) in SIGNATURES.iter().copied().chain(footer) {
        if header(source, at, signature.len())?.as_deref() == Some(signature) {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is each signature recognized in its place, but not one byte after it? Is that of VHD
    /// recognized in the last 512 bytes, but not in the 512 bytes before?
    #[test]
    fn signatures() {
        let with = |at: usize, signature: &[u8]| {
            let mut bytes = vec![0; 1 << 20];
            bytes[at..at + signature.len()].copy_from_slice(signature);
            parse(&bytes).unwrap()
        };
        for (name, at, signature) in SIGNATURES {
            assert_eq!(with(*at as usize, signature), Some(*name));
            assert_eq!(with(*at as usize + 1, signature), None);
        }
        assert_eq!(with((1 << 20) - 512, VHD), Some("VHD"));
        assert_eq!(with((1 << 20) - 1024, VHD), None);
        assert_eq!(parse(&Vec::new()).unwrap(), None);
    }
}
