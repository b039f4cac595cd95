//! Finding track boundaries (paper T, section 4.1): on the built-in drives, and on DiskSim's own
//! model of the Atlas 10K, which has the defects as well.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use traxtent_core::disksim;
use traxtent_core::geometry::Geometry;
use traxtent_lab::extraction::{DISKSIM_DRIVE, DRIVE, EXPERIMENTS};
use traxtent_lab::{Bench, LabError, Verdict};

/// DiskSim's Atlas 10K from its parameter files.
fn reference(folder: &Path) -> Bench {
    let file = folder.join("atlas10k.parv");
    let sources = |path: &str| {
        let name = Path::new(path).file_name().unwrap();
        fs::read(folder.join(name)).map_err(|error| error.to_string())
    };
    let text = fs::read(&file).unwrap();
    let system = disksim::load_system("atlas10k.parv", &text, None, &sources).unwrap();
    let profile = system.disks[0].profile.clone();
    Bench {
        geometry: Arc::new(Geometry::build(&profile.geometry).unwrap()),
        profile: Arc::new(profile),
        seed: 1,
    }
}

/// Asserts that every scored claim of an experiment is met by what is measured on a drive.
#[track_caller]
fn assert_met(group: &str, measure: fn(&Bench) -> Result<Vec<f64>, LabError>, bench: &Bench) {
    let mut experiments = EXPERIMENTS.iter();
    let experiment = experiments
        .find(|experiment| experiment.claims[0].is_called(group))
        .unwrap();
    for finding in experiment.judge(measure(bench).unwrap()) {
        assert_ne!(
            finding.verdict(),
            Verdict::Missed,
            "{}: {finding:?}",
            bench.profile.name
        );
    }
}

fn builtin(name: &str) -> Bench {
    Bench::new(name, 1).unwrap()
}

/// Are all boundaries found by timing, in a twenty-fourth of the paper's time?
#[test]
fn t16_by_timing() {
    use traxtent_lab::extraction::by_timing;
    assert_met("T16", by_timing, &builtin(DRIVE));
}

/// And with the defects that DiskSim's model has?
#[test]
fn t16_by_timing_on_the_reference() {
    use traxtent_lab::extraction::by_timing;
    let folder = testkit::shared_data!("disksim");
    assert_met("T16", by_timing, &reference(&folder));
}

/// Does the paper's translation without expertise take the paper's number of translations?
#[test]
fn t17_by_translation() {
    use traxtent_lab::extraction::by_translation;
    assert_met("T17", by_translation, &builtin(DRIVE));
}

/// And with the defects that DiskSim's model has?
#[test]
fn t17_by_translation_on_the_reference() {
    use traxtent_lab::extraction::by_translation;
    let folder = testkit::shared_data!("disksim");
    assert_met("T17", by_translation, &reference(&folder));
}

/// Do DIXtrac's five steps take less than a minute and 30,000 translations?
#[test]
fn t18_by_expertise() {
    use traxtent_lab::extraction::by_expertise;
    assert_met("T18", by_expertise, &builtin(DISKSIM_DRIVE));
}

/// And with the defects that DiskSim's model has?
#[test]
fn t18_by_expertise_on_the_reference() {
    use traxtent_lab::extraction::by_expertise;
    let folder = testkit::shared_data!("disksim");
    assert_met("T18", by_expertise, &reference(&folder));
}
