//! A disk's data: the media, the volatile cache in front of them, and the sectors that cannot be
//! read.
//!
//! Nothing here takes modelled time. A write that fails does not enter the cache. Data that could
//! not be written out stays in the cache, so a flush can be repeated when there is space.
//!
//! If the media permit it ([`Media::defers_writes`]), a flush copies at most [`FLUSH_PIECE_BYTES`],
//! however many bytes it makes durable. The rest is written out by [`Store::write_out`] and by
//! later writes to the cache, each of which writes out twice its own size. The backlog is therefore
//! gone before the cache is full again, and no single write or flush takes much time.

use std::ops::Range;

use super::cut::{CutSampler, PowerCutResult, TearingUnit};
use super::media::{Media, MediaError};
use super::volatile::{VolatileCache, WriteData, WriteMark, WritePiece};
use traxtent_units::intervals::Intervals;

/// The maximum number of bytes that a flush writes out itself if the media defer writes. Small
/// flushes leave nothing for later.
const FLUSH_PIECE_BYTES: u64 = 64 << 10;

/// The media, the cache, and the unreadable sectors. Addresses are bytes.
#[derive(Clone, Debug)]
pub(super) struct Store<M> {
    media_state: MediaState<M>,
    cache: VolatileCache,
    /// The cache's capacity in bytes.
    room: u64,
}

/// The media, and their unreadable bytes.
#[derive(Clone, Debug)]
struct MediaState<M> {
    media: M,
    unreadable: Intervals<()>,
    /// The parts of unreadable ranges that have since been written.
    rewritten: Vec<Range<u64>>,
}

impl<M: Media> MediaState<M> {
    fn put(&mut self, at: u64, data: &WriteData) -> Result<(), MediaError> {
        let part = 0..data.length();
        self.put_piece(&WritePiece { at, data, part })
    }

    fn put_piece(&mut self, piece: &WritePiece<'_>) -> Result<(), MediaError> {
        let WritePiece { at, data, part } = piece;
        let range = at + part.start..at + part.end;
        match data {
            WriteData::Bytes(bytes) => {
                let bytes = &bytes[part.start as usize..part.end as usize];
                self.media.write(range.start, bytes)?;
            }
            WriteData::Zeros(_) => self.media.zero(range.start, part.end - part.start)?,
        }
        if !self.unreadable.is_empty() {
            let unreadable = self
                .unreadable
                .over(&range)
                .map(|(bad, ())| bad.start.max(range.start)..bad.end.min(range.end));
            self.rewritten.extend(unreadable);
            self.unreadable.remove(range);
        }
        Ok(())
    }
}

impl<M: Media> Store<M> {
    pub(super) fn new(media: M, room: u64) -> Store<M> {
        Store {
            media_state: MediaState {
                media,
                unreadable: Intervals::default(),
                rewritten: Vec::new(),
            },
            cache: VolatileCache::default(),
            room,
        }
    }

    pub(super) fn media(&self) -> &M {
        &self.media_state.media
    }

    /// Returns the media with all durable data that they have room for.
    pub(super) fn into_media(mut self) -> M {
        let _ = self.write_out(u64::MAX);
        self.media_state.media
    }

    /// The number of bytes that are acknowledged but not durable.
    pub(super) fn unflushed(&self) -> u64 {
        self.cache.volatile_bytes()
    }

    /// The number of bytes that are durable but not on the media.
    pub(super) fn backlog(&self) -> u64 {
        self.cache.backlog()
    }

    /// Writes out at most `most` bytes of the backlog. Returns whether any of it remains.
    pub(super) fn write_out(&mut self, most: u64) -> Result<bool, MediaError> {
        let mut left = most;
        while left > 0
            && let Some(piece) = self.cache.oldest_durable(left)
        {
            self.media_state.put_piece(&piece)?;
            let Range { start, end } = piece.part;
            left = left.saturating_sub(end - start);
            self.cache.drop_oldest_until(end);
        }
        Ok(self.cache.backlog() > 0)
    }

    /// Reads the data that a host sees: the newest version of each byte.
    pub(super) fn fetch(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError> {
        if self.cache.is_empty() {
            return self.media_state.media.read(at, into);
        }
        for gap in self.cache.gaps(at..at + into.len() as u64) {
            let place = (gap.start - at) as usize..(gap.end - at) as usize;
            self.media_state.media.read(gap.start, &mut into[place])?;
        }
        self.cache.overlay(at, into);
        Ok(())
    }

    /// Accepts a write that may stay volatile.
    pub(super) fn write_back(&mut self, at: u64, data: WriteData) -> Result<(), MediaError> {
        if data.length() > self.room {
            return self.write_through(at, &data);
        }
        if let Err(error) = self.write_out(2 * data.length())
            && self.cache.bytes() + data.length() > self.room
        {
            return Err(error);
        }
        while self.cache.volatile_bytes() + data.length() > self.room {
            self.write_out_oldest(self.cache.mark())?;
        }
        self.cache.push(at, data);
        Ok(())
    }

    /// Accepts a write that is durable when this returns. It replaces older versions of its own
    /// bytes only.
    pub(super) fn write_through(&mut self, at: u64, data: &WriteData) -> Result<(), MediaError> {
        self.media_state.put(at, data)?;
        self.cache.discard_range(at..at + data.length());
        Ok(())
    }

    /// Returns a mark after all writes acknowledged so far.
    pub(super) fn mark(&self) -> WriteMark {
        self.cache.mark()
    }

    /// Makes durable the writes that were acknowledged before the mark.
    pub(super) fn flush(&mut self, before: WriteMark) -> Result<(), MediaError> {
        if self.defers_writes() {
            self.cache.make_durable(before);
            self.write_out(FLUSH_PIECE_BYTES)?;
        } else {
            while self.write_out_oldest(before)? {}
        }
        self.media_state.media.sync()
    }

    /// Returns whether a flush may leave data for later. It leaves none while there are unreadable
    /// sectors, because those that were written can be read again once the flush has completed.
    fn defers_writes(&self) -> bool {
        let (bytes, writes) = (self.cache.bytes(), self.cache.count() as u64);
        self.media_state.unreadable.is_empty()
            && self.media_state.media.defers_writes(bytes, writes)
    }

    /// A barrier for data that is already on the media.
    pub(super) fn sync(&mut self) -> Result<(), MediaError> {
        self.media_state.media.sync()
    }

    /// Writes out all parts of the oldest write before the mark. Returns whether there was one.
    fn write_out_oldest(&mut self, before: WriteMark) -> Result<bool, MediaError> {
        let Some(end) = self.cache.after_oldest(before) else {
            return Ok(false);
        };
        while let Some(piece) = self.cache.oldest(end, u64::MAX) {
            self.media_state.put_piece(&piece)?;
            let end = piece.part.end;
            self.cache.drop_oldest_until(end);
        }
        Ok(true)
    }

    /// Cuts the power while writes are `outstanding`. The seed determines what remains of data that
    /// is not durable, unless the media fail.
    pub(super) fn cut(
        &mut self,
        outstanding: impl Iterator<Item = (u64, WriteData)>,
        seed: u64,
        tearing_unit: TearingUnit,
    ) -> Result<PowerCutResult, MediaError> {
        self.write_out(u64::MAX)?;
        let mut sampler = CutSampler::new(seed, tearing_unit);
        let outstanding = outstanding.map(|write| vec![write]);
        for write in self.cache.drain().chain(outstanding) {
            let parts = write.iter().map(|(at, data)| *at..at + data.length());
            let parts: Vec<Range<u64>> = parts.collect();
            for left in sampler.of(&parts) {
                let (at, data) = &write[parts.partition_point(|part| part.end <= left.start)];
                let data = data.part(left.start - at..left.end - at);
                self.media_state.put(left.start, &data)?;
            }
        }
        self.media_state.media.sync()?;
        Ok(sampler.cut)
    }

    /// Returns the parts of unreadable ranges that have been written since the last call.
    pub(super) fn take_rewritten(&mut self) -> Vec<Range<u64>> {
        std::mem::take(&mut self.media_state.rewritten)
    }

    /// Returns whether every byte of a range can be read from the media.
    pub(super) fn is_readable(&self, range: &Range<u64>) -> bool {
        self.media_state.unreadable.over(range).next().is_none()
    }

    /// Makes bytes of the media unreadable until they are written. Data that a flush has left for
    /// later counts as written before.
    pub(super) fn make_unreadable(&mut self, range: Range<u64>) {
        // If there is no room for the data, it stays in the cache and can be read.
        let _ = self.write_out(u64::MAX);
        self.media_state.unreadable.insert(range, ());
    }

    /// Returns the first byte of a range that is unreadable on the media and not in the cache.
    pub(super) fn first_unreadable(&self, range: &Range<u64>) -> Option<u64> {
        let mut unreadable = self
            .media_state
            .unreadable
            .over(range)
            .map(|(unreadable, ())| {
                unreadable.start.max(range.start)..unreadable.end.min(range.end)
            });
        unreadable.find_map(|unreadable| self.cache.gaps(unreadable).first().map(|gap| gap.start))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::media::MemoryMedia;
    use super::*;
    use traxtent_units::Rng;

    /// Memory that counts the bytes written.
    #[derive(Clone, Debug, Default)]
    struct Counting {
        memory: MemoryMedia,
        defers: bool,
        written: Cell<u64>,
        /// The number of bytes that may still be written.
        left: Cell<Option<u64>>,
    }

    impl Counting {
        fn count(&self, bytes: u64) -> Result<(), MediaError> {
            if let Some(left) = self.left.get() {
                let left = left.checked_sub(bytes).ok_or(MediaError::NoSpace)?;
                self.left.set(Some(left));
            }
            self.written.set(self.written.get() + bytes);
            Ok(())
        }
    }

    impl Media for Counting {
        fn read(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError> {
            self.memory.read(at, into)
        }

        fn write(&mut self, at: u64, data: &[u8]) -> Result<(), MediaError> {
            self.count(data.len() as u64)?;
            self.memory.write(at, data)
        }

        fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError> {
            self.memory.zero(at, length)
        }

        fn sync(&mut self) -> Result<(), MediaError> {
            Ok(())
        }

        fn defers_writes(&self, _: u64, _: u64) -> bool {
            self.defers
        }
    }

    const TEARING_UNIT: TearingUnit = TearingUnit {
        unit: 4096,
        first: 0,
    };
    const ROOM_BYTES: u64 = 1 << 20;
    const SPACE_BYTES: u64 = 3 << 19;

    fn store(defers: bool) -> Store<Counting> {
        let media = Counting {
            defers,
            ..Counting::default()
        };
        Store::new(media, ROOM_BYTES)
    }

    fn bytes(stamp: u64, length: u64) -> WriteData {
        WriteData::Bytes(stamp.to_le_bytes().repeat(length as usize / 8))
    }

    fn contents(store: &Store<Counting>) -> Vec<u8> {
        let mut all = vec![0; SPACE_BYTES as usize];
        store.fetch(0, &mut all).unwrap();
        all
    }

    /// Does a store that leaves flushed data for later behave like one that does not? Both must
    /// return the same data, count the same bytes as volatile, and be the same after power cuts.
    #[test]
    fn deferring_changes_no_data() {
        let (mut longest, mut left_by_flushes) = (0, 0);
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut eager, mut deferring) = (store(false), store(true));
            let mut marks = vec![eager.mark()];
            for stamp in 1..60 {
                let at = 512 * rng.below(SPACE_BYTES / 512 - 256);
                let length = 512 * (1 + rng.below(255));
                let both = [&mut eager, &mut deferring];
                match rng.below(20) {
                    0..10 => both.map(|store| store.write_back(at, bytes(stamp, length)).unwrap()),
                    10 => both.map(|store| store.write_back(at, WriteData::Zeros(length)).unwrap()),
                    11 => both.map(|store| {
                        store.write_through(at, &bytes(stamp, length)).unwrap();
                    }),
                    12 => both.map(|store| store.make_unreadable(at..at + 4096)),
                    13 => {
                        let cuts = both.map(|store| store.cut([].into_iter(), stamp, TEARING_UNIT));
                        assert_eq!(cuts[0], cuts[1], "seed {seed}, stamp {stamp}");
                        [(), ()]
                    }
                    14..16 => {
                        deferring.write_out(rng.below(200_000)).unwrap();
                        [(), ()]
                    }
                    _ => {
                        // A flush covers the writes before it was submitted.
                        let mark = marks[rng.below(marks.len() as u64) as usize];
                        let flushed = both.map(|store| store.flush(mark).unwrap());
                        left_by_flushes += u64::from(deferring.backlog() > 0);
                        flushed
                    }
                };
                marks.push(eager.mark());
                assert_eq!(eager.unflushed(), deferring.unflushed(), "seed {seed}");
                assert_eq!(
                    eager.take_rewritten(),
                    deferring.take_rewritten(),
                    "seed {seed}"
                );
                assert!(contents(&eager) == contents(&deferring), "seed {seed}");
                for at in (0..SPACE_BYTES).step_by(4096) {
                    let of = |store: &Store<Counting>| store.first_unreadable(&(at..at + 4096));
                    assert_eq!(of(&eager), of(&deferring), "seed {seed}, byte {at}");
                }
                longest = longest.max(deferring.backlog());
            }
            let mut ends = [eager, deferring].map(|store| store.into_media().memory);
            let mut all = [(), ()].map(|()| vec![0; SPACE_BYTES as usize]);
            for (medium, all) in ends.iter_mut().zip(&mut all) {
                medium.read(0, all).unwrap();
            }
            assert!(all[0] == all[1], "seed {seed}");
        }
        assert!(
            longest > 4 * FLUSH_PIECE_BYTES && longest <= ROOM_BYTES,
            "{longest}"
        );
        assert!(left_by_flushes > 20, "{left_by_flushes}");
    }

    /// Is the work of a flush bounded, is that of a write proportional to its size, and is nothing
    /// left for later when the cache is full again?
    #[test]
    fn no_operation_does_the_work_of_others() {
        const LENGTH: u64 = 16 << 10;
        let mut store = store(true);
        let work = |store: &Store<Counting>| store.media().written.take();
        for _ in 0..3 {
            for number in 0..ROOM_BYTES / LENGTH {
                store.write_back(number * LENGTH, bytes(1, LENGTH)).unwrap();
                assert!(work(&store) <= 2 * LENGTH);
            }
            assert_eq!((store.unflushed(), store.backlog()), (ROOM_BYTES, 0));
            store.flush(store.mark()).unwrap();
            assert_eq!(work(&store), FLUSH_PIECE_BYTES);
            assert_eq!(
                (store.unflushed(), store.backlog()),
                (0, ROOM_BYTES - FLUSH_PIECE_BYTES)
            );
        }
        assert!(store.write_out(1).unwrap());
        assert_eq!(work(&store), 1);
    }

    /// If the media become full after a flush has left data for later, is that data kept, also
    /// by a power cut, and do writes fail only once the cache is full?
    #[test]
    fn data_left_for_later_survives_full_media() {
        let mut store = store(true);
        store.write_back(0, bytes(1, ROOM_BYTES)).unwrap();
        store.flush(store.mark()).unwrap();
        store.media_state.media.left.set(Some(1000));
        assert_eq!(store.write_out(u64::MAX), Err(MediaError::NoSpace));
        store.write_back(0, bytes(2, FLUSH_PIECE_BYTES)).unwrap();
        let full = store.write_back(FLUSH_PIECE_BYTES, bytes(3, 512));
        assert_eq!(full, Err(MediaError::NoSpace));
        store.cut([].into_iter(), 1, TEARING_UNIT).unwrap_err();
        let mut all = vec![0; ROOM_BYTES as usize];
        store.fetch(0, &mut all).unwrap();
        let of = |data: &WriteData| match data {
            WriteData::Bytes(bytes) => bytes.clone(),
            WriteData::Zeros(_) => unreachable!("the test writes bytes"),
        };
        let kept = of(&bytes(1, ROOM_BYTES));
        assert!(all[FLUSH_PIECE_BYTES as usize..] == kept[FLUSH_PIECE_BYTES as usize..]);
        store.media_state.media.left.set(None);
        store.flush(store.mark()).unwrap();
        assert!(!store.write_out(u64::MAX).unwrap());
        store.cut([].into_iter(), 1, TEARING_UNIT).unwrap();
        store.fetch(0, &mut all).unwrap();
        assert!(all[..FLUSH_PIECE_BYTES as usize] == of(&bytes(2, FLUSH_PIECE_BYTES)));
        assert!(all[FLUSH_PIECE_BYTES as usize..] == kept[FLUSH_PIECE_BYTES as usize..]);
    }
}
