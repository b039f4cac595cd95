//! A map as it grows, track by track, and how sure each of its tracks is.

use super::error::PushError;
use super::pattern::{Measure, Pattern, Term};
use super::{MapFile, TRACKS_MAX, TrackMap};
use crate::probe::{Confirm, Found};
use crate::units::{Lbn, Sectors};

/// A map that is being made. Tracks come in ascending order, without gaps.
#[derive(Clone, Debug, Default)]
pub struct MapBuilder {
    /// Where the first track begins; without meaning before there is one.
    first: Lbn,
    sizes: Pattern,
    confidence: Pattern,
}

/// How the end of each track of a map is known.
#[derive(Clone, Debug)]
pub struct Confidence(pub(super) Pattern);

impl MapBuilder {
    /// Goes on behind the tracks of a file.
    pub fn resume(file: &MapFile) -> MapBuilder {
        MapBuilder {
            first: file.tracks.first,
            sizes: file.tracks.sizes.clone(),
            confidence: file.confidence.0.clone(),
        }
    }

    /// Adds a track.
    ///
    /// # Errors
    /// If it does not begin where the one before it ends, has no sectors, or is one too many.
    pub fn push(&mut self, track: Found) -> Result<(), PushError> {
        let expected = self.end().unwrap_or(track.first_lbn);
        if track.first_lbn != expected {
            return Err(PushError::NotNext {
                first_lbn: track.first_lbn,
                expected,
            });
        }
        let sectors = track.sectors;
        if sectors == 0 || expected.0.checked_add(u64::from(sectors)).is_none() {
            return Err(PushError::Sectors { sectors });
        }
        if self.len() == TRACKS_MAX {
            return Err(PushError::TooMany);
        }
        if self.is_empty() {
            self.first = track.first_lbn;
        }
        self.sizes.push(sectors, 1);
        self.confidence.push(track.confirm as u32, 1);
        Ok(())
    }

    /// How many tracks there are.
    pub fn len(&self) -> usize {
        self.sizes.extent().count as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The LBN behind the last track, once there is one.
    pub fn end(&self) -> Option<Lbn> {
        (!self.is_empty()).then(|| self.first + Sectors(self.sizes.extent().sum))
    }

    /// The map, and how sure it is; nothing if there are no tracks.
    pub fn finish(mut self) -> Option<(TrackMap, Confidence)> {
        self.sizes.fold();
        self.confidence.fold();
        let map = TrackMap {
            first: self.first,
            sizes: self.sizes,
        };
        (map.len() > 0).then_some((map, Confidence(self.confidence)))
    }
}

impl Confidence {
    /// The same for all tracks of a map.
    pub fn all(map: &TrackMap, confirm: Confirm) -> Confidence {
        let mut pattern = Pattern::default();
        pattern.push(confirm as u32, map.len() as u32);
        Confidence(pattern)
    }

    /// How the end of the track at a position is known.
    pub fn of(&self, index: usize) -> Option<Confirm> {
        let (_, number) = self.0.find(index as u64, Measure::Count)?;
        Some(confirm(number))
    }

    /// Runs of tracks whose ends are known alike, in order, and how many tracks each has.
    pub fn runs(&self) -> impl Iterator<Item = (Confirm, u32)> {
        self.0
            .runs()
            .map(|(number, times)| (confirm(number), times))
    }

    /// How many tracks are known in each way: predicted, sampled, tested.
    pub fn counts(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        count(self.0.terms(), 1, &mut counts);
        counts
    }
}

/// Counts without walking through what repeats.
fn count(terms: &[Term], passes: u64, counts: &mut [u64; 3]) {
    for term in terms {
        match term {
            Term::Run { number, times } => counts[*number as usize] += passes * u64::from(*times),
            Term::Group(group) => count(&group.terms, passes * u64::from(group.times), counts),
        }
    }
}

/// Confidences are equal if they are so of each track, however they are kept.
impl PartialEq for Confidence {
    fn eq(&self, other: &Confidence) -> bool {
        self.0.numbers().eq(other.0.numbers())
    }
}

impl Eq for Confidence {}

fn confirm(number: u32) -> Confirm {
    Confirm::ALL[number as usize]
}
