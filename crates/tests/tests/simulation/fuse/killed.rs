//! If the server is killed, does nothing hang, and does the next start remove the remains?
//!
//! The test binary runs itself as the server. An environment variable gives its role.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tempfile::TempDir;
use traxtent_model::profile::builtin;
use traxtent_server::fuse::{FuseError, Mount};
use traxtent_server::serve::{DriveServer, Settings};
use traxtent_server::service::BlockService;

use super::loop_device::UnmountOnDrop;
use super::service::MemoryService;
use super::{export, needs_fuse, run, text};

/// The variable that makes the test binary serve. Its value is the directory.
const DIRECTORY: &str = "TRAXTENT_TEST_FUSE";
/// The name of the test, by which the test binary runs it in another process.
const TEST: &str = "fuse::killed::a_killed_server_leaves_nothing_hanging";

/// The time that a call on a dead file system, or the end of a killed server, may take.
const LIMIT: Duration = Duration::from_secs(20);

/// A server in a process of its own.
struct Process {
    child: Child,
    device: PathBuf,
}

impl Process {
    /// Starts a server of a drive with its data in a file, and waits until it serves.
    fn start(directory: &Path, image: &Path) -> Process {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", TEST, "--nocapture"])
            .env(DIRECTORY, directory)
            .env("IMAGE", image)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut devices = lines.filter_map(|line| Some(line.ok()?.strip_prefix("device ")?.into()));
        let device = devices.next().expect("the server has started");
        Process { child, device }
    }

    /// Kills the server with SIGKILL.
    fn kill(mut self) {
        self.child.kill().unwrap();
        let killed = Instant::now();
        while self.child.try_wait().unwrap().is_none() {
            assert!(killed.elapsed() < LIMIT, "the server does not end");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Serves for ten minutes, or until it is killed.
fn serve(directory: &Path) {
    let mut profile = builtin("instant").unwrap();
    profile.geometry.cylinders = 128 * 1024;
    profile.geometry.zones[0].last_cylinder = profile.geometry.cylinders - 1;
    let mut settings = Settings::of("test", profile);
    settings.file = env::var_os("IMAGE").map(PathBuf::from);
    let server = Arc::new(DriveServer::open(settings).unwrap());
    server.start().unwrap();
    let mut mount = Mount::start(&export(&server, false), directory).unwrap();
    println!("device {}", mount.attach_loop().unwrap().display());
    thread::sleep(Duration::from_secs(600));
}

/// Runs a function in a thread, and asserts that it returns within [`LIMIT`].
fn in_time<T: Send + 'static>(what: &str, function: impl FnOnce() -> T + Send + 'static) -> T {
    let thread = thread::spawn(function);
    let began = Instant::now();
    while !thread.is_finished() {
        assert!(began.elapsed() < LIMIT, "{what} hangs");
        thread::sleep(Duration::from_millis(5));
    }
    thread.join().unwrap()
}

/// If a server is killed while programs read and a file system on its loop device writes, do they
/// get errors in time? Does the next start name the file system to unmount, and does the start
/// after that remove the remains? Is all synced data still there?
#[test]
fn a_killed_server_leaves_nothing_hanging() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return serve(Path::new(&directory));
    }
    needs_fuse!();
    let (mkfs, fsck) = (testkit::tool!("mkfs.ext4"), testkit::tool!("e2fsck"));
    for kill in 0..testkit::repeats(2).min(50) {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        let (served, files, image) = (at("served"), at("files"), at("image"));
        fs::create_dir(&served).unwrap();
        fs::create_dir(&files).unwrap();
        let server = Process::start(&served, &image);
        let device = server.device.clone();
        run(&mkfs, &["-q", text(&device)]);
        run("/bin/mount", &[text(&device), text(&files)]);
        let unmount = UnmountOnDrop(files.clone());
        fs::write(files.join("synced"), [7; 100_000]).unwrap();
        run("/bin/sync", &["-f", text(&files)]);
        let (writer, reader) = (
            write_until_error(&files),
            read_until_error(served.join("disk")),
        );
        thread::sleep(Duration::from_millis(50 + 37 * kill % 400));
        // The kernel keeps these attributes after the server has ended.
        fs::metadata(&served).unwrap();
        server.kill();
        let error = in_time("a read", move || reader.join().unwrap());
        let errno = Errno::from_io_error(&error);
        let is_disconnected = matches!(errno, Some(Errno::CONNABORTED | Errno::NOTCONN));
        assert!(is_disconnected, "{error}");
        in_time("a write to the file system", move || writer.join().unwrap());

        let memory = Arc::new(MemoryService::new(1 << 20, 512));
        let export = export(&memory, false);
        let error = Mount::start(&export, &served).expect_err("the loop device is mounted");
        let message = error.to_string();
        assert!(
            matches!(error, FuseError::LeftoverInUse { .. }),
            "{message}"
        );
        assert!(
            message.contains(&format!("`umount {}`", files.display())),
            "{message}"
        );
        in_time("umount", move || drop(unmount));
        let server = Process::start(&served, &image);
        run("/bin/mount", &[text(&server.device), text(&files)]);
        let unmount = UnmountOnDrop(files.clone());
        assert!(fs::read(files.join("synced")).unwrap() == [7; 100_000]);
        drop(unmount);
        run(&fsck, &["-f", "-n", text(&server.device)]);
        server.kill();
        let mut mount = Mount::start(&export, &served).unwrap();
        mount.stop().unwrap();
    }
}

/// Writes and syncs files until an error.
fn write_until_error(files: &Path) -> thread::JoinHandle<()> {
    let files = files.to_owned();
    thread::spawn(move || {
        let write = |number: u64| {
            let file = File::create(files.join(format!("{}", number % 16)))?;
            file.write_all_at(&[number as u8; 200_000], 0)?;
            file.sync_all()
        };
        for number in 0.. {
            if write(number).is_err() {
                return;
            }
        }
    })
}

/// Reads a file repeatedly until an error, and returns it.
fn read_until_error(path: PathBuf) -> thread::JoinHandle<std::io::Error> {
    thread::spawn(move || {
        let file = File::open(path).unwrap();
        loop {
            if let Err(error) = file.read_exact_at(&mut [0; 4096], 0) {
                return error;
            }
        }
    })
}
