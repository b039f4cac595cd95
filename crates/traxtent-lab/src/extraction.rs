//! Finding track boundaries (paper T, section 4.1).
//!
//! A translation takes the default `scsi.translate_ms` of 2 ms. This is about the value that
//! follows from papers T and Q.

use traxtent_probe::{Algorithm, Verify};

use crate::bench::{Bench, LabError};
use crate::search::Search;

/// Finds boundaries by read timing alone and verifies every one. Returns the drive time in minutes,
/// and the number of boundaries missed or invented.
///
/// # Errors
/// Returns an error if the algorithm fails on the drive.
pub fn by_timing(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let angle = Search::run(bench, Algorithm::Angle, Verify::Full)?;
    let wrong = angle.wrong_boundaries(&bench.geometry);
    Ok(vec![angle.minutes(), wrong as f64])
}

/// Finds boundaries by translation with `walk`, which needs no expertise, and with `tree`, our own
/// algorithm. Returns the translations per track and the drive time in minutes of `walk`, the
/// translations per track of `tree`, and the number of boundaries that the two missed or invented
/// in total.
///
/// # Errors
/// Returns an error if an algorithm fails on the drive.
pub fn by_translation(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let walk = Search::run(bench, Algorithm::Walk, Verify::None)?;
    let tree = Search::run(bench, Algorithm::Tree, Verify::None)?;
    let wrong = walk.wrong_boundaries(&bench.geometry) + tree.wrong_boundaries(&bench.geometry);
    Ok(vec![
        walk.translations_per_track(),
        walk.minutes(),
        tree.translations_per_track(),
        wrong as f64,
    ])
}

/// Finds boundaries by DIXtrac's five steps. Returns the drive time in minutes, the number of
/// translations, and the number of boundaries missed or invented.
///
/// # Errors
/// Returns an error if the algorithm fails on the drive.
pub fn by_expertise(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let dixtrac = Search::run(bench, Algorithm::Dixtrac, Verify::None)?;
    let wrong = dixtrac.wrong_boundaries(&bench.geometry);
    Ok(vec![
        dixtrac.minutes(),
        dixtrac.counts.translations as f64,
        wrong as f64,
    ])
}
