//! `traxtent volume` on files: volumes from `create` to `destroy`, maps, status, and refusals.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use traxtent_map::{MapFile, MapSource, TrackMap};
use traxtent_probe::Identity;
use traxtent_units::Sectors;

use crate::command::{Answer, traxtent_in};

/// Creates sparse files of 8 MiB.
pub(crate) fn files(folder: &Path, names: &[&str]) {
    for name in names {
        File::create(folder.join(name))
            .unwrap()
            .set_len(8 << 20)
            .unwrap();
    }
}

/// Runs `traxtent volume` with the words of a line.
pub(crate) fn volume(folder: &Path, line: &str) -> Answer {
    let arguments: Vec<&str> = ["volume"]
        .into_iter()
        .chain(line.split_whitespace())
        .collect();
    traxtent_in(folder, &arguments)
}

/// Runs `traxtent volume`, which must succeed, and returns its output as JSON, or null if it is
/// text.
pub(crate) fn good(folder: &Path, line: &str) -> serde_json::Value {
    let answer = volume(folder, line);
    assert_eq!(answer.status, 0, "{line}: {}", answer.err);
    serde_json::from_str(&answer.out).unwrap_or_default()
}

/// If each member of a RAID-1 went on without the other, are both named as split, whatever their
/// generations? Is replacing one with the other refused, with a warning about its data, unless
/// forced?
#[test]
fn members_that_went_on_without_each_other() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["f", "g"]);
    good(at, "create --level 1 --chunk 64K --journal 2M --json f g");
    good(at, "assemble --force f");
    // The other side gets the higher generation.
    for _ in 0..3 {
        good(at, "assemble --force g");
    }
    for line in [
        "status f g",
        "assemble f g",
        "assemble --force g f",
        "scrub f g",
    ] {
        let answer = volume(at, line);
        assert_eq!(answer.status, 2, "{line}: {}", answer.err);
        for word in [
            "f",
            "g",
            "split: each continued without the other",
            "it will be lost",
        ] {
            assert!(answer.err.contains(word), "{line}: {}", answer.err);
        }
        assert!(!answer.err.contains("stale"), "{line}: {}", answer.err);
    }
    for line in ["replace 0 --with f g", "replace 1 --with g f"] {
        let answer = volume(at, line);
        assert_eq!(answer.status, 2, "{line}: {}", answer.err);
        assert!(
            answer.err.contains("split from this volume"),
            "{}",
            answer.err
        );
        assert!(answer.err.contains("discard the data"), "{}", answer.err);
    }
    good(at, "replace --force 0 --with f g");
}

/// Does `status` of members that contradict each other name every contradiction in a line, and then
/// show the superblocks of all members, with the devices that are unusable?
#[test]
fn status_names_every_contradiction() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "x", "y"]);
    good(at, "create --level 1 --chunk 64K --journal 2M --json a b");
    good(at, "create --level 1 --chunk 64K --journal 2M --json x y");
    fs::copy(at.join("a"), at.join("copy")).unwrap();
    File::create(at.join("blank"))
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    let answer = volume(at, "status a x copy y blank b");
    assert_eq!(answer.status, 2, "{}", answer.err);
    let lines: Vec<&str> = answer.err.lines().collect();
    let says = [
        "x: belongs to volume",
        "y: belongs to volume",
        "a and copy: both are member 0",
        "the superblocks of the members:",
        "  a is member 0 of 2 of volume",
        "  x is member 0 of 2 of volume",
        "  copy is member 0 of 2 of volume",
        "  y is member 1 of 2 of volume",
        "  b is member 1 of 2 of volume",
        "  blank: ",
    ];
    assert_eq!(lines.len(), says.len(), "{}", answer.err);
    for (line, says) in lines.iter().zip(says) {
        assert!(line.contains(says), "{says}: {}", answer.err);
    }
}

/// Can a volume be created, scrubbed, degraded, repaired and destroyed as its help describes?
#[test]
fn created_repaired_and_destroyed() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "d"]);
    // Other programs' names for levels are accepted too.
    for level in ["5", "raid5"] {
        let create = format!("create --level {level} --chunk 64K --journal 2M --json a b c");
        assert_eq!(good(at, &create)["level"], "raid-5");
        volume(at, "destroy --force a b c");
    }
    let made = good(
        at,
        "create --level RAID-5 --chunk 64K --journal 2M --json a b c",
    );
    assert_eq!(made["level"], "raid-5");
    let bytes = made["bytes"].as_u64().unwrap();
    assert!(bytes > 11 << 20 && bytes.is_multiple_of(4096), "{bytes}");
    // Files without data are zero, and need no sync.
    assert_eq!(made["synced_stripes"], made["stripes"]);
    assert_eq!(good(at, "scrub --json a b c")["wrong_rows"], 0);
    assert_eq!(
        good(at, "status --json c a b")["members"][1]["state"],
        "active"
    );
    let failed = good(at, "fail --json 1 a b c");
    assert_eq!(failed["members"][1]["state"], "failed");
    let stale = volume(at, "assemble a b c");
    assert_eq!(stale.status, 2);
    assert!(
        stale.err.contains("/b: stale") || stale.err.contains("b: stale"),
        "{}",
        stale.err
    );
    assert_eq!(volume(at, "status a c").status, 1);
    let degraded = volume(at, "scrub a c").err;
    let next =
        "member 1 has failed; parity cannot be compared without it; `replace` and `rebuild` it";
    assert!(degraded.contains(next), "{degraded}");
    let replaced = good(at, "replace --json 1 --with d a c");
    assert_eq!(replaced["members"][1]["state"], "rebuilding");
    let status = volume(at, "status a c d").out;
    let next = "  degraded: `volume rebuild` restores the redundancy\n";
    assert!(status.contains(next), "{status}");
    let degraded = volume(at, "scrub a c d");
    assert_eq!(degraded.status, 2);
    assert!(
        degraded.err.contains("member 1 is not rebuilt yet"),
        "{}",
        degraded.err
    );
    let done = good(at, "rebuild --json a c d");
    assert_eq!(
        (&done["done"], &done["next"]),
        (&true.into(), &done["stripes"])
    );
    assert_eq!(done["share"], 1.0);
    let synced = volume(at, "sync a c d").out;
    assert!(synced.contains("nothing to sync"), "{synced}");
    assert_eq!(good(at, "scrub --json a c d")["wrong_rows"], 0);
    assert_eq!(good(at, "status --json a c d")["members"][1]["path"], "d");
    // A flipped bit on a member is found. On request, parity is computed from the changed data.
    let mut image = fs::read(at.join("a")).unwrap();
    let middle = image.len() / 2;
    image[middle] ^= 1;
    fs::write(at.join("a"), image).unwrap();
    let scrubbed = |line: &str, summary: &str, message: &str| {
        let answer = volume(at, line);
        assert_eq!(answer.status, 1, "{}", answer.out);
        let last = answer.out.lines().last().unwrap_or_default();
        assert!(
            last.starts_with("scrub: ") && last.ends_with(summary),
            "{last}"
        );
        assert!(answer.err.contains(message), "{}", answer.err);
    };
    let (left, found) = ("1 row with a difference, 0 repaired", "; none is repaired");
    scrubbed("scrub a c d", left, found);
    scrubbed("scrub --repair a c d", left, found);
    scrubbed(
        "scrub --repair=parity a c d",
        "1 row with a difference, 1 repaired",
        "the scrub found and repaired 1 row with a difference",
    );
    let clean = volume(at, "scrub a c d").out;
    assert!(
        clean.ends_with(" stripes read, no differences\n"),
        "{clean}"
    );
    assert_eq!(clean.lines().count(), 1, "{clean}");
    assert_eq!(good(at, "scrub --json a c d")["wrong_rows"], 0);
    assert_eq!(volume(at, "destroy a c d").status, 2);
    let destroyed = volume(at, "destroy --force a c d");
    assert_eq!(destroyed.status, 0, "{}", destroyed.err);
    assert!(
        destroyed.err.contains("the data remains"),
        "{}",
        destroyed.err
    );
    assert_eq!(volume(at, "status a c d").status, 2);
}

/// Are unusable members and invalid options refused with the reason, without writing to the other
/// members?
#[test]
fn refusals() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "x", "y"]);
    File::create(at.join("small"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let mut swap = vec![0; 8 << 20];
    swap[4086..4096].copy_from_slice(b"SWAPSPACE2");
    swap[1024] = 1;
    swap[1028..1030].copy_from_slice(&2047u16.to_le_bytes());
    fs::write(at.join("swap"), &swap).unwrap();
    fs::write(at.join("noise"), vec![7; 8 << 20]).unwrap();
    let mut luks = vec![0; 8 << 20];
    luks[0x4000..0x4006].copy_from_slice(b"SKUL\xba\xbe");
    fs::write(at.join("luks"), &luks).unwrap();
    fs::hard_link(at.join("b"), at.join("hard")).unwrap();
    std::os::unix::fs::symlink("b", at.join("soft")).unwrap();
    File::create(at.join("empty")).unwrap();
    let before = fs::read(at.join("a")).unwrap();
    for (line, says) in [
        ("create --level raid-5 --chunk 64K --journal 2M a b", "2"),
        (
            "create --level raid-1 --chunk 64K --journal 2M a noise",
            "noise: the device holds data of an unknown format (at byte 0); use --force",
        ),
        (
            "create --level raid-1 --chunk 64K --journal 2M a luks",
            "luks: the device holds a second header of LUKS2; use --force",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b small",
            "too few",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 64K a b c",
            "journal",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b a",
            "given twice",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b ./b",
            "given twice",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b hard",
            "given twice",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b soft",
            "given twice",
        ),
        (
            "create --level raid-1 --chunk 64K --journal 2M a swap",
            "swap",
        ),
        ("create --level raid-5 --chunk 64KB a b c", "64KB is 64000"),
        (
            "create --level raid-6 --chunk 64K a b c",
            "raid-0, raid-1, raid-4 or raid-5",
        ),
        ("create --level raid-5 a b c", "--map"),
        (
            "create --level raid-5 --chunk 64K --map missing a b c",
            "--map: with --chunk, chunks are not tracks",
        ),
        (
            "create --level raid-0 --chunk 64K --journal 2M a b",
            "--journal: raid-0 has no journal",
        ),
        (
            "serve --read-only --sync-rate 5M a b",
            "cannot be used with",
        ),
        (
            "create --level raid-1 --chunk 64K a .",
            "neither a file nor a block device",
        ),
        ("create --level raid-1 --chunk 64K a nothing", "nothing"),
        ("status a", "a: is not a member of a volume; it is blank"),
        ("status empty", "is not a member of a volume"),
        (
            "status swap",
            "swap: is not a member of a volume; it holds swap space",
        ),
        (
            "scrub --no-wait a",
            "--no-wait: only a server can continue in the background; give its control socket",
        ),
    ] {
        let answer = volume(at, line);
        assert!(
            answer.status >= 2 && answer.err.contains(says),
            "{line}: {} {}",
            answer.status,
            answer.err
        );
        // A usage error has more lines.
        let is_usage = answer.err.contains("try '--help'");
        assert!(
            is_usage || answer.err.lines().count() == 1,
            "{}",
            answer.err
        );
        assert!(fs::read(at.join("a")).unwrap() == before, "{line} wrote");
    }
    good(at, "create --level raid-1 --chunk 64K --journal 2M a b");
    good(at, "create --level raid-1 --chunk 64K --journal 2M x y");
    files(at, &["p", "q", "r"]);
    // Parity of zeros alone needs no sync.
    let unsynced = File::options().write(true).open(at.join("p")).unwrap();
    unsynced.write_all_at(&[7; 4096], 4 << 20).unwrap();
    good(
        at,
        "create --level raid-5 --chunk 64K --journal 2M --force p q r",
    );
    fs::copy(at.join("a"), at.join("short")).unwrap();
    let short = File::options().write(true).open(at.join("short"));
    short.unwrap().set_len(7 << 20).unwrap();
    for (line, says) in [
        (
            "create --level raid-1 --chunk 64K --journal 2M a c",
            "member 0 of volume",
        ),
        ("assemble a x", "belongs to volume"),
        ("assemble a", "member 1 is missing"),
        ("fail 7 a b", "member 7 does not exist"),
        ("fail 0 p q r", "before the initial sync is complete"),
        ("replace 1 --with c a b", "has not failed; `fail` it first"),
        (
            "scrub --repair --from 9 a b",
            "--from 9: expected a member from 0 to 1",
        ),
        ("destroy a c", "c: is not a member of a volume; it is blank"),
        ("destroy a b", "confirm with --force"),
        ("serve --control small a b -- true", "the path exists"),
    ] {
        let content = || ["a", "p"].map(|name| fs::read(at.join(name)).unwrap());
        let before = content();
        let answer = volume(at, line);
        assert!(
            answer.status >= 2 && answer.err.contains(says),
            "{line}: {} {}",
            answer.status,
            answer.err
        );
        assert!(content() == before, "{line} wrote");
    }
    files(at, &["s", "t"]);
    for line in [
        "create --level raid-1 --chunk 64K --journal 2M --force p q r",
        "fail 1 p q r",
        "fail 2 p r",
        "replace 1 --with s p",
    ] {
        good(at, line);
    }
    let before = fs::read(at.join("p")).unwrap();
    let answer = volume(at, "replace 2 --with t p s");
    let says = "cannot be replaced yet; another member is being rebuilt";
    assert!(
        answer.status == 2 && answer.err.contains(says),
        "{} {}",
        answer.status,
        answer.err
    );
    assert!(fs::read(at.join("p")).unwrap() == before);
    good(at, "fail 1 a b");
    let answer = volume(at, "replace 1 --with small a");
    assert!(
        answer.status == 2
            && answer
                .err
                .contains(" bytes are too few; the replaced member had "),
        "{} {}",
        answer.status,
        answer.err
    );
    good(
        at,
        "create --level raid-1 --chunk 64K --journal 2M --force a c",
    );
}

/// Writes the map of a drive with this many tracks of each size, and returns its number of sectors.
pub(crate) fn map_of(path: &Path, zones: &[(u64, u64)]) -> u64 {
    let (mut text, mut next) = ("first_lbn,sectors\n".to_owned(), 0);
    for (size, tracks) in zones {
        for _ in 0..*tracks {
            text += &format!("{next},{size}\n");
            next += size;
        }
    }
    let identity = Identity {
        capacity: Sectors(next),
        logical_bytes: 512,
        physical_bytes: 512,
        ..Identity::default()
    };
    let map = TrackMap::read_csv(text.as_bytes()).unwrap();
    let file = MapFile::new(identity, MapSource::Model, map);
    fs::write(path, file.to_text()).unwrap();
    next
}

/// Is a map that does not fit its member refused, and one that cannot be verified by timing
/// accepted with a note?
#[test]
fn maps_and_members() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let sectors = map_of(&at.join("m"), &[(400, 30), (300, 20)]);
    map_of(&at.join("longer"), &[(400, 30), (300, 21)]);
    fs::write(at.join("none"), "no map\n").unwrap();
    for name in ["a", "b"] {
        let file = File::create(at.join(name)).unwrap();
        file.set_len(sectors * 512).unwrap();
    }
    let create = "create --level raid-1 --journal 1M";
    for (line, says) in [
        ("--map m --map longer a b", "member 1 does not fit"),
        (
            "--map m a b",
            "2 members, but 1 track map; give --map once for each member, or a chunk size",
        ),
        ("--map m --map none a b", "track map"),
        ("--map m --map missing a b", "missing"),
    ] {
        let answer = volume(at, &format!("{create} --trust-map {line}"));
        assert!(
            answer.status >= 2 && answer.err.contains(says) && answer.err.lines().count() == 1,
            "{line}: {} {}",
            answer.status,
            answer.err
        );
        let untouched = |name: &&str| {
            fs::read(at.join(name))
                .unwrap()
                .iter()
                .all(|&byte| byte == 0)
        };
        assert!(["a", "b"].iter().all(untouched), "{line} wrote");
    }
    let made = volume(at, &format!("{create} --map m --map m a b"));
    assert_eq!(made.status, 0, "{}", made.err);
    let said = "its map was not verified: a file has no tracks to measure";
    assert_eq!(made.err.matches(said).count(), 2, "{}", made.err);
    assert!(volume(at, "assemble a b").err.contains(said));
    assert_eq!(volume(at, "assemble --trust-map a b").err, "");
}

/// Does the map of a volume state that it is one, as text and as JSON?
#[test]
fn a_map_of_a_volume_says_so() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let sectors = map_of(&at.join("m"), &[(400, 30), (300, 20)]);
    for name in ["a", "b"] {
        let file = File::create(at.join(name)).unwrap();
        file.set_len(sectors * 512).unwrap();
    }
    good(
        at,
        "create --level raid-0 --trust-map --map m --map m --json a b",
    );
    let map = volume(at, "map a b");
    assert_eq!(map.status, 0, "{}", map.err);
    fs::write(at.join("v.map"), map.out).unwrap();
    let summary = traxtent_in(at, &["map", "v.map"]).out;
    let line = "  known from  a volume, whose chunks are the tracks\n";
    assert!(summary.contains(line), "{summary}");
    let json = traxtent_in(at, &["map", "v.map", "--json"]).out;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["method"], "volume");
}

/// Is a mirror created without a chunk size and without track maps? Does the error for the other
/// levels name an option to type, and is nothing written?
#[test]
fn chunks_by_default() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    for level in ["raid0", "raid4", "raid5"] {
        let answer = volume(at, &format!("create --level {level} a b c"));
        assert_eq!(answer.status, 2, "{level}: {}", answer.err);
        let name = level.replace("raid", "raid-");
        let says = format!("traxtent: {name} needs the size of a chunk, such as --chunk 64K; or ");
        assert!(answer.err.starts_with(&says), "{}", answer.err);
        assert_eq!(volume(at, "status a b c").status, 2);
    }
    let made = volume(at, "create --level raid1 --journal 2M a b");
    assert_eq!((made.status, made.err.as_str()), (0, ""), "{}", made.out);
    assert!(
        made.out.contains("raid-1, chunks of 64 KiB"),
        "{}",
        made.out
    );
    assert_eq!(volume(at, "scrub a b").status, 0);
}

/// Is each track map read if any of its copies is undamaged? Otherwise, does the error name the
/// member to which it belongs?
#[test]
fn damaged_maps() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let sectors = map_of(&at.join("m"), &[(400, 30), (300, 20)]);
    map_of(&at.join("n"), &[(300, 20), (400, 30)]);
    for name in ["a", "b"] {
        let file = File::create(at.join(name)).unwrap();
        file.set_len(sectors * 512).unwrap();
    }
    let create = "create --level raid-1 --journal 1M --trust-map --map m --map n a b";
    let made = volume(at, create);
    assert_eq!(made.status, 0, "{}", made.err);
    // Each member has two copies of all maps.
    let maps = ["m", "n"].map(|name| fs::read(at.join(name)).unwrap());
    let damage = |map: usize, copies: &[usize]| {
        let mut copy = 0;
        for name in ["a", "b"] {
            let mut bytes = fs::read(at.join(name)).unwrap();
            for first in 0..bytes.len() - maps[map].len() {
                if bytes[first..].starts_with(&maps[map]) {
                    if copies.contains(&copy) {
                        bytes[first] ^= 1;
                    }
                    copy += 1;
                }
            }
            fs::write(at.join(name), bytes).unwrap();
        }
        copy
    };
    assert_eq!(damage(0, &[0, 1, 2]), 4);
    assert_eq!(damage(1, &[3]), 4);
    let answer = volume(at, "assemble --trust-map a b");
    assert_eq!((answer.status, answer.err.as_str()), (0, ""));
    damage(0, &[0]);
    let answer = volume(at, "assemble --trust-map a b");
    let says = "the track map of member 0 is damaged on every member";
    assert!(answer.err.contains(says), "{}", answer.err);
}

/// Are a member without permission, one on a full disk, and one with sectors of another size
/// refused in one line with the right status, without writing to the others?
#[test]
fn unusable_members_are_refused() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::set_permissions(at, Permissions::from_mode(0o755)).unwrap();
    files(at, &["a", "b", "c"]);
    let line = "volume create --level raid-5 --chunk 64K --journal 2M a b";
    let before = fs::read(at.join("a")).unwrap();
    let refused = |mut command: Command, last: &str, status: i32, says: &str| {
        let output = command
            .args(line.split(' '))
            .arg(last)
            .current_dir(at)
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{last}: {err}");
        assert!(err.contains(says) && err.lines().count() == 1, "{err}");
    };
    let program = env!("CARGO_BIN_EXE_traxtent");
    for name in ["a", "b"] {
        fs::set_permissions(at.join(name), Permissions::from_mode(0o666)).unwrap();
    }
    fs::set_permissions(at.join("c"), Permissions::from_mode(0o444)).unwrap();
    // Permissions do not restrict the superuser.
    let is_root = rustix::process::geteuid().is_root();
    match (is_root, testkit::tool("setpriv")) {
        (false, _) => refused(Command::new(program), "c", 3, "Permission denied"),
        (true, Some(setpriv)) => {
            // This cannot be tested if an unprivileged user cannot run the program.
            let unprivileged = || {
                let mut command = Command::new(&setpriv);
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups", program]);
                command
            };
            if unprivileged()
                .arg("--version")
                .output()
                .unwrap()
                .status
                .success()
            {
                refused(
                    unprivileged(),
                    "c",
                    3,
                    "c: cannot open it: Permission denied (os error 13); use sudo",
                );
            }
        }
        (true, None) => {}
    }
    assert!(fs::read(at.join("a")).unwrap() == before, "it wrote");
    let (Some(mount), Some(umount)) = (testkit::tool("mount"), testkit::tool("umount")) else {
        testkit::skip!("mount is not installed");
    };
    let full = at.join("full");
    fs::create_dir(&full).unwrap();
    let mounted = Command::new(mount)
        .args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"])
        .arg(&full)
        .output();
    if mounted.unwrap().status.success() {
        File::create(full.join("c"))
            .unwrap()
            .set_len(8 << 20)
            .unwrap();
        fs::write(full.join("filler"), vec![1; 12 << 10]).unwrap();
        refused(
            Command::new(program),
            "full/c",
            3,
            "full/c: cannot write it: No space left",
        );
        let gone = Command::new(umount).arg("--lazy").arg(&full).status();
        assert!(gone.unwrap().success());
    }
    files(at, &["a", "b"]);
    let Some(losetup) = testkit::tool("losetup") else {
        testkit::skip!("losetup is not installed");
    };
    let shown = Command::new(&losetup)
        .args(["--find", "--show", "--sector-size", "4096"])
        .arg(at.join("c"))
        .output()
        .unwrap();
    let device = String::from_utf8(shown.stdout).unwrap();
    if shown.status.success() {
        let says = "sectors of 4096 bytes do not match the first member's sectors of 512";
        refused(Command::new(program), device.trim(), 2, says);
        assert!(fs::read(at.join("a")).unwrap() == before, "it wrote");
        let gone = Command::new(&losetup)
            .args(["--detach", device.trim()])
            .status();
        assert!(gone.unwrap().success());
    }
}

/// If one member of a RAID-5 is missing and another is stale, do the errors say that the stale one
/// cannot be used, and that the volume needs the missing one, instead of advising to omit it?
#[test]
fn a_stale_member_does_not_replace_a_missing_one() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "d"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c d");
    good(at, "assemble --force a b c");
    let missing = "member 2 is missing, and member 3 has failed; the other members are not enough";
    for line in ["assemble a b d", "assemble --force a b d", "scrub a b d"] {
        let answer = volume(at, line);
        assert_eq!(answer.status, 2, "{line}: {}", answer.err);
        assert!(
            answer.err.contains("d: stale: it was member 3"),
            "{line}: {}",
            answer.err
        );
        assert!(answer.err.contains(missing), "{line}: {}", answer.err);
        assert!(!answer.err.contains("rebuild"), "{line}: {}", answer.err);
    }
    let status = volume(at, "status a b d").err;
    assert!(status.contains(missing), "{status}");
    assert!(
        status.contains("  d is stale: the volume has generation "),
        "{status}"
    );
    let omit = volume(at, "assemble a b c d").err;
    assert!(
        omit.contains("omit it, then `replace` and `rebuild`"),
        "{omit}"
    );
}

/// Is the state of a RAID-1, according to one member alone that was marked as failed, qualified as
/// the last state that this device knows?
#[test]
fn a_failed_member_alone_does_not_know_it() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b"]);
    good(at, "create --level raid-1 --journal 2M a b");
    good(at, "fail 1 a b");
    let says = "these are the last states that these devices know; the other members may have";
    let alone = volume(at, "status b");
    assert_eq!(alone.status, 1, "{}", alone.err);
    assert!(alone.out.contains(says), "{}", alone.out);
    let current = volume(at, "status a").out;
    assert!(!current.contains(says), "{current}");
}

/// Does `status` show all members although one is not given, was truncated, is missing, or is
/// something else, and name the problem with each? Does a member that cannot be examined keep the
/// state that the others record?
#[test]
fn status_shows_all_members() {
    const ABSENT: &str = "  member 2: active, not among these devices\n";
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "x"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
    let answer = volume(at, "status a b");
    assert_eq!(answer.status, 1, "{}", answer.err);
    assert!(answer.out.contains(ABSENT), "{}", answer.out);
    let next = "  incomplete: name every member; if one is dead, `volume assemble --force`";
    assert!(answer.out.contains(next), "{}", answer.out);
    File::options()
        .write(true)
        .open(at.join("c"))
        .unwrap()
        .set_len(4 << 20)
        .unwrap();
    for (given, problem) in [
        ("c", "this one is smaller, or was truncated; omit it"),
        ("x", "there is no superblock of a volume"),
        ("none", "No such file or directory"),
    ] {
        let answer = volume(at, &format!("status a b {given}"));
        assert_eq!(answer.status, 1, "{}", answer.err);
        for line in [
            "  member 0: active, a\n",
            "  member 1: active, b\n",
            ABSENT,
            &format!("  unusable: {given}: "),
            problem,
        ] {
            assert!(answer.out.contains(line), "{given}: {}", answer.out);
        }
        // If nothing is usable, this is an error.
        assert!(volume(at, &format!("status {given}")).status >= 2);
    }
}

/// Does `create` print the journal's share and the unused space of larger members, and are sizes
/// written with units in text and in bytes in JSON?
#[test]
fn space_of_unequal_members() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    let create = |members: &str| {
        let answer = volume(
            at,
            &format!("create --level raid-5 --chunk 64K --journal 2M {members}"),
        );
        assert_eq!(answer.status, 0, "{}", answer.err);
        answer.out
    };
    let equal = create("a b c");
    assert!(
        equal.contains(": raid-5, chunks of 64 KiB, 12.0 MiB\n"),
        "{equal}"
    );
    let journal = "  journal: 2 MiB of each member (25.0 % of the smallest)\n";
    assert!(equal.contains(journal), "{equal}");
    assert!(!equal.contains("not used"), "{equal}");
    let status = volume(at, "status a b c").out;
    assert!(
        status.contains(" MiB\n") && !status.contains("journal"),
        "{status}"
    );
    let json = good(at, "status --json a b c");
    assert!(json["bytes"].as_u64().unwrap() > 11 << 20, "{json}");
    good(at, "destroy --force a b c");
    let c = File::options().write(true).open(at.join("c")).unwrap();
    c.set_len(12 << 20).unwrap();
    let unequal = create("a b c");
    let lines: Vec<&str> = unequal
        .lines()
        .filter(|line| line.contains("not used"))
        .collect();
    assert!(
        matches!(lines[..], [line] if line.starts_with("  not used: 4") && line.ends_with(" MiB of member 2 (c)")),
        "{unequal}"
    );
}

/// Is a file with data only in its middle refused without --force, and a file of zeros accepted?
#[test]
fn data_in_the_middle_of_a_file_is_kept() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "d"]);
    fs::write(at.join("zeros"), vec![0; 8 << 20]).unwrap();
    let d = File::options().write(true).open(at.join("d")).unwrap();
    let offset = (3 << 20) + 4321;
    d.write_all_at(b"x", offset).unwrap();
    let says =
        format!("d: the device holds data of an unknown format (at byte {offset}); use --force");
    let create = "create --level raid-1 --chunk 64K --journal 2M";
    let refused = |line: &str| {
        let answer = volume(at, line);
        assert_eq!(answer.status, 2, "{line}: {}", answer.err);
        assert!(answer.err.contains(&says), "{line}: {}", answer.err);
    };
    refused(&format!("{create} a d"));
    good(at, &format!("{create} a b zeros"));
    good(at, "fail 1 a b zeros");
    refused("replace 1 --with d a zeros");
    good(at, "replace 1 --with c a zeros");
    good(at, "destroy --force a zeros c");
    good(at, &format!("{create} --force a d"));
}

/// Are member time-outs out of range refused?
#[test]
fn member_timeouts_are_checked() {
    let folder = TempDir::new().unwrap();
    for wrong in ["0", "3601", "2.5", "soon", "-1", "99999999999999999999"] {
        let line = format!("serve --member-timeout={wrong} a b");
        let answer = volume(folder.path(), &line);
        assert_eq!(answer.status, 2, "{wrong}: {}", answer.err);
        let says = "whole seconds from 1 to 3600";
        assert!(answer.err.contains(says), "{wrong}: {}", answer.err);
    }
}

/// A file system in memory that is unmounted after the test.
struct MemoryDisk(PathBuf);

impl Drop for MemoryDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).output();
    }
}

/// Can verbs that need no writes read members on a read-only file system, even if one of the
/// members is missing? Are other verbs refused with the reason?
#[test]
fn members_that_cannot_be_written() {
    let mount = testkit::tool!("mount");
    let folder = TempDir::new().unwrap();
    let at = folder.path().join("disk");
    fs::create_dir(&at).unwrap();
    let mounts = |options: &[&str]| {
        let mounted = Command::new(&mount).args(options).arg(&at).output();
        mounted.is_ok_and(|mounted| mounted.status.success())
    };
    if !mounts(&["-t", "tmpfs", "tmpfs"]) {
        testkit::skip!("a file system cannot be mounted here");
    }
    let _disk = MemoryDisk(at.clone());
    files(&at, &["a", "b", "c"]);
    let create = "create --level raid-5 --chunk 64K --journal 2M a b c";
    good(&at, create);
    assert!(mounts(&["-o", "remount,ro"]));
    for line in [
        "status a b c",
        "scrub a b c",
        "serve --read-only a b c -- true",
    ] {
        let answer = volume(&at, line);
        assert_eq!(answer.status, 0, "{line}: {}", answer.err);
    }
    let degraded = volume(&at, "serve --read-only a c -- true");
    assert_eq!(degraded.status, 0, "{}", degraded.err);
    let says = "member 1 is missing or has failed; its content is computed from the others";
    assert!(degraded.err.contains(says), "{}", degraded.err);
    for line in [
        "scrub --repair a b c",
        "serve a b c -- true",
        "assemble a b c",
    ] {
        let answer = volume(&at, line);
        assert_eq!(answer.status, 3, "{line}: {}", answer.err);
        assert!(
            answer.err.contains("Read-only file system"),
            "{line}: {}",
            answer.err
        );
    }
}
