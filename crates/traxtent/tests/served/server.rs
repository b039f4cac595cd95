//! A running server, for tests.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use traxtent_model::profile::{Profile, builtin};

/// The path of the command `traxtent`.
pub(crate) const TRAXTENT: &str = env!("CARGO_BIN_EXE_traxtent");

/// A running `traxtent serve` or `traxtent volume serve`.
pub(crate) struct Server {
    child: Child,
    /// The id of the process that serves. For a volume, this is a child of the command.
    id: u32,
    folder: TempDir,
}

impl Server {
    /// Serves a drive with the given arguments, and waits until it is ready.
    pub(crate) fn start(arguments: &[String]) -> Server {
        Server::run(&["serve"], arguments)
    }

    /// Serves a volume with the given arguments, and waits until it is ready.
    pub(crate) fn volume(arguments: &[String]) -> Server {
        let mut server = Server::run(&["volume", "serve"], arguments);
        let children = format!("/proc/{0}/task/{0}/children", server.id);
        let children = fs::read_to_string(children).expect("the kernel lists children");
        server.id = children.trim().parse().expect("the command has one child");
        server
    }

    fn run(verb: &[&str], arguments: &[String]) -> Server {
        let folder = TempDir::new().expect("there is room for a folder");
        let stderr = File::create(folder.path().join("stderr")).expect("there is room");
        let socket = folder.path().join("socket");
        let child = Command::new(TRAXTENT)
            .args(verb)
            .args(arguments)
            .arg("--socket")
            .arg(&socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .expect("the command runs");
        let id = child.id();
        let mut server = Server { child, id, folder };
        let started = Instant::now();
        while !greets(&socket) {
            let ended = server.child.try_wait().expect("it is a child process");
            assert!(ended.is_none(), "{ended:?}: {}", server.output());
            assert!(
                started.elapsed() < Duration::from_secs(60),
                "the server is not ready"
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
        self.id
    }

    /// Returns the messages of the server so far.
    pub(crate) fn output(&self) -> String {
        fs::read_to_string(self.folder.path().join("stderr"))
            .expect("stderr is redirected to this file, and is text")
    }

    /// Sends the signal with this name, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.id);
        run(Path::new("/bin/sh"), &["-c", &kill]);
    }

    /// Waits until the server has exited successfully.
    pub(crate) fn wait(mut self) {
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}");
    }

    /// Waits until the server has exited successfully, and keeps its messages.
    pub(crate) fn ends_successfully(&mut self) {
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{status}: {}", self.output());
    }

    /// Waits until the server has exited, and returns its exit code.
    pub(crate) fn exit_code(mut self) -> Option<i32> {
        self.child.wait().expect("it ends").code()
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.signal("KILL");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Killing the parent process of a volume's server would stop the volume cleanly, after a
        // delay.
        let _ = Command::new("kill")
            .args(["-KILL", &self.id.to_string()])
            .status();
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns whether a server greets its clients on a socket.
fn greets(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok_and(|mut client| client.read_exact(&mut [0; 18]).is_ok())
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

/// Writes the profile of a drive of 64 MiB that takes no time, with the given sector sizes. Returns
/// its path.
pub(crate) fn small(folder: &Path, logical_bytes: u32, physical_bytes: u32) -> String {
    sized(folder, logical_bytes, physical_bytes, 64)
}

/// Writes the profile of a drive of `mib` MiB that takes no time, and returns its path.
pub(crate) fn sized(folder: &Path, logical_bytes: u32, physical_bytes: u32, mib: u32) -> String {
    let mut profile = builtin("instant").expect("it is built in");
    profile.sector.logical_bytes = logical_bytes;
    profile.sector.physical_bytes = physical_bytes;
    let cylinders = mib * 512 / logical_bytes;
    profile.geometry.cylinders = cylinders;
    profile.geometry.zones[0].last_cylinder = cylinders - 1;
    write(folder, &profile)
}

/// Returns a directory for large amounts of data that are flushed often. The directory is in memory
/// if possible.
pub(crate) fn quick_folder() -> TempDir {
    TempDir::new_in("/dev/shm")
        .or_else(|_| TempDir::new())
        .expect("there is room for a folder")
}

/// Writes a profile, and returns its path.
pub(crate) fn write(folder: &Path, profile: &Profile) -> String {
    let path = folder.join("drive.toml");
    fs::write(&path, profile.to_toml()).expect("there is room");
    path.display().to_string()
}

/// Formats an argument of the command.
pub(crate) fn argument(value: impl std::fmt::Display) -> String {
    value.to_string()
}

/// Formats an option of the command with its value.
pub(crate) fn option(name: &str, value: impl std::fmt::Display) -> String {
    format!("--{name}={value}")
}
