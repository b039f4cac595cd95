//! Are the bytes of files on Btrfs where `traxtent file` says? Btrfs has addresses of its own, so
//! the bytes of the image are compared with those of the files.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use rustix::fs::{FallocateFlags, fallocate};
use traxtent_check::target::HostPaths;
use traxtent_file::{FileSystem, file_extents};
use traxtent_units::Rng;

use crate::attach::Loop;
use crate::disk::{Disk, MAP, Said, needs_mounts, random, said, write_in_turns};
use crate::server::{TRAXTENT, quick_folder};

const SEED: u64 = 35;
const MIB: u64 = 1 << 20;

/// Skips the test if no Btrfs can be made and mounted.
macro_rules! needs_btrfs {
    () => {
        needs_mounts!();
        testkit::tool!("mkfs.btrfs");
        if !fs::read_to_string("/proc/filesystems").is_ok_and(|known| known.contains("btrfs")) {
            testkit::skip!("this kernel has no Btrfs");
        }
    };
}

/// Makes and mounts a Btrfs of `mib` MiB, or returns the reason why that is not possible.
///
/// mkfs.btrfs examines all mounts of the machine, and fails if the server of one of them has just
/// been killed, as other tests do. It is then run again.
fn btrfs(mib: u64, settings: &[&str], options: &str) -> Result<Disk, String> {
    let mkfs = [&["mkfs.btrfs"], settings].concat();
    for _ in 0..100 {
        match Disk::try_with(mib, &mkfs, options) {
            Err(why) if why.contains("cannot check mount status") => {
                thread::sleep(Duration::from_millis(200));
            }
            made => return made,
        }
    }
    Err("a mount of this machine has no server".to_owned())
}

/// Runs a verb of `traxtent file` on files of a disk.
fn file(disk: &Disk, words: &[&str], names: &[&str]) -> Said {
    let mut command = Command::new(TRAXTENT);
    command.arg("file").args(words).args(["--map", MAP]);
    command.args(names.iter().map(|name| disk.path(name)));
    said(command)
}

/// Asserts that the image has a file's content at the places that are shown, and that the content
/// between the extents is zeros. Returns the number of extents and of their bytes.
fn assert_in_image(disk: &Disk, name: &str, content: &[u8], context: &str) -> (usize, u64) {
    let path = disk.path(name);
    let extents = file_extents(&File::open(&path).unwrap()).unwrap();
    let system = FileSystem::of(&path, &HostPaths::default()).unwrap();
    let image = File::open(disk.outside("image")).unwrap();
    let in_content = |byte: u64| (byte as usize).min(content.len());
    let (mut at, mut bytes) = (0, 0);
    for extent in &extents {
        bytes += extent.file.end - extent.file.start;
        let start = if extent.is_unwritten {
            extent.file.end
        } else {
            extent.file.start
        };
        let is_hole = content[in_content(at)..in_content(start)]
            .iter()
            .all(|byte| *byte == 0);
        assert!(is_hole, "{context}, {name}: data before {extent:?}");
        at = start;
        let pieces = system.on_drives(extent.device()).unwrap();
        for piece in pieces.iter().filter(|_| !extent.is_unwritten) {
            let mut found = vec![0; (piece.bytes.end - piece.bytes.start) as usize];
            image.read_exact_at(&mut found, piece.bytes.start).unwrap();
            let expected = &content[in_content(at)..in_content(at + found.len() as u64)];
            at += found.len() as u64;
            // The last block can extend beyond the end of the file.
            let mut pairs = found.iter().zip(expected);
            let difference = pairs.position(|(found, expected)| found != expected);
            assert_eq!(
                difference, None,
                "{context}, {name}: {piece:?} of {extent:?}"
            );
        }
        assert_eq!(at, extent.file.end, "{context}, {name}: {extent:?}");
    }
    let is_hole = content[in_content(at)..].iter().all(|byte| *byte == 0);
    assert!(is_hole, "{context}, {name}: data after the last extent");
    (extents.len(), bytes)
}

/// Writes a file that extends over several chunks, two in turns, one with holes and unwritten
/// space, a reflink, and a file that is small enough to be stored within metadata. Returns the
/// names and contents of all but the last.
fn write_files(disk: &Disk, rng: &mut Rng) -> Vec<(&'static str, Vec<u8>)> {
    let [large, a, b] = [80 << 20, 3 << 20, (3 << 20) - 1000].map(|count| random(rng, count));
    let named = |name: &str, content: &Vec<u8>| (disk.path(name), content.clone());
    // Chunks are whole MiB, so these parts fill one to its end, and go on in the next one.
    write_in_turns(&[named("large", &large)], 1 << 20, false).unwrap();
    write_in_turns(&[named("a", &a), named("b", &b)], 28 << 10, false).unwrap();

    let mut sparse = vec![0; 2 << 20];
    let file = File::create(disk.path("sparse")).unwrap();
    file.set_len(2 << 20).unwrap();
    for at in [64 << 10, 600 << 10] {
        let part = random(rng, 100 << 10);
        file.write_all_at(&part, at).unwrap();
        sparse[at as usize..at as usize + part.len()].copy_from_slice(&part);
    }
    fallocate(&file, FallocateFlags::KEEP_SIZE, 2 << 20, MIB).unwrap();

    let mut reflink = Command::new("cp");
    reflink.arg("--reflink=always").arg(disk.path("a"));
    reflink.arg(disk.path("reflink"));
    let copied = said(reflink);
    assert_eq!(copied.status, Some(0), "{copied:?}");
    fs::write(disk.path("small"), "small").unwrap();
    rustix::fs::sync();
    vec![
        ("large", large),
        ("reflink", a.clone()),
        ("a", a),
        ("b", b),
        ("sparse", sparse),
    ]
}

/// Asserts that the image has the content of files at the places that are shown, and that `show`
/// counts their bytes. Returns the number of extents of each file.
fn assert_shown(disk: &Disk, contents: &[(&str, Vec<u8>)], context: &str) -> Vec<usize> {
    let names: Vec<&str> = contents.iter().map(|(name, _)| *name).collect();
    let files = contents.iter().zip(disk.show(&names));
    let counts = files.map(|((name, content), shown)| {
        let (extents, bytes) = assert_in_image(disk, name, content, context);
        assert_eq!(shown["bytes"], bytes, "{context}: {shown}");
        extents
    });
    let counts = counts.collect();
    eprintln!("{context}: {names:?} have {counts:?} extents");
    counts
}

/// On Btrfs with the profiles single and DUP, and with mixed chunks: are the bytes of files in the
/// image at the offsets that are shown, also after a balance has moved them? Does `show` count
/// these bytes, and does `read` return the content?
#[test]
fn the_image_has_the_bytes_where_they_are_shown() {
    needs_btrfs!();
    let balance = testkit::tool!("btrfs");
    eprintln!("seed {SEED}");
    let cases: [(&str, &[&str]); 3] = [
        ("single", &["-d", "single", "-m", "dup"]),
        ("DUP", &["-d", "dup", "-m", "dup"]),
        ("mixed", &["--mixed"]),
    ];
    for (context, settings) in cases {
        let disk = btrfs(1024, settings, "").expect("this kernel mounts it");
        let contents = write_files(&disk, &mut Rng::new(SEED));
        let counts = assert_shown(&disk, &contents, context);
        assert!(counts[2] > 50, "{context}: {counts:?}");
        let small = file_extents(&File::open(disk.path("small")).unwrap());
        assert_eq!(small.unwrap(), [], "{context}");

        // Two copies need more space for a balance than this file system has.
        if context == "single" {
            let mut command = Command::new(&balance);
            command.args(["balance", "start", "-d"]).arg(disk.root());
            let balanced = said(command);
            assert_eq!(balanced.status, Some(0), "{balanced:?}");
            rustix::fs::sync();
            assert_shown(&disk, &contents, "balanced");
        }
        let mut read = Command::new(TRAXTENT);
        read.args(["file", "read", "--map", MAP]);
        let read = read.args([disk.path("b")]).output().unwrap();
        assert!(read.status.success(), "{context}: {read:?}");
        assert!(read.stdout == contents[3].1, "{context}: other bytes");
    }
}

/// Are compressed files left out with a line each, with exit status 1, while the others are shown?
/// Does `read` refuse them? Do `realign` and `allocate` refuse all files on Btrfs?
#[test]
fn compressed_files_are_left_out() {
    needs_btrfs!();
    let disk = btrfs(256, &[], "compress-force=zstd").expect("this kernel mounts it");
    fs::write(disk.path("text"), "many words ".repeat(100_000)).unwrap();
    let plain = random(&mut Rng::new(SEED), 1 << 20);
    fs::write(disk.path("plain"), &plain).unwrap();
    rustix::fs::sync();
    let why = "its data is compressed, so its bytes have no place of their own on the device";
    let text = disk.path("text");
    let text = text.display();

    let shown = file(&disk, &["show", "--json"], &["text", "plain"]);
    assert_eq!(shown.status, Some(1), "{shown:?}");
    let rows: serde_json::Value = serde_json::from_str(&shown.out).expect("it is JSON");
    assert_eq!(rows.as_array().map(Vec::len), Some(1), "{shown:?}");
    assert_eq!(rows[0]["bytes"], MIB);
    let line = format!("traxtent: warning: {text}: left out: {why}\n");
    assert!(shown.err.contains(&line), "{shown:?}");
    assert!(
        shown.err.ends_with("traxtent: 1 of 2 files left out\n"),
        "{shown:?}"
    );

    let read = file(&disk, &["read"], &["text"]);
    let line = format!("traxtent: {text}: cannot find its blocks: {why}\n");
    assert_eq!(read.status, Some(3), "{read:?}");
    // The file system is smaller than the drive of the map.
    assert!(read.err.ends_with(&line), "{read:?}");

    let other = "btrfs cannot exchange blocks between files at different offsets; only ext4 can";
    for words in [&["realign", "--trust-map"][..], &["realign", "--dry-run"]] {
        for name in ["text", "plain"] {
            let moved = file(&disk, words, &[name]);
            let line = format!("{}: left alone: {other}\n", disk.path(name).display());
            assert_eq!((moved.status, &moved.out), (Some(1), &line), "{moved:?}");
        }
    }
    let made = file(
        &disk,
        &["allocate", "--quiet", "--trust-map", "--size", "1M"],
        &["new"],
    );
    let line = format!("traxtent: {}: {other}\n", disk.path("new").display());
    assert_eq!((made.status, made.err), (Some(2), line));
    assert!(!disk.path("new").exists());
    assert!(fs::read(disk.path("plain")).unwrap() == plain);
}

/// Are files left out if their profile is RAID, even on one device, and refused if Btrfs has
/// several devices?
#[test]
fn raid_and_several_devices_are_refused() {
    needs_btrfs!();
    let disk = match btrfs(512, &["-d", "raid0"], "") {
        Ok(disk) => disk,
        Err(why) => testkit::skip!("no RAID0 on one device: {why}"),
    };
    fs::write(disk.path("file"), vec![1; 1 << 20]).unwrap();
    let shown = file(&disk, &["show"], &["file"]);
    let why = "its data has the Btrfs profile RAID0; only single and DUP are supported";
    assert_eq!(
        (shown.status, shown.out.as_str()),
        (Some(1), ""),
        "{shown:?}"
    );
    assert!(
        shown.err.contains(&format!("file: left out: {why}\n")),
        "{shown:?}"
    );

    let folder = quick_folder();
    let image = folder.path().join("second");
    File::create(&image).unwrap().set_len(512 << 20).unwrap();
    let losetup = testkit::tool("losetup").expect("its presence was checked");
    let second = Loop::attach(&losetup, &image).expect("a loop device is free");
    let node = second.path().display().to_string();
    let raid1 = ["-d", "raid1", "-m", "raid1", &node];
    let disk = btrfs(512, &raid1, "").expect("this kernel mounts it");
    fs::write(disk.path("file"), vec![1; 1 << 20]).unwrap();
    let name = disk.path("file");
    let line = format!(
        "traxtent: {}: its Btrfs has 2 devices; only one is supported\n",
        name.display()
    );
    for words in [&["show"][..], &["read"], &["realign", "--trust-map"]] {
        let answer = file(&disk, words, &["file"]);
        assert_eq!((answer.status, &answer.err), (Some(3), &line), "{answer:?}");
    }
    drop(disk);
}
