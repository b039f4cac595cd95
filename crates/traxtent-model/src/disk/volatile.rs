//! The data of the volatile write cache: writes that are complete for the host but not yet on the
//! media.
//!
//! The model of *data* deliberately differs from the model of *time*. In the timing model,
//! write-back ([`crate::drive`]) brings a write to the media as soon as the arm is free. Here a
//! write stays volatile until something makes it durable: a flush, a write with force unit access
//! to the same sectors, or newer writes that need its space. A drive promises no more than that.
//! Software that survives power cuts here thus also survives them on drives that write later than
//! the model. The capacity is that of the profile's write segments; the oldest write is evicted
//! first.
//!
//! Every version of a sector is kept until it is written out or replaced by a durable one, because
//! a power cut may leave any of them.

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

    /// The number of bytes that are not on the media, including older versions of the same sectors.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Returns the oldest write, if it is before the mark.
    pub(super) fn oldest(&self, before: WriteMark) -> Option<(u64, &WriteData)> {
        let (&(number, at), data) = self.writes.first_key_value()?;
        (number < before.0).then_some((at, data))
    }

    /// Drops the oldest write, which is now on the media.
    pub(super) fn drop_oldest(&mut self) {
        let Some(((number, at), data)) = self.writes.pop_first() else {
            return;
        };
        self.bytes -= data.length();
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

    /// Drops every version of a range that a durable write has replaced.
    pub(super) fn discard_range(&mut self, range: Range<u64>) {
        if self.newest.over(&range).next().is_none() {
            return;
        }
        self.newest.remove(range.clone());
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
            self.bytes -= range.end.min(end) - range.start.max(at);
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

    /// The parts of `range` that are not volatile.
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

    /// Removes all writes and returns them, oldest first, as address and contents.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, WriteData)> + use<> {
        self.newest = Intervals::default();
        self.bytes = 0;
        let writes = std::mem::take(&mut self.writes);
        writes.into_iter().map(|((_, at), data)| (at, data))
    }
}
