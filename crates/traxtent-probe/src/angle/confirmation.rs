//! Confirming a searched track by a second search at a later time.
//!
//! A search takes the boundary from its own readings. On a noisy clock, one disturbance of the host
//! can delay all readings that show a boundary, or a remapped LBN: they follow one another within
//! milliseconds, and may be late by the same time. Therefore the search is repeated once the
//! disturbance has ended. A track counts only if two searches found it, and an LBN counts as
//! remapped only if both of these searches found it remapped.

use super::super::extraction::ProbeError;
use super::pattern::TrackKind;
use super::{Search, skew_tolerance};
use traxtent_units::Lbn;
use traxtent_units::turns::wrap;

/// The largest number of searches for one track until two of them agree.
const SEARCHES_MAX: usize = 6;

/// The result of one search.
struct SearchedTrack {
    kind: TrackKind,
    /// The LBNs that it found to be remapped.
    remapped: Vec<Lbn>,
}

impl Search<'_, '_> {
    /// Runs a search for the track at `self.first`, which returns the track and the angle of the
    /// next track's first sector. On a noisy clock, repeats it at later times until two searches
    /// agree.
    pub(super) fn find_confirmed(
        &mut self,
        mut search: impl FnMut(&mut Self) -> Result<(TrackKind, f64), ProbeError>,
    ) -> Result<(TrackKind, f64), ProbeError> {
        if !self.clock.is_noisy() {
            return search(self);
        }
        let start = self.angle;
        let mut before: Vec<SearchedTrack> = Vec::new();
        let mut failure = None;
        for attempt in 0..SEARCHES_MAX {
            if attempt > 0 {
                self.clock.wait_out_disturbance();
                self.angle = start;
            }
            let found = search(self);
            let mut remapped = self.take_remapped();
            let (kind, next) = match found {
                Ok(found) => found,
                Err(error @ ProbeError::Inconsistent { .. }) => {
                    failure = Some(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let tolerance = skew_tolerance(self.clock.sigma, kind.pitch);
            let agrees = |other: &&SearchedTrack| {
                other.kind.sectors == kind.sectors
                    && wrap(other.kind.skew - kind.skew).abs() <= tolerance
            };
            if let Some(other) = before.iter().find(agrees) {
                remapped.retain(|lbn| other.remapped.contains(lbn));
                self.result.remapped.extend(remapped);
                return Ok((kind, next));
            }
            before.push(SearchedTrack { kind, remapped });
        }
        Err(failure.unwrap_or_else(|| {
            self.inconsistent("searches at different times found different tracks")
        }))
    }

    /// Removes the LBNs that the current search has found to be remapped from the result, and
    /// returns them.
    fn take_remapped(&mut self) -> Vec<Lbn> {
        let first = Lbn(self.first);
        let all = std::mem::take(&mut self.result.remapped);
        let (current, earlier) = all.into_iter().partition(|lbn| *lbn >= first);
        self.result.remapped = earlier;
        current
    }
}
