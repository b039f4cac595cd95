//! A served drive as a block device of this kernel, with a file system: the file that the server
//! exposes, its loop device, and a mount.
//!
//! Mounts and loop devices, including those that a killed server leaves, are removed when their
//! values are dropped, even if the test fails. A layer that is still busy disappears once it is no
//! longer used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::{argument, option, run};

/// Returns a message about the first program or device that is missing for tests of attached
/// drives, if any.
pub(crate) fn missing() -> Option<String> {
    let programs = ["losetup", "mount", "umount", "mke2fs", "e2fsck"];
    let missing = programs.iter().find(|name| testkit::tool(name).is_none());
    if let Some(name) = missing {
        return Some(format!("{name} is not installed"));
    }
    let devices = ["/dev/fuse", "/dev/loop-control"];
    let is_inaccessible = |path: &&str| fs::File::options().write(true).open(path).is_err();
    let device = devices.iter().find(|path| is_inaccessible(path))?;
    Some(format!("{device} cannot be opened for writing"))
}

/// The loop device of a served drive.
#[derive(Debug)]
pub(crate) struct Attached {
    device: PathBuf,
    shown: PathBuf,
}

/// A loop device.
#[derive(Debug)]
pub(crate) struct Loop(PathBuf);

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Mount(PathBuf);

impl Attached {
    /// Returns the options with which a server exposes its drive below `folder` and attaches it as
    /// a loop device.
    pub(crate) fn options(folder: &Path) -> [String; 2] {
        let shown = folder.join("shown");
        // A killed server leaves a mount here that cannot be accessed.
        let _ = fs::create_dir(&shown);
        [option("fuse", shown.display()), argument("--device")]
    }

    /// Finds the loop device of a server that was started with [`Attached::options`].
    pub(crate) fn new(folder: &Path) -> Attached {
        let shown = folder.join("shown");
        let arguments = ["--noheadings", "--output", "NAME", "--associated"];
        // On a busy machine, a mount of a killed server may still be there for a moment.
        let began = Instant::now();
        loop {
            let listed = output(
                Command::new("losetup")
                    .args(arguments)
                    .arg(shown.join("disk")),
            );
            let device = String::from_utf8(listed.stdout).expect("it is a path");
            let device = PathBuf::from(device.trim());
            if device.starts_with("/dev") {
                return Attached { device, shown };
            }
            let said = String::from_utf8_lossy(&listed.stderr);
            assert!(
                began.elapsed() < Duration::from_secs(10),
                "no loop device: {device:?} {said}"
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Returns the block device.
    pub(crate) fn device(&self) -> &Path {
        &self.device
    }

    /// Mounts the file system, which replays its journal.
    pub(crate) fn mount(&self, folder: &Path) -> Result<Mount, String> {
        fs::create_dir_all(folder).expect("there is room");
        Mount::from_command(Command::new("mount").arg(self.device()).arg(folder), folder)
    }
}

impl Loop {
    /// Attaches a file; `None` if this fails, for example because there are no loop devices.
    pub(crate) fn attach(losetup: &Path, file: &Path) -> Option<Loop> {
        let losetup_output = output(Command::new(losetup).args(["--find", "--show"]).arg(file));
        let device = String::from_utf8(losetup_output.stdout).ok()?;
        losetup_output
            .status
            .success()
            .then(|| Loop(device.trim().into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Mount {
    /// Mounts a device.
    pub(crate) fn device(mount: &Path, device: &Path, folder: &Path) -> Result<Mount, String> {
        fs::create_dir_all(folder).expect("there is room");
        Mount::from_command(Command::new(mount).arg(device).arg(folder), folder)
    }

    /// Mounts a file system in memory, with a size in the format of `mount`.
    pub(crate) fn memory(mount: &Path, folder: &Path, size: &str) -> Result<Mount, String> {
        fs::create_dir_all(folder).expect("there is room");
        let size = format!("size={size}");
        let arguments = ["-t", "tmpfs", "-o", &size, "tmpfs"];
        Mount::from_command(Command::new(mount).args(arguments).arg(folder), folder)
    }

    fn from_command(command: &mut Command, folder: &Path) -> Result<Mount, String> {
        let mounted = output(command);
        if mounted.status.success() {
            Ok(Mount(folder.to_owned()))
        } else {
            Err(String::from_utf8_lossy(&mounted.stderr).into_owned())
        }
    }

    /// Changes the size of a file system in memory.
    pub(crate) fn resize(&self, size: &str) {
        let size = format!("remount,size={size}");
        let folder = self.0.display().to_string();
        run(Path::new("mount"), &["-o", &size, &folder]);
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Unmounts the file system, which writes back its data.
    pub(crate) fn unmount(self) {
        let started = Instant::now();
        loop {
            let unmounted = output(Command::new("umount").arg(&self.0));
            if unmounted.status.success() {
                std::mem::forget(self);
                return;
            }
            // A child process that another thread has just started briefly inherits every open
            // file.
            assert!(started.elapsed() < Duration::from_secs(60), "{unmounted:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        output(Command::new("umount").arg("--lazy").arg(&self.0));
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        output(Command::new("losetup").arg("--detach").arg(&self.0));
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The server does both, unless it was killed.
        output(Command::new("losetup").arg("--detach").arg(&self.device));
        output(Command::new("umount").arg("--lazy").arg(&self.shown));
    }
}

fn output(command: &mut Command) -> Output {
    command.output().expect("it is installed")
}
