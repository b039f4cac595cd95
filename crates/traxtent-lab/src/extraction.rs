//! Finding track boundaries (paper T, section 4.1).
//!
//! What a translation costs is the targets' 2 ms, about what both papers come to.

use traxtent_core::probe::{Algorithm, Verify};

use crate::bench::{Bench, LabError};
use crate::search::Search;

/// By read timing alone, every boundary verified: drive time in minutes, boundaries missed or invented.
///
/// # Errors
/// Where it baffles the algorithm.
pub fn by_timing(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let angle = Search::run(bench, Algorithm::Angle, Verify::Full)?;
    let wrong = angle.wrong_boundaries(&bench.geometry);
    Ok(vec![angle.minutes(), wrong as f64])
}

/// By translation: without expertise, translations a track and drive time in minutes; ours, translations a track; and
/// the boundaries that either missed or invented.
///
/// # Errors
/// Where it baffles an algorithm.
pub fn by_translation(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let walk = Search::run(bench, Algorithm::Walk, Verify::None)?;
    let tree = Search::run(bench, Algorithm::Tree, Verify::None)?;
    let wrong = walk.wrong_boundaries(&bench.geometry) + tree.wrong_boundaries(&bench.geometry);
    Ok(vec![
        walk.translations_a_track(),
        walk.minutes(),
        tree.translations_a_track(),
        wrong as f64,
    ])
}

/// By DIXtrac's five steps: drive time in minutes, translations, boundaries missed or invented.
///
/// # Errors
/// Where it baffles the algorithm.
pub fn by_expertise(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let dixtrac = Search::run(bench, Algorithm::Dixtrac, Verify::None)?;
    let wrong = dixtrac.wrong_boundaries(&bench.geometry);
    Ok(vec![
        dixtrac.minutes(),
        dixtrac.counts.translations as f64,
        wrong as f64,
    ])
}
