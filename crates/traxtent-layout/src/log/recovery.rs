//! Opening a log: the newer checkpoint, the index that it points to, and the chunks written after
//! it.

use std::collections::VecDeque;
use std::ops::Range;

use super::cleaner::{Cleaning, Reserve};
use super::error::LogError;
use super::format::{Checkpoint, Entry, Summary, Superblock};
use super::place::LogPlace;
use super::segments::SegmentTable;
use super::{Head, Log, LogOp};
use traxtent_units::{Lbn, Sectors};

/// The progress of opening a log.
#[derive(Debug)]
pub enum RecoveryStep {
    /// The device must perform this operation. Pass the result to [`Recovery::complete`].
    Perform(LogOp, Recovery),
    /// The log is open. Its first operations make the recovered state durable; they must be carried
    /// out before any other call.
    Open(Box<Log>),
}

/// A log that is being opened. It issues only reads.
#[derive(Debug)]
pub struct Recovery {
    stage: Stage,
    /// The expected length of the next result in bytes.
    expected_bytes: usize,
}

#[derive(Debug)]
enum Stage {
    Superblock {
        range: Range<Lbn>,
        sector_bytes: u32,
        cleaning: Cleaning,
    },
    FirstRegion(Superblock, Cleaning),
    SecondRegion(Superblock, Cleaning, Result<Checkpoint, LogError>),
    Page(Pages),
    Forward(Forward),
}

/// A log whose index is being loaded.
#[derive(Debug)]
struct Pages {
    log: Box<Log>,
    /// The checkpoint's number of live blocks in each segment.
    live: Vec<u32>,
    left: VecDeque<(u64, LogPlace)>,
}

/// A log that is being rolled forward.
#[derive(Debug)]
struct Forward {
    log: Box<Log>,
    /// The position at which the next chunk is expected.
    head: Head,
    /// Segments entered since the last chunk that was applied.
    entered: Vec<usize>,
}

impl Recovery {
    /// Starts to open the log at the beginning of a device range.
    pub fn begin(range: Range<Lbn>, sector_bytes: u32, cleaning: Cleaning) -> RecoveryStep {
        let lbn = range.start;
        let stage = Stage::Superblock {
            range,
            sector_bytes,
            cleaning,
        };
        read_step(stage, lbn, 1, sector_bytes)
    }

    /// Takes the bytes of the requested read. If the device cannot read them, pass zeros, which are
    /// not a valid structure. Recovery tolerates this for one checkpoint region or for the end of
    /// the log.
    ///
    /// # Errors
    /// Returns an error if the number of bytes differs from the request, or if no log can be opened
    /// here.
    pub fn complete(self, bytes: Vec<u8>) -> Result<RecoveryStep, LogError> {
        if bytes.len() != self.expected_bytes {
            return Err(LogError::Length {
                bytes: bytes.len(),
                expected: self.expected_bytes,
            });
        }
        match self.stage {
            Stage::Superblock {
                range,
                sector_bytes,
                cleaning,
            } => superblock(&bytes, range, sector_bytes, cleaning),
            Stage::FirstRegion(superblock, cleaning) => {
                let first = Checkpoint::decode(&bytes, superblock.region(0), &superblock);
                Ok(read_region(1, superblock, |superblock| {
                    Stage::SecondRegion(superblock, cleaning, first)
                }))
            }
            Stage::SecondRegion(superblock, cleaning, first) => {
                let second = Checkpoint::decode(&bytes, superblock.region(1), &superblock);
                let checkpoint = newer(first, second)?;
                Pages::begin(superblock, checkpoint, cleaning)?.next()
            }
            Stage::Page(mut pages) => {
                pages.take(&bytes)?;
                pages.next()
            }
            Stage::Forward(forward) => forward.roll(&bytes),
        }
    }
}

fn read_step(stage: Stage, lbn: Lbn, sectors: u64, sector_bytes: u32) -> RecoveryStep {
    let op = LogOp::Read {
        lbn,
        sectors: Sectors(sectors),
    };
    let expected_bytes = sectors as usize * sector_bytes as usize;
    RecoveryStep::Perform(
        op,
        Recovery {
            stage,
            expected_bytes,
        },
    )
}

fn read_region(
    which: usize,
    superblock: Superblock,
    stage: impl FnOnce(Superblock) -> Stage,
) -> RecoveryStep {
    let (lbn, sectors) = (superblock.region(which), superblock.region_sectors);
    let bytes = superblock.shape.sector_bytes;
    read_step(stage(superblock), lbn, sectors, bytes)
}

fn superblock(
    bytes: &[u8],
    range: Range<Lbn>,
    sector_bytes: u32,
    cleaning: Cleaning,
) -> Result<RecoveryStep, LogError> {
    let superblock = Superblock::decode(bytes, range.start)?;
    let problem = if superblock.range.end > range.end {
        "its log extends beyond the end of the given range"
    } else if superblock.shape.sector_bytes != sector_bytes {
        "its sector size differs from the device's"
    } else {
        return Ok(read_region(0, superblock, |superblock| {
            Stage::FirstRegion(superblock, cleaning)
        }));
    };
    Err(LogError::Format {
        at: range.start,
        what: "a log's superblock",
        problem,
    })
}

/// Returns the newer of the intact checkpoints.
fn newer(
    first: Result<Checkpoint, LogError>,
    second: Result<Checkpoint, LogError>,
) -> Result<Checkpoint, LogError> {
    match (first, second) {
        (Ok(first), Ok(second)) if first.number > second.number => Ok(first),
        (_, Ok(second)) => Ok(second),
        (Ok(first), Err(_)) => Ok(first),
        (Err(_), Err(error)) => Err(LogError::NoCheckpoint(Box::new(error))),
    }
}

impl Pages {
    /// Creates a log from the checkpoint, without its index.
    fn begin(
        superblock: Superblock,
        checkpoint: Checkpoint,
        cleaning: Cleaning,
    ) -> Result<Pages, LogError> {
        let shape = superblock.shape;
        let wrong = wrong(superblock.region(checkpoint.region()));
        let live = checkpoint.segments.iter().map(|line| line.live).collect();
        let mut lines = checkpoint.segments;
        for line in &mut lines {
            line.live = 0;
        }
        let table = SegmentTable::new(lines, shape);
        let head = Head {
            segment: table
                .of(checkpoint.head, 1)
                .ok_or_else(|| wrong("the head is in no segment"))?,
            at: checkpoint.head,
            epoch: checkpoint.epoch,
            sequence: checkpoint.sequence,
        };
        let pages = checkpoint.pages.len() as u64;
        // The log was created with space for some cleaning, though perhaps less than is configured
        // now.
        let reserve = |segments| {
            let cleaning = Cleaning {
                segments,
                ..cleaning
            };
            Reserve::new(table.rooms(), superblock.blocks, pages, cleaning)
        };
        let reserve = reserve(cleaning.segments).or_else(|| reserve(1));
        let reserve =
            reserve.ok_or_else(|| wrong("it has more blocks than fit in the segments"))?;
        let mut log = Log {
            clock: checkpoint.clock,
            number: checkpoint.number,
            ..Log::idle(superblock, table, cleaning, reserve, head)
        };
        let grain = u64::from(shape.grain_sectors);
        if log.room_in_segment() < shape.least_chunk() || !log.head.at.0.is_multiple_of(grain) {
            return Err(wrong("no chunk can begin at the head"));
        }
        let mut left = Vec::new();
        for (page, place) in checkpoint.pages.into_iter().enumerate() {
            if let Some(place) = place {
                log.check_place(place, &wrong)?;
                log.index.set_page(page as u64, place);
                left.push((page as u64, place));
            }
        }
        left.sort_by_key(|(_, place)| place.lbn);
        Ok(Pages {
            log: Box::new(log),
            live,
            left: left.into(),
        })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        let (page, place) = self.left.pop_front().expect("a page was requested");
        self.log.verify(place, bytes)?;
        self.log.index.load_page(page, bytes);
        Ok(())
    }

    /// Requests the next page, or begins to roll forward.
    fn next(self) -> Result<RecoveryStep, LogError> {
        let shape = self.log.shape;
        if let Some(&(_, place)) = self.left.front() {
            let sectors = shape.block_sectors.into();
            return Ok(read_step(
                Stage::Page(self),
                place.lbn,
                sectors,
                shape.sector_bytes,
            ));
        }
        let mut log = self.log;
        let wrong = wrong(log.superblock.range.start);
        for block in 0..log.blocks() {
            if let Some(place) = log.index.block(block).as_written() {
                log.check_place(place, &wrong)?;
            }
        }
        let counts = log.recount();
        if counts != self.live {
            return Err(wrong("the segment table's counts do not match the index"));
        }
        for (segment, live) in counts.into_iter().enumerate() {
            log.table.line(segment).live = live;
        }
        log.table.release(log.head.segment);
        let head = log.head;
        Ok(Forward {
            log,
            head,
            entered: Vec::new(),
        }
        .read_step())
    }
}

impl Forward {
    /// Reads the rest of the segment in which the next chunk is expected.
    fn read_step(self) -> RecoveryStep {
        let end = self.log.table.lines()[self.head.segment].end();
        let (at, bytes) = (self.head.at, self.log.shape.sector_bytes);
        read_step(Stage::Forward(self), at, end.0 - at.0, bytes)
    }

    /// Applies the valid chunks of a segment.
    fn roll(mut self, bytes: &[u8]) -> Result<RecoveryStep, LogError> {
        let (segment, read_from) = (self.head.segment, self.head.at);
        while let Some(summary) = self.valid_chunk(bytes, read_from) {
            self.take(&summary);
            if self.head.segment != segment {
                return Ok(self.read_step());
            }
        }
        self.finish()
    }

    /// Returns the chunk at the head if it is intact and is the next chunk of this log.
    fn valid_chunk(&self, bytes: &[u8], read_from: Lbn) -> Option<Summary> {
        let (log, head) = (&self.log, self.head);
        let shape = log.shape;
        let offset = |lbn: Lbn| (lbn.0 - read_from.0) as usize * shape.sector_bytes as usize;
        let summary = Summary::decode(bytes.get(offset(head.at)..)?, head.at).ok()?;
        let expected = (log.id, head.epoch, head.sequence);
        if (summary.id, summary.epoch, summary.sequence) != expected {
            return None;
        }
        let end = head.at + Sectors(summary.chunk_sectors(shape));
        if end > log.table.lines()[head.segment].end() {
            return None;
        }
        let whole = summary.placed(shape).all(|(_, place)| {
            let start = offset(place.lbn);
            let block = bytes.get(start..start + shape.block_bytes());
            block.is_some_and(|block| crc32fast::hash(block) == place.crc)
        });
        let known = summary.entries.iter().all(|entry| match *entry {
            Entry::Data { block, .. } => block < log.blocks(),
            Entry::Map { .. } => true,
            Entry::Trim { first, count } => {
                let end = first.checked_add(count.into());
                end.is_some_and(|end| end <= log.blocks())
            }
        });
        (whole && known && self.next_is_possible(&summary, end)).then_some(summary)
    }

    /// Returns whether the summary's next position is possible after a chunk that ends at `end`.
    fn next_is_possible(&self, summary: &Summary, end: Lbn) -> bool {
        let table = &self.log.table;
        let left = table.lines()[self.head.segment].end().0 - end.0;
        if left >= self.log.shape.least_chunk() {
            return summary.next == end;
        }
        let next = table.of(summary.next, 1);
        next.is_some_and(|next| table.is_free(next) && table.lines()[next].first == summary.next)
    }

    fn take(&mut self, summary: &Summary) {
        let (log, here) = (&mut self.log, self.head.segment);
        self.head.at = summary.next;
        self.head.sequence += 1;
        if let Some(next) = log.table.of(summary.next, 1).filter(|next| *next != here) {
            log.table.take(next);
            self.head.segment = next;
            self.entered.push(next);
        }
        let only_map = |entry: &Entry| matches!(entry, Entry::Map { .. });
        if summary.entries.iter().all(only_map) {
            return;
        }
        let line = log.table.line(here);
        if summary.at == line.first {
            line.youngest = 0;
        }
        line.youngest = line.youngest.max(summary.youngest);
        log.clock = log.clock.max(summary.youngest);
        let mut placed = summary.placed(log.shape);
        for entry in &summary.entries {
            match *entry {
                Entry::Data { block, .. } => {
                    if let Some((_, place)) = placed.next() {
                        log.move_block(block, place);
                    }
                }
                Entry::Map { .. } => drop(placed.next()),
                Entry::Trim { first, count } => {
                    for block in first..first + u64::from(count) {
                        log.move_block(block, LogPlace::NOWHERE);
                    }
                }
            }
        }
        log.head = self.head;
        self.entered.clear();
    }

    /// Drops the map pages of an unfinished checkpoint, and writes a complete checkpoint.
    fn finish(self) -> Result<RecoveryStep, LogError> {
        let mut log = self.log;
        for segment in self.entered {
            log.table.put_back(segment);
        }
        if log.table.free_room() < log.reserve.checkpoint {
            return Err(wrong(log.superblock.range.start)(
                "there is no space for a checkpoint",
            ));
        }
        // A new epoch invalidates any intact chunks after the last one that was applied.
        log.head.epoch += 1;
        // The applied chunks may still be in the device's cache.
        log.unflushed = true;
        log.flush();
        log.write_checkpoint();
        Ok(RecoveryStep::Open(log))
    }
}

impl Log {
    fn check_place(
        &self,
        place: LogPlace,
        wrong: &impl Fn(&'static str) -> LogError,
    ) -> Result<(), LogError> {
        let block = self.shape.block_sectors.into();
        match self.table.of(place.lbn, block) {
            Some(_) => Ok(()),
            None => Err(wrong("a block is in no segment")),
        }
    }
}

fn wrong(at: Lbn) -> impl Fn(&'static str) -> LogError {
    move |problem| LogError::Format {
        at,
        what: "a log's state",
        problem,
    }
}
