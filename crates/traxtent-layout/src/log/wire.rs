//! The structures on the device, byte by byte.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The size of a summary's head in bytes.
pub(super) const SUMMARY_BYTES: usize = size_of::<SummaryHead>();
/// The size of a summary's entry in bytes.
pub(super) const ENTRY_BYTES: usize = size_of::<EntryBytes>();
/// The size in bytes of a place in a map page or checkpoint.
pub(super) const PLACE_BYTES: usize = size_of::<PlaceBytes>();

macro_rules! bytes {
    ($(struct $name:ident { $($field:ident: $kind:ty),+ $(,)? })+) => {$(
        #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub(super) struct $name { $(pub(super) $field: $kind),+ }
    )+};
}

bytes! {
    struct SuperblockBytes {
        magic: [u8; 8],
        crc: U32,
        version: U32,
        id: U64,
        first: U64,
        end: U64,
        blocks: U64,
        region_sectors: U64,
        sector_bytes: U32,
        block_sectors: U32,
        grain_sectors: U32,
    }
    struct CheckpointHead {
        magic: [u8; 8],
        crc: U32,
        segments: U32,
        pages: U32,
        id: U64,
        number: U64,
        epoch: U64,
        sequence: U64,
        head: U64,
        clock: U64,
    }
    struct SegmentBytes {
        first: U64,
        sectors: U32,
        live: U32,
        youngest: U64,
    }
    struct PlaceBytes {
        lbn: U64,
        crc: U32,
    }
    struct SummaryHead {
        magic: [u8; 8],
        crc: U32,
        entries: U32,
        id: U64,
        epoch: U64,
        sequence: U64,
        at: U64,
        next: U64,
        youngest: U64,
    }
    struct EntryBytes {
        number: U64,
        kind: U32,
        value: U32,
    }
}
