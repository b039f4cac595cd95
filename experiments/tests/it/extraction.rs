//! Finding track boundaries (paper T, section 4.1) on DiskSim's own model of the Atlas 10K, which
//! has the defects that the built-in drives leave out.

use std::fs;
use std::path::Path;

use traxtent_experiments::Verdict;
use traxtent_lab::Bench;

use super::experiment;

/// Returns DiskSim's Atlas 10K, from its parameter files.
fn reference(folder: &Path) -> Bench {
    let file = folder.join("atlas10k.parv");
    let sources = |path: &str| {
        let name = Path::new(path).file_name().unwrap();
        fs::read(folder.join(name)).map_err(|error| error.to_string())
    };
    let text = fs::read(&file).unwrap();
    let system = traxtent_disksim::load_system("atlas10k.parv", &text, None, &sources).unwrap();
    Bench::with_profile(system.disks[0].profile.clone(), 1).unwrap()
}

/// Asserts that every scored claim of an experiment is met on that drive.
#[track_caller]
fn assert_met(number: &str) {
    let folder = testkit::shared_data!("disksim");
    let experiment = experiment(number);
    let numbers = (experiment.measurement.measure)(&reference(&folder)).unwrap();
    for finding in experiment.judge(&[(1, numbers)]) {
        assert_ne!(finding.verdict(), Verdict::Missed, "{finding:?}");
    }
}

/// Are all boundaries found by timing, in at most one twenty-fourth of the paper's time?
#[test]
fn t16_by_timing() {
    assert_met("T16");
}

/// Without expertise, does the algorithm walk need the paper's number of translations per track,
/// and tree at most 0.1? Do both find all boundaries?
#[test]
fn t17_by_translation() {
    assert_met("T17");
}

/// Do DIXtrac's five steps find all boundaries, in at most a minute and with fewer than 30,000
/// translations?
#[test]
fn t18_by_expertise() {
    assert_met("T18");
}
