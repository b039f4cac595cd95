//! Bytes as they cross the wire: every structure has alignment 1 and numbers most significant
//! byte first.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

pub(super) use zerocopy::IntoBytes;
pub(super) use zerocopy::big_endian::{U16, U32, U64};

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScsiError {
    /// They end too early.
    #[error("{what}: {got} bytes where at least {needed} are needed")]
    Truncated {
        /// What they should be.
        what: &'static str,
        /// How many it takes.
        needed: usize,
        /// How many there are.
        got: usize,
    },
    /// A command that is not known.
    #[error("operation code {opcode:#04x} is not known")]
    UnknownOperation {
        /// Its first byte.
        opcode: u8,
    },
    /// A field has a value that it may not have.
    #[error("{what}: byte {byte} may not be {value:#x}")]
    Field {
        /// What the bytes should be.
        what: &'static str,
        /// Where the field begins, from 0.
        byte: u16,
        /// What stands there.
        value: u64,
    },
}

/// Declares structures of bytes.
macro_rules! wire {
    ($(struct $name:ident { $($field:ident: $kind:ty),+ $(,)? })+) => {$(
        #[derive(
            Clone, Copy, Debug, Default,
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
            zerocopy::Unaligned,
        )]
        #[repr(C)]
        struct $name { $($field: $kind),+ }
    )+};
}

/// Declares bytes of fields, the least significant first.
macro_rules! bits {
    ($(struct $name:ident { $($body:tt)+ })+) => {$(
        #[bitfield_struct::bitfield(u8)]
        #[derive(
            zerocopy::FromBytes, zerocopy::IntoBytes, zerocopy::Immutable, zerocopy::KnownLayout,
            zerocopy::Unaligned,
        )]
        struct $name { $($body)+ }
    )+};
}

pub(super) use {bits, wire};

/// The structure at the beginning of `bytes`, and what follows it.
pub(super) fn front<'a, T>(
    what: &'static str,
    bytes: &'a [u8],
) -> Result<(&'a T, &'a [u8]), ScsiError>
where
    T: FromBytes + KnownLayout + Immutable + Unaligned,
{
    T::ref_from_prefix(bytes).map_err(|_| ScsiError::Truncated {
        what,
        needed: size_of::<T>(),
        got: bytes.len(),
    })
}

/// The structure at the beginning of `bytes`, with zeros where they end too early, as drives of
/// an earlier standard send it.
pub(super) fn padded<T: FromBytes + IntoBytes>(bytes: &[u8]) -> T {
    let mut value = T::new_zeroed();
    let length = bytes.len().min(size_of::<T>());
    value.as_mut_bytes()[..length].copy_from_slice(&bytes[..length]);
    value
}

/// The first `length` of `bytes`, or all of them where there are fewer: a host may have asked for
/// less than there is.
pub(super) fn at_most(bytes: &[u8], length: usize) -> &[u8] {
    &bytes[..length.min(bytes.len())]
}

/// Text of a fixed width, without the blanks that fill it up.
pub(super) fn text(bytes: &[u8]) -> String {
    let text: String = bytes
        .iter()
        .map(|&b| match b {
            0 => ' ',
            b' '..=b'~' => char::from(b),
            _ => '?',
        })
        .collect();
    text.trim().to_owned()
}

/// Text filled up with blanks to the width of `N`, or cut to it.
pub(super) fn padded_text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [b' '; N];
    for (to, from) in bytes.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    bytes
}

/// A number of three bytes.
pub(super) fn u24(bytes: [u8; 3]) -> u32 {
    let [a, b, c] = bytes;
    u32::from_be_bytes([0, a, b, c])
}

/// The lower three bytes of a number.
pub(super) fn to_u24(number: u32) -> [u8; 3] {
    let [_, a, b, c] = number.to_be_bytes();
    [a, b, c]
}
