//! Numbers and words at offsets of a header that has been read whole.

use crate::source::{Source, SourceError};

/// The bytes of a header. An offset beyond them is a bug of a parser, not of the bytes.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        self.0[at..at + N].try_into().expect("N bytes were taken")
    }

    pub(super) fn le16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(super) fn le32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(super) fn le64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub(super) fn be16(self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub(super) fn be32(self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    pub(super) fn be64(self, at: usize) -> u64 {
        u64::from_be_bytes(self.array(at))
    }

    /// Printable ASCII up to the first zero.
    pub(super) fn word(self, at: usize, count: usize) -> String {
        let bytes = &self.0[at..at + count];
        let letters = bytes.iter().take_while(|&&byte| byte != 0);
        letters
            .filter(|byte| byte.is_ascii_graphic())
            .map(|&byte| char::from(byte))
            .collect()
    }

    /// 16 bytes as a UUID is written.
    pub(super) fn uuid(self, at: usize) -> String {
        uuid(self.array(at))
    }

    /// 16 bytes as a GUID of UEFI is written: its first three numbers are little-endian.
    pub(super) fn guid(self, at: usize) -> String {
        let mut bytes: [u8; 16] = self.array(at);
        bytes[0..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        uuid(bytes)
    }
}

pub(super) fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// The `count` bytes at `offset`, or nothing where they do not exist or are not here: then no header is there.
pub(super) fn header(
    source: &dyn Source,
    offset: u64,
    count: usize,
) -> Result<Option<Vec<u8>>, SourceError> {
    match source.take(offset, count) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(SourceError::Beyond { .. } | SourceError::Absent { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether a number is a power of two within a range.
pub(super) fn power_of_two(number: u64, range: std::ops::RangeInclusive<u64>) -> bool {
    number.is_power_of_two() && range.contains(&number)
}
