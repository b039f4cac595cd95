//! SCSI by bytes: against bytes of others, against other programs, against itself.

mod device;
mod goldens;
mod judges;
mod round_trip;

/// Bytes from their hexadecimal text.
fn hex(text: &str) -> Vec<u8> {
    text.split_whitespace()
        .map(|byte| u8::from_str_radix(byte, 16).unwrap())
        .collect()
}
