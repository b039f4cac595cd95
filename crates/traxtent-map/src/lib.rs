//! The track map: the LBNs at which tracks begin, in order. Layouts use it; it contains no
//! geometry.
//!
//! - A [`TrackMap`] comes from a drive model, from CSV, from a map file ([`MapFile`]), or track by
//!   track from a probe ([`MapBuilder`]). [`differences`] compares two of them.
//! - [`MapFile`] adds the drive, the origin of the map and the confidence of each track. It is also
//!   the checkpoint of a probe.
//! - [`head`] predicts which of several replicas passes under the head first.
//!
//! # Invariants
//! The tracks of a map are in ascending order, not empty, and without gaps. A map is stored as a
//! repeating pattern. Ten million tracks of a regular drive take a few kilobytes.
#![forbid(unsafe_code)]

mod builder;
mod csv;
mod diff;
mod error;
mod file;
pub mod head;
mod origin;
pub mod pattern;
mod read;
mod write;

pub use builder::{Confidence, MapBuilder};
pub use diff::{MapDifference, Side, differences};
pub use error::{PushError, TrackMapError};
pub use file::{LbnRanges, MapFile, MapSource, ProbeCost, ResumeMismatch, lbn_ranges};
pub use origin::{Algorithm, Confirm, Found, Identity, Region, Verify};
pub use write::seal;

use pattern::{Measure, RunPattern};
use traxtent_units::{Lbn, Sectors};

/// The largest number of tracks in a map.
pub const TRACKS_MAX: usize = 1 << 28;

/// The size of the largest map file that is read from a stream, in bytes.
pub const FILE_BYTES_MAX: u64 = 256 << 20;

/// The text at the beginning of a map file, before its version.
const MAGIC: &str = "traxtent track map";

/// The version of the map file format that this crate writes and reads.
const VERSION: &str = "1";

/// The tracks of a drive, or of part of it, as ranges of LBNs.
#[derive(Clone, Debug)]
pub struct TrackMap {
    /// The LBN at which the first track begins.
    first: Lbn,
    /// The number of LBNs on each track. There is at least one track.
    sizes: RunPattern,
}

/// A track of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedTrack {
    /// Position in the map, from 0.
    pub index: usize,
    /// The lowest LBN.
    pub first_lbn: Lbn,
    /// The number of LBNs.
    pub sectors: Sectors,
}

impl MappedTrack {
    /// The first LBN after the track.
    pub fn end(&self) -> Lbn {
        self.first_lbn + self.sectors
    }
}

impl TrackMap {
    /// Creates the map of consecutive tracks with the given sizes, beginning at LBN 0.
    ///
    /// # Panics
    /// Panics if there is no track, or if a track is empty.
    pub fn from_sizes(track_sizes: impl IntoIterator<Item = u32>) -> TrackMap {
        let mut sizes = RunPattern::default();
        for sectors in track_sizes {
            assert!(sectors > 0, "a track is not empty");
            sizes.push(sectors, 1);
        }
        sizes.fold();
        TrackMap::from_pattern(Lbn(0), sizes)
    }

    /// Creates the map of consecutive tracks with the given sizes, beginning at `first`. No track
    /// may be empty.
    ///
    /// # Panics
    /// Panics if there is no track.
    pub fn from_pattern(first: Lbn, sizes: RunPattern) -> TrackMap {
        assert!(sizes.extent().count > 0, "a map has at least one track");
        TrackMap { first, sizes }
    }

    /// The number of tracks.
    #[expect(clippy::len_without_is_empty, reason = "a map is never empty")]
    pub fn len(&self) -> usize {
        self.sizes.extent().count as usize
    }

    /// The first LBN of the first track.
    pub fn first(&self) -> Lbn {
        self.first
    }

    /// The first LBN after the last track.
    pub fn end(&self) -> Lbn {
        self.first + Sectors(self.sizes.extent().sum)
    }

    /// The tracks in order.
    pub fn tracks(&self) -> impl ExactSizeIterator<Item = MappedTrack> {
        Tracks {
            sizes: self.sizes.numbers(),
            index: 0,
            len: self.len(),
            next: self.first,
        }
    }

    /// Runs of consecutive tracks of one size, in order: the number of sectors per track, and the
    /// number of tracks. Consecutive runs may have the same size.
    pub fn runs(&self) -> impl Iterator<Item = (u32, u32)> {
        self.sizes.runs()
    }

    /// Returns the track that holds an LBN.
    pub fn track_of(&self, lbn: Lbn) -> Option<MappedTrack> {
        self.find(lbn.0.checked_sub(self.first.0)?, Measure::Sum)
    }

    /// Returns the track at a position.
    pub fn track(&self, index: usize) -> Option<MappedTrack> {
        self.find(index as u64, Measure::Count)
    }

    fn find(&self, at: u64, measure: Measure) -> Option<MappedTrack> {
        let (before, sectors) = self.sizes.find(at, measure)?;
        Some(MappedTrack {
            index: before.count as usize,
            first_lbn: self.first + Sectors(before.sum),
            sectors: Sectors(u64::from(sectors)),
        })
    }
}

/// Maps are equal if their tracks are equal, regardless of how they are stored.
impl PartialEq for TrackMap {
    fn eq(&self, other: &TrackMap) -> bool {
        self.first == other.first
            && (self.sizes == other.sizes
                || self.sizes.extent() == other.sizes.extent()
                    && self.sizes.numbers().eq(other.sizes.numbers()))
    }
}

impl Eq for TrackMap {}

struct Tracks<'a> {
    sizes: pattern::Numbers<'a>,
    index: usize,
    len: usize,
    next: Lbn,
}

impl Iterator for Tracks<'_> {
    type Item = MappedTrack;

    fn next(&mut self) -> Option<MappedTrack> {
        let track = MappedTrack {
            index: self.index,
            first_lbn: self.next,
            sectors: Sectors(u64::from(self.sizes.next()?)),
        };
        self.index += 1;
        self.next = track.end();
        Some(track)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.len - self.index;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Tracks<'_> {}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TrackMap, TrackMapError> {
        TrackMap::read_csv(text.as_bytes())
    }

    /// Is a map unchanged after writing and reading, and is the right track found on both sides of
    /// a boundary?
    #[test]
    fn written_and_read() {
        let map =
            read("first_lbn,sectors,cylinder,head\n0,200,0,0\n200,199,0,1\n399,200,1,1\n").unwrap();
        assert_eq!((map.len(), map.end()), (3, Lbn(599)));
        let mut text = Vec::new();
        map.write_csv(&mut text).unwrap();
        assert_eq!(TrackMap::read_csv(&text[..]).unwrap(), map);
        let index = |lbn| map.track_of(Lbn(lbn)).map(|track| track.index);
        assert_eq!(
            [0, 199, 200, 398, 399, 598].map(index),
            [0, 0, 1, 1, 2, 2].map(Some)
        );
        assert_eq!(index(599), None);
    }

    /// Does a map of part of a drive begin at the first track listed?
    #[test]
    fn part_of_a_drive() {
        let map = read("first_lbn,sectors\n1000,50\n1050,60\n").unwrap();
        assert_eq!((map.first(), map.end()), (Lbn(1000), Lbn(1110)));
        assert_eq!(map.track_of(Lbn(999)), None);
        assert_eq!(map.track_of(Lbn(1050)), map.track(1));
        assert_eq!(map.track(1).map(|track| track.first_lbn), Some(Lbn(1050)));
    }

    /// Does the error for each kind of bad line give the line number and the reason?
    #[test]
    fn bad_lines() {
        let long = format!("first_lbn,sectors\n0,200,{}\n", "x".repeat(5000));
        for (text, says) in [
            ("", "line 1: the map has no tracks"),
            ("0,200\n", "line 1: a track map must begin"),
            ("first_lbn,sectors\n0,x\n", "line 2: sectors: \"x\""),
            ("first_lbn,sectors\n0,0\n", "line 2: sectors: 0"),
            (
                "first_lbn,sectors\n0,4294967296\n",
                "line 2: sectors: 4294967296",
            ),
            (
                "first_lbn,sectors\n0,8\n9,8\n",
                "line 3: first_lbn: 9: expected 8, where the previous track ends",
            ),
            (
                "first_lbn,sectors\n18446744073709551615,1\n",
                "line 2: sectors: 1",
            ),
            (&long, "line 2: is longer than 4096 bytes"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
