//! A served drive as a block device of this kernel, with a file system: nbdfuse, a loop device, a
//! mount.
//!
//! Each layer is removed when its value is dropped, even if the test fails. A layer that is still
//! busy is unmounted lazily.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::{Server, run};

/// Returns the program or device that is missing to attach a drive, if any.
pub(crate) fn missing() -> Option<String> {
    let programs = [
        "nbdfuse", "losetup", "mount", "umount", "mke2fs", "e2fsck",
    ];
    let missing = programs.iter().find(|name| testkit::tool(name).is_none());
    if let Some(name) = missing {
        return Some(format!("{name} is not installed"));
    }
    let devices = ["/dev/fuse", "/dev/loop-control"];
    let is_inaccessible = |path: &&str| fs::File::options().write(true).open(path).is_err();
    let device = devices.iter().find(|path| is_inaccessible(path))?;
    Some(format!("{device} cannot be opened for writing"))
}

/// A drive as a block device.
#[derive(Debug)]
pub(crate) struct Attached {
    // The fields are dropped in this order.
    device: Loop,
    _node: Node,
}

/// A loop device.
#[derive(Debug)]
pub(crate) struct Loop(PathBuf);

/// The file through which nbdfuse exposes the drive.
#[derive(Debug)]
struct Node {
    path: PathBuf,
    nbdfuse: Child,
}

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Mount(PathBuf);

impl Attached {
    /// Attaches a drive, with auxiliary files in `folder`.
    pub(crate) fn new(server: &Server, folder: &Path) -> Attached {
        let node = Node::new(server, folder);
        let arguments = ["--find", "--show", "--direct-io=on"];
        let losetup_output = output(Command::new("losetup").args(arguments).arg(&node.path));
        assert!(
            losetup_output.status.success(),
            "losetup: {losetup_output:?}"
        );
        let device = String::from_utf8(losetup_output.stdout).expect("it is a path");
        Attached {
            device: Loop(device.trim().into()),
            _node: node,
        }
    }

    /// Returns the block device.
    pub(crate) fn device(&self) -> &Path {
        &self.device.0
    }

    /// Mounts the file system, which replays its journal.
    pub(crate) fn mount(&self, folder: &Path) -> Result<Mount, String> {
        fs::create_dir_all(folder).expect("there is room");
        Mount::from_command(Command::new("mount").arg(self.device()).arg(folder), folder)
    }
}

impl Loop {
    /// Attaches a file; `None` if there are no loop devices.
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

impl Node {
    fn new(server: &Server, folder: &Path) -> Node {
        let (path, ready) = (folder.join("node"), folder.join("nbdfuse.pid"));
        let _ = fs::remove_file(&ready);
        fs::write(&path, []).expect("there is room");
        let nbdfuse = Command::new("nbdfuse")
            .arg("-P")
            .args([&ready, &path])
            .arg(server.uri())
            .stdin(Stdio::null())
            // nbdfuse reports every request that fails.
            .stderr(Stdio::null())
            .spawn()
            .expect("nbdfuse runs");
        let mut node = Node { path, nbdfuse };
        let started = Instant::now();
        while !ready.exists() {
            let ended = node.nbdfuse.try_wait().expect("nbdfuse is a child process");
            assert!(ended.is_none(), "nbdfuse ended with {ended:?}");
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "nbdfuse is not ready"
            );
            thread::sleep(Duration::from_millis(2));
        }
        node
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

impl Drop for Node {
    fn drop(&mut self) {
        output(Command::new("umount").arg("--lazy").arg(&self.path));
        let _ = self.nbdfuse.kill();
        let _ = self.nbdfuse.wait();
    }
}

fn output(command: &mut Command) -> Output {
    command.output().expect("it is installed")
}
