//! A log-structured layout whose segments match tracks (paper T, section 5.5).
//!
//! A [`Log`] keeps numbered blocks. New versions go one after another into segments, each written
//! front to back; an index tells where the newest version of each block lies. Segments have their
//! own first LBN and length in the segment table, so that each can be a track ([`Sizing::Tracks`]);
//! segments of one size are there to compare with. A [`Policy`] says which segments are cleaned.
//! Two checkpoint regions take turns; opening a log loads the newer one and rolls forward from it.
//!
//! The log does no I/O. It says what the device is to do next ([`Log::next_op`]) and is told how that
//! went ([`Log::complete`]), one operation after another; [`Recovery`] does the same until the log is
//! open. Every other call has to wait until no operation is left ([`LogError::Busy`]).
//!
//! ```
//! use traxtent_core::layout::log::{Config, Found, Log, LogError, Op, Progress, Recovery};
//! use traxtent_core::trackmap::TrackMap;
//!
//! /// A device in memory.
//! fn perform(device: &mut [u8], op: Op) -> Vec<u8> {
//!     match op {
//!         Op::Read { lbn, sectors } => device[lbn.0 as usize * 512..][..sectors.0 as usize * 512].to_vec(),
//!         Op::Write { lbn, data } => {
//!             device[lbn.0 as usize * 512..][..data.len()].copy_from_slice(&data);
//!             Vec::new()
//!         }
//!         Op::Flush => Vec::new(),
//!     }
//! }
//!
//! /// To be called after every call that may leave operations.
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
//! let config = Config { id: 1, blocks: 300, ..Config::default() };
//! let mut log = Log::format(&map, map.first()..map.end(), &config)?;
//! carry_out(&mut log, &mut device)?;
//! log.write(7, &[42; 4096])?;
//! carry_out(&mut log, &mut device)?;
//! log.sync()?;
//! carry_out(&mut log, &mut device)?; // What was written before the sync is durable now.
//!
//! let mut step = Recovery::begin(map.first()..map.end(), 512, config.cleaning);
//! let mut log = loop {
//!     step = match step {
//!         Progress::Ask(op, recovery) => recovery.answer(perform(&mut device, op))?,
//!         Progress::Open(log) => break log,
//!     }
//! };
//! carry_out(&mut log, &mut device)?;
//! let Found::At(place) = log.read(7)? else { panic!("it was written") };
//! let block = perform(&mut device, log.op_for(place));
//! log.verify(place, &block)?;
//! assert_eq!(block, [42; 4096]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What holds
//! - When the operations of a [`Log::sync`] have been done, all that was written and trimmed before
//!   survives any loss of power, provided that the device keeps what a flush made durable, and that
//!   a write that was not flushed leaves each of its sectors old or new, in whatever order.
//! - What was not synced is found as it was before or as it was written, block by block whole, and
//!   if one change is found, so is all that was done before it.
//! - Recovery does not lose what an earlier, broken-off recovery found.
//! - A write that fails ends the log ([`LogError::Failed`]); recover it then. A segment that cannot be
//!   read is not cleaned.
//!
//! # Bytes on the device
//! Numbers are least significant byte first. CRC-32 is that of Ethernet and zip. A *grain* is what
//! the device writes as one. Every structure begins at a grain, and zeros fill its last one.
//!
//! The range of the log holds, in this order: the superblock, two checkpoint regions, the segments.
//!
//! | superblock: byte | bytes | |
//! |---|---|---|
//! | 0 | 8 | `traxtlog` |
//! | 8 | 4 | CRC-32 of bytes 12 to 68 |
//! | 12 | 4 | version: 1 |
//! | 16 | 8 | the log's ID |
//! | 24 | 8 | LBN of the superblock |
//! | 32 | 8 | LBN behind the log's last |
//! | 40 | 8 | how many blocks |
//! | 48 | 8 | sectors of a checkpoint region |
//! | 56 | 4 | bytes of a sector |
//! | 60 | 4 | sectors of a block |
//! | 64 | 4 | sectors of a grain |
//!
//! | checkpoint: byte | bytes | |
//! |---|---|---|
//! | 0 | 8 | `traxtcpt` |
//! | 8 | 4 | CRC-32 of all that follows |
//! | 12 | 4 | how many segments, s |
//! | 16 | 4 | how many map pages, p |
//! | 20 | 8 | the log's ID |
//! | 28 | 8 | number of the checkpoint; an odd one stands in the first region |
//! | 36 | 8 | epoch: one more at each opening of the log |
//! | 44 | 8 | sequence number of the next chunk |
//! | 52 | 8 | LBN of the next chunk |
//! | 60 | 8 | clock: blocks that were written by the user so far |
//! | 68 | 24 s | the segment table, ascending: first LBN (8), sectors (4), living blocks (4), clock of its youngest block (8) |
//! | 68 + 24 s | 12 p | where each map page lies: LBN (8), CRC-32 of the page (4); 2^64 - 1 and 0 if there is none |
//!
//! A map page is a block of the log: for each of its blocks, which are as many as fit, where it lies
//! (LBN, 8 bytes; CRC-32 of the block, 4 bytes; 2^64 - 1 and 0 if it was never written or is trimmed),
//! filled up with ff.
//!
//! A segment holds chunks. A chunk is one write: a summary, and the blocks that it tells of.
//!
//! | summary: byte | bytes | |
//! |---|---|---|
//! | 0 | 8 | `traxtsum` |
//! | 8 | 4 | CRC-32 of all that follows, without the blocks |
//! | 12 | 4 | how many entries, e; at least 1 |
//! | 16 | 8 | the log's ID |
//! | 24 | 8 | epoch |
//! | 32 | 8 | sequence number: one more than that of the chunk before |
//! | 40 | 8 | LBN of this summary |
//! | 48 | 8 | LBN of the next one: behind this chunk, or the beginning of a segment |
//! | 56 | 8 | clock of the youngest of the blocks |
//! | 64 | 16 e | entries: number (8), kind (4), value (4) |
//!
//! | kind | number | value | has a block in the chunk |
//! |---|---|---|---|
//! | 1 data | the block's | CRC-32 of its bytes | yes |
//! | 2 map page | the page's | CRC-32 of its bytes | yes |
//! | 3 trim | of the first block | how many blocks | no |
//!
//! Rolling forward believes a chunk if its summary and all its blocks are whole, ID, epoch and
//! sequence number are the expected ones, and the chunk before named its place. Map pages at the end
//! belong to a checkpoint that was not finished and are dropped.
//!
//! # Left out
//! More than one operation at a time; an index larger than memory (16 bytes a block); segments of
//! their own for hot and cold blocks while they are written (the cleaner sorts by age). A checkpoint that
//! rots after it was durable is not told from one that tore: the older one is taken, and what was
//! synced in between is as lost as the checkpoint. Blocks that a later write replaced are caught by
//! their checksums then.

mod chunk;
mod cleaner;
mod error;
pub mod format;
mod index;
mod recovery;
mod segments;
mod shape;
mod traffic;
mod writer;

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

pub use cleaner::{Cleaning, Policy};
pub use error::LogError;
pub use index::Place;
pub use recovery::{Progress, Recovery};
pub use segments::{Segment, Sizing};
pub use shape::Shape;
pub use traffic::Traffic;

use crate::trackmap::TrackMap;
use crate::units::{Lbn, Sectors};
use chunk::OpenChunk;
use cleaner::{Pass, Reserve};
use format::{Checkpoint, Entry, Superblock};
use index::Index;
use segments::SegmentTable;

/// What a log is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Tells the log from whatever was on the device: take another each time.
    pub id: u64,
    /// How many blocks it keeps.
    pub blocks: u64,
    /// The units.
    pub shape: Shape,
    /// The segments.
    pub sizing: Sizing,
    /// The cleaner.
    pub cleaning: Cleaning,
}

impl Default for Config {
    /// No blocks; blocks of 4 KB of sectors of 512 bytes; segments that are tracks.
    fn default() -> Config {
        Config {
            id: 0,
            blocks: 0,
            shape: Shape {
                sector_bytes: 512,
                block_sectors: 8,
                grain_sectors: 1,
            },
            sizing: Sizing::default(),
            cleaning: Cleaning::default(),
        }
    }
}

impl Config {
    /// The most blocks that a log on this range can have: beside them, the cleaner needs room.
    ///
    /// # Errors
    /// If the map does not cover the range, or a figure is out of its bounds.
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
            return Err(LogError::Figure {
                figure: "the first LBN",
                value: range.start.0,
                expected: "a multiple of grain_sectors",
            });
        }
        let cut = self.sizing.cut(map, range)?.into_iter();
        Ok(cut.filter_map(|cut| whole_grains(cut, shape)).collect())
    }

    /// Where everything goes, with so many blocks; nothing, if they do not fit.
    fn fit(
        &self,
        segments: &[Segment],
        range: Range<Lbn>,
        blocks: u64,
    ) -> Option<(Superblock, SegmentTable, Reserve)> {
        // Sums are safe from here on.
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
        let behind = segments.partition_point(|segment| segment.first < from);
        let table = SegmentTable::new(segments[behind..].to_vec(), self.shape);
        let reserve = Reserve::new(table.rooms(), blocks, pages, self.cleaning)?;
        Some((superblock, table, reserve))
    }
}

/// What the device is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read sectors.
    Read {
        /// The first.
        lbn: Lbn,
        /// How many.
        sectors: Sectors,
    },
    /// Write whole sectors.
    Write {
        /// The first.
        lbn: Lbn,
        /// Their bytes.
        data: Vec<u8>,
    },
    /// Make all writes that are complete durable.
    Flush,
}

/// Where a block is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// It was never written, or is trimmed: zeros.
    Nothing,
    /// It has not been written out yet; here are its bytes.
    Here(&'a [u8]),
    /// On the device: read it ([`Log::op_for`]) and check it ([`Log::verify`]).
    At(Place),
}

/// A log. See [the module](self).
#[derive(Clone, Debug)]
pub struct Log {
    id: u64,
    shape: Shape,
    superblock: Superblock,
    cleaning: Cleaning,
    reserve: Reserve,
    table: SegmentTable,
    index: Index,
    /// Segments that could not be read, and are left alone until the log is opened again.
    stuck: BTreeSet<usize>,
    head: Head,
    chunk: OpenChunk,
    /// Chunks were written that no flush has followed.
    unflushed: bool,
    clock: u64,
    /// Number of the newest checkpoint.
    number: u64,
    pass: Option<Pass>,
    steps: VecDeque<(Op, Then)>,
    /// What follows the operation under way.
    under_way: Option<(Then, usize)>,
    failed: bool,
    traffic: Traffic,
}

/// Where the next chunk goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    segment: usize,
    at: Lbn,
    epoch: u64,
    sequence: u64,
}

/// What the log does when an operation is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Then {
    Nothing,
    /// Take what lives in a segment that was read.
    Victim(usize),
    /// A checkpoint is durable.
    Committed,
}

impl Log {
    /// A log of which nothing is known but where it is and goes on.
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
            under_way: None,
            failed: false,
            traffic: Traffic::default(),
            table,
            superblock,
        }
    }

    /// A new log, empty, on a range of a device whose tracks `map` tells. What the range holds is
    /// lost when its operations have been done.
    ///
    /// # Errors
    /// If the map does not cover the range, or the range has no room for so many blocks.
    pub fn format(map: &TrackMap, range: Range<Lbn>, config: &Config) -> Result<Log, LogError> {
        let cut = config.segments(map, range.clone())?;
        let Some((superblock, table, reserve)) = config.fit(&cut, range.clone(), config.blocks)
        else {
            return Err(LogError::TooMany {
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
        // Last, so that there is no log before there is a checkpoint.
        let data = log.superblock.encode();
        let lbn = log.superblock.range.start;
        log.ask(Op::Write { lbn, data }, Then::Nothing);
        log.ask(Op::Flush, Then::Nothing);
        Ok(log)
    }

    /// Gives a block new content. It is durable after a [`Log::sync`].
    ///
    /// # Errors
    /// If there is no such block, the data are not a block long, operations are waiting, or the
    /// device failed.
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

    /// Gives blocks up; they read as zeros. Durable after a [`Log::sync`].
    ///
    /// # Errors
    /// As of [`Log::write`].
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
                self.move_block(block, Place::NOWHERE);
            }
            first = next;
        }
        self.keep_room();
        Ok(())
    }

    /// Where a block is.
    ///
    /// # Errors
    /// If there is no such block, operations are waiting, or the device failed.
    pub fn read(&self, block: u64) -> Result<Found<'_>, LogError> {
        self.check_idle()?;
        self.check_block(block)?;
        Ok(match self.chunk.find(block, self.shape) {
            Some(data) => Found::Here(data),
            None => match self.index.block(block).somewhere() {
                Some(place) => Found::At(place),
                None => Found::Nothing,
            },
        })
    }

    /// The operation that reads a block.
    pub fn op_for(&self, place: Place) -> Op {
        Op::Read {
            lbn: place.lbn,
            sectors: Sectors(self.shape.block_sectors.into()),
        }
    }

    /// Whether bytes are those that were written there.
    ///
    /// # Errors
    /// If they are not.
    pub fn verify(&self, place: Place, bytes: &[u8]) -> Result<(), LogError> {
        self.check_length(bytes.len(), self.shape.block_bytes())?;
        if crc32fast::hash(bytes) == place.crc {
            Ok(())
        } else {
            Err(LogError::Damaged { at: place.lbn })
        }
    }

    /// Makes all that was written and trimmed durable, once the operations have been done.
    ///
    /// # Errors
    /// If operations are waiting, or the device failed.
    pub fn sync(&mut self) -> Result<(), LogError> {
        self.check_idle()?;
        self.seal();
        self.flush();
        self.keep_room();
        Ok(())
    }

    /// Writes a checkpoint, which shortens the next opening. It syncs, too.
    ///
    /// # Errors
    /// If operations are waiting, or the device failed.
    pub fn checkpoint(&mut self) -> Result<(), LogError> {
        self.check_idle()?;
        self.write_checkpoint();
        Ok(())
    }

    /// Cleans now, as much as there is room for, up to what a pass shall win. The log does so by
    /// itself when it must; a quiet hour is a better time.
    ///
    /// # Errors
    /// If operations are waiting, or the device failed.
    pub fn clean(&mut self) -> Result<(), LogError> {
        self.check_idle()?;
        self.begin_pass();
        Ok(())
    }

    /// What the device is to do next; nothing, while an operation is under way or when all is done.
    pub fn next_op(&mut self) -> Option<Op> {
        if self.under_way.is_some() || self.failed {
            return None;
        }
        let (op, then) = self.steps.pop_front()?;
        let answer = match &op {
            Op::Read { sectors, .. } => sectors.0 as usize * self.shape.sector_bytes as usize,
            Op::Write { .. } | Op::Flush => 0,
        };
        self.under_way = Some((then, answer));
        Some(op)
    }

    /// The operation under way is done; of a read, these are the bytes.
    ///
    /// # Errors
    /// If none is under way, the bytes are of another length (it is then still under way), or what was
    /// read is not what should stand there: the segment is then left alone, and the log goes on.
    pub fn complete(&mut self, bytes: Vec<u8>) -> Result<(), LogError> {
        let (then, answer) = self.under_way.ok_or(LogError::NothingAsked)?;
        self.check_length(bytes.len(), answer)?;
        self.under_way = None;
        match then {
            Then::Nothing => {}
            Then::Victim(victim) => self.victim_read(victim, Some(&bytes))?,
            Then::Committed => self.committed(),
        }
        Ok(())
    }

    /// The device failed the operation under way.
    ///
    /// # Errors
    /// Always: [`LogError::Damaged`] if it was a read without which the log goes on, else [`LogError::Failed`].
    pub fn refuse(&mut self) -> Result<(), LogError> {
        match self.under_way.take() {
            None => Err(LogError::NothingAsked),
            Some((Then::Victim(victim), _)) => self.victim_read(victim, None),
            Some(_) => {
                self.failed = true;
                Err(LogError::Failed)
            }
        }
    }

    /// How many blocks there are.
    pub fn blocks(&self) -> u64 {
        self.index.len()
    }

    /// The units.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The segment table.
    pub fn segments(&self) -> &[Segment] {
        self.table.lines()
    }

    /// How many segments can be written at once.
    pub fn free_segments(&self) -> usize {
        self.table.free_count()
    }

    /// What went to the device and came from it since the log was opened.
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    /// The living blocks of each segment, counted anew from the index: what the segment table says, if
    /// the log is right.
    pub fn recount(&self) -> Vec<u32> {
        let mut counts = vec![0; self.segments().len()];
        let places = self.index.blocks().iter().chain(self.index.pages());
        for place in places.filter_map(|place| place.somewhere()) {
            if let Some(segment) = self.table.of(place.lbn, self.shape.block_sectors.into()) {
                counts[segment] += 1;
            }
        }
        counts
    }

    fn check_idle(&self) -> Result<(), LogError> {
        if self.failed {
            Err(LogError::Failed)
        } else if self.under_way.is_some() || !self.steps.is_empty() {
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

/// A segment of the whole grains of a range, if a block fits into it.
fn whole_grains(range: Range<Lbn>, shape: Shape) -> Option<Segment> {
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
