//! `traxtent serve` and `traxtent fault`, as a user runs them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{prints, traxtent, traxtent_in};

/// Does a command find its drive? Is its exit status returned, is the receipt printed, and is no
/// file left behind?
#[test]
fn a_command_with_its_drive() {
    let _ = testkit::tool!("nbdinfo");
    let folder = TempDir::new().unwrap();
    let script = "nbdinfo --size \"$uri\"; echo $socket $control > names; \
                  stat --format=%a \"$socket\" \"$control\" >> names; exit 7";
    let answer = traxtent_in(
        folder.path(),
        &[
            "serve",
            "atlas10k2",
            "--receipt",
            "r.json",
            "--",
            "sh",
            "-c",
            script,
        ],
    );
    assert_eq!(answer.status, 7, "{}", answer.err);
    assert_eq!(
        answer.out, "11820444672\n",
        "standard output is the command's"
    );
    let first = answer.err.lines().next().unwrap();
    assert!(first.contains("data is in memory"), "{first}");
    assert!(answer.err.contains("verdict"), "{}", answer.err);
    let receipt: Value =
        serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    assert_eq!(receipt["drive"], "atlas10k2");
    let names = fs::read_to_string(folder.path().join("names")).unwrap();
    let mut lines = names.lines();
    for name in lines.next().unwrap().split(' ') {
        assert!(!std::path::Path::new(name).exists(), "{name} is left");
    }
    assert_eq!(lines.collect::<Vec<_>>(), ["600", "600"]);
}

/// Does a changed parameter change the drive that is served?
#[test]
fn a_changed_parameter() {
    let _ = testkit::tool!("nbdinfo");
    let preferred = |set: &str| {
        let line = ["serve", "toshiba-p300", "--set", set, "--"];
        let client = ["sh", "-c", "nbdinfo \"$uri\" | grep block_size_preferred"];
        let answer = traxtent(&[&line[..], &client].concat());
        assert_eq!(answer.status, 0, "{}", answer.err);
        answer.out
    };
    let plain = preferred("sector.physical_bytes=4096");
    assert_ne!(preferred("sector.physical_bytes=512"), plain);
}

/// Does the error for two drives with the same name show how to rename the second?
#[test]
fn drives_with_the_same_name() {
    let answer = traxtent(&["serve", "a=atlas10k2", "a=hp-c2247"]);
    assert_eq!(answer.status, 2, "{}", answer.err);
    let says = "two drives are called a; give one of them another name: NAME=hp-c2247";
    assert!(answer.err.contains(says), "{}", answer.err);
    let answer = traxtent(&["serve", "a-b=atlas10k2", "a.b=hp-c2247"]);
    assert_eq!(answer.status, 2, "{}", answer.err);
    let says = "the variables of a-b and a.b would have the same names; give one of them";
    assert!(answer.err.contains(says), "{}", answer.err);
}

/// Does a reader that closes the output before the receipt leave the run's status as it is?
#[test]
fn a_closed_output_does_not_decide() {
    let program = env!("CARGO_BIN_EXE_traxtent");
    for (run, status) in [
        ("instant --json -- sh -c 'exit 7'", "7"),
        ("atlas10k2 --json --require-trustworthy -- true", "4"),
    ] {
        let script = format!("{{ {program} serve {run}; echo $? >&2; }} 2>status | true");
        let folder = TempDir::new().unwrap();
        let ended = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .status();
        assert!(ended.unwrap().success());
        let said = fs::read_to_string(folder.path().join("status")).unwrap();
        assert_eq!(said.lines().last(), Some(status), "{run}: {said}");
    }
}

/// Does the status of a command that fails stay the same if an output fails too, which is named?
#[test]
fn a_failed_output_hides_no_failed_command() {
    let line = [
        "serve",
        "instant",
        "--receipt",
        "gone/r.json",
        "--",
        "sh",
        "-c",
    ];
    let folder = TempDir::new().unwrap();
    for (end, status) in [("true", 3), ("exit 5", 5)] {
        fs::create_dir(folder.path().join("gone")).unwrap();
        let script = format!("rm -r gone; {end}");
        let answer = traxtent_in(folder.path(), &[&line[..], &[&script]].concat());
        assert_eq!(answer.status, status, "{}", answer.err);
        assert!(answer.err.contains("gone/r.json"), "{}", answer.err);
    }
}

/// Is the receipt of an earlier run removed at the start, so that it cannot be taken for that of a
/// server that is killed? Does the receipt name the faults whose time has not come?
#[test]
fn receipts_are_of_this_run() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("r.json", "{ \"receipt\": 1, \"verdict\": \"trustworthy\" }");
    let faults = "{ at = \"0 s\", fault = \"stall\", for = \"1 ms\" }, { at = \"1 h\", fault = \"power-cut\" }";
    write("s.toml", &format!("faults = [ {faults} ]\n"));
    let options = ["--scenario", "s.toml", "--receipt", "r.json"];
    let command = ["--", "sh", "-c", "sleep 0.1; test ! -e r.json"];
    let line = [&["serve", "atlas10k2"], &options[..], &command].concat();
    let answer = traxtent_in(folder.path(), &line);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let says = "faults      1 scheduled fault did not occur, because the run ended first; the earliest at 3600000.000 ms: power-cut";
    assert!(answer.err.contains(says), "{}", answer.err);
    let receipt = fs::read(folder.path().join("r.json")).unwrap();
    let receipt: Value = serde_json::from_slice(&receipt).unwrap();
    assert_eq!(
        receipt["faults"].as_array().map(Vec::len),
        Some(1),
        "{receipt}"
    );
    let pending = receipt["pending_faults"][0].as_str().unwrap();
    assert!(
        pending.starts_with("3600000.000 ms: power-cut"),
        "{receipt}"
    );
}

/// With `--require-trustworthy`, is the exit status 4 after late responses or without any request,
/// with the reasons named once, and is a command's own failure kept? At speed 1000, a drive has
/// response times of a few microseconds, which no machine delivers on time. A drive without
/// mechanics completes at once, so nothing can be late.
#[test]
fn untrustworthy_runs_can_fail() {
    let _ = testkit::tool!("qemu-io");
    let folder = TempDir::new().unwrap();
    let status = |drive: &str, end: &str| {
        let script = format!("qemu-io -f raw -c 'read 1M 4k' \"$uri\" >&2; {end}");
        let options = ["--require-trustworthy", "--speed=1000", "--transport=off"];
        let command = ["--", "sh", "-c", &script];
        let answer = traxtent_in(
            folder.path(),
            &[&["serve", drive], &options[..], &command].concat(),
        );
        (answer.status, answer.err)
    };
    let (late, err) = status("atlas10k2", "true");
    assert_eq!(late, 4, "{err}");
    // The receipt names the reasons, and the error does not repeat them.
    let verdict = "traxtent: note: verdict     not trustworthy: ";
    assert!(err.lines().any(|line| line.starts_with(verdict)), "{err}");
    assert_eq!(
        err.lines().last().unwrap(),
        "traxtent: atlas10k2: the run is not trustworthy; its receipt above names the reasons"
    );
    assert_eq!(status("atlas10k2", "exit 7").0, 7);
    let (not_judged, err) = status("instant", "true");
    assert_eq!(not_judged, 0, "{err}");
    // A run without requests says nothing about a machine.
    let unused = traxtent(&["serve", "atlas10k2", "--require-trustworthy", "--", "true"]);
    assert_eq!(unused.status, 4, "{}", unused.err);
    let last = unused.err.lines().last().unwrap();
    assert_eq!(
        last,
        "traxtent: atlas10k2: there is nothing to judge: no request was completed"
    );
    // Every such drive is named.
    let two = [
        "serve",
        "a=atlas10k2",
        "b=atlas10k2",
        "--require-trustworthy",
        "--",
        "true",
    ];
    let unused = traxtent(&two);
    assert_eq!(unused.status, 4, "{}", unused.err);
    for name in ["a", "b"] {
        let line = format!("traxtent: {name}: there is nothing to judge: no request was completed");
        assert!(
            unused.err.lines().any(|found| found == line),
            "{}",
            unused.err
        );
    }
}

/// Does a signal to the server end its command and remove its directory, SIGHUP as well as SIGTERM?
/// Does a server that ignores SIGHUP, as under `nohup`, continue?
#[test]
fn a_signal_ends_the_command() {
    for (signal, before, status) in [
        ("TERM", "", Some(143)),
        ("HUP", "", Some(143)),
        ("HUP", "trap '' HUP;", Some(0)),
    ] {
        let folder = TempDir::new().unwrap();
        let names = folder.path().join("names");
        let command = "echo $$ $socket > new; mv new names; exec sleep $time";
        let script = format!("{before} exec \"$0\" serve instant -- sh -c '{command}'");
        let mut child = with_signals("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_traxtent")])
            .env("time", if status == Some(0) { "0.3" } else { "60" })
            .current_dir(folder.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while !names.exists() {
            assert!(begun.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        send(signal, &child);
        assert_eq!(child.wait().unwrap().code(), status, "{before} {signal}");
        let names = fs::read_to_string(names).unwrap();
        let (process, socket) = names.trim().split_once(' ').unwrap();
        let socket = std::path::Path::new(socket);
        assert!(!socket.parent().unwrap().exists(), "{signal}: {names}");
        let process = std::path::Path::new("/proc").join(process);
        assert!(!process.exists(), "{signal}: the command still runs");
    }
}

/// Without a command, does the server of a volume print how to attach to it, with the port that was
/// chosen? Does it exit with status 0 after SIGTERM?
#[test]
fn a_volume_prints_how_to_attach_it() {
    let folder = TempDir::new().unwrap();
    for member in ["a", "b"] {
        let file = fs::File::create(folder.path().join(member)).unwrap();
        file.set_len(8 << 20).unwrap();
    }
    let create = "volume create --level 1 --chunk 64K --journal 2M a b";
    let create: Vec<&str> = create.split(' ').collect();
    assert_eq!(traxtent_in(folder.path(), &create).status, 0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_traxtent"))
        .args(["volume", "serve", "--port", "0", "a", "b"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut table = Vec::new();
    for line in lines.map_while(Result::ok) {
        let is_last = line.starts_with("stop ");
        table.push(line);
        if is_last {
            break;
        }
    }
    send("TERM", &child);
    assert!(child.wait().unwrap().success());
    let of = |name: &str| {
        let line = table.iter().find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name}: {table:?}"))
    };
    assert_eq!(table[0], "volume: data is in a, b");
    assert!(of("volume  ").ends_with("sectors of 512 bytes (4096 physical)"));
    assert!(of("uri ").contains("nbd://127.0.0.1:"));
    assert!(!of("uri ").contains(":0/"), "{table:?}");
    assert!(of("control ").ends_with("/control"));
    assert!(of("also ").contains("traxtent doctor"));
    let is_here = testkit::tool("fio").is_some();
    assert_eq!(table.iter().any(|line| line.starts_with("fio ")), is_here);
}

/// Does a command that Ctrl-C interrupts die of the signal, so that a shell's loop ends too?
#[test]
fn interrupted_commands_die_of_the_signal() {
    let folder = TempDir::new().unwrap();
    for member in ["a", "b"] {
        let file = fs::File::create(folder.path().join(member)).unwrap();
        file.set_len(64 << 20).unwrap();
    }
    let create = "volume create --level 1 --chunk 64K --journal 2M a b";
    let create: Vec<&str> = create.split(' ').collect();
    assert_eq!(traxtent_in(folder.path(), &create).status, 0);
    for (line, said) in [
        (
            "volume scrub --rate 64K a b",
            "traxtent: interrupted; run the command again to resume\n",
        ),
        ("sim generic-20tb random,count=100000000", ""),
    ] {
        let child = with_signals(env!("CARGO_BIN_EXE_traxtent"))
            .args(line.split(' '))
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(300));
        send("INT", &child);
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(2), "{line}: {err}");
        assert!(err.ends_with(said), "{line}: {err}");
    }
}

/// Returns a command that does not ignore signals, even if the tests run in the background.
fn with_signals(program: &str) -> Command {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP,INT,TERM", program]);
    command
}

fn send(signal: &str, child: &Child) {
    let kill = format!("kill -{signal} {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status();
    assert!(sent.unwrap().success(), "{kill}");
}

/// Do a drive and a volume report an order that is meant for the other kind of server?
#[test]
fn orders_for_the_other_kind_of_server() {
    let folder = TempDir::new().unwrap();
    let err = |serve: &[&str], order: &str| {
        let line = format!("{} {order}", env!("CARGO_BIN_EXE_traxtent"));
        let options = ["--control", "socket", "--", "sh", "-c", &line];
        traxtent_in(folder.path(), &[serve, &options].concat()).err
    };
    let drive = err(&["serve", "instant"], "volume status socket");
    assert!(drive.contains("the control socket of a drive"), "{drive}");
    for member in ["a", "b"] {
        let file = fs::File::create(folder.path().join(member)).unwrap();
        file.set_len(256 << 20).unwrap();
    }
    let create = "volume create --level 1 --chunk 64K a b";
    let create: Vec<&str> = create.split(' ').collect();
    assert_eq!(traxtent_in(folder.path(), &create).status, 0);
    let volume = err(&["volume", "serve", "a", "b"], "fault socket power-cut");
    assert!(
        volume.contains("the control socket of a volume"),
        "{volume}"
    );
}

/// Does a fio workload leave a log that can be replayed, and a receipt as JSON, with the user's own
/// profile?
#[test]
fn a_workload_with_log() {
    let _ = testkit::tool!("fio");
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("own.toml"),
        prints(&["drives", "show", "atlas10k2"]),
    )
    .unwrap();
    let drive = "own.toml";
    let fio = "fio --name=t --ioengine=nbd --uri=\"$uri\" --rw=randrw --bs=4k --iodepth=4 --size=1m \
               --io_size=256k --output=fio.txt";
    let answer = traxtent_in(
        folder.path(),
        &[
            "serve",
            drive,
            "--speed",
            "20",
            "--log",
            "log.csv.zst",
            "--json",
            "--",
            "sh",
            "-c",
            fio,
        ],
    );
    assert_eq!(answer.status, 0, "{}", answer.err);
    let receipt: Value = serde_json::from_str(&answer.out).unwrap();
    let requests = receipt["requests"].as_u64().unwrap();
    assert!(requests >= 64, "{requests}");
    let replayed = traxtent_in(folder.path(), &["sim", drive, "log.csv.zst", "--json"]);
    let replayed: Value = serde_json::from_str(&replayed.out).unwrap();
    assert_eq!(replayed["requests"], requests);
    let (ours, served) = (&replayed["response_ms"], &receipt["modelled_ms"]);
    for (ours, served) in [
        (&ours["p50"], &served["p50"]),
        (&ours["max"], &served["max"]),
    ] {
        let (ours, served) = (ours.as_f64().unwrap(), served.as_f64().unwrap());
        assert!((ours - served).abs() < 1e-9, "{ours} {served}");
    }
}

/// Is a fault carried out and listed in the receipt, and an unknown one refused before the server
/// is contacted?
#[test]
fn faults() {
    let program = env!("CARGO_BIN_EXE_traxtent");
    let script = format!(
        "{program} fault $control power-cut --seed 7 && \
         {program} fault $control latent-error --lbn=8 sectors=2 && \
         ! {program} fault $control grown-defect --lbn 99999999999 2> /dev/null"
    );
    let answer = traxtent(&["serve", "atlas10k2", "--", "sh", "-c", &script]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let lines: Vec<&str> = answer.out.lines().collect();
    assert!(lines[0].starts_with("power-cut, seed 7"), "{lines:?}");
    assert_eq!(lines[1], "latent-error,lbn=8,sectors=2,revolutions=0");
    assert!(
        answer.err.contains("faults      2; the last at "),
        "{}",
        answer.err
    );
    for (arguments, what) in [
        (&["no-socket", "melt"][..], "melt"),
        (&["no-socket", "stall"], "for"),
        (&["no-socket", "stall", "--for"], "--for"),
        (
            &["no-socket", "stall", "--for", "3", "s"],
            "times as one word",
        ),
    ] {
        let answer = traxtent(&[&["fault"], arguments].concat());
        assert_eq!(answer.status, 2, "{}", answer.err);
        assert!(answer.err.contains(what), "{}", answer.err);
    }
    let unserved = traxtent(&["fault", "no-socket", "stall", "--for", "1s"]);
    assert_eq!(unserved.status, 3, "{}", unserved.err);
}

/// Does the receipt name a scenario's fault that could not be injected? With `--require-faults`, is
/// the exit status 4 then, and if the run ends before a fault?
#[test]
fn failed_faults() {
    let folder = TempDir::new().unwrap();
    let defect = "{ at = \"0 s\", fault = \"grown-defect\", lbn = 8 }";
    let scenario = format!("faults = [{defect}, {defect}]");
    fs::write(folder.path().join("s.toml"), scenario).unwrap();
    let line = [
        "serve",
        "atlas10k2",
        "--scenario",
        "s.toml",
        "--",
        "sleep",
        "0.2",
    ];
    let answer = traxtent_in(folder.path(), &line);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let mut faults = answer.err.lines().filter(|line| line.contains(" faults "));
    let count = faults.next().unwrap();
    assert!(count.contains("faults      2; the last at "), "{count}");
    let failed = faults.next().unwrap();
    assert!(
        failed.contains("faults      1 fault failed; the last at "),
        "{failed}"
    );
    assert!(failed.ends_with("it is already on a spare"), "{failed}");
    let required = |at: &str, command: &str| {
        let scenario = format!("faults = [{{ at = \"{at}\", fault = \"grown-defect\", lbn = 8 }}]");
        fs::write(folder.path().join("t.toml"), scenario).unwrap();
        let options = ["serve", "atlas10k2", "--scenario", "t.toml"];
        let line = [
            &options[..],
            &["--require-faults", "--", "sh", "-c", command],
        ]
        .concat();
        traxtent_in(folder.path(), &line)
    };
    let answer = traxtent_in(
        folder.path(),
        &[&line[..4], &["--require-faults"], &line[4..]].concat(),
    );
    let says = "a fault did not occur, or failed: 0.000 ms: grown-defect";
    assert_eq!(answer.status, 4, "{}", answer.err);
    assert!(answer.err.contains(says), "{}", answer.err);
    let early = required("1 h", "true");
    let says = "a fault did not occur, or failed: 3600000.000 ms: grown-defect";
    assert_eq!(early.status, 4, "{}", early.err);
    assert!(early.err.contains(says), "{}", early.err);
    assert_eq!(required("1 h", "exit 7").status, 7);
    assert_eq!(required("0 s", "sleep 0.2").status, 0);
}

/// If Ctrl-C interrupts the server and its command, can the command clean up, and does it determine
/// the exit status? Is a command that goes on terminated?
#[test]
fn an_interrupted_command_cleans_up() {
    use std::os::unix::process::CommandExt;
    let run = |script: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_traxtent"));
        command.args(["serve", "instant", "--", "sh", "-c", script]);
        command
            .process_group(0)
            .stdout(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        std::io::BufRead::read_line(&mut out, &mut line).unwrap();
        let group = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process_group(group, rustix::process::Signal::INT).unwrap();
        std::io::Read::read_to_string(&mut out, &mut line).unwrap();
        (child.wait().unwrap().code(), line)
    };
    let cleans = "trap 'sleep 0.5; kill $!; echo cleaned; exit 9' INT; echo ready; sleep 30 & wait";
    assert_eq!(run(cleans), (Some(9), "ready\ncleaned\n".to_owned()));
    let goes_on = "trap '' INT; echo ready; exec sleep 30";
    assert_eq!(run(goes_on), (Some(143), "ready\n".to_owned()));
}

/// If the storage below the drive fails, is the exit status 4 with `--require-trustworthy`, whether
/// or not it still fails at the end?
#[test]
fn failed_storage_is_not_trustworthy() {
    let folder = TempDir::new().unwrap();
    let small = folder.path().join("small");
    fs::create_dir(&small).unwrap();
    let mut mount = std::process::Command::new("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=1m", "none"])
        .arg(&small);
    if !mount.output().is_ok_and(|mounted| mounted.status.success()) {
        testkit::skip!("no file system can be mounted");
    }
    let write = "qemu-io -f raw -c 'write 0 4M' \"$uri\"; mount -o remount,size=9m small";
    let options = ["--file", "small/d", "--require-trustworthy", "--speed=0.01"];
    let line = [
        &["serve", "instant"],
        &options[..],
        &["--", "sh", "-c", write],
    ]
    .concat();
    let answer = traxtent_in(folder.path(), &line);
    let _ = std::process::Command::new("umount").arg(&small).status();
    assert_eq!(answer.status, 4, "{}", answer.err);
    let says = "failed in the storage below the drive: ";
    assert!(answer.err.contains(says), "{}", answer.err);
}

/// If a server cannot start, do new files for the data and the log vanish, and old ones stay?
#[test]
fn a_failed_start_leaves_no_files() {
    let folder = TempDir::new().unwrap();
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = busy.local_addr().unwrap().port().to_string();
    let serve = || {
        let options = ["--file", "data", "--log", "log.csv", "--port", &port];
        let answer = traxtent_in(
            folder.path(),
            &[&["serve", "instant"], &options[..]].concat(),
        );
        assert_eq!(answer.status, 3, "{}", answer.err);
        folder.path().read_dir().unwrap().count()
    };
    assert_eq!(serve(), 0);
    fs::write(folder.path().join("data"), vec![7; 512]).unwrap();
    assert_eq!(serve(), 1);
}

/// Does a server of several drives leave the `--fuse` directory empty, and does the next server
/// remove the directories that a killed server has left there?
#[test]
fn directories_of_several_drives() {
    if fs::File::options().write(true).open("/dev/fuse").is_err() {
        testkit::skip!("/dev/fuse cannot be opened for writing");
    }
    let folder = TempDir::new().unwrap();
    let serve = |command| {
        let line = ["serve", "a=instant", "b=instant", "--fuse", "drive", "--"];
        traxtent_in(folder.path(), &[&line[..], &["sh", "-c", command]].concat())
    };
    let is_empty = || folder.path().join("drive").read_dir().unwrap().count() == 0;
    assert_eq!(serve("test -s \"$disk_b\"").status, 0);
    assert!(is_empty());
    serve("kill -KILL $PPID");
    let answer = serve("test -s \"$disk_b\"");
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(answer.err.contains("removed what a killed server had left"));
    assert!(is_empty());
}

/// Are invalid command lines and unusable files refused with a message and the right status?
#[test]
fn refused() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("short.img"), [0; 512]).unwrap();
    fs::write(
        folder.path().join("melt.toml"),
        "faults = [{ at = \"1 s\", fault = \"melt\" }]",
    )
    .unwrap();
    fs::write(
        folder.path().join("cut.toml"),
        "faults = [{ at = \"1 s\", fault = \"power-cut\" }]",
    )
    .unwrap();
    let long = "s".repeat(108);
    for (arguments, status, what) in [
        (&["atlas"][..], 2, "did you mean"),
        (&["atlas10k2", "--speed", "0"], 2, "--speed"),
        (&["atlas10k2", "--listen", "0.0.0.0"], 2, "--port"),
        (&["atlas10k2", "--scenario", "melt.toml"], 2, "melt"),
        (
            &["atlas10k2", "--file", "short.img"],
            3,
            "512 bytes are too few; the drive needs 11820444672",
        ),
        (&["atlas10k2", "--log", "no/log.csv"], 3, "request log"),
        (
            &["atlas10k2", "--set", "mechanics.rmp=1"],
            2,
            "did you mean mechanics.rpm",
        ),
        (
            &["atlas10k2", "--set", "mechanics.rpm=5400,7200"],
            2,
            "accepts several values",
        ),
        (
            &["./cut.toml"],
            2,
            "./cut.toml: is a scenario of faults, not a drive; use it with `traxtent serve DRIVE --scenario FILE`",
        ),
        (
            &["atlas10k2", "--socket", "cut.toml"],
            3,
            "cut.toml: the path exists; remove it if nothing uses it, or name another with --socket",
        ),
        (
            &["atlas10k2", "--control", "cut.toml"],
            3,
            "remove it if nothing uses it, or name another with --control",
        ),
        (
            &["atlas10k2", "--", "no-such-program"],
            3,
            "cannot run the command no-such-program: No such file or directory",
        ),
        (
            &["atlas10k2", "--", "sleep 1"],
            3,
            "; for a line of a shell, use -- sh -c 'LINE'",
        ),
        (&["atlas10k2", "--"], 2, "--: no command follows"),
        (
            &["atlas10k2", "sleep"],
            2,
            "; to run a command, write -- before it: -- sleep",
        ),
        (&["atlas10k2", "--control", &long], 3, "at most 107 bytes"),
        (&["atlas10k2", "--socket", &long], 3, "at most 107 bytes"),
        (
            &["atlas10k2", "--file", "new.img", "--socket", "no/s"],
            3,
            "no/s: cannot be created: there is no directory no",
        ),
    ] {
        let arguments = [&["serve"], arguments].concat();
        let answer = traxtent_in(folder.path(), &arguments);
        assert_eq!(answer.status, status, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(what), "{arguments:?}: {}", answer.err);
    }
    assert!(!folder.path().join("new.img").exists());
    let inner = format!(
        "{} serve instant --file one.img -- true 2> said; echo $? >> said",
        env!("CARGO_BIN_EXE_traxtent")
    );
    let arguments = [
        "serve", "instant", "--file", "one.img", "--", "sh", "-c", &inner,
    ];
    let answer = traxtent_in(folder.path(), &arguments);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    assert!(said.contains(": locked by another process"), "{said}");
    assert!(said.ends_with("\n3\n"), "{said}");
}

/// Do the drives without a file share the memory that a single drive may take?
#[test]
fn drives_share_the_memory() {
    let folder = TempDir::new().unwrap();
    let limits = |line: &str| -> Vec<u64> {
        let line: Vec<&str> = line.split(' ').collect();
        let answer = traxtent_in(folder.path(), &line);
        assert_eq!(answer.status, 0, "{}", answer.err);
        let limit = |line: &str| {
            line.split_once("at most ")?
                .1
                .split(' ')
                .next()?
                .parse()
                .ok()
        };
        answer.err.lines().filter_map(limit).collect()
    };
    let alone = limits("serve instant -- true");
    let shared = limits("serve a=instant b=instant c=instant d=instant --file d=d.img -- true");
    assert_eq!((alone.len(), shared.len()), (1, 3));
    // The available memory changes between the runs.
    let sum: u64 = shared.iter().sum();
    assert!(sum < 2 * alone[0], "{shared:?} {alone:?}");
}

/// Does a server without a command print commands for the installed clients, create its socket
/// with mode 0600, and end with a receipt on a signal? With `--json`, is the receipt all that it
/// prints on standard output?
#[test]
fn until_stopped() {
    let (out, err) = served_until_stopped(&[]);
    assert!(out.contains("verdict"), "{out}");
    assert!(!err.contains("nbd+unix"), "{err}");
    check_addresses(&out);
    let (out, err) = served_until_stopped(&["--json"]);
    let receipt: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(receipt["verdict"], "nothing-to-judge");
    check_addresses(&err);
}

/// Serves a drive until an interrupt; returns standard output and standard error.
fn served_until_stopped(options: &[&str]) -> (String, String) {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("socket");
    let child = Command::new(env!("CARGO_BIN_EXE_traxtent"))
        .args(["serve", "atlas10k2", "--socket"])
        .arg(&socket)
        .args(options)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let mode = || fs::metadata(&socket).map(|meta| meta.permissions().mode() & 0o777);
    while !matches!(mode(), Ok(0o600)) {
        assert!(begun.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let stop = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
        .status();
    assert!(stop.unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    assert!(!socket.exists());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(ended.stdout), text(ended.stderr))
}

/// Checks that the addresses of a drive, and the commands that attach it, have been printed.
fn check_addresses(out: &str) {
    for what in ["data is in memory", "nbd+unix", "traxtent doctor"] {
        assert!(out.contains(what), "{what}: {out}");
    }
    for (line, program) in [("fio ", "fio"), ("qemu ", "qemu-system-x86_64")] {
        let is_here = testkit::tool(program).is_some();
        assert_eq!(
            out.lines().any(|printed| printed.starts_with(line)),
            is_here,
            "{out}"
        );
    }
}
