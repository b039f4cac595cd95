//! `traxtent check`.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use testkit::tool;

use crate::command::{prints, traxtent, traxtent_in};

/// Returns an image with partitions of 4 MiB at these sectors, made by sfdisk, or `None` if sfdisk
/// is not installed.
fn image(folder: &TempDir, starts: &[u64]) -> Option<PathBuf> {
    use std::io::Write;
    let sfdisk = testkit::tool("sfdisk")?;
    let path = folder.path().join("disk.img");
    File::create(&path).unwrap().set_len(64 << 20).unwrap();
    let mut script = "label: gpt\nfirst-lba: 34\n".to_owned();
    for start in starts {
        script += &format!("start={start},size=8192\n");
    }
    let mut child = Command::new(sfdisk)
        .arg("-q")
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(script.as_bytes())
        .unwrap();
    assert!(child.wait().unwrap().success());
    Some(path)
}

/// Is the exit status as documented for severities, `--fail-on`, `--ignore`, invalid options and
/// files that cannot be read? Does `--quiet` print nothing?
#[test]
fn exit_status() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    let path = image(&folder, &[34, 16_384]).unwrap();
    let path = path.to_str().unwrap();
    let status = |options: &[&str]| traxtent(&[&["check", path], options].concat()).status;
    assert_eq!(status(&[]), 1);
    assert_eq!(status(&["--physical-sector", "512"]), 0);
    assert_eq!(status(&["--ignore", "partition-start"]), 0);
    assert_eq!(
        status(&["--ignore", "partition-start", "--fail-on", "info"]),
        1
    );
    assert_eq!(status(&["--physical-sector", "513"]), 2);
    assert_eq!(status(&["--ignore", "partition"]), 2);
    assert_eq!(
        status(&["--physical-sector", "512", "--logical-sector", "4k"]),
        2
    );
    // A chunk that does not fit physical sectors would call for moves that misalign a partition.
    let chunk = traxtent(&["check", path, "--chunk", "64KB", "--stripe", "192KB"]);
    assert_eq!(chunk.status, 2, "{}", chunk.out);
    let says = "--chunk: 64000 bytes are not a multiple of a physical sector of 4096";
    assert!(chunk.err.contains(says), "{}", chunk.err);
    assert!(chunk.err.contains("K counts 1024"), "{}", chunk.err);
    let quiet = traxtent(&["check", path, "--quiet"]);
    assert_eq!(
        (quiet.status, quiet.out.as_str(), quiet.err.as_str()),
        (1, "", "")
    );
    let absent = traxtent(&["check", "no-such.img"]);
    assert_eq!(absent.status, 3);
    assert!(absent.err.contains("no-such.img"), "{}", absent.err);
    assert_eq!(
        traxtent(&["check", folder.path().to_str().unwrap()]).status,
        3
    );
}

/// Is a target that is given twice a usage error, even under another name?
#[test]
fn given_twice() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("disk.img");
    File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let link = folder.path().join("link.img");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let other = folder.path().join("other.img");
    fs::copy(&path, &other).unwrap();
    let answer = |names: &[&str]| traxtent_in(folder.path(), &[&["check"], names].concat());
    assert_eq!(answer(&["disk.img", "other.img"]).status, 0);
    for second in ["disk.img", "./disk.img", "link.img"] {
        let answer = answer(&["disk.img", second]);
        assert_eq!(answer.status, 2, "{}", answer.err);
        let says = format!("disk.img and {second} are the same target; name it once");
        assert!(answer.err.contains(&says), "{}", answer.err);
    }
}

/// Do the printed commands fix an image whose name looks like an option?
#[test]
fn name_like_an_option() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    let path = image(&folder, &[34]).unwrap();
    fs::rename(path, folder.path().join("-n.img")).unwrap();
    let check = || traxtent_in(folder.path(), &["check", "--json", "--", "-n.img"]);
    let report: serde_json::Value = serde_json::from_str(&check().out).unwrap();
    let command = report["findings"][0]["fix"]["commands"][0]
        .as_str()
        .unwrap();
    assert!(command.ends_with(" ./-n.img"), "{command}");
    let path = "PATH=$PATH:/usr/sbin:/sbin";
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{path}; {command}")]);
    let output = shell.current_dir(&folder).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
    assert_eq!(check().status, 0);
}

/// Does an image that ends before its partition give a fault of the table, and no advice to repair
/// the content of the partition? Can a large sparse image be examined?
#[test]
fn damaged_and_large() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    let path = image(&folder, &[2048]).unwrap();
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let answer = traxtent(&["check", path.to_str().unwrap()]);
    assert_eq!(answer.status, 1);
    assert!(answer.err.contains("partition-overlap"), "{}", answer.err);
    let says = "partition 1 is not examined: it ends at byte ";
    assert!(answer.out.contains(says), "{}", answer.out);
    assert!(answer.out.contains("larger drive"), "{}", answer.out);
    assert!(!answer.out.contains("e2fsck"), "{}", answer.out);
    let large = folder.path().join("large.img");
    File::create(&large).unwrap().set_len(4 << 40).unwrap();
    assert_eq!(traxtent(&["check", large.to_str().unwrap()]).status, 0);
}

/// Does the result depend on the named drive and its tracks? Are track crossings only notes, which
/// do not fail the check?
#[test]
fn for_a_drive() {
    let (_, mke2fs) = (tool!("sfdisk"), tool!("mke2fs"));
    let folder = TempDir::new().unwrap();
    let path = image(&folder, &[2048]).unwrap();
    let name = path.to_str().unwrap();
    assert_eq!(traxtent(&["check", name, "--drive", "wd10ears"]).status, 0);
    let jumper = traxtent(&["check", name, "--drive", "wd10ears-jumper"]);
    assert_eq!(jumper.status, 1);
    assert!(jumper.out.contains("alignment-offset"), "{}", jumper.out);

    let file_system = folder.path().join("fs.img");
    let tree = folder.path().join("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("file"), vec![1; 8 << 20]).unwrap();
    let made = Command::new(mke2fs)
        .args(["-q", "-F", "-b", "4096", "-d"])
        .args([&tree, &file_system])
        .arg("64M")
        .status();
    assert!(made.unwrap().success());
    let name = file_system.to_str().unwrap();
    let printed = prints(&["check", name, "--drive", "atlas10k", "--file", "/file"]);
    assert!(
        printed.contains("extents of /file that fit on a track"),
        "{printed}"
    );
    // The list of blocks to exclude comes from other code.
    let crossing = prints(&[
        "map",
        "atlas10k",
        "--format",
        "badblocks",
        "--partition-start",
        "0",
        "--partition-end",
        "131072",
    ]);
    let count = format!(
        "{} of the 16384 blocks of the ext",
        crossing.lines().count()
    );
    assert!(printed.contains(&count), "{count} in {printed}");
}

/// Does the JSON describe a misaligned partition in the fields that docs/reference/check.md
/// documents?
#[test]
fn schema() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    let path = image(&folder, &[34]).unwrap();
    let answer = traxtent(&["check", path.to_str().unwrap(), "--json"]);
    assert_eq!(answer.status, 1);
    let report: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(report["schema"], 1);
    let kinds: Vec<_> = report["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| layer["kind"].clone())
        .collect();
    assert_eq!(kinds, ["disk", "table", "partition", "unknown"]);
    assert_eq!(report["layers"][2]["on"][0]["start"], 34 * 512);
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["rule"], &finding["severity"]),
        (&"partition-start".into(), &"fault".into())
    );
    assert_eq!(finding["layer"], 2);
    assert_eq!(
        (&finding["off"]["every"], &finding["off"]["by"]),
        (&4096.into(), &1024.into())
    );
    assert_eq!(report["tally"]["faults"], 1);
}

/// Does a collected stack give the same finding without its image, do several stacks give one row
/// each, and is a bad file reported as bad input?
#[test]
fn collected() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    image(&folder, &[34]).unwrap();
    let run = |words: &[&str]| traxtent_in(folder.path(), words);
    assert_eq!(
        run(&["check", "disk.img", "--collect", "one.json"]).status,
        0
    );
    fs::remove_file(folder.path().join("disk.img")).unwrap();
    let one = run(&["check", "one.json"]);
    assert_eq!(one.status, 1);
    assert!(one.out.contains("partition-start"), "{}", one.out);
    fs::copy(
        folder.path().join("one.json"),
        folder.path().join("two.json"),
    )
    .unwrap();
    // The stated values replace the collected ones.
    for (option, value, says) in [
        ("--physical-sector", "8K", "physical sector of 8 KiB"),
        ("--logical-sector", "4K", "sectors 4096/4096"),
        (
            "--erase-block",
            "3M",
            "solid-state: it is checked against erase blocks of 3 MiB",
        ),
        ("--chunk", "64K", "echo '128,8192' | sfdisk"),
        ("--stripe", "192K", "echo '384,8192' | sfdisk"),
        ("--drive", "wd10ears-jumper", "alignment-offset"),
    ] {
        let stated = run(&["check", "one.json", option, value]).out;
        assert!(
            !one.out.contains(says) && stated.contains(says),
            "{option}: {stated}"
        );
    }
    let rows = run(&["check", "one.json", "two.json"]);
    assert_eq!((rows.status, rows.out.lines().count()), (1, 3));
    let reports: serde_json::Value =
        serde_json::from_str(&run(&["check", "one.json", "two.json", "--json"]).out).unwrap();
    assert_eq!(reports.as_array().map(Vec::len), Some(2));
    fs::write(
        folder.path().join("bad.json"),
        "{\"format\": \"traxtent stack\", \"version\": 7}",
    )
    .unwrap();
    let bad = run(&["check", "bad.json"]);
    assert_eq!(bad.status, 2);
    assert!(bad.err.contains("bad.json"), "{}", bad.err);
}

/// Is a cost given for a partition that does not begin on a physical sector, on the named drive or
/// a typical one, with slower small writes and unaffected reads? Is none given for an aligned
/// partition, or for the end of a partition within a physical sector?
#[test]
fn costs() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    let path = image(&folder, &[34, 16_384]).unwrap();
    let path = path.to_str().unwrap();
    for (options, drive, typical) in [
        (&[][..], "toshiba-p300", true),
        (&["--drive", "wd10ears"][..], "wd10ears", false),
    ] {
        let answer = traxtent(&[&["check", path, "--json"], options].concat());
        let found: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        let findings = found["findings"].as_array().unwrap();
        let with_cost: Vec<_> = findings
            .iter()
            .filter(|found| found["cost"].is_object())
            .collect();
        assert_eq!(with_cost.len(), 1, "{findings:?}");
        assert_eq!(with_cost[0]["rule"], "partition-start");
        let cost = &with_cost[0]["cost"];
        assert_eq!(
            (&cost["profile"], &cost["typical"]),
            (&drive.into(), &typical.into())
        );
        let more = |work: &str| {
            let items = cost["items"].as_array().unwrap();
            let item = items.iter().find(|item| item["work"] == work).unwrap();
            item["actual_ms"].as_f64().unwrap() / item["aligned_ms"].as_f64().unwrap()
        };
        assert!(more("small-writes") > 2.0, "{cost}");
        assert!((more("reads") - 1.0).abs() < 0.02, "{cost}");
    }
}

/// Are the figures of equal costs printed once?
#[test]
fn equal_costs() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    let path = image(&folder, &[34, 16_386]).unwrap();
    let text = traxtent(&["check", path.to_str().unwrap()]).out;
    assert_eq!(text.matches("small random writes: ").count(), 1, "{text}");
    let again = "cost on toshiba-p300, a typical drive: the same figures as above\n";
    assert_eq!(text.matches(again).count(), 1, "{text}");
}

/// Is a long note that several findings share printed once, with the layer that it is for?
#[test]
fn equal_notes() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    image(&folder, &[34]).unwrap();
    let copy = folder.path().join("copy.img");
    fs::copy(folder.path().join("disk.img"), copy).unwrap();
    let text = traxtent_in(folder.path(), &["check", "disk.img", "copy.img"]).out;
    assert_eq!(
        text.matches("fix: follows from its start").count(),
        1,
        "{text}"
    );
    let again = "fix: the same as for partition 1 of disk.img above\n";
    assert_eq!(text.matches(again).count(), 1, "{text}");
}

/// Is a layer whose title names its drive called by its title alone?
#[test]
fn equal_notes_of_tables() {
    let _ = tool!("sfdisk");
    let folder = TempDir::new().unwrap();
    image(&folder, &[2048]).unwrap();
    let copy = folder.path().join("copy.img");
    fs::copy(folder.path().join("disk.img"), copy).unwrap();
    let check = ["check", "disk.img", "copy.img", "--logical-sector", "4096"];
    let text = traxtent_in(folder.path(), &check).out;
    let again = "fix: the same as for the GPT in disk.img above\n";
    assert_eq!(text.matches(again).count(), 1, "{text}");
}

/// Runs a shell script in a directory, with a modelled drive as a block device in `$loop`. Returns
/// its output, or an error if the host lacks the tools or the permission, or if the script fails.
fn with_loop(folder: &Path, drive: &str, speed: &str, script: &str) -> Result<String, String> {
    for program in ["nbdfuse", "losetup"] {
        testkit::tool(program).ok_or_else(|| format!("{program} is not installed"))?;
    }
    if !rustix::process::geteuid().is_root() || !Path::new("/dev/loop-control").exists() {
        return Err("only root can attach loop devices, or the kernel has none".to_owned());
    }
    let script = format!(
        "set -e; touch d; nbdfuse d \"$uri\" & fuse=$!; \
         end() {{ [ -z \"$loop\" ] || losetup --detach \"$loop\"; umount d 2>/dev/null || kill $fuse; wait $fuse || :; }}; \
         trap end EXIT; \
         n=0; until [ -s d ] || [ $n = 100 ]; do n=$((n + 1)); sleep 0.1; done; \
         loop=$(losetup --find --show --direct-io=on --sector-size 512 d); \
         {script}"
    );
    let answer = traxtent_in(
        folder,
        &[
            "serve",
            drive,
            "--speed",
            speed,
            "--receipt",
            "r.json",
            "--",
            "sh",
            "-c",
            &script,
        ],
    );
    if answer.status != 0 {
        return Err(format!("{}{}", answer.out, answer.err));
    }
    Ok(answer.out)
}

/// Are 4096-byte physical sectors that the kernel does not report detected by timing, and is the
/// drive then checked for them? Is nothing overwritten outside the range?
#[test]
fn measured_drive() {
    let folder = TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_traxtent");
    // Other load on the machine can disturb the times, so the measurement is repeated.
    let script = format!(
        "dd if=/dev/zero of=$loop bs=1M count=8 oflag=direct status=none; \
         for seed in 1 2 3; do \
           {program} check $loop --measure=physical-sector --scratch 2048..6144 --yes --seed $seed --json >out.json || :; \
           grep -q '\"bytes\": 4096' out.json && break; \
         done; \
         cmp -n 1048576 $loop /dev/zero; cmp -n 1048576 -i 3145728:0 $loop /dev/zero; \
         ! cmp -s -n 2097152 -i 1048576:0 $loop /dev/zero"
    );
    match with_loop(folder.path(), "wd10ears", "3", &script) {
        Ok(_) => {}
        Err(why) if why.contains("attach loop devices") || why.contains("is not installed") => {
            testkit::skip!("{why}")
        }
        Err(why) => panic!("{why}"),
    }
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("out.json")).unwrap()).unwrap();
    let measured = &report["measured"][0];
    assert_eq!(measured["grid"], "physical-sector");
    assert_eq!(measured["claimed_bytes"], 512, "{measured}");
    let receipt: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.path().join("r.json")).unwrap()).unwrap();
    if measured["bytes"].is_null() && receipt["verdict"] != "trustworthy" {
        testkit::skip!("the machine is too busy: {}", receipt["reasons"]);
    }
    assert_eq!(measured["bytes"], 4096, "{measured}");
    assert_eq!(measured["first_lbn"], 0, "{measured}");
    let disk = &report["layers"][0];
    assert_eq!(
        (&disk["physical_bytes"], &disk["physical_by"]),
        (&4096.into(), &"measured".into())
    );
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings
            .iter()
            .any(|found| found["rule"] == "hint-physical"),
        "{findings:?}"
    );
}

/// Is a measurement refused, with the reason, without a block device, a range or a confirmation,
/// beyond the device's end, and while the device is in use? Is the range then unchanged?
#[test]
fn measuring_is_refused() {
    let folder = TempDir::new().unwrap();
    let image = folder.path().join("disk.img");
    File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let image = image.to_str().unwrap();
    let scratch = "--scratch=1000..2000";
    for (words, says) in [
        (
            &[image, "--measure"][..],
            "is not a block device; a file has no timing of its own",
        ),
        (&["--measure"], "--measure needs exactly one block device"),
        (&[image, scratch], "--measure"),
        (
            &[image, "--measure=physical-sector", "--collect", "x"],
            "--collect",
        ),
    ] {
        let answer = traxtent(&[&["check"], words].concat());
        assert_eq!(answer.status, 2, "{words:?}: {}", answer.err);
        assert!(answer.err.contains(says), "{words:?}: {}", answer.err);
    }
    if !rustix::process::geteuid().is_root() {
        testkit::skip!("only root can attach loop devices");
    }
    let losetup = tool!("losetup");
    let mke2fs = tool!("mke2fs");
    let run = |program: &Path, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let attach = Command::new(&losetup)
        .args(["--find", "--show", image])
        .output()
        .unwrap();
    if !attach.status.success() {
        testkit::skip!("no loop device is available");
    }
    let node = String::from_utf8(attach.stdout).unwrap().trim().to_owned();
    run(&mke2fs, &["-q", "-F", "-t", "ext4", &node]);
    let before = fs::read(image).unwrap();
    let measure = |words: &[&str]| traxtent(&[&["check", &node], words].concat());
    let unnamed = measure(&["--measure=physical-sector"]);
    assert_eq!(unnamed.status, 2);
    assert!(
        unnamed.err.contains("--scratch FIRST..END"),
        "{}",
        unnamed.err
    );
    let unasked = measure(&["--measure", scratch]);
    assert_eq!(unasked.status, 2);
    assert!(
        unasked.err.contains("there: the ext4 in loop"),
        "{}",
        unasked.err
    );
    assert!(unasked.err.contains("--yes"), "{}", unasked.err);
    let beyond = measure(&["--measure", "--scratch=0..999999999", "--yes"]);
    assert_eq!(beyond.status, 2, "{}", beyond.err);
    let point = folder.path().join("mnt");
    fs::create_dir(&point).unwrap();
    run(Path::new("mount"), &[&node, point.to_str().unwrap()]);
    let busy = measure(&["--measure", scratch, "--yes"]);
    run(Path::new("umount"), &[point.to_str().unwrap()]);
    let after = fs::read(image).unwrap();
    run(&losetup, &["--detach", &node]);
    assert_eq!(busy.status, 3, "{}", busy.err);
    assert!(busy.err.contains("is mounted on"), "{}", busy.err);
    // Mounting writes to the superblock and the journal, which are outside the range.
    let range = 1000 * 512..2000 * 512;
    assert!(before[range.clone()] == after[range]);
}

/// Are the extents of a mounted file found by FIEMAP and compared with the tracks of the named
/// drive, and is the cost given? Does a warning say that the device is smaller than this drive?
#[test]
fn mounted_files() {
    let (mke2fs, losetup) = (tool!("mke2fs"), tool!("losetup"));
    if !rustix::process::geteuid().is_root() {
        testkit::skip!("only root can mount file systems");
    }
    let folder = TempDir::new().unwrap();
    let image = folder.path().join("disk.img");
    File::create(&image).unwrap().set_len(128 << 20).unwrap();
    let point = folder.path().join("mnt");
    fs::create_dir(&point).unwrap();
    let (image, point) = (image.to_str().unwrap(), point.to_str().unwrap());
    let run = |program: &Path, words: &[&str]| {
        let output = Command::new(program).args(words).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        output.status.success().then_some(printed)
    };
    run(&mke2fs, &["-q", "-F", "-t", "ext4", "-b", "4096", image]).unwrap();
    let Some(node) = run(&losetup, &["--find", "--show", image]) else {
        testkit::skip!("no loop device is available");
    };
    let mounted = run(Path::new("mount"), &[&node, point]);
    let file = format!("{point}/file");
    let mut answer = None;
    if mounted.is_some() {
        fs::write(&file, vec![1; 20 << 20]).unwrap();
        File::open(&file).unwrap().sync_all().unwrap();
        answer = Some(traxtent(&[
            "check", "--file", &file, "--drive", "atlas10k", "--json",
        ]));
        run(Path::new("umount"), &[point]);
    }
    run(&losetup, &["--detach", &node]);
    let Some(answer) = answer else {
        testkit::skip!("nothing can be mounted here");
    };
    let smaller = "has 134217728 bytes, but the drive of --drive has ";
    assert_eq!(answer.err.matches(smaller).count(), 1, "{}", answer.err);
    let report: serde_json::Value = serde_json::from_str(&answer.out).expect(&answer.err);
    let findings = report["findings"].as_array().unwrap();
    let of_file = |found: &&serde_json::Value| found["what"].as_str().unwrap().contains(&file);
    let found = findings
        .iter()
        .find(of_file)
        .expect("a finding of the file");
    assert_eq!(found["rule"], "track-crossing");
    // 20 MiB are more than a hundred tracks of this drive, so some extent is longer than a track.
    let what = found["what"].as_str().unwrap();
    assert!(
        what.starts_with("no extent of ") || what.contains("longer than a track"),
        "{found}"
    );
}

/// Does a fix of several commands, pasted into a shell as printed, stop at the first one that
/// fails? Does it continue if e2fsck has corrected errors, and say how to detach the loop device
/// otherwise?
#[test]
fn pasted_commands_stop_at_a_failure() {
    let (sfdisk, mke2fs) = (tool!("sfdisk"), tool!("mke2fs"));
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    File::create(at.join("disk.img"))
        .unwrap()
        .set_len(64 << 20)
        .unwrap();
    let make = format!(
        "printf 'label: dos\\nstart=63,size=131009\\n' | {} -q disk.img && {} -q -t ext4 -b 4096 -E offset=32256 disk.img 16376",
        sfdisk.display(),
        mke2fs.display()
    );
    let sh = |script: &str| {
        let mut command = Command::new("sh");
        command
            .args(["-c", script])
            .current_dir(at)
            .output()
            .unwrap()
    };
    assert!(sh(&make).status.success());
    let report = traxtent_in(at, &["check", "disk.img"]).out;
    let lines = report.lines().skip_while(|line| !line.contains("part=$("));
    let block: Vec<&str> = lines.take_while(|line| line.starts_with("  ")).collect();
    let block = block[..4].join("\n");
    let otherwise = "if a command fails, detach the loop device (`losetup --detach $part`)";
    assert!(report.contains(otherwise), "{report}");
    assert!(
        block.contains("e2fsck") && block.contains("resize2fs"),
        "{block}"
    );
    for (status, says) in [
        (0, "e2fsck resize2fs detach "),
        (1, "e2fsck resize2fs detach "),
        (4, "e2fsck "),
    ] {
        let stubs = format!(
            "losetup() {{ [ $1 != --detach ] || printf 'detach '; }}; e2fsck() {{ printf 'e2fsck '; return {status}; }}; resize2fs() {{ printf 'resize2fs '; }}"
        );
        let output = sh(&format!("{stubs}\n{block}"));
        assert_eq!(String::from_utf8_lossy(&output.stdout), says, "{block}");
    }
}
