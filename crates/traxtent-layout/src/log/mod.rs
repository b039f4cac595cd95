//! A log-structured layout whose segments match tracks (paper T, section 5.5).
//!
//! A [`Log`] keeps numbered blocks. New versions are appended to segments, each of which is written
//! from start to end. An index holds the place of the newest version of each block. The segment
//! table holds a first LBN and a length for each segment, so that each can be a track
//! ([`SegmentSizing::Tracks`]); segments of one size are for comparison. A [`CleaningPolicy`]
//! chooses the segments to clean. Two checkpoint regions are used alternately. Opening a log loads
//! the newer checkpoint and rolls forward from it.
//!
//! The log does no I/O. [`Log::next_op`] returns the next operation for the device, and
//! [`Log::complete`] takes its result, one operation after another. [`Recovery`] works in the same
//! way until the log is open. Until no operation is left, calls such as [`Log::read`] and
//! [`Log::write`] return [`LogError::Busy`].
//!
//! ```
//! use traxtent_layout::log::{
//!     BlockLocation, Log, LogConfig, LogError, LogOp, Recovery, RecoveryStep,
//! };
//! use traxtent_map::TrackMap;
//!
//! /// A device in memory.
//! fn perform(device: &mut [u8], op: LogOp) -> Vec<u8> {
//!     match op {
//!         LogOp::Read { lbn, sectors } => {
//!             device[lbn.0 as usize * 512..][..sectors.0 as usize * 512].to_vec()
//!         }
//!         LogOp::Write { lbn, data } => {
//!             device[lbn.0 as usize * 512..][..data.len()].copy_from_slice(&data);
//!             Vec::new()
//!         }
//!         LogOp::Flush => Vec::new(),
//!     }
//! }
//!
//! /// Performs all pending operations. Call it after every call that can leave some.
//! fn carry_out(log: &mut Log, device: &mut [u8]) -> Result<(), LogError> {
//!     while let Some(op) = log.next_op() {
//!         log.complete(perform(device, op))?;
//!     }
//!     Ok(())
//! }
//!
//! // Forty tracks, of 200 sectors and of 180.
//! let mut tracks = "first_lbn,sectors\n".to_owned();
//! (0..20).for_each(|track| tracks += &format!("{},200\n", 200 * track));
//! (0..20).for_each(|track| tracks += &format!("{},180\n", 4000 + 180 * track));
//! let map = TrackMap::read_csv(tracks.as_bytes())?;
//! let mut device = vec![0; map.end().0 as usize * 512];
//!
//! let config = LogConfig { id: 1, blocks: 300, ..LogConfig::default() };
//! let mut log = Log::format(&map, map.first()..map.end(), &config)?;
//! carry_out(&mut log, &mut device)?;
//! log.write(7, &[42; 4096])?;
//! carry_out(&mut log, &mut device)?;
//! log.sync()?;
//! carry_out(&mut log, &mut device)?; // Data written before the sync is now durable.
//!
//! let mut step = Recovery::begin(map.first()..map.end(), 512, config.cleaning);
//! let mut log = loop {
//!     step = match step {
//!         RecoveryStep::Perform(op, recovery) => recovery.complete(perform(&mut device, op))?,
//!         RecoveryStep::Open(log) => break log,
//!     }
//! };
//! carry_out(&mut log, &mut device)?;
//! let BlockLocation::At(place) = log.read(7)? else { panic!("it was written") };
//! let block = perform(&mut device, log.op_for(place));
//! log.verify(place, &block)?;
//! assert_eq!(block, [42; 4096]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Guarantees
//! - Once the operations of a [`Log::sync`] are complete, everything written and trimmed before it
//!   survives any loss of power. This assumes that the device keeps what a flush made durable, and
//!   that a write that was not flushed leaves each of its sectors either old or new, in any order.
//! - A block that was not synced has either its old or its new content, and is always whole. If one
//!   change is found after recovery, so are all changes made before it.
//! - Recovery does not lose what an earlier, interrupted recovery found.
//! - A write or a flush that fails makes the log unusable ([`LogError::Failed`]); it must then be
//!   recovered. A segment that cannot be read is not cleaned.
//!
//! # On-device format
//! Numbers are little-endian. CRC-32 is that of Ethernet and zip. A *grain* is the unit that the
//! device writes atomically. Every structure begins at a grain, and is padded with zeros to a whole
//! number of grains.
//!
//! The range of the log holds, in this order: the superblock, two checkpoint regions, the segments.
//!
//! | superblock: byte | bytes | |
//! |---|---|---|
//! | 0 | 8 | `traxtlog` |
//! | 8 | 4 | CRC-32 of bytes 12 to 67 |
//! | 12 | 4 | version: 1 |
//! | 16 | 8 | the log's ID |
//! | 24 | 8 | LBN of the superblock |
//! | 32 | 8 | first LBN after the log |
//! | 40 | 8 | number of blocks |
//! | 48 | 8 | sectors per checkpoint region |
//! | 56 | 4 | bytes per sector |
//! | 60 | 4 | sectors per block |
//! | 64 | 4 | sectors per grain |
//!
//! | checkpoint: byte | bytes | |
//! |---|---|---|
//! | 0 | 8 | `traxtcpt` |
//! | 8 | 4 | CRC-32 of all that follows, without the padding |
//! | 12 | 4 | number of segments, s |
//! | 16 | 4 | number of map pages, p |
//! | 20 | 8 | the log's ID |
//! | 28 | 8 | number of the checkpoint; an odd one is in the first region |
//! | 36 | 8 | epoch; it increases by one at each opening of the log |
//! | 44 | 8 | sequence number of the next chunk |
//! | 52 | 8 | LBN of the next chunk |
//! | 60 | 8 | clock: the number of blocks that the user has written so far |
//! | 68 | 24 s | the segment table, ascending (see below) |
//! | 68 + 24 s | 12 p | the place of each map page (see below) |
//!
//! An entry of the segment table holds the first LBN (8 bytes), the number of sectors (4), the
//! number of live blocks (4), and the clock of its youngest block (8). The place of a map page is
//! its LBN (8) and the CRC-32 of the page (4), or 2^64 - 1 and 0 if there is none.
//!
//! A map page is a block of the log. It holds the places of as many blocks as fit: LBN, 8 bytes;
//! CRC-32 of the block, 4 bytes; or 2^64 - 1 and 0 if the block was never written or is trimmed.
//! The rest of the page is filled with ff.
//!
//! A segment holds chunks. A chunk is one write: a summary, and the blocks that it describes.
//!
//! | summary: byte | bytes | |
//! |---|---|---|
//! | 0 | 8 | `traxtsum` |
//! | 8 | 4 | CRC-32 of all that follows, without the padding and the blocks |
//! | 12 | 4 | number of entries, e; at least 1 |
//! | 16 | 8 | the log's ID |
//! | 24 | 8 | epoch |
//! | 32 | 8 | sequence number: one more than that of the preceding chunk |
//! | 40 | 8 | LBN of this summary |
//! | 48 | 8 | LBN of the next one: after this chunk, or at the beginning of a segment |
//! | 56 | 8 | clock of the youngest of the blocks |
//! | 64 | 16 e | entries: number (8), kind (4), value (4) |
//!
//! | kind | number | value | has a block in the chunk |
//! |---|---|---|---|
//! | 1 data | the block's | CRC-32 of its bytes | yes |
//! | 2 map page | the page's | CRC-32 of its bytes | yes |
//! | 3 trim | of the first block | number of blocks | no |
//!
//! Rolling forward accepts a chunk if its summary and all its blocks are intact, its ID, epoch and
//! sequence number are those expected, and the preceding chunk or the checkpoint named its LBN. Map
//! pages at the end belong to an unfinished checkpoint and are dropped.
//!
//! # Left out
//! - More than one operation at a time.
//! - An index larger than memory (16 bytes per block).
//! - Separate segments for hot and cold blocks at write time; the cleaner sorts by age.
//! - Telling a torn checkpoint from one that decayed after it was durable. In both cases the older
//!   one is used, and data synced in between may be lost with the newer one. A block whose place
//!   has been overwritten since then is detected by its checksum.

mod chunk;
mod cleaner;
mod error;
pub mod format;
mod index;
mod place;
mod recovery;
mod segments;
mod shape;
mod traffic;
mod wire;
mod writer;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

pub use cleaner::{Cleaning, CleaningPolicy};
pub use error::LogError;
pub use place::LogPlace;
pub use recovery::{Recovery, RecoveryStep};
pub use segments::{Segment, SegmentSizing};
pub use shape::LogShape;
pub use traffic::Traffic;

use chunk::OpenChunk;
use cleaner::{CleaningPass, Reserve};
use format::{Checkpoint, Entry, Superblock};
use index::Index;
use segments::SegmentTable;
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};

/// The parameters of a new log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// The ID that distinguishes the log from earlier contents of the device. Use a new one each
    /// time.
    pub id: u64,
    /// The number of blocks in the log.
    pub blocks: u64,
    /// The units of the log.
    pub shape: LogShape,
    /// The sizing of the segments.
    pub sizing: SegmentSizing,
    /// The cleaning configuration.
    pub cleaning: Cleaning,
}

impl Default for LogConfig {
    /// ID 0 and no blocks; a block size of 4 KiB on sectors of 512 bytes, and segments that are
    /// tracks.
    fn default() -> LogConfig {
        LogConfig {
            id: 0,
            blocks: 0,
            shape: LogShape {
                sector_bytes: 512,
                block_sectors: 8,
                grain_sectors: 1,
            },
            sizing: SegmentSizing::default(),
            cleaning: Cleaning::default(),
        }
    }
}

impl LogConfig {
    /// Returns the largest number of blocks that a log on this range can have, given the space that
    /// the cleaner needs.
    ///
    /// # Errors
    /// Returns an error if the map does not cover the range, or a value is out of bounds.
    pub fn most_blocks(&self, map: &TrackMap, range: Range<Lbn>) -> Result<u64, LogError> {
        let cut = self.segments(map, range.clone())?;
        let (mut fits, mut too_many) = (0, range.end.0 - range.start.0 + 1);
        while too_many - fits > 1 {
            let middle = fits.midpoint(too_many);
            match self.fit(&cut, range.clone(), middle) {
                Some(_) => fits = middle,
                None => too_many = middle,
            }
        }
        Ok(fits)
    }

    fn segments(&self, map: &TrackMap, range: Range<Lbn>) -> Result<Vec<Segment>, LogError> {
        let shape = self.shape.check()?;
        if !range.start.0.is_multiple_of(shape.grain_sectors.into()) {
            return Err(LogError::InvalidValue {
                name: "the first LBN",
                value: range.start.0,
                expected: "a multiple of grain_sectors",
            });
        }
        let cut = self.sizing.cut(map, range)?.into_iter();
        Ok(cut.filter_map(|cut| whole_grains(cut, shape)).collect())
    }

    /// Returns the position of every part of a log with `blocks` blocks; `None` if they do not fit.
    fn fit(
        &self,
        segments: &[Segment],
        range: Range<Lbn>,
        blocks: u64,
    ) -> Option<(Superblock, SegmentTable, Reserve)> {
        // Sums cannot overflow after this check.
        if blocks == 0 || blocks > range.end.0 - range.start.0 {
            return None;
        }
        let pages = self.shape.pages(blocks);
        let checkpoint = Checkpoint::bytes(segments.len() as u64, pages);
        let superblock = Superblock {
            id: self.id,
            range,
            shape: self.shape,
            blocks,
            region_sectors: self.shape.sectors_for(checkpoint),
        };
        let from = superblock.segments_from();
        let index = segments.partition_point(|segment| segment.first < from);
        let table = SegmentTable::new(segments[index..].to_vec(), self.shape);
        let reserve = Reserve::new(table.rooms(), blocks, pages, self.cleaning)?;
        Some((superblock, table, reserve))
    }
}

/// An operation for the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogOp {
    /// Read sectors.
    Read {
        /// The first LBN.
        lbn: Lbn,
        /// The number of sectors.
        sectors: Sectors,
    },
    /// Write whole sectors.
    Write {
        /// The first LBN.
        lbn: Lbn,
        /// The sectors' bytes.
        data: Vec<u8>,
    },
    /// Make all completed writes durable.
    Flush,
}

/// The result of looking up a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockLocation<'a> {
    /// The block was never written, or is trimmed. It reads as zeros.
    Nothing,
    /// The block has not been written to the device yet; these are its bytes.
    Here(&'a [u8]),
    /// The block is on the device: read it ([`Log::op_for`]) and check it ([`Log::verify`]).
    At(LogPlace),
}

/// A log. See [the module](self).
#[derive(Clone, Debug)]
pub struct Log {
    id: u64,
    shape: LogShape,
    superblock: Superblock,
    cleaning: Cleaning,
    reserve: Reserve,
    table: SegmentTable,
    index: Index,
    /// Segments that could not be read or did not hold what they should. They are not cleaned until
    /// the log is opened again.
    stuck: BTreeSet<usize>,
    head: Head,
    chunk: OpenChunk,
    /// Whether chunks were written after the last flush.
    unflushed: bool,
    clock: u64,
    /// The number of the newest checkpoint.
    number: u64,
    pass: Option<CleaningPass>,
    steps: VecDeque<(LogOp, Completion)>,
    /// The next step after the outstanding operation, and the length in bytes of the result
    /// expected of it.
    outstanding: Option<(Completion, usize)>,
    failed: bool,
    traffic: Traffic,
}

/// The position of the next chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    segment: usize,
    at: Lbn,
    epoch: u64,
    sequence: u64,
}

/// The next step of the log when an operation is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Completion {
    Nothing,
    /// Process a segment that was read for cleaning.
    Victim(usize),
    /// Record that a checkpoint is durable.
    Committed,
}

impl Log {
    /// Creates a log with an empty index and no pending operations.
    fn idle(
        superblock: Superblock,
        table: SegmentTable,
        cleaning: Cleaning,
        reserve: Reserve,
        head: Head,
    ) -> Log {
        Log {
            id: superblock.id,
            shape: superblock.shape,
            cleaning,
            reserve,
            index: Index::new(superblock.shape, superblock.blocks),
            stuck: BTreeSet::new(),
            head,
            chunk: OpenChunk::default(),
            unflushed: false,
            clock: 0,
            number: 0,
            pass: None,
            steps: VecDeque::new(),
            outstanding: None,
            failed: false,
            traffic: Traffic::default(),
            table,
            superblock,
        }
    }

    /// Creates a new, empty log on a range of a device whose tracks are those of `map`. The range's
    /// previous contents are lost once the log's operations are complete.
    ///
    /// # Errors
    /// Returns an error if the map does not cover the range, a value is out of bounds, or the range
    /// is too small for the configured number of blocks.
    pub fn format(map: &TrackMap, range: Range<Lbn>, config: &LogConfig) -> Result<Log, LogError> {
        let cut = config.segments(map, range.clone())?;
        let Some((superblock, table, reserve)) = config.fit(&cut, range.clone(), config.blocks)
        else {
            return Err(LogError::BlockCount {
                blocks: config.blocks,
                most: config.most_blocks(map, range)?,
            });
        };
        let head = Head {
            segment: 0,
            at: table.lines()[0].first,
            epoch: 0,
            sequence: 0,
        };
        let mut log = Log::idle(superblock, table, config.cleaning, reserve, head);
        log.table.release(head.segment);
        log.write_checkpoint();
        // The superblock comes last: a log exists only once it has a checkpoint.
        let data = log.superblock.encode();
        let lbn = log.superblock.range.start;
        log.issue(LogOp::Write { lbn, data }, Completion::Nothing);
        log.issue(LogOp::Flush, Completion::Nothing);
        Ok(log)
    }

    /// Writes a block. The data is durable after a [`Log::sync`].
    ///
    /// # Errors
    /// Returns an error if there is no such block, the data is not exactly one block, operations
    /// are pending, no segment can be freed, or the device failed.
    pub fn write(&mut self, block: u64, data: &[u8]) -> Result<(), LogError> {
        self.check_idle()?;
        self.check_block(block)?;
        self.check_length(data.len(), self.shape.block_bytes())?;
        self.check_room()?;
        self.clock += 1;
        self.traffic.user_blocks += 1;
        let (clock, shape) = (self.clock, self.shape);
        if !self.chunk.replace(block, data, clock, shape) {
            let crc = crc32fast::hash(data);
            self.append(Entry::Data { block, crc }, data, clock);
        }
        self.keep_room();
        Ok(())
    }

    /// Discards blocks, which then read as zeros. The change is durable after a [`Log::sync`].
    ///
    /// # Errors
    /// Returns an error if there is no such block, operations are pending, no segment can be freed,
    /// or the device failed.
    pub fn trim(&mut self, blocks: Range<u64>) -> Result<(), LogError> {
        self.check_idle()?;
        if blocks.is_empty() {
            return Ok(());
        }
        self.check_block(blocks.end - 1)?;
        let mut first = blocks.start;
        while first < blocks.end {
            self.check_room()?;
            let count = u32::try_from(blocks.end - first).unwrap_or(u32::MAX);
            let next = first + u64::from(count);
            self.append(Entry::Trim { first, count }, &[], self.clock);
            for block in first..next {
                self.move_block(block, LogPlace::NOWHERE);
            }
            first = next;
        }
        self.keep_room();
        Ok(())
    }

    /// Returns the location of a block.
    ///
    /// # Errors
    /// Returns an error if there is no such block, operations are pending, or the device failed.
    pub fn read(&self, block: u64) -> Result<BlockLocation<'_>, LogError> {
        self.check_idle()?;
        self.check_block(block)?;
        Ok(match self.chunk.find(block, self.shape) {
            Some(data) => BlockLocation::Here(data),
            None => match self.index.block(block).as_written() {
                Some(place) => BlockLocation::At(place),
                None => BlockLocation::Nothing,
            },
        })
    }

    /// Returns the operation that reads a block.
    pub fn op_for(&self, place: LogPlace) -> LogOp {
        LogOp::Read {
            lbn: place.lbn,
            sectors: Sectors(self.shape.block_sectors.into()),
        }
    }

    /// Checks that bytes read at a place are those that were written there.
    ///
    /// # Errors
    /// Returns an error if they are not, or if their number is not that of a block.
    pub fn verify(&self, place: LogPlace, bytes: &[u8]) -> Result<(), LogError> {
        self.check_length(bytes.len(), self.shape.block_bytes())?;
        if crc32fast::hash(bytes) == place.crc {
            Ok(())
        } else {
            Err(LogError::Damaged { at: place.lbn })
        }
    }

    /// Makes everything written and trimmed so far durable, once its operations are complete.
    ///
    /// # Errors
    /// Returns an error if operations are pending, or the device failed.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.check_idle()?;
        self.seal();
        self.flush();
        self.keep_room();
        Ok(())
    }

    /// Writes a checkpoint, which shortens the next opening. It also syncs.
    ///
    /// # Errors
    /// Returns an error if operations are pending, or the device failed.
    pub fn checkpoint(&mut self) -> Result<(), LogError> {
        self.check_idle()?;
        self.write_checkpoint();
        Ok(())
    }

    /// Starts a cleaning pass now. It cleans as much as free space allows, up to the goal of a
    /// pass. The log cleans on its own when it must; an idle period is a better time.
    ///
    /// # Errors
    /// Returns an error if operations are pending, or the device failed.
    pub fn clean(&mut self) -> Result<(), LogError> {
        self.check_idle()?;
        self.begin_pass();
        Ok(())
    }

    /// Returns the next operation for the device; `None` while an operation is outstanding, when
    /// none is left, or after the device has failed.
    pub fn next_op(&mut self) -> Option<LogOp> {
        if self.outstanding.is_some() || self.failed {
            return None;
        }
        let (op, then) = self.steps.pop_front()?;
        let expected = match &op {
            LogOp::Read { sectors, .. } => sectors.0 as usize * self.shape.sector_bytes as usize,
            LogOp::Write { .. } | LogOp::Flush => 0,
        };
        self.outstanding = Some((then, expected));
        Some(op)
    }

    /// Completes the outstanding operation. `bytes` is the data of a read, and empty otherwise.
    ///
    /// # Errors
    /// Returns an error if no operation is outstanding, if `bytes` has the wrong length (the
    /// operation then stays outstanding), or if a segment does not hold what it should. In the last
    /// case, the log continues, but the segment is not cleaned until the log is opened again.
    pub fn complete(&mut self, bytes: Vec<u8>) -> Result<(), LogError> {
        let (then, expected) = self.outstanding.ok_or(LogError::NothingOutstanding)?;
        self.check_length(bytes.len(), expected)?;
        self.outstanding = None;
        match then {
            Completion::Nothing => {}
            Completion::Victim(victim) => self.victim_read(victim, Some(&bytes))?,
            Completion::Committed => self.committed(),
        }
        Ok(())
    }

    /// Reports that the device failed the outstanding operation.
    ///
    /// # Errors
    /// Always returns an error: [`LogError::NothingOutstanding`] if no operation is outstanding,
    /// [`LogError::Damaged`] if the log can continue without the read, and [`LogError::Failed`]
    /// otherwise.
    pub fn fail(&mut self) -> Result<(), LogError> {
        match self.outstanding.take() {
            None => Err(LogError::NothingOutstanding),
            Some((Completion::Victim(victim), _)) => self.victim_read(victim, None),
            Some(_) => {
                self.failed = true;
                Err(LogError::Failed)
            }
        }
    }

    /// Returns the number of blocks.
    pub fn blocks(&self) -> u64 {
        self.index.len()
    }

    /// Returns the units of the log.
    pub fn shape(&self) -> LogShape {
        self.shape
    }

    /// Returns the segment table.
    pub fn segments(&self) -> &[Segment] {
        self.table.lines()
    }

    /// Returns the number of segments that can be written without cleaning.
    pub fn free_segments(&self) -> usize {
        self.table.free_count()
    }

    /// Returns the traffic to and from the device since the log was opened.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// Counts the live blocks of each segment again, from the index. The result equals the segment
    /// table's counts if the log is correct.
    pub fn recount(&self) -> Vec<u32> {
        let mut counts = vec![0; self.segments().len()];
        let places = self.index.blocks().iter().chain(self.index.pages());
        for place in places.filter_map(|place| place.as_written()) {
            if let Some(segment) = self.table.of(place.lbn, self.shape.block_sectors.into()) {
                counts[segment] += 1;
            }
        }
        counts
    }

    fn check_idle(&self) -> Result<(), LogError> {
        if self.failed {
            Err(LogError::Failed)
        } else if self.outstanding.is_some() || !self.steps.is_empty() {
            Err(LogError::Busy)
        } else {
            Ok(())
        }
    }

    fn check_block(&self, block: u64) -> Result<(), LogError> {
        let blocks = self.blocks();
        if block < blocks {
            Ok(())
        } else {
            Err(LogError::NoSuchBlock { block, blocks })
        }
    }

    fn check_length(&self, bytes: usize, expected: usize) -> Result<(), LogError> {
        if bytes == expected {
            Ok(())
        } else {
            Err(LogError::Length { bytes, expected })
        }
    }

    fn check_room(&self) -> Result<(), LogError> {
        if self.table.free_room() < self.reserve.least {
            Err(LogError::Full)
        } else {
            Ok(())
        }
    }
}

/// Returns a segment of the whole grains in a range, if a block fits into it.
fn whole_grains(range: Range<Lbn>, shape: LogShape) -> Option<Segment> {
    let grain = u64::from(shape.grain_sectors);
    let first = Lbn(range.start.0.checked_next_multiple_of(grain)?);
    let sectors = (range.end.0 / grain * grain).checked_sub(first.0)?;
    let sectors = u32::try_from(sectors).ok()?;
    (shape.room(sectors.into()) > 0).then_some(Segment {
        first,
        sectors,
        live: 0,
        youngest: 0,
    })
}
