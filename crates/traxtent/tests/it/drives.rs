//! `traxtent drives`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::{shared_data, skip, workspace};

use super::command::{json, prints, traxtent, traxtent_in};

/// Does the list have every built-in drive once, and is the provenance of all values counted?
#[test]
fn list() {
    let list = json(&["drives", "--json"]);
    let names: Vec<&str> = traxtent_model::profile::builtin::names().collect();
    let listed: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed, names);
    for drive in list.as_array().unwrap() {
        let figures = drive["figures"].as_object().unwrap();
        let all: u64 = figures.values().map(|count| count.as_u64().unwrap()).sum();
        let profile = traxtent_model::profile::builtin(drive["name"].as_str().unwrap()).unwrap();
        assert_eq!(all, profile.value_paths().len() as u64, "{drive}");
    }
    assert_eq!(prints(&["drives"]).lines().count(), names.len() + 1);
}

/// Does `show` print a profile that parses to the built-in drive?
#[test]
fn show() {
    let text = prints(&["drives", "show", "atlas10k"]);
    let read = traxtent_model::profile::Profile::from_toml(&text).unwrap();
    assert_eq!(Some(read), traxtent_model::profile::builtin("atlas10k"));
    assert_eq!(
        json(&["drives", "show", "atlas10k", "--json"])["profile"]["name"],
        "atlas10k"
    );
}

/// Are only assumed figures moved, each for a stated reason? Does moving all of them together
/// change the time of a read at least as much as moving any one alone?
#[cfg(feature = "lab")]
#[test]
fn assumed() {
    let answer = json(&["drives", "assumed", "generic-20tb", "--json"]);
    let profile = traxtent_model::profile::builtin("generic-20tb").unwrap();
    let moved = answer["moved"].as_array().unwrap();
    assert!(moved.len() > 20);
    let read_ms = |results: &serde_json::Value| results["read_ms"].as_f64().unwrap();
    for one in moved {
        let figure = one["figure"].as_str().unwrap().split(':').next().unwrap();
        let origin = profile.provenance.of(figure).unwrap();
        assert_eq!(origin.kind.word(), "assumed", "{figure}");
        assert_ne!(one["from"], one["to"], "{figure}");
        assert!(!one["reason"].as_str().unwrap().is_empty());
        let of_one = read_ms(&one["results"]);
        // Figures that are moved together can affect each other slightly.
        let slowest = read_ms(&answer["slowest_read"]) * 1.01;
        assert!(of_one <= slowest, "{one}");
        assert!(of_one * 1.01 >= read_ms(&answer["fastest_read"]), "{one}");
    }
    let text = prints(&["drives", "assumed", "instant"]);
    assert_eq!(text, "instant: no access takes any time\n");
}

/// Is the nearest name suggested for a mistyped one?
#[test]
fn suggests() {
    for (typed, meant) in [
        ("atlas10k3", "atlas10k"),
        ("Atlas10K2", "atlas10k2"),
        ("toshiba_x300", "toshiba-x300"),
    ] {
        let answer = traxtent(&["drives", "show", typed]);
        assert_eq!(answer.status, 2);
        assert!(
            answer.err.contains(&format!("did you mean {meant}")),
            "{}",
            answer.err
        );
    }
    assert!(
        traxtent(&["drives", "show", "zzz"])
            .err
            .contains("`traxtent drives`")
    );
}

/// Does a profile that `convert` writes simulate exactly like the DiskSim parameters themselves?
///
/// The files contain the layouts g1 and g4, several disks, and a host queue that is not FCFS. (The
/// library's test compares the profiles of all parameter files.)
#[test]
fn converted_drives_simulate_alike() {
    let data = shared_data!("disksim");
    let folder = tempfile::tempdir().unwrap();
    for file in [
        "atlas10k.parv",
        "synthmixed.parv",
        "3disks.parv#quantum",
        "synthraid5.parv#disk0",
        "maxtor300g/maxtor300g.parv",
        "wd4tb/G4_LBA_64bit_4T.parv",
    ] {
        let target = format!("disksim:{}", data.join(file).display());
        let convert = ["convert", &target, "--out", "my.toml", "--force"];
        let answer = traxtent_in(folder.path(), &convert);
        assert_eq!(answer.status, 0, "{target}: {}", answer.err);
        let workload = "random,read=50%,count=100,outstanding=8";
        for (drive, log) in [(target.as_str(), "a.csv"), ("my.toml", "b.csv")] {
            let run = traxtent_in(folder.path(), &["sim", drive, workload, "--log", log]);
            assert_eq!(run.status, 0, "{drive}: {}", run.err);
        }
        let log = |name| fs::read(folder.path().join(name)).unwrap();
        assert!(
            log("a.csv").len() > 1000 && log("a.csv") == log("b.csv"),
            "{target}"
        );
    }
}

/// Is an existing file kept without `--force`, and does `drives show` print what `convert` writes?
#[test]
fn convert_keeps_files() {
    let data = shared_data!("disksim");
    let target = format!("disksim:{}", data.join("atlas10k.parv").display());
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("my.toml");
    let convert = |more: &[&str]| {
        traxtent(&[&["convert", &target, "--out", out.to_str().unwrap()], more].concat())
    };
    assert_eq!(convert(&[]).status, 0);
    let again = convert(&[]);
    assert_eq!(again.status, 2);
    assert!(
        again
            .err
            .ends_with("my.toml: already exists; use --force to replace it\n"),
        "{}",
        again.err
    );
    assert_eq!(convert(&["--force"]).status, 0);
    let after_heading = |text: String| text[text.find("# 6 of").unwrap()..].to_owned();
    let shown = after_heading(prints(&["drives", "show", &target]));
    assert_eq!(shown, after_heading(fs::read_to_string(&out).unwrap()));
    assert!(
        shown.starts_with("# 6 of 68 figures are assumed; "),
        "{shown}"
    );
}

/// Does `--force` replace only an empty file or a profile? Does a symbolic link stay, and is the
/// profile written to its target, which must not exist without `--force`?
#[test]
fn convert_replaces_only_profiles() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let convert = |out: &str, more: &[&str]| {
        traxtent_in(
            at,
            &[&["convert", "atlas10k", "--out", out][..], more].concat(),
        )
    };
    for text in ["text of the user\n", "[package]\nname = \"a\"\n", "\0\0"] {
        fs::write(at.join("file"), text).unwrap();
        for answer in [convert("file", &[]), convert("file", &["--force"])] {
            let says = "traxtent: --out file: exists and is not a profile; name another file\n";
            assert_eq!((answer.status, answer.err.as_str()), (2, says));
        }
        assert_eq!(fs::read_to_string(at.join("file")).unwrap(), text);
    }
    fs::write(at.join("file"), "").unwrap();
    fs::create_dir(at.join("dir")).unwrap();
    symlink("../file", at.join("dir/inner")).unwrap();
    symlink("dir/inner", at.join("link")).unwrap();
    symlink("dir/new", at.join("dangling")).unwrap();
    for (link, target) in [("link", "file"), ("dangling", "dir/new")] {
        let before = fs::read(at.join(target)).ok();
        let answer = convert(link, &[]);
        assert_eq!(answer.status, 2, "{}", answer.err);
        let says = format!("{link}: already exists; use --force to replace it\n");
        assert!(answer.err.ends_with(&says), "{}", answer.err);
        assert_eq!(fs::read(at.join(target)).ok(), before, "{link}");
        for _ in 0..2 {
            let answer = convert(link, &["--force"]);
            assert_eq!(answer.status, 0, "{}", answer.err);
            assert!(at.join(link).is_symlink(), "{link}");
            let written = fs::symlink_metadata(at.join(target)).unwrap();
            assert!(written.is_file() && written.len() > 1000, "{link}");
        }
    }
    let answer = convert("/dev/stdout", &[]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(answer.out.contains("\n[geometry]\n"), "{}", answer.out);
}

/// Can a new drive be used immediately? Is a new drive refused if its file exists or its name is a
/// path? Can a minimal profile be used in a file without an extension?
#[test]
fn new_drives() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| traxtent_in(folder.path(), arguments);
    assert_eq!(
        run(&["drives", "new", "mine", "--like", "atlas10k2"]).status,
        0
    );
    assert_eq!(
        run(&["drives", "new", "mine", "--like", "atlas10k2"]).status,
        2
    );
    assert_eq!(
        run(&["drives", "new", "a/b", "--like", "atlas10k2"]).status,
        2
    );
    for verb in [
        &["sim", "mine.toml", "random,count=10"][..],
        &["map", "mine.toml"],
        &["drives", "show", "mine.toml"],
        &["plan", "video", "mine.toml", "--bitrate", "4Mb/s"],
        &["convert", "mine.toml"],
    ] {
        let answer = run(verb);
        assert_eq!(answer.status, 0, "{verb:?}: {}", answer.err);
    }
    let minimal = "[geometry]\nsurfaces = 1\ncylinders = 10\n\
        zones = [{ first_cylinder = 0, last_cylinder = 9, sectors_per_track = 100 }]\n";
    fs::write(folder.path().join("pd"), minimal).unwrap();
    let answer = run(&["sim", "pd", "random,count=10"]);
    assert!(
        answer.out.contains("pd (pd)"),
        "{}{}",
        answer.out,
        answer.err
    );
    let shown = run(&["drives", "show", "pd"]).out;
    assert!(
        shown.contains("# 62 of 62 figures are assumed; "),
        "{shown}"
    );
}

/// Does the drive that docs/reference/drives.md derives from a data sheet reach the rates stated
/// there?
#[test]
fn the_drive_from_a_data_sheet() {
    let page = fs::read_to_string(workspace().join("docs/reference/drives.md")).unwrap();
    let section = page
        .split_once("### A drive from its data sheet")
        .unwrap()
        .1;
    let block = |kind: &str| {
        let rest = section.split_once(&format!("```{kind}\n")).unwrap().1;
        rest.split_once("```").unwrap().0
    };
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("sheet.toml"), block("toml")).unwrap();
    let lines: Vec<&str> = block("console").lines().collect();
    assert_eq!(lines.len(), 4);
    for pair in lines.chunks(2) {
        let words: Vec<&str> = pair[0].split(' ').skip(2).collect();
        let answer = traxtent_in(folder.path(), &words);
        assert!(
            answer.out.lines().any(|line| line == pair[1]),
            "{}: {}{}",
            pair[0],
            answer.out,
            answer.err
        );
    }
}

/// Does docs/reference/profile.md match the schema?
#[test]
fn the_reference_is_current() {
    let page = fs::read_to_string(workspace().join("docs/reference/profile.md")).unwrap();
    let printed = prints(&["drives", "reference"]);
    assert!(
        page == printed,
        "regenerate it: traxtent drives reference > docs/reference/profile.md"
    );
}

/// Does the JSON schema accept all built-in profiles, and refuse wrong ones?
#[test]
fn the_json_schema_matches_profiles() {
    const PROGRAM: &str = "
import json, sys, tomllib
from jsonschema import Draft202012Validator as Validator
schema = json.loads(sys.argv[1])
Validator.check_schema(schema)
validator = Validator(schema)
for path in sys.argv[2:]:
    profile = tomllib.load(open(path, 'rb'))
    for error in validator.iter_errors(profile):
        print(path, list(error.path), error.message[:200])
    for table, key, value in [('mechanics', 'rpm', 99), ('queue', 'depth', 65537),
                              ('queue', 'scheduler', 'lifo'), ('cache', 'size', 1)]:
        wrong = {**profile, table: {**profile.get(table, {}), key: value}}
        if validator.is_valid(wrong):
            print(path, table, key, value, 'is accepted')
";
    if !Path::new("/usr/lib/python3/dist-packages/jsonschema/__init__.py").exists() {
        skip!("python3-jsonschema is not installed");
    }
    let files = fs::read_dir(workspace().join("drives")).unwrap();
    let output = Command::new("/usr/bin/python3")
        .args(["-c", PROGRAM, &prints(&["drives", "schema"])])
        .args(files.map(|file| file.unwrap().path()))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success() && out.is_empty(), "{out}{err}");
}
