//! SCSI byte formats, checked against published bytes, against the decoders of sg3_utils, and by
//! encoding and decoding again; and the model drive as a SCSI device.

mod device;
mod goldens;
mod judges;
mod round_trip;

/// Returns the bytes of a hexadecimal text.
fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}
