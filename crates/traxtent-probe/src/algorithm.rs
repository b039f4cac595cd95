//! The algorithms that find track boundaries, by name.

use super::angle;
use super::clock::Clock;
use super::dixtrac::dixtrac;
use super::extraction::{Extraction, ProbeError, TrackSink};
use super::jump::jump;
use super::remapped::remapped_lbns;
use super::scan;
use super::target::Target;
use super::track_end::Search;
use super::tree::tree;
use super::walk::walk;
use traxtent_map::{Algorithm, Region, Verify};

/// The note for drives whose remapped LBNs cannot be listed.
const REMAPPED_UNKNOWN: &str = "remapped sectors are not counted: the drive does not translate addresses, or does not list its defects";

/// Finds the tracks of a region. Only [`Algorithm::Angle`] uses `verify`.
///
/// # Errors
/// Returns an error if no timing method works, if the drive fails or does not respond as the
/// algorithm requires, or if `sink` ends the search; see [`ProbeError`].
pub fn extract(
    algorithm: Algorithm,
    target: &mut dyn Target,
    region: Region,
    verify: Verify,
    sink: &mut TrackSink<'_>,
) -> Result<Extraction, ProbeError> {
    Prober::start(algorithm, target)?.extract(region, verify, sink)
}

/// A drive that is searched region by region. For a timing algorithm, the way to time the drive is
/// determined once.
pub struct Prober<'a> {
    algorithm: Algorithm,
    drive: Ready<'a>,
}

/// A drive prepared for an algorithm.
enum Ready<'a> {
    Translating(&'a mut dyn Target),
    Timed(Box<Clock<'a>>),
}

impl<'a> Prober<'a> {
    /// Prepares the drive. For a timing algorithm, this finds a timing method.
    ///
    /// # Errors
    /// Returns an error if no timing method works, or if the drive fails.
    pub fn start(algorithm: Algorithm, target: &'a mut dyn Target) -> Result<Self, ProbeError> {
        let drive = if algorithm.translates() {
            Ready::Translating(target)
        } else {
            Ready::Timed(Box::new(Clock::start(target)?))
        };
        Ok(Prober { algorithm, drive })
    }

    /// Finds the tracks that begin in a region, each to its end. Only [`Algorithm::Angle`] uses
    /// `verify`.
    ///
    /// # Errors
    /// Returns an error if the drive fails or does not respond as the algorithm requires, or if
    /// `sink` ends the search; see [`ProbeError`].
    pub fn extract(
        &mut self,
        region: Region,
        verify: Verify,
        sink: &mut TrackSink<'_>,
    ) -> Result<Extraction, ProbeError> {
        if let Ready::Timed(clock) = &mut self.drive {
            clock.begin();
        }
        let mut found = match (&mut self.drive, self.algorithm) {
            (Ready::Translating(target), Algorithm::Walk) => {
                walk(*target, region, Search::Binary, sink)
            }
            (Ready::Translating(target), Algorithm::Jump) => jump(*target, region, sink),
            (Ready::Translating(target), Algorithm::Dixtrac) => dixtrac(*target, region, sink),
            (Ready::Translating(target), Algorithm::Tree) => tree(*target, region, sink),
            (Ready::Timed(clock), Algorithm::Scan) => scan::scan(clock, region, sink),
            (Ready::Timed(clock), Algorithm::Angle) => angle::search(clock, region, verify, sink),
            _ => unreachable!("the drive is not prepared for {}", self.algorithm.name()),
        }?;
        let target: &mut dyn Target = match &mut self.drive {
            Ready::Translating(target) => *target,
            Ready::Timed(clock) => &mut *clock.target,
        };
        // The search may have reclassified some of these LBNs since.
        found.unconfirmed_remapped.sort_unstable();
        found.unconfirmed_remapped.dedup();
        found
            .unconfirmed_remapped
            .retain(|lbn| found.remapped.contains(lbn));
        match remapped_lbns(target, region)? {
            Some(moved) => {
                found
                    .unconfirmed_remapped
                    .retain(|lbn| !moved.contains(lbn));
                (found.remapped, found.remapped_complete) = (moved, true);
            }
            None => {
                found.remapped.clear();
                found.notes.push(REMAPPED_UNKNOWN.to_owned());
            }
        }
        if let Some(first) = found.unconfirmed_remapped.first() {
            found.notes.push(format!(
                "groups of sectors that count as remapped by their times alone: {}, the first at LBN {first}; each may \
                 be a track of its own",
                found.unconfirmed_remapped.len()
            ));
        }
        Ok(found)
    }
}
