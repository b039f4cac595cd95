//! Probes of random drives that they know nothing of.

use std::thread;

use traxtent_core::probe::{Algorithm, Verify};
use traxtent_exec::Noise;
use traxtent_lab::blind::{Outcome, Trial, probe, random_drive, run};

/// Fails with the seed and the first mistakes of each drive that was not recovered exactly.
fn all_exact(drives: u64, trial: &Trial) {
    let threads = thread::available_parallelism().map_or(1, |count| count.get().min(2));
    let outcomes = run(0..testkit::repeats(drives), trial, threads, |_| ());
    let wrong = outcomes.iter().filter(|outcome| !outcome.is_exact());
    let lines: Vec<String> = wrong.clone().take(20).map(ToString::to_string).collect();
    let (count, all) = (wrong.count(), outcomes.len());
    assert!(
        lines.is_empty(),
        "{count} of {all} drives:\n{}",
        lines.join("\n")
    );
    let tested = |outcome: &Outcome| outcome.differences.boundaries > 200;
    assert!(outcomes.iter().all(tested), "a drive has hardly any tracks");
}

/// Does `tree` find every track of 200 random drives, and nothing else?
#[test]
fn tree_is_exact() {
    all_exact(200, &Trial::new(Algorithm::Tree, Verify::None));
}

/// Do the papers' ways to translate?
#[test]
fn the_papers_translations_are_exact() {
    for algorithm in [Algorithm::Walk, Algorithm::Jump, Algorithm::Dixtrac] {
        all_exact(200, &Trial::new(algorithm, Verify::None));
    }
}

/// Is a probe whose drive leaves half-way told from one that is done?
#[test]
fn a_probe_that_ends_early_is_not_exact() {
    let drive = random_drive(2);
    let whole = probe(drive.target(), Algorithm::Tree, Verify::None, |_| ());
    assert_eq!(whole.failure, None);
    let half = drive.target_for(whole.counts.translations / 2);
    let half = probe(half, Algorithm::Tree, Verify::None, |_| ());
    assert!(half.failure.is_some_and(|why| why.contains("gone")));
    assert!(half.bounds.len() < whole.bounds.len());
}

/// So many of 200 drives are recovered exactly where the clock is unsteady. The goal is all.
const EXACT_IN_NOISE: usize = 198;

/// Does `angle --verify full`, by timing alone?
#[test]
fn angle_is_exact() {
    all_exact(200, &Trial::new(Algorithm::Angle, Verify::Full));
}

/// Does it on most where the host's clock is unsteady, requests are late, and some take a revolution more?
#[test]
fn angle_is_exact_on_most_in_noise() {
    let trial = Trial::new(Algorithm::Angle, Verify::Full).with_noise(Noise::TYPICAL);
    let outcomes = run(0..200, &trial, 2, |_| ());
    let exact = outcomes.iter().filter(|outcome| outcome.is_exact()).count();
    assert!(
        exact >= EXACT_IN_NOISE,
        "{exact} of 200, of {EXACT_IN_NOISE} once reached"
    );
}
