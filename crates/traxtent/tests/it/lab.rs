//! `traxtent lab`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use super::command::{json, prints, traxtent};

/// Returns the names of the claims in an answer, in its order.
fn ids(answer: &Value) -> Vec<&str> {
    let claims = answer.as_array().unwrap().iter();
    claims.map(|claim| claim["id"].as_str().unwrap()).collect()
}

/// Returns the text of all pages about results.
fn pages_of_results() -> String {
    let folder = testkit::workspace().join("docs/results");
    let files = fs::read_dir(folder).unwrap().map(Result::unwrap);
    files
        .filter(|file| file.file_name().to_string_lossy().ends_with(".md"))
        .map(|file| fs::read_to_string(file.path()).unwrap())
        .collect()
}

/// Does the list name every claim once, and do the papers' pages have a row for it?
#[test]
fn list() {
    let list = json(&["lab", "list", "--json"]);
    let experiments = list.as_array().unwrap();
    let ids: Vec<&str> = experiments
        .iter()
        .flat_map(|experiment| ids(&experiment["claims"]))
        .collect();
    let once: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(once.len(), ids.len());
    let docs = pages_of_results();
    for id in ids {
        let rows = docs.matches(&format!("\n| **{id}** ")).count();
        assert_eq!(rows, 1, "docs/results/*.md: rows of {id}");
    }
    let some = json(&["lab", "list", "t13A", "LINUX", "--json"]);
    let numbers = some.as_array().unwrap().iter();
    let numbers: Vec<&str> = numbers.map(|one| one["number"].as_str().unwrap()).collect();
    assert!(
        numbers.starts_with(&["T13", "Q1"])
            && numbers.iter().skip(1).all(|one| one.starts_with('Q'))
    );
    let text = prints(&["lab", "list"]);
    assert!(text.contains("Q1a to Q1g") && text.contains("Fig. 2: the serpentine"));
}

/// Are only the requested claims judged and drawn, and is the exit status 0 if all are met?
#[test]
fn run() {
    let folder = tempfile::tempdir().unwrap();
    let pictures = folder.path().join("pictures");
    let mut args = vec!["lab", "run", "Q6b", "Q3a", "--json"];
    if cfg!(feature = "plot") {
        args.extend(["--pictures", pictures.to_str().unwrap()]);
    }
    let report = json(&args);
    assert_eq!(ids(&report), ["Q3a", "Q6b"]);
    if cfg!(feature = "plot") {
        for name in ["q3.svg", "q6.svg"] {
            let svg = fs::read_to_string(pictures.join(name)).unwrap();
            assert!(svg.contains("<svg") && svg.contains("surface") == (name == "q3.svg"));
            assert!(svg.contains("published"));
        }
    }
}

/// Does every claim's JSON object have the fields and types that a script needs?
#[test]
fn schema() {
    // Without the experiments that take more than ten seconds even with --quick: the log of T30 to
    // T32, the streams of Q9, Q10 and Q12, and, except in a soak, the video server of T27.
    let is_soak = testkit::repeats(1) > 1;
    let papers = (1..=29)
        .chain([33])
        .filter(|&number| is_soak || number != 27)
        .map(|number| format!("T{number}"))
        .chain([1, 2, 3, 4, 5, 6, 7, 8, 11].map(|number| format!("Q{number}")));
    let papers: Vec<String> = papers.collect();
    let papers: Vec<&str> = papers.iter().map(String::as_str).collect();
    let how = ["--quick", "--seeds", "2", "--json"];
    let report = traxtent(&[&["lab", "run"][..], &papers, &how].concat());
    assert_eq!(report.status, 1);
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert!(report.as_array().unwrap().len() > 100);
    for claim in report.as_array().unwrap() {
        let is_number = |value: &Value| value.is_number();
        let published = &claim["published"];
        let ends = published
            .as_array()
            .is_some_and(|ends| ends.len() == 2 && ends.iter().all(is_number));
        assert!(published.is_number() || ends, "{claim}");
        assert!(
            claim["measured"].is_number() || claim["measured"].is_null(),
            "{claim}"
        );
        let tolerance = &claim["tolerance"];
        let bound = |key: &str| tolerance[key].is_number();
        let words = ["exact", "at-least"].iter().any(|word| tolerance == word);
        assert!(
            words || bound("absolute") || bound("relative") || bound("factor") || bound("at-most"),
            "{claim}"
        );
        let (within, scored) = (
            claim["within"].as_bool().unwrap(),
            claim["scored"].as_bool().unwrap(),
        );
        let verdict = match (scored, within) {
            (false, _) => "reported",
            (true, true) => "met",
            (true, false) => "missed",
        };
        assert_eq!(claim["verdict"], verdict);
        assert_eq!(claim["reason"].is_string(), verdict != "met", "{claim}");
        for key in ["id", "says", "unit"] {
            assert!(!claim[key].as_str().unwrap().is_empty(), "{claim}");
        }
        let seeds = claim["seeds"].as_array().unwrap();
        assert!(
            (1..=2).contains(&seeds.len()) && seeds.iter().all(|seed| seed["seed"].is_u64()),
            "{claim}"
        );
    }
}

/// Does a missed claim give status 1, with its reason, whatever the other claims?
#[test]
fn missed() {
    let answer = traxtent(&["lab", "run", "Q5"]);
    assert_eq!(answer.status, 1);
    assert!(answer.out.contains("Missed Q5b: ") && answer.out.contains("met"));
    assert!(answer.err.contains("1 scored claim") || answer.err.contains("a scored claim"));
}

/// Does Markdown have the heading, the row and the reason that the papers' pages show?
#[test]
fn markdown() {
    let answer = traxtent(&["lab", "report", "--markdown", "Q3d", "Q5b", "T7c"]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    let docs = pages_of_results();
    // The row of Q5b has the mean of five seeds on the page.
    let kept = ["## ", "| **Q3d** ", "| **T7c** "];
    let lines = answer.out.lines();
    let lines = lines.filter(|line| kept.iter().any(|start| line.starts_with(start)));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 5, "{}", answer.out);
    for line in lines {
        assert!(docs.contains(&format!("\n{line}\n")), "{line}");
    }
    assert!(answer.out.contains("\n- Missed Q5b: ") && docs.contains("\n- Missed Q5b: "));
    assert!(answer.out.starts_with("# T: Schindler") && answer.out.contains("\n# Q: Qian"));
}

/// Does `--set` apply to the drives, and is this reported?
#[test]
fn set() {
    let answer = traxtent(&[
        "lab",
        "run",
        "T9b",
        "--quick",
        "--json",
        "--set",
        "mechanics.rpm=5000",
    ]);
    assert!(
        answer
            .err
            .contains("the drives' figures were changed (--set); the verdicts are hypothetical"),
        "{}",
        answer.err
    );
    let claims: Value = serde_json::from_str(&answer.out).unwrap();
    let revolution_ms = claims[0]["measured"].as_f64().unwrap();
    assert!((revolution_ms - 12.0).abs() < 0.12, "{revolution_ms}");
}

/// Does the result depend only on the seed?
#[test]
fn seeds() {
    let run = |seed| json(&["lab", "run", "Q6a", "--json", "--seed", seed]);
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

/// Does a run that resumes from another run's results print the same?
#[test]
fn resumed() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let args = ["lab", "run", "T9", "T12", "--json", "--quick"];
    let at_once = traxtent(&args).out;
    let resumed = [&args[..], &["--resume", state.to_str().unwrap()]].concat();
    assert_eq!(traxtent(&resumed).out, at_once);
    assert_eq!(fs::read_dir(&state).unwrap().count(), 3);
    assert_eq!(traxtent(&resumed).out, at_once);
}

/// Is the page complete, with every claim, its reason and its figure, and without references to
/// other files or hosts?
#[test]
fn page() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("new/place");
    let report = traxtent(&[
        "lab",
        "report",
        "T13",
        "T14",
        "--quick",
        "--out",
        place.to_str().unwrap(),
    ]);
    assert_eq!(report.status, 1, "{}", report.err);
    let page = fs::read_to_string(place.join("report.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    for text in [
        "id=\"T13d\"",
        "10.00 ms",
        "settling time and overhead of writes",
        "traxtent lab run T14",
        "prefers-color-scheme",
    ] {
        assert!(page.contains(text), "{text}");
    }
    assert!(!page.contains("id=\"T12a\""));
    assert_eq!(page.contains("<svg"), cfg!(feature = "plot"));
    let links = page.replace("http://www.w3.org/2000/svg", "");
    for text in ["http", "src=", "url(", "@import", "NaN"] {
        assert!(!links.contains(text), "{text}");
    }
    let file = folder.path().join("page.html");
    let again = traxtent(&[
        "lab",
        "report",
        "T13",
        "T14",
        "--quick",
        "--out",
        file.to_str().unwrap(),
    ]);
    assert_eq!(again.status, 1);
    assert_eq!(fs::read_to_string(file).unwrap(), page);
}

/// Does bad input give a message, the right status, and no partly written file?
#[test]
fn bad_input() {
    let folder = tempfile::tempdir().unwrap();
    let closed = folder.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o500)).unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "kept").unwrap();
    let within = |path: &std::path::Path, name: &str| path.join(name).to_str().unwrap().to_owned();
    let (in_file, in_missing_folder) = (
        within(&file, "report"),
        within(folder.path(), "none/page.html"),
    );
    let mut cases = vec![
        (
            vec!["lab", "run", "Q99"],
            2,
            "no claim is named \"Q99\": `traxtent lab list`",
        ),
        (vec!["lab", "run", "T2", "X"], 2, "no claim is named \"X\""),
        (vec!["lab", "list", "Z9"], 2, "no claim is named \"Z9\""),
        (vec!["lab", "run", ""], 2, "no claim is named \"\""),
        (vec!["lab", "report", "Q99"], 2, "no claim is named \"Q99\""),
        (vec!["lab", "report", "--out", &in_file], 3, "file/report"),
        (
            vec!["lab", "report", "--out", &in_missing_folder],
            3,
            "none/page.html",
        ),
        (
            vec!["lab", "run", "T2", "--resume", &in_file],
            3,
            "file/report",
        ),
        (vec!["lab", "run", "T2", "--seeds", "0"], 2, "0"),
        (
            vec!["lab", "run", "T2", "--set", "mechanics.speed=1"],
            2,
            "mechanics.speed",
        ),
        (vec!["lab", "run", "T2", "--set", "x"], 2, "KEY=VALUE"),
        (
            vec!["lab", "run", "T2", "--set", "bus.x=1", "--resume", "r"],
            2,
            "--resume",
        ),
        (
            vec!["lab", "run", "T2", "--seeds", "2", "--seed", "3"],
            2,
            "--seed",
        ),
    ];
    let in_closed = within(&closed, "new");
    // The superuser can write anywhere.
    if fs::write(closed.join("try"), "").is_err() {
        cases.push((vec!["lab", "report", "--out", &in_closed], 3, "closed"));
    }
    for (args, status, says) in cases {
        let answer = traxtent(&args);
        assert_eq!(answer.status, status, "{args:?}: {}", answer.err);
        assert!(
            answer.err.contains(says) && answer.out.is_empty(),
            "{args:?}: {}",
            answer.err
        );
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "kept");
    let left: BTreeSet<_> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    assert_eq!(left, BTreeSet::from(["closed".into(), "file".into()]));
}
