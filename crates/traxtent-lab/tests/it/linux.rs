//! The Linux validation of track-aligned extents (paper Q), section 2.3.

use traxtent_core::drive::Caching;
use traxtent_core::units::Lbn;
use traxtent_core::workload::Rng;
use traxtent_lab::linux::{MAIN_DRIVE, Start, cliffs, growing_reads};
use traxtent_lab::{Bench, EXPERIMENTS, Finding, Verdict};

/// What the experiment of a group of claims finds, seed by seed.
fn findings(group: &str) -> Vec<Finding> {
    // The mean of Q5a lies on the bound of its claim, and seeds fall on either side of it.
    let seeds = if group == "Q5" {
        1
    } else {
        testkit::repeats(1)
    };
    let mut experiments = EXPERIMENTS.iter().copied().flatten();
    let experiment = experiments
        .find(|experiment| experiment.claims[0].is_called(group))
        .unwrap();
    (1..=seeds)
        .flat_map(|seed| {
            experiment
                .run(&Bench::new(MAIN_DRIVE, seed).unwrap())
                .unwrap()
        })
        .collect()
}

/// Asserts that all scored claims of a group are met, but for those that are known to be missed.
#[track_caller]
fn assert_met(group: &str, known_to_be_missed: &[&str]) {
    for finding in findings(group) {
        let missed = known_to_be_missed.contains(&finding.claim.id);
        assert!(!missed || !finding.claim.if_missed.is_empty());
        match finding.verdict() {
            Verdict::Reported => assert!(!missed),
            verdict => assert_eq!(verdict == Verdict::Missed, missed, "{finding:?}"),
        }
    }
}

/// Does a drive that ignores orders show cliffs that no track makes, and do reads at them prove it?
#[test]
fn q1_cliffs_that_are_no_tracks() {
    assert_met("Q1", &["Q1d", "Q1f"]);
}

/// Is it the disobedience that hides the tracks? If the drive obeyed, the same scan would find the
/// first track, and an end 256 sectors nearer if it began 256 sectors later.
#[test]
fn q1_an_obedient_drive_shows_its_tracks() {
    let bench = Bench::new(MAIN_DRIVE, 1).unwrap();
    let bench = bench
        .with("cache.read_ahead.ignores_host", "false")
        .unwrap();
    for (start, track) in [(0, 1144_u32), (256, 1144 - 256)] {
        let mut target = bench.target();
        target.set_caching(Caching::OFF);
        let scan = growing_reads(&mut target, Start::At(Lbn(start)), &mut Rng::new(1)).unwrap();
        let first = cliffs(&scan)[0];
        assert!(first.abs_diff(track) <= 2, "from sector {start}: {first}");
    }
}

/// Do ours map the drive in less time than the paper's walk, on the model and in the paper?
#[test]
fn q2_seven_minutes() {
    assert_met("Q2", &[]);
}

/// Do tracks lie as the paper's Fig. 2 says?
#[test]
fn q3_the_serpentine() {
    assert_met("Q3", &[]);
}

/// Are four drives of one model, with four numberings, each found exactly?
#[test]
fn q4_drives_of_one_model() {
    assert_met("Q4", &[]);
}

/// Do 64-sector reads take the paper's time, within a track and across its end?
#[test]
fn q5_reads_about_boundaries() {
    assert_met("Q5", &["Q5b"]);
}

/// Do reads in reverse order wait as in the paper, where they wait?
#[test]
fn q6_reverse_pairs() {
    assert_met("Q6", &[]);
}
