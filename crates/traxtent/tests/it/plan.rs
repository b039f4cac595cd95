//! `traxtent plan`.

use traxtent_model::profile::builtin;

use super::command::{json, prints, traxtent};

const ATLAS: [&str; 5] = ["plan", "video", "atlas10k2", "--bitrate", "4Mb/s"];

fn atlas<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ATLAS[..], more].concat()
}

/// Are the values of a plan consistent, and does it repeat the request?
#[test]
fn adds_up() {
    for guarantee in [&["--hard"][..], &["--rounds", "200"]] {
        let more = [
            &["--streams", "650", "--disks", "10", "--json"][..],
            guarantee,
        ];
        let plan = json(&atlas(&more.concat()));
        assert_eq!(
            (&plan["track_bytes"], &plan["disks"]),
            (&270_336.into(), &10.into())
        );
        for alignment in ["aligned", "unaligned"] {
            let offer = &plan[alignment];
            let figure = |key: &str| offer[key].as_f64().unwrap();
            let round = figure("io_bytes") / 500_000.0;
            assert!((figure("round_s") - round).abs() < 1e-9, "{offer}");
            assert!((figure("startup_s") - 11.0 * round).abs() < 1e-9, "{offer}");
            assert_eq!(figure("memory_bytes"), 2.0 * 650.0 * figure("io_bytes"));
            assert_eq!(offer["carries"], true);
            assert!(figure("streams_per_disk_most") >= 65.0);
        }
        let io = |alignment: &str| plan[alignment]["io_bytes"].as_u64().unwrap();
        assert!(io("aligned") < io("unaligned"), "{plan}");
        assert_eq!(io("aligned") % 270_336, 0);
    }
}

/// Does the text show both placements side by side, with more streams if aligned, and is it the
/// same each time?
#[test]
fn side_by_side() {
    let arguments = atlas(&["--rounds", "300"]);
    let text = prints(&arguments);
    let row = |title: &str| {
        let line = text.lines().find(|line| line.starts_with(title)).unwrap();
        line.split_whitespace()
            .rev()
            .take(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert!(text.contains("ALIGNED  UNALIGNED"), "{text}");
    let streams: Vec<u32> = row("streams per disk, at most")
        .iter()
        .map(|n| n.parse().unwrap())
        .collect();
    let [unaligned, aligned] = streams[..] else {
        panic!("{text}")
    };
    assert!(aligned > unaligned + 20, "{text}");
    assert_eq!(prints(&arguments), text);
}

/// Does every drive with mechanics have a hard and a soft plan, and does no hard plan favour
/// unaligned I/Os?
#[test]
fn every_drive() {
    let mut targets: Vec<String> = builtin::names().map(str::to_owned).collect();
    targets.retain(|name| name != "instant");
    if let Some(folder) = testkit::shared_data("disksim/wd4tb") {
        targets.push(format!("disksim:{}/G4_LBA_64bit_4T.parv", folder.display()));
    }
    for target in targets {
        for guarantee in ["--hard", "--rounds=20"] {
            let rate = "4Mb/s";
            let plan = json(&[
                "plan",
                "video",
                &target,
                "--bitrate",
                rate,
                "--json",
                guarantee,
            ]);
            let most = |alignment: &str| plan[alignment]["streams_per_disk_most"].as_u64();
            let (aligned, unaligned) = (most("aligned").unwrap(), most("unaligned").unwrap());
            let favoured = guarantee == "--hard" && unaligned > aligned;
            assert!(
                aligned > 0 && unaligned > 0 && !favoured,
                "{target} {guarantee}: {plan}"
            );
        }
    }
}

/// Does an impossible plan give status 1 with a line that names the limit, even if only the round
/// is too short?
#[test]
fn impossible_plans() {
    for (more, says) in [
        (
            &["--streams", "90", "--hard"][..],
            "one disk does not carry 90 streams",
        ),
        (
            &["--streams", "90", "--round", "1s", "--hard"],
            "within rounds of 1.00 s",
        ),
        (
            &["--streams", "300", "--disks", "3", "--hard"],
            "3 disks do not carry 300 streams",
        ),
        (&["--round", "5ms", "--hard"], "within rounds of 5.0 ms"),
    ] {
        let answer = traxtent(&atlas(more));
        assert_eq!(answer.status, 1, "{more:?}: {}", answer.err);
        assert!(answer.err.contains(says), "{more:?}: {}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
    // Shorter than the play time of a track: only unaligned I/Os are possible.
    let plan = json(&atlas(&["--round", "300ms", "--hard", "--json"]));
    assert!(
        plan["aligned"].is_null() && plan["unaligned"]["carries"] == true,
        "{plan}"
    );
}

/// Is bad input refused with a message that names it?
#[test]
fn refused() {
    for (more, says) in [
        (
            &["--zone", "24"][..],
            "zone 24: no such zone, or no whole track in it; the drive has 24 zones",
        ),
        (
            &["--set", "mechanics.rmp=7200"],
            "mechanics.rmp is not a key of the profile (see `traxtent drives show`); did you mean mechanics.rpm?",
        ),
    ] {
        let answer = traxtent(&atlas(more));
        assert_eq!(answer.status, 2, "{more:?}");
        assert!(answer.err.contains(says), "{more:?}: {}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    }
    for (more, says) in [
        (&["--round", "0s"][..], "expected a time"),
        (&["--round", "2"], "expected a time"),
        (&["--streams", "0"], "--streams"),
        (&["--disks", "0"], "--disks"),
        (&["--order", "fifo"], "sweep, drive"),
        (&["--hard", "--rounds", "5"], "--rounds"),
        (&["--set", "mechanics.rpm"], "KEY=VALUE"),
    ] {
        let answer = traxtent(&atlas(more));
        assert_eq!(answer.status, 2, "{more:?}");
        assert!(answer.err.contains(says), "{more:?}: {}", answer.err);
        assert!(answer.out.is_empty());
    }
    for rate in [
        "4", "4Mb", "-1Mb/s", "0b/s", "nanMb/s", "infMb/s", "1e30Mb/s", "Mb/s", "",
    ] {
        let answer = traxtent(&["plan", "video", "atlas10k2", &format!("--bitrate={rate}")]);
        assert_eq!(answer.status, 2, "{rate:?}");
        assert!(
            answer.err.contains("expected a bit rate"),
            "{rate:?}: {}",
            answer.err
        );
    }
    let answer = traxtent(&["plan", "video", "instant", "--bitrate", "4Mb/s"]);
    assert_eq!(answer.status, 2);
    assert!(
        answer.err.contains("instant: the drive has no mechanics"),
        "{}",
        answer.err
    );
}
