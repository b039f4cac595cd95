//! Finding track boundaries (paper T, section 4.1), on the Atlas 10K.
//!
//! What a translation costs is the targets' 2 ms, about what both papers come to.

use traxtent_core::probe::{Algorithm, Verify};

use crate::Experiment;
use crate::bench::{Bench, LabError};
use crate::claim::{Claim, Unit, Within};
use crate::search::Search;

/// The drive of the paper's figures.
pub const DRIVE: &str = "atlas10k";

/// The same as DiskSim has it. Its reference model lists the defects as well, which the built-in drive leaves out.
pub const DISKSIM_DRIVE: &str = "atlas10k-disksim";

/// Every experiment on finding track boundaries.
pub const EXPERIMENTS: [Experiment; 3] = [
    Experiment {
        title: "track boundaries by read timing alone",
        claims: &[
            Claim::new(
                "T16a",
                "angle, every boundary verified: drive time (paper: four hours)",
                240.0,
                Unit::Minutes,
                Within::AtMost(10.0),
            ),
            Claim::new(
                "T16b",
                "its boundaries missed or invented",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
        ],
        measure: |bench| by_timing(&bench.with_drive(DRIVE)?),
        figure: None,
    },
    Experiment {
        title: "track boundaries by translation without expertise",
        claims: &[
            Claim::new(
                "T17a",
                "walk: translations a track",
                2.15,
                Unit::Ratio,
                Within::Between(2.0, 2.3),
            ),
            Claim::new(
                "T17b",
                "walk: drive time",
                5.0,
                Unit::Minutes,
                Within::Relative(0.1),
            )
            .reported(),
            Claim::new(
                "T17c",
                "tree: translations a track",
                2.15,
                Unit::Ratio,
                Within::AtMost(0.1),
            ),
            Claim::new(
                "T17d",
                "boundaries that either missed or invented",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
        ],
        measure: |bench| by_translation(&bench.with_drive(DRIVE)?),
        figure: None,
    },
    Experiment {
        title: "track boundaries by DIXtrac's five steps",
        claims: &[
            Claim::new(
                "T18a",
                "dixtrac: drive time",
                1.0,
                Unit::Minutes,
                Within::AtMost(1.0),
            ),
            Claim::new(
                "T18b",
                "dixtrac: translations",
                30_000.0,
                Unit::Count,
                Within::AtMost(29_999.0),
            ),
            Claim::new(
                "T18c",
                "its boundaries missed or invented",
                0.0,
                Unit::Count,
                Within::Exactly,
            ),
        ],
        measure: |bench| by_expertise(&bench.with_drive(DISKSIM_DRIVE)?),
        figure: None,
    },
];

/// T16 on any drive.
///
/// # Errors
/// Where it baffles the algorithm.
pub fn by_timing(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let angle = Search::run(bench, Algorithm::Angle, Verify::Full)?;
    let wrong = angle.wrong_boundaries(&bench.geometry);
    Ok(vec![angle.minutes(), wrong as f64])
}

/// T17 on any drive.
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

/// T18 on any drive.
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
