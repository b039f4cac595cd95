//! The on-device format of a log: encoding, and the checks made when it is read.
//!
//! [The parent module](super) has the table of every byte. All numbers are little-endian. All
//! checksums are CRC-32 as in Ethernet and zip.

use std::ops::Range;

use zerocopy::{FromBytes, IntoBytes};

use super::error::LogError;
use super::place::LogPlace;
use super::segments::Segment;
use super::shape::LogShape;
use super::wire::{
    CheckpointHead, ENTRY_BYTES, EntryBytes, PLACE_BYTES, PlaceBytes, SUMMARY_BYTES, SegmentBytes,
    SummaryHead, SuperblockBytes,
};
use traxtent_units::{Lbn, Sectors};

const VERSION: u32 = 1;
const SUPERBLOCK: [u8; 8] = *b"traxtlog";
const CHECKPOINT: [u8; 8] = *b"traxtcpt";
const SUMMARY: [u8; 8] = *b"traxtsum";
/// The offset of the first byte that a structure's checksum covers. The magic number and the
/// checksum itself come before it.
const COVERED: usize = 12;

/// The description of a log, written once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The ID that distinguishes this log from others that were on the device.
    pub id: u64,
    /// The LBNs of the log. The superblock is at the first.
    pub range: Range<Lbn>,
    /// The units of the log.
    pub shape: LogShape,
    /// The number of blocks.
    pub blocks: u64,
    /// The size in sectors of each of the two checkpoint regions.
    pub region_sectors: u64,
}

/// The state of a log at one point in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// The ID in the superblock.
    pub id: u64,
    /// The checkpoint's number, which increases by one. Odd ones are in the first region, even ones
    /// in the second.
    pub number: u64,
    /// The number of the opening of the log during which the checkpoint was written.
    pub epoch: u64,
    /// The number of the next chunk.
    pub sequence: u64,
    /// The LBN at which the next chunk begins.
    pub head: Lbn,
    /// The number of blocks that the user had written.
    pub clock: u64,
    /// The segment table.
    pub segments: Vec<Segment>,
    /// The place of each map page; `None` if none of its blocks was written.
    pub pages: Vec<Option<LogPlace>>,
}

/// The structure before the blocks of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The ID in the superblock.
    pub id: u64,
    /// The number of the opening of the log during which the chunk was written.
    pub epoch: u64,
    /// The chunk's number, which increases by one.
    pub sequence: u64,
    /// The LBN of the summary.
    pub at: Lbn,
    /// The LBN of the next summary.
    pub next: Lbn,
    /// The time at which the user wrote the youngest of the blocks.
    pub youngest: u64,
    /// The chunk's entries, in order.
    pub entries: Vec<Entry>,
}

/// One action of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The next block of the chunk is the new content of a block.
    Data {
        /// The block's number.
        block: u64,
        /// The CRC-32 of the block's bytes.
        crc: u32,
    },
    /// The next block of the chunk is a page of the index, for the checkpoint that follows.
    Map {
        /// The page's number.
        page: u64,
        /// The CRC-32 of the page's bytes.
        crc: u32,
    },
    /// Blocks are discarded.
    Trim {
        /// The first block.
        first: u64,
        /// The number of blocks.
        count: u32,
    },
}

impl Superblock {
    /// Returns the superblock's bytes, which fill one grain.
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

    /// Reads a superblock that is at LBN `at`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a superblock of this version, belong to another LBN,
    /// are damaged, or hold impossible values.
    pub fn decode(bytes: &[u8], at: Lbn) -> Result<Superblock, LogError> {
        let wrong = wrong(at, "a log's superblock");
        let (head, _) =
            SuperblockBytes::read_from_prefix(bytes).map_err(|_| wrong("too few bytes"))?;
        checked(bytes, SUPERBLOCK, size_of::<SuperblockBytes>()).map_err(&wrong)?;
        if head.version.get() != VERSION {
            return Err(wrong("unknown version"));
        }
        let shape = LogShape {
            sector_bytes: head.sector_bytes.get(),
            block_sectors: head.block_sectors.get(),
            grain_sectors: head.grain_sectors.get(),
        };
        let superblock = Superblock {
            id: head.id.get(),
            range: Lbn(head.first.get())..Lbn(head.end.get()),
            shape: shape
                .check()
                .map_err(|_| wrong("its sizes are impossible"))?,
            blocks: head.blocks.get(),
            region_sectors: head.region_sectors.get(),
        };
        if superblock.range.start != at {
            return Err(wrong("it belongs to another LBN"));
        }
        if superblock.fits() {
            Ok(superblock)
        } else {
            Err(wrong("its regions and blocks do not fit in its range"))
        }
    }

    /// Returns the LBN at which a checkpoint region begins.
    pub fn region(&self, which: usize) -> Lbn {
        let before = self.shape.sectors_for(1) + which as u64 * self.region_sectors;
        self.range.start + Sectors(before)
    }

    /// Returns the first LBN at which segments can begin.
    pub fn segments_from(&self) -> Lbn {
        self.region(2)
    }

    /// Returns whether regions, blocks and range are consistent. If so, later sums cannot overflow.
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
    /// Returns the size in bytes of a checkpoint with these numbers of segments and map pages.
    pub(super) fn bytes(segments: u64, pages: u64) -> u64 {
        size_of::<CheckpointHead>() as u64
            + segments * size_of::<SegmentBytes>() as u64
            + pages * PLACE_BYTES as u64
    }

    /// Returns the index of the checkpoint's region: 0 or 1.
    pub fn region(&self) -> usize {
        (self.number + 1) as usize % 2
    }

    /// Returns the checkpoint's bytes, padded to whole grains.
    pub fn encode(&self, shape: LogShape) -> Vec<u8> {
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
            put_place(&mut bytes, page.unwrap_or(LogPlace::NOWHERE));
        }
        sealed(bytes, shape)
    }

    /// Reads a checkpoint of the log that `superblock` describes, from the bytes at LBN `at`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a checkpoint, belong to another log, are damaged, or
    /// hold impossible values.
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
            return Err(wrong("a counter is impossibly large"));
        }
        if pages as u64 != superblock.shape.pages(superblock.blocks) {
            return Err(wrong(
                "its number of map pages does not match the log's number of blocks",
            ));
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
                return Err(wrong("a segment's position or size is impossible"));
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
            pages: pages.map(|bytes| place(bytes).as_written()).collect(),
        })
    }
}

impl Summary {
    /// Returns the summary's bytes, padded to whole grains.
    pub fn encode(&self, shape: LogShape) -> Vec<u8> {
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

    /// Reads the summary at LBN `at`, which is at the start of `bytes`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a summary, belong to another LBN, are damaged, or hold
    /// impossible values. An intact summary can still be obsolete: check its ID, epoch and sequence
    /// number.
    pub fn decode(bytes: &[u8], at: Lbn) -> Result<Summary, LogError> {
        let wrong = wrong(at, "a summary");
        let (head, rest) =
            SummaryHead::read_from_prefix(bytes).map_err(|_| wrong("too few bytes"))?;
        let count = head.entries.get() as usize;
        checked(bytes, SUMMARY, SUMMARY_BYTES + count * ENTRY_BYTES).map_err(&wrong)?;
        if head.at.get() != at.0 {
            return Err(wrong("it belongs to another LBN"));
        }
        if head.youngest.get() > COUNTER_MAX {
            return Err(wrong("a counter is impossibly large"));
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
                .ok_or_else(|| wrong("it has no entries, or one of unknown kind"))?,
        })
    }

    /// Returns the number of blocks that follow the summary.
    pub fn blocks(&self) -> u64 {
        let has_block = |entry: &&Entry| !matches!(entry, Entry::Trim { .. });
        self.entries.iter().filter(has_block).count() as u64
    }

    /// Returns the entries that have a block, each with the block's place.
    pub fn placed(&self, shape: LogShape) -> impl Iterator<Item = (Entry, LogPlace)> {
        let mut lbn = self.at + Sectors(shape.summary_sectors(self.entries.len() as u64));
        self.entries.iter().filter_map(move |entry| match *entry {
            Entry::Data { crc, .. } | Entry::Map { crc, .. } => {
                let place = LogPlace { lbn, crc };
                lbn += Sectors(shape.block_sectors.into());
                Some((*entry, place))
            }
            Entry::Trim { .. } => None,
        })
    }

    /// Returns the size of the whole chunk in sectors.
    pub fn chunk_sectors(&self, shape: LogShape) -> u64 {
        shape.chunk_sectors(self.entries.len() as u64, self.blocks())
    }
}

/// The largest value accepted for a counter. No counter reaches it during a device's life, so none
/// overflows.
const COUNTER_MAX: u64 = 1 << 62;

/// Recomputes a structure's checksum according to its first bytes and its counts. It is public for
/// tests in which damaged structures must pass the checksum.
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

pub(super) fn put_place(bytes: &mut Vec<u8>, place: LogPlace) {
    let place = PlaceBytes {
        lbn: place.lbn.0.into(),
        crc: place.crc.into(),
    };
    bytes.extend(place.as_bytes());
}

/// Decodes a place from exactly [`PLACE_BYTES`] bytes.
pub(super) fn place(bytes: &[u8]) -> LogPlace {
    let place = PlaceBytes::read_from_bytes(bytes).unwrap_or_else(|_| unreachable!());
    LogPlace {
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

/// Fills in the checksum, and pads with zeros to whole grains.
fn sealed(mut bytes: Vec<u8>, shape: LogShape) -> Vec<u8> {
    reseal(&mut bytes);
    let sectors = shape.sectors_for(bytes.len() as u64);
    bytes.resize(sectors as usize * shape.sector_bytes as usize, 0);
    bytes
}

/// Checks that a structure of `length` bytes is intact.
fn checked(bytes: &[u8], magic: [u8; 8], length: usize) -> Result<(), &'static str> {
    if !bytes.starts_with(&magic) {
        return Err("its magic number is missing");
    }
    let covered = bytes.get(COVERED..length).ok_or("it is truncated")?;
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
