//! `traxtent volume` on files: the life of a volume, and refusals.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use tempfile::TempDir;
use traxtent_map::{MapFile, MapSource, TrackMap};
use traxtent_probe::Identity;
use traxtent_server::volume::find;
use traxtent_units::{Lbn, Sectors};

use crate::command::{Answer, traxtent_in};

pub(crate) fn files(folder: &Path, names: &[&str]) {
    for name in names {
        File::create(folder.join(name))
            .unwrap()
            .set_len(8 << 20)
            .unwrap();
    }
}

pub(crate) fn volume(folder: &Path, line: &str) -> Answer {
    let arguments: Vec<&str> = ["volume"]
        .into_iter()
        .chain(line.split_whitespace())
        .collect();
    traxtent_in(folder, &arguments)
}

pub(crate) fn good(folder: &Path, line: &str) -> serde_json::Value {
    let answer = volume(folder, line);
    assert_eq!(answer.status, 0, "{line}: {}", answer.err);
    serde_json::from_str(&answer.out).unwrap_or_default()
}

/// Can a volume be created, scrubbed, degraded, repaired and destroyed as its help describes?
#[test]
fn a_life() {
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
    good(at, "fail 1 a b c");
    let stale = volume(at, "assemble a b c");
    assert_eq!(stale.status, 2);
    assert!(
        stale.err.contains("/b: stale") || stale.err.contains("b: stale"),
        "{}",
        stale.err
    );
    assert_eq!(volume(at, "status a c").status, 1);
    good(at, "replace 1 --with d a c");
    let degraded = volume(at, "scrub a c d");
    assert_eq!(degraded.status, 2);
    assert!(
        degraded.err.contains("member 1 is missing"),
        "{}",
        degraded.err
    );
    let done = good(at, "rebuild --json a c d");
    assert_eq!(
        (&done["done"], &done["next"]),
        (&true.into(), &done["stripes"])
    );
    assert_eq!(done["share"], 1.0);
    assert_eq!(good(at, "scrub --json a c d")["wrong_rows"], 0);
    assert_eq!(good(at, "status --json a c d")["members"][1]["path"], "d");
    // A flipped bit on a member is found. On request, parity is computed from the changed data.
    let mut image = fs::read(at.join("a")).unwrap();
    let middle = image.len() / 2;
    image[middle] ^= 1;
    fs::write(at.join("a"), image).unwrap();
    let scrubbed = volume(at, "scrub a c d");
    assert_eq!(scrubbed.status, 1, "{}", scrubbed.out);
    assert_eq!(volume(at, "scrub --repair a c d").status, 1);
    assert_eq!(volume(at, "scrub --repair=parity a c d").status, 1);
    assert_eq!(good(at, "scrub --json a c d")["wrong_rows"], 0);
    assert_eq!(volume(at, "destroy a c d").status, 2);
    good(at, "destroy --force a c d");
    assert_eq!(volume(at, "status a c d").status, 2);
}

/// Is each kind of wrong member refused with its reason, without writing anything?
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
        ("replace 1 --with c a b", "has not failed"),
        ("destroy a c", "c: it is not a volume's superblock"),
        ("destroy a b", "confirm with --force"),
        ("serve --control small a b -- true", "the path exists"),
    ] {
        let answer = volume(at, line);
        assert!(
            answer.status >= 2 && answer.err.contains(says),
            "{line}: {} {}",
            answer.status,
            answer.err
        );
    }
    good(at, "fail 1 a b");
    let answer = volume(at, "replace 1 --with small a");
    assert!(
        answer.status == 2 && answer.err.contains("the replaced member had"),
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
fn map_of(path: &Path, zones: &[(u64, u64)]) -> u64 {
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

/// Does a server report a failed member, and too many failed members?
#[test]
fn failures_are_reported() {
    let _ = testkit::tool!("nbdcopy");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
    fs::write(at.join("data"), vec![1; 4 << 20]).unwrap();
    let words = "truncate -s 1M b; nbdcopy data \"$uri\"; truncate -s 1M c; nbdcopy data \"$uri\"; nbdcopy data \"$uri\"; true";
    let answer = traxtent_in(
        at,
        &["volume", "serve", "a", "b", "c", "--", "sh", "-c", words],
    );
    let said = |what: &str| {
        answer
            .err
            .lines()
            .filter(|line| line.contains(what))
            .count()
    };
    assert_eq!(
        said("traxtent: warning: member 1 has failed"),
        1,
        "{}",
        answer.err
    );
    assert_eq!(
        said("warning: the volume is read-only, and only undamaged data can be read"),
        1,
        "{}",
        answer.err
    );
}

/// Is a map that does not fit its member refused, and one that cannot be verified by timing
/// accepted with a warning?
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
        ("--map m a b", "2 members, but 1 track maps"),
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

/// Are a member without permission, one on a full disk, and one with other sectors refused in one
/// line with the right status, without writing to the others?
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
                    "c: cannot open it: Permission denied",
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

/// Does `status` show all members although one was truncated, is missing, or is something else, and
/// name the problem with each?
#[test]
fn status_shows_all_members() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "x"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
    File::options()
        .write(true)
        .open(at.join("c"))
        .unwrap()
        .set_len(4 << 20)
        .unwrap();
    for (given, problem) in [
        ("c", "this one is smaller, or was truncated"),
        ("x", "it is not a volume's superblock"),
        ("none", "No such file or directory"),
    ] {
        let answer = volume(at, &format!("status a b {given}"));
        assert_eq!(answer.status, 1, "{}", answer.err);
        for line in [
            "  member 0: active, a\n",
            "  member 1: active, b\n",
            "  member 2: failed, missing\n",
            &format!("  unusable: {given}: "),
            problem,
        ] {
            assert!(answer.out.contains(line), "{given}: {}", answer.out);
        }
        // If nothing is usable, this is an error.
        assert!(volume(at, &format!("status {given}")).status >= 2);
    }
}

/// A child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Do the verbs work on the control socket while the volume is served, and does the JSON report the
/// progress of maintenance?
#[test]
fn orders_while_served() {
    let sh = testkit::tool!("sh");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "d"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
    let program = env!("CARGO_BIN_EXE_traxtent");
    // A user who names the members is referred to the control socket.
    let script = format!(
        "v() {{ {program} volume \"$@\"; echo \"status $?\" >> log; }}
         v status a b c 2> locked
         v status --json $control > before
         v scrub --json $control > scrubbed
         v fail 1 $control
         v scrub $control 2> degraded
         v status --json $control > failed
         v fail 0 $control 2> second
         v replace 1 --with d $control
         v rebuild --no-wait --rate 4M --json $control > begun
         v scrub $control 2> busy
         {program} volume rebuild --rate 1M $control 2> also; true
         v status $control > text
         while {program} volume status --json $control | grep -q '\"under_way\": *true'; do sleep 0.1; done
         v rebuild --json $control > rebuilt
         v status --json $control > whole"
    );
    fs::write(at.join("script"), script).unwrap();
    let sh = sh.display().to_string();
    let served = volume(at, &format!("serve a b c -- {sh} script"));
    assert_eq!(served.status, 0, "{}", served.err);
    let text = |name: &str| fs::read_to_string(at.join(name)).unwrap();
    let parsed = |name: &str| serde_json::from_str::<serde_json::Value>(&text(name)).unwrap();
    assert!(
        text("locked").contains("; if the volume is being served, use its control socket"),
        "{}",
        text("locked")
    );
    assert_eq!(
        (&parsed("before")["served"], &parsed("before")["work"]),
        (&true.into(), &serde_json::Value::Null)
    );
    assert_eq!(parsed("scrubbed")["done"], true);
    assert_eq!(parsed("failed")["members"][1]["state"], "failed");
    assert!(
        text("degraded").contains("member 1 is missing"),
        "{}",
        text("degraded")
    );
    assert!(
        text("second").contains("member 0 cannot be marked as failed"),
        "{}",
        text("second")
    );
    let begun = &parsed("begun")["work"];
    assert_eq!(
        (&begun["work"], &begun["under_way"]),
        (&"rebuild".into(), &true.into())
    );
    assert!(
        text("busy").contains("member 1 is missing"),
        "{}",
        text("busy")
    );
    assert!(
        text("also").contains("a rebuild is already running"),
        "{}",
        text("also")
    );
    assert!(
        text("text").contains("member 1: rebuilding"),
        "{}",
        text("text")
    );
    assert!(text("text").contains("stripes ("), "{}", text("text"));
    assert_eq!(parsed("whole")["members"][1]["state"], "active");
    assert!(
        parsed("whole")["members"][1]["path"]
            .as_str()
            .unwrap()
            .ends_with("/d")
    );
    let statuses = text("log");
    let statuses: Vec<&str> = statuses.lines().collect();
    let expected = [3, 0, 0, 0, 2, 1, 2, 0, 0, 2, 1, 0, 0].map(|status| format!("status {status}"));
    assert_eq!(statuses, expected);
    good(at, "assemble a d c");
}

/// Does `check` find a file system aligned if `plan stack` made it from the map of a volume with
/// tracks as chunks, and unaligned if it starts elsewhere?
#[test]
fn check_finds_volumes_aligned() {
    let tools = ["nbdfuse", "losetup", "sfdisk", "mke2fs", "umount"];
    if let Some(name) = tools.iter().find(|name| testkit::tool(name).is_none()) {
        testkit::skip!("{name} is not installed");
    }
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    // Sizes that differ from each other, and are not multiples of a block.
    let zones = [
        [(531, 60), (507, 70)],
        [(533, 50), (500, 82)],
        [(529, 66), (511, 64)],
    ];
    for (name, zones) in ["a", "b", "c"].iter().zip(&zones) {
        let sectors = map_of(&at.join(format!("{name}.map")), zones);
        let file = File::create(at.join(name)).unwrap();
        file.set_len(sectors * 512).unwrap();
    }
    let maps = "--map a.map --map b.map --map c.map";
    good(
        at,
        &format!("create --level raid-5 --journal 4M {maps} a b c"),
    );
    let map = volume(at, "map a b c");
    assert_eq!(map.status, 0, "{}", map.err);
    let member = traxtent_in(at, &["check", "a"]);
    assert!(
        member.out.contains("a holds part of a traxtent volume"),
        "{}",
        member.out
    );
    fs::write(at.join("v.map"), map.out).unwrap();

    let mut serve = Command::new(env!("CARGO_BIN_EXE_traxtent"));
    serve.args([
        "volume",
        "serve",
        "--trust-map",
        "--socket",
        "s",
        "a",
        "b",
        "c",
    ]);
    serve
        .current_dir(at)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let _server = Running(serve.spawn().unwrap());
    wait_for(&at.join("s"));
    let node = at.join("node");
    fs::write(&node, []).unwrap();
    let uri = format!("nbd+unix:///?socket={}", at.join("s").display());
    let mut nbdfuse = Command::new("nbdfuse");
    nbdfuse
        .args(["-P", "ready"])
        .arg(&node)
        .arg(uri)
        .current_dir(at);
    let shown = nbdfuse.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    let _shown = Shown(node.clone(), Running(shown.unwrap()));
    wait_for(&at.join("ready"));
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program)
            .args(arguments)
            .current_dir(at)
            .output()
            .unwrap();
        let out = String::from_utf8_lossy(&output.stdout).into_owned();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), out, err)
    };
    let (attached, disk, err) = run("losetup", &["--find", "--show", "node"]);
    if !attached {
        testkit::skip!("a loop device cannot be made here: {err}");
    }
    let disk = Detached(disk.trim().to_owned());
    std::os::unix::fs::symlink(&disk.0, at.join("disk")).unwrap();
    let name = at.join("disk").display().to_string();
    let arguments = [
        "plan", "stack", "v.map", "--device", &name, "--for", "fs=ext4", "--json", "--output", ".",
    ];
    let planned = traxtent_in(at, &arguments);
    assert_eq!(planned.status, 0, "{}", planned.err);
    let recipe: serde_json::Value = serde_json::from_str(&planned.out).unwrap();
    assert_eq!(recipe["partition"]["on_track"], true, "{recipe}");
    let make = |program: &str| {
        let steps = recipe["steps"].as_array().unwrap().iter();
        for step in steps.filter(|step| step["program"] == program) {
            for command in step["commands"].as_array().unwrap() {
                let (done, out, err) = run("sh", &["-c", command.as_str().unwrap()]);
                assert!(done, "{command}: {out}{err}");
            }
        }
    };
    make("sfdisk");
    let start = recipe["partition"]["start_lbn"].as_u64().unwrap();
    let offset = (start * 512).to_string();
    let end = recipe["partition"]["end_lbn"].as_u64().unwrap();
    let length = ((end - start) * 512).to_string();
    let place = ["--offset", &offset, "--sizelimit", &length, "node"];
    let (_, partition, err) = run("losetup", &[&["--find", "--show"], &place[..]].concat());
    let partition = Detached(partition.trim().to_owned());
    std::os::unix::fs::symlink(&partition.0, at.join("disk1")).expect(&err);
    make("mke2fs");
    let findings = |drive: &str| {
        let arguments = [
            "check",
            "node",
            "--drive",
            drive,
            "--fail-on",
            "info",
            "--json",
        ];
        let answer = traxtent_in(at, &arguments);
        let report: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        (
            answer.status,
            report["findings"].as_array().unwrap().clone(),
        )
    };
    assert_eq!(findings("v.map"), (0, vec![]));
    // The same bytes are not aligned on a drive with other tracks.
    let end = fs::metadata(&node).unwrap().len() / 512;
    map_of(&at.join("odd.map"), &[(509, end / 509), (end % 509, 1)]);
    let (status, found) = findings("odd.map");
    assert!(status == 1 && !found.is_empty(), "{found:?}");
}

fn wait_for(path: &Path) {
    let begun = Instant::now();
    while !path.exists() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "no {}",
            path.display()
        );
        thread::sleep(Duration::from_millis(10));
    }
}

/// The file shown by nbdfuse.
struct Shown(
    PathBuf,
    #[expect(dead_code, reason = "it ends with this")] Running,
);

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

/// A loop device that is detached on drop.
struct Detached(String);

impl Drop for Detached {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

/// Is a rate without its unit refused, and is it reported if the server has ended? Does the next
/// server remove leftover sockets, but no other files?
#[test]
fn a_forgotten_unit_and_a_server_that_ended() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
    let slow = volume(at, "scrub --rate 50 a b c");
    assert_eq!(slow.status, 2);
    assert!(
        slow.err
            .contains("50 bytes per second; expected at least 64K"),
        "{}",
        slow.err
    );
    // A server that was killed leaves its sockets.
    drop(UnixListener::bind(at.join("orders")).unwrap());
    drop(UnixListener::bind(at.join("socket")).unwrap());
    let gone = volume(at, "status orders");
    assert_eq!(gone.status, 3);
    assert!(
        gone.err
            .contains("orders: no server responds; it may have ended"),
        "{}",
        gone.err
    );
    let serve = || volume(at, "serve --control orders --socket socket a b c -- true");
    let served = serve();
    assert_eq!(served.status, 0, "{}", served.err);
    fs::write(at.join("orders"), "mine").unwrap();
    let others = serve();
    assert_eq!(others.status, 3, "{}", others.err);
    assert_eq!(fs::read(at.join("orders")).unwrap(), b"mine");
    fs::remove_file(at.join("orders")).unwrap();
    let alive = UnixListener::bind(at.join("orders")).unwrap();
    assert_eq!(serve().status, 3);
    assert!(at.join("orders").exists());
    drop(alive);
}

/// A program that shows a file and can be stopped.
struct Hangable(Child, PathBuf);

impl Hangable {
    /// Shows `name` as `shown`, or returns the reason why this is impossible.
    fn new(at: &Path, name: &str) -> Result<Hangable, String> {
        let missing = ["nbdkit", "nbdfuse", "umount"]
            .into_iter()
            .find(|name| testkit::tool(name).is_none());
        if let Some(missing) = missing {
            return Err(format!("{missing} is not installed"));
        }
        if File::options().write(true).open("/dev/fuse").is_err() {
            return Err("/dev/fuse cannot be opened for writing".to_owned());
        }
        let (shown, ready) = (at.join("shown"), at.join("ready"));
        File::create(&shown).unwrap();
        let child = Command::new("nbdfuse")
            .arg("-P")
            .args([&ready, &shown])
            .args(["[", "nbdkit", "--exit-with-parent", "file"])
            .arg(at.join(name))
            .arg("]")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut shown = Hangable(child, shown);
        let begun = Instant::now();
        while !ready.exists() {
            assert!(shown.0.try_wait().unwrap().is_none(), "nbdfuse ended");
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(5));
        }
        Ok(shown)
    }

    fn signal(&self, name: &str) {
        send(name, &self.0);
    }
}

impl Drop for Hangable {
    fn drop(&mut self) {
        self.signal("CONT");
        let umount = Command::new("umount").arg("--lazy").arg(&self.1).output();
        umount.unwrap();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(name: &str, child: &Child) {
    let line = format!("kill -{name} {}", child.id());
    let done = Command::new("/bin/sh").args(["-c", &line]).status();
    assert!(done.unwrap().success());
}

/// Stops the server while a member hangs, with and without a command of its own. Does it end soon,
/// with status 3 and a message about the member, and are its sockets and directories removed?
#[test]
fn serve_ends_while_a_member_hangs() {
    let program = env!("CARGO_BIN_EXE_traxtent");
    for with_command in [false, true] {
        let folder = TempDir::new().unwrap();
        let at = folder.path();
        files(at, &["a", "b", "c"]);
        good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
        let shown = match Hangable::new(at, "b") {
            Ok(shown) => shown,
            Err(why) => testkit::skip!("{why}"),
        };
        fs::create_dir(at.join("tmp")).unwrap();
        let mut serve = Command::new(program);
        serve.args(["volume", "serve", "--member-timeout", "90"]);
        serve.args(["--control", "orders", "--socket", "nbd", "a", "shown", "c"]);
        if with_command {
            serve.args(["--", "sleep", "100"]);
        }
        let serve = serve
            .current_dir(at)
            .env("TMPDIR", at.join("tmp"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(at.join("said")).unwrap())
            .spawn()
            .unwrap();
        let mut serve = Running(serve);
        let begun = Instant::now();
        while !at.join("orders").exists() || !at.join("nbd").exists() {
            assert!(serve.0.try_wait().unwrap().is_none(), "it ended");
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(10));
        }
        shown.signal("STOP");
        let begun = volume(at, "scrub --no-wait orders");
        assert_eq!(begun.status, 0, "{}", begun.err);
        let begun = Instant::now();
        while !volume(at, "status orders")
            .out
            .contains("has not responded for")
        {
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(10));
        }
        let begun = Instant::now();
        send("TERM", &serve.0);
        let status = loop {
            if let Some(status) = serve.0.try_wait().unwrap() {
                break status;
            }
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(10), "it runs after {took:?}");
            thread::sleep(Duration::from_millis(10));
        };
        println!(
            "command: {with_command}: ended after {:.2?}",
            begun.elapsed()
        );
        let said = fs::read_to_string(at.join("said")).unwrap();
        assert_eq!(status.code(), Some(3), "{said}");
        assert!(said.contains("member 1 has not responded for"), "{said}");
        for left in ["orders", "nbd"] {
            assert!(!at.join(left).exists(), "{left} is left: {said}");
        }
        let left = fs::read_dir(at.join("tmp")).unwrap().count();
        assert_eq!(left, 0, "folders are left: {said}");
        println!("{said}");
    }
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

/// Can all verbs that need no writes read members on a read-only file system, even without a member
/// that the others can replace? Are all other verbs refused with the reason?
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

/// After a crash, does `status` report that the volume was not stopped cleanly, `assemble` the
/// number of replayed writes, and `rebuild` that there is nothing to rebuild? Does `status` with a
/// single member describe its volume?
#[test]
fn a_crash_is_reported() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, "create --level raid-5 --chunk 64K --journal 2M a b c");
    assert!(volume(at, "status a b c").out.contains("  stopped cleanly"));
    let paths = ["a", "b", "c"].map(|name| at.join(name));
    let crashed = find(&paths, false).unwrap().open().unwrap();
    for lbn in [0, 800] {
        block_on(crashed.write(Lbn(lbn), &[7; 4096])).unwrap();
    }
    drop(crashed);
    let status = volume(at, "status a b c");
    assert!(
        status.out.contains("was not stopped cleanly"),
        "{}",
        status.out
    );
    let alone = volume(at, "status c");
    assert_eq!(alone.status, 2, "{}", alone.err);
    for says in [
        "are missing",
        "c is member 2 of 3",
        "raid-5",
        "not stopped cleanly",
    ] {
        assert!(alone.err.contains(says), "{}", alone.err);
    }
    let assembled = volume(at, "assemble a b c");
    let says = "it is recovered; writes replayed from the journal: 2";
    assert!(assembled.err.contains(says), "{}", assembled.err);
    assert!(!volume(at, "assemble a b c").err.contains("recovered"));
    let rebuilt = volume(at, "rebuild a b c");
    assert_eq!(rebuilt.status, 0, "{}", rebuilt.err);
    assert!(
        rebuilt.out.contains("nothing to rebuild"),
        "{}",
        rebuilt.out
    );
}
