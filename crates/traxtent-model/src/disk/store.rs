//! A disk's data: the media, the volatile cache in front of them, and the sectors that cannot be
//! read.
//!
//! Nothing here takes modelled time. A write that fails leaves the cache unchanged. Data that could
//! not be written out stays in the cache, so a flush can be repeated when there is space.

use std::ops::Range;

use super::cut::{CutSampler, PowerCutResult, TearingUnit};
use super::media::{Media, MediaError};
use super::volatile::{VolatileCache, WriteData, WriteMark};
use traxtent_units::intervals::Intervals;

/// The media, the cache, and the unreadable sectors. Addresses are bytes.
#[derive(Clone, Debug)]
pub(super) struct Store<M> {
    platters: MediaState<M>,
    cache: VolatileCache,
    /// The cache's capacity in bytes.
    room: u64,
}

/// The media, and their unreadable bytes.
#[derive(Clone, Debug)]
struct MediaState<M> {
    media: M,
    unreadable: Intervals<()>,
    /// Ranges that were unreadable and have since been written.
    rewritten: Vec<Range<u64>>,
}

impl<M: Media> MediaState<M> {
    fn put(&mut self, at: u64, data: &WriteData) -> Result<(), MediaError> {
        match data {
            WriteData::Bytes(bytes) => self.media.write(at, bytes)?,
            WriteData::Zeros(length) => self.media.zero(at, *length)?,
        }
        if !self.unreadable.is_empty() {
            let range = at..at + data.length();
            let unreadable = self
                .unreadable
                .over(&range)
                .map(|(unreadable, ())| unreadable);
            self.rewritten.extend(unreadable);
            self.unreadable.remove(range);
        }
        Ok(())
    }
}

impl<M: Media> Store<M> {
    pub(super) fn new(media: M, room: u64) -> Store<M> {
        Store {
            platters: MediaState {
                media,
                unreadable: Intervals::default(),
                rewritten: Vec::new(),
            },
            cache: VolatileCache::default(),
            room,
        }
    }

    pub(super) fn media(&self) -> &M {
        &self.platters.media
    }

    pub(super) fn into_media(self) -> M {
        self.platters.media
    }

    /// The number of bytes that are acknowledged but not durable.
    pub(super) fn unflushed(&self) -> u64 {
        self.cache.bytes()
    }

    /// Reads the data that a host sees: the newest version of each byte.
    pub(super) fn fetch(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError> {
        if self.cache.is_empty() {
            return self.platters.media.read(at, into);
        }
        for gap in self.cache.gaps(at..at + into.len() as u64) {
            let place = (gap.start - at) as usize..(gap.end - at) as usize;
            self.platters.media.read(gap.start, &mut into[place])?;
        }
        self.cache.overlay(at, into);
        Ok(())
    }

    /// Accepts a write that may stay volatile.
    pub(super) fn write_back(&mut self, at: u64, data: WriteData) -> Result<(), MediaError> {
        if data.length() > self.room {
            return self.write_through(at, &data);
        }
        while self.cache.bytes() + data.length() > self.room && !self.cache.is_empty() {
            self.write_out_oldest(self.cache.mark())?;
        }
        self.cache.push(at, data);
        Ok(())
    }

    /// Accepts a write that is durable when this returns. It replaces older versions of its own
    /// bytes only.
    pub(super) fn write_through(&mut self, at: u64, data: &WriteData) -> Result<(), MediaError> {
        self.platters.put(at, data)?;
        self.cache.discard_range(at..at + data.length());
        Ok(())
    }

    /// Returns a mark after all writes acknowledged so far.
    pub(super) fn mark(&self) -> WriteMark {
        self.cache.mark()
    }

    /// Makes durable the writes that were acknowledged before the mark.
    pub(super) fn flush(&mut self, before: WriteMark) -> Result<(), MediaError> {
        while self.write_out_oldest(before)? {}
        self.platters.media.sync()
    }

    /// A barrier for data that is already on the media.
    pub(super) fn sync(&mut self) -> Result<(), MediaError> {
        self.platters.media.sync()
    }

    fn write_out_oldest(&mut self, before: WriteMark) -> Result<bool, MediaError> {
        let Some((at, data)) = self.cache.oldest(before) else {
            return Ok(false);
        };
        self.platters.put(at, data)?;
        self.cache.drop_oldest();
        Ok(true)
    }

    /// Cuts the power while writes are `outstanding`. The seed determines what remains of data that
    /// is not durable. If the media fail, the contents are those after a cut at that point.
    pub(super) fn cut(
        &mut self,
        outstanding: impl Iterator<Item = (u64, WriteData)>,
        seed: u64,
        grain: TearingUnit,
    ) -> Result<PowerCutResult, MediaError> {
        let mut sampler = CutSampler::new(seed, grain);
        // A write that durable writes have split counts once per part.
        for (at, data) in self.cache.drain().chain(outstanding) {
            for part in sampler.of(at..at + data.length()) {
                let left = data.part(part.start - at..part.end - at);
                self.platters.put(part.start, &left)?;
            }
        }
        self.platters.media.sync()?;
        Ok(sampler.cut)
    }

    /// Returns the ranges that were unreadable and have been written since the last call.
    pub(super) fn take_fixed(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.platters.rewritten)
    }

    /// Makes bytes of the media unreadable until they are written.
    pub(super) fn make_unreadable(&mut self, range: Range<u64>) {
        self.platters.unreadable.insert(range, ());
    }

    /// Returns the first byte of a range that cannot be read from the media and is not in the
    /// cache.
    pub(super) fn first_unreadable(&self, range: &Range<u64>) -> Option<u64> {
        let mut unreadable = self
            .platters
            .unreadable
            .over(range)
            .map(|(unreadable, ())| {
                unreadable.start.max(range.start)..unreadable.end.min(range.end)
            });
        unreadable.find_map(|unreadable| self.cache.gaps(unreadable).first().map(|gap| gap.start))
    }
}
