//! The bytes of a log on its device: what is written, and what is believed when it is read.
//!
//! The table of every byte is in [the module above](super). All numbers are least significant byte
//! first; all checksums are CRC-32 as in Ethernet and zip.

use std::ops::Range;

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::error::LogError;
use super::index::Place;
use super::segments::Segment;
use super::shape::Shape;
use crate::units::{Lbn, Sectors};

/// Bytes of a summary's head.
pub(super) const SUMMARY_BYTES: usize = size_of::<SummaryHead>();
/// Bytes of an entry of a summary.
pub(super) const ENTRY_BYTES: usize = size_of::<EntryBytes>();
/// Bytes of a place in a map page or checkpoint.
pub(super) const PLACE_BYTES: usize = size_of::<PlaceBytes>();

const VERSION: u32 = 1;
const SUPERBLOCK: [u8; 8] = *b"traxtlog";
const CHECKPOINT: [u8; 8] = *b"traxtcpt";
const SUMMARY: [u8; 8] = *b"traxtsum";
/// Where a structure begins that its checksum covers: behind magic and checksum.
const COVERED: usize = 12;

macro_rules! bytes {
    ($(struct $name:ident { $($field:ident: $kind:ty),+ $(,)? })+) => {$(
        #[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        struct $name { $($field: $kind),+ }
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

/// What a log is, written once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// Tells this log from others that were on the device.
    pub id: u64,
    /// The LBNs that the log has. The superblock is at the first.
    pub range: Range<Lbn>,
    /// The units.
    pub shape: Shape,
    /// How many blocks there are.
    pub blocks: u64,
    /// Sectors of each of the two checkpoint regions.
    pub region_sectors: u64,
}

/// The state of a log at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// That of the superblock.
    pub id: u64,
    /// Ascending by one; odd ones stand in the first region, even ones in the second.
    pub number: u64,
    /// Which opening of the log this belongs to.
    pub epoch: u64,
    /// The number of the next chunk.
    pub sequence: u64,
    /// Where the next chunk begins.
    pub head: Lbn,
    /// Blocks that the user had written.
    pub clock: u64,
    /// The segment table.
    pub segments: Vec<Segment>,
    /// Where each map page lies; nothing, where none of its blocks was written.
    pub pages: Vec<Option<Place>>,
}

/// What stands before the blocks of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// That of the superblock.
    pub id: u64,
    /// That of the checkpoint before.
    pub epoch: u64,
    /// Ascending by one.
    pub sequence: u64,
    /// Where the summary stands.
    pub at: Lbn,
    /// Where the next one will stand.
    pub next: Lbn,
    /// When the youngest of the blocks was written by the user.
    pub youngest: u64,
    /// What the chunk does, in order.
    pub entries: Vec<Entry>,
}

/// What a chunk does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The next block of the chunk is the new content of a block.
    Data {
        /// Its number.
        block: u64,
        /// CRC-32 of its bytes.
        crc: u32,
    },
    /// The next block of the chunk is a page of the index, for the checkpoint that follows.
    Map {
        /// Its number.
        page: u64,
        /// CRC-32 of its bytes.
        crc: u32,
    },
    /// Blocks are given up.
    Trim {
        /// The first.
        first: u64,
        /// How many.
        count: u32,
    },
}

impl Superblock {
    /// The superblock's bytes, a grain of them.
    pub fn encode(&self) -> Vec<u8> {
        let head = SuperblockBytes {
            magic: SUPERBLOCK,
            crc: 0.into(),
            version: VERSION.into(),
            id: self.id.into(),
            first: self.range.start.0.into(),
            end: self.range.end.0.into(),
            blocks: self.blocks.into(),
            region_sectors: self.region_sectors.into(),
            sector_bytes: self.shape.sector_bytes.into(),
            block_sectors: self.shape.block_sectors.into(),
            grain_sectors: self.shape.grain_sectors.into(),
        };
        sealed(head.as_bytes().to_vec(), self.shape)
    }

    /// Reads a superblock that stands at LBN `at`.
    ///
    /// # Errors
    /// If it is none, or names what cannot be.
    pub fn decode(bytes: &[u8], at: Lbn) -> Result<Superblock, LogError> {
        let wrong = wrong(at, "a log's superblock");
        let (head, _) =
            SuperblockBytes::read_from_prefix(bytes).map_err(|_| wrong("too few bytes"))?;
        checked(bytes, SUPERBLOCK, size_of::<SuperblockBytes>()).map_err(&wrong)?;
        if head.version.get() != VERSION {
            return Err(wrong("a version that is not known"));
        }
        let shape = Shape {
            sector_bytes: head.sector_bytes.get(),
            block_sectors: head.block_sectors.get(),
            grain_sectors: head.grain_sectors.get(),
        };
        let superblock = Superblock {
            id: head.id.get(),
            range: Lbn(head.first.get())..Lbn(head.end.get()),
            shape: shape.check().map_err(|_| wrong("impossible sizes"))?,
            blocks: head.blocks.get(),
            region_sectors: head.region_sectors.get(),
        };
        if superblock.range.start != at {
            return Err(wrong("it belongs elsewhere"));
        }
        if superblock.fits() {
            Ok(superblock)
        } else {
            Err(wrong("more than the range holds"))
        }
    }

    /// Where a checkpoint region begins.
    pub fn region(&self, which: usize) -> Lbn {
        let before = self.shape.sectors_for(1) + which as u64 * self.region_sectors;
        self.range.start + Sectors(before)
    }

    /// Where the segments may begin.
    pub fn segments_from(&self) -> Lbn {
        self.region(2)
    }

    /// Whether regions, blocks and range can belong together; sums are safe from then on.
    fn fits(&self) -> bool {
        let Some(sectors) = self.range.end.0.checked_sub(self.range.start.0) else {
            return false;
        };
        let regions = self
            .region_sectors
            .checked_mul(2)
            .and_then(|both| both.checked_add(self.shape.sectors_for(1)));
        let data = self.blocks.checked_mul(self.shape.block_sectors.into());
        let pages = self
            .shape
            .pages(self.blocks)
            .checked_mul(PLACE_BYTES as u64);
        let (Some(regions), Some(data), Some(pages)) = (regions, data, pages) else {
            return false;
        };
        let Some(region_bytes) = self
            .region_sectors
            .checked_mul(self.shape.sector_bytes.into())
        else {
            return false;
        };
        regions < sectors && data <= sectors && pages <= region_bytes && self.blocks > 0
    }
}

impl Checkpoint {
    /// Bytes of a checkpoint of so many segments and map pages.
    pub(super) fn bytes(segments: u64, pages: u64) -> u64 {
        size_of::<CheckpointHead>() as u64
            + segments * size_of::<SegmentBytes>() as u64
            + pages * PLACE_BYTES as u64
    }

    /// Which of the regions it belongs to: 0 or 1.
    pub fn region(&self) -> usize {
        (self.number + 1) as usize % 2
    }

    /// The checkpoint's bytes, whole grains of them.
    pub fn encode(&self, shape: Shape) -> Vec<u8> {
        let head = CheckpointHead {
            magic: CHECKPOINT,
            crc: 0.into(),
            segments: (self.segments.len() as u32).into(),
            pages: (self.pages.len() as u32).into(),
            id: self.id.into(),
            number: self.number.into(),
            epoch: self.epoch.into(),
            sequence: self.sequence.into(),
            head: self.head.0.into(),
            clock: self.clock.into(),
        };
        let mut bytes = head.as_bytes().to_vec();
        for segment in &self.segments {
            let segment = SegmentBytes {
                first: segment.first.0.into(),
                sectors: segment.sectors.into(),
                live: segment.live.into(),
                youngest: segment.youngest.into(),
            };
            bytes.extend(segment.as_bytes());
        }
        for page in &self.pages {
            put_place(&mut bytes, page.unwrap_or(Place::NOWHERE));
        }
        sealed(bytes, shape)
    }

    /// Reads a checkpoint of the log that `superblock` describes, from the bytes at LBN `at`.
    ///
    /// # Errors
    /// If it is none, of another log, damaged, or names what cannot be.
    pub fn decode(bytes: &[u8], at: Lbn, superblock: &Superblock) -> Result<Checkpoint, LogError> {
        let wrong = wrong(at, "a checkpoint");
        let (head, rest) =
            CheckpointHead::read_from_prefix(bytes).map_err(|_| wrong("too few bytes"))?;
        let (segments, pages) = (head.segments.get() as usize, head.pages.get() as usize);
        let length = Checkpoint::bytes(segments as u64, pages as u64) as usize;
        checked(bytes, CHECKPOINT, length).map_err(&wrong)?;
        if head.id.get() != superblock.id {
            return Err(wrong("it belongs to another log"));
        }
        let counters = [&head.number, &head.epoch, &head.sequence, &head.clock];
        if counters.iter().any(|counter| counter.get() > COUNTER_MAX) {
            return Err(wrong("a counter that no log reaches"));
        }
        if pages as u64 != superblock.shape.pages(superblock.blocks) {
            return Err(wrong("pages of another count than the blocks take"));
        }
        let (lines, places) = rest.split_at(segments * size_of::<SegmentBytes>());
        let lines = lines.chunks_exact(size_of::<SegmentBytes>());
        let segments: Vec<Segment> = lines.map(segment).collect();
        let mut free_from = superblock.segments_from();
        for line in &segments {
            let grain = u64::from(superblock.shape.grain_sectors);
            let end = line.first.0.checked_add(line.sectors.into());
            let room = superblock.shape.room(line.sectors.into());
            let sound = end.is_some_and(|end| end <= superblock.range.end.0)
                && line.first >= free_from
                && line.first.0.is_multiple_of(grain)
                && (u64::from(line.live)..=u64::from(u32::MAX)).contains(&room)
                && room > 0
                && line.youngest <= COUNTER_MAX;
            if !sound {
                return Err(wrong("a segment that cannot be"));
            }
            free_from = line.end();
        }
        let pages = places.chunks_exact(PLACE_BYTES).take(pages);
        Ok(Checkpoint {
            id: head.id.get(),
            number: head.number.get(),
            epoch: head.epoch.get(),
            sequence: head.sequence.get(),
            head: Lbn(head.head.get()),
            clock: head.clock.get(),
            segments,
            pages: pages.map(|bytes| place(bytes).somewhere()).collect(),
        })
    }
}

impl Summary {
    /// The summary's bytes, whole grains of them.
    pub fn encode(&self, shape: Shape) -> Vec<u8> {
        let head = SummaryHead {
            magic: SUMMARY,
            crc: 0.into(),
            entries: (self.entries.len() as u32).into(),
            id: self.id.into(),
            epoch: self.epoch.into(),
            sequence: self.sequence.into(),
            at: self.at.0.into(),
            next: self.next.0.into(),
            youngest: self.youngest.into(),
        };
        let mut bytes = head.as_bytes().to_vec();
        for entry in &self.entries {
            let (number, kind, value) = match *entry {
                Entry::Data { block, crc } => (block, 1, crc),
                Entry::Map { page, crc } => (page, 2, crc),
                Entry::Trim { first, count } => (first, 3, count),
            };
            let entry = EntryBytes {
                number: number.into(),
                kind: kind.into(),
                value: value.into(),
            };
            bytes.extend(entry.as_bytes());
        }
        sealed(bytes, shape)
    }

    /// Reads the summary at LBN `at`, whose bytes come first in `bytes`.
    ///
    /// # Errors
    /// If it is none, or damaged. It may be one that was overtaken: look at its epoch and sequence.
    pub fn decode(bytes: &[u8], at: Lbn) -> Result<Summary, LogError> {
        let wrong = wrong(at, "a summary");
        let (head, rest) =
            SummaryHead::read_from_prefix(bytes).map_err(|_| wrong("too few bytes"))?;
        let count = head.entries.get() as usize;
        checked(bytes, SUMMARY, SUMMARY_BYTES + count * ENTRY_BYTES).map_err(&wrong)?;
        if head.at.get() != at.0 {
            return Err(wrong("it belongs elsewhere"));
        }
        if head.youngest.get() > COUNTER_MAX {
            return Err(wrong("a counter that no log reaches"));
        }
        let entries = rest.chunks_exact(ENTRY_BYTES).take(count).map(entry);
        let entries: Option<Vec<Entry>> = entries.collect();
        Ok(Summary {
            id: head.id.get(),
            epoch: head.epoch.get(),
            sequence: head.sequence.get(),
            at,
            next: Lbn(head.next.get()),
            youngest: head.youngest.get(),
            entries: entries
                .filter(|entries| !entries.is_empty())
                .ok_or_else(|| wrong("no entries, or one of no known kind"))?,
        })
    }

    /// Blocks that follow the summary.
    pub fn blocks(&self) -> u64 {
        let has_block = |entry: &&Entry| !matches!(entry, Entry::Trim { .. });
        self.entries.iter().filter(has_block).count() as u64
    }

    /// The entries that have a block, each with where it lies.
    pub fn placed(&self, shape: Shape) -> impl Iterator<Item = (Entry, Place)> {
        let mut lbn = self.at + Sectors(shape.summary_sectors(self.entries.len() as u64));
        self.entries.iter().filter_map(move |entry| match *entry {
            Entry::Data { crc, .. } | Entry::Map { crc, .. } => {
                let place = Place { lbn, crc };
                lbn += Sectors(shape.block_sectors.into());
                Some((*entry, place))
            }
            Entry::Trim { .. } => None,
        })
    }

    /// Sectors of the whole chunk.
    pub fn chunk_sectors(&self, shape: Shape) -> u64 {
        shape.chunk_sectors(self.entries.len() as u64, self.blocks())
    }
}

/// Counters stay below this for longer than any device lasts, so that none overflows.
const COUNTER_MAX: u64 = 1 << 62;

/// Sets a structure's checksum anew, as its first bytes and its counts have it: for tests that want
/// damaged structures believed.
pub fn reseal(bytes: &mut [u8]) {
    let count = |at: usize| {
        let four = bytes.get(at..at + 4).and_then(|four| four.try_into().ok());
        four.map_or(0, u32::from_le_bytes) as usize
    };
    let length = match bytes.first_chunk::<8>() {
        Some(&SUPERBLOCK) => size_of::<SuperblockBytes>(),
        Some(&CHECKPOINT) => Checkpoint::bytes(count(12) as u64, count(16) as u64) as usize,
        Some(&SUMMARY) => SUMMARY_BYTES + count(12) * ENTRY_BYTES,
        _ => return,
    };
    if let Some(covered) = bytes.get(COVERED..length) {
        let crc = crc32fast::hash(covered);
        bytes[8..COVERED].copy_from_slice(&crc.to_le_bytes());
    }
}

pub(super) fn put_place(bytes: &mut Vec<u8>, place: Place) {
    let place = PlaceBytes {
        lbn: place.lbn.0.into(),
        crc: place.crc.into(),
    };
    bytes.extend(place.as_bytes());
}

/// The place in bytes of its length.
pub(super) fn place(bytes: &[u8]) -> Place {
    let place = PlaceBytes::read_from_bytes(bytes).unwrap_or_else(|_| unreachable!());
    Place {
        lbn: Lbn(place.lbn.get()),
        crc: place.crc.get(),
    }
}

fn segment(bytes: &[u8]) -> Segment {
    let line = SegmentBytes::read_from_bytes(bytes).unwrap_or_else(|_| unreachable!());
    Segment {
        first: Lbn(line.first.get()),
        sectors: line.sectors.get(),
        live: line.live.get(),
        youngest: line.youngest.get(),
    }
}

fn entry(bytes: &[u8]) -> Option<Entry> {
    let entry = EntryBytes::read_from_bytes(bytes).unwrap_or_else(|_| unreachable!());
    let (number, value) = (entry.number.get(), entry.value.get());
    match entry.kind.get() {
        1 => Some(Entry::Data {
            block: number,
            crc: value,
        }),
        2 => Some(Entry::Map {
            page: number,
            crc: value,
        }),
        3 => Some(Entry::Trim {
            first: number,
            count: value,
        }),
        _ => None,
    }
}

/// Fills in the checksum, and zeros up to whole grains.
fn sealed(mut bytes: Vec<u8>, shape: Shape) -> Vec<u8> {
    reseal(&mut bytes);
    let sectors = shape.sectors_for(bytes.len() as u64);
    bytes.resize(sectors as usize * shape.sector_bytes as usize, 0);
    bytes
}

/// Whether a structure of `length` bytes is whole.
fn checked(bytes: &[u8], magic: [u8; 8], length: usize) -> Result<(), &'static str> {
    if !bytes.starts_with(&magic) {
        return Err("other bytes stand there");
    }
    let covered = bytes.get(COVERED..length).ok_or("it is cut short")?;
    let crc = bytes[8..COVERED].try_into().map_or(0, u32::from_le_bytes);
    if crc == crc32fast::hash(covered) {
        Ok(())
    } else {
        Err("its checksum is wrong")
    }
}

fn wrong(at: Lbn, what: &'static str) -> impl Fn(&'static str) -> LogError {
    move |problem| LogError::Format { at, what, problem }
}
