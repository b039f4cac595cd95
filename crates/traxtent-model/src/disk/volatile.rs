//! The data of the volatile write cache: writes that are complete for the host but not yet on the
//! media.
//!
//! The model of *data* deliberately differs from the model of *time*. In the timing model,
//! write-back ([`crate::drive`]) brings a write to the media as soon as the arm is free. Here a
//! write stays volatile until a flush makes it durable, a durable write of the same sectors
//! replaces it, or newer writes need its space. A drive promises no more than that.
//! Software that survives power cuts here thus also survives them on drives that write later than
//! the model. The capacity is that of the profile's write segments; the oldest write is evicted
//! first.
//!
//! Every version of a sector is kept until it is written out or replaced by a durable one, because
//! a power cut may leave any of them.
//!
//! A flush may mark its writes durable and leave most of them here, so that the work of one flush
//! is bounded. These writes, the backlog, are written out in pieces later, oldest first. They take
//! none of the volatile capacity, and a power cut keeps them.

use std::collections::BTreeMap;
use std::ops::Range;

use traxtent_units::intervals::Intervals;

/// The contents of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum WriteData {
    /// These bytes.
    Bytes(Vec<u8>),
    /// This number of zeros.
    Zeros(u64),
}

impl WriteData {
    pub(super) fn length(&self) -> u64 {
        match self {
            WriteData::Bytes(bytes) => bytes.len() as u64,
            WriteData::Zeros(length) => *length,
        }
    }

    /// The bytes of `part`, counted from the beginning of the data.
    pub(super) fn part(&self, part: Range<u64>) -> WriteData {
        match self {
            WriteData::Bytes(bytes) => {
                WriteData::Bytes(bytes[part.start as usize..part.end as usize].to_vec())
            }
            WriteData::Zeros(_) => WriteData::Zeros(part.end - part.start),
        }
    }

    /// The length of a piece that follows the first `from` bytes: at most `most` bytes, or all that
    /// remain if they are zeros, which need not be copied.
    fn piece_length(&self, from: u64, most: u64) -> u64 {
        match self {
            WriteData::Bytes(bytes) => most.min(bytes.len() as u64 - from),
            WriteData::Zeros(length) => length - from,
        }
    }

    fn copy_to(&self, from: u64, into: &mut [u8]) {
        match self {
            WriteData::Bytes(bytes) => {
                into.copy_from_slice(&bytes[from as usize..from as usize + into.len()]);
            }
            WriteData::Zeros(_) => into.fill(0),
        }
    }
}

/// A position in the sequence of acknowledged writes: those before it have a lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WriteMark(u64);

/// Acknowledged writes that are not on the media, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct VolatileCache {
    /// Keyed by number and address. A write is in several parts if durable writes have replaced
    /// some of it.
    writes: BTreeMap<(u64, u64), WriteData>,
    /// The newest write of each byte.
    newest: Intervals<u64>,
    bytes: u64,
    next: u64,
    /// The first write that is not durable. Those before it are the backlog.
    first_volatile: u64,
    /// The number of bytes in the backlog.
    backlog: u64,
    /// The number of bytes of the oldest write that are on the media already, which the other
    /// counts exclude. Only a write of the backlog is written out in pieces.
    begun: u64,
}

/// A piece of a write.
#[derive(Debug)]
pub(super) struct WritePiece<'a> {
    /// The first byte of the write.
    pub(super) at: u64,
    pub(super) data: &'a WriteData,
    /// The piece, counted from the beginning of the write.
    pub(super) part: Range<u64>,
}

impl VolatileCache {
    /// Adds a write, which becomes the newest.
    pub(super) fn push(&mut self, at: u64, data: WriteData) {
        self.newest.insert(at..at + data.length(), self.next);
        self.bytes += data.length();
        self.writes.insert((self.next, at), data);
        self.next += 1;
    }

    /// Returns the mark after all writes so far.
    pub(super) fn mark(&self) -> WriteMark {
        WriteMark(self.next)
    }

    /// The number of bytes that are cached, including older versions of the same sectors.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of these bytes that are not durable.
    pub(super) fn volatile_bytes(&self) -> u64 {
        self.bytes - self.backlog
    }

    /// The number of these bytes that are durable, but not written out.
    pub(super) fn backlog(&self) -> u64 {
        self.backlog
    }

    /// The number of writes that are cached.
    pub(super) fn count(&self) -> usize {
        self.writes.len()
    }

    /// Makes the writes before the mark durable. The work depends only on the number of writes
    /// after it.
    pub(super) fn make_durable(&mut self, before: WriteMark) {
        if self.first_volatile < before.0 {
            self.first_volatile = before.0;
            let after = self.writes.range((before.0, 0)..);
            self.backlog = self.bytes - after.map(|(_, data)| data.length()).sum::<u64>();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the mark after the oldest write, if that write is before `before`.
    pub(super) fn after_oldest(&self, before: WriteMark) -> Option<WriteMark> {
        let (&(number, _), _) = self.writes.first_key_value()?;
        (number < before.0).then_some(WriteMark(number + 1))
    }

    /// Returns the next piece of the oldest write, if that is before the mark. `most` limits the
    /// piece unless it is zeros.
    pub(super) fn oldest(&self, before: WriteMark, most: u64) -> Option<WritePiece<'_>> {
        let (&(number, at), data) = self.writes.first_key_value()?;
        let part = self.begun..self.begun + data.piece_length(self.begun, most);
        (number < before.0).then_some(WritePiece { at, data, part })
    }

    /// Returns the next piece of the backlog.
    pub(super) fn oldest_durable(&self, most: u64) -> Option<WritePiece<'_>> {
        self.oldest(WriteMark(self.first_volatile), most)
    }

    /// Notes that the oldest write is on the media up to `end`, counted from its beginning.
    pub(super) fn drop_oldest_until(&mut self, end: u64) {
        let Some((&(number, _), data)) = self.writes.first_key_value() else {
            return;
        };
        let is_whole = data.length() == end;
        self.forget(number, end - self.begun);
        self.begun = end;
        if is_whole {
            self.drop_oldest();
        }
    }

    /// Drops the oldest write. Its bytes have already been subtracted.
    fn drop_oldest(&mut self) {
        let Some(((number, at), data)) = self.writes.pop_first() else {
            return;
        };
        self.begun = 0;
        let whole = at..at + data.length();
        let visible: Vec<_> = self
            .newest
            .over(&whole)
            .filter(|(_, newest)| *newest == number)
            .collect();
        for (part, _) in visible {
            self.newest
                .remove(part.start.max(whole.start)..part.end.min(whole.end));
        }
    }

    /// Subtracts bytes of a write.
    fn forget(&mut self, number: u64, bytes: u64) {
        self.bytes -= bytes;
        if number < self.first_volatile {
            self.backlog -= bytes;
        }
    }

    /// Drops every version of a range that a durable write has replaced.
    pub(super) fn discard_range(&mut self, range: Range<u64>) {
        if self.newest.over(&range).next().is_none() {
            return;
        }
        self.newest.remove(range.clone());
        // The oldest write may lose its beginning. All that remains of it is written out again.
        self.bytes += self.begun;
        self.backlog += self.begun;
        self.begun = 0;
        let hit: Vec<_> = self
            .writes
            .iter()
            .filter(|((_, at), data)| *at < range.end && range.start < at + data.length())
            .map(|(&key, _)| key)
            .collect();
        for (number, at) in hit {
            let Some(data) = self.writes.remove(&(number, at)) else {
                continue;
            };
            let end = at + data.length();
            self.forget(number, range.end.min(end) - range.start.max(at));
            if at < range.start {
                let head = data.part(0..range.start - at);
                self.writes.insert((number, at), head);
            }
            if range.end < end {
                let tail = data.part(range.end - at..end - at);
                self.writes.insert((number, range.end), tail);
            }
        }
    }

    /// The parts of `range` that are not in the cache.
    pub(super) fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let mut gaps = Vec::new();
        let mut from = range.start;
        for (covered, _) in self.newest.over(&range) {
            if from < covered.start {
                gaps.push(from..covered.start);
            }
            from = covered.end;
        }
        if from < range.end {
            gaps.push(from..range.end);
        }
        gaps
    }

    /// Copies the newest versions over data that was read from the media at byte `at`.
    pub(super) fn overlay(&self, at: u64, into: &mut [u8]) {
        let range = at..at + into.len() as u64;
        for (part, number) in self.newest.over(&range) {
            let part = part.start.max(range.start)..part.end.min(range.end);
            let write = self.writes.range(..=(number, part.start)).next_back();
            let Some((&(_, begins), data)) = write else {
                unreachable!("the newest version of a byte is kept");
            };
            let place = (part.start - at) as usize..(part.end - at) as usize;
            data.copy_to(part.start - begins, &mut into[place]);
        }
    }

    /// Removes all writes and returns them, oldest first. Each consists of its parts, in ascending
    /// order, as address and contents.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Vec<(u64, WriteData)>> + use<> {
        self.newest = Intervals::default();
        (self.bytes, self.backlog, self.begun) = (0, 0, 0);
        let mut parts = std::mem::take(&mut self.writes).into_iter().peekable();
        std::iter::from_fn(move || {
            let ((number, at), data) = parts.next()?;
            let mut write = vec![(at, data)];
            while let Some(((_, at), data)) = parts.next_if(|((next, _), _)| *next == number) {
                write.push((at, data));
            }
            Some(write)
        })
    }
}
