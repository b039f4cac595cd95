//! Big-endian numbers and strings in a slice of bytes.

/// A slice that is read from its beginning. A method that reads returns `None` if too few bytes are
/// left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes(bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    pub(super) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a length of 32 bits and the string after it. The inner value is `None` if the
    /// string is not UTF-8.
    pub(super) fn string(&mut self) -> Option<Option<&'a str>> {
        let count = self.u32()?;
        let bytes = self.take(usize::try_from(count).ok()?)?;
        Some(std::str::from_utf8(bytes).ok())
    }
}
