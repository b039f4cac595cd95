//! Blind probes of random drives: a probe knows only a drive's responses.

use std::thread;

use traxtent_lab::blind::{
    Layouts, Outcome, Trial, compare_with_layout, probe, random_drive, run, run_trial,
};
use traxtent_model::geometry::Place;
use traxtent_probe::{Algorithm, Target, Verify};
use traxtent_sim::{DefectLists, Noise, SimTarget};
use traxtent_units::Lbn;

/// Seeds of drives that `tree` is known to miss. Each has an irregular layout with a group of
/// tracks that differs from those before and after it but has the same total number of sectors. No
/// translation shows this unless every group is tested, which would cost what `tree` is designed to
/// save (docs/internals/probe.md, "How translations show where a track ends").
const MISSED_BY_TREE: [u64; 1] = [13370];

/// Probes `drives` drives, multiplied by the soak factor, and asserts that each is recovered
/// exactly.
fn all_exact(drives: u64, trial: &Trial) {
    all_exact_except(&[], drives, trial);
}

/// Does the same as `all_exact`, except that the drives with the seeds `known` must not be
/// recovered exactly.
fn all_exact_except(known: &[u64], drives: u64, trial: &Trial) {
    let threads = thread::available_parallelism().map_or(1, |count| count.get().min(2));
    let outcomes = run(0..testkit::repeats(drives), trial, threads, |_| ());
    let is_known = |outcome: &&Outcome| known.contains(&outcome.seed);
    let fixed = outcomes.iter().filter(is_known);
    let fixed: Vec<u64> = fixed
        .filter(|outcome| outcome.is_exact())
        .map(|outcome| outcome.seed)
        .collect();
    assert!(
        fixed.is_empty(),
        "known to be missed, but now recovered: {fixed:?}"
    );
    let wrong = outcomes
        .iter()
        .filter(|outcome| !outcome.is_exact() && !is_known(outcome));
    let lines: Vec<String> = wrong.clone().take(20).map(ToString::to_string).collect();
    let (count, all) = (wrong.count(), outcomes.len());
    assert!(
        lines.is_empty(),
        "{count} of {all} drives are not recovered exactly:\n{}",
        lines.join("\n")
    );
    let tested = |outcome: &Outcome| outcome.differences.boundaries > 200;
    assert!(
        outcomes.iter().all(tested),
        "a drive has 200 boundaries or fewer"
    );
}

/// Probes 200 drives, multiplied by the soak factor. Asserts that the first 200 are recovered
/// exactly, and at least the given share of all.
fn mostly_exact(share: f64, trial: &Trial) {
    let outcomes = run(0..testkit::repeats(200), trial, 2, |_| ());
    let wrong: Vec<&Outcome> = outcomes.iter().filter(|one| !one.is_exact()).collect();
    let first = wrong.iter().copied().filter(|one| one.seed < 200);
    assert_none("not recovered exactly", first);
    let seeds: Vec<u64> = wrong.iter().map(|one| one.seed).collect();
    let found = 1.0 - wrong.len() as f64 / outcomes.len() as f64;
    assert!(found >= share, "{found} are exact, but not seeds {seeds:?}");
}

/// Does `tree` find every track of 200 random drives, and nothing else? A long soak also tries the
/// drives that it is known to miss.
#[test]
fn tree_is_exact() {
    let trial = Trial::new(Algorithm::Tree, Verify::None);
    all_exact_except(&MISSED_BY_TREE, 200, &trial);
}

/// Are the drives that `tree` is known to miss still missed? If one is not, remove its seed from
/// the list.
#[test]
fn known_misses_are_missed() {
    let trial = Trial::new(Algorithm::Tree, Verify::None);
    for seed in MISSED_BY_TREE {
        let outcome = run_trial(&random_drive(seed), &trial);
        assert!(!outcome.is_exact(), "{outcome}");
    }
}

/// Do the papers' translation methods find every track, and nothing else?
#[test]
fn the_papers_translations_are_exact() {
    for (algorithm, drives) in [
        (Algorithm::Walk, 600),
        (Algorithm::Dixtrac, 600),
        (Algorithm::Jump, 200),
    ] {
        all_exact(drives, &Trial::new(algorithm, Verify::None));
    }
}

/// Drives that a translation algorithm once missed, by cause.
const ONCE_MISSED: [(&str, &[u64]); 6] = [
    (
        "a remapped LBN at the edge of its track, taken for a short track",
        &[235, 1392, 1446, 1830, 1867, 2063, 2720],
    ),
    (
        "a remapped LBN exactly where a track could begin, or after its own track",
        &[1889, 10098, 11532, 12127, 12398, 12557, 12949, 14746, 18592],
    ),
    (
        "bad slots on both sides of a boundary, and one remapped LBN",
        &[13337, 14187, 16132, 17284],
    ),
    (
        "a short track between bad slots, taken for remapped LBNs",
        &[
            10868, 10932, 11940, 13073, 15584, 16026, 16102, 17351, 17523, 18080, 18333, 19868,
        ],
    ),
    (
        "spares expected at the other end of a cylinder, with no net effect",
        &[1320, 1735, 2259, 10835],
    ),
    (
        "a change of zones, or mispredicted slips, with no net effect",
        &[10278, 10463, 10858, 13125, 15637, 18628, 19422, 19581],
    ),
];

/// Do `tree`, `walk` and `dixtrac` find every track of the drives that one of them once missed?
#[test]
fn drives_once_missed_are_exact() {
    for (cause, seeds) in ONCE_MISSED {
        for &seed in seeds {
            let drive = random_drive(seed);
            for algorithm in [Algorithm::Tree, Algorithm::Walk, Algorithm::Dixtrac] {
                let outcome = run_trial(&drive, &Trial::new(algorithm, Verify::None));
                let name = algorithm.name();
                assert!(outcome.is_exact(), "{name}, {cause}: {outcome}");
            }
        }
    }
}

/// Do `tree`, `walk` and `dixtrac` find every track if the drive's defect lists do not identify the
/// remapped LBNs?
#[test]
fn lists_that_do_not_identify_lbns() {
    for algorithm in [Algorithm::Tree, Algorithm::Walk, Algorithm::Dixtrac] {
        for seed in 0..200 {
            let drive = random_drive(seed);
            let target = drive.target().with_defect_lists(DefectLists::Combined);
            let findings = probe(target, algorithm, Verify::None, |_| ());
            assert_eq!(findings.failure, None, "{}, seed {seed}", algorithm.name());
            let differences = compare_with_layout(&findings, &drive.geometry, algorithm);
            assert!(
                differences.is_exact(),
                "{}, seed {seed}: {differences:?}",
                algorithm.name()
            );
        }
    }
}

/// Does a probe whose drive disappears halfway report this, and find fewer boundaries?
#[test]
fn a_probe_whose_drive_disappears_fails() {
    let drive = random_drive(2);
    let whole = probe(drive.target(), Algorithm::Tree, Verify::None, |_| ());
    assert_eq!(whole.failure, None);
    let half = drive.target_for(whole.counts.translations / 2);
    let half = probe(half, Algorithm::Tree, Verify::None, |_| ());
    assert!(half.failure.is_some_and(|why| why.contains("gone")));
    assert!(half.bounds.len() < whole.bounds.len());
}

/// Does `angle --verify full` find every track of 200 random drives, and nothing else, by timing
/// alone? In a soak, does it recover 99 % of all drives exactly? docs/internals/probe.md shows
/// what it misses ("How `angle` works").
#[test]
fn angle_is_exact() {
    mostly_exact(0.99, &Trial::new(Algorithm::Angle, Verify::Full));
}

/// Does `angle --verify full` also find every track of 200 drives, and nothing else, if the host is
/// unsteady and some requests take an additional revolution? In a soak, does it recover 97 % of all
/// drives exactly?
#[test]
fn angle_is_exact_in_noise() {
    let trial = Trial::new(Algorithm::Angle, Verify::Full).with_noise(Noise::TYPICAL);
    mostly_exact(0.97, &trial);
}

/// Probes `drives` irregular drives, multiplied by the soak factor, but at most 200.
fn irregular(drives: u64, trial: &Trial) -> Vec<Outcome> {
    let drives = testkit::repeats(drives).min(200);
    run(
        0..drives,
        &trial.with_layouts(Layouts::Irregular),
        2,
        |_| (),
    )
}

/// Asserts that there are no outcomes. Otherwise reports the seed and the first mistakes of each.
fn assert_none<'a>(what: &str, outcomes: impl Iterator<Item = &'a Outcome>) {
    let lines: Vec<String> = outcomes.map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{what}:\n{}", lines.join("\n"));
}

/// Do `tree` and `angle --verify full` find every track of irregular drives?
#[test]
fn irregular_drives_are_exact() {
    for (algorithm, verify) in [
        (Algorithm::Tree, Verify::None),
        (Algorithm::Angle, Verify::Full),
    ] {
        let outcomes = irregular(20, &Trial::new(algorithm, verify));
        assert_none(algorithm.name(), outcomes.iter().filter(|o| !o.is_exact()));
    }
}

/// If `angle --verify sample` is wrong about an irregular drive, does it fail or report doubtful
/// boundaries? Does it report them on fewer than a quarter of the drives?
#[test]
fn a_sample_of_an_irregular_drive_does_not_mislead() {
    let outcomes = irregular(40, &Trial::new(Algorithm::Angle, Verify::Sample));
    assert_none(
        "wrong without a warning",
        outcomes.iter().filter(|o| o.is_silently_wrong()),
    );
    let doubtful = outcomes.iter().filter(|o| o.findings.doubtful > 0).count();
    assert!(
        doubtful * 4 < outcomes.len(),
        "{doubtful} of {} drives have doubtful boundaries: too many",
        outcomes.len()
    );
}

/// A track of six sectors looks like six remapped sectors if the tracks around it have the usual
/// skew once it is left out. Does `angle` find such a track or report a doubt, whether it verifies
/// a sample or everything?
#[test]
fn a_short_track_taken_for_remapped_sectors_is_doubtful() {
    for verify in [Verify::Sample, Verify::Full] {
        let outcome = run_trial(&random_drive(334), &Trial::new(Algorithm::Angle, verify));
        assert!(!outcome.is_silently_wrong(), "{outcome}");
    }
}

/// Irregular drives that an algorithm once missed, by cause.
const IRREGULAR_ONCE_MISSED: [(&str, Algorithm, Verify, &[u64]); 3] = [
    (
        "a remapped LBN after a gap that no defect list contains",
        Algorithm::Tree,
        Verify::None,
        &[96],
    ),
    (
        "a remapped LBN at the start of a track that has a gap, or just before it",
        Algorithm::Angle,
        Verify::Full,
        &[5, 127, 129, 145, 174],
    ),
    (
        "two short tracks between two samples",
        Algorithm::Angle,
        Verify::Sample,
        &[15, 21, 25, 38, 111, 155, 188, 192],
    ),
];

/// Does each algorithm recover the irregular drives that it once missed?
#[test]
fn irregular_drives_once_missed_are_exact() {
    for (cause, algorithm, verify, seeds) in IRREGULAR_ONCE_MISSED {
        for &seed in seeds {
            let outcome = run_trial(
                &Layouts::Irregular.drive(seed),
                &Trial::new(algorithm, verify),
            );
            assert!(outcome.is_exact(), "{cause}: {outcome}");
        }
    }
}

/// Returns the first LBN of each row of remapped LBNs that does not lie directly before or after
/// its own bad slots. A row that does is where slipping would have put it, so a probe need not list
/// it.
fn missing_but_apart(remapped: &[Lbn], target: &mut SimTarget) -> Vec<Lbn> {
    let defects = target.defects().unwrap();
    let is_bad = |place| defects.grown.contains(&place) || defects.primary.contains(&place);
    let mut are_around_bad_slots = |lbn: u64| {
        let [one, next] = [lbn, lbn + 1].map(|lbn| target.translate(Lbn(lbn)).unwrap());
        let mut between = one.slot + 1..next.slot;
        let has_some = !between.is_empty() && one.track() == next.track();
        has_some && between.all(|slot| is_bad(Place { slot, ..one }))
    };
    let rows = remapped.chunk_by(|one, next| one.0 + 1 == next.0);
    rows.filter(|row| {
        let (first, last) = (row[0].0, row[row.len() - 1].0);
        !are_around_bad_slots(first - 1) && !are_around_bad_slots(last)
    })
    .map(|row| row[0])
    .collect()
}

/// Do `tree` and `angle` list all remapped LBNs, including those within tracks that they only
/// predict, except LBNs that lie where slipping would have put them? Does `angle` report that it
/// cannot count them if a drive has neither translation nor defect lists?
#[test]
fn remapped_lbns_are_listed() {
    for layouts in Layouts::ALL {
        let mut count = 0;
        for seed in 0..testkit::repeats(12).min(200) {
            let drive = layouts.drive(seed);
            let truth = drive.remapped_lbns();
            count += truth.len();
            for (algorithm, verify) in [
                (Algorithm::Tree, Verify::None),
                (Algorithm::Angle, Verify::Sample),
            ] {
                let findings = probe(drive.target(), algorithm, verify, |_| ());
                let name = algorithm.name();
                let found = findings.remapped.expect("the drive lists its defects");
                let (missing, known): (Vec<Lbn>, Vec<Lbn>) =
                    truth.iter().partition(|lbn| !found.contains(lbn));
                let unexpected = missing_but_apart(&missing, &mut drive.target());
                assert_eq!(
                    (known, unexpected),
                    (found, Vec::new()),
                    "{name}, {} drives, seed {seed}",
                    layouts.name()
                );
            }
            if seed == 0 {
                let silent = drive.target().without_translation();
                let findings = probe(silent, Algorithm::Angle, Verify::Sample, |_| ());
                assert_eq!(findings.remapped, None, "seed {seed}");
                let says = |note: &String| {
                    note.contains("remapped sectors are not counted: the drive does not translate addresses, or does not list its defects")
                };
                assert!(
                    findings.notes.iter().any(says),
                    "seed {seed}: {:?}",
                    findings.notes
                );
            }
        }
        assert!(count > 10, "only {count} LBNs are remapped");
    }
}
