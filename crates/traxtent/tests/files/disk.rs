//! A mounted file system on a loop device over a file in memory, and the command to move its files.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, Mode, OFlags, fallocate};
use serde_json::Value;
use tempfile::TempDir;
use traxtent_io::ext4::exchange;
use traxtent_units::Rng;

use crate::attach::Loop;
use crate::server::{TRAXTENT, quick_folder};

/// The drive whose tracks the tests use. It has 353 to 528 sectors on a track.
pub(crate) const MAP: &str = "atlas10k2";

/// The command that makes the usual file system.
pub(crate) const EXT4: [&str; 5] = ["mke2fs", "-t", "ext4", "-b", "4096"];

/// The size of a block of the file systems.
pub(crate) const BLOCK: u64 = 4096;

/// Returns the first missing program or device that is needed to mount a file system, if any.
pub(crate) fn missing() -> Option<String> {
    let programs = ["losetup", "mount", "umount", "mke2fs", "e2fsck"];
    if let Some(name) = programs.iter().find(|name| testkit::tool(name).is_none()) {
        return Some(format!("{name} is not installed"));
    }
    let control = "/dev/loop-control";
    let open = File::options().write(true).open(control);
    open.is_err()
        .then(|| format!("{control} cannot be opened for writing"))
}

/// Skips the test if no file system can be mounted.
macro_rules! needs_mounts {
    () => {
        if let Some(reason) = crate::disk::missing() {
            testkit::skip!("{reason}");
        }
    };
}
pub(crate) use needs_mounts;

/// A mounted file system.
///
/// The fields are dropped in order, so that it is unmounted before the device is detached.
#[derive(Debug)]
pub(crate) struct Disk {
    mount: Option<Mounted>,
    device: Loop,
    folder: TempDir,
}

/// The results of a command.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Disk {
    /// Makes and mounts an ext4 of `mib` MiB with the default settings.
    pub(crate) fn new(mib: u64) -> Disk {
        Disk::with(mib, &EXT4, "")
    }

    /// Makes a file system with a command, to which the device is appended, and mounts it with
    /// options.
    pub(crate) fn with(mib: u64, mkfs: &[&str], options: &str) -> Disk {
        Disk::try_with(mib, mkfs, options).expect("this kernel mounts it")
    }

    /// Same as [`Disk::with`], but returns an error if this host cannot make or mount the file
    /// system.
    pub(crate) fn try_with(mib: u64, mkfs: &[&str], options: &str) -> Result<Disk, String> {
        Disk::try_sized(mib << 20, mkfs, None, options)
    }

    /// Same as [`Disk::with`], on a device of `bytes`, of which the file system uses the first
    /// `mib` MiB.
    pub(crate) fn sized(bytes: u64, mkfs: &[&str], mib: u64) -> Disk {
        Disk::try_sized(bytes, mkfs, Some(mib), "").expect("this kernel mounts it")
    }

    fn try_sized(
        bytes: u64,
        mkfs: &[&str],
        mib: Option<u64>,
        options: &str,
    ) -> Result<Disk, String> {
        let folder = quick_folder();
        let image = folder.path().join("image");
        File::create(&image)
            .and_then(|file| file.set_len(bytes))
            .expect("there is room");
        let losetup = testkit::tool("losetup").expect("its presence was checked");
        let device = Loop::attach(&losetup, &image).ok_or("no loop device is free")?;
        let (program, arguments) = mkfs.split_first().expect("a command");
        let program = testkit::tool(program).ok_or(format!("{program} is not installed"))?;
        let quiet = ["-q"];
        let made = Command::new(program)
            .args(quiet)
            .args(arguments)
            .arg(device.path())
            .args(mib.map(|mib| format!("{mib}m")))
            .output()
            .expect("it is installed");
        if !made.status.success() {
            return Err(String::from_utf8_lossy(&made.stderr).into_owned());
        }
        let mut disk = Disk {
            mount: None,
            device,
            folder,
        };
        disk.mount(options)?;
        Ok(disk)
    }

    /// Mounts the file system, which must not be mounted.
    pub(crate) fn mount(&mut self, options: &str) -> Result<(), String> {
        let folder = self.root();
        fs::create_dir_all(&folder).expect("there is room");
        let mounted = Command::new("mount")
            .args(["-o", if options.is_empty() { "rw" } else { options }])
            .arg(self.device.path())
            .arg(&folder)
            .output()
            .expect("it is installed");
        if !mounted.status.success() {
            return Err(String::from_utf8_lossy(&mounted.stderr).into_owned());
        }
        self.mount = Some(Mounted(folder));
        Ok(())
    }

    /// Unmounts it.
    pub(crate) fn unmount(&mut self) {
        if let Some(mount) = self.mount.take() {
            mount.unmount();
        }
    }

    /// Unmounts it and mounts it again, so that files are read from the device.
    pub(crate) fn remount(&mut self) {
        self.unmount();
        self.mount("").expect("it was mounted before");
    }

    /// Unmounts it. Asserts that e2fsck finds no errors.
    pub(crate) fn assert_clean(&mut self) {
        self.unmount();
        assert_clean(self.device.path());
    }

    pub(crate) fn device(&self) -> &Path {
        self.device.path()
    }

    /// Returns the directory on which it is mounted.
    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("mnt")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    /// Returns a path outside the file system.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Moves files onto whole tracks.
    pub(crate) fn realign(&self, names: &[&str]) -> Said {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.path(name)).collect();
        said(realign_command(&paths, MAP))
    }

    /// Returns the output of `traxtent file show` for each file.
    pub(crate) fn show(&self, names: &[&str]) -> Vec<Value> {
        let paths = names.iter().map(|name| self.path(name));
        let mut command = Command::new(TRAXTENT);
        command.args(["file", "show", "--json", "--map", MAP]);
        command.args(paths);
        let said = said(command);
        assert_eq!(said.status, Some(0), "{}", said.err);
        serde_json::from_str(&said.out).expect("it is JSON")
    }

    /// Returns the number of free bytes.
    pub(crate) fn free_bytes(&self) -> u64 {
        let found = rustix::fs::statvfs(self.root()).expect("it is mounted");
        found.f_bavail * found.f_frsize
    }
}

/// A mounted directory.
#[derive(Debug)]
struct Mounted(PathBuf);

impl Mounted {
    fn unmount(self) {
        let begun = Instant::now();
        loop {
            let unmounted = Command::new("umount").arg(&self.0).output();
            let unmounted = unmounted.expect("it is installed");
            if unmounted.status.success() {
                std::mem::forget(self);
                return;
            }
            // A child process that another thread has just started briefly inherits every open
            // file.
            assert!(begun.elapsed() < Duration::from_secs(60), "{unmounted:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

/// Asserts that e2fsck finds no errors.
pub(crate) fn assert_clean(device: &Path) {
    if let Some(complaint) = complaint(device) {
        panic!("{complaint}");
    }
}

/// Returns the errors that e2fsck finds, if any.
pub(crate) fn complaint(device: &Path) -> Option<String> {
    let checked = Command::new("e2fsck")
        .arg("-fn")
        .arg(device)
        .output()
        .expect("it is installed");
    let out = String::from_utf8_lossy(&checked.stdout);
    (!checked.status.success()).then(|| format!("e2fsck: {}: {out}", checked.status))
}

/// Returns the command that moves files, without a test of the map. Most file systems here are
/// smaller than the drive, so warnings are omitted.
pub(crate) fn realign_command(paths: &[PathBuf], map: &str) -> Command {
    let mut command = Command::new(TRAXTENT);
    command.args(["file", "realign", "--quiet", "--trust-map", "--map", map]);
    command.args(paths).stdin(Stdio::null());
    command
}

/// Runs a command that must end within five minutes.
pub(crate) fn said(mut command: Command) -> Said {
    command.stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("it runs");
    let id = child.id();
    let (ended, watched) = std::sync::mpsc::channel::<()>();
    let watch = thread::spawn(move || {
        if watched.recv_timeout(Duration::from_secs(300))
            == Err(std::sync::mpsc::RecvTimeoutError::Timeout)
        {
            let _ = Command::new("kill")
                .args(["-KILL", &id.to_string()])
                .status();
        }
    });
    let output: Output = child.wait_with_output().expect("it is a child process");
    drop(ended);
    watch.join().expect("it does not panic");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    Said {
        status: output.status.code(),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Returns random bytes.
pub(crate) fn random(rng: &mut Rng, count: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..count.div_ceil(8))
        .flat_map(|_| rng.bits().to_le_bytes())
        .collect();
    bytes.truncate(count);
    bytes
}

/// Writes files in turns, `part_bytes` each, and makes each part durable, so that they are
/// fragmented. The last parts are written first if `is_backwards`, so that the files lie on the
/// drive in reverse.
pub(crate) fn write_in_turns(
    files: &[(PathBuf, Vec<u8>)],
    part_bytes: usize,
    is_backwards: bool,
) -> io::Result<()> {
    let open: Vec<File> = files
        .iter()
        .map(|(path, _)| File::create(path))
        .collect::<io::Result<_>>()?;
    let longest = files
        .iter()
        .map(|(_, bytes)| bytes.len())
        .max()
        .unwrap_or(0);
    let parts = longest.div_ceil(part_bytes);
    for turn in 0..parts {
        let part = if is_backwards { parts - 1 - turn } else { turn };
        for (file, (_, bytes)) in open.iter().zip(files) {
            let start = (part * part_bytes).min(bytes.len());
            let end = (start + part_bytes).min(bytes.len());
            file.write_all_at(&bytes[start..end], start as u64)?;
            file.sync_data()?;
        }
    }
    open.iter().try_for_each(File::sync_all)
}

/// Asserts that a file has this content.
pub(crate) fn assert_content(path: &Path, content: &[u8], context: impl std::fmt::Display) {
    let found = fs::read(path).unwrap_or_else(|error| panic!("{context}: {path:?}: {error}"));
    if let Some(difference) = difference(&found, content) {
        panic!("{context}: {}: {difference}", path.display());
    }
}

/// Describes how content differs from what is expected.
pub(crate) fn difference(found: &[u8], expected: &[u8]) -> Option<String> {
    if found == expected {
        return None;
    }
    let blocks = found.chunks(4096).zip(expected.chunks(4096)).enumerate();
    let differ: Vec<usize> = blocks
        .filter(|(_, (found, expected))| found != expected)
        .map(|(block, _)| block)
        .collect();
    Some(format!(
        "{} bytes instead of {}, different in blocks {differ:?}",
        found.len(),
        expected.len()
    ))
}

/// Fragments a file: its parts of `part_blocks` blocks lie in one region of the drive, in a random
/// order. The space that one part leaves can therefore hold others.
pub(crate) fn shuffle(path: &Path, part_blocks: u64, rng: &mut Rng) -> io::Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    file.sync_all()?;
    let blocks = file.metadata()?.len().div_ceil(BLOCK);
    let folder = path.parent().expect("it is in a directory");
    let donor = nameless(folder)?;
    let parts = blocks.div_ceil(part_blocks);
    let bytes = parts * part_blocks * BLOCK;
    fallocate(&donor, FallocateFlags::empty(), 0, bytes)?;
    let mut order: Vec<u64> = (0..parts).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    for (place, part) in order.into_iter().enumerate() {
        let (first, place) = (part * part_blocks, place as u64 * part_blocks);
        let count = part_blocks.min(blocks - first);
        let exchanged = exchange(&file, &donor, first, place, count);
        if let Some(error) = exchanged.error {
            return Err(error);
        }
        assert_eq!(exchanged.blocks, count);
    }
    file.sync_all()?;
    rustix::fs::syncfs(&file)?;
    Ok(())
}

/// Creates a file without a name.
pub(crate) fn nameless(folder: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR;
    let file = rustix::fs::open(folder, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(File::from(file))
}

/// Ends the other threads of a test when it is dropped, even if the test fails.
pub(crate) struct Stop<'a>(pub(crate) &'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
