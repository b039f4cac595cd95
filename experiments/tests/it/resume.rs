//! Tests of runs that resume an interrupted run.

use std::fs;
use std::path::Path;

use traxtent_experiments::{RunOutcome, RunPlan, Seeds, Selection, Store, run};

use super::plan;

/// Experiments with random requests: the second has two drives, and the other two have a figure.
const SOME: [&str; 3] = ["T9", "T12", "T14"];

fn outcome(folder: Option<&Path>, build: &str, seeds: usize) -> RunOutcome {
    let plan = RunPlan {
        seeds: Seeds::First(seeds),
        quick: true,
        pictures: true,
        store: folder.map(|folder| Store::open(folder, build).unwrap()),
        ..plan()
    };
    run(&Selection::of(&SOME).unwrap().experiments(), &plan, &|| {}).unwrap()
}

#[track_caller]
fn assert_same(one: &RunOutcome, other: &RunOutcome) {
    assert_eq!(one.findings, other.findings);
    let figures = |outcome: &RunOutcome| {
        outcome
            .pictures
            .iter()
            .map(|(_, figure)| figure.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(figures(one), figures(other));
}

/// Is the result of a resumed run, with all or some parts stored, the same as that of a single run?
#[test]
fn resumed_results_are_identical() {
    let folder = tempfile::tempdir().unwrap();
    let at_once = outcome(None, "", 3);
    // The first run ended early: it had only one seed.
    outcome(Some(folder.path()), "build", 1);
    assert_same(&outcome(Some(folder.path()), "build", 3), &at_once);
    assert_same(&outcome(Some(folder.path()), "build", 3), &at_once);
}

/// Are stored results used, but only those of the same build that are undamaged?
#[test]
fn only_intact_results_of_this_build_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let at_once = outcome(None, "", 1);
    outcome(Some(folder.path()), "build", 1);
    let files = || {
        fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
    };
    for path in files().filter(|path| !path.to_string_lossy().contains("picture")) {
        let text = fs::read_to_string(&path).unwrap();
        let from = text.find("numbers = [").unwrap();
        let planted =
            "numbers = [".to_owned() + &"77.0, ".repeat(text.matches(',').count() + 1) + "]";
        let (_, rest) = text[..from].split_once('\n').unwrap();
        let rest = rest.to_owned() + &planted;
        let crc32 = crc32fast::hash(rest.as_bytes());
        fs::write(&path, format!("# crc32 {crc32:08x}\n{rest}")).unwrap();
    }
    let planted = outcome(Some(folder.path()), "build", 1);
    assert!(
        planted
            .findings
            .iter()
            .all(|finding| finding.measured() == 77.0)
    );
    assert_same(&outcome(Some(folder.path()), "another build", 1), &at_once);
    for path in files() {
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() / 2]).unwrap();
    }
    assert_same(&outcome(Some(folder.path()), "another build", 1), &at_once);
}

/// Is a file in place of the directory refused when the store is opened, with the file's path?
#[test]
fn unusable_directory() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file, "").unwrap_err();
    assert!(
        error.to_string().starts_with(&file.display().to_string()),
        "{error}"
    );
}
