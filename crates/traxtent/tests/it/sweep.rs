//! `--set` and `--seeds`.

use std::fs;

use super::command::{json, prints, traxtent};

const SMALL: &str = "random,count=500";

/// Do values that depend on each other have the same effect in either order? Does an error in a
/// sweep over drives name the drive? Does one for a word list the words?
#[test]
fn values_that_depend_on_each_other() {
    let (all, writes) = ("cache.segments=8", "cache.write_segments=8");
    let simulate = |sets: [&str; 2]| {
        let sets = ["--set", sets[0], "--set", sets[1]];
        prints(&[&["sim", "cheetah15k7", SMALL], &sets[..]].concat())
    };
    let (one, other) = (simulate([all, writes]), simulate([writes, all]));
    let response = |text: &str| {
        let line = text.lines().find(|line| line.starts_with("response"));
        line.map(str::to_owned).unwrap()
    };
    assert_eq!(response(&one), response(&other));
    let drives = [
        "sim",
        "--drives",
        "atlas10k,cheetah15k7",
        SMALL,
        "--set",
        all,
    ];
    let answer = traxtent(&drives);
    assert_eq!(answer.status, 2);
    let says = "cheetah15k7: --set cache.segments=8: cache.write_segments";
    assert!(answer.err.contains(says), "{}", answer.err);
    let answer = traxtent(&["sim", "atlas10k", SMALL, "--set", "cache.write_back=true"]);
    assert_eq!(answer.status, 2);
    for word in ["none", "full"] {
        assert!(answer.err.contains(word), "{}", answer.err);
    }
}

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

/// Does the error for a log of several seeds or of a sweep, used as a trace, say that it is such a
/// log?
#[test]
fn a_log_of_several_runs_is_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    let log = log.to_str().unwrap();
    for several in [
        &["--seeds", "2"][..],
        &["--set", "queue.scheduler=fcfs,sptf", "--quiet"],
    ] {
        prints(&[&["sim", "atlas10k", SMALL, "--log", log], several].concat());
        for format in [&[][..], &["--format", "request-log"]] {
            let answer = traxtent(&[&["sim", "atlas10k", log], format].concat());
            assert_eq!(answer.status, 2);
            let expected = "a request log of several runs; only the log of one run can be replayed";
            assert!(answer.err.contains(expected), "{}", answer.err);
        }
    }
}

/// Does a semi-closed replay of a log that has a trace's measured times reproduce the logged run,
/// with the pauses of that run instead of ones from the other drive's times? Does `validate` do so
/// by default?
#[test]
fn pauses_of_a_log_are_its_own() {
    let data = testkit::shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.csv");
    let (log, trace) = (log.to_str().unwrap(), data.join("atlas10k.trace"));
    let drive = format!("disksim:{}", data.join("ibm18es.parv").display());
    let run = |trace: &str, more: &[&str]| {
        let result = json(&[&["sim", &drive, trace, "--json", "--quiet"], more].concat());
        ["simulated_ms", "response_ms"].map(|key| result[key].clone())
    };
    let first = run(trace.to_str().unwrap(), &["--log", log]);
    assert_eq!(run(log, &["--replay", "semi-closed"]), first);
    let verdicts = json(&["validate", log, "--drive", &drive, "--json", "--quiet"]);
    let (mean, expected) = (&verdicts[0]["mean_ms"], &first[1]["mean"]);
    let difference = mean.as_f64().unwrap() - expected.as_f64().unwrap();
    assert!(difference.abs() < 1e-6, "{mean} instead of {expected}");
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

/// Simulates with figures replaced, and returns the notes.
fn notes_of(drive: &str, workload: &str, sets: &[&str]) -> String {
    let sets = sets.iter().flat_map(|set| ["--set", set]);
    let line: Vec<&str> = ["sim", drive, workload].into_iter().chain(sets).collect();
    let answer = traxtent(&line);
    assert_eq!(answer.status, 0, "{line:?}: {}", answer.err);
    answer.err
}

/// Is there a note, with the depth and the remedy, if more requests are outstanding than the
/// drive's queue holds? Is there none at the depth itself, or if the depth is varied?
#[test]
fn queues_shorter_than_the_workload() {
    let run = |workload: &str, sets: &[&str]| notes_of("atlas10k", workload, sets);
    // The depth of the Atlas 10K is 64.
    let closed = |outstanding: u32| format!("random,count=99,outstanding={outstanding}");
    assert_eq!(run(&closed(64), &[]), "");
    let note = run(&closed(65), &[]);
    for says in ["65 requests", "queue.depth is 64", "--set queue.depth=65"] {
        assert!(note.contains(says), "{note}");
    }
    let swept = run("random,count=99", &["workload.outstanding=1,16,128"]);
    assert_eq!(swept.matches("--set queue.depth=128").count(), 1, "{swept}");
    assert_eq!(run(&closed(65), &["queue.depth=1,64"]), "");
    assert_eq!(run(&closed(65), &["host.scheduler=sstf"]), "");
}

/// Is there a note if most skews are too short for the heads? Is there none for a drive as it is,
/// or for one that reads from where the heads arrive?
#[test]
fn short_skews() {
    let notes = |drive: &str, sets: &[&str]| notes_of(drive, "sequential,size=1MiB,count=99", sets);
    assert_eq!(notes("atlas10k2", &["mechanics.rpm=15000"]), "");
    for drive in ["generic-20tb", "toshiba-p300"] {
        assert_eq!(notes(drive, &[]), "", "{drive}");
        assert_eq!(notes(drive, &["mechanics.rpm=5400"]), "", "{drive}");
        let faster = notes(drive, &["mechanics.rpm=10000,12000"]);
        assert_eq!(
            faster.matches("lose a revolution").count(),
            1,
            "{drive}: {faster}"
        );
    }
}

/// Is there a note about cylinders without a zone, and none for a drive as it is?
#[test]
fn cylinders_without_a_zone() {
    let notes = |sets: &[&str]| notes_of("toshiba-p300", "random,count=9", sets);
    assert_eq!(notes(&[]), "");
    let note = notes(&["geometry.cylinders=900000"]);
    for says in [
        "geometry.cylinders is 900000",
        "the zones end at cylinder",
        "raise last_cylinder",
    ] {
        assert!(note.contains(says), "{note}");
    }
}

/// Does a picture over a key have each row of the sweep, with the unit of the values on its axis?
/// Are values that are not numbers in one unit refused before anything is simulated?
#[test]
fn pictures_over_a_key() {
    if !cfg!(feature = "plot") {
        testkit::skip!("this build cannot draw pictures; rebuild it with the feature `plot`");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("over.svg");
    let run = |sets: &[&str], over: &str| {
        let sim = ["sim", "atlas10k", SMALL, "--plot", path.to_str().unwrap()];
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let line = sim.into_iter().chain(sets).chain(["--plot-over", over]);
        traxtent(&line.collect::<Vec<_>>())
    };
    let schedulers = "queue.scheduler=fcfs,sptf";
    // More rows than a picture of distributions can have.
    let depths = "workload.outstanding=1,2,4,8,16,32,64";
    let answer = run(&[schedulers, depths], "workload.outstanding");
    assert_eq!(answer.status, 0, "{}", answer.err);
    let svg = fs::read_to_string(&path).unwrap();
    for text in [
        "throughput, requests/s",
        "99 % (dashed)",
        "workload.outstanding",
        "scheduler=fcfs",
        "scheduler=sptf",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    // A mark for the throughput, the mean and the percentile of each row, and one in the legend.
    // One scheduler has circles, the other squares.
    for shape in ["<circle", "<polygon"] {
        assert_eq!(svg.matches(shape).count(), 7 * 3 + 1, "{shape}");
    }
    assert_eq!(run(&["workload.size=4KiB,8KiB"], "workload.size").status, 0);
    let svg = fs::read_to_string(&path).unwrap();
    assert!(svg.contains("workload.size, KiB") && svg.contains("throughput, MB/s"));
    let sizes = ["workload.size=4KiB,1MiB,16K", "mechanics.rpm=7200"];
    assert_eq!(run(&sizes, "workload.size").status, 0);
    let svg = fs::read_to_string(&path).unwrap();
    assert!(
        svg.contains("mechanics.rpm=7200"),
        "a constant is in the title"
    );
    for text in ["workload.size, KiB", "1024"] {
        assert!(svg.contains(text), "{text}");
    }

    for (sets, over, says) in [
        (&[schedulers, depths][..], "queue.scheduler", "not a number"),
        (&[depths], "queue.depth", "add them"),
        (&[depths], "queue.dept", "did you mean queue.depth?"),
        (&[depths], "drive", "drive is not a key of the profile"),
        (&[depths], "workload.siez", "unknown key \"siez\""),
        (
            &["workload.outstanding=4"],
            "workload.outstanding",
            "add them",
        ),
        (
            &["workload.size=4KiB,16"],
            "workload.size",
            "different units",
        ),
        (
            &["workload.think=0,1ms,1us"],
            "workload.think",
            "different units",
        ),
        (
            &[depths, "workload.seed=1..7:1"],
            "workload.outstanding",
            "at most 6",
        ),
    ] {
        let answer = run(sets, over);
        assert_eq!(answer.status, 2, "{sets:?}: {}", answer.out);
        assert!(answer.err.contains(says), "{sets:?}: {}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
}

/// Does a sweep show how many writes cover a physical sector only in part, and the keys that avoid
/// them?
#[test]
fn partial_writes() {
    let run = |sizes: &str| {
        let line = "random,read=0,count=200";
        let sizes = format!("workload.size={sizes}");
        prints(&["sim", "generic-20tb", line, "--set", &sizes])
    };
    let text = run("4KiB,3,12");
    let column: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.ends_with("partial writes"))
        .skip(1)
        .take(3)
        .map(|row| row.rsplit(' ').next().unwrap())
        .collect();
    assert_eq!(column[0], "0", "{text}");
    assert!(column[1..].iter().all(|count| *count != "0"), "{text}");
    assert!(text.contains("\n  align=8,round=8 avoids this\n"), "{text}");
    assert!(!run("4KiB,8KiB").contains("partial"));
}

/// Is the row of a value that the drive refuses left out, with a line that names it?
#[test]
fn refused_rows_are_left_out() {
    let zones = ["sim", "atlas10k", SMALL, "--set", "workload.zone=0,99,1"];
    let answer = traxtent(&[&zones[..], &["--json"]].concat());
    assert_eq!(answer.status, 1, "{}", answer.err);
    let rows: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    let rows = rows.as_array().unwrap().iter();
    let zones: Vec<_> = rows.map(|row| &row["set"]["workload.zone"]).collect();
    assert_eq!(zones, [0, 1]);
    let lines: Vec<&str> = answer.err.lines().collect();
    assert!(
        lines[0].starts_with("traxtent: zone=99: workload: "),
        "{lines:?}"
    );
    assert_eq!(lines[1..], ["traxtent: not simulated: zone=99"]);
}

/// Does the error for a scheduler by the name or number of DiskSim or of a textbook name the one
/// that models it?
#[test]
fn schedulers_of_disksim() {
    for (key, value, hint) in [
        (
            "queue",
            "elevator",
            "did you mean look (DiskSim's ELEVATOR_LBN, policy 2)?",
        ),
        (
            "host",
            "CYCLE_LBN",
            "did you mean c-look (DiskSim's CYCLE_LBN, policy 3)?",
        ),
        ("queue", "scan", "did you mean look ("),
        ("queue", "3", "did you mean c-look ("),
        (
            "queue",
            "vscan",
            "did you mean look (nearest to DiskSim's VSCAN_LBN, policy 17)?",
        ),
        ("queue", "ASPTF_OPT", "did you mean {aged-sptf={weight=W}}"),
        // A host does not know where the heads are.
        ("host", "satf", "host.scheduler = satf: must be \"fcfs\", "),
        ("host", "best", "host.scheduler = best: must be \"fcfs\", "),
        ("queue", "best", "expected one of"),
    ] {
        let set = format!("{key}.scheduler={value}");
        let answer = traxtent(&["sim", "atlas10k", SMALL, "--set", &set]);
        assert_eq!(answer.status, 2, "{set}");
        assert!(answer.err.contains(hint), "{set}: {}", answer.err);
        let has_hint = answer.err.contains("did you mean");
        assert_eq!(has_hint, hint.contains("did you mean"), "{}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
}

/// Does the error for a malformed workload describe the grammar, even if the text resembles a file
/// name?
#[test]
fn malformed_workloads() {
    for line in [
        "randm",
        "randm,read=0.66,size=4KiB",
        "read=0.5",
        "random,0.5",
    ] {
        let answer = traxtent(&["sim", "atlas10k", line]);
        assert_eq!(answer.status, 2, "{line}: {}", answer.err);
        for part in ["KIND,KEY=VALUE", "sequential, mixed", "count, time, seed"] {
            assert!(answer.err.contains(part), "{line}: {}", answer.err);
        }
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
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
    // The head names seeds only if they are those of all rows.
    let head = |set: &str| {
        let text = prints(&["sim", "atlas10k", SMALL, "--seeds", "2", "--set", set]);
        let line = text.lines().find(|line| line.starts_with("seeds "));
        line.unwrap().to_owned()
    };
    assert!(head("workload.count=10,20").contains(" 1 to 2: means"));
    assert!(head("workload.seed=3,4").contains(" 2 of each row: means"));
}

/// Is a workload refused that is both open and closed, in either order of the settings?
#[test]
fn open_and_closed() {
    let (open, closed) = ("workload.arrive=exp:15ms", "workload.outstanding=4,8");
    for sets in [[open, closed], [closed, open]] {
        let [first, second] = sets;
        let answer = traxtent(&["sim", "atlas10k", SMALL, "--set", first, "--set", second]);
        assert_eq!(answer.status, 2, "{}", answer.out);
        let says = "open (arrive) or closed (outstanding, think), not both";
        assert!(answer.err.contains(says), "{}", answer.err);
    }
    let line = "random,count=10,outstanding=4";
    let answer = traxtent(&["sim", "atlas10k", line, "--set", open]);
    assert_eq!(answer.status, 2, "{}", answer.out);
}

/// Does the error for an invalid key or value name it in one line?
#[test]
fn refused() {
    for (set, says) in [
        ("mechanics.rmp=7200", "mechanics.rmp"),
        ("mechanics.rpm=fast", "fast"),
        ("mechanics.rpm=-1", "mechanics.rpm"),
        (
            "mechanics.seek={curve=three-point-curve,single_ms=1}",
            "expected a table with `curve` and its values",
        ),
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
