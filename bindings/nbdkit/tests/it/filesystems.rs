//! Do file systems of this kernel live on a served drive, attached by nbdfuse and a loop device?

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use traxtent_core::workload::Rng;

use crate::nbdkit::{Server, key, run, sized};

/// Bytes of the largest file.
const LARGEST: u64 = 3 << 20;

/// ext4.
#[test]
fn ext4() {
    lives("ext4", &["mkfs.ext4", "-q"], &["e2fsck", "-f", "-n"]);
}

/// XFS.
#[test]
fn xfs() {
    lives("xfs", &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

/// Btrfs, which keeps checksums of all data.
#[test]
fn btrfs() {
    let check = ["btrfs", "check", "--check-data-csum"];
    lives("btrfs", &["mkfs.btrfs", "-q"], &check);
}

/// Makes a file system, fills it, unmounts and checks it, and reads all back.
fn lives(kind: &str, make: &[&str], check: &[&str]) {
    for name in [
        "nbdkit",
        "nbdfuse",
        "fusermount3",
        "losetup",
        "mount",
        make[0],
        check[0],
    ] {
        let _ = testkit::tool!(name);
    }
    for device in ["/dev/fuse", "/dev/loop-control"] {
        let opened = fs::OpenOptions::new().read(true).write(true).open(device);
        if let Err(error) = opened {
            testkit::skip!("{device} cannot be used: {error}");
        }
    }
    let folder = TempDir::new().unwrap();
    let server = Server::start(&[key("drive", sized(folder.path(), 512, 4096, 512))]);
    // What is made first is taken away last, also where an assertion fails.
    let image = Image::attach(&server, folder.path());
    let disk = match Loop::attach(&image.file) {
        Ok(disk) => disk,
        Err(error) => testkit::skip!("no loop device: {error}"),
    };
    tell(make, &disk.device);
    let place = folder.path().join("mounted");
    fs::create_dir(&place).unwrap();
    let mounted = match Mounted::mount(kind, &disk.device, &place) {
        Ok(mounted) => mounted,
        Err(error) if error.contains("unknown filesystem type") => {
            testkit::skip!("this kernel has no {kind}")
        }
        Err(error) => panic!("{error}"),
    };
    let mut rng = Rng::new(7);
    let contents: Vec<Vec<u8>> = (0..40)
        .map(|_| {
            let bytes = rng.below(LARGEST) >> rng.below(12);
            (0..bytes).map(|_| rng.bits() as u8).collect()
        })
        .collect();
    let path = |number: usize| place.join(format!("{}/{number}", number % 5));
    for (number, content) in contents.iter().enumerate() {
        fs::create_dir_all(path(number).parent().unwrap()).unwrap();
        fs::write(path(number), content).unwrap();
    }
    // Some go, so that their room is used anew.
    for number in (0..contents.len()).step_by(3) {
        fs::remove_file(path(number)).unwrap();
        fs::write(path(number), &contents[number]).unwrap();
    }
    drop(mounted);
    tell(check, &disk.device);
    let mounted = Mounted::mount(kind, &disk.device, &place).unwrap();
    for (number, content) in contents.iter().enumerate() {
        assert!(fs::read(path(number)).unwrap() == *content, "file {number}");
    }
    drop(mounted);
    tell(check, &disk.device);
}

/// Runs a command on a device; it must succeed.
fn tell(command: &[&str], device: &str) {
    let program = testkit::tool(command[0]).expect("it has been looked for");
    let words: Vec<&str> = command[1..].iter().copied().chain([device]).collect();
    run(&program, &words);
}

/// A served drive as a file.
struct Image {
    file: PathBuf,
    nbdfuse: Child,
}

impl Image {
    fn attach(server: &Server, folder: &Path) -> Image {
        let (file, pidfile) = (folder.join("disk"), folder.join("nbdfuse"));
        fs::write(&file, "").unwrap();
        let nbdfuse = Command::new("nbdfuse")
            .arg("--pidfile")
            .arg(&pidfile)
            .arg(&file)
            .arg(server.uri())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut image = Image { file, nbdfuse };
        let begun = Instant::now();
        while !pidfile.exists() {
            let ended = image.nbdfuse.try_wait().unwrap();
            assert!(ended.is_none(), "nbdfuse ended with {ended:?}");
            assert!(begun.elapsed() < Duration::from_secs(60), "it takes long");
            thread::sleep(Duration::from_millis(10));
        }
        image
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        take_away("fusermount3", &["-u", "-z"], &self.file);
        let begun = Instant::now();
        while let Ok(None) = self.nbdfuse.try_wait() {
            if begun.elapsed() > Duration::from_secs(10) {
                let _ = self.nbdfuse.kill();
            }
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// A loop device.
struct Loop {
    device: String,
}

impl Loop {
    fn attach(file: &Path) -> Result<Loop, String> {
        let losetup = Command::new("losetup")
            .args(["--find", "--show", "--direct-io=on", "--sector-size", "512"])
            .arg(file)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        match losetup.status.success() {
            true => Ok(Loop {
                device: text(&losetup.stdout),
            }),
            false => Err(text(&losetup.stderr)),
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        take_away("losetup", &["--detach"], Path::new(&self.device));
    }
}

/// A file system in its place.
struct Mounted<'a> {
    place: &'a Path,
}

impl Mounted<'_> {
    fn mount<'a>(kind: &str, device: &str, place: &'a Path) -> Result<Mounted<'a>, String> {
        let mount = Command::new("mount")
            .args(["-t", kind, device])
            .arg(place)
            .output()
            .unwrap();
        match mount.status.success() {
            true => Ok(Mounted { place }),
            false => Err(String::from_utf8_lossy(&mount.stderr).into_owned()),
        }
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        take_away("umount", &[], self.place);
    }
}

/// Takes something away. A failure fails the test, unless that has failed already.
fn take_away(program: &str, options: &[&str], what: &Path) {
    let status = Command::new(program).args(options).arg(what).status();
    let done = status.is_ok_and(|status| status.success());
    assert!(done || thread::panicking(), "{program} {}", what.display());
}
