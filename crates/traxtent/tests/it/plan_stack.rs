//! `traxtent plan stack`.

use std::fs;

use crate::command::{prints, traxtent, traxtent_in};

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

/// On a drive named by a link of udev, are its partitions those that udev names, and does the
/// script wait for them and end before mke2fs could create a file in place of a missing one?
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
    assert!(position("sfdisk ") < position("udevadm settle"));
    assert!(position("udevadm settle") < test);
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

/// Does the JSON describe the same steps as the script, without the numbers of the list?
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
        ["sfdisk", "mdadm", "mkfs.xfs", "blockdev", "traxtent"]
    );
}

/// Is an image only read, and do the commands attach it?
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
            .contains("mke2fs -t ext4 -b 4096 -i 16384 \"${DISK}p1\""),
        "{}",
        answer.out
    );
    assert!(fs::read(&image).unwrap().iter().all(|&byte| byte == 0));
}

/// Is each refusal one line that names what is possible?
#[test]
fn refusals() {
    for (arguments, status, says) in [
        (
            &["atlas10k2", "--for", "fs=zfs"][..],
            2,
            "expected one of ext2, ext3, ext4, xfs, btrfs, swap",
        ),
        (
            &["atlas10k2", "--for", "raid=5x64k", "--device", "/dev/sda"],
            2,
            "the number of disks needed is 3, but the number of devices named is 1",
        ),
        (
            &["wd10ears", "--for", "fs=ext4,block=1024"],
            2,
            "use block=4096",
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
    ] {
        let answer = traxtent(&[&["plan", "stack"], arguments].concat());
        assert_eq!(answer.status, status, "{arguments:?}: {}", answer.err);
        assert!(answer.err.contains(says), "{arguments:?}: {}", answer.err);
    }
}
