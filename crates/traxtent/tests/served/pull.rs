//! A volume member that can be pulled like a drive from its bay: nbdfuse exposes the member's file
//! as another file, which the volume opens.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::server::run;

/// The failure mode of a pulled member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PullMode {
    /// The member is gone: the process that exposes its file is killed.
    Gone,
    /// The member is present, but every read and write fails with an I/O error.
    Errors,
}

/// A member's file that can be pulled.
#[derive(Debug)]
pub(crate) struct Pullable {
    path: PathBuf,
    errors: PathBuf,
    nbdfuse: Child,
}

/// Returns a message about the first program or device that is missing to pull a member, if any.
pub(crate) fn missing() -> Option<String> {
    let programs = ["nbdkit", "nbdfuse", "umount"];
    let missing = programs.iter().find(|name| testkit::tool(name).is_none());
    if let Some(name) = missing {
        return Some(format!("{name} is not installed"));
    }
    let fuse = File::options().write(true).open("/dev/fuse");
    fuse.is_err()
        .then(|| "/dev/fuse cannot be opened for writing".to_owned())
}

impl Pullable {
    /// Exposes the file `below` as another file next to it.
    pub(crate) fn new(below: &Path) -> Pullable {
        let sibling = |suffix: &str| {
            let name = below.file_name().expect("it is a file").to_string_lossy();
            below.with_file_name(format!("{name}-{suffix}"))
        };
        let (path, ready, errors) = (sibling("shown"), sibling("pid"), sibling("errors"));
        fs::write(&path, []).expect("there is room");
        let _ = fs::remove_file(&ready);
        let nbdfuse = Command::new("nbdfuse")
            .arg("-P")
            .args([&ready, &path])
            .args([
                "[",
                "nbdkit",
                "--exit-with-parent",
                "--filter=error",
                "file",
            ])
            .arg(below)
            .args(["error=EIO", "error-rate=100%"])
            .arg(format!("error-file={}", errors.display()))
            .arg("]")
            .stdin(Stdio::null())
            // nbdfuse reports every request that fails.
            .stderr(Stdio::null())
            .spawn()
            .expect("nbdfuse runs");
        let mut pullable = Pullable {
            path,
            errors,
            nbdfuse,
        };
        let started = Instant::now();
        while !ready.exists() {
            let ended = pullable
                .nbdfuse
                .try_wait()
                .expect("nbdfuse is a child process");
            assert!(ended.is_none(), "nbdfuse ended with {ended:?}");
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "nbdfuse is not ready"
            );
            thread::sleep(Duration::from_millis(2));
        }
        pullable
    }

    /// Returns the path of the exposed file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the member hang: no request completes before [`Pullable::wake`].
    pub(crate) fn hang(&self) {
        self.signal("STOP");
    }

    /// Ends the hang.
    pub(crate) fn wake(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.nbdfuse.id());
        run(Path::new("/bin/sh"), &["-c", &kill]);
    }

    /// Pulls the member.
    pub(crate) fn pull(&mut self, how: PullMode) {
        match how {
            PullMode::Gone => {
                self.nbdfuse.kill().expect("it runs");
                self.nbdfuse.wait().expect("it ends");
            }
            PullMode::Errors => fs::write(&self.errors, []).expect("there is room"),
        }
    }
}

impl Drop for Pullable {
    fn drop(&mut self) {
        if matches!(self.nbdfuse.try_wait(), Ok(None)) {
            self.wake();
        }
        let umount = Command::new("umount")
            .arg("--lazy")
            .arg(&self.path)
            .output();
        umount.expect("it is installed");
        let _ = self.nbdfuse.kill();
        let _ = self.nbdfuse.wait();
    }
}
