//! Detecting irregular tracks, where a sample of the boundaries says little about the others.
//!
//! A sample relies on the pattern: everything between two boundaries that hold is as predicted,
//! unless deviations compensate each other. Where predictions fail often, such compensation occurs.
//! Sampling is therefore used only where the pattern is established. If predictions have failed
//! more than once within [`AROUND`] tracks, every boundary is tested, including those of the
//! [`BEFORE`] tracks before the failures. The same applies if predictions fail often over a long
//! distance, or if tracks begin without a skew.

use std::collections::VecDeque;

use super::super::extraction::ProbeError;
use super::Search;
use super::pattern::TrackKind;
use super::track::Line;
use traxtent_map::{Confirm, Found, Verify};
use traxtent_units::Lbn;

/// The number of tracks after a failed prediction within which another failure counts. Predictions
/// fail in two or three out of a thousand tracks of the built-in drives, most of them where zones
/// begin.
pub(super) const AROUND: u64 = 64;

/// The number of tracks before the failures that are tested too, once tracks turn out to be
/// irregular.
pub(super) const BEFORE: usize = 16;

/// The number of tracks that must be found before a pattern counts as established.
const ESTABLISHED: u64 = 32;

/// A drive is irregular if predictions have failed in more than one of this many tracks. The most
/// regular of the random irregular drives has three such tracks in a hundred. The least regular of
/// DiskSim's zoned drives (`barracuda`) has one in two hundred.
const REGULAR_TRACKS: u64 = 100;

/// The smallest number of failures of an irregular drive. A few failures are needed to learn any
/// pattern.
const FAILURES_MIN: u64 = 4;

/// The number of tracks after which a failure's weight has decayed to about a third. Most drives
/// that are regular later have failures at first.
const MEMORY_TRACKS: f64 = 1024.0;

/// A track that has been found and may still be corrected.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeldTrack {
    pub(super) line: Line,
    pub(super) kind: TrackKind,
    pub(super) confirm: Confirm,
}

impl HeldTrack {
    pub(super) fn found(&self) -> Found {
        Found {
            first_lbn: Lbn(self.line.lbn),
            sectors: self.kind.sectors,
            confirm: self.confirm,
        }
    }
}

/// Statistics on how well predictions have held.
#[derive(Debug, Default)]
pub(super) struct Regularity {
    /// The number of tracks found.
    tracks: u64,
    /// The number of these tracks that are confirmed by a sample only.
    sampled: u64,
    /// The number of failed predictions.
    failures: u64,
    /// The number of recent failures, which decays with each track found.
    failures_recent: f64,
    /// The number of tracks that had been found when a prediction last failed.
    last: Option<u64>,
    /// The same for the failure before that.
    before: Option<u64>,
}

impl Regularity {
    pub(super) fn found(&mut self, confirm: Confirm) {
        self.tracks += 1;
        self.failures_recent *= 1.0 - 1.0 / MEMORY_TRACKS;
        self.sampled += u64::from(confirm == Confirm::Sampled);
    }

    /// Subtracts tracks that are searched again.
    fn lost(&mut self, held: &VecDeque<HeldTrack>) {
        let sampled = held.iter().filter(|h| h.confirm == Confirm::Sampled);
        self.sampled -= sampled.count() as u64;
        self.tracks -= held.len() as u64;
    }

    /// Records a failed prediction.
    pub(super) fn prediction_failed(&mut self) {
        self.failures += 1;
        self.failures_recent += 1.0;
        (self.before, self.last) = (self.last, Some(self.tracks));
    }

    fn is_irregular(&self) -> bool {
        let near = |at: u64| self.tracks.saturating_sub(at) < AROUND;
        let recent = (self.tracks as f64).min(MEMORY_TRACKS);
        let often =
            self.failures >= FAILURES_MIN && self.failures_recent * REGULAR_TRACKS as f64 > recent;
        self.tracks < ESTABLISHED || self.before.is_some_and(near) || often
    }

    /// The number of tracks found since the last failure but one, or 0 if there is none.
    fn tracks_since_failures(&self) -> usize {
        let since = |at| self.tracks.saturating_sub(at) as usize;
        self.before.map_or(0, since)
    }

    /// Returns whether predictions have failed often over the whole search.
    fn is_irregular_throughout(&self) -> bool {
        self.failures >= FAILURES_MIN && self.failures * REGULAR_TRACKS > self.tracks
    }

    /// The number of boundaries of an irregular drive that are confirmed by a sample only.
    pub(super) fn untested_irregular(&self) -> u64 {
        if self.is_irregular_throughout() {
            self.sampled
        } else {
            0
        }
    }
}

impl Search<'_, '_> {
    /// Decides how many boundaries are tested from here on. If tracks turn out to be irregular,
    /// tests the recent ones that are confirmed by a sample only.
    pub(super) fn adjust_verification(&mut self) -> Result<(), ProbeError> {
        let before = self.verify;
        let pitch = self.pattern.last().map_or(0.0, |last| last.pitch);
        let least = self.pattern.least_skew();
        let is_hidden = least.is_some_and(|skew| skew < self.jump_min(pitch));
        self.verify = match self.requested_verify {
            Verify::Sample if is_hidden || self.area.is_irregular() => Verify::Full,
            verify => verify,
        };
        match (before, self.verify) {
            (Verify::Sample, Verify::Full) => self.test_held(),
            _ => Ok(()),
        }
    }

    /// Tests the held boundaries that are confirmed by a sample only. The tracks from the first one
    /// that fails are searched again.
    fn test_held(&mut self) -> Result<(), ProbeError> {
        let oldest = self
            .held
            .len()
            .saturating_sub(self.area.tracks_since_failures() + BEFORE);
        let sampled = |at: &usize| self.held[*at].confirm == Confirm::Sampled;
        let Some(from) = (oldest..self.held.len()).find(sampled) else {
            return Ok(());
        };
        let again = self.held.split_off(from);
        self.first = again[0].line.lbn;
        self.angle = again[0].line.angle;
        self.pattern.forget_last(again.len());
        self.recent
            .truncate(self.recent.len().saturating_sub(again.len()));
        self.area.lost(&again);
        let kinds: Vec<TrackKind> = again.iter().map(|held| held.kind).collect();
        for kinds in kinds.chunks(self.reach_max()) {
            let tested = self.test(kinds)?;
            for (kind, confirm) in tested.known {
                self.keep(kind, confirm)?;
            }
            if !tested.whole {
                break;
            }
        }
        Ok(())
    }
}
