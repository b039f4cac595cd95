//! A served drive as a block device of this kernel, with a file system: nbdfuse, a loop device, a mount.
//!
//! Each layer is taken away when its value goes, so also when a test fails; what is still busy goes lazily.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::nbdkit::{Server, run};

/// The programs that attaching takes, or why there is none.
pub(crate) fn missing() -> Option<String> {
    let programs = [
        "nbdkit", "nbdfuse", "losetup", "mount", "umount", "mke2fs", "e2fsck",
    ];
    let missing = programs.iter().find(|name| testkit::tool(name).is_none());
    if let Some(name) = missing {
        return Some(format!("{name} is not installed"));
    }
    let devices = ["/dev/fuse", "/dev/loop-control"];
    let closed = |path: &&str| fs::File::options().write(true).open(path).is_err();
    let device = devices.iter().find(|path| closed(path))?;
    Some(format!("{device} cannot be used here"))
}

/// A drive as a block device.
#[derive(Debug)]
pub(crate) struct Attached {
    // In this order they are dropped.
    device: Loop,
    _node: Node,
}

/// A loop device.
#[derive(Debug)]
pub(crate) struct Loop(PathBuf);

/// The file that nbdfuse shows the drive as.
#[derive(Debug)]
struct Node {
    path: PathBuf,
    nbdfuse: Child,
}

/// A mounted file system.
#[derive(Debug)]
pub(crate) struct Mount(PathBuf);

impl Attached {
    /// Attaches a drive, with files of its own in `folder`.
    pub(crate) fn new(server: &Server, folder: &Path) -> Attached {
        let node = Node::new(server, folder);
        let arguments = ["--find", "--show", "--direct-io=on"];
        let shown = output(Command::new("losetup").args(arguments).arg(&node.path));
        assert!(shown.status.success(), "losetup: {shown:?}");
        let device = String::from_utf8(shown.stdout).expect("it is a path");
        Attached {
            device: Loop(device.trim().into()),
            _node: node,
        }
    }

    /// The block device.
    pub(crate) fn device(&self) -> &Path {
        &self.device.0
    }

    /// Mounts it, which replays a journal.
    pub(crate) fn mount(&self, folder: &Path) -> Result<Mount, String> {
        fs::create_dir_all(folder).expect("there is room");
        Mount::made(Command::new("mount").arg(self.device()).arg(folder), folder)
    }
}

impl Loop {
    /// Attaches a file; `None` where there are no loop devices.
    pub(crate) fn attach(losetup: &Path, file: &Path) -> Option<Loop> {
        let shown = output(Command::new(losetup).args(["--find", "--show"]).arg(file));
        let device = String::from_utf8(shown.stdout).ok()?;
        shown.status.success().then(|| Loop(device.trim().into()))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Mount {
    /// Mounts a device.
    pub(crate) fn device(mount: &Path, device: &Path, folder: &Path) -> Result<Mount, String> {
        fs::create_dir_all(folder).expect("there is room");
        Mount::made(Command::new(mount).arg(device).arg(folder), folder)
    }

    /// Mounts a file system in memory, of a size as `mount` takes it.
    pub(crate) fn memory(mount: &Path, folder: &Path, size: &str) -> Result<Mount, String> {
        fs::create_dir_all(folder).expect("there is room");
        let size = format!("size={size}");
        let arguments = ["-t", "tmpfs", "-o", &size, "tmpfs"];
        Mount::made(Command::new(mount).args(arguments).arg(folder), folder)
    }

    fn made(command: &mut Command, folder: &Path) -> Result<Mount, String> {
        let mounted = output(command);
        if mounted.status.success() {
            Ok(Mount(folder.to_owned()))
        } else {
            Err(String::from_utf8_lossy(&mounted.stderr).into_owned())
        }
    }

    /// Gives a file system in memory another size.
    pub(crate) fn resize(&self, size: &str) {
        let size = format!("remount,size={size}");
        let folder = self.0.display().to_string();
        run(Path::new("mount"), &["-o", &size, &folder]);
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    /// Takes the file system away when all of it is written.
    pub(crate) fn unmount(self) {
        let begun = Instant::now();
        loop {
            let unmounted = output(Command::new("umount").arg(&self.0));
            if unmounted.status.success() {
                std::mem::forget(self);
                return;
            }
            // A file is open for a moment longer in every process that another thread starts meanwhile.
            assert!(begun.elapsed() < Duration::from_secs(60), "{unmounted:?}");
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
            // It tells of every request that fails.
            .stderr(Stdio::null())
            .spawn()
            .expect("nbdfuse runs");
        let mut node = Node { path, nbdfuse };
        let begun = Instant::now();
        while !ready.exists() {
            let ended = node.nbdfuse.try_wait().expect("it can be asked");
            assert!(ended.is_none(), "nbdfuse ended with {ended:?}");
            assert!(begun.elapsed() < Duration::from_secs(60), "it takes long");
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
