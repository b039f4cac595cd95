//! The segment table: where each segment begins, how long it is, what lives in it (paper T, section 5.5.1).

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::error::LogError;
use super::shape::Shape;
use crate::trackmap::TrackMap;
use crate::units::{Lbn, Sectors};

/// How a range is cut into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sizing {
    /// A segment is a track, whatever its size: `tracks`.
    #[default]
    Tracks,
    /// Segments of one size that begin where a track does, or where the one before it on the same
    /// track ends; what is left of a track is not used: `aligned:528`.
    Aligned(Sectors),
    /// Segments of one size, one after another, wherever the tracks are: `fixed:528`.
    Fixed(Sectors),
}

impl Sizing {
    const EXPECTED: &str = "tracks, aligned:N or fixed:N, N sectors from 1 to 4294967295";

    /// The segments of a range, ascending.
    ///
    /// # Errors
    /// If the map does not cover the range.
    pub fn cut(self, map: &TrackMap, range: Range<Lbn>) -> Result<Vec<Range<Lbn>>, LogError> {
        if range.is_empty() || range.start < map.first() || map.end() < range.end {
            return Err(LogError::NotCovered {
                from: range.start,
                to: range.end,
                first: map.first(),
                end: map.end(),
            });
        }
        if let Sizing::Aligned(Sectors(0)) | Sizing::Fixed(Sectors(0)) = self {
            return Err(LogError::Figure {
                figure: "segment size",
                value: 0,
                expected: "at least 1 sector",
            });
        }
        let mut cut = Vec::new();
        let mut next = range.start;
        let mut track = map.track_of(range.start);
        while let Some(here) = track.filter(|track| track.first_lbn < range.end) {
            let part = here.first_lbn.max(range.start)..here.end().min(range.end);
            match self {
                Sizing::Tracks => cut.push(part),
                Sizing::Fixed(size) => next = pieces(&mut cut, next, size, part.end),
                // Only where a track begins, and the segment before has ended.
                Sizing::Aligned(size) if next.max(range.start) <= here.first_lbn => {
                    let end = if size > here.sectors {
                        Lbn(here.first_lbn.0.saturating_add(size.0)).min(range.end)
                    } else {
                        part.end
                    };
                    next = pieces(&mut cut, here.first_lbn, size, end);
                }
                Sizing::Aligned(_) => {}
            }
            track = map.track(here.index + 1);
        }
        Ok(cut)
    }
}

/// Adds the pieces of one size from `next` on that end by `end`; returns where the next would begin.
fn pieces(cut: &mut Vec<Range<Lbn>>, mut next: Lbn, size: Sectors, end: Lbn) -> Lbn {
    while size.0 <= end.0.saturating_sub(next.0) {
        cut.push(next..next + size);
        next += size;
    }
    next
}

impl fmt::Display for Sizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Sizing::Tracks => f.write_str("tracks"),
            Sizing::Aligned(size) => write!(f, "aligned:{}", size.0),
            Sizing::Fixed(size) => write!(f, "fixed:{}", size.0),
        }
    }
}

impl FromStr for Sizing {
    type Err = LogError;

    fn from_str(text: &str) -> Result<Sizing, LogError> {
        let size = |number: &str| {
            let sectors = number.parse::<u32>().ok().filter(|sectors| *sectors > 0);
            sectors.map(|sectors| Sectors(sectors.into()))
        };
        let sizing = match text.split_once(':') {
            None if text == "tracks" => Some(Sizing::Tracks),
            Some(("aligned", number)) => size(number).map(Sizing::Aligned),
            Some(("fixed", number)) => size(number).map(Sizing::Fixed),
            _ => None,
        };
        sizing.ok_or_else(|| LogError::Name {
            text: text.to_owned(),
            expected: Self::EXPECTED,
        })
    }
}

/// A line of the segment table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its first LBN.
    pub first: Lbn,
    /// Its length.
    pub sectors: u32,
    /// Blocks in it, map pages among them, that the index or a checkpoint points to.
    pub live: u32,
    /// When the youngest block in it was written by the user: the log's clock then, which counts
    /// the blocks that were written.
    pub youngest: u64,
}

impl Segment {
    /// The LBN behind its last.
    pub fn end(&self) -> Lbn {
        self.first + Sectors(self.sectors.into())
    }
}

/// The segments, and which of them may be written.
#[derive(Clone, Debug)]
pub(super) struct SegmentTable {
    lines: Vec<Segment>,
    /// Blocks that each takes.
    rooms: Vec<u32>,
    free: BTreeSet<usize>,
    /// Blocks that the free ones take.
    free_room: u64,
}

impl SegmentTable {
    /// A table of segments none of which is free yet.
    pub(super) fn new(lines: Vec<Segment>, shape: Shape) -> SegmentTable {
        let room = |line: &Segment| shape.room(line.sectors.into()) as u32;
        SegmentTable {
            rooms: lines.iter().map(room).collect(),
            lines,
            free: BTreeSet::new(),
            free_room: 0,
        }
    }

    pub(super) fn lines(&self) -> &[Segment] {
        &self.lines
    }

    pub(super) fn rooms(&self) -> &[u32] {
        &self.rooms
    }

    pub(super) fn line(&mut self, segment: usize) -> &mut Segment {
        &mut self.lines[segment]
    }

    /// The segment that so many sectors from `lbn` on lie in.
    pub(super) fn of(&self, lbn: Lbn, sectors: u64) -> Option<usize> {
        let behind = self.lines.partition_point(|line| line.first <= lbn);
        let segment = behind.checked_sub(1)?;
        let end = lbn.0.checked_add(sectors)?;
        (end <= self.lines[segment].end().0).then_some(segment)
    }

    pub(super) fn free_room(&self) -> u64 {
        self.free_room
    }

    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    pub(super) fn is_free(&self, segment: usize) -> bool {
        self.free.contains(&segment)
    }

    /// Makes every segment free that has nothing alive in it, but the one that is being written.
    pub(super) fn release(&mut self, head: usize) {
        for segment in 0..self.lines.len() {
            if self.lines[segment].live == 0 && segment != head {
                self.put_back(segment);
            }
        }
    }

    pub(super) fn put_back(&mut self, segment: usize) {
        if self.free.insert(segment) {
            self.free_room += u64::from(self.rooms[segment]);
        }
    }

    /// Takes a free segment, to be written from its beginning.
    pub(super) fn take(&mut self, segment: usize) -> bool {
        let free = self.free.remove(&segment);
        if free {
            self.free_room -= u64::from(self.rooms[segment]);
        }
        free
    }

    /// The free segment that the arm comes to next.
    pub(super) fn next_free(&self, after: usize) -> Option<usize> {
        let behind = self.free.range(after..).next();
        behind.or_else(|| self.free.first()).copied()
    }
}
