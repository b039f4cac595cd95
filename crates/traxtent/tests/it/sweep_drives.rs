//! Sweeps over drives, and their output files.

use std::collections::BTreeMap;
use std::fs;

use super::command::{json, prints, traxtent};

const SWEEP: [&str; 8] = [
    "sim",
    "--drives",
    "atlas10k,cheetah15k7",
    "random,count=400",
    "--set",
    "workload.outstanding=1,4",
    "--seeds",
    "2",
];

/// Is each row the result of the same command with that drive alone?
#[test]
fn rows_are_single_runs() {
    let rows = json(&[
        "sim",
        "--drives",
        "cheetah15k7,atlas10k",
        "random,count=400",
        "--json",
    ]);
    for (row, drive) in rows
        .as_array()
        .unwrap()
        .iter()
        .zip(["cheetah15k7", "atlas10k"])
    {
        assert_eq!(*row, json(&["sim", drive, "random,count=400", "--json"]));
        assert_eq!(row["seed"], 1);
    }
    let text = prints(&[
        "sim",
        "--drives",
        "cheetah15k7,atlas10k",
        "random,count=400",
    ]);
    assert!(text.contains("\nseed        1\n"), "{text}");
    let names = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    let names: Vec<&str> = names.skip_while(|name| *name != "drive").collect();
    assert_eq!(names, ["drive", "cheetah15k7", "atlas10k"]);
}

/// Does the log have every request of every run, and the summary a row for each run that agrees
/// with it?
#[test]
fn log_and_summary() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, summary, plot) = (file("log.csv"), file("summary.csv"), file("plot.svg"));
    let files = ["--log", &log, "--summary", &summary, "--plot", &plot];
    let text = prints(&[&SWEEP[..], &files].concat());
    assert_eq!(
        text,
        prints(&SWEEP),
        "runs one by one give what parallel runs give"
    );

    let log = fs::read_to_string(log).unwrap();
    let mut lines = log.lines();
    let labels = "drive,workload.outstanding,seed,";
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with(&format!("{labels}request,device,"))
    );
    // For each run: the number of requests and the sum of their response times.
    let mut runs: BTreeMap<&str, (u64, f64)> = BTreeMap::new();
    for line in lines {
        let (at, _) = line.match_indices(',').nth(2).unwrap();
        let response = line.split(',').nth(3 + 9).unwrap();
        let run = runs.entry(&line[..at]).or_default();
        *run = (run.0 + 1, run.1 + response.parse::<f64>().unwrap());
    }
    let summary = fs::read_to_string(summary).unwrap();
    let mut lines = summary.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let mean = head
        .iter()
        .position(|name| *name == "response_mean_ms")
        .unwrap();
    let mut rows = 0;
    for line in lines {
        // The workload is quoted, since it contains commas.
        let mut parts = line.split('"');
        let labels = parts.next().unwrap().trim_end_matches(',');
        assert!(parts.next().unwrap().starts_with("random,"), "{line}");
        let figures: Vec<&str> = parts.next().unwrap().split(',').collect();
        let (count, sum) = runs[labels];
        assert_eq!((count, figures[1]), (400, "400"));
        let stated: f64 = figures[mean - 3].parse().unwrap();
        assert!((sum / 400.0 - stated).abs() < 1e-9, "{labels}: {stated}");
        rows += 1;
    }
    assert_eq!((rows, runs.len()), (8, 8));
    if cfg!(feature = "plot") {
        let svg = fs::read_to_string(plot).unwrap();
        for name in ["atlas10k, outstanding=1", "cheetah15k7, outstanding=4"] {
            assert!(svg.contains(name), "{name}");
        }
    }
}

/// Are the other drives reported if one is too small for the trace, with a line about that one? Is
/// it an error like any other if no drive is left?
#[test]
fn drives_that_are_too_small() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (trace, summary) = (file("far.trace"), file("summary.csv"));
    // The second request is beyond the end of the Atlas 10K.
    fs::write(&trace, "0.0 0 0 8 1\n20.0 0 30000000 8 1\n").unwrap();
    let run = |drives: &str, more: &[&str]| {
        traxtent(&[&["sim", "--drives", drives, &trace], more].concat())
    };
    let drives = "cheetah15k7,atlas10k,generic-20tb";
    let log = file("log.csv");
    for (more, is_json) in [
        (&["--summary", &summary][..], false),
        (&["--json"], true),
        (&["--log", &log], false),
    ] {
        let answer = run(drives, more);
        assert_eq!(answer.status, 1, "{}", answer.err);
        let lines: Vec<&str> = answer.err.lines().collect();
        let begin = format!("traxtent: atlas10k: {trace}: ");
        assert!(lines[0].starts_with(&begin), "{}", answer.err);
        assert_eq!(lines[1..], ["traxtent: not simulated: atlas10k"]);
        let rows = if is_json {
            let rows: Vec<serde_json::Value> = serde_json::from_str(&answer.out).unwrap();
            let target = |row: &serde_json::Value| row["target"].as_str().unwrap().to_owned();
            rows.iter().map(target).collect()
        } else {
            let rows = answer
                .out
                .lines()
                .skip_while(|line| !line.starts_with("drive "));
            let name = |row: &str| row.split(' ').next().unwrap().to_owned();
            rows.skip(1).map(name).collect::<Vec<_>>()
        };
        assert_eq!(rows, ["cheetah15k7", "generic-20tb"]);
    }
    assert_eq!(fs::read_to_string(&summary).unwrap().lines().count(), 3);
    // The log has the two requests on each of the other drives, and none on the Atlas 10K.
    let rows = fs::read_to_string(&log).unwrap();
    let of_drive = |name: &str| rows.lines().filter(|row| row.starts_with(name)).count();
    let counts = ["cheetah15k7,", "atlas10k,", "generic-20tb,"].map(of_drive);
    assert_eq!((counts, rows.lines().count()), ([2, 0, 2], 5));
    // One row of a sweep is still a row.
    let answer = run("atlas10k,cheetah15k7", &["--json"]);
    assert!(answer.out.starts_with("[\n"), "{}", answer.out);
    fs::remove_file(&log).unwrap();
    for more in [&[][..], &["--log", &log]] {
        let answer = run("atlas10k,ibm18es", more);
        assert_eq!(
            (answer.status, answer.out.as_str()),
            (2, ""),
            "{}",
            answer.err
        );
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
    assert!(!fs::exists(&log).unwrap());
}

/// Is there one warning, even with `--quiet`, if a trace has requests for devices that the
/// parameters do not map?
#[test]
fn omitted_requests_are_reported() {
    let data = testkit::shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("foreign.trace");
    let text = fs::read_to_string(data.join("ascii.trace")).unwrap();
    let known = text.lines().next().unwrap();
    let late = "100000.0 12345 8 8 1\n";
    fs::write(&trace, format!("{known}\n{late}{late}")).unwrap();
    let parameters = format!("disksim:{}", data.join("ascii.parv").display());
    let warning = format!(
        "traxtent: warning: {}: omitted 2 requests for devices that the parameters do not map\n",
        trace.display()
    );
    let sim = ["sim", &parameters, trace.to_str().unwrap()];
    for more in [&["--quiet"][..], &["--quiet", "--set", "queue.depth=1,2"]] {
        let answer = traxtent(&[&sim[..], more].concat());
        assert_eq!((answer.status, answer.err.as_str()), (0, warning.as_str()));
    }
}

/// Does the curve of a picture rise at each response time of the log, by the share of one request?
#[test]
fn curve_of_the_log() {
    if !cfg!(feature = "plot") {
        testkit::skip!("this build cannot draw pictures; rebuild it with the feature `plot`");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, plot) = (file("log.csv"), file("plot.svg"));
    let sim = ["sim", "atlas10k", "random,count=50", "--log-x"];
    prints(&[&sim[..], &["--log", &log, "--plot", &plot]].concat());
    let log = fs::read_to_string(log).unwrap();
    let rows = log
        .lines()
        .skip(1)
        .map(|row| row.split(',').nth(9).unwrap());
    let mut times: Vec<f64> = rows.map(|text| text.parse::<f64>().unwrap().ln()).collect();
    times.sort_by(f64::total_cmp);

    let svg = fs::read_to_string(plot).unwrap();
    let lines = svg.split("points=\"").skip(1);
    let longest = lines.map(|line| line.split('"').next().unwrap());
    let curve = longest.max_by_key(|line| line.len()).unwrap();
    let number = |text: &str| text.parse::<f64>().unwrap();
    let curve: Vec<(f64, f64)> = curve
        .split_whitespace()
        .map(|point| point.split_once(',').unwrap())
        .map(|(x, y)| (number(x), number(y)))
        .collect();
    let (first, last) = (curve[0], curve[curve.len() - 1]);
    // The ends fix the axes; all points between must match the log.
    let share = |y: f64| (y - first.1) / (last.1 - first.1) * 50.0;
    for (rank, time) in times.iter().enumerate() {
        let place = (time - times[0]) / (times[49] - times[0]);
        let x = first.0 + place * (last.0 - first.0);
        let rises = curve.windows(2).any(|pair| {
            let at = (pair[0].0 - x).abs() <= 1.0 && pair[0].0 == pair[1].0;
            at && share(pair[0].1) <= rank as f64 + 0.1 && share(pair[1].1) >= rank as f64 + 0.9
        });
        assert!(rises, "request {rank} of 50 in order of time: {curve:?}");
    }
}

/// Are logarithmic axes named, and refused without a picture?
#[test]
fn logarithmic_axes() {
    if !cfg!(feature = "plot") {
        testkit::skip!("this build cannot draw pictures; rebuild it with the feature `plot`");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.svg");
    let sim = ["sim", "atlas10k", "random,count=2000", "--log-x", "--log-y"];
    prints(&[&sim[..], &["--plot", path.to_str().unwrap()]].concat());
    let svg = fs::read_to_string(path).unwrap();
    for text in ["share of requests that took longer", "0.1 %", "100 %"] {
        assert!(svg.contains(text), "{text}");
    }
    assert_eq!(traxtent(&sim).status, 2);
}

/// Are contradictory and unusable options refused in one line that names them?
#[test]
fn refused() {
    for (line, says) in [
        ("sim atlas10k random --drives atlas10k2", "omit it"),
        (
            "sim --drives atlas10k,atlas10k random",
            "atlas10k is given twice",
        ),
        ("sim --drives atlas10k,atlas10x random", "did you mean"),
        ("sim --drives atlas10k,cheetah15k7", "contains no workload"),
        (
            "sim atlas10k random --set workload.size=1..13:1 --plot a.svg",
            "at most 12",
        ),
    ] {
        if line.contains("--plot") && !cfg!(feature = "plot") {
            continue;
        }
        let arguments: Vec<&str> = line.split(' ').collect();
        let answer = traxtent(&arguments);
        assert_eq!(answer.status, 2, "{line}: {}", answer.out);
        assert!(answer.err.contains(says), "{line}: {}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
}

/// Does a build without Parquet print how to get one with it?
#[cfg(not(feature = "parquet"))]
#[test]
fn without_parquet() {
    let answer = traxtent(&["sim", "atlas10k", "random", "--log", "a.parquet"]);
    assert_eq!(answer.status, 2);
    assert!(answer.err.contains("--features parquet"), "{}", answer.err);
}
