//! `traxtent lab today`.

use std::fs;

use serde_json::Value;

use super::command::{json, traxtent};

/// Is every answer consistent, with the types that a script needs, and given with and without
/// zero-latency access? Are the main questions among those answered, and is a picture drawn?
#[test]
fn answers() {
    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("today.svg");
    let mut args = vec!["lab", "today", "--quick", "--json"];
    if cfg!(feature = "plot") {
        args.extend(["--picture", picture.to_str().unwrap()]);
    }
    let report = json(&args);
    let drives: Vec<&Value> = report.as_array().unwrap().iter().collect();
    let names: Vec<&str> = drives
        .iter()
        .map(|d| d["drive"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["atlas10k2", "toshiba-p300", "generic-20tb"]);
    assert_eq!(drives[0]["track_bytes"], 270_336);
    for drive in drives {
        assert!(
            drive["model"].is_string() && drive["year"].is_u64(),
            "{drive}"
        );
        assert!(drive["revolution_ms"].as_f64().unwrap() > 5.0, "{drive}");
        let answers = drive["answers"].as_array().unwrap();
        let mut questions = Vec::new();
        for answer in answers {
            let figure = |key: &str| answer[key].as_f64().unwrap();
            let change = figure("aligned") / figure("unaligned") - 1.0;
            assert!((figure("change") - change).abs() < 1e-12, "{answer}");
            for key in ["question", "claim", "unit"] {
                assert!(!answer[key].as_str().unwrap().is_empty(), "{answer}");
            }
            let question = answer["question"].as_str().unwrap();
            questions.push((question, answer["zero_latency"].as_bool().unwrap()));
        }
        assert_eq!(questions.len() % 2, 0);
        for pair in questions.chunks(2) {
            assert_eq!((pair[0].0, true, false), (pair[1].0, pair[0].1, pair[1].1));
        }
        questions.dedup_by_key(|(question, _)| *question);
        for question in [
            "efficiency",
            "head-time-onereq",
            "head-time-tworeq",
            "streams-4mbps",
            "streams-25mbps",
        ] {
            assert!(
                questions.iter().any(|(known, _)| *known == question),
                "{question}"
            );
        }
    }
    if cfg!(feature = "plot") {
        let svg = fs::read_to_string(picture).unwrap();
        for text in ["<svg", "generic-20tb", "Without zero-latency access"] {
            assert!(svg.contains(text), "{text}");
        }
    }
}

/// Does bad input give a message and the right status, before anything is measured, and without
/// writing a file?
#[test]
fn bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let within = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (unsupported, nowhere) = (within("today.gif"), within("none/today.svg"));
    let mut cases = vec![
        (vec!["--seed", "many"], 2, "many"),
        (vec!["atlas10k2"], 2, "atlas10k2"),
    ];
    if cfg!(feature = "plot") {
        cases.push((
            vec!["--picture", &unsupported],
            2,
            "today.gif: expected a file name that ends in",
        ));
        cases.push((vec!["--picture", &nowhere], 3, "none/today.svg"));
    } else {
        cases.push((vec!["--picture", &unsupported], 2, "the feature `plot`"));
    }
    for (more, status, says) in cases {
        let args = [&["lab", "today"], &more[..]].concat();
        let answer = traxtent(&args);
        assert_eq!(answer.status, status, "{args:?}: {}", answer.err);
        assert!(
            answer.err.contains(says) && answer.out.is_empty(),
            "{args:?}: {}",
            answer.err
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
