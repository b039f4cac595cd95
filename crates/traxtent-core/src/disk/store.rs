//! A disk's data: the media, the volatile cache before them, and the sectors that cannot be read.
//!
//! Nothing here takes time. A write that fails leaves the cache as it was; what the cache could not
//! write out stays in it, so that a flush can be tried again when there is room.

use std::ops::Range;

use super::cut::{Cut, Fates, Grain};
use super::media::{Media, MediaError};
use super::volatile::{Data, Mark, Volatile};
use crate::intervals::Intervals;

/// Media, cache, and what is wrong with them. Addresses are bytes.
#[derive(Clone, Debug)]
pub(super) struct Store<M> {
    platters: Platters<M>,
    cache: Volatile,
    /// Bytes that the cache has room for.
    room: u64,
}

/// The media, and what of them cannot be read.
#[derive(Clone, Debug)]
struct Platters<M> {
    media: M,
    unreadable: Intervals<()>,
    /// What could not be read and has been written since.
    mended: Vec<Range<u64>>,
}

impl<M: Media> Platters<M> {
    fn put(&mut self, at: u64, data: &Data) -> Result<(), MediaError> {
        match data {
            Data::Bytes(bytes) => self.media.write(at, bytes)?,
            Data::Zeros(length) => self.media.zero(at, *length)?,
        }
        if !self.unreadable.is_empty() {
            let range = at..at + data.length();
            let hurt = self.unreadable.over(&range).map(|(hurt, ())| hurt);
            self.mended.extend(hurt);
            self.unreadable.remove(range);
        }
        Ok(())
    }
}

impl<M: Media> Store<M> {
    pub(super) fn new(media: M, room: u64) -> Store<M> {
        Store {
            platters: Platters {
                media,
                unreadable: Intervals::default(),
                mended: Vec::new(),
            },
            cache: Volatile::default(),
            room,
        }
    }

    pub(super) fn media(&self) -> &M {
        &self.platters.media
    }

    pub(super) fn into_media(self) -> M {
        self.platters.media
    }

    /// Bytes acknowledged and not durable.
    pub(super) fn unflushed(&self) -> u64 {
        self.cache.bytes()
    }

    /// Reads what a host sees: the newest version of each byte.
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

    /// Takes a write that may stay volatile.
    pub(super) fn write_back(&mut self, at: u64, data: Data) -> Result<(), MediaError> {
        if data.length() > self.room {
            return self.write_through(at, &data);
        }
        while self.cache.bytes() + data.length() > self.room && !self.cache.is_empty() {
            self.write_out_oldest(self.cache.mark())?;
        }
        self.cache.push(at, data);
        Ok(())
    }

    /// Takes a write that is durable when this returns, which overtakes older versions of its
    /// bytes, and of no others.
    pub(super) fn write_through(&mut self, at: u64, data: &Data) -> Result<(), MediaError> {
        self.platters.put(at, data)?;
        self.cache.overtake(at..at + data.length());
        Ok(())
    }

    /// How far acknowledged writes go now.
    pub(super) fn mark(&self) -> Mark {
        self.cache.mark()
    }

    /// Makes durable what was acknowledged before the mark.
    pub(super) fn flush(&mut self, before: Mark) -> Result<(), MediaError> {
        while self.write_out_oldest(before)? {}
        self.platters.media.sync()
    }

    /// A barrier for what is on the media already.
    pub(super) fn sync(&mut self) -> Result<(), MediaError> {
        self.platters.media.sync()
    }

    fn write_out_oldest(&mut self, before: Mark) -> Result<bool, MediaError> {
        let Some((at, data)) = self.cache.oldest(before) else {
            return Ok(false);
        };
        self.platters.put(at, data)?;
        self.cache.drop_oldest();
        Ok(true)
    }

    /// Takes the power away while writes are `under_way`: what is not durable meets its fate, and
    /// what is left is all there is. If the medium fails, it is as after a cut at that point.
    pub(super) fn cut(
        &mut self,
        under_way: impl Iterator<Item = (u64, Data)>,
        seed: u64,
        grain: Grain,
    ) -> Result<Cut, MediaError> {
        let mut fates = Fates::new(seed, grain);
        // A write that durable ones have cut into parts counts as that many.
        for (at, data) in self.cache.drain().chain(under_way) {
            for part in fates.of(at..at + data.length()) {
                let left = data.part(part.start - at..part.end - at);
                self.platters.put(part.start, &left)?;
            }
        }
        self.platters.media.sync()?;
        Ok(fates.cut)
    }

    /// What could not be read and has been written since the last call.
    pub(super) fn take_mended(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.platters.mended)
    }

    /// Makes bytes of the media unreadable until they are written.
    pub(super) fn hurt(&mut self, range: Range<u64>) {
        self.platters.unreadable.insert(range, ());
    }

    /// The first byte of a range that cannot be read from the media, and is not in the cache.
    pub(super) fn first_unreadable(&self, range: &Range<u64>) -> Option<u64> {
        let mut hurt = self
            .platters
            .unreadable
            .over(range)
            .map(|(hurt, ())| hurt.start.max(range.start)..hurt.end.min(range.end));
        hurt.find_map(|hurt| self.cache.gaps(hurt).first().map(|gap| gap.start))
    }
}
