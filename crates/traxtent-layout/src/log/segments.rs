//! The segment table: each segment's first LBN, length, number of live blocks, and the time of its
//! youngest block (paper T, section 5.5.1).

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::error::LogError;
use super::shape::LogShape;
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};

/// The rule by which a range is cut into segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentSizing {
    /// Each segment is a track, whatever its size, or the part of it in the range: `tracks`.
    #[default]
    Tracks,
    /// Segments of one size. Each begins at the start of a track, or at the end of the preceding
    /// segment on the same track. The rest of a track is not used: `aligned:528`.
    Aligned(Sectors),
    /// Segments of one size, one after another, regardless of tracks: `fixed:528`.
    Fixed(Sectors),
}

impl SegmentSizing {
    const EXPECTED: &str = "tracks, aligned:N or fixed:N, with N from 1 to 4294967295 sectors";

    /// Returns the segments of a range, in ascending order.
    ///
    /// # Errors
    /// Returns an error if the range is empty, if the map does not cover it, or if the segment size
    /// is 0.
    pub fn cut(self, map: &TrackMap, range: Range<Lbn>) -> Result<Vec<Range<Lbn>>, LogError> {
        if range.is_empty() {
            return Err(LogError::EmptyRange {
                from: range.start,
                to: range.end,
            });
        }
        if range.start < map.first() || map.end() < range.end {
            return Err(LogError::NotCovered {
                from: range.start,
                to: range.end,
                first: map.first(),
                end: map.end(),
            });
        }
        if let SegmentSizing::Aligned(Sectors(0)) | SegmentSizing::Fixed(Sectors(0)) = self {
            return Err(LogError::InvalidValue {
                name: "segment size",
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
                SegmentSizing::Tracks => cut.push(part),
                SegmentSizing::Fixed(size) => next = pieces(&mut cut, next, size, part.end),
                // Segments begin only with a track that begins at or after the end of the preceding
                // segment.
                SegmentSizing::Aligned(size) if next.max(range.start) <= here.first_lbn => {
                    let end = if size > here.sectors {
                        Lbn(here.first_lbn.0.saturating_add(size.0)).min(range.end)
                    } else {
                        part.end
                    };
                    next = pieces(&mut cut, here.first_lbn, size, end);
                }
                SegmentSizing::Aligned(_) => {}
            }
            track = map.track(here.index + 1);
        }
        Ok(cut)
    }
}

/// Adds consecutive pieces of one size, from `next` to `end` at most. Returns the start of the
/// next piece.
fn pieces(cut: &mut Vec<Range<Lbn>>, mut next: Lbn, size: Sectors, end: Lbn) -> Lbn {
    while size.0 <= end.0.saturating_sub(next.0) {
        cut.push(next..next + size);
        next += size;
    }
    next
}

impl fmt::Display for SegmentSizing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentSizing::Tracks => f.write_str("tracks"),
            SegmentSizing::Aligned(size) => write!(f, "aligned:{}", size.0),
            SegmentSizing::Fixed(size) => write!(f, "fixed:{}", size.0),
        }
    }
}

impl FromStr for SegmentSizing {
    type Err = LogError;

    fn from_str(text: &str) -> Result<SegmentSizing, LogError> {
        let size = |number: &str| {
            let sectors = number.parse::<u32>().ok().filter(|sectors| *sectors > 0);
            sectors.map(|sectors| Sectors(sectors.into()))
        };
        let sizing = match text.split_once(':') {
            None if text == "tracks" => Some(SegmentSizing::Tracks),
            Some(("aligned", number)) => size(number).map(SegmentSizing::Aligned),
            Some(("fixed", number)) => size(number).map(SegmentSizing::Fixed),
            _ => None,
        };
        sizing.ok_or_else(|| LogError::Name {
            text: text.to_owned(),
            expected: Self::EXPECTED,
        })
    }
}

/// An entry of the segment table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The segment's first LBN.
    pub first: Lbn,
    /// The segment's length in sectors.
    pub sectors: u32,
    /// The number of its blocks, including map pages, that the index or a checkpoint points to.
    pub live: u32,
    /// The time at which the user wrote the youngest block in it. Time is the log's clock, which
    /// counts the blocks that the user has written.
    pub youngest: u64,
}

impl Segment {
    /// Returns the first LBN after the segment.
    pub fn end(&self) -> Lbn {
        self.first + Sectors(self.sectors.into())
    }
}

/// The segments, and which of them are free.
#[derive(Clone, Debug)]
pub(super) struct SegmentTable {
    entries: Vec<Segment>,
    /// The capacity of each segment in blocks.
    capacities: Vec<u32>,
    free: BTreeSet<usize>,
    /// The capacity of the free segments in blocks.
    free_capacity: u64,
}

impl SegmentTable {
    /// Creates a table of segments, none of which is free yet.
    pub(super) fn new(lines: Vec<Segment>, shape: LogShape) -> SegmentTable {
        let room = |line: &Segment| shape.room(line.sectors.into()) as u32;
        SegmentTable {
            capacities: lines.iter().map(room).collect(),
            entries: lines,
            free: BTreeSet::new(),
            free_capacity: 0,
        }
    }

    pub(super) fn lines(&self) -> &[Segment] {
        &self.entries
    }

    pub(super) fn rooms(&self) -> &[u32] {
        &self.capacities
    }

    pub(super) fn line(&mut self, segment: usize) -> &mut Segment {
        &mut self.entries[segment]
    }

    /// Returns the segment that contains the `sectors` sectors starting at `lbn`.
    pub(super) fn of(&self, lbn: Lbn, sectors: u64) -> Option<usize> {
        let position = self.entries.partition_point(|line| line.first <= lbn);
        let segment = position.checked_sub(1)?;
        let end = lbn.0.checked_add(sectors)?;
        (end <= self.entries[segment].end().0).then_some(segment)
    }

    pub(super) fn free_room(&self) -> u64 {
        self.free_capacity
    }

    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    pub(super) fn is_free(&self, segment: usize) -> bool {
        self.free.contains(&segment)
    }

    /// Marks as free every segment without live blocks, except the one being written.
    pub(super) fn release(&mut self, head: usize) {
        for segment in 0..self.entries.len() {
            if self.entries[segment].live == 0 && segment != head {
                self.put_back(segment);
            }
        }
    }

    pub(super) fn put_back(&mut self, segment: usize) {
        if self.free.insert(segment) {
            self.free_capacity += u64::from(self.capacities[segment]);
        }
    }

    /// Takes a free segment, to be written from its beginning. Returns whether it was free.
    pub(super) fn take(&mut self, segment: usize) -> bool {
        let free = self.free.remove(&segment);
        if free {
            self.free_capacity -= u64::from(self.capacities[segment]);
        }
        free
    }

    /// Returns the first free segment at or after the given position, or the first of all if there
    /// is none. This keeps seeks short.
    pub(super) fn next_free(&self, after: usize) -> Option<usize> {
        let next = self.free.range(after..).next();
        next.or_else(|| self.free.first()).copied()
    }
}
