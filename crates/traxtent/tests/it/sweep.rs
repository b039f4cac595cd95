//! `--set` and `--seeds`.

use std::fs;

use super::command::{json, prints, traxtent};

const SMALL: &str = "random,count=500";

/// Does setting a value of the profile, or of the workload, change the simulation accordingly?
#[test]
fn sets_figures() {
    let mean = |set: &[&str]| {
        let arguments = [&["sim", "atlas10k", SMALL, "--json"], set].concat();
        json(&arguments)["response_ms"]["mean"].as_f64().unwrap()
    };
    let plain = mean(&[]);
    assert!(mean(&["--set", "mechanics.rpm=5000"]) > plain);
    assert!(mean(&["--set", "workload.size=1MiB"]) > plain);
    assert_eq!(mean(&["--set", "workload.size=8"]), plain);
}

/// Does a sweep have a row for each combination, with the last key varying fastest?
#[test]
fn rows() {
    let sets = [
        "--set",
        "queue.scheduler=fcfs,sptf",
        "--set",
        "workload.outstanding=1..9:4",
    ];
    let rows = json(&[&["sim", "atlas10k", SMALL, "--json"], &sets[..]].concat());
    let shown: Vec<String> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let outstanding = &row["set"]["workload.outstanding"];
            assert!(outstanding.is_u64(), "numbers stay numbers");
            row["set"]
                .as_object()
                .unwrap()
                .values()
                .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        shown,
        ["fcfs 1", "fcfs 5", "fcfs 9", "sptf 1", "sptf 5", "sptf 9"]
    );
    let throughput = |row: usize| rows[row]["requests_per_s"].as_f64().unwrap();
    assert!(
        throughput(5) > throughput(2),
        "sptf is faster than fcfs at depth 9"
    );
    let text = prints(&[&["sim", "atlas10k", SMALL], &sets[..]].concat());
    assert_eq!(text.lines().count(), 5 + 6);
}

/// Does a sweep of seeds have the results of these seeds? Does the head of a sweep of the workload
/// leave out what differs between the rows?
#[test]
fn seeds_and_the_head() {
    let mean = |row: &serde_json::Value| row["response_ms"]["mean"].as_f64().unwrap();
    let set = ["sim", "atlas10k", SMALL, "--set", "workload.seed=3,4"];
    let rows = json(&[&set[..], &["--json"]].concat());
    for (row, seed) in [(0, "3"), (1, "4")] {
        let one = json(&["sim", "atlas10k", SMALL, "--seed", seed, "--json"]);
        assert_eq!(mean(&rows[row]), mean(&one), "seed {seed}");
    }
    let both = [&set[..], &["--seed", "1"]].concat();
    assert_eq!(traxtent(&both).status, 2);
    let line = "random,count=500,outstanding=4";
    let text = prints(&[
        "sim",
        "atlas10k",
        line,
        "--set",
        "workload.outstanding=4,64",
    ]);
    assert!(
        text.contains("workload    random,count=500,outstanding=…\n"),
        "{text}"
    );
}

/// Is a log replayed on the drives that it names, although the parameters map a trace's devices?
#[test]
fn a_log_is_not_mapped() {
    let data = testkit::shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    let [head, log] = ["head.trace", "log.csv"].map(|name| {
        let path = folder.path().join(name);
        path.to_str().unwrap().to_owned()
    });
    let trace = fs::read_to_string(data.join("ascii.trace")).unwrap();
    let lines: Vec<&str> = trace.lines().take(2000).collect();
    fs::write(&head, lines.join("\n") + "\n").unwrap();
    let parameters = format!("disksim:{}", data.join("ascii.parv").display());
    let run = |trace: &str, more: &[&str]| {
        let result = json(&[&["sim", &parameters, trace, "--json", "--quiet"], more].concat());
        (
            result["requests"].clone(),
            result["response_ms"]["mean"].clone(),
        )
    };
    let first = run(&head, &["--log", &log]);
    assert_eq!(run(&log, &[]), first);
}

/// Is a note printed for a sweep of schedulers or queue depths only if it has no effect? Does the
/// note name the reason?
#[test]
fn schedulers_without_a_choice() {
    let schedulers = "queue.scheduler=fcfs,sptf";
    let drive = traxtent_model::profile::builtin::text("atlas10k").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let held = folder.path().join("held.toml");
    fs::write(&held, format!("{drive}\n[host]\none_at_a_time = true\n")).unwrap();
    let held = held.to_str().unwrap();
    let two = "random,count=9,outstanding=2";
    for (drive, workload, sets, noted) in [
        (
            "atlas10k",
            two,
            &["queue.depth=1", schedulers][..],
            Some("queue.depth is 1"),
        ),
        ("atlas10k", two, &["queue.depth=4", schedulers], None),
        ("atlas10k", two, &["queue.depth=1,4", schedulers], None),
        (
            "atlas10k",
            "random,count=9",
            &["queue.depth=4", schedulers],
            Some("one request outstanding"),
        ),
        (
            held,
            two,
            &["queue.depth=1,4", schedulers],
            Some("--set host.one_at_a_time=false"),
        ),
        (
            held,
            two,
            &["queue.depth=1,4"],
            Some("--set host.one_at_a_time=false"),
        ),
        (
            held,
            two,
            &["queue.depth=1,4", "host.one_at_a_time=false"],
            None,
        ),
    ] {
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let line: Vec<&str> = ["sim", drive, workload].into_iter().chain(sets).collect();
        let answer = traxtent(&line);
        assert_eq!(answer.status, 0, "{line:?}: {}", answer.err);
        match noted {
            Some(says) => assert!(
                answer.err.contains("no effect") && answer.err.contains(says),
                "{line:?}: {}",
                answer.err
            ),
            None => assert_eq!(answer.err, "", "{line:?}"),
        }
    }
}

/// Is the mean over seeds equal to that of the individual runs, with an interval around it?
#[test]
fn seeds() {
    let one = |seed: &str| {
        let summary = json(&["sim", "atlas10k", SMALL, "--json", "--seed", seed]);
        summary["response_ms"]["mean"].as_f64().unwrap()
    };
    let all = json(&[
        "sim", "atlas10k", SMALL, "--json", "--seed", "3", "--seeds", "3",
    ]);
    let mean = (one("3") + one("4") + one("5")) / 3.0;
    assert!((all["response_ms"]["mean"]["mean"].as_f64().unwrap() - mean).abs() < 1e-9);
    assert!(all["response_ms"]["mean"]["half_width"].as_f64().unwrap() > 0.0);
    assert_eq!(all["seeds"], serde_json::json!([3, 4, 5]));
}

/// Does the error for an invalid key or value name it in one line?
#[test]
fn refused() {
    for (set, says) in [
        ("mechanics.rmp=7200", "mechanics.rmp"),
        ("mechanics.rpm=fast", "fast"),
        ("mechanics.rpm=-1", "mechanics.rpm"),
        ("workload.siez=8", "siez"),
        ("workload.size=0", "size"),
        ("rpm", "expected KEY=VALUE"),
    ] {
        let answer = traxtent(&["sim", "atlas10k", SMALL, "--set", set]);
        assert_eq!(answer.status, 2, "{set}");
        assert!(answer.err.contains(says), "{set}: {}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
}
