//! Traces that `sim` and `validate` read by specified columns, and traces with measured times.

use std::fs;
use std::io::Write;
use std::path::Path;

use super::command::{Answer, traxtent_in};

/// The options that read a log by the names of its columns, with completion times instead of
/// arrival times.
const LOG: [&str; 4] = [
    "--columns",
    "completed=completed_ms,response=response_ms,op=op,fua=fua,lbn=lbn,sectors=sectors,device=device",
    "--units",
    "ms",
];

fn run(folder: &Path, arguments: &[&str]) -> Answer {
    traxtent_in(folder, arguments)
}

fn succeed(folder: &Path, arguments: &[&str]) -> Answer {
    let answer = run(folder, arguments);
    assert_eq!(answer.status, 0, "{arguments:?}: {}", answer.err);
    answer
}

fn json(folder: &Path, arguments: &[&str]) -> serde_json::Value {
    let answer = succeed(folder, &[arguments, &["--json"]].concat());
    serde_json::from_str(&answer.out).expect("the output is JSON")
}

/// Simulates an open workload, and returns the folder of its `log.csv`, and its figures.
fn logged() -> (tempfile::TempDir, serde_json::Value) {
    let folder = tempfile::tempdir().unwrap();
    let workload = "mixed,seq=50%,read=60%,size=choice:8/64,count=600,arrive=exp:9ms";
    let drive = "hp-c2247";
    let log = ["sim", drive, workload, "--log", "log.csv"];
    let figures = json(folder.path(), &log);
    (folder, figures)
}

/// Does a request log read by its columns give the same simulation, request by request: plain,
/// compressed, and with the columns by number?
#[test]
fn a_log_read_by_its_columns_gives_the_same_simulation() {
    let (folder, mut expected) = logged();
    let folder = folder.path();
    expected.as_object_mut().unwrap().remove("seed");
    let text = fs::read(folder.join("log.csv")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&text).unwrap();
    fs::write(folder.join("log.gz"), gzip.finish().unwrap()).unwrap();
    let by_number = [
        "--columns",
        "time=7,op=3,fua=4,lbn=5,sectors=6,response=10",
        "--units",
        "time=ms,response=ms",
    ];
    for (trace, columns) in [("log.csv", LOG), ("log.gz", LOG), ("log.csv", by_number)] {
        let arguments = [
            &["sim", "hp-c2247", trace, "--log", "again.csv"][..],
            &columns,
        ];
        let mut figures = json(folder, &arguments.concat());
        figures["workload"] = expected["workload"].clone();
        assert_eq!(figures, expected, "{columns:?}");
        // The last column but one has the measured times, which the first run did not have.
        let rows = |text: &str| -> Vec<String> {
            let rows = text.lines().skip(1);
            rows.map(|row| row.rsplitn(3, ',').nth(2).unwrap().to_owned())
                .collect()
        };
        let again = fs::read_to_string(folder.join("again.csv")).unwrap();
        assert!(rows(&again) == rows(std::str::from_utf8(&text).unwrap()));
    }
}

/// Does `validate` find no difference between a drive and its own log? Are requests that came one
/// after the other replayed with their pauses, and overlapping ones at their recorded times?
#[test]
fn a_drive_validates_against_its_own_log() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (workload, is_serial) in [
        ("random,count=300,think=exp:3ms", true),
        ("random,count=300,outstanding=4", false),
    ] {
        succeed(folder, &["sim", "hp-c2247", workload, "--log", "log.csv"]);
        let validate = [&["validate", "log.csv", "--drive", "hp-c2247"][..], &LOG].concat();
        let verdict = &json(folder, &validate)[0];
        assert_eq!(verdict["requests"], 300);
        assert!(verdict["rms_ms"].as_f64().unwrap() < 1e-6, "{verdict}");
        // With a slower drive, requests that came one after the other do not pile up.
        let slower = [&validate[..], &["--set", "mechanics.rpm=4500"]].concat();
        let ratio = |verdict: &serde_json::Value| {
            verdict["mean_ms"].as_f64().unwrap() / verdict["measured_mean_ms"].as_f64().unwrap()
        };
        let found = ratio(&json(folder, &slower)[0]);
        assert_eq!(found < 1.5, is_serial, "{workload}: {found}");
    }
}

/// Is each mistake reported in one line with the right status: a wrong option, a wrong line, a
/// missing file, no measured times? Is there a warning about a wrong unit?
#[test]
fn mistakes() {
    let (folder, _) = logged();
    let folder = folder.path();
    fs::write(folder.join("bad.csv"), "1,R,8,8\n2,R,x,8\n").unwrap();
    let columns = |text: &'static str| ["sim", "hp-c2247", "bad.csv", "--columns", text];
    let good = "time=1,op=2,lbn=3,sectors=4";
    for (arguments, status, expected) in [
        (
            columns("time=1,op=2").to_vec(),
            2,
            "traxtent: --units: time= has no unit; add --units time=UNIT",
        ),
        (
            [&columns("time=1,op=2")[..], &["--units", "ms"]].concat(),
            2,
            "traxtent: --columns: lbn= or offset= is missing",
        ),
        (
            [&columns(good)[..], &["--units", "ms"]].concat(),
            2,
            "traxtent: bad.csv:2: csv trace: lbn (column 3): \"x\": expected a whole number from 0 to",
        ),
        (
            [&columns(good)[..], &["--units", "ms", "--where", "2"]].concat(),
            2,
            "traxtent: --where: 2: expected COLUMN=VALUE",
        ),
        (
            [
                "sim",
                "hp-c2247",
                "random,count=9",
                "--columns",
                good,
                "--units",
                "s",
            ]
            .to_vec(),
            2,
            "traxtent: --columns applies only to traces",
        ),
        (
            [
                &["sim", "hp-c2247", "none.csv", "--columns", good],
                &["--units", "ms"][..],
            ]
            .concat(),
            3,
            "traxtent: none.csv: No such file",
        ),
        (
            [
                &["validate", "--drive", "hp-c2247", "log.csv", "--quiet"][..],
                &[
                    "--columns",
                    "time=issued_ms,op=op,lbn=lbn,sectors=sectors",
                    "--units",
                    "ms",
                ],
            ]
            .concat(),
            2,
            "traxtent: log.csv: has no measured times",
        ),
    ] {
        let answer = run(folder, &arguments);
        assert_eq!(answer.status, status, "{arguments:?}: {}", answer.err);
        assert!(
            answer.err.starts_with(expected),
            "{arguments:?}: {}",
            answer.err
        );
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
    let wrong = [
        &["sim", "hp-c2247", "log.csv"][..],
        &LOG[..3],
        &["ms,response=s"],
    ]
    .concat();
    let answer = run(folder, &wrong);
    let warning = "the median of the first 600 measured times is";
    assert!(answer.err.contains(warning), "{}", answer.err);
}

/// Does `validate` read the response times in fio's latency logs and in blkparse's output, from the
/// dispatch or from the entry into the queue?
#[test]
fn recordings_of_fio_and_blktrace() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (mut fio, mut blkparse) = (String::new(), String::new());
    for index in 0..40_u64 {
        let (start_us, lbn) = (index * 20_000, index * 7919 % 250_000 * 8);
        let end_us = start_us + 11_000 + index * 37;
        let line = format!(
            "{}, {}, 0, 4096, {}, 0\n",
            end_us / 1000,
            (end_us - start_us) * 1000,
            lbn * 512
        );
        fio.push_str(&line);
        for (us, action) in [(start_us, "Q"), (start_us + 40, "D"), (end_us, "C")] {
            let seconds = format!("{}.{:06}", us / 1_000_000, us % 1_000_000);
            blkparse.push_str(&format!(
                "  8,0    0        1     {seconds}000   697  {action}   R {lbn} + 8 [0]\n"
            ));
        }
    }
    fs::write(folder.join("a_clat.1.log"), fio).unwrap();
    fs::write(folder.join("a.blkparse"), blkparse).unwrap();
    let validate = |trace: &str, more: &[&str]| {
        let arguments = [&["validate", trace, "--drive", "hp-c2247"], more].concat();
        let verdict = json(folder, &arguments)[0].clone();
        assert_eq!(verdict["requests"], 40, "{trace}");
        verdict["measured_mean_ms"].as_f64().unwrap()
    };
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-6, "{found}");
    near(validate("a_clat.1.log", &[]), 11.7215);
    near(validate("a.blkparse", &[]), 11.6815);
    near(validate("a.blkparse", &["--arrival", "queue"]), 11.7215);
}

/// Does a note state which drive serves which named device, in the order of their appearance? Is
/// there none for a single drive, or for devices that are numbers?
#[test]
fn named_devices_and_their_drives() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let trace = |names: [&str; 2]| {
        let line = |index: usize| format!("{}0,R,{}00,8,{}\n", index, index, names[index % 2]);
        (0..20).map(line).collect::<String>()
    };
    fs::write(folder.join("names.csv"), trace(["sdc", "sda"])).unwrap();
    fs::write(folder.join("numbers.csv"), trace(["1", "0"])).unwrap();
    let notes = |trace: &str, more: &[&str]| -> String {
        let columns = ["--columns", "time=1,op=2,lbn=3,sectors=4,device=5"];
        let start = ["sim", "atlas10k", trace, "--units", "ms"];
        succeed(folder, &[&start[..], &columns, more].concat()).err
    };
    let second = ["--drive", "hp-c2247"];
    assert_eq!(
        notes("names.csv", &second),
        "traxtent: note: names.csv: devices of the trace: sdc is device 0 (atlas10k), sda is device \
         1 (hp-c2247)\n"
    );
    assert_eq!(notes("numbers.csv", &second), "");
    // A device that is selected by its number needs the note too.
    assert_eq!(
        notes("names.csv", &["--device", "1"]),
        "traxtent: note: names.csv: devices of the trace: sdc is device 0, sda is device 1\n"
    );
    let one = trace(["sdc", "sdc"]);
    fs::write(folder.join("names.csv"), one).unwrap();
    assert_eq!(notes("names.csv", &[]), "");
}

/// Does `validate` warn about measured times in the wrong unit, in both directions and with the
/// name of the trace? Is there no warning if the means differ by a factor of 100?
#[test]
fn means_that_differ_by_a_unit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let warnings = |response: f64| {
        let line = |index: u64| format!("{}000,R,{},8,{response}\n", index, index * 7919 * 8);
        fs::write(folder.join("t.csv"), (0..20).map(line).collect::<String>()).unwrap();
        let columns = ["--columns", "time=1,op=2,lbn=3,sectors=4,response=5"];
        let start = ["validate", "t.csv", "--drive", "atlas10k", "--units", "ms"];
        succeed(folder, &[&start[..], &columns].concat()).err
    };
    // The drive takes about 9 ms.
    for (response, expected) in [
        (
            0.009,
            "traxtent: warning: t.csv: the mean of the simulated times is ",
        ),
        (
            4500.0,
            "traxtent: warning: t.csv: the mean of the measured times is ",
        ),
    ] {
        let found = warnings(response);
        let mut lines = found
            .lines()
            .filter(|line| line.contains("the mean of the"));
        let line = lines.next().unwrap_or_default();
        assert!(line.starts_with(expected), "{response}: {found}");
        assert!(line.ends_with("; check --units"), "{response}: {found}");
    }
    assert_eq!(warnings(9.0), "");
    assert_eq!(warnings(900.0), "");
}

/// Does the error name a value of `--where` that no line has, or say that no line fulfils all
/// conditions? Do both commands report it?
#[test]
fn values_that_no_line_has() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(
        folder.join("t.csv"),
        "ms,op,lbn,size,took,disk\n0,R,0,8,9,sda\n50,W,80,8,9,sdb\n",
    )
    .unwrap();
    let columns = "time=ms,op=op,lbn=lbn,sectors=size,response=took";
    let refused = |command: &[&str], filters: &[&str]| {
        let filters: Vec<&str> = filters.iter().flat_map(|one| ["--where", one]).collect();
        let form = ["--columns", columns, "--units", "ms"];
        let answer = run(folder, &[command, &form, &filters].concat());
        assert_eq!(answer.status, 2, "{}", answer.err);
        answer.err
    };
    let sim = ["sim", "atlas10k", "t.csv"];
    let validate = ["validate", "t.csv", "--drive", "atlas10k"];
    for command in [&sim[..], &validate] {
        assert_eq!(
            refused(command, &["op=R", "disk=sdz"]),
            "traxtent: t.csv: --where disk=sdz: no line has this value\n"
        );
        assert_eq!(
            refused(command, &["disk=sdy,sdz"]),
            "traxtent: t.csv: --where disk=sdy,sdz: no line has one of these values\n"
        );
        assert_eq!(
            refused(command, &["op=R", "disk=sdb"]),
            "traxtent: t.csv: no line fulfils all conditions of --where\n"
        );
    }
    // One of several values that no line has is only a warning.
    let warned = "traxtent: warning: t.csv: --where disk=sdz: no line has this value\n";
    for (filter, says) in [("disk=sdb", ""), ("disk=sdb,sdz", warned)] {
        let form = ["--columns", columns, "--units", "ms", "--where", filter];
        let answer = run(folder, &[&sim[..], &form].concat());
        assert_eq!((answer.status, answer.err.as_str()), (0, says));
    }
}
