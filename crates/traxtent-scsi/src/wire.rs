//! The encoding of structures as bytes, with big-endian numbers and without padding.

use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

pub(super) use zerocopy::IntoBytes;
pub(super) use zerocopy::big_endian::{U16, U32, U64};

/// The reason why bytes are invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScsiError {
    /// The bytes end too early.
    #[error("{what}: {got} bytes; at least {needed} are needed")]
    Truncated {
        /// The structure expected.
        what: &'static str,
        /// The number of bytes needed.
        needed: usize,
        /// The number of bytes present.
        got: usize,
    },
    /// An unknown command.
    #[error("unknown operation code {opcode:#04x}")]
    UnknownOperation {
        /// The first byte of the command.
        opcode: u8,
    },
    /// A field with an invalid value.
    #[error("{what}: byte {byte} must not be {value:#x}")]
    Field {
        /// The structure expected.
        what: &'static str,
        /// The first byte of the field, counted from 0.
        byte: u16,
        /// The value.
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

/// Declares bytes that consist of fields, the least significant first.
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

/// Returns the structure at the beginning of `bytes`, and the bytes after it.
pub(super) fn decode_prefix<'a, T>(
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

/// Returns the structure at the beginning of `bytes`. If they end too early, as in responses of an
/// earlier standard, it is padded with zeros.
pub(super) fn padded<T: FromBytes + IntoBytes>(bytes: &[u8]) -> T {
    let mut value = T::new_zeroed();
    let length = bytes.len().min(size_of::<T>());
    value.as_mut_bytes()[..length].copy_from_slice(&bytes[..length]);
    value
}

/// Returns the first `length` bytes, or all of them if there are fewer.
pub(super) fn at_most(bytes: &[u8], length: usize) -> &[u8] {
    &bytes[..length.min(bytes.len())]
}

/// Converts bytes to text: NULs become blanks, other bytes that are not printable ASCII become `?`,
/// and blanks at both ends are removed.
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

/// Pads text with blanks to the width `N`, or truncates it.
pub(super) fn padded_text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [b' '; N];
    for (to, from) in bytes.iter_mut().zip(text.bytes()) {
        *to = from;
    }
    bytes
}

/// Converts a number of three bytes.
pub(super) fn u24(bytes: [u8; 3]) -> u32 {
    let [a, b, c] = bytes;
    u32::from_be_bytes([0, a, b, c])
}

/// Returns the lower three bytes of a number.
pub(super) fn to_u24(number: u32) -> [u8; 3] {
    let [_, a, b, c] = number.to_be_bytes();
    [a, b, c]
}
