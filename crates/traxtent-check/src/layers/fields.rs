//! Numbers and words at offsets of a header that has been read as a whole.

use crate::source::{Source, SourceError};

/// The bytes of a header. An offset beyond them is a bug in a parser, not a fault in the bytes.
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

    /// Returns the printable ASCII characters among `count` bytes, without spaces and up to the
    /// first zero byte.
    pub(super) fn word(self, at: usize, count: usize) -> String {
        let bytes = &self.0[at..at + count];
        let letters = bytes.iter().take_while(|&&byte| byte != 0);
        letters
            .filter(|byte| byte.is_ascii_graphic())
            .map(|&byte| char::from(byte))
            .collect()
    }

    /// Formats 16 bytes as a UUID.
    pub(super) fn uuid(self, at: usize) -> String {
        uuid(self.array(at))
    }

    /// Formats 16 bytes as a GUID of UEFI: its first three numbers are little-endian.
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

/// Returns `count` bytes at `offset`, or `None` if they lie beyond the end or are absent. In that
/// case there is no header.
pub(super) fn header(
    source: &dyn Source,
    offset: u64,
    count: usize,
) -> Result<Option<Vec<u8>>, SourceError> {
    match source.read(offset, count) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(SourceError::Beyond { .. } | SourceError::Absent { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns whether a number is a power of two within a range.
pub(super) fn power_of_two(number: u64, range: std::ops::RangeInclusive<u64>) -> bool {
    number.is_power_of_two() && range.contains(&number)
}
