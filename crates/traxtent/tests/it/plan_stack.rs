//! `traxtent plan stack`.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::command::{prints, traxtent, traxtent_in};
use crate::guard::Loop;

/// Is a drive's recipe a script, with the list of bad blocks in the requested directory?
#[test]
fn a_recipe_in_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = [
        "plan",
        "stack",
        "atlas10k2",
        "--device",
        "/dev/sdz",
        "--output",
        "out",
    ];
    let answer = traxtent_in(folder.path(), &arguments);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let script = fs::read_to_string(folder.path().join("out/stack.sh")).unwrap();
    assert_eq!(script, answer.out);
    let mode = fs::metadata(folder.path().join("out/stack.sh"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o755);
    let list = fs::read_to_string(folder.path().join("out/badblocks.txt")).unwrap();
    assert!(list.lines().count() > 40_000);
    for part in [
        "sfdisk /dev/sdz <<'END'",
        &format!(
            "-l {}/out/badblocks.txt /dev/sdz1 ",
            folder.path().display()
        ),
        "traxtent check /dev/sdz --drive atlas10k2",
        "e2fsck -fn /dev/sdz1",
    ] {
        assert!(script.contains(part), "{script}");
    }
}

/// Does a script end at the first command that fails, however it is started?
#[test]
fn a_script_ends_at_the_first_failure() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let device = at.join("no-such-device");
    let arguments = ["plan", "stack", "atlas10k2", "--output", "out", "--device"];
    let answer = traxtent_in(at, &[&arguments[..], &[device.to_str().unwrap()]].concat());
    assert_eq!(answer.status, 0, "{}", answer.err);
    // Every program records its name and fails.
    for program in ["sfdisk", "mke2fs", "blockdev", "traxtent", "e2fsck"] {
        let path = at.join(program);
        fs::write(&path, "#!/bin/sh\necho \"$0\" >>\"${0%/*}/ran\"\nexit 1\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = at.join("out/stack.sh");
    for mut command in [Command::new(&script), Command::new("sh")] {
        if command.get_program() == "sh" {
            command.arg(&script);
        }
        let _ = fs::remove_file(at.join("ran"));
        let search = format!("{}:{}", at.display(), std::env::var("PATH").unwrap());
        let status = command.env("PATH", search).status().unwrap();
        assert!(!status.success());
        let ran = fs::read_to_string(at.join("ran")).unwrap();
        assert_eq!(ran.lines().count(), 1, "{ran}");
    }
}

/// Is a device refused if it is named twice, or if it is in use on this machine?
#[test]
fn devices_that_would_be_destroyed_by_mistake() {
    let raid = ["plan", "stack", "atlas10k2", "--for", "raid=1"];
    let answer = traxtent(&[&raid[..], &["--device", "/dev/sdz", "--device", "/dev/sdz"]].concat());
    assert_eq!(answer.status, 2, "{}", answer.out);
    assert!(
        answer.err.contains("/dev/sdz: is named twice"),
        "{}",
        answer.err
    );
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let is_block =
        |path: &&str| fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device());
    let mut sources = mounts.lines().filter_map(|line| line.split(' ').next());
    let Some(mounted) = sources.find(is_block) else {
        eprintln!("skipped: no block device is mounted");
        return;
    };
    let arguments = [
        "plan",
        "stack",
        "atlas10k2",
        "--for",
        "table=none",
        "--device",
        mounted,
    ];
    let answer = traxtent(&arguments);
    assert_eq!(answer.status, 3, "{mounted}: {}", answer.out);
    assert!(answer.err.contains(" is mounted on "), "{}", answer.err);
}

/// If a drive is named by one of udev's links, does the script name the partition as udev does,
/// wait for its link, and end before mke2fs could create a file in place of a missing one?
#[test]
fn links_of_udev() {
    let drive = "/dev/disk/by-id/ata-Q-9";
    let arguments = ["plan", "stack", "atlas10k2", "--device", drive];
    let folder = tempfile::tempdir().unwrap();
    let answer = traxtent_in(
        folder.path(),
        &[&arguments[..], &["--output", "out"]].concat(),
    );
    assert_eq!(answer.status, 0, "{}", answer.err);
    let lines: Vec<&str> = answer.out.lines().collect();
    let position = |start: &str| {
        let found = lines.iter().position(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("{start}: {}", answer.out))
    };
    let test = position(&format!("test -b {drive}-part1 || "));
    let announce = position(&format!("partx --update {drive} || test -b {drive}-part1"));
    assert!(position("sfdisk ") < position("udevadm settle"));
    assert!(position("udevadm settle") < announce);
    assert!(announce < test);
    assert_eq!(position("mke2fs "), test + 1);
    assert!(lines[test + 1].contains(&format!(" {drive}-part1 ")));
    let answer = std::process::Command::new("sh")
        .args(["-e", "-c", &format!("{}\necho went on", lines[test])])
        .output()
        .unwrap();
    assert_eq!(answer.status.code(), Some(1));
    assert_eq!(answer.stdout, b"");
    let says = format!("{drive}-part1: not a block device\n");
    assert_eq!(String::from_utf8_lossy(&answer.stderr), says);
}

/// Does the JSON have the number of its schema, the partition, and the programs of all steps in
/// order?
#[test]
fn json() {
    let text = prints(&[
        "plan",
        "stack",
        "dt01aca300",
        "--for",
        "fs=xfs,raid=5x64k",
        "--json",
    ]);
    let recipe: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(recipe["schema"], 1);
    assert_eq!(recipe["partition"]["on_track"], true);
    let programs: Vec<&str> = recipe["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["program"].as_str().unwrap())
        .collect();
    assert_eq!(
        programs,
        [
            "test", "sfdisk", "mdadm", "mkfs.xfs", "blockdev", "traxtent"
        ]
    );
}

/// Does the script of a loop device without partition scanning run to its end? The kernel refuses
/// to read the table again, so sfdisk alone would leave mke2fs without a partition, or with one
/// that the kernel still has from before.
#[test]
fn a_loop_device_without_partition_scanning() {
    for tool in ["losetup", "sfdisk", "partx", "mke2fs"] {
        let _ = testkit::tool!(tool);
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let Some(device) = Loop::attach(&image) else {
        testkit::skip!("no loop device can be attached");
    };
    // The script checks its result with this build.
    let program = Path::new(env!("CARGO_BIN_EXE_traxtent"));
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":/usr/sbin:/sbin:");
    path.push(std::env::var_os("PATH").unwrap());
    let run = |script: &str| {
        let ran = Command::new("sh")
            .args(["-c", script])
            .env("PATH", &path)
            .output()
            .unwrap();
        let says = [ran.stdout, ran.stderr].concat();
        let says = String::from_utf8_lossy(&says).into_owned();
        assert!(ran.status.success(), "{script}\n{says}");
        says
    };
    let plan = |want: &str| prints(&["plan", "stack", device.name(), "--for", want]);
    let says = run(&plan("fs=ext4"));
    assert!(says.contains("0 faults, 0 warnings"), "{says}");
    run(&format!(
        "echo 'start=20000, size=20000' | sfdisk {0}; partx --update {0}",
        device.name()
    ));
    let says = run(&plan("fs=ext2,table=mbr"));
    assert!(says.contains("0 faults, 0 warnings"), "{says}");
    let offset = Path::new("/sys/class/block").join(format!(
        "{}p1/start",
        device.name().trim_start_matches("/dev/")
    ));
    assert_eq!(fs::read_to_string(offset).unwrap(), "2048\n");
}

/// Are the partitions of drives that differ in size those of the smallest, and are drives that
/// differ in logical sectors refused? Does the script end before the first table is replaced if a
/// drive is too small or missing?
#[test]
fn drives_that_differ() {
    for tool in ["losetup", "blockdev"] {
        let _ = testkit::tool!(tool);
    }
    let folder = tempfile::tempdir().unwrap();
    let attach = |name: &str, mib: u64, sector: &str| {
        let image = folder.path().join(name);
        fs::File::create(&image)
            .unwrap()
            .set_len(mib << 20)
            .unwrap();
        Loop::attach_with(&image, &["--sector-size", sector])
    };
    let drives = [
        attach("a", 164, "512"),
        attach("b", 148, "512"),
        attach("c", 164, "4096"),
    ];
    let [Some(large), Some(small), Some(other)] = &drives else {
        testkit::skip!("no loop device can be attached");
    };
    let plan = |target: &str, devices: [&str; 2]| {
        let [first, second] = devices;
        let options = ["--device", first, "--device", second];
        let command = ["plan", "stack", target, "--for", "fs=ext4,raid=1"];
        traxtent(&[&command[..], &options[..]].concat())
    };
    for (target, devices) in [
        (large.name(), [large.name(), other.name()]),
        (other.name(), [large.name(), other.name()]),
    ] {
        let refused = plan(target, devices);
        assert_eq!(refused.status, 2, "{}", refused.out);
        let says = "do not match the sectors of";
        assert!(refused.err.contains(says), "{}", refused.err);
    }
    for target in [large.name(), small.name()] {
        let answer = plan(target, [small.name(), large.name()]);
        assert_eq!(answer.status, 0, "{}", answer.err);
        let note = format!("# {} is the smallest drive, with 303104 LBNs", small.name());
        assert!(answer.out.contains(&note), "{}", answer.out);
        // 146 MiB: 1 MiB precedes the partition, and the second GPT follows it.
        assert_eq!(answer.out.matches("start=2048, size=299008,").count(), 2);
    }
    // A plan for a drive that is too small, and for one that is missing.
    for (second, why) in [
        (small.name(), "not a drive of 333857 or more sectors"),
        ("/dev/nonexistent", "there is no such block device"),
    ] {
        let script = plan(large.name(), [large.name(), "/dev/sdzz"]).out;
        let script = script.replace("/dev/sdzz", second);
        let ran = Command::new("sh").args(["-c", &script]).output().unwrap();
        let says = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{says}");
        let expected = format!("{second}: {why}");
        assert!(says.contains(&expected), "{says}");
        assert_eq!(says.lines().count(), 1, "{says}");
        let written = fs::read(folder.path().join("a")).unwrap();
        assert!(written.iter().all(|&byte| byte == 0), "a table was written");
    }
}

/// Does a script end before it writes if a device that was blank has content by then, or if an
/// image is in use? Is an image in use refused?
#[test]
fn a_script_for_other_content() {
    for tool in ["losetup", "blkid", "mkfs.ext4"] {
        let _ = testkit::tool!(tool);
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("a b.img");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let name = image.to_str().unwrap();
    let plan = || traxtent(&["plan", "stack", name, "--for", "fs=ext4"]);
    let refused = |script: &str, why: &str| {
        let before = fs::read(&image).unwrap();
        let ran = Command::new("sh").args(["-c", script]).output().unwrap();
        let says = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{says}");
        assert!(says.contains(why), "{says}");
        assert!(
            fs::read(&image).unwrap() == before,
            "the script has written"
        );
    };
    let of_image = plan().out;
    {
        let Some(device) = Loop::attach_with(&image, &[]) else {
            testkit::skip!("no loop device can be attached");
        };
        let of_device = traxtent(&["plan", "stack", device.name(), "--for", "fs=ext4"]).out;
        refused(&of_image, "a b.img: is in use as a loop device");
        assert_eq!(plan().status, 3, "{}", plan().err);
        assert!(plan().err.contains("in use"), "{}", plan().err);
        let made = Command::new("mkfs.ext4")
            .args(["-q", device.name()])
            .status();
        assert!(made.unwrap().success());
        let why = format!("{}: is no longer blank; plan again", device.name());
        refused(&of_device, &why);
    }
    refused(&of_image, "a b.img: is no longer blank; plan again");
}

/// If a loop device with content has the name of another file by then, does the script end before
/// it writes? Does it begin otherwise?
#[test]
fn a_script_for_another_disk() {
    for tool in ["losetup", "blkid", "mkfs.ext4"] {
        let _ = testkit::tool!(tool);
    }
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
    for image in [&first, &second] {
        fs::File::create(image).unwrap().set_len(64 << 20).unwrap();
        let mut made = Command::new("mkfs.ext4");
        assert!(
            made.args(["-q", "-F"])
                .arg(image)
                .status()
                .unwrap()
                .success()
        );
    }
    let Some(device) = Loop::attach_with(&first, &[]) else {
        testkit::skip!("no loop device can be attached");
    };
    let script = prints(&["plan", "stack", device.name()]);
    let tests = script.find("\n# One partition").expect("it has one");
    let run = |script: &str| {
        let ran = Command::new("sh").args(["-c", script]).output().unwrap();
        let says = String::from_utf8_lossy(&ran.stderr).into_owned();
        (ran.status.code(), says)
    };
    assert_eq!(run(&script[..tests]), (Some(0), String::new()));
    let other = script.replace(first.to_str().unwrap(), second.to_str().unwrap());
    let says = format!(
        "{}: is no longer the same disk; plan again\n",
        device.name()
    );
    assert_eq!(run(&other), (Some(1), says));
}

/// Does a script end before it writes if `blkid` finds the signatures of two formats, or cannot be
/// run? It prints nothing in either case.
#[test]
fn a_script_if_blkid_prints_nothing() {
    for tool in ["losetup", "blkid", "mkfs.ext4"] {
        let _ = testkit::tool!(tool);
    }
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("a b.img");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let script = prints(&["plan", "stack", image.to_str().unwrap()]);
    let refused = |path: &std::ffi::OsStr, why: &str| {
        let before = fs::read(&image).unwrap();
        let mut shell = Command::new("/bin/sh");
        let ran = shell.args(["-c", &script]).env("PATH", path);
        let ran = ran.output().unwrap();
        let says = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{says}");
        let expected = format!("{}: {why}\n", image.display());
        assert_eq!(says, expected);
        assert!(
            fs::read(&image).unwrap() == before,
            "the script has written"
        );
    };
    // Without its programs, the shell has only `test` and `echo`.
    let tools = folder.path().join("tools");
    fs::create_dir(&tools).unwrap();
    refused(
        tools.as_os_str(),
        "blkid cannot tell whether it is blank; is it installed?",
    );
    let mut made = Command::new(testkit::tool!("mkfs.ext4"));
    let made = made.args(["-q", "-F", "-b", "4096"]).arg(&image).status();
    assert!(made.unwrap().success());
    let mut file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.seek(SeekFrom::Start(65536 + 64)).unwrap();
    file.write_all(b"_BHRfS_M").unwrap();
    drop(file);
    let path = std::env::var_os("PATH").unwrap();
    let mut blkid = Command::new("blkid");
    let found = blkid.args(["--probe"]).arg(&image).output().unwrap();
    assert_eq!(found.status.code(), Some(8), "it is not ambiguous");
    assert_eq!(found.stdout, b"");
    refused(&path, "is no longer blank; plan again");
}

/// Does a script end before it writes if its list of bad blocks is missing?
#[test]
fn a_script_without_its_list() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let arguments = ["plan", "stack", "atlas10k2", "--device", "/dev/sdz"];
    let output = ["--output", "a dir"];
    let moved = traxtent_in(at, &[&arguments[..], &output].concat());
    assert_eq!(moved.status, 0, "{}", moved.err);
    fs::rename(at.join("a dir"), at.join("moved")).unwrap();
    let list = at.join("a dir/badblocks.txt").display().to_string();
    let unwritten = traxtent_in(at, &arguments);
    // Every program records that it ran.
    let program = "#!/bin/sh\n: >\"${0%/*}/ran\"\n";
    let sfdisk = at.join("sfdisk");
    fs::write(&sfdisk, program).unwrap();
    fs::set_permissions(&sfdisk, fs::Permissions::from_mode(0o755)).unwrap();
    let search = format!("{}:{}", at.display(), std::env::var("PATH").unwrap());
    for (script, list) in [(moved.out, list.as_str()), (unwritten.out, "badblocks.txt")] {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).env("PATH", &search);
        let ran = shell.current_dir(at).output().unwrap();
        let says = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(1), "{says}");
        assert!(
            says.starts_with(&format!("{list}: cannot be read; ")),
            "{says}"
        );
        assert!(!at.join("ran").exists(), "it went on");
    }
}

/// Is the list of an earlier plan removed if the new plan has none, and is a path refused that is
/// not a directory?
#[test]
fn the_output_directory() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let plan = |want: &str, output: &str| {
        let arguments = ["plan", "stack", "atlas10k2", "--for", want, "--output"];
        traxtent_in(at, &[&arguments[..], &[output]].concat())
    };
    for (want, has_list) in [("fs=ext4", true), ("fs=xfs", false), ("fs=xfs", false)] {
        let answer = plan(want, "out");
        assert_eq!(answer.status, 0, "{}", answer.err);
        assert_eq!(at.join("out/badblocks.txt").exists(), has_list, "{want}");
    }
    fs::write(at.join("file"), "text").unwrap();
    let answer = plan("fs=xfs", "file");
    assert_eq!(answer.status, 3, "{}", answer.err);
    let says = "traxtent: file: is not a directory; name another one\n";
    assert_eq!(answer.err, says);
}

/// Are two loop devices with the same data refused as two drives?
#[test]
fn two_devices_with_the_same_data() {
    let _ = testkit::tool!("losetup");
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("disk.img");
    fs::File::create(&image).unwrap().set_len(64 << 20).unwrap();
    let (Some(one), Some(two)) = (Loop::attach(&image), Loop::attach(&image)) else {
        testkit::skip!("no loop device can be attached");
    };
    let devices = ["--device", one.name(), "--device", two.name()];
    let plan = ["plan", "stack", one.name(), "--for", "fs=ext4,raid=1"];
    let answer = traxtent(&[&plan[..], &devices].concat());
    assert_eq!(answer.status, 2, "{}", answer.out);
    let says = format!(
        "traxtent: {}: shows the same data as {}; name each disk once\n",
        two.name(),
        one.name()
    );
    assert_eq!(answer.err, says);
}

/// Does a script end before it writes if an array, a volume group or an opened device has the name
/// of a new one? Does it name a device that this machine does not have?
#[test]
fn names_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let program = |name: &str, text: &str| {
        let path = at.join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("sfdisk", &format!(": >{}/ran; exit 1", at.display()));
    let search = format!("{}:{}", at.display(), std::env::var("PATH").unwrap());
    let run = |want: &str, from: &str, to: &str| {
        let arguments = ["plan", "stack", "instant", "--device", "/dev/sdz", "--for"];
        let script = prints(&[&arguments[..], &[want]].concat());
        let note = "\n# /dev/sdz does not exist on this machine, so its size, ";
        assert!(script.contains(note), "{script}");
        let _ = fs::remove_file(at.join("ran"));
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &script.replace(from, to)]);
        let ran = shell.env("PATH", &search).output().unwrap();
        assert_eq!(ran.status.code(), Some(1));
        let says = String::from_utf8_lossy(&ran.stderr).into_owned();
        (at.join("ran").exists(), says)
    };
    let used = at.join("sfdisk").display().to_string();
    program("vgs", "test \"$*\" = vg0");
    let says = "vg0: a volume group of this name already exists; ";
    let (written, err) = run("fs=xfs,lvm", "none", "none");
    assert!(!written && err.starts_with(says), "{err}");
    program("vgs", "exit 5");
    assert!(run("fs=xfs,lvm", "none", "none").0);
    let (written, err) = run("fs=xfs,luks", "/dev/mapper/data", &used);
    let says = format!("{used}: already exists; ");
    assert!(!written && err.starts_with(&says), "{err}");
    let arguments = ["plan", "stack", "instant", "--for", "fs=xfs,raid=1"];
    let devices = ["--device", "/dev/sdy", "--device", "/dev/sdz"];
    let script = prints(&[&arguments[..], &devices].concat());
    for (exit, says) in [
        (0, "/dev/md0: already exists; "),
        (1, "/dev/sdy: there is no such block device"),
    ] {
        program(
            "mdadm",
            &format!("test \"$*\" = '--detail /dev/md0' && exit {exit}"),
        );
        let mut shell = Command::new("sh");
        let ran = shell.args(["-c", &script]).env("PATH", &search);
        let ran = ran.output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(err.starts_with(says), "{err}");
    }
}

/// Does the array have as many drives as are named, and are those that this machine lacks listed in
/// one line?
#[test]
fn named_devices_count() {
    let devices: Vec<String> = ('a'..='h')
        .map(|letter| format!("/dev/missing{letter}"))
        .collect();
    let mut arguments = vec!["plan", "stack", "dt01aca300", "--for", "fs=xfs,raid=6"];
    for device in &devices {
        arguments.extend(["--device", device]);
    }
    let script = prints(&arguments);
    assert!(script.contains("--raid-devices=8 "), "{script}");
    let note = format!(
        "\n# {} do not exist on this machine, so their sizes, content and use were not checked.\n",
        devices.join(", ")
    );
    assert!(script.contains(&note), "{script}");
}

/// Is a line break in a path part of a comment?
#[test]
fn a_path_with_a_line_break() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("x\ntouch found #");
    let mut bytes = vec![0; 64 << 20];
    bytes[4086..4096].copy_from_slice(b"SWAPSPACE2");
    fs::write(&image, bytes).unwrap();
    let answer = traxtent(&["plan", "stack", image.to_str().unwrap()]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(
        answer.out.contains("\n# touch found # holds"),
        "{}",
        answer.out
    );
}

/// Is an image only read, do the commands attach it, and is there a warning only if it is not
/// blank?
#[test]
fn an_image() {
    let folder = tempfile::tempdir().unwrap();
    let image = folder.path().join("a b.img");
    fs::File::create(&image).unwrap().set_len(1 << 30).unwrap();
    let answer = traxtent_in(folder.path(), &["plan", "stack", "./a b.img"]);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(
        answer.out.contains(&format!(
            "DISK=$(losetup --find --show --partscan '{}')",
            image.display()
        )),
        "{}",
        answer.out
    );
    assert!(
        answer
            .out
            .contains("\npartx --update \"$DISK\" || test -b \"${DISK}p1\"\n"),
        "{}",
        answer.out
    );
    assert!(
        answer
            .out
            .contains("mke2fs -t ext4 -b 4096 -i 16384 \"${DISK}p1\""),
        "{}",
        answer.out
    );
    assert!(fs::read(&image).unwrap().iter().all(|&byte| byte == 0));
    assert!(!answer.out.contains("WARNING"), "{}", answer.out);
    let mut file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.seek(SeekFrom::Start(4086)).unwrap();
    file.write_all(b"SWAPSPACE2").unwrap();
    let answer = traxtent_in(folder.path(), &["plan", "stack", "./a b.img"]);
    let warning = "\n# WARNING: ./a b.img holds ";
    assert!(answer.out.contains(warning), "{}", answer.out);
}

/// Does each refusal have the right status, and name the remedy or the missing file?
#[test]
fn refusals() {
    let folder = tempfile::tempdir().unwrap();
    let tiny = folder.path().join("tiny.img");
    fs::write(&tiny, [0; 512]).unwrap();
    let tiny = tiny.to_str().unwrap();
    for (arguments, status, says) in [
        (
            &["atlas10k2", "--for", "fs=zfs"][..],
            2,
            "expected one of ext2, ext3, ext4, xfs, btrfs, swap",
        ),
        (
            &["atlas10k2", "--for", "raid=5x64k", "--device", "/dev/sda"],
            2,
            "the stack needs 3 disks, but 1 is named; name each with --device, or change disks=",
        ),
        (
            &["wd10ears", "--for", "fs=ext4,block=1024"],
            2,
            "use block=4096",
        ),
        (
            &["wd10ears", "--for", "fs=ext4,luks=512"],
            2,
            "use luks=4096",
        ),
        (
            &["toshiba-x300", "--for", "table=mbr"],
            2,
            "; use table=gpt",
        ),
        (
            &["atlas10k2", "--drive", "atlas10k"],
            2,
            "already names a drive; remove the option",
        ),
        (&["./nothing.img"], 3, "nothing.img"),
        (
            &["atlas10k2", "--device", tiny],
            2,
            "is a file, not a device; attach each image with `losetup",
        ),
        (
            &[tiny, "--for", "raid=1,disks=2"],
            2,
            "is one image, and the stack needs 2 disks; attach each image with `losetup",
        ),
        (
            &[tiny],
            2,
            "tiny.img: has 1 sector, too few for a partition",
        ),
    ] {
        let answer = traxtent(&[&["plan", "stack"], arguments].concat());
        assert_eq!(answer.status, status, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(says), "{arguments:?}: {}", answer.err);
    }
}
