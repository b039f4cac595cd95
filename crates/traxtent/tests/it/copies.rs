//! `traxtent volume copies` on files: volumes from `create` to `destroy`, and refusals.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

use tempfile::TempDir;

use crate::command::{Answer, traxtent_in};
use crate::guard::Loop;
use crate::volume_faults::fat_boot_sector;

/// The size of the file that serves as the device.
const BYTES: u64 = 9_100_000 / 512 * 512;

fn copies(folder: &Path, line: &str) -> Answer {
    let arguments: Vec<&str> = ["volume", "copies"]
        .into_iter()
        .chain(line.split_whitespace())
        .collect();
    traxtent_in(folder, &arguments)
}

fn refused(folder: &Path, line: &str, status: i32, with: &str) {
    let answer = copies(folder, line);
    assert_eq!(answer.status, status, "{line}: {}", answer.err);
    assert!(answer.err.contains(with), "{line}: {}", answer.err);
    assert_eq!(answer.err.lines().count(), 1, "{line}: {}", answer.err);
}

/// Creates a file, and a map with tracks of 100 sectors, the last one shorter.
fn device(folder: &Path) {
    let sectors = BYTES / 512;
    File::create(folder.join("disk"))
        .unwrap()
        .set_len(BYTES)
        .unwrap();
    let mut csv = "first_lbn,sectors\n".to_owned();
    for first in (0..sectors).step_by(100) {
        csv += &format!("{first},{}\n", 100.min(sectors - first));
    }
    let tracks = traxtent_map::TrackMap::read_csv(csv.as_bytes()).unwrap();
    let identity = traxtent_probe::Identity {
        capacity: traxtent_units::Sectors(sectors),
        logical_bytes: 512,
        physical_bytes: 512,
        ..Default::default()
    };
    let method = traxtent_map::MapSource::List;
    let map = traxtent_map::MapFile::new(identity, method, tracks);
    fs::write(folder.join("map"), map.to_text()).unwrap();
}

/// Is the loss of one of the two superblocks, or of the map beside it, reported, and repaired when
/// the volume is served?
#[test]
fn a_lost_superblock_is_rewritten() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    assert_eq!(copies(at, "create --copies 1..2 --map map disk").status, 0);
    let file = std::fs::File::options()
        .write(true)
        .open(at.join("disk"))
        .unwrap();
    let original = fs::read(at.join("disk")).unwrap();
    for lost in [0, 4096, BYTES - 4096] {
        file.write_all_at(&[0; 4096], lost).unwrap();
        let status = copies(at, "status disk");
        assert_eq!(status.status, 1, "{}", status.err);
        let says = "one of the two superblocks is missing or damaged";
        assert!(status.err.contains(says), "{}", status.err);
        let served = traxtent_in(at, &["volume", "serve", "disk", "--", "true"]);
        assert_eq!(served.status, 0, "{}", served.err);
        let says = "disk: a missing or damaged superblock was rewritten";
        assert!(served.err.contains(says), "{}", served.err);
        assert!(fs::read(at.join("disk")).unwrap() == original, "{lost}");
        assert_eq!(copies(at, "status disk").status, 0);
    }
}

/// If a superblock is lost, and the system refuses to write it, is the volume served nevertheless,
/// with a warning that gives the reason?
#[test]
fn a_lost_superblock_that_cannot_be_rewritten() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    assert_eq!(copies(at, "create --copies 1..2 --map map disk").status, 0);
    let file = File::options().write(true).open(at.join("disk")).unwrap();
    file.write_all_at(&[0; 4096], BYTES - 4096).unwrap();
    // The shell's unit is 512 bytes, or 1 KiB; in both cases, the limit is within the file.
    let line = format!(
        "trap '' XFSZ; ulimit -f {}; {} volume serve disk -- true",
        BYTES / 1024 - 4,
        env!("CARGO_BIN_EXE_traxtent")
    );
    let mut shell = std::process::Command::new("sh");
    let served = shell.args(["-c", &line]).current_dir(at).output().unwrap();
    let says = String::from_utf8(served.stderr).unwrap();
    assert!(served.status.success(), "{says}");
    let expected = "disk: a superblock is missing or damaged, and cannot be rewritten: ";
    assert!(says.contains(expected), "{says}");
    assert_eq!(copies(at, "status disk").status, 1);
}

/// Is damage to one copy of the table of tracks reported as such, and repaired when the volume is
/// served?
#[test]
fn a_damaged_table_is_rewritten() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    assert_eq!(copies(at, "create --copies 1..2 --map map disk").status, 0);
    let original = fs::read(at.join("disk")).unwrap();
    let sectors = original.chunks(512).zip((0..).step_by(512));
    let is_table = |sector: &[u8]| sector.starts_with(b"traxttpl") || sector.starts_with(b"tplp");
    let table = sectors.filter_map(|(sector, at)| is_table(sector).then_some(at));
    let table: Vec<u64> = table.collect();
    assert!(table.len() >= 4, "{table:?}");
    let file = File::options().write(true).open(at.join("disk")).unwrap();
    for lost in table {
        file.write_all_at(&[0; 512], lost).unwrap();
        let says = "one of the two copies of the table of tracks is damaged";
        let status = copies(at, "status disk");
        assert_eq!(status.status, 1, "{}", status.err);
        assert!(status.err.contains(says), "{lost}: {}", status.err);
        let served = traxtent_in(at, &["volume", "serve", "disk", "--", "true"]);
        assert_eq!(served.status, 0, "{}", served.err);
        assert!(fs::read(at.join("disk")).unwrap() == original, "{lost}");
        assert_eq!(copies(at, "status disk").status, 0);
    }
}

/// Can a volume be created, shown and destroyed as the help describes?
#[test]
fn created_shown_and_destroyed() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    let made = copies(at, "create --copies 1..2 --map map --json disk");
    assert_eq!(made.status, 0, "{}", made.err);
    let made: serde_json::Value = serde_json::from_str(&made.out).unwrap();
    let bytes = made["bytes"].as_u64().unwrap();
    assert!(
        bytes > BYTES * 9 / 10 && bytes.is_multiple_of(4096),
        "{bytes}"
    );
    assert_eq!(
        (&made["copies_most"], &made["surveyed"]),
        (&2.into(), &false.into())
    );
    let status = copies(at, "status disk");
    assert_eq!(status.status, 0, "{}", status.err);
    assert!(
        status.out.contains(" 1 to 2 replicas of each block, "),
        "{}",
        status.out
    );
    let status = traxtent_in(at, &["volume", "status", "disk"]);
    assert_eq!(status.status, 2, "{}", status.err);
    assert!(status.err.contains("`volume copies`"), "{}", status.err);
    let several = traxtent_in(at, &["volume", "status", "disk", "map"]);
    let says = "disk: is not a member of a volume; it holds a volume with replicas";
    assert!(several.err.contains(says), "{}", several.err);
    refused(
        at,
        "create --copies 2 --map map disk",
        2,
        "disk: the device holds volume ",
    );
    assert_eq!(
        copies(at, "create --copies 2 --map map --force disk").status,
        0
    );
    refused(
        at,
        "destroy disk",
        2,
        "the volume's data would be lost; confirm with --force",
    );
    let trusted = traxtent_in(
        at,
        &["volume", "serve", "--trust-map", "disk", "--", "true"],
    );
    assert_eq!(trusted.status, 2, "{}", trusted.err);
    assert!(trusted.err.contains("--trust-map: "), "{}", trusted.err);
    // It has no control socket while it is served.
    let program = env!("CARGO_BIN_EXE_traxtent");
    let script = format!("{program} volume copies status disk 2> locked; true");
    fs::write(at.join("script"), script).unwrap();
    let served = traxtent_in(at, &["volume", "serve", "disk", "--", "sh", "script"]);
    assert_eq!(served.status, 0, "{}", served.err);
    let locked = fs::read_to_string(at.join("locked")).unwrap();
    let says = "locked by another process; if its volume is being served, stop the server first\n";
    assert!(locked.ends_with(says), "{locked}");
    let destroy = traxtent_in(at, &["volume", "destroy", "--force", "disk"]);
    assert_eq!(destroy.status, 2, "{}", destroy.err);
    assert!(destroy.err.contains("`volume copies`"), "{}", destroy.err);
    let destroyed = copies(at, "destroy --force disk");
    assert_eq!(destroyed.status, 0, "{}", destroyed.err);
    let says = "disk: no longer holds volume ";
    assert!(destroyed.out.starts_with(says), "{}", destroyed.out);
    assert!(
        destroyed.err.contains("the data remains"),
        "{}",
        destroyed.err
    );
    refused(
        at,
        "status disk",
        2,
        "disk: there is no superblock of a volume",
    );
}

/// On a device that has been reused, does `serve` refuse to write, and does `destroy` keep the
/// content and remove the superblock that is left?
#[test]
fn destroy_keeps_other_content() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    assert_eq!(copies(at, "create --copies 1..2 --map map disk").status, 0);
    let disk = File::options().write(true).open(at.join("disk")).unwrap();
    disk.write_all_at(&fat_boot_sector(), 0).unwrap();
    let before = fs::read(at.join("disk")).unwrap();
    refused(
        at,
        "create --copies 2 --map map disk",
        2,
        ", and FAT; use --force to overwrite it",
    );
    let served = traxtent_in(at, &["volume", "serve", "disk", "--", "true"]);
    assert_ne!(served.status, 0, "{}", served.err);
    let says = "the device holds FAT; if the device has been reused";
    assert!(served.err.contains(says), "{}", served.err);
    assert!(fs::read(at.join("disk")).unwrap() == before, "it wrote");
    let destroyed = copies(at, "destroy --force disk");
    assert_eq!(destroyed.status, 0, "{}", destroyed.err);
    let says = "disk: FAT on the device is kept";
    assert!(destroyed.err.contains(says), "{}", destroyed.err);
    let after = fs::read(at.join("disk")).unwrap();
    let second = after.len() - 4096;
    assert!(after[..second] == before[..second], "it was overwritten");
    assert!(after[second..].iter().all(|byte| *byte == 0));
}

/// Are invalid command lines and unusable files refused with a message that names the cause, before
/// anything is written?
#[test]
fn refusals() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    let before = fs::read(at.join("disk")).unwrap();
    refused(
        at,
        "create --copies 32 --map map disk",
        2,
        "a track cannot have 32 partitions: the largest track in LBNs ",
    );
    refused(
        at,
        "create --copies 1 --block 1000 --map map disk",
        2,
        "the size of a block in bytes is 1000: expected a whole number of sectors",
    );
    refused(
        at,
        "create --copies 1 --map atlas10k2 disk",
        2,
        "atlas10k2: there is no such map file; `traxtent probe DEVICE --tracks-only --map FILE` makes one\n",
    );
    // An endless file is not read to its end.
    refused(
        at,
        "create --copies 1 --map /dev/zero disk",
        2,
        "/dev/zero: is not a track map: ",
    );
    fs::write(at.join("none"), "no map").unwrap();
    refused(at, "create --copies 1 --map none disk", 2, "none: ");
    fs::write(at.join("long"), "traxtent track map 1\n").unwrap();
    let long = File::options().append(true).open(at.join("long")).unwrap();
    long.set_len((256 << 20) + 1).unwrap();
    let says = "long: is longer than 268435456 bytes\n";
    refused(at, "create --copies 1 --map long disk", 2, says);
    File::create(at.join("small"))
        .unwrap()
        .set_len(8 << 20)
        .unwrap();
    refused(
        at,
        "create --copies 1 --map map small",
        2,
        "map: the map is of a drive with ",
    );
    let words = "volume create --level raid-0 --map /dev/zero --map /dev/zero disk small";
    let answer = traxtent_in(at, &words.split(' ').collect::<Vec<_>>());
    assert_eq!(answer.status, 2, "{}", answer.err);
    assert!(answer.err.contains("is not a track map"), "{}", answer.err);
    for (copies_of, with) in [
        ("3", "3 replicas: expected"),
        ("-1", "expected a number of replicas, such as 2"),
        ("4..2", "4 replicas, exceeds the upper bound,"),
        (
            "x",
            "expected a number of replicas, such as 2, or a range, such as 1..2",
        ),
    ] {
        let answer = copies(at, &format!("create --copies {copies_of} --map map disk"));
        assert_eq!(answer.status, 2);
        assert!(answer.err.contains(with), "{}", answer.err);
    }
    assert!(fs::read(at.join("disk")).unwrap() == before);
}

/// Is a map refused that names another drive than the block device, although its size is the same?
/// Is a list of tracks, which names no drive, accepted?
#[test]
fn maps_of_other_drives() {
    let _ = testkit::tool!("losetup");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    let map = traxtent_map::MapFile::read(&fs::read(at.join("map")).unwrap()).unwrap();
    let mut other = map.clone();
    other.method = traxtent_map::MapSource::Model;
    other.identity.serial = "4711".to_owned();
    fs::write(at.join("other"), other.to_text()).unwrap();
    let Some(attached) = Loop::attach(&at.join("disk")) else {
        testkit::skip!("no loop device can be attached");
    };
    let name = attached.name();
    let create = |map: &str| format!("create --copies 1 --readings 0 --map {map} {name}");
    let says = format!(
        "other: is not the map of {name}: belongs to another drive: its serial number is 4711, this drive's is unknown\n"
    );
    refused(at, &create("other"), 2, &says);
    assert!(
        fs::read(at.join("disk"))
            .unwrap()
            .iter()
            .all(|&byte| byte == 0)
    );
    let made = copies(at, &create("map"));
    assert_eq!(made.status, 0, "{}", made.err);
    drop(attached);
    // A file has no identity.
    let made = copies(at, "create --copies 1 --map other --force disk");
    assert_eq!(made.status, 0, "{}", made.err);
}

/// If the map covers only a part of the device, do `create` and `status` state how much is unused?
#[test]
fn a_map_of_a_part() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    let mut map = traxtent_map::MapFile::read(&fs::read(at.join("map")).unwrap()).unwrap();
    let whole = copies(at, "create --copies 1 --map map disk");
    assert!(!whole.out.contains("not used"), "{}", whole.out);
    let sizes = map
        .tracks
        .tracks()
        .take(100)
        .map(|track| track.sectors.0 as u32);
    let tracks = traxtent_map::TrackMap::from_sizes(sizes);
    map = traxtent_map::MapFile::new(map.identity, map.method, tracks);
    fs::write(at.join("part"), map.to_text()).unwrap();
    let made = copies(at, "create --copies 1 --map part --force disk");
    assert_eq!(made.status, 0, "{}", made.err);
    let unused = BYTES - 100 * 100 * 512;
    let line = format!("\n  not used: {unused} bytes that the track map does not cover\n");
    assert!(made.out.contains(&line), "{}", made.out);
    let status = copies(at, "status disk");
    assert!(status.out.contains(&line), "{}", status.out);
}

/// Does `volume serve` serve such a volume, but refuse a control socket?
#[test]
fn served() {
    let _ = testkit::tool!("nbdinfo");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    device(at);
    let made = copies(at, "create --copies 1..2 --map map --json disk");
    let made: serde_json::Value = serde_json::from_str(&made.out).unwrap();
    let command = ["--", "sh", "-c", "nbdinfo --size \"$uri\""];
    let serve = |more: &[&str]| traxtent_in(at, &[&["volume", "serve", "disk"], more].concat());
    let answer = serve(&command);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert_eq!(answer.out.trim(), made["bytes"].to_string());
    let answer = serve(&[&["--control", "socket"], &command[..]].concat());
    assert_eq!(answer.status, 2, "{}", answer.err);
    assert!(answer.err.contains("takes no orders"), "{}", answer.err);
}
