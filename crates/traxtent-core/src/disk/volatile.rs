//! The volatile write cache as data: writes that a host thinks done and the media do not have.
//!
//! What the model of *data* says differs from what the model of *time* says on purpose. The timing
//! model's write-back ([`crate::drive`]) brings a write to the media as soon as the arm is free.
//! Here a write stays volatile until something makes it durable: a flush, a write with force unit
//! access to the same sectors, or newer writes that need its room. That is all that a drive
//! promises, so software that survives power cuts here survives them on drives that write later
//! than ours. The room is that of the profile's write segments; the oldest write goes first.
//!
//! Every version of a sector is kept until it is written out or overtaken by a durable one: a
//! power cut may leave any of them.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::intervals::Intervals;

/// What a write leaves on its sectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Data {
    /// These bytes.
    Bytes(Vec<u8>),
    /// So many zeros.
    Zeros(u64),
}

impl Data {
    pub(super) fn length(&self) -> u64 {
        match self {
            Data::Bytes(bytes) => bytes.len() as u64,
            Data::Zeros(length) => *length,
        }
    }

    /// The bytes of `part`, counted from the beginning of the data.
    pub(super) fn part(&self, part: Range<u64>) -> Data {
        match self {
            Data::Bytes(bytes) => {
                Data::Bytes(bytes[part.start as usize..part.end as usize].to_vec())
            }
            Data::Zeros(_) => Data::Zeros(part.end - part.start),
        }
    }

    fn copy_to(&self, from: u64, into: &mut [u8]) {
        match self {
            Data::Bytes(bytes) => {
                into.copy_from_slice(&bytes[from as usize..from as usize + into.len()]);
            }
            Data::Zeros(_) => into.fill(0),
        }
    }
}

/// How far acknowledged writes go: those before this mark have a lower number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mark(u64);

/// Acknowledged writes that are not on the media, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Volatile {
    /// By number and place. A write is in several parts where durable ones have overtaken it.
    writes: BTreeMap<(u64, u64), Data>,
    /// Of each byte, the newest write.
    newest: Intervals<u64>,
    bytes: u64,
    next: u64,
}

impl Volatile {
    /// Adds a write, which is the newest then.
    pub(super) fn push(&mut self, at: u64, data: Data) {
        self.newest.insert(at..at + data.length(), self.next);
        self.bytes += data.length();
        self.writes.insert((self.next, at), data);
        self.next += 1;
    }

    /// The mark behind all writes so far.
    pub(super) fn mark(&self) -> Mark {
        Mark(self.next)
    }

    /// How many bytes are not on the media, older versions of the same sectors counted too.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// The oldest write before a mark.
    pub(super) fn oldest(&self, before: Mark) -> Option<(u64, &Data)> {
        let (&(number, at), data) = self.writes.first_key_value()?;
        (number < before.0).then_some((at, data))
    }

    /// Drops the oldest write, which is on the media now.
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

    /// Drops every version of a range: a durable write has overtaken them.
    pub(super) fn overtake(&mut self, range: Range<u64>) {
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

    /// Lays the newest versions over what the media hold from byte `at` on.
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

    /// Takes all writes out, oldest first: where each begins, and what it leaves there.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = (u64, Data)> + use<> {
        self.newest = Intervals::default();
        self.bytes = 0;
        let writes = std::mem::take(&mut self.writes);
        writes.into_iter().map(|((_, at), data)| (at, data))
    }
}
