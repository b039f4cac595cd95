//! The records of the journal. The exact format is in docs/reference/volume-format.md.

use uuid::Uuid;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use traxtent_units::Lbn;

const MAGIC: [u8; 8] = *b"traxtjnl";
/// The offset of the first byte that the head's checksum covers.
const COVERED: usize = 12;

/// The largest size of a record's head in bytes. A record describes at most 32 stripes, with one
/// entry per data chunk and at most two for parity.
pub const HEAD_BYTES_MAX: usize = 64 << 10;

/// A record of the journal: writes that are about to be made to the members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalRecord {
    /// The volume's ID.
    pub volume: Uuid,
    /// The epoch in which the record was written.
    pub epoch: u64,
    /// The sequence number, one more than that of the preceding record.
    pub sequence: u64,
    /// The first sequence number that is not settled. The writes of all records below it are
    /// durable in place.
    pub tail: u64,
    /// The record's first sector, counted from the beginning of the journal.
    pub position: u64,
    /// The writes that the record announces.
    pub entries: Vec<RecordEntry>,
}

/// A write that a record announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordEntry {
    /// The next sectors of the record's data are to be written to this place.
    Place {
        /// The stripe to which they belong.
        stripe: u64,
        /// The member.
        member: u32,
        /// The LBN on the member.
        at: Lbn,
        /// The number of sectors.
        sectors: u32,
    },
    /// The stripe is about to be written, and its data is not in the record.
    Intent {
        /// The stripe.
        stripe: u64,
    },
}

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    crc: U32,
    entries: U32,
    volume: [u8; 16],
    epoch: U64,
    sequence: U64,
    tail: U64,
    position: U64,
    data_crc: U32,
    reserved: U32,
}

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EntryBytes {
    kind: U32,
    member: U32,
    stripe: U64,
    at: U64,
    sectors: U64,
}

/// Returns the size in sectors of a record's head with `entries` entries.
pub fn head_sectors(entries: usize, sector_bytes: usize) -> usize {
    (size_of::<Head>() + entries * size_of::<EntryBytes>()).div_ceil(sector_bytes)
}

impl JournalRecord {
    /// Returns the number of data sectors after the head.
    pub fn data_sectors(&self) -> usize {
        let sectors = self.entries.iter().map(|entry| match entry {
            RecordEntry::Place { sectors, .. } => *sectors as usize,
            RecordEntry::Intent { .. } => 0,
        });
        sectors.sum()
    }

    /// Returns the number of sectors of head and data.
    pub fn sectors(&self, sector_bytes: usize) -> usize {
        head_sectors(self.entries.len(), sector_bytes) + self.data_sectors()
    }

    /// Writes the head in front of the data, which is already in `bytes`.
    pub fn seal(&self, bytes: &mut [u8], sector_bytes: usize) {
        let (front, data) =
            bytes.split_at_mut(head_sectors(self.entries.len(), sector_bytes) * sector_bytes);
        front.fill(0);
        let mut head = Head {
            magic: MAGIC,
            crc: 0.into(),
            entries: (self.entries.len() as u32).into(),
            volume: self.volume.into_bytes(),
            epoch: self.epoch.into(),
            sequence: self.sequence.into(),
            tail: self.tail.into(),
            position: self.position.into(),
            data_crc: crc32fast::hash(data).into(),
            reserved: 0.into(),
        };
        let entries = front[size_of::<Head>()..].chunks_exact_mut(size_of::<EntryBytes>());
        for (entry, bytes) in self.entries.iter().zip(entries) {
            let entry = match *entry {
                RecordEntry::Place {
                    stripe,
                    member,
                    at,
                    sectors,
                } => EntryBytes {
                    kind: 1.into(),
                    member: member.into(),
                    stripe: stripe.into(),
                    at: at.0.into(),
                    sectors: u64::from(sectors).into(),
                },
                RecordEntry::Intent { stripe } => EntryBytes {
                    kind: 2.into(),
                    member: 0.into(),
                    stripe: stripe.into(),
                    at: 0.into(),
                    sectors: 0.into(),
                },
            };
            bytes.copy_from_slice(entry.as_bytes());
        }
        front[..size_of::<Head>()].copy_from_slice(head.as_bytes());
        head.crc = crc32fast::hash(&front[COVERED..]).into();
        front[..size_of::<Head>()].copy_from_slice(head.as_bytes());
    }

    /// Reads the head of the record at the beginning of `bytes`, and the checksum of its data.
    /// Returns `None` unless an intact head of a record of this volume, epoch and position is
    /// there.
    pub fn read_head(
        bytes: &[u8],
        position: u64,
        volume: Uuid,
        epoch: u64,
        sector_bytes: usize,
    ) -> Option<(JournalRecord, u32)> {
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        let (head, rest) = Head::read_from_prefix(bytes).ok()?;
        let entries = head.entries.get() as usize;
        let length = head_sectors(entries, sector_bytes).checked_mul(sector_bytes)?;
        let front = bytes.get(..length).filter(|_| length <= HEAD_BYTES_MAX)?;
        let is_intact = crc32fast::hash(&front[COVERED..]) == head.crc.get();
        let is_ours = head.volume == *volume.as_bytes()
            && head.epoch.get() == epoch
            && head.position.get() == position;
        if !is_intact || !is_ours {
            return None;
        }
        let list = rest.chunks_exact(size_of::<EntryBytes>()).take(entries);
        let record = JournalRecord {
            volume,
            epoch,
            sequence: head.sequence.get(),
            tail: head.tail.get(),
            position,
            entries: list.map(entry).collect::<Option<_>>()?,
        };
        Some((record, head.data_crc.get()))
    }

    /// Reads the record at the beginning of `bytes`, with its data. Returns `None` unless an intact
    /// record of this volume, epoch and position is there.
    pub fn read(
        bytes: &[u8],
        position: u64,
        volume: Uuid,
        epoch: u64,
        sector_bytes: usize,
    ) -> Option<(JournalRecord, &[u8])> {
        let (record, data_crc) =
            JournalRecord::read_head(bytes, position, volume, epoch, sector_bytes)?;
        let front = head_sectors(record.entries.len(), sector_bytes) * sector_bytes;
        let length = record.sectors(sector_bytes).checked_mul(sector_bytes)?;
        let data = bytes.get(front..length)?;
        (crc32fast::hash(data) == data_crc).then_some((record, data))
    }
}

fn entry(bytes: &[u8]) -> Option<RecordEntry> {
    let entry = EntryBytes::read_from_bytes(bytes).ok()?;
    match entry.kind.get() {
        1 => Some(RecordEntry::Place {
            stripe: entry.stripe.get(),
            member: entry.member.get(),
            at: Lbn(entry.at.get()),
            sectors: u32::try_from(entry.sectors.get()).ok()?,
        }),
        2 => Some(RecordEntry::Intent {
            stripe: entry.stripe.get(),
        }),
        _ => None,
    }
}
