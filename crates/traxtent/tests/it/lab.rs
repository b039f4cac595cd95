//! `traxtent lab`.

use std::fs;

use super::command::{json, prints, traxtent};

/// Does the list name every claim once, also in the documents?
#[test]
fn list() {
    let list = json(&["lab", "list", "--json"]);
    let experiments = list.as_array().unwrap();
    let claims = experiments
        .iter()
        .flat_map(|experiment| experiment["claims"].as_array().unwrap());
    let ids: Vec<&str> = claims
        .map(|claim| claim["claim"].as_str().unwrap())
        .collect();
    let once: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(once.len(), ids.len());
    let docs = fs::read_to_string(testkit::workspace().join("docs/lab.md")).unwrap();
    for id in ids {
        assert!(
            docs.contains(&format!("| {id} |")),
            "docs/lab.md lacks {id}"
        );
    }
    let text = prints(&["lab", "list"]);
    assert!(text.contains("Q1a to Q1g") && text.contains("Fig. 2: the serpentine"));
}

/// Are the claims asked for judged, those alone, and drawn, and is all well where all are met?
#[test]
fn run() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().join("pictures");
    let mut args = vec!["lab", "run", "Q6b", "Q3a", "--json"];
    if cfg!(feature = "plot") {
        args.extend(["--pictures", pictures.to_str().unwrap()]);
    }
    let report = json(&args);
    let claims = report["claims"].as_array().unwrap();
    let ids: Vec<&str> = claims
        .iter()
        .map(|c| c["claim"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["Q3a", "Q6b"]);
    assert_eq!((&report["met"], &report["missed"]), (&2.into(), &0.into()));
    if cfg!(feature = "plot") {
        for name in ["q3.svg", "q6.svg"] {
            let svg = fs::read_to_string(pictures.join(name)).unwrap();
            assert!(svg.contains("<svg") && svg.contains("surface") == (name == "q3.svg"));
        }
    }
}

/// Does a missed claim end in status 1, with its reason, whatever else is met?
#[test]
fn missed() {
    let answer = traxtent(&["lab", "run", "Q5"]);
    assert_eq!(answer.status, 1);
    assert!(answer.out.contains("Missed Q5b: ") && answer.out.contains("met"));
    assert!(answer.err.contains("1 scored claim") || answer.err.contains("a scored claim"));
}

/// Is a seed what decides?
#[test]
fn seeds() {
    let run = |seed| json(&["lab", "run", "Q6a", "--json", "--seed", seed]);
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

/// Is a name that no claim has refused?
#[test]
fn unknown() {
    for id in ["Q99", "X", ""] {
        let answer = traxtent(&["lab", "run", id]);
        assert_eq!(answer.status, 2);
        assert!(answer.err.contains("lab list"), "{}", answer.err);
    }
}
