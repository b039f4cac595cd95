//! A search for track boundaries: its result, its cost, and the number of wrong boundaries.

use std::ops::ControlFlow;

use traxtent_model::geometry::Geometry;
use traxtent_probe::{
    Algorithm, Found, ObservedTarget, Region, RequestCounts, Target, Verify, extract,
};
use traxtent_units::Span;

use crate::bench::{Bench, LabError};
use crate::blind::{RemapTolerance, compare};

/// The result of a search of a whole drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Search {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The tracks found, ascending.
    pub tracks: Vec<Found>,
    /// The numbers of requests and translations.
    pub counts: RequestCounts,
    /// The time that passed on the drive.
    pub drive_time: Span,
}

impl Search {
    /// Searches a drive at rest. An algorithm that times reads cannot use translations.
    ///
    /// # Errors
    /// Returns an error if the algorithm fails on the drive.
    pub fn run(bench: &Bench, algorithm: Algorithm, verify: Verify) -> Result<Search, LabError> {
        let mut target = bench.target();
        if !algorithm.translates() {
            target = target.without_translation();
        }
        let mut target = ObservedTarget::new(target, RequestCounts::default());
        let region = Region::whole(target.identity().capacity);
        let began = target.now();
        let mut tracks = Vec::new();
        extract(algorithm, &mut target, region, verify, &mut |track| {
            tracks.push(track);
            ControlFlow::Continue(())
        })?;
        Ok(Search {
            algorithm,
            tracks,
            counts: target.observer,
            drive_time: target.now().since(began),
        })
    }

    /// The time that passed on the drive, in minutes.
    pub fn minutes(&self) -> f64 {
        self.drive_time.as_ms() / 60_000.0
    }

    /// The number of translations per track found.
    pub fn translations_per_track(&self) -> f64 {
        self.counts.translations as f64 / self.tracks.len().max(1) as f64
    }

    /// The number of boundaries that were missed or invented.
    pub fn wrong_boundaries(&self, geometry: &Geometry) -> u64 {
        let bounds = self.tracks.iter().map(|track| track.first_lbn);
        let differences = compare(bounds, geometry, RemapTolerance::of(self.algorithm));
        (differences.missing.len() + differences.additional.len()) as u64
    }
}
