//! Are bad input and errors of the system answered with one clear line and the right exit status,
//! and is nothing lost?

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use traxtent_file::file_extents;
use traxtent_map::{Identity, MapFile, MapSource, TrackMap};
use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_units::{Rng, Sectors};

use crate::attach::Attached;
use crate::disk::{
    Disk, EXT4, MAP, Said, Stop, assert_content, needs_mounts, random, realign_command, said,
    shuffle,
};
use crate::server::{Server, TRAXTENT, argument, quick_folder};

const SEED: u64 = 11;
const BYTES: usize = 3 << 20;

/// Creates a fragmented file. Returns its content.
fn fragmented(path: &Path, bytes: usize, rng: &mut Rng) -> Vec<u8> {
    let content = random(rng, bytes);
    fs::write(path, &content).expect("there is room");
    shuffle(path, 7, rng).expect("ext4 exchanges blocks");
    content
}

/// Asserts the exit status and the only line of an answer.
fn assert_refused(answer: &Said, status: i32, says: &str) {
    assert_eq!(answer.status, Some(status), "{answer:?}");
    assert_eq!(answer.out, "", "{answer:?}");
    assert_eq!(answer.err, format!("traxtent: {says}\n"));
}

/// Writes the first `count` tracks of the drive as a list, with every boundary between them `shift`
/// sectors too early.
fn list_of_tracks(path: &Path, count: usize, shift: u64) {
    let drive = Drive::new(&builtin(MAP).unwrap()).unwrap();
    let mut text = String::from("first_lbn,sectors\n");
    let sizes: Vec<u32> = drive.geometry().track_sizes().take(count).collect();
    let (mut first, last) = (0, sizes.len() - 1);
    for (track, size) in sizes.into_iter().enumerate() {
        let size = u64::from(size);
        let size = match track {
            0 => size - shift,
            _ if track == last => size + shift,
            _ => size,
        };
        text += &format!("{first},{size}\n");
        first += size;
    }
    fs::write(path, text).unwrap();
}

/// Are a short map, a map of a drive of another size, a missing file, a file without a device, a
/// user who is not root, and a read-only mount answered with one line, and is the file not moved?
#[test]
fn refusals_say_why() {
    needs_mounts!();
    eprintln!("seed {SEED}");
    let mut disk = Disk::new(96);
    let mut rng = Rng::new(SEED);
    let path = disk.path("file");
    let content = fragmented(&path, BYTES, &mut rng);
    let places = file_extents(&File::open(&path).unwrap()).unwrap();
    let name = path.display();
    let device = disk.device().display().to_string();

    let short = disk.outside("short.csv");
    list_of_tracks(&short, 40, 0);
    let end = 40 * 528;
    let answer = said(realign_command(
        std::slice::from_ref(&path),
        &short.display().to_string(),
    ));
    let says = format!("{device}: the track map ends before LBN {end}; the file extends beyond it");
    assert_refused(&answer, 2, &says);

    let mut command = Command::new(TRAXTENT);
    command.args(["file", "realign", "--map", MAP]).arg(&path);
    let says = format!(
        "{MAP}: has 23086806 LBNs of 512 bytes, but the drive has {} LBNs of 512 bytes",
        96 << 11
    );
    assert_refused(&said(command), 2, &says);

    let answer = disk.realign(&["no-such-file"]);
    let absent = disk.path("no-such-file");
    let says = format!("{}: No such file or directory", absent.display());
    assert_refused(&answer, 3, &says);

    let answer = said(realign_command(&["/dev/null".into()], MAP));
    let says = "/dev/null: its file system is not on a block device of its own";
    assert_refused(&answer, 3, says);

    if let Some(setpriv) = testkit::tool("setpriv") {
        // The user may enter the directory, and owns the file, but must not read the device.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o777);
        fs::set_permissions(disk.outside(""), open).unwrap();
        std::os::unix::fs::chown(&path, Some(65534), None).unwrap();
        // The command may be in a directory that others cannot enter.
        let own = disk.outside("traxtent");
        fs::copy(TRAXTENT, &own).unwrap();
        let mut command = Command::new(setpriv);
        command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
        command
            .arg(&own)
            .args(["file", "realign", "--quiet", "--trust-map", "--map", MAP]);
        command.arg(&path);
        let says = format!("{name}: {device} cannot be used: Permission denied");
        assert_refused(&said(command), 2, &says);
    }

    disk.unmount();
    disk.mount("ro").unwrap();
    let mut dry_run = Command::new(TRAXTENT);
    dry_run.args(["file", "realign", "--quiet", "--dry-run", "--map", MAP]);
    dry_run.arg(&path);
    let says = format!("{name}: left alone: its file system is mounted read-only\n");
    for answer in [said(dry_run), disk.realign(&["file"])] {
        let answer = (answer.status, answer.out);
        assert_eq!(answer, (Some(1), says.clone()));
    }
    assert_eq!(file_extents(&File::open(&path).unwrap()).unwrap(), places);
    assert_content(&path, &content, "at the end");
    disk.assert_clean();
}

/// If `--extra` is too small for a whole track, do a forecast and a run name the least that works,
/// and does it work? Is the file left alone otherwise?
#[test]
fn too_little_temporary_space() {
    needs_mounts!();
    eprintln!("seed {SEED}");
    let mut disk = Disk::new(96);
    let path = disk.path("file");
    let content = fragmented(&path, BYTES, &mut Rng::new(SEED));
    let run = |extra: &str, more: &[&str]| {
        let mut command = realign_command(std::slice::from_ref(&path), MAP);
        command.args(["--extra", extra]).args(more);
        said(command)
    };
    // 528 sectors, the longest track, are 66 blocks.
    let least = 2 * 66 * 4096;
    let says = format!(
        "{}: left alone: temporary space of {} bytes is too small; use --extra {least} or more\n",
        path.display(),
        least - 1
    );
    let places = file_extents(&File::open(&path).unwrap()).unwrap();
    let (enough, less) = (least.to_string(), (least - 1).to_string());
    for more in [&["--dry-run"][..], &[]] {
        let answer = run(&less, more);
        assert_eq!((answer.status, answer.out), (Some(1), says.clone()));
    }
    assert_eq!(file_extents(&File::open(&path).unwrap()).unwrap(), places);
    for more in [&["--dry-run"][..], &[]] {
        let answer = run(&enough, more);
        assert_eq!(answer.status, Some(0), "{answer:?}");
    }
    assert_ne!(file_extents(&File::open(&path).unwrap()).unwrap(), places);
    assert_content(&path, &content, "at the end");
    disk.assert_clean();
}

/// Files and directories are removed while `show` and `realign` walk through the directory above
/// them. Do both go on without them? Is a named file that is missing an error?
#[test]
fn files_that_disappear() {
    needs_mounts!();
    let mut disk = Disk::new(64);
    let top = disk.path("top");
    fs::create_dir(&top).unwrap();
    fs::write(top.join("stays"), [1; 4096]).unwrap();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0.. {
                let folder = top.join(format!("folder-{number}"));
                fs::create_dir(&folder).unwrap();
                for file in 0..20 {
                    fs::write(folder.join(file.to_string()), [2; 4096]).unwrap();
                }
                fs::remove_dir_all(&folder).unwrap();
                if ended.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let _stop = Stop(&ended);
        for _ in 0..testkit::repeats(30).min(300) {
            for verb in [&["show"][..], &["realign", "--dry-run"]] {
                let mut command = Command::new(TRAXTENT);
                command.arg("file").args(verb).args(["--map", MAP]);
                let answer = said({
                    command.arg(&top);
                    command
                });
                assert_eq!(answer.status, Some(0), "{verb:?}: {answer:?}");
                assert!(answer.out.contains("top/stays"), "{answer:?}");
            }
        }
    });
    let mut named = Command::new(TRAXTENT);
    named.args(["file", "show", "--map", MAP]);
    named.args([&top, &disk.path("absent")]);
    assert_eq!(said(named).status, Some(3));
    disk.assert_clean();
}

/// Is a map refused by name that is an image, or that is for a device which does not exist?
#[test]
fn maps_that_are_none() {
    needs_mounts!();
    let disk = Disk::new(96);
    let path = disk.path("file");
    fs::write(&path, [1; 4096]).unwrap();
    let image = disk.outside("image").display().to_string();
    let absent = format!("/dev/no-such-device={MAP}");
    for (map, says) in [
        (
            &image,
            format!(
                "{image}: is neither a track map nor a profile of a drive (it holds an ext file system)"
            ),
        ),
        (
            &absent,
            format!("--map {absent}: there is no device /dev/no-such-device"),
        ),
    ] {
        let mut command = Command::new(TRAXTENT);
        command.args(["file", "show", "--map", map]).arg(&path);
        assert_refused(&said(command), 2, &says);
    }
}

/// If the drive's size or serial number is not that in the map, does `show` print its figures with
/// one warning for all files? Does it print none if they are the same? Does the same hold for verbs
/// that do not time the drive?
#[test]
fn maps_of_other_drives_cause_a_warning() {
    needs_mounts!();
    let drive = Drive::new(&builtin(MAP).unwrap()).unwrap();
    let bytes = drive.geometry().capacity().0 * 512;
    let show = |disk: &Disk, map: &str| {
        let mut command = Command::new(TRAXTENT);
        command.args(["file", "show", "--json", "--map", map]);
        command.args([disk.path("a"), disk.path("b")]);
        let shown = said(command);
        assert_eq!(shown.status, Some(0), "{shown:?}");
        let rows: serde_json::Value = serde_json::from_str(&shown.out).expect("it is JSON");
        assert_eq!(rows.as_array().map(Vec::len), Some(2), "{shown:?}");
        shown.err
    };
    for (size, differs) in [(bytes, false), (bytes + 512 * 4096, true)] {
        let disk = Disk::sized(size, &EXT4, 64);
        let device = disk.device().display().to_string();
        for name in ["a", "b"] {
            fs::write(disk.path(name), vec![1; 1 << 20]).expect("there is room");
            File::open(disk.path(name)).unwrap().sync_all().unwrap();
        }
        let lbns = size / 512;
        let warning = |map: &str, problem: &str| {
            format!("traxtent: warning: {map}: {problem}; its tracks are not those of {device}\n")
        };
        let problem =
            format!("has 23086806 LBNs of 512 bytes, but the drive has {lbns} LBNs of 512 bytes");
        let expected = if differs {
            warning(MAP, &problem)
        } else {
            String::new()
        };
        assert_eq!(show(&disk, MAP), expected);
        for words in [
            &["realign", "--dry-run"][..],
            &["realign", "--trust-map"],
            &["read"],
        ] {
            let mut command = Command::new(TRAXTENT);
            command.arg("file").args(words).args(["--map", MAP]);
            command.args([disk.path("a"), disk.path("b")]);
            let answer = said(command).err;
            assert!(answer.starts_with(&expected), "{words:?}: {answer}");
            assert_eq!(answer.contains("warning"), differs, "{words:?}: {answer}");
        }

        // A map file that names its drive. A loop device has no serial number.
        let file = disk.outside("named.map");
        let tracks = TrackMap::from_sizes(drive.geometry().track_sizes());
        let identity = Identity {
            capacity: Sectors(lbns),
            logical_bytes: 512,
            physical_bytes: 512,
            ..Identity::default()
        };
        let named = MapFile::new(identity, MapSource::Model, tracks);
        let name = file.display().to_string();
        fs::write(&file, named.to_text()).unwrap();
        assert_eq!(show(&disk, &name), "");
        let mut other = named.clone();
        other.identity.serial = "4711".to_owned();
        fs::write(&file, other.to_text()).unwrap();
        let problem =
            "belongs to another drive: its serial number is 4711, this drive's is unknown";
        assert_eq!(show(&disk, &name), warning(&name, problem));
    }
}

/// Moves a file on a full file system, and then repeatedly while another thread fills the file
/// system and frees the space. Does the command end with exit status 0 or 1 and one line per file,
/// with nothing lost? Does as much data fit afterwards as before?
#[test]
fn a_full_file_system_loses_nothing() {
    needs_mounts!();
    eprintln!("seed {SEED}");
    let mut disk = Disk::new(64);
    let mut rng = Rng::new(SEED);
    let path = disk.path("file");
    let content = fragmented(&path, 12 << 20, &mut rng);
    let filler = disk.path("filler");
    // A failed write does not mean that no block is free: ext4 reserves blocks for the metadata of
    // delayed writes, more of them on some machines, and frees them when the data is written.
    let fill = || {
        let mut file = File::create(&filler).unwrap();
        let (mut written, mut in_vain) = (0, 0);
        loop {
            let before = written;
            for size in [64 << 10, 4 << 10] {
                while std::io::Write::write_all(&mut file, &[7; 64 << 10][..size]).is_ok() {
                    written += size;
                }
            }
            let _ = file.sync_all();
            // A busy machine frees them later.
            in_vain = if written == before { in_vain + 1 } else { 0 };
            if in_vain == 3 {
                return written;
            }
            if in_vain > 0 {
                thread::sleep(Duration::from_millis(100));
            }
        }
    };
    let full = fill();
    // A forecast and a run agree that the file stays where it is, and say why.
    let mut dry_run = Command::new(TRAXTENT);
    dry_run.args(["file", "realign", "--quiet", "--dry-run", "--map", MAP]);
    dry_run.arg(&path);
    for answer in [said(dry_run), disk.realign(&["file"])] {
        assert_eq!(answer.status, Some(1), "{answer:?}");
        assert_eq!(answer.out.lines().count(), 1, "{}", answer.out);
        assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
        assert!(
            answer.out.contains("left alone: the file system "),
            "{}",
            answer.out
        );
    }
    assert_content(&path, &content, "on a full file system");

    let ended = AtomicBool::new(false);
    let mut ended_early = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                fill();
                fs::remove_file(&filler).unwrap();
            }
        });
        let _stop = Stop(&ended);
        for _ in 0..testkit::repeats(5).min(100) {
            let answer = disk.realign(&["file"]);
            ended_early += u64::from(answer.status == Some(1));
            assert!(matches!(answer.status, Some(0 | 1)), "{answer:?}");
            let lines = (answer.out.lines().count(), answer.err.lines().count());
            assert!(matches!(lines, (1, 0 | 1)), "{answer:?}");
            assert_content(&path, &content, "while it was moved");
            let _ = shuffle(&path, 7, &mut rng);
        }
    });
    eprintln!("{ended_early} runs ended early");
    disk.remount();
    assert_content(&path, &content, "after an unmount");
    let again = fill();
    assert!(
        again + (1 << 20) >= full,
        "{again} bytes fit, {full} did before"
    );
    disk.assert_clean();
}

/// Names a map without `--trust-map` for a device that is not a disk. Is that noticed before
/// anything moves, with exit status 1 and one line?
#[test]
fn a_device_that_cannot_be_timed_is_refused() {
    needs_mounts!();
    eprintln!("seed {SEED}");
    let drive = Drive::new(&builtin(MAP).unwrap()).unwrap();
    let sectors = drive.geometry().capacity().0;
    let mut disk = Disk::sized(
        sectors * 512,
        &[&EXT4[..], &["-E", "nodiscard"]].concat(),
        64,
    );
    let path = disk.path("file");
    let content = fragmented(&path, BYTES, &mut Rng::new(SEED));
    let before = file_extents(&File::open(&path).unwrap()).unwrap();
    let mut command = Command::new(TRAXTENT);
    command.args(["file", "realign", "--map", MAP]).arg(&path);
    let answer = said(command);
    let begins = format!(
        "traxtent: {}: the map cannot be tested: ",
        disk.device().display()
    );
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (Some(1), ""),
        "{answer:?}"
    );
    assert!(answer.err.starts_with(&begins), "{}", answer.err);
    assert!(
        answer
            .err
            .ends_with("; use --trust-map if the map is right\n"),
        "{}",
        answer.err
    );
    assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    assert_eq!(file_extents(&File::open(&path).unwrap()).unwrap(), before);
    assert_content(&path, &content, "at the end");
    disk.assert_clean();
}

/// Serves a drive at its own speed. Is the map of another drive of the same size noticed before
/// anything moves, with exit status 1, and is the right map accepted? This needs an idle machine.
#[test]
fn the_map_of_another_drive_is_noticed() {
    // Only in a soak.
    if testkit::repeats(1) == 1 {
        return;
    }
    if let Some(reason) = crate::attach::missing() {
        testkit::skip!("{reason}");
    }
    let folder = quick_folder();
    let wrong = folder.path().join("wrong.csv");
    list_of_tracks(&wrong, usize::MAX, 100);
    // With a cache that no command switches off, timing a boundary takes seconds.
    let profile = builtin(MAP).unwrap().with_value("cache.enabled", "false");
    let uncached = folder.path().join("uncached.toml");
    std::fs::write(&uncached, profile.unwrap().to_toml()).unwrap();
    let keys = [
        &[argument(uncached.display())][..],
        &Attached::options(folder.path()),
    ]
    .concat();
    let server = Server::start(&keys);
    let attached = Attached::new(folder.path());
    let mke2fs = testkit::tool("mke2fs").expect("its presence was checked");
    let device = attached.device().display().to_string();
    let eager = "lazy_itable_init=0,lazy_journal_init=0,nodiscard";
    crate::server::run(
        &mke2fs,
        &[
            "-q", "-t", "ext4", "-b", "4096", "-E", eager, &device, "64m",
        ],
    );
    let mount = attached.mount(&folder.path().join("mnt")).unwrap();
    let path = mount.folder().join("file");
    let content = fragmented(&path, 1 << 20, &mut Rng::new(SEED));
    let places = || file_extents(&File::open(&path).unwrap()).unwrap();
    let before = places();
    let realign = |map: &str| {
        let mut command = Command::new(TRAXTENT);
        command.args(["file", "realign", "--map", map]).arg(&path);
        said(command)
    };
    let wrong = wrong.display().to_string();
    // On a busy machine, a drive's times may not be recognized as those of a disk.
    let is_busy = |answer: &Said| answer.err.contains("the map cannot be tested: ");
    let attempt = |map: &str| {
        rustix::fs::sync();
        let answer = realign(map);
        if is_busy(&answer) {
            realign(map)
        } else {
            answer
        }
    };
    let answer = attempt(&wrong);
    if is_busy(&answer) {
        testkit::skip!("the machine is too busy to time a drive");
    }
    let begins = format!("traxtent: {wrong} is not the map of {device}: at LBN ");
    assert_eq!(
        (answer.status, answer.out.as_str()),
        (Some(1), ""),
        "{answer:?}"
    );
    assert!(answer.err.starts_with(&begins), "{}", answer.err);
    assert_eq!(answer.err.lines().count(), 1, "{}", answer.err);
    assert_eq!(places(), before);
    let answer = attempt(MAP);
    if is_busy(&answer) {
        testkit::skip!("the machine is too busy to time a drive");
    }
    assert_eq!(answer.status, Some(0), "{answer:?}");
    assert_ne!(places(), before, "{answer:?}");
    assert_content(&path, &content, "at the end");
    mount.unmount();
    crate::disk::assert_clean(attached.device());
    drop(attached);
    drop(server);
}
