//! nbdkit with the plugin, for tests.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use traxtent_model::profile::{Profile, builtin};

/// Returns the path of the plugin, which cargo builds next to the tests.
pub(crate) fn plugin() -> PathBuf {
    let test = env::current_exe().expect("a test is a file");
    let plugin = test.with_file_name("libtraxtent_nbdkit.so");
    assert!(plugin.is_file(), "{} is not built", plugin.display());
    plugin
}

/// A running nbdkit with the plugin.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
}

impl Server {
    /// Starts nbdkit with parameters for the plugin, and waits until it is ready.
    pub(crate) fn start(keys: &[String]) -> Server {
        let folder = TempDir::new().expect("there is room for a folder");
        let pidfile = folder.path().join("pid");
        let stderr = File::create(folder.path().join("stderr")).expect("there is room");
        let child = command(keys)
            .arg("--pidfile")
            .arg(&pidfile)
            .arg("--unix")
            .arg(folder.path().join("socket"))
            .stderr(stderr)
            .spawn()
            .expect("nbdkit runs");
        let mut server = Server { child, folder };
        let started = Instant::now();
        while !pidfile.exists() {
            let ended = server.child.try_wait().expect("nbdkit is a child process");
            assert!(ended.is_none(), "{ended:?}: {}", server.output());
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "nbdkit is not ready"
            );
            thread::sleep(Duration::from_millis(10));
        }
        server
    }

    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket().display())
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the output of nbdkit and the plugin so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr"))
            .expect("stderr is redirected to this file, and is text")
    }

    /// Sends the signal with this name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        run(Path::new("/bin/sh"), &["-c", &kill]);
    }

    /// Waits until nbdkit has exited successfully.
    pub(crate) fn wait(mut self) {
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// Waits until nbdkit has exited, and returns its exit code.
    pub(crate) fn exit_code(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the command for nbdkit with the plugin and its parameters, in the foreground.
pub(crate) fn command(keys: &[String]) -> Command {
    let mut nbdkit = Command::new("nbdkit");
    nbdkit.args(["--foreground", "--exit-with-parent", "--threads", "64"]);
    nbdkit.arg(plugin()).args(keys).stdin(Stdio::null());
    nbdkit
}

/// Runs a program that must succeed.
pub(crate) fn run(program: &Path, arguments: &[&str]) -> Output {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    assert!(
        output.status.success(),
        "{} {}: {}{}",
        program.display(),
        arguments.join(" "),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Writes the profile of a drive of 64 MiB that takes no time, with the given sector sizes.
pub(crate) fn small(folder: &Path, logical_bytes: u32, physical_bytes: u32) -> String {
    sized(folder, logical_bytes, physical_bytes, 64)
}

/// Writes the profile of a drive of `mib` MiB that takes no time.
pub(crate) fn sized(folder: &Path, logical_bytes: u32, physical_bytes: u32, mib: u32) -> String {
    let mut profile = builtin("instant").expect("it is built in");
    profile.sector.logical_bytes = logical_bytes;
    profile.sector.physical_bytes = physical_bytes;
    let cylinders = mib * 512 / logical_bytes;
    profile.geometry.cylinders = cylinders;
    profile.geometry.zones[0].last_cylinder = cylinders - 1;
    write(folder, &profile)
}

/// Returns a directory for large amounts of data that is flushed often. It is in memory if
/// possible.
pub(crate) fn quick_folder() -> TempDir {
    TempDir::new_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .expect("there is room for a folder")
}

/// Writes a profile.
pub(crate) fn write(folder: &Path, profile: &Profile) -> String {
    let path = folder.join("drive.toml");
    fs::write(&path, profile.to_toml()).expect("there is room");
    path.display().to_string()
}

/// Formats a key and its value.
pub(crate) fn key(key: &str, value: impl std::fmt::Display) -> String {
    format!("{key}={value}")
}
