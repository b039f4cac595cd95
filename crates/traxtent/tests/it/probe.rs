//! `traxtent probe`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use traxtent_map::MapFile;

use super::command::{json, prints, traxtent, traxtent_in};

/// Does probing a drive that translates give the drive's own map, and is the cost of the probe
/// reported?
#[test]
fn finds_the_tracks() {
    let folder = tempfile::tempdir().unwrap();
    let map = folder.path().join("a.map");
    let map = map.to_str().unwrap();
    for algorithm in ["walk", "jump", "tree"] {
        let found = json(&[
            "probe",
            "hp-c2247",
            "--algorithm",
            algorithm,
            "--map",
            map,
            "--json",
        ]);
        assert_eq!(found["algorithm"], algorithm);
        assert_eq!(found["tracks"], 25_749);
        assert_eq!(found["reads"], 0);
        let translations = found["translations"].as_f64().unwrap();
        let drive_time_s = found["drive_time_s"].as_f64().unwrap();
        // 2 ms each; walk also reads the defect lists.
        assert!(
            (0.0..0.01).contains(&(drive_time_s - translations * 0.002 + 1e-9)),
            "{found}"
        );
        for key in [
            "host_cpu_s",
            "confidence",
            "layout_order",
            "zero_latency",
            "rpm",
        ] {
            assert!(found.get(key).is_some(), "{key}");
        }
        assert_eq!(traxtent(&["map", map, "--diff", "hp-c2247"]).status, 0);
        let again = json(&["map", map, "--json"]);
        assert_eq!(again["method"], format!("{algorithm} sample"));
        assert_eq!(again["translations"], found["translations"]);
    }
    let text = prints(&["probe", "hp-c2247"]);
    assert!(text.contains("a probe by tree"), "{text}");
}

/// Is a region of a drive probed from the first track that begins in it to the end of the track in
/// which it ends, by translation and by timing? Is a region beyond the drive refused?
#[test]
fn region() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| traxtent_in(folder.path(), arguments);
    let answer = run(&[
        "probe",
        "atlas10k2",
        "--region",
        "1000..5000",
        "--map",
        "a.map",
    ]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(
        answer
            .err
            .contains("because the drive translates addresses"),
        "{}",
        answer.err
    );
    assert!(answer.out.contains("of 23086806"), "{}", answer.out);
    let list = run(&["map", "a.map", "--format", "csv"]).out;
    // Tracks of 528 sectors.
    assert_eq!(list.lines().nth(1), Some("1056,528"), "{list}");
    assert_eq!(list.lines().last(), Some("4752,528"), "{list}");
    let answer = run(&[
        "probe",
        "atlas10k2",
        "--region",
        "1000..5000",
        "--algorithm",
        "angle",
        "--map",
        "t.map",
    ]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let timed = run(&["map", "t.map", "--format", "csv"]).out;
    assert_eq!(timed, list);
    let answer = run(&["probe", "atlas10k2", "--region", "0..99999999"]);
    assert_eq!(answer.status, 2);
    assert!(
        answer.err.contains("atlas10k2 ends before LBN 23086806"),
        "{}",
        answer.err
    );
}

/// Does Ctrl-C leave a checkpoint, and does the printed command resume from it and give the drive's
/// map? Is the checkpoint refused if it is damaged, if it belongs to another probe, or if
/// `--resume` is missing?
#[test]
fn interrupted_and_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_traxtent"))
        .args([
            "probe",
            "toshiba-x300",
            "--algorithm",
            "walk",
            "--map",
            "a.map",
        ])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    // The first message appears once signals are handled.
    let first = lines.next().unwrap().unwrap();
    assert!(
        first.contains("toshiba-x300 by walk, as requested"),
        "{first}"
    );
    std::thread::sleep(Duration::from_millis(200));
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("kill runs").success());
    let says = lines.next().unwrap().unwrap();
    // Shells then stop too, and report 130.
    assert_eq!(child.wait().unwrap().signal(), Some(2), "{says}");
    assert!(says.contains("toshiba-x300: stopped at LBN "), "{says}");
    let resume = "to continue: traxtent probe toshiba-x300 --algorithm walk --map a.map --resume";
    assert!(says.ends_with(resume), "{says}");
    assert!(!folder.path().join("a.map").exists());

    let run = |arguments: &[&str]| traxtent_in(folder.path(), arguments);
    let summary = run(&["map", "a.map.checkpoint"]).out;
    assert!(summary.contains("incomplete"), "{summary}");

    // Another drive's checkpoint, another search's, and one that exists without a request to
    // resume.
    for (arguments, says) in [
        (
            &["atlas10k2", "--algorithm", "walk", "--resume"][..],
            "a.map.checkpoint: belongs to another drive: its product is toshiba-x300",
        ),
        (
            &["toshiba-x300", "--algorithm", "jump", "--resume"],
            "a.map.checkpoint: belongs to a search of LBNs 0..9767541168 by walk sample",
        ),
        (
            &["toshiba-x300"],
            "a.map.checkpoint: a probe was stopped here; use --resume",
        ),
    ] {
        let answer = run(&[&["probe", "--map", "a.map"], arguments].concat());
        assert_eq!(answer.status, 2, "{}", answer.err);
        assert!(answer.err.contains(says), "{}", answer.err);
    }

    // A checkpoint that was altered or truncated is refused and left unchanged.
    let checkpoint = folder.path().join("a.map.checkpoint");
    let whole = fs::read(&checkpoint).unwrap();
    let mut altered = whole.clone();
    altered[whole.len() / 2] ^= 1;
    let words: Vec<&str> = says.split("traxtent ").last().unwrap().split(' ').collect();
    for broken in [&altered[..], &whole[..whole.len() - 1]] {
        fs::write(&checkpoint, broken).unwrap();
        let answer = run(&words);
        assert_eq!(answer.status, 2, "{}", answer.err);
        assert!(answer.err.contains("a.map.checkpoint: "), "{}", answer.err);
        assert_eq!(answer.err.trim_end().lines().count(), 1, "{}", answer.err);
        assert!(fs::read(&checkpoint).unwrap() == broken);
        assert!(!folder.path().join("a.map").exists());
    }
    fs::write(&checkpoint, whole).unwrap();
    let answer = run(&words);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert_eq!(run(&["map", "a.map", "--diff", "toshiba-x300"]).status, 0);
    assert!(!folder.path().join("a.map.checkpoint").exists());
}

/// If the probe fails after the search, does the checkpoint remain, with the command that continues
/// from it?
#[test]
fn failed_after_the_search() {
    let folder = tempfile::tempdir().unwrap();
    let probe = |arguments: &[&str]| {
        let probe = ["probe", "hp-c2247", "--algorithm", "walk"];
        traxtent_in(folder.path(), &[&probe, arguments].concat())
    };
    let answer = probe(&["--tracks-only", "--map", "a.map"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let text = fs::read(folder.path().join("a.map")).unwrap();
    let mut file = MapFile::read(&text[..]).unwrap();
    file.complete = false;
    let checkpoint = folder.path().join("hp-c2247.checkpoint");
    fs::write(&checkpoint, file.to_text()).unwrap();
    // A directory that is missing is noticed before the search.
    let answer = probe(&["--resume", "--profile", "missing/a.toml"]);
    let says = "traxtent: missing/a.toml: cannot be created: there is no directory missing\n";
    assert_eq!((answer.status, answer.err.as_str()), (3, says));
    assert!(checkpoint.exists());
    let answer = probe(&["--resume", "--profile", "/dev/full"]);
    assert_eq!(answer.status, 3, "{}", answer.err);
    let says = "hp-c2247.checkpoint has the tracks; to continue: traxtent probe hp-c2247 \
                --algorithm walk --resume --profile /dev/full";
    assert!(answer.err.contains(says), "{}", answer.err);
    assert!(checkpoint.exists());
    let answer = probe(&["--resume", "--profile", "a.toml"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(!checkpoint.exists());
}

/// Is a valid old map confirmed, is a boundary that has moved reported, and is another drive's map
/// refused?
#[test]
fn checks_an_old_map() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| traxtent_in(folder.path(), arguments);
    let probe = run(&[
        "probe",
        "atlas10k2",
        "--region",
        "0..400000",
        "--map",
        "a.map",
    ]);
    assert_eq!(probe.status, 0, "{}", probe.err);
    let answer = run(&["probe", "atlas10k2", "--check", "a.map"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(answer.out.contains("none has moved"), "{}", answer.out);
    let answer = run(&["probe", "atlas10k", "--check", "a.map"]);
    assert_eq!(answer.status, 2);
    assert!(
        answer.err.contains("a.map: belongs to another drive"),
        "{}",
        answer.err
    );

    // One boundary of 757 has moved by a sector, forward or backward.
    let list = run(&["map", "a.map", "--format", "csv"]).out;
    for (tracks, lbn) in [
        ("52800,529\n53329,527\n", 53_329),
        ("52800,527\n53327,529\n", 53_327),
    ] {
        let moved = list.replace("52800,528\n53328,528\n", tracks);
        assert_ne!(moved, list);
        fs::write(folder.path().join("moved.csv"), moved).unwrap();
        let answer = run(&["probe", "atlas10k2", "--check", "moved.csv"]);
        assert_eq!(answer.status, 1, "{}", answer.err);
        let says = format!("moved.csv: the boundary at LBN {lbn} has moved");
        assert!(answer.err.contains(&says), "{}", answer.err);
        let answer = run(&["probe", "atlas10k2", "--check", "moved.csv", "--json"]);
        let object: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!((answer.status, &object["moved"]["lbn"]), (1, &lbn.into()));
    }
    fs::write(
        folder.path().join("long.csv"),
        "first_lbn,sectors\n0,4000000000\n",
    )
    .unwrap();
    let answer = run(&["probe", "atlas10k2", "--check", "long.csv"]);
    assert_eq!(answer.status, 2);
    assert!(
        answer
            .err
            .contains("ends before LBN 4000000000, but the drive ends before"),
        "{}",
        answer.err
    );
}

/// Are targets that cannot be probed, and invalid options, refused with a reason and the right
/// status?
#[test]
fn refusals() {
    for (arguments, status, says) in [
        (&["instant"][..], 1, "instant: not a rotating disk"),
        (
            &["/dev/no-such-disk"],
            3,
            "/dev/no-such-disk: no such device or file",
        ),
        (&["/dev/null"], 3, "/dev/null: "),
        (
            &["/dev/null", "--noise"],
            2,
            "--noise: /dev/null is not a simulated drive",
        ),
        (
            &["atlas10k", "--resume"],
            3,
            "atlas10k.checkpoint: No such file",
        ),
        (
            &["atlas10k", "--algorithm", "guess"],
            2,
            "invalid value 'guess'",
        ),
        (&["atlas10k", "--verify", "some"], 2, "invalid value 'some'"),
        (
            &["atlas10k", "--verify", "full"],
            2,
            "--verify: only the algorithm `angle` predicts boundaries, and atlas10k is probed by `tree`, because the drive translates addresses",
        ),
        (
            &["atlas10k", "--force"],
            2,
            "--force: has an effect only with --profile or --destructive",
        ),
        (&["atlas10k", "--region", "7"], 2, "expected FIRST..END"),
        (
            &["atlas10k", "--check", "none.map"],
            3,
            "none.map: No such file",
        ),
        (
            &["atlas10k", "--check", "a.map", "--resume"],
            2,
            "cannot be used with",
        ),
        (
            &["atlas10k", "--check", "a.map", "--verify", "full"],
            2,
            "cannot be used with",
        ),
        (
            &["atlas10k", "--check", "a.map", "--tracks-only"],
            2,
            "cannot be used with",
        ),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let answer = traxtent_in(folder.path(), &[&["probe"], arguments].concat());
        assert_eq!(answer.status, status, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(says), "{arguments:?}: {}", answer.err);
    }
}

/// Is an image that the user cannot read refused? Is a mounted device, or one that holds data,
/// refused with `--destructive`, before anything is written?
#[test]
fn devices_that_must_not_be_touched() {
    if !rustix::process::geteuid().is_root() {
        testkit::skip!("only root can change to another user and mount file systems");
    }
    let (losetup, mke2fs) = (testkit::tool!("losetup"), testkit::tool!("mke2fs"));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::File::create(path("image"))
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    let run = |program: &Path, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    run(&mke2fs, &["-q", "-t", "ext4", &path("image")]);

    // Another user can reach the file but not read it. The command must not be in a place that only
    // root can reach.
    for (at, mode) in [(path(""), 0o755), (path("image"), 0o600)] {
        fs::set_permissions(at, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::copy(env!("CARGO_BIN_EXE_traxtent"), path("traxtent")).unwrap();
    let answer = Command::new(path("traxtent"))
        .args(["probe", &path("image")])
        .uid(65534)
        .output()
        .unwrap();
    let says = String::from_utf8(answer.stderr).unwrap();
    assert_eq!(answer.status.code(), Some(3), "{says}");
    assert!(says.contains("image: no permission to "), "{says}");

    let attach = Command::new(&losetup)
        .args(["--find", "--show", &path("image")])
        .output()
        .unwrap();
    if !attach.status.success() {
        testkit::skip!("no loop device is available");
    }
    let node = String::from_utf8(attach.stdout).unwrap().trim().to_owned();
    fs::create_dir(path("mnt")).unwrap();
    run(
        Path::new("mount"),
        &["-o", "ro,noload", &node, &path("mnt")],
    );
    let before = fs::read(path("image")).unwrap();
    let busy = traxtent(&["probe", &node, "--destructive"]);
    let after = fs::read(path("image")).unwrap();
    run(Path::new("umount"), &[&path("mnt")]);
    let full = traxtent(&["probe", &node, "--destructive"]);
    let forced = traxtent(&["probe", &node, "--destructive", "--force"]);
    run(&losetup, &["--detach", &node]);
    assert_eq!(busy.status, 3, "{}", busy.err);
    assert!(busy.err.contains("is mounted on"), "{}", busy.err);
    assert_eq!(full.status, 2, "{}", full.err);
    let says = "holds an ext file system; --force overwrites parts of it";
    assert!(full.err.contains(says), "{}", full.err);
    // A loop device takes no SCSI commands.
    let says = "needs a drive that accepts SCSI commands";
    assert!(forced.err.contains(says), "{}", forced.err);
    assert!(before == after);
}

/// Is a drive that does not translate probed by timing, with the correct map with and without
/// noise, and is an old map of it also verified by timing?
#[test]
fn by_timing() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| traxtent_in(folder.path(), arguments);
    let profile = run(&["drives", "show", "hp-c2247"]).out;
    let silent = "[scsi]\ntranslates = false\ndefect_lists = false\n\n[provenance]\nscsi = \"assumed: silent\"\n";
    fs::write(
        folder.path().join("a.toml"),
        profile.replace("[provenance]\n", silent),
    )
    .unwrap();
    for noise in [&[][..], &["--noise", "--seed", "5"]] {
        let options = [
            "probe",
            "a.toml",
            "--verify",
            "full",
            "--tracks-only",
            "--map",
            "a.map",
        ];
        let answer = run(&[&options, noise].concat());
        assert_eq!(answer.status, 0, "{}", answer.err);
        let says = "by angle, because the drive does not translate addresses";
        assert!(answer.err.contains(says), "{}", answer.err);
        assert_eq!(run(&["map", "a.map", "--diff", "hp-c2247"]).status, 0);
    }
    let answer = run(&["probe", "a.toml", "--algorithm", "tree", "--tracks-only"]);
    let says = "by angle, not as requested, because the drive does not translate addresses";
    assert!(answer.err.contains(says), "{}", answer.err);

    let answer = run(&["probe", "a.toml", "--check", "a.map"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(
        answer.out.contains("tested by timing, none has moved"),
        "{}",
        answer.out
    );
    // Every boundary is one sector later.
    let list = run(&["map", "a.map", "--format", "csv"]).out;
    let mut rows: Vec<String> = vec!["first_lbn,sectors".to_owned(), "0,97".to_owned()];
    rows.extend(list.lines().skip(2).map(|row| {
        let (first, sectors) = row.split_once(',').unwrap();
        format!("{},{sectors}", first.parse::<u64>().unwrap() + 1)
    }));
    rows.pop();
    fs::write(folder.path().join("late.csv"), rows.join("\n")).unwrap();
    let answer = run(&["probe", "a.toml", "--check", "late.csv"]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    assert!(
        answer.err.contains("late.csv: the boundary at LBN "),
        "{}",
        answer.err
    );
}

/// If a drive has no list of grown defects, a note says that remapped LBNs are not counted. Are
/// none listed then, even if the search encounters one?
#[test]
fn remapped_lbns_that_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| traxtent_in(folder.path(), arguments);
    let profile = run(&["drives", "show", "hp-c2247"]).out;
    // LBN 95 is the last one of the first track, so the search reads it.
    let silent = "[scsi]\ntranslates = false\ndefect_lists = false\n\n\
        [[geometry.moved]]\nlbn = 95\ncylinder = 0\nsurface = 12\nslot = 40\n\n\
        [provenance]\nscsi = \"assumed: silent\"\n";
    fs::write(
        folder.path().join("a.toml"),
        profile.replace("[provenance]\n", silent),
    )
    .unwrap();
    let options = [
        "probe",
        "a.toml",
        "--tracks-only",
        "--region",
        "0..5000",
        "--map",
        "a.map",
        "--json",
    ];
    let answer = run(&options);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let probed: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert!(probed["moved"].is_null(), "{probed}");
    let says = "remapped sectors are not counted";
    assert!(probed["notes"].to_string().contains(says), "{probed}");
    let text = run(&["map", "a.map"]).out;
    assert!(text.contains(says) && !text.contains("moved"), "{text}");
    let map: serde_json::Value =
        serde_json::from_str(&run(&["map", "a.map", "--format", "json"]).out).unwrap();
    assert_eq!(map["moved"], serde_json::json!([]));
}

/// Is an image file distinguished from a rotating disk, with the reason and exit status 1?
#[test]
fn image_file() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    fs::write(&image, vec![0; 8 << 20]).unwrap();
    let answer = traxtent_in(folder.path(), &["probe", "./disk.img"]);
    assert_eq!(answer.status, 1, "{}", answer.err);
    assert!(
        answer.err.contains("./disk.img: not a rotating disk: "),
        "{}",
        answer.err
    );
}

/// Can the drive's fitted profile be simulated, and does it have the drive's tracks? Are the
/// drive's properties and the residuals of the profile reported?
#[test]
fn profile_and_fit() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| traxtent_in(folder.path(), arguments);
    let answer = run(&[
        "probe",
        "atlas10k2",
        "--profile",
        "fitted profile.toml",
        "--fit",
        "--json",
    ]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(found["layout_order"], "head-first-alternating");
    assert_eq!(found["zero_latency"], true);
    assert!(
        (found["rpm"].as_f64().unwrap() - 10_000.0).abs() < 1.0,
        "{}",
        found["rpm"]
    );
    assert_eq!(found["character"]["surfaces"], 3);
    let workloads = found["fit"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["workload"].as_str());
    let workloads: Vec<&str> = workloads.flatten().collect();
    assert_eq!(workloads, ["random", "sequential", "mixed"]);
    let answer = run(&["map", "fitted profile.toml", "--diff", "atlas10k2"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let answer = run(&["sim", "fitted profile.toml", "random,count=1000"]);
    assert_eq!(answer.status, 0, "{}", answer.err);

    let found = run(&["probe", "atlas10k2", "--tracks-only", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert!(found["rpm"].is_null());
}
