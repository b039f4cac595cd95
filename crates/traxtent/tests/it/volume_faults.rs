//! Former faults of volumes, each with a test that is named after it: members with changed content,
//! scrubs that guess which data is right, journals without a bound, and superblocks that are not
//! found.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use tempfile::TempDir;
use traxtent_volume::superblock::{SUPERBLOCK_BYTES, Superblock};

use crate::command::{Answer, traxtent_in};
use crate::guard::Loop;
use crate::volume::{files, good, volume};

/// Makes the files a, b and c of arbitrary content, which look blank because their first 8 KiB are
/// zeros.
fn reused_files(at: &Path) {
    for name in ["a", "b", "c"] {
        full_file(&at.join(name), 8 << 20);
        overwrite(&at.join(name), 0, &[0; 8192]);
    }
}

/// Creates a file without zero bytes.
fn full_file(path: &Path, bytes: usize) {
    let data: Vec<u8> = (0..bytes).map(|at| (at / 7 % 251) as u8 | 1).collect();
    fs::write(path, data).unwrap();
}

/// Writes a file to the beginning of a volume through a server.
fn store(folder: &Path, data: &str, members: &[&str]) -> Answer {
    let script = format!("nbdcopy --flush {data} \"$uri\"");
    let serve = [
        &["volume", "serve", "--sync-rate", "off"],
        members,
        &["--", "sh", "-c", &script],
    ];
    let served = traxtent_in(folder, &serve.concat());
    assert_eq!(served.status, 0, "{}", served.err);
    served
}

/// Reads this many bytes from the beginning of a volume.
fn load(folder: &Path, bytes: usize, members: &[&str]) -> Vec<u8> {
    let script = "nbdcopy \"$uri\" back";
    let serve = [&["volume", "serve"], members, &["--", "sh", "-c", script]];
    let served = traxtent_in(folder, &serve.concat());
    assert_eq!(served.status, 0, "{}", served.err);
    let mut back = fs::read(folder.join("back")).unwrap();
    back.truncate(bytes);
    back
}

fn assert_one_line(answer: &Answer) {
    assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
}

/// Overwrites a part of a file.
fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(bytes, at).unwrap();
}

const CREATE_RAID_1: &str = "create --level raid-1 --chunk 64K --journal 4M";
const CREATE_RAID_5: &str = "create --level raid-5 --chunk 64K --journal 2M";

/// If the kernel protects a member from writes, is the member kept, and nothing written? Does a
/// scrub read it, and is the volume otherwise served only for reading?
#[test]
fn a_write_protected_member_is_not_dropped() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, &format!("{CREATE_RAID_5} a b c"));
    let Some(protected) = Loop::attach_with(&at.join("a"), &["--read-only"]) else {
        testkit::skip!("no loop device can be attached");
    };
    let contents = || ["a", "b", "c"].map(|name| fs::read(at.join(name)).unwrap());
    let before = contents();
    let members = format!("{} b c", protected.name());
    let scrub = volume(at, &format!("scrub {members}"));
    assert_eq!(scrub.status, 0, "{}", scrub.err);
    let says = "a member cannot be written, so nothing is written";
    assert!(scrub.err.contains(says), "{}", scrub.err);
    for line in ["serve {} -- true", "assemble {}", "fail 1 {}"] {
        let answer = volume(at, &line.replace("{}", &members));
        assert_eq!(answer.status, 3, "{line}: {}", answer.err);
        let says = "cannot write it: the device is read-only; `volume serve --read-only`";
        assert!(answer.err.contains(says), "{line}: {}", answer.err);
        assert_one_line(&answer);
    }
    good(at, &format!("serve --read-only {members} -- true"));
    assert!(contents() == before);
    good(at, &format!("status {members}"));
}

/// Is a scrub of mirrors refused if only one replica is left, instead of finding no differences?
#[test]
fn a_single_replica_is_not_compared() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b"]);
    good(at, &format!("{CREATE_RAID_1} a b"));
    good(at, "sync a b");
    let _ = volume(at, "fail 1 a b");
    let scrub = volume(at, "scrub a");
    let says =
        "member 1 has failed; there is no second replica to compare; `replace` and `rebuild`";
    assert_eq!(scrub.status, 2, "{}", scrub.err);
    assert!(scrub.err.contains(says), "{}", scrub.err);
}

/// Fault 1: an old copy of a member is accepted as current. Is it reported as stale, with both
/// generations, by every verb that would use it, without writing anything?
#[test]
fn an_old_copy_of_a_member_is_accepted() {
    let _ = testkit::tool!("nbdcopy");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for (create, members) in [
        (CREATE_RAID_1, &["a", "b"][..]),
        (CREATE_RAID_5, &["a", "b", "c"]),
    ] {
        let names = members.join(" ");
        for name in members {
            let _ = fs::remove_file(at.join(name));
        }
        files(at, members);
        good(at, &format!("{create} {names}"));
        assert_eq!(volume(at, &format!("scrub {names}")).status, 0);
        full_file(&at.join("data"), 3 << 20);
        store(at, "data", members);
        fs::copy(at.join("a"), at.join("old")).unwrap();
        fs::write(at.join("data"), vec![0x5a; 3 << 20]).unwrap();
        store(at, "data", members);
        fs::copy(at.join("a"), at.join("new")).unwrap();
        fs::copy(at.join("old"), at.join("a")).unwrap();
        let before: Vec<Vec<u8>> = members
            .iter()
            .map(|name| fs::read(at.join(name)).unwrap())
            .collect();
        let status = volume(at, &format!("status {names}"));
        assert_eq!(status.status, 1, "{}", status.out);
        assert!(
            status
                .out
                .contains("stale: a: member 0, an old copy: generation"),
            "{}",
            status.out
        );
        for verb in [
            "scrub",
            "scrub --repair",
            "scrub --repair=parity",
            "sync",
            "assemble",
            "assemble --force",
            "fail 1",
            "repair-superblocks",
            "serve",
        ] {
            let command = if verb == "serve" { " -- true" } else { "" };
            let refused = volume(at, &format!("{verb} {names}{command}"));
            assert_eq!(refused.status, 2, "{verb}: {}", refused.err);
            let says = "a: stale: an old copy of member 0 with generation ";
            assert!(refused.err.contains(says), "{verb}: {}", refused.err);
            assert!(refused.err.contains("; the volume has "), "{}", refused.err);
            assert_one_line(&refused);
        }
        for (name, before) in members.iter().zip(before) {
            assert!(
                fs::read(at.join(name)).unwrap() == before,
                "{name} was written"
            );
        }
        // All data is there without this member, which can return only by a rebuild.
        let others = members[1..].join(" ");
        good(at, &format!("assemble --force {others}"));
        assert!(load(at, 3 << 20, &members[1..]) == fs::read(at.join("data")).unwrap());
        assert_eq!(volume(at, &format!("assemble {names}")).status, 2);
        good(at, &format!("replace 0 --with a --force {others}"));
        assert_eq!(volume(at, &format!("rebuild {names}")).status, 0);
        assert_eq!(volume(at, &format!("scrub {names}")).status, 0);
        assert_eq!(volume(at, &format!("status {names}")).status, 0);
    }
}

/// Fault 2a: a scrub destroys the data of a member that was truncated and grew again. Is the
/// missing superblock reported, does a scrub only report, is a repair refused, and can all data be
/// restored from the other members?
#[test]
fn a_scrub_recomputes_parity_over_a_member_that_was_cut_short() {
    let _ = testkit::tool!("nbdcopy");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, &format!("{CREATE_RAID_5} a b c"));
    full_file(&at.join("data"), 8 << 20);
    store(at, "data", &["a", "b", "c"]);
    let file = File::options().write(true).open(at.join("b")).unwrap();
    file.set_len(4 << 20).unwrap();
    file.set_len(8 << 20).unwrap();
    let status = volume(at, "status a b c");
    assert_eq!(status.status, 1);
    assert!(
        status.out.contains("second superblock: missing"),
        "{}",
        status.out
    );
    let left = ["a", "b", "c"].map(|name| fs::read(at.join(name)).unwrap());
    let data_of = |member: &[u8]| member[(3 << 20)..(7 << 20)].to_vec();
    // Twice, because the first start may write superblocks.
    for _ in 0..2 {
        let scrub = volume(at, "scrub a b c");
        assert_eq!(scrub.status, 1, "{}", scrub.err);
        assert!(scrub.out.contains("(parity is on member"), "{}", scrub.out);
        for repair in ["--repair", "--repair=parity"] {
            let refused = volume(at, &format!("scrub {repair} a b c"));
            assert_eq!(refused.status, 2, "{}", refused.out);
            assert!(
                refused
                    .err
                    .contains("member 1: one of its superblocks was missing"),
                "{}",
                refused.err
            );
            assert_one_line(&refused);
        }
        assert_eq!(volume(at, "status a b c").status, 1);
    }
    // A verb that would treat zeros as data is refused at the start.
    for line in [
        "serve a b c -- true",
        "assemble a b c",
        "sync a b c",
        "rebuild a b c",
        "fail 0 a b c",
        "replace 0 --with d a b c",
    ] {
        let refused = volume(at, line);
        assert_eq!(refused.status, 2, "{line}: {}", refused.err);
        let says = "member 1: one of its superblocks was missing";
        assert!(refused.err.contains(says), "{line}: {}", refused.err);
        assert_one_line(&refused);
    }
    for (name, left) in ["a", "b", "c"].iter().zip(&left) {
        assert!(
            data_of(&fs::read(at.join(name)).unwrap()) == data_of(left),
            "{name}"
        );
    }
    good(at, "fail 1 a b c");
    assert!(load(at, 8 << 20, &["a", "c"]) == fs::read(at.join("data")).unwrap());
    good(at, "replace 1 --with b --force a c");
    assert_eq!(volume(at, "rebuild a b c").status, 0);
    assert_eq!(volume(at, "status a b c").status, 0);
    assert_eq!(volume(at, "scrub a b c").status, 0);
}

/// Fault 2b: two replicas that agree are overwritten by one that differs. Is the differing one
/// overwritten instead, and only on request? Are two replicas that differ left unchanged until a
/// member is named?
#[test]
fn a_scrub_overwrites_two_good_copies() {
    let _ = testkit::tool!("nbdcopy");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, &format!("{CREATE_RAID_1} a b c"));
    full_file(&at.join("data"), 2 << 20);
    store(at, "data", &["a", "b", "c"]);
    let place = 5 << 20;
    let byte = fs::read(at.join("a")).unwrap()[place];
    overwrite(&at.join("a"), place as u64, &[byte ^ 1]);
    let byte_of = |name: &str| fs::read(at.join(name)).unwrap()[place];
    let scrub = volume(at, "scrub a b c");
    assert_eq!(scrub.status, 1);
    assert!(
        scrub.out.contains("member 0 differs from the majority"),
        "{}",
        scrub.out
    );
    assert_eq!(
        (byte_of("a"), byte_of("b"), byte_of("c")),
        (byte ^ 1, byte, byte)
    );
    let repaired = volume(at, "scrub --repair a b c");
    assert_eq!(repaired.status, 1);
    assert!(repaired.out.contains("; repaired"), "{}", repaired.out);
    assert_eq!(byte_of("a"), byte);
    assert_eq!(volume(at, "scrub a b c").status, 0);
    // Of two replicas, neither is known to be right.
    good(at, "fail 2 a b c");
    overwrite(&at.join("a"), place as u64, &[byte ^ 1]);
    for verb in ["scrub", "scrub --repair"] {
        let found = volume(at, &format!("{verb} a b"));
        assert_eq!(found.status, 1);
        assert!(
            found.out.contains("differ without a majority"),
            "{}",
            found.out
        );
        assert_eq!((byte_of("a"), byte_of("b")), (byte ^ 1, byte));
    }
    let status = volume(at, "status a b");
    assert_eq!(status.status, 1, "a scrub found differences");
    let says = "the last one found differences that are not repaired";
    assert!(status.out.contains(says), "{}", status.out);
    assert_eq!(volume(at, "scrub --repair --from 1 a b").status, 1);
    assert_eq!((byte_of("a"), byte_of("b")), (byte, byte));
    let status = volume(at, "status a b");
    assert!(
        !status.out.contains(says),
        "all are repaired: {}",
        status.out
    );
    for (line, says) in [
        ("scrub --from 1 a b", "--repair"),
        ("scrub --repair --from 7 a b", "--from 7: expected a member"),
        (
            "scrub --repair=parity a b",
            "raid-1 has no parity to repair",
        ),
        ("scrub --repair=all a b", "parity"),
    ] {
        let refused = volume(at, line);
        assert_eq!(refused.status, 2, "{line}");
        assert!(refused.err.contains(says), "{line}: {}", refused.err);
    }
}

/// If a member failed before the initial sync was complete, does `status` state the remedy, do the
/// other commands refuse with the same one, and does it keep the data that was written?
#[test]
fn a_failure_before_the_sync() {
    let _ = testkit::tool!("nbdcopy");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    reused_files(at);
    good(at, &format!("{CREATE_RAID_5} --force --json a b c"));
    full_file(&at.join("data"), 1 << 20);
    let script = "truncate -s 1M c; nbdcopy --flush data \"$uri\"";
    let serve = "volume serve --sync-rate off a b c -- sh -c";
    let serve: Vec<&str> = serve.split(' ').chain([script]).collect();
    let served = traxtent_in(at, &serve);
    assert_eq!(served.status, 0, "{}", served.err);
    let status = volume(at, "status a b");
    assert_eq!(status.status, 1);
    let says = "  degraded: member 2 failed before the initial sync was complete; `volume assemble --force`";
    assert!(status.out.contains(says), "{}", status.out);
    for not in ["not synced", "`volume replace"] {
        assert!(!status.out.contains(not), "{}", status.out);
    }
    for line in ["sync", "serve", "rebuild", "replace 2 --with d"] {
        full_file(&at.join("d"), 8 << 20);
        let refused = volume(at, &format!("{line} a b"));
        assert_eq!(refused.status, 2, "{line}: {}", refused.err);
        let says = "member 2 has failed, and the initial sync has completed only 0 of";
        assert!(refused.err.contains(says), "{line}: {}", refused.err);
        assert!(refused.err.contains("`assemble --force`"), "{line}");
        assert_one_line(&refused);
    }
    good(at, "assemble --force a b");
    good(at, "replace 2 --with d --force a b");
    good(at, "rebuild a b d");
    assert!(load(at, 1 << 20, &["a", "b", "d"]) == fs::read(at.join("data")).unwrap());
}

/// Fault 2: the very first scrub computes parity from arbitrary content. Is the initial sync a
/// separate step, by a verb or by the first server? Is its state reported, and is a start without a
/// member refused before the sync has ended, unless it is forced?
#[test]
fn the_first_scrub_is_a_sync() {
    let _ = testkit::tool!("nbdcopy");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    reused_files(at);
    let made = good(at, &format!("{CREATE_RAID_5} --force --json a b c"));
    assert_eq!(made["synced_stripes"], 0);
    assert!(
        volume(at, "status a b c")
            .out
            .contains("stripes are not synced")
    );
    let before = fs::read(at.join("a")).unwrap();
    let early = volume(at, "scrub a b c");
    assert_eq!(early.status, 2);
    assert!(early.err.contains("`volume sync`"), "{}", early.err);
    let data = |bytes: &[u8]| bytes[(3 << 20)..(7 << 20)].to_vec();
    assert!(
        data(&fs::read(at.join("a")).unwrap()) == data(&before),
        "it wrote"
    );
    full_file(&at.join("data"), 1 << 20);
    store(at, "data", &["a", "b", "c"]);
    for line in ["assemble --force a c", "assemble a c", "fail 1 a b c"] {
        let forced = line.contains("--force");
        if forced {
            // On copies, because a forced start is permanent.
            for name in ["a", "c"] {
                fs::copy(at.join(name), at.join(format!("{name}.2"))).unwrap();
            }
            good(at, "assemble --force a.2 c.2");
            assert!(load(at, 1 << 20, &["a.2", "c.2"]) == fs::read(at.join("data")).unwrap());
            continue;
        }
        let refused = volume(at, line);
        assert_eq!(refused.status, 2, "{line}: {}", refused.err);
        assert!(
            refused.err.contains("initial sync"),
            "{line}: {}",
            refused.err
        );
        assert_one_line(&refused);
    }
    let synced = good(at, "sync --json a b c");
    assert!(synced["synced_sectors"].as_u64() > Some(0), "{synced}");
    assert_eq!(
        good(at, "status --json a b c")["synced_stripes"],
        made["stripes"]
    );
    assert_eq!(volume(at, "scrub a b c").status, 0);
    assert!(load(at, 1 << 20, &["a", "b", "c"]) == fs::read(at.join("data")).unwrap());
    // Or by the first server.
    for name in ["x", "y"] {
        full_file(&at.join(name), 8 << 20);
        overwrite(&at.join(name), 0, &[0; 8192]);
    }
    good(at, &format!("{CREATE_RAID_1} --force x y"));
    let program = env!("CARGO_BIN_EXE_traxtent");
    let script = format!(
        "until {program} volume status --json $control | grep -q '\"done\": *true'; do sleep 0.1; done"
    );
    let served = traxtent_in(
        at,
        &["volume", "serve", "x", "y", "--", "sh", "-c", &script],
    );
    assert_eq!(served.status, 0, "{}", served.err);
    let complete = "note: sync: complete; all stripes are synced";
    assert!(served.err.contains(complete), "{}", served.err);
    assert_eq!(volume(at, "scrub x y").status, 0);
}

/// Is a scrub that cannot compare anything refused before it recovers the volume, which writes?
#[test]
fn a_refused_scrub_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "d"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
    let program = env!("CARGO_BIN_EXE_traxtent");
    let script = format!(
        "{program} volume fail 1 $control && {program} volume replace 1 --with d $control && kill -9 $PPID"
    );
    traxtent_in(
        at,
        &["volume", "serve", "a", "b", "c", "--", "sh", "-c", &script],
    );
    let status = volume(at, "status a d c");
    let says = "was not stopped cleanly";
    assert!(status.out.contains(says), "{}{}", status.out, status.err);
    let content = || ["a", "d", "c"].map(|name| std::fs::read(at.join(name)).unwrap());
    let before = content();
    let refused = volume(at, "scrub a d c");
    assert_eq!(refused.status, 2, "{}", refused.err);
    let says = "member 1 is not rebuilt yet; parity cannot be compared without it";
    assert!(refused.err.contains(says), "{}", refused.err);
    assert!(content() == before, "the scrub has written");
    good(at, "rebuild a d c");
}

/// Are members of several volumes refused by `destroy`, and are they unchanged? Does it say what it
/// removes?
#[test]
fn one_volume_is_destroyed_at_a_time() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "x", "y"]);
    good(at, "create --level raid-1 --journal 2M a b");
    good(at, "create --level raid-1 --journal 2M x y");
    let refused = volume(at, "destroy --force a b y");
    assert_eq!(refused.status, 2, "{}", refused.err);
    let says = "destroy one volume at a time";
    assert!(refused.err.contains(says), "{}", refused.err);
    for members in ["a b", "x y"] {
        assert_eq!(volume(at, &format!("status {members}")).status, 0);
    }
    let destroyed = volume(at, "destroy --force a b");
    let says = "b: is no longer member 1 of volume";
    assert!(destroyed.out.contains(says), "{}", destroyed.out);
}

/// Is a whole volume called whole although another device is given with its members?
#[test]
fn a_device_beside_the_members() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, "create --level raid-1 --journal 2M a b");
    let status = volume(at, "status a b c");
    assert_eq!(status.status, 1, "{}", status.err);
    let says = "unusable: c: there is no superblock of a volume";
    assert!(status.out.contains(says), "{}", status.out);
    let says = "not all of these devices are members of the volume";
    assert!(status.err.contains(says), "{}", status.err);
    let degraded = volume(at, "status a c");
    assert!(
        degraded.err.contains("is degraded or damaged"),
        "{}",
        degraded.err
    );
}

/// Is the device on which a volume is served refused as its member?
#[test]
fn a_volume_is_not_its_own_member() {
    if !Path::new("/dev/fuse").exists() {
        testkit::skip!("/dev/fuse is missing");
    }
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b"]);
    std::fs::create_dir(at.join("point")).unwrap();
    good(at, &format!("{CREATE_RAID_1} a b"));
    let program = env!("CARGO_BIN_EXE_traxtent");
    let script = format!(
        "{program} volume fail 1 $control && {program} volume replace 1 --force --with point/disk $control"
    );
    let served = [
        "volume", "serve", "--fuse", "point", "a", "b", "--", "sh", "-c",
    ];
    let answer = traxtent_in(at, &[&served[..], &[&script]].concat());
    assert_ne!(answer.status, 0, "{}", answer.err);
    let says = "point/disk: is served by this process";
    assert!(answer.err.contains(says), "{}", answer.err);
    assert!(volume(at, "status a").out.contains("failed"));
}

/// Fault 5: the journal has no bound. Is a journal that would take too long to recover refused, and
/// can a volume with the largest permitted one be assembled?
#[test]
fn a_journal_without_bound() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for name in ["a", "b"] {
        File::create(at.join(name))
            .unwrap()
            .set_len(4 << 30)
            .unwrap();
    }
    let refused = volume(at, "create --level raid-1 --chunk 64K --journal 2G a b");
    assert_eq!(refused.status, 2);
    assert!(
        refused
            .err
            .contains("a journal of 2147483648 bytes: expected at most 1073741824"),
        "{}",
        refused.err
    );
    assert_one_line(&refused);
    assert_eq!(volume(at, "status a b").status, 2, "it wrote");
    good(at, "create --level raid-1 --chunk 64K --journal 1G a b");
    good(at, "assemble a b");
}

/// Fault 6: the second superblock is searched for at the device's end. On a file that grew, is it
/// found where it was written, are both reported, and can a verb rewrite them?
#[test]
fn the_second_superblock_of_a_file_that_grew() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b"]);
    good(at, &format!("{CREATE_RAID_1} a b"));
    let grow = File::options().write(true).open(at.join("a")).unwrap();
    grow.set_len(9 << 20).unwrap();
    assert_eq!(volume(at, "status a b").status, 0);
    overwrite(&at.join("a"), 0, &[0; 8192]);
    let status = volume(at, "status a b");
    assert_eq!(status.status, 1, "{}{}", status.out, status.err);
    assert!(
        status.out.contains("first superblock: missing"),
        "{}",
        status.out
    );
    let json: serde_json::Value =
        serde_json::from_str(&volume(at, "status --json a b").out).unwrap();
    assert_eq!(json["members"][0]["superblocks"][0], "missing");
    assert_eq!(json["members"][0]["doubtful"], true);
    assert_eq!(json["members"][1]["doubtful"], false);
    good(at, "repair-superblocks a b");
    let status = volume(at, "status a b");
    assert_eq!(status.status, 0, "{}", status.out);
    // The other superblock.
    let second = (8 << 20) - 8192;
    overwrite(&at.join("a"), second, &[1; 512]);
    assert!(
        volume(at, "status a b")
            .out
            .contains("second superblock: missing")
    );
    overwrite(&at.join("b"), second + 200, &[1; 8]);
    assert!(
        volume(at, "status a b")
            .out
            .contains("second superblock: damaged superblock")
    );
    good(at, "repair-superblocks a b");
    assert_eq!(volume(at, "status a b").status, 0);
    // A replacement can also be larger.
    good(at, "fail 1 a b");
    File::create(at.join("c"))
        .unwrap()
        .set_len(10 << 20)
        .unwrap();
    good(at, "replace 1 --with c a");
    assert_eq!(volume(at, "rebuild a c").status, 0);
    overwrite(&at.join("c"), 0, &[0; 512]);
    assert_eq!(volume(at, "assemble a c").status, 2);
    good(at, "repair-superblocks a c");
    assert_eq!(volume(at, "assemble a c").status, 0);
}

/// The first sector of a FAT file system.
pub(crate) fn fat_boot_sector() -> [u8; 512] {
    let mut sector = [0; 512];
    sector[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    sector[0x36..0x3e].copy_from_slice(b"FAT16   ");
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

/// Other content that begins in the place of a first superblock: its name, and its bytes with their
/// offset. The table and bcache leave the signature of the volume's superblock.
fn other_content() -> Vec<(&'static str, u64, Vec<u8>)> {
    let mut swap = vec![0; 4096];
    swap[1024..1036].copy_from_slice(&[1, 0, 0, 0, 255, 7, 0, 0, 0, 0, 0, 0]);
    swap[4086..].copy_from_slice(b"SWAPSPACE2");
    let mut table = vec![0; 66];
    table[4] = 0x83;
    table[8..12].copy_from_slice(&2048_u32.to_le_bytes());
    table[12..16].copy_from_slice(&8192_u32.to_le_bytes());
    table[64..].copy_from_slice(&[0x55, 0xaa]);
    let bcache = [
        0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d,
        0x81,
    ];
    vec![
        ("FAT", 0, fat_boot_sector().to_vec()),
        ("swap space", 0, swap),
        ("a partition table", 446, table),
        ("bcache", 4096 + 24, bcache.to_vec()),
    ]
}

/// Fault 7: verbs overwrite the content of a device that has been reused, whose old second
/// superblock remains. Do `create`, `status` and `repair-superblocks` name both the member and the
/// content, does `destroy` keep the content, and do other verbs write nothing?
#[test]
fn the_content_of_a_reused_device() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let read = || ["a", "b"].map(|name| fs::read(at.join(name)).unwrap());
    for (name, offset, bytes) in other_content() {
        files(at, &["a", "b"]);
        good(at, &format!("{CREATE_RAID_1} a b"));
        overwrite(&at.join("a"), offset, &bytes);
        let before = read();
        let beside = format!(", and {name}; use --force to overwrite it");
        let holds = format!("and the device holds {name}; if the device has been reused");
        let doubtful = "member 0: one of its superblocks was missing or damaged";
        for (line, says) in [
            (format!("{CREATE_RAID_1} a b"), &*beside),
            ("repair-superblocks a b".to_owned(), &holds),
            ("scrub --repair a b".to_owned(), doubtful),
            ("sync a b".to_owned(), doubtful),
            ("assemble a b".to_owned(), doubtful),
            ("serve a b -- true".to_owned(), doubtful),
            ("serve --read-only a b -- true".to_owned(), doubtful),
        ] {
            let refused = volume(at, &line);
            assert!(refused.status >= 2, "{name}: {line}: {}", refused.err);
            assert!(
                refused.err.contains(says),
                "{name}: {line}: {}",
                refused.err
            );
            assert!(before == read(), "{name}: {line} wrote");
        }
        let status = volume(at, "status a b");
        assert!(status.out.contains(&holds), "{name}: {}", status.out);
        let scrub = volume(at, "scrub a b");
        assert_eq!(scrub.status, 0, "{name}: {}", scrub.err);
        let says = "a member is doubtful, so nothing is written; if the scrub is interrupted, it cannot be resumed";
        assert!(scrub.err.contains(says), "{name}: {}", scrub.err);
        assert!(before == read(), "{name}: `scrub` wrote");
        let destroyed = volume(at, "destroy --force a b");
        assert_eq!(destroyed.status, 0, "{name}: {}", destroyed.err);
        let says = format!("a: {name} on the device is kept");
        assert!(destroyed.err.contains(&says), "{name}: {}", destroyed.err);
        let [a, b] = read();
        assert!(
            a[..SUPERBLOCK_BYTES] == before[0][..SUPERBLOCK_BYTES],
            "{name}: `destroy` overwrote it"
        );
        let ends = [&a[a.len() - SUPERBLOCK_BYTES..], &b[..SUPERBLOCK_BYTES]];
        assert!(ends.iter().all(|end| end.iter().all(|byte| *byte == 0)));
        // With --force, the administrator decides.
        files(at, &["c", "d"]);
        good(at, &format!("{CREATE_RAID_1} c d"));
        overwrite(&at.join("c"), offset, &bytes);
        good(at, "repair-superblocks --force c d");
        assert_eq!(volume(at, "status c d").status, 0);
        for name in ["a", "b", "c", "d"] {
            fs::remove_file(at.join(name)).unwrap();
        }
    }
}

/// Fault 8: a scrub without `--repair` writes superblocks over what is in the place of a missing
/// one. Does it write nothing, find differences nevertheless, and refuse a volume that has to be
/// recovered first?
#[test]
fn a_scrub_of_a_doubtful_member_writes_nothing() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b"]);
    good(at, &format!("{CREATE_RAID_1} a b"));
    let read = || ["a", "b"].map(|name| fs::read(at.join(name)).unwrap());
    for name in ["a", "b"] {
        let bytes = fs::read(at.join(name)).unwrap();
        for place in [0, bytes.len() - SUPERBLOCK_BYTES] {
            let mut found = Superblock::decode(&bytes[place..]).unwrap();
            found.scrubbed = 50;
            overwrite(&at.join(name), place as u64, &found.encode());
        }
    }
    let resumes = "the next one resumes at stripe 50 of 64";
    let status = volume(at, "status a b");
    assert!(status.out.contains(resumes), "{}", status.out);
    overwrite(&at.join("a"), 0, &[0; 8192]);
    overwrite(&at.join("a"), 5 << 20, b"x");
    let before = read();
    let scrub = volume(at, "scrub a b");
    assert_eq!(scrub.status, 1, "{}", scrub.err);
    let next = "if differences are found, `fail` the doubtful member";
    assert!(scrub.err.contains(next), "{}", scrub.err);
    // It is complete, although an earlier one was stopped.
    assert!(!scrub.out.contains("resumed"), "{}", scrub.out);
    assert!(
        scrub.out.contains("1 row with a difference"),
        "{}",
        scrub.out
    );
    assert!(before == read(), "the scrub wrote");
    for name in ["a", "b"] {
        let bytes = fs::read(at.join(name)).unwrap();
        for place in [0, bytes.len() - SUPERBLOCK_BYTES] {
            if let Ok(mut found) = Superblock::decode(&bytes[place..]) {
                found.clean = false;
                overwrite(&at.join(name), place as u64, &found.encode());
            }
        }
    }
    let before = read();
    let refused = volume(at, "scrub a b");
    assert_eq!(refused.status, 2, "{}", refused.err);
    let says = "member 0: one of its superblocks was missing or damaged";
    assert!(refused.err.contains(says), "{}", refused.err);
    assert_one_line(&refused);
    assert!(before == read(), "the refused scrub wrote");
}
