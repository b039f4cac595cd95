//! Are unusual files moved without a change, or left alone with a line each?

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::{FallocateFlags, fallocate};
use traxtent_file::file_extents;
use traxtent_units::Rng;

use crate::disk::{
    BLOCK, Disk, EXT4, MAP, Said, assert_content, needs_mounts, random, said, shuffle,
};

const SEED: u64 = 7;
const BYTES: usize = 3 << 20;

/// Creates a fragmented file. Returns its content.
fn fragmented(path: &Path, rng: &mut Rng) -> Vec<u8> {
    let content = random(rng, BYTES - 1000);
    fs::write(path, &content).expect("there is room");
    shuffle(path, 7, rng).expect("ext4 exchanges blocks");
    content
}

/// Returns for each block of a file whether it is a hole (`.`), unwritten (`u`) or written (`w`).
fn kinds(path: &Path) -> Vec<u8> {
    let mut kinds = Vec::new();
    for extent in file_extents(&File::open(path).unwrap()).unwrap() {
        let (start, end) = (extent.file.start / BLOCK, extent.file.end / BLOCK);
        kinds.resize(end as usize, b'.');
        let kind = if extent.is_unwritten { b'u' } else { b'w' };
        kinds[start as usize..].fill(kind);
    }
    kinds
}

/// Punches holes, preallocates space after the end, with and without extending the file, and makes
/// links. Are the files moved onto tracks, with the same content, holes, unwritten parts, times and
/// links?
#[test]
fn holes_and_links_stay() {
    needs_mounts!();
    eprintln!("seed {SEED}");
    let mut disk = Disk::new(128);
    let mut rng = Rng::new(SEED);
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let after = FallocateFlags::KEEP_SIZE;
    let none = FallocateFlags::empty();
    let cases: [(&str, FallocateFlags, u64, u64); 6] = [
        ("plain", none, 0, 1),
        ("hole", punch, 300_000, 900_000),
        ("hole-first", punch, 0, 70_000),
        ("hole-last", punch, BYTES as u64 - 200_000, 200_000),
        ("unwritten", none, BYTES as u64 + 40_000, 500_000),
        ("after-end", after, BYTES as u64, 2 << 20),
    ];
    let mut contents = Vec::new();
    for (name, flags, start, count) in cases {
        let path = disk.path(name);
        fragmented(&path, &mut rng);
        let file = File::options().write(true).open(&path).unwrap();
        fallocate(&file, flags, start, count).unwrap();
        file.sync_all().unwrap();
        contents.push((name, fs::read(&path).unwrap(), kinds(&path)));
    }
    let sparse = disk.path("sparse");
    let content = fragmented(&sparse, &mut rng);
    let file = File::options().write(true).open(&sparse).unwrap();
    file.set_len(64 << 20).unwrap();
    drop(file);
    contents.push((
        "sparse",
        [content, vec![0; (64 << 20) - BYTES + 1000]].concat(),
        kinds(&sparse),
    ));
    fs::hard_link(disk.path("plain"), disk.path("other-name")).unwrap();
    symlink("hole", disk.path("symlink")).unwrap();
    let times: Vec<_> = contents
        .iter()
        .map(|(name, ..)| time(&disk.path(name)))
        .collect();

    let said = disk.realign(&["plain", "other-name", "symlink", ""]);
    assert_eq!(said.status, Some(0), "{said:?}");
    assert_eq!(
        said.out.lines().count(),
        contents.len(),
        "each file once: {}",
        said.out
    );
    assert!(!said.out.contains("ended early"), "{}", said.out);
    for name in ["plain", "hole", "sparse", "after-end"] {
        let share = disk.show(&[name])[0]["whole_share"].as_f64().unwrap();
        assert!(share > 0.7, "{name}: {share}: {}", said.out);
    }
    for (place, (name, content, kinds_before)) in contents.iter().enumerate() {
        let path = disk.path(name);
        assert_content(&path, content, "after the move");
        assert!(
            kinds(&path) == *kinds_before,
            "{name}: its holes or unwritten parts differ"
        );
        assert_eq!(time(&path), times[place], "{name}: its modification time");
    }
    assert_eq!(fs::metadata(disk.path("plain")).unwrap().nlink(), 2);
    disk.remount();
    for (name, content, _) in &contents {
        assert_content(&disk.path(name), content, "after an unmount");
    }
    disk.assert_clean();
}

fn time(path: &Path) -> (i64, i64) {
    let meta = fs::metadata(path).unwrap();
    (meta.mtime(), meta.mtime_nsec())
}

/// Asserts that a file is left alone for a reason, with one line for it and exit status 1, and that
/// its content and place are the same.
fn assert_left_alone(disk: &Disk, name: &str, why: &str) {
    let path = disk.path(name);
    let is_file = path.is_file();
    let state = || is_file.then(|| (fs::read(&path).unwrap(), extents(&path)));
    let before = state();
    let Said { status, out, err } = disk.realign(&[name]);
    let line = format!("{}: left alone: {why}\n", path.display());
    assert_eq!((status, out.as_str()), (Some(1), line.as_str()), "{err}");
    let line = "traxtent: 1 of 1 file could not be moved, or only in part\n";
    assert_eq!(err, line);
    assert!(before == state(), "{name} has changed");
}

fn extents(path: &Path) -> Vec<traxtent_file::FileExtent> {
    file_extents(&File::open(path).unwrap()).unwrap()
}

fn run(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Are files that must not or cannot be moved left alone, with the reason? They are immutable,
/// append-only, running, in use as swap, stored in their inode, encrypted, or not regular files.
#[test]
fn protected_files_are_left_alone() {
    needs_mounts!();
    eprintln!("seed {SEED}");
    let mkfs = [&EXT4[..], &["-O", "inline_data,encrypt"]].concat();
    let mut disk = Disk::with(128, &mkfs, "");
    let mut rng = Rng::new(SEED);
    let text = |name: &str| disk.path(name).display().to_string();
    for (flag, name) in [("+i", "immutable"), ("+a", "append-only")] {
        fragmented(&disk.path(name), &mut rng);
        if run("chattr", &[flag, &text(name)]) {
            assert_left_alone(&disk, name, "it is immutable or append-only");
            run("chattr", &["-ia", &text(name)]);
        }
    }

    fs::write(disk.path("inline"), "short").unwrap();
    assert_left_alone(&disk, "inline", "its data is stored within its inode");
    assert!(run("mkfifo", &[&text("pipe")]));
    assert_left_alone(&disk, "pipe", "it is not a regular file");

    let swap = disk.path("swap");
    fs::write(&swap, vec![0; BYTES]).unwrap();
    shuffle(&swap, 7, &mut rng).unwrap();
    fs::set_permissions(&swap, fs::Permissions::from_mode(0o600)).unwrap();
    if run("mkswap", &[&text("swap")]) && run("swapon", &[&text("swap")]) {
        let _swap = UsedSwap(text("swap"));
        assert_left_alone(&disk, "swap", "it is a swap file");
    } else {
        eprintln!("no swap here");
    }

    let sleep = testkit::tool("sleep").unwrap();
    let program = disk.path("program");
    let mut bytes = fs::read(sleep).unwrap();
    bytes.resize(BYTES, 0);
    fs::write(&program, bytes).unwrap();
    shuffle(&program, 7, &mut rng).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    // A program cannot begin while another process that was started meanwhile holds it open.
    let running = (0..100).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        Command::new(&program).arg("1000").spawn().ok()
    });
    let running = Running(running.expect("it is a program"));
    assert_left_alone(&disk, "program", "it is a program that is running, or swap");
    drop(running);
    let said = disk.realign(&["program"]);
    assert_eq!(said.status, Some(0), "{said:?}");

    if encrypted(&disk.path("secret")) {
        fs::write(disk.path("secret/file"), random(&mut rng, BYTES)).unwrap();
        rustix::fs::sync();
        assert_left_alone(&disk, "secret/file", "it is encrypted");
    } else {
        eprintln!("no encryption here");
    }
    disk.assert_clean();
}

/// A swap file that is in use.
struct UsedSwap(String);

impl Drop for UsedSwap {
    fn drop(&mut self) {
        run("swapoff", &[&self.0]);
    }
}

/// A running program.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Creates a directory whose files are encrypted. Returns whether that is possible.
fn encrypted(folder: &Path) -> bool {
    fs::create_dir(folder).unwrap();
    let Some(xfs_io) = testkit::tool("xfs_io") else {
        return false;
    };
    let name = folder.display().to_string();
    let mut add = Command::new(&xfs_io);
    add.args(["-c", "add_enckey", &name]);
    let Ok(mut child) = add.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() else {
        return false;
    };
    child.stdin.take().unwrap().write_all(&[7; 64]).unwrap();
    let said = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let Some(key) = said.split_whitespace().last() else {
        return false;
    };
    let policy = format!("set_encpolicy {key}");
    let xfs_io = xfs_io.display().to_string();
    run(&xfs_io, &["-c", &policy, &name]) && fs::write(folder.join("try"), "x").is_ok()
}

/// Is a file left alone, with the reason, on file systems that cannot exchange blocks, or could be
/// damaged by a crash meanwhile? Does `allocate` create a complete file there, or none?
#[test]
fn other_file_systems_are_left_alone() {
    needs_mounts!();
    let other = "cannot exchange blocks between files at different offsets; only ext4 can";
    let kernel = "its file system cannot exchange blocks (bigalloc or data=journal)";
    let small = "its file system has blocks of 1024 bytes; only blocks of 4096 bytes, the size of \
                 a page, can be exchanged freely";
    let fast = "its file system uses fast commits, which do not record exchanges, so a crash \
                meanwhile could damage it";
    let unjournaled = "its file system has no journal, so a crash meanwhile could damage it";
    let cases: [(&str, u64, &[&str], &str, String); 8] = [
        ("ext2", 32, &["-t", "ext2"], "", format!("ext2 {other}")),
        ("ext3", 32, &["-t", "ext3"], "", format!("ext3 {other}")),
        (
            "1 KiB",
            32,
            &["-t", "ext4", "-b", "1024"],
            "",
            small.to_owned(),
        ),
        (
            "bigalloc",
            64,
            &["-t", "ext4", "-b", "4096", "-O", "bigalloc"],
            "",
            kernel.to_owned(),
        ),
        (
            "data",
            64,
            &["-t", "ext4", "-b", "4096"],
            "data=journal",
            kernel.to_owned(),
        ),
        (
            "bare",
            32,
            &["-t", "ext4", "-b", "4096", "-O", "^has_journal"],
            "",
            unjournaled.to_owned(),
        ),
        (
            "fast",
            32,
            &["-t", "ext4", "-b", "4096", "-O", "fast_commit"],
            "",
            fast.to_owned(),
        ),
        ("xfs", 320, &[], "", format!("xfs {other}")),
    ];
    for (name, mib, settings, options, why) in cases {
        let mkfs = match name {
            "xfs" => vec!["mkfs.xfs"],
            _ => [&["mke2fs"], settings].concat(),
        };
        let mut disk = match Disk::try_with(mib, &mkfs, options) {
            Ok(disk) => disk,
            Err(said) => {
                eprintln!("{name}: cannot be tested here: {said}");
                continue;
            }
        };
        // Two files in turns, because blocks cannot be exchanged here.
        let mut rng = Rng::new(SEED);
        let files = ["file", "other"].map(|name| (disk.path(name), random(&mut rng, BYTES)));
        crate::disk::write_in_turns(&files, 28 << 10, false).unwrap();
        assert_left_alone(&disk, "file", &why);
        let mut command = Command::new(crate::server::TRAXTENT);
        command.args(["file", "allocate", "--quiet", "--trust-map", "--map", MAP]);
        command.args(["--size", "1M"]).arg(disk.path("new"));
        let answer = said(command);
        let made = fs::metadata(disk.path("new")).map_or(0, |meta| meta.len());
        match answer.status {
            Some(0) => assert_eq!((made, answer.err.as_str()), (1 << 20, ""), "{name}"),
            Some(2 | 3) => assert_eq!((made, answer.err.lines().count()), (0, 1), "{name}"),
            _ => panic!("{name}: {answer:?}"),
        }
        if name != "xfs" {
            disk.assert_clean();
        }
    }
}
