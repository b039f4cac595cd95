//! The drive's buffer: segments of consecutive sectors, reused in least-recently-used order.
//!
//! The choice of a segment for a request, and the conditions for a hit, follow the segmented cache
//! of DiskSim 4.0 (manual, section 3.5.3). The model stores which sectors are in the buffer, but
//! not their data.

use std::ops::Range;

use crate::profile::CacheSpec;
use traxtent_units::{Lbn, Sectors, SimTime};

/// The state of a segment, in ascending order of suitability for reuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Sectors that are not yet on the media.
    Dirty,
    /// Sectors, and more are being read into it.
    Reading,
    /// Sectors that are the same on the media.
    Clean,
    /// Nothing.
    Empty,
}

/// Consecutive sectors in the buffer: `[start, end)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) start: Lbn,
    pub(super) end: Lbn,
    pub(super) state: State,
    /// Whether the last access that filled it was a write.
    pub(super) written: bool,
    /// The LBN at which read-ahead for this segment ends.
    pub(super) ahead_limit: Lbn,
    /// Read-ahead is not interrupted before it has reached this LBN.
    pub(super) ahead_least: Lbn,
    /// The end of the last read that set the bounds of its read-ahead.
    pub(super) delivered: Lbn,
    /// The number of consecutive such reads that each began where the previous one ended.
    streak: u32,
    /// For a dirty segment: the highest end of a write in it that is already on the media; at first
    /// the start of its first write.
    pub(super) drained: Lbn,
    /// The time until which the bus needs it.
    pub(super) busy_until: SimTime,
    /// The number of writes accepted into it and not yet on the media.
    pub(super) writes: u32,
    used: u64,
}

/// The place in the buffer where a read finds its sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadPlace {
    /// All of them in one segment.
    Whole(usize),
    /// The first of them in a segment, or about to be read into it.
    Partial(usize),
    /// The first of them is in no segment that reads can use. The read fills this segment.
    Miss(usize),
    /// Among data that is not yet on the media and must be written first, or no segment can be
    /// used.
    Blocked,
}

/// The place in the buffer for the sectors of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WritePlace {
    /// At the end of a dirty segment.
    Append(usize),
    /// In this segment, replacing its contents.
    Fresh(usize),
    /// Nowhere at present.
    Blocked,
}

#[derive(Clone, Debug)]
pub(super) struct Cache {
    segments: Vec<Segment>,
    spec: CacheSpec,
    dirty: u32,
    clock: u64,
    /// Whether a read that begins at the end of the read-ahead so far continues with it.
    joins: bool,
}

/// The number of consecutive reads, each beginning where the previous one ended, after which the
/// drive recognizes a stream.
const STREAM_READS: u32 = 2;

/// The number of bits of a rank for the time of last use. A drive does not serve 2^60 requests.
const USE_BITS: u32 = 60;

/// The highest rank of a segment with suitability 0.
const UNSUITABLE: i64 = 0;

/// The index of a dedicated write segment.
const WRITE_SEGMENT: usize = 0;

impl Segment {
    /// Creates a segment without sectors that begins at `start`.
    fn empty(start: Lbn) -> Segment {
        Segment {
            start,
            end: start,
            state: State::Empty,
            written: false,
            ahead_limit: Lbn(0),
            ahead_least: Lbn(0),
            delivered: Lbn(0),
            streak: 0,
            drained: Lbn(0),
            busy_until: SimTime::ZERO,
            writes: 0,
            used: 0,
        }
    }
}

impl Cache {
    pub(super) fn new(spec: &CacheSpec) -> Cache {
        let empty = Segment::empty(Lbn(0));
        Cache {
            segments: vec![empty; spec.segments as usize],
            spec: spec.clone(),
            dirty: 0,
            clock: 0,
            joins: true,
        }
    }

    /// Enables or disables hits for reads. If hits are disabled, the buffer drops contents that can
    /// be read again from the media.
    pub(super) fn set_enabled(&mut self, enabled: bool) {
        self.spec.enabled = enabled;
        if !enabled {
            let held = [State::Clean, State::Reading];
            for s in self.segments.iter_mut().filter(|s| held.contains(&s.state)) {
                s.state = State::Empty;
            }
        }
    }

    /// Resets the bounds of read-ahead.
    pub(super) fn forget_read_ahead(&mut self) {
        for s in &mut self.segments {
            (s.ahead_limit, s.ahead_least) = (Lbn(0), Lbn(0));
        }
    }

    pub(super) fn segment(&self, index: usize) -> &Segment {
        &self.segments[index]
    }

    /// Sets whether a read that begins at the end of the read-ahead so far continues with it.
    pub(super) fn set_joins(&mut self, joins: bool) {
        self.joins = joins;
    }

    /// Returns where a read of `[lbn, end)` finds its sectors at `now`.
    pub(super) fn find_read(&self, now: SimTime, lbn: Lbn, end: Lbn) -> ReadPlace {
        let first = self.first_for_reads();
        let mut best = (0, u64::MAX, ReadPlace::Blocked);
        for (i, s) in self.near(lbn, end) {
            if s.state == State::Dirty && i < first && overlaps(s, lbn, end) {
                return ReadPlace::Blocked;
            } else if i < first {
                continue;
            }
            let (value, place) = if (s.start..s.end).contains(&lbn) {
                let hits = self.spec.enabled && (self.spec.read_hits_on_written || !s.written);
                match (s.state, s.end >= end) {
                    (State::Dirty, true) if hits => (11, ReadPlace::Whole(i)),
                    (State::Dirty, _) => return ReadPlace::Blocked,
                    (State::Reading, true) if hits => (9, ReadPlace::Whole(i)),
                    (State::Reading, false) if hits => (5, ReadPlace::Partial(i)),
                    (State::Clean, true) if hits => (8, ReadPlace::Whole(i)),
                    (State::Clean, false) if hits => (4, ReadPlace::Partial(i)),
                    _ => continue,
                }
            } else if s.state == State::Dirty && overlaps(s, lbn, end) {
                return ReadPlace::Blocked;
            } else if s.state == State::Reading && s.end == lbn && self.joins && self.spec.enabled {
                (5, ReadPlace::Partial(i))
            } else {
                continue;
            };
            if value > best.0 || (value == best.0 && s.used < best.1) {
                best = (value, s.used, place);
            }
        }
        if best.0 > 0 {
            return best.2;
        }
        // If the bus still needs all segments, the oldest that is not dirty is reused nevertheless.
        let usable = first..self.segments.len();
        self.reusable(now, usable, |_| false)
            .or_else(|| self.oldest_clean(first))
            .map_or(ReadPlace::Blocked, ReadPlace::Miss)
    }

    /// Returns where a write of `[lbn, end)` can be placed at `now`.
    pub(super) fn find_write(&self, now: SimTime, lbn: Lbn, end: Lbn) -> WritePlace {
        let room = self.dirty < self.spec.write_segments;
        let usable = if self.spec.dedicated_write_segment {
            0..WRITE_SEGMENT + 1
        } else {
            0..self.segments.len()
        };
        let mut best = (0, u64::MAX, WritePlace::Blocked);
        for (i, s) in self.near(lbn, end).filter(|(i, _)| usable.contains(i)) {
            let overlap = overlaps(s, lbn, end);
            let (value, place) = match s.state {
                State::Dirty
                    if self.spec.combine_writes
                        && s.end == lbn
                        && lbn.0 - s.drained.0 < u64::from(self.spec.segment_sectors) =>
                {
                    (6, WritePlace::Append(i))
                }
                State::Dirty if overlap => return WritePlace::Blocked,
                // The write invalidates its sectors in any case.
                State::Clean
                    if overlap && room && s.busy_until <= now && !self.spec.writes_update =>
                {
                    (4, WritePlace::Fresh(i))
                }
                _ => continue,
            };
            if value > best.0 || (value == best.0 && s.used < best.1) {
                best = (value, s.used, place);
            }
        }
        if best.0 > 0 || !room {
            return best.2;
        }
        // Reads can still use sectors that the write updates.
        let is_updated = |s: &Segment| self.spec.writes_update && overlaps(s, lbn, end);
        self.reusable(now, usable, is_updated)
            .map_or(WritePlace::Blocked, WritePlace::Fresh)
    }

    /// Iterates over the segments that hold sectors of `[lbn, end)` or end at `lbn`.
    #[inline]
    fn near(&self, lbn: Lbn, end: Lbn) -> impl Iterator<Item = (usize, &Segment)> {
        let is_near = move |s: &Segment| (lbn <= s.end) & (s.start < end);
        // Usually there are none. The search has no branches, because processors cannot predict on
        // which side of a segment a request is.
        let any = self.segments.iter().fold(false, |any, s| any | is_near(s));
        let segments = if any { &self.segments[..] } else { &[] };
        let segments = segments.iter().enumerate();
        segments.filter(move |(_, s)| is_near(s) && s.state != State::Empty)
    }

    /// Returns the segment in `usable` that is best reused for other sectors at `now`: by its
    /// state, then by the time since its last use. `None` if the bus or the media still need all of
    /// them. A segment that `keep` selects ranks with those that are being read into.
    #[inline]
    fn reusable(
        &self,
        now: SimTime,
        usable: Range<usize>,
        keep: impl Fn(&Segment) -> bool,
    ) -> Option<usize> {
        let suitability = |s: &Segment| {
            let is_free = s.busy_until <= now || s.state == State::Empty;
            match (is_free, keep(s)) {
                (false, _) => State::Dirty,
                (true, true) => State::Reading,
                (true, false) => s.state,
            }
        };
        // Usually, the best segment by its state alone is neither busy nor to be kept.
        let index = self.best(usable.clone(), |s| s.state)?;
        let s = &self.segments[index];
        if suitability(s) == s.state {
            return Some(index);
        }
        self.best(usable, suitability)
    }

    /// Returns the first of the segments in `usable` with the highest suitability and, among those,
    /// the longest time since its last use. `None` if all have the lowest suitability.
    #[inline(always)]
    fn best(&self, usable: Range<usize>, suitability: impl Fn(&Segment) -> State) -> Option<usize> {
        let (mut best, mut index) = (UNSUITABLE, 0);
        for (i, s) in usable.clone().zip(&self.segments[usable]) {
            let rank = ((suitability(s) as i64) << USE_BITS) - s.used as i64;
            // There are no branches, because the order of use is random.
            index = if rank > best { i } else { index };
            best = best.max(rank);
        }
        (best > UNSUITABLE).then_some(index)
    }

    /// The index of the first segment that reads can use.
    fn first_for_reads(&self) -> usize {
        if self.spec.dedicated_write_segment {
            WRITE_SEGMENT + 1
        } else {
            0
        }
    }

    /// Returns the least recently used segment from index `first` on that is not dirty.
    fn oldest_clean(&self, first: usize) -> Option<usize> {
        let segments = self.segments.iter().enumerate().skip(first);
        let clean = segments.filter(|(_, s)| s.state != State::Dirty);
        clean.min_by_key(|(_, s)| s.used).map(|(i, _)| i)
    }

    /// Returns the segment to reuse for a write if the bus still needs all of them.
    pub(super) fn oldest_for_write(&self) -> usize {
        if self.spec.dedicated_write_segment {
            return WRITE_SEGMENT;
        }
        self.oldest_clean(0).unwrap_or(WRITE_SEGMENT)
    }

    /// Returns whether the segment is the most recently used.
    pub(super) fn is_newest(&self, index: usize) -> bool {
        self.segments[index].used == self.clock
    }

    fn touch(&mut self, index: usize) -> &mut Segment {
        self.clock += 1;
        self.segments[index].used = self.clock;
        &mut self.segments[index]
    }

    /// Empties a segment for a read that begins at `start`.
    pub(super) fn begin_read(&mut self, index: usize, start: Lbn) {
        let s = self.touch(index);
        *s = Segment {
            state: State::Reading,
            used: s.used,
            ..Segment::empty(start)
        };
    }

    /// Marks a segment as used by a read that finds sectors in it.
    pub(super) fn hit(&mut self, index: usize) {
        self.touch(index);
    }

    /// Records that a segment holds all sectors from its start up to `end`. If it exceeds its size,
    /// the lowest sectors are dropped.
    pub(super) fn fill_to(&mut self, index: usize, end: Lbn) {
        let size = u64::from(self.spec.segment_sectors);
        let s = &mut self.segments[index];
        s.end = s.end.max(end);
        s.start = s.start.max(Lbn(s.end.0.saturating_sub(size)));
    }

    /// Records that sectors before the wanted ones are also in the buffer.
    pub(super) fn extend_front(&mut self, index: usize, start: Lbn) {
        let s = &mut self.segments[index];
        s.start = s.start.min(start);
    }

    /// Reserves a segment for the bus until the given time.
    pub(super) fn hold(&mut self, index: usize, until: SimTime) {
        let s = &mut self.segments[index];
        s.busy_until = s.busy_until.max(until);
    }

    /// Raises the bounds of read-ahead into a segment to at least `least` and `limit`.
    pub(super) fn bound_ahead(&mut self, index: usize, least: Lbn, limit: Lbn) {
        let s = &mut self.segments[index];
        s.ahead_least = s.ahead_least.max(least);
        s.ahead_limit = s.ahead_limit.max(limit);
    }

    /// Records a read of `[lbn, end)` that the segment served or that filled it. If the reads are a
    /// stream, read-ahead stops once the segment is full of sectors that have not been requested
    /// yet.
    pub(super) fn deliver(&mut self, index: usize, lbn: Lbn, end: Lbn) {
        let s = &mut self.segments[index];
        s.streak = if lbn == s.delivered { s.streak + 1 } else { 0 };
        if s.streak >= STREAM_READS {
            let full = end + Sectors(u64::from(self.spec.segment_sectors));
            s.ahead_limit = s.ahead_limit.min(full).max(s.end);
        }
        s.delivered = end;
    }

    /// Marks the beginning or the end of reading into a segment.
    pub(super) fn set_reading(&mut self, index: usize, reading: bool) {
        let enabled = self.spec.enabled;
        let s = &mut self.segments[index];
        match (s.state, reading) {
            (State::Clean, true) => s.state = State::Reading,
            (State::Reading, false) if enabled => s.state = State::Clean,
            (State::Reading, false) => s.state = State::Empty,
            _ => {}
        }
    }

    /// Drops the sectors of a segment before `lbn`, which have been delivered.
    pub(super) fn drop_before(&mut self, index: usize, lbn: Lbn) {
        let s = &mut self.segments[index];
        s.start = s.start.max(lbn.min(s.end));
    }

    /// Accepts the sectors `[lbn, end)` of a write into a segment, and returns its index.
    pub(super) fn accept(&mut self, place: WritePlace, lbn: Lbn, end: Lbn) -> usize {
        let index = match place {
            WritePlace::Append(i) => i,
            WritePlace::Fresh(i) => {
                self.dirty += 1;
                let s = &mut self.segments[i];
                (s.start, s.end, s.drained, s.state, s.written) =
                    (lbn, lbn, lbn, State::Dirty, true);
                (s.ahead_limit, s.ahead_least, s.writes) = (Lbn(0), Lbn(0), 0);
                i
            }
            WritePlace::Blocked => unreachable!("a blocked write is not accepted"),
        };
        let stop = self.spec.read_ahead.stop_on_write_hit;
        for (i, other) in self.segments.iter_mut().enumerate() {
            let is_stale = match other.state {
                _ if i == index => false,
                State::Clean => !self.spec.writes_update && overlaps(other, lbn, end),
                State::Reading => stop && overlaps(other, lbn, end),
                State::Empty | State::Dirty => false,
            };
            if is_stale {
                other.state = State::Empty;
            } else if other.state == State::Reading && stop {
                let is_about_to_read = (other.end..other.ahead_limit).contains(&lbn);
                if is_about_to_read {
                    other.state = State::Clean;
                }
            }
        }
        let s = self.touch(index);
        s.writes += 1;
        self.fill_to(index, end);
        index
    }

    /// Records that a write that ends at `end` is on the media.
    pub(super) fn drain(&mut self, index: usize, end: Lbn) {
        let keep = self.spec.enabled && self.spec.read_hits_on_written;
        let s = &mut self.segments[index];
        s.drained = s.drained.max(end);
        s.writes -= 1;
        if s.writes == 0 {
            s.state = if keep { State::Clean } else { State::Empty };
            self.dirty -= 1;
        }
    }

    /// Returns whether one segment holds all sectors of `[lbn, end)` and will write them.
    pub(super) fn will_write(&self, lbn: Lbn, end: Lbn) -> bool {
        self.segments
            .iter()
            .any(|s| s.state == State::Dirty && s.start <= lbn && end <= s.end)
    }

    /// Returns whether all sectors of `[lbn, end)` are in one segment.
    pub(super) fn holds(&self, lbn: Lbn, end: Lbn) -> bool {
        lbn >= end
            || self
                .segments
                .iter()
                .any(|s| s.state != State::Empty && s.start <= lbn && end <= s.end)
    }
}

/// Returns whether a segment holds sectors of `[lbn, end)`.
#[inline]
fn overlaps(s: &Segment, lbn: Lbn, end: Lbn) -> bool {
    intersect(s.start.0..s.end.0, lbn.0..end.0) && s.state != State::Empty
}

/// Returns whether `b.start < a.end` and `a.start < b.end`. `b` must not be empty. A single
/// comparison replaces these two: processors can predict that most ranges do not overlap, but not
/// which of the two comes first.
#[inline]
fn intersect(a: Range<u64>, b: Range<u64>) -> bool {
    let lengths = (a.end - a.start) + (b.end - b.start);
    (b.end - 1).wrapping_sub(a.start) < lengths - 1
}
