//! The front end over FUSE: a service as a file, and as a loop device on it.
//!
//! The tests need root and /dev/fuse, and are skipped without them.

mod data;
mod killed;
mod loop_device;
mod mount;
mod service;
mod users;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::process::geteuid;
use tempfile::TempDir;
use traxtent_server::fuse::Mount;
use traxtent_server::service::{BlockService, Export};

/// Skips the test unless it runs as root on a kernel with FUSE.
macro_rules! needs_fuse {
    () => {
        if let Err(why) = crate::fuse::can_mount() {
            testkit::skip!("{why}");
        }
    };
}
use needs_fuse;

fn can_mount() -> Result<(), String> {
    if !geteuid().is_root() {
        return Err("mounting without fusermount3 needs root".to_owned());
    }
    match File::open("/dev/fuse") {
        Ok(_) => Ok(()),
        Err(error) => Err(format!("/dev/fuse: {error}")),
    }
}

/// A service that is mounted at a directory of its own.
struct Mounted {
    // Fields are dropped in this order.
    mount: Mount,
    folder: TempDir,
}

impl Mounted {
    fn of(service: &Arc<impl BlockService + 'static>) -> Mounted {
        Mounted::start(&export(service, false))
    }

    fn start(export: &Export) -> Mounted {
        let folder = TempDir::new().expect("a directory can be created");
        let mount = Mount::start(export, folder.path()).expect("the service can be mounted");
        Mounted { mount, folder }
    }

    fn file(&self) -> PathBuf {
        self.mount.file()
    }

    /// Attaches the loop device and returns its path.
    fn device(&mut self) -> PathBuf {
        let device = self.mount.attach_loop();
        device.expect("the loop device can be attached").to_owned()
    }

    /// Unmounts the service, and asserts that the directory is empty afterwards.
    fn stop(mut self) {
        self.mount.stop().expect("the mount is not in use");
        let mut left = self
            .folder
            .path()
            .read_dir()
            .expect("the directory can be read");
        assert!(left.next().is_none(), "a file is left");
    }
}

fn export(service: &Arc<impl BlockService + 'static>, read_only: bool) -> Export {
    let service = Arc::clone(service);
    Export {
        name: String::new(),
        description: String::new(),
        service,
        read_only,
    }
}

/// Runs a program that must succeed, and returns its standard output.
fn run(program: impl AsRef<Path>, arguments: &[&str]) -> String {
    let name = program.as_ref().display();
    let output = Command::new(program.as_ref())
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    let arguments = arguments.join(" ");
    assert!(output.status.success(), "{name} {arguments}: {out}{error}");
    out
}

/// Returns a path as an argument.
fn text(path: &Path) -> &str {
    path.to_str().expect("paths of the tests are UTF-8")
}
