//! Building a track map track by track, with a confidence for each track.

use super::error::PushError;
use super::pattern::{Measure, RunPattern, Term};
use super::{MapFile, TRACKS_MAX, TrackMap};
use crate::{Confirm, Found};
use traxtent_units::{Lbn, Sectors};

/// A map under construction. Tracks are added in ascending order and without gaps.
#[derive(Clone, Debug, Default)]
pub struct MapBuilder {
    /// The LBN at which the first track begins. Unused while there is no track.
    first: Lbn,
    sizes: RunPattern,
    confidence: RunPattern,
}

/// How the end of each track of a map was confirmed.
#[derive(Clone, Debug)]
pub struct Confidence(pub(super) RunPattern);

impl MapBuilder {
    /// Creates a builder that continues after the tracks of a file.
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
    /// Returns an error if the track does not begin where the previous one ends, if it has no
    /// sectors or ends beyond the highest LBN, or if the map already has [`TRACKS_MAX`] tracks.
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

    /// The number of tracks.
    pub fn len(&self) -> usize {
        self.sizes.extent().count as usize
    }

    /// Returns whether there are no tracks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The first LBN after the last track, or `None` while there is no track.
    pub fn end(&self) -> Option<Lbn> {
        (!self.is_empty()).then(|| self.first + Sectors(self.sizes.extent().sum))
    }

    /// Returns the map and its confidence, or `None` if there are no tracks.
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
    /// Returns a confidence that is the same for all tracks of a map.
    pub fn all(map: &TrackMap, confirm: Confirm) -> Confidence {
        let mut pattern = RunPattern::default();
        pattern.push(confirm as u32, map.len() as u32);
        Confidence(pattern)
    }

    /// Returns how the end of the track at `index` was confirmed.
    pub fn of(&self, index: usize) -> Option<Confirm> {
        let (_, number) = self.0.find(index as u64, Measure::Count)?;
        Some(confirm(number))
    }

    /// Runs of consecutive tracks whose ends were confirmed in the same way, in order, with the
    /// number of tracks in each.
    pub fn runs(&self) -> impl Iterator<Item = (Confirm, u32)> {
        self.0
            .runs()
            .map(|(number, times)| (confirm(number), times))
    }

    /// The number of tracks confirmed in each way: predicted, sampled, tested.
    pub fn counts(&self) -> [u64; 3] {
        let mut counts = [0; 3];
        count(self.0.terms(), 1, &mut counts);
        counts
    }
}

/// Adds the tracks of `terms`, repeated `passes` times, to `counts`, without iterating over
/// repetitions.
fn count(terms: &[Term], passes: u64, counts: &mut [u64; 3]) {
    for term in terms {
        match term {
            Term::Run { number, times } => counts[*number as usize] += passes * u64::from(*times),
            Term::Group(group) => count(&group.terms, passes * u64::from(group.times), counts),
        }
    }
}

/// Confidences are equal if they agree for every track, regardless of how they are stored.
impl PartialEq for Confidence {
    fn eq(&self, other: &Confidence) -> bool {
        self.0.numbers().eq(other.0.numbers())
    }
}

impl Eq for Confidence {}

fn confirm(number: u32) -> Confirm {
    Confirm::ALL[number as usize]
}
