//! `traxtent volume serve` on files: orders, failures and file systems while a volume is served, a
//! member that hangs, and volumes whose server ended or crashed.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use tempfile::TempDir;
use traxtent_server::volume::find;
use traxtent_units::Lbn;

use crate::command::traxtent_in;
use crate::volume::{files, good, map_of, volume};

/// A child process that is killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Is a member of a RAID-1 that fails during the initial sync replaced and rebuilt at once, instead
/// of after the sync?
#[test]
fn a_rebuild_ends_the_sync_of_mirrors() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, "create --level 1 --chunk 64K --journal 2M a b");
    let program = env!("CARGO_BIN_EXE_traxtent");
    let orders = ["fail 1", "replace 1 --with c", "rebuild"];
    let script = orders.map(|order| format!("{program} volume {order} \"$control\""));
    let script = script.join(" && ");
    // The sync would take two minutes.
    let serve = ["volume", "serve", "--sync-rate", "64K", "a", "b", "--"];
    let served = traxtent_in(at, &[&serve[..], &["sh", "-c", &script]].concat());
    assert_eq!(served.status, 0, "{}", served.err);
    let status = good(at, "status --json a c");
    assert_eq!(status["synced_stripes"], status["stripes"], "{status}");
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
    let member = fs::canonicalize(at).unwrap().join("b");
    let message = format!(
        "traxtent: warning: member 1 (`{}`) has failed: the file has become shorter",
        member.display()
    );
    assert_eq!(said(&message), 1, "{}", answer.err);
    assert_eq!(
        said("warning: the volume is read-only, and only undamaged data can be read"),
        1,
        "{}",
        answer.err
    );
}

/// Is a member's file that is deleted while the volume is served named by `status`, and by a
/// warning at the end, but not if the member was marked as failed before?
#[test]
fn a_deleted_member_is_reported() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c"]);
    good(at, "create --level raid-1 --journal 2M a b c");
    let status = format!(
        "{} volume status \"$control\"",
        env!("CARGO_BIN_EXE_traxtent")
    );
    let fail = status.replace("status", "fail 2");
    let script = format!("{fail} >fail; rm b c; {status} >status; true");
    let serve = ["volume", "serve", "a", "b", "c", "--", "sh", "-c", &script];
    let served = traxtent_in(at, &serve);
    assert_eq!(served.status, 0, "{}", served.err);
    let status = fs::read_to_string(at.join("status")).unwrap();
    let says = "b, the file has been deleted, and its data is lost when the server ends; ";
    assert!(status.contains(says), "{status}");
    assert_eq!(status.matches("has been deleted").count(), 1, "{status}");
    let warnings = served.err.matches("its file has been deleted").count();
    assert_eq!(warnings, 1, "{}", served.err);
}

/// Are the printed names of addresses and devices those of the variables that the help lists?
#[test]
fn printed_names_are_those_of_variables() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b"]);
    good(at, "create --level raid-0 --chunk 64K a b");
    let help = volume(at, "serve --help").out;
    for name in ["uri", "socket", "port", "control", "disk", "device", "ublk"] {
        assert!(help.contains(&format!("${name}")), "{name}: {help}");
    }
    if File::options().write(true).open("/dev/fuse").is_err() {
        testkit::skip!("/dev/fuse cannot be opened for writing");
    }
    fs::create_dir(at.join("shown")).unwrap();
    let script = "echo \"$disk\"; test -S \"$socket\" -a -S \"$control\" -a -n \"$uri\"";
    let line = ["volume", "serve", "--fuse", "shown", "a", "b"];
    let answer = traxtent_in(at, &[&line[..], &["--", "sh", "-c", script]].concat());
    assert_eq!(answer.status, 0, "{}", answer.err);
    let disk = answer.out.trim().to_owned();
    let child = Command::new(env!("CARGO_BIN_EXE_traxtent"))
        .args(line)
        .current_dir(at)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut running = Running(child);
    let out = BufReader::new(running.0.stdout.take().unwrap());
    let lines = out.lines().map(Result::unwrap);
    let printed: Vec<String> = lines
        .take_while(|line| !line.starts_with("stop "))
        .collect();
    send("TERM", &running.0);
    running.0.wait().unwrap();
    assert!(
        printed.contains(&format!("disk        {disk}")),
        "{printed:?}"
    );
    assert!(
        !printed.iter().any(|line| line.starts_with("file ")),
        "{printed:?}"
    );
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
         {program} volume rebuild --json $control > followed 2> follows; true
         while {program} volume status --json $control | grep -q '\"under_way\": *true'; do sleep 0.1; done
         v rebuild --json $control > rebuilt
         v status --json $control > whole
         v assemble $control 2> sockets
         v map $control 2>> sockets
         v destroy --force $control 2>> sockets
         v serve $control -- true 2>> sockets
         v repair-superblocks --force $control 2> forced"
    );
    fs::write(at.join("script"), script).unwrap();
    let sh = sh.display().to_string();
    let served = volume(at, &format!("serve a b c -- {sh} script"));
    assert_eq!(served.status, 0, "{}", served.err);
    let logged: Vec<&str> = served
        .err
        .lines()
        .filter(|line| line.contains("order"))
        .collect();
    let with = at.join("d");
    for (index, line) in [
        "note: order: scrub",
        "note: order: fail 1",
        "note: order refused: scrub: member 1 has failed; ",
        "note: order refused: fail 0: member 0 cannot be marked as failed",
        &format!("note: order: replace 1 --with {}", with.display()),
        "note: order: rebuild",
    ]
    .iter()
    .enumerate()
    {
        let logged = logged.get(index).copied().unwrap_or_default();
        assert!(
            logged.starts_with(&format!("traxtent: {line}")),
            "{line}: {}",
            served.err
        );
    }
    let complete = "note: rebuild: complete; all members are active";
    assert_eq!(served.err.matches(complete).count(), 1, "{}", served.err);
    // The order itself is logged, and nothing has failed.
    assert!(!served.err.contains("warning: "), "{}", served.err);
    let clean = served.err.matches("note: scrub: complete; ").count();
    assert_eq!(clean, 1, "{}", served.err);
    assert!(served.err.contains(" stripes read, no differences\n"));
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
        text("degraded").contains("`replace` and `rebuild` it first"),
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
        text("busy").contains("member 1 is not rebuilt yet"),
        "{}",
        text("busy")
    );
    assert!(
        text("also").contains("a rebuild is already running"),
        "{}",
        text("also")
    );
    assert!(
        text("follows").contains("note: a rebuild is already running; this command follows it"),
        "{}",
        text("follows")
    );
    assert_eq!(
        (&parsed("followed")["work"], &parsed("followed")["done"]),
        (&"rebuild".into(), &true.into())
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
    let says = "is a control socket; this command needs the members, so stop the server first\n";
    assert_eq!(
        text("sockets").matches(says).count(),
        4,
        "{}",
        text("sockets")
    );
    assert!(text("forced").contains("--force: "), "{}", text("forced"));
    let statuses = text("log");
    let statuses: Vec<&str> = statuses.lines().collect();
    let expected = [3, 0, 0, 0, 2, 1, 2, 0, 0, 2, 1, 0, 0, 2, 2, 2, 2, 2];
    let expected = expected.map(|status| format!("status {status}"));
    assert_eq!(statuses, expected);
    good(at, "assemble a d c");
}

/// If `plan stack` made a file system from the map of a volume with tracks as chunks, does `check`
/// find it aligned on the volume, and unaligned on a drive with other tracks?
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
        // The kernel keeps partitions that `partx` added.
        let _ = Command::new("partx").args(["--delete", &self.0]).output();
        let _ = Command::new("losetup").args(["--detach", &self.0]).output();
    }
}

/// Is a rate without its unit refused as too low? Is a control socket without a server reported?
/// Does the next server remove such sockets, but neither other files nor sockets in use?
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

/// A running nbdfuse, which shows a file. A signal stops it, so that the file does not respond.
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
            assert!(
                took < Duration::from_secs(10),
                "it still runs after {took:?}"
            );
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
    let crash = || {
        let crashed = find(&paths, false).unwrap().open().unwrap();
        for lbn in [0, 800] {
            block_on(crashed.write(Lbn(lbn), &[7; 4096])).unwrap();
        }
    };
    crash();
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
    // Reading needs the recovery too, but must not write.
    let content = || paths.each_ref().map(|path| std::fs::read(path).unwrap());
    let before = content();
    let refused = volume(at, "serve --read-only a b c -- true");
    assert_eq!(refused.status, 2, "{}", refused.err);
    assert!(refused.err.contains("run `assemble`"), "{}", refused.err);
    assert!(content() == before, "--read-only wrote to a member");
    let assembled = volume(at, "assemble a b c");
    let says = "has been recovered; writes replayed from the journal: 2";
    assert!(assembled.err.contains(says), "{}", assembled.err);
    assert!(!volume(at, "assemble a b c").err.contains("recovered"));
    crash();
    let scrubbed = volume(at, "scrub a b c");
    assert!(scrubbed.err.contains(says), "{}", scrubbed.err);
    let rebuilt = volume(at, "rebuild a b c");
    assert_eq!(rebuilt.status, 0, "{}", rebuilt.err);
    assert!(
        rebuilt.out.contains("nothing to rebuild"),
        "{}",
        rebuilt.out
    );
}
