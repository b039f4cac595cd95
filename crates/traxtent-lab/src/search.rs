//! A search for track boundaries: what it finds, what it costs, and where it errs.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use traxtent_core::geometry::Geometry;
use traxtent_core::probe::{Algorithm, Counted, Counts, Found, Region, Target, Verify, extract};
use traxtent_core::units::{Lbn, Span};

use crate::bench::{Bench, LabError};

/// A whole drive searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The tracks found, ascending.
    pub tracks: Vec<Found>,
    /// What was asked of the drive.
    pub counts: Counts,
    /// How long the drive took to answer.
    pub drive_time: Span,
}

impl Search {
    /// Searches a drive at rest. One that times reads gets no translations.
    ///
    /// # Errors
    /// Where the drive baffles the algorithm.
    pub fn run(bench: &Bench, algorithm: Algorithm, verify: Verify) -> Result<Search, LabError> {
        let mut target = bench.target();
        if !algorithm.translates() {
            target = target.without_translation();
        }
        let mut target = Counted::new(target);
        let region = Region::whole(target.identity().capacity);
        let began = target.now();
        let mut tracks = Vec::new();
        extract(algorithm, &mut target, region, verify, &mut |track| {
            tracks.push(track);
            ControlFlow::Continue(())
        })?;
        Ok(Search {
            tracks,
            counts: target.counts(),
            drive_time: target.now().since(began),
        })
    }

    /// The drive's time in minutes.
    pub fn minutes(&self) -> f64 {
        self.drive_time.as_ms() / 60_000.0
    }

    /// Translations a track found.
    pub fn translations_a_track(&self) -> f64 {
        self.counts.translations as f64 / self.tracks.len().max(1) as f64
    }

    /// Boundaries of the drive that were not found, and those found that it does not have.
    ///
    /// Where LBNs at a boundary are kept elsewhere, timing cannot tell to which side they belong, and the
    /// boundary counts as found on either side of them.
    pub fn wrong_boundaries(&self, geometry: &Geometry) -> u64 {
        let truth: BTreeSet<Lbn> = geometry.tracks().map(|track| track.first_lbn).collect();
        let mut missing = truth.clone();
        let mut wrong = 0;
        for track in &self.tracks {
            let lbn = beyond_moved(geometry, track.first_lbn, &truth);
            wrong += u64::from(!missing.remove(&lbn));
        }
        wrong + missing.len() as u64
    }
}

/// The boundary from which nothing but moved LBNs separates `lbn`, or `lbn` itself.
fn beyond_moved(geometry: &Geometry, lbn: Lbn, truth: &BTreeSet<Lbn>) -> Lbn {
    let moved = |lbn: u64| geometry.is_moved(Lbn(lbn));
    let mut up = lbn;
    while !truth.contains(&up) && moved(up.0) {
        up.0 += 1;
    }
    let mut down = lbn;
    while !truth.contains(&down) && down.0 > 0 && moved(down.0 - 1) {
        down.0 -= 1;
    }
    [up, down]
        .into_iter()
        .find(|lbn| truth.contains(lbn))
        .unwrap_or(lbn)
}
