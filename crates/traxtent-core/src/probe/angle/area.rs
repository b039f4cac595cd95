//! Where tracks are irregular, so that a sample of their boundaries says little of the others.
//!
//! A sample rests on the pattern: what lies between two boundaries that hold is as predicted, unless
//! deviations make up for one another. Where predictions fail often, they do. So a sample is taken
//! only where the pattern is established. Where predictions have failed more than once within
//! [`AROUND`] tracks, every boundary is tested, those of [`BEFORE`] tracks before them included; so
//! are all where predictions fail often over a long way, or where tracks begin without a skew.

use std::collections::VecDeque;

use super::super::algorithm::{Confirm, Found, ProbeError, Verify};
use super::Search;
use super::pattern::Kind;
use super::track::Line;
use crate::units::Lbn;

/// After a prediction that failed, so many tracks are watched for another. Predictions fail in two
/// or three of a thousand tracks of the built-in drives, most of them where zones begin.
pub(super) const AROUND: u64 = 64;

/// Where tracks turn out to be irregular, so many before the failures are tested, too.
pub(super) const BEFORE: usize = 16;

/// A pattern is established once it has held for so many tracks.
const ESTABLISHED: u64 = 32;

/// A drive is irregular if predictions have failed in one of so many of its tracks. The most regular
/// of the random irregular drives has three such tracks in a hundred, the least regular of DiskSim's
/// drives of zones (`barracuda`) one in two hundred.
const REGULAR_TRACKS: u64 = 100;

/// No drive is called irregular for fewer failures than this: its pattern is learned by some.
const FAILURES_MIN: u64 = 4;

/// Failures so many tracks ago count by a third: most drives that are regular later are learned first.
const MEMORY_TRACKS: f64 = 1024.0;

/// A track that has been found and may still be put right.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    pub(super) line: Line,
    pub(super) kind: Kind,
    pub(super) confirm: Confirm,
}

impl Held {
    pub(super) fn found(&self) -> Found {
        Found {
            first_lbn: Lbn(self.line.lbn),
            sectors: self.kind.sectors,
            confirm: self.confirm,
        }
    }
}

/// How well predictions have held.
#[derive(Debug, Default)]
pub(super) struct Area {
    /// How many tracks have been found, and how many of them are known by a sample.
    tracks: u64,
    sampled: u64,
    /// How many predictions have failed, and how many of them of late.
    failures: u64,
    failures_late: f64,
    /// The last two that did: how many tracks had been found then.
    last: Option<u64>,
    before: Option<u64>,
}

impl Area {
    pub(super) fn found(&mut self, confirm: Confirm) {
        self.tracks += 1;
        self.failures_late *= 1.0 - 1.0 / MEMORY_TRACKS;
        self.sampled += u64::from(confirm == Confirm::Sampled);
    }

    /// Takes tracks back that are searched for anew.
    fn lost(&mut self, held: &VecDeque<Held>) {
        let sampled = held.iter().filter(|h| h.confirm == Confirm::Sampled);
        self.sampled -= sampled.count() as u64;
        self.tracks -= held.len() as u64;
    }

    /// Notes that a prediction has failed.
    pub(super) fn surprise(&mut self) {
        self.failures += 1;
        self.failures_late += 1.0;
        (self.before, self.last) = (self.last, Some(self.tracks));
    }

    fn is_irregular(&self) -> bool {
        let near = |at: u64| self.tracks.saturating_sub(at) < AROUND;
        let late = (self.tracks as f64).min(MEMORY_TRACKS);
        let often =
            self.failures >= FAILURES_MIN && self.failures_late * REGULAR_TRACKS as f64 > late;
        self.tracks < ESTABLISHED || self.before.is_some_and(near) || often
    }

    /// How many tracks have been found since the last failure but one.
    fn since_failures(&self) -> usize {
        let since = |at| self.tracks.saturating_sub(at) as usize;
        self.before.map_or(0, since)
    }

    /// Whether predictions have failed all over the drive.
    fn is_irregular_throughout(&self) -> bool {
        self.failures >= FAILURES_MIN && self.failures * REGULAR_TRACKS > self.tracks
    }

    /// How many boundaries of an irregular drive are known by a sample only.
    pub(super) fn doubtful(&self) -> u64 {
        match self.is_irregular_throughout() {
            true => self.sampled,
            false => 0,
        }
    }
}

impl Search<'_, '_> {
    /// Decides how much is to be tested from here on. Where tracks turn out to be irregular, tests those just found
    /// that are known by a sample.
    pub(super) fn look_around(&mut self) -> Result<(), ProbeError> {
        let before = self.verify;
        let pitch = self.pattern.last().map_or(0.0, |last| last.pitch);
        let least = self.pattern.least_skew();
        let is_hidden = least.is_some_and(|skew| skew < self.jump_min(pitch));
        self.verify = match self.asked {
            Verify::Sample if is_hidden || self.area.is_irregular() => Verify::Full,
            asked => asked,
        };
        match (before, self.verify) {
            (Verify::Sample, Verify::Full) => self.test_held(),
            _ => Ok(()),
        }
    }

    /// Tests the boundaries still held that are known by a sample; from the first that fails on, all is searched anew.
    fn test_held(&mut self) -> Result<(), ProbeError> {
        let oldest = self
            .held
            .len()
            .saturating_sub(self.area.since_failures() + BEFORE);
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
        let kinds: Vec<Kind> = again.iter().map(|held| held.kind).collect();
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
