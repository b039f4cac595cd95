//! Tests of the list of experiments.

use std::collections::BTreeSet;
use std::fs;

use traxtent_experiments::{PAPERS, RunPlan, Selection, experiments, run};

use super::plan;

/// Is every directory with an experiment in the list, and can every text be parsed?
#[test]
fn every_directory_is_listed() {
    let folder = testkit::workspace().join("experiments");
    let folders = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let found: BTreeSet<String> = folders
        .filter(|path| path.join("experiment.toml").exists())
        .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    let padded = |number: &str| format!("{}{:0>2}", &number[..1], &number[1..]);
    let listed: BTreeSet<String> = experiments()
        .iter()
        .map(|experiment| padded(&experiment.number))
        .collect();
    let missing: Vec<&String> = found.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "{missing:?}: not in the list TEXTS of experiments/src/catalogue.rs"
    );
}

/// Are the names of claims, and those of measurements, unique? Does every measurement of the lab
/// have an experiment, and one with a figure if it can draw one?
#[test]
fn names_are_unique_and_measurements_are_used() {
    let claims = || {
        experiments()
            .iter()
            .flat_map(|experiment| &experiment.claims)
    };
    let ids: BTreeSet<&str> = claims().map(|claim| claim.id.as_str()).collect();
    assert_eq!(ids.len(), claims().count());
    let used: BTreeSet<&str> = experiments()
        .iter()
        .map(|experiment| experiment.measurement.name)
        .collect();
    let known: BTreeSet<&str> = traxtent_lab::MEASUREMENTS
        .iter()
        .map(|known| known.name)
        .collect();
    let unused: Vec<&&str> = known.difference(&used).collect();
    assert!(
        unused.is_empty(),
        "{unused:?}: no experiment names these measurements in `measure`"
    );
    assert_eq!(known.len(), traxtent_lab::MEASUREMENTS.len());
    let drawn = experiments()
        .iter()
        .filter(|experiment| experiment.figure.is_some());
    let drawn: BTreeSet<&str> = drawn
        .map(|experiment| experiment.measurement.name)
        .collect();
    let with_pictures = traxtent_lab::MEASUREMENTS
        .iter()
        .filter(|known| known.draw.is_some());
    assert!(
        with_pictures
            .into_iter()
            .all(|known| drawn.contains(known.name))
    );
}

/// Do the names of claims, groups, papers and "all" select as many claims as they should, in lower
/// and upper case? Are other names refused, and does every experiment belong to a paper in the
/// list?
#[test]
fn names_select_their_claims() {
    let count = |names: &[&str]| {
        let selection = Selection::of(names).unwrap();
        let claims = experiments().iter().flat_map(|experiment| {
            let of = move |claim| (experiment, claim);
            experiment.claims.iter().map(of)
        });
        claims
            .filter(|(experiment, claim)| selection.includes(experiment, claim))
            .count()
    };
    assert_eq!(
        (count(&["T9a"]), count(&["T9"]), count(&["T8", "T9"])),
        (1, 2, 4)
    );
    assert_eq!(count(&["T1"]), 56);
    assert_eq!(count(&["T"]), count(&["traxtents"]));
    assert_eq!(count(&["Q"]), count(&["linux"]));
    assert_eq!(
        count(&["all"]),
        experiments()
            .iter()
            .filter(|experiment| experiment.measurement.missing.is_none())
            .map(|experiment| experiment.claims.len())
            .sum::<usize>()
    );
    for (other, name) in [("t9A", "T9a"), ("t", "T"), ("Linux", "Q"), ("ALL", "all")] {
        assert_eq!(count(&[other]), count(&[name]));
    }
    for name in ["", "T99", "q1AB", "?", "T 1", "linuxx"] {
        assert_eq!(Selection::of(&[name]).unwrap_err().0, name);
    }
    let letters: BTreeSet<char> = PAPERS.iter().map(|paper| paper.letter).collect();
    let numbers = experiments()
        .iter()
        .filter_map(|experiment| experiment.number.chars().next());
    let unknown: Vec<char> = numbers.filter(|letter| !letters.contains(letter)).collect();
    assert!(
        unknown.is_empty(),
        "{unknown:?}: not in the list PAPERS of experiments/src/catalogue.rs"
    );
}

/// Can the figures that take only seconds be drawn, and does each of their published points belong
/// to a series?
#[test]
fn figures_have_their_published_series() {
    let drawn: Vec<_> = experiments()
        .iter()
        .filter(|experiment| {
            experiment.figure.is_some() && QUICK.contains(&experiment.number.as_str())
        })
        .collect();
    let plan = RunPlan {
        quick: true,
        pictures: true,
        ..plan()
    };
    let outcome = run(&drawn, &plan, &|| {}).unwrap();
    assert_eq!(outcome.pictures.len(), drawn.len());
    for (experiment, figure) in &outcome.pictures {
        let number = &experiment.number;
        for panel in &figure.panels {
            assert!(!panel.title.is_empty() && !panel.x.is_empty(), "{number}");
            let points = || panel.series.iter().flat_map(|series| &series.points);
            assert!(points().count() > 0, "{number}");
            assert!(
                points().all(|(x, y)| x.is_finite() && y.is_finite()),
                "{number}"
            );
        }
        for point in &experiment.figure.as_ref().unwrap().published {
            let mut series = figure.panels[point.panel].series.iter();
            assert!(
                series.any(|series| series.name == point.series),
                "{number}: {point:?}"
            );
        }
    }
}

/// The experiments whose figures are drawn in seconds.
const QUICK: [&str; 10] = ["T2", "T6", "T8", "T9", "T14", "T15", "Q1", "Q3", "Q5", "Q6"];
