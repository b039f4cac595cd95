//! Can an ordinary user serve a drive by means of fusermount3?
//!
//! The test binary runs itself as another user. An environment variable gives its role.

use std::env;
use std::fs;
use std::os::unix::fs::chown;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;
use traxtent_server::fuse::{FuseError, Mount};

use super::service::MemoryService;
use super::{export, needs_fuse};

/// The variable that makes the test binary serve as an ordinary user. Its value is the directory.
const DIRECTORY: &str = "TRAXTENT_TEST_FUSE_USER";
/// The name of the test, by which the test binary runs it in another process.
const TEST: &str = "fuse::users::ordinary_users_can_serve";

/// The ID of the user `nobody`. fusermount3 requires the user to have a name.
const USER: u32 = 65_534;

/// A shell script for a mount namespace of its own: makes /dev/fuse accessible to everyone, as
/// distributions do, and runs its arguments as a command. `$0` is a directory for the device node.
const OPEN_DEVICE: &str = "rm -f $0/fuse && mknod $0/fuse c 10 229 && chmod 666 $0/fuse && \
    mount --bind $0/fuse /dev/fuse && exec \"$@\"";

/// Can a user who is not root mount, write, read and unmount, and is a loop device refused with the
/// reason? Without fusermount3, does the error name the package?
#[test]
fn ordinary_users_can_serve() {
    if let Some(directory) = env::var_os(DIRECTORY) {
        return as_user(Path::new(&directory));
    }
    needs_fuse!();
    let (setpriv, unshare) = (testkit::tool!("setpriv"), testkit::tool!("unshare"));
    let folder = TempDir::new().unwrap();
    chown(folder.path(), Some(USER), Some(USER)).unwrap();
    // The user may have no access to the directory of the test binary.
    let (binary, directory) = (folder.path().join("tests"), folder.path().join("served"));
    fs::copy(env::current_exe().unwrap(), &binary).unwrap();
    fs::create_dir(&directory).unwrap();
    chown(&directory, Some(USER), Some(USER)).unwrap();
    let run = |path: &str| {
        let output = Command::new(&unshare)
            .args(["--mount", "/bin/sh", "-c", OPEN_DEVICE])
            .args([folder.path(), &setpriv])
            .args([format!("--reuid={USER}"), format!("--regid={USER}")])
            .args(["--clear-groups", "/usr/bin/env", &format!("PATH={path}")])
            .arg(&binary)
            .args(["--exact", TEST, "--nocapture"])
            .env(DIRECTORY, &directory)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success(),
            "{}{}",
            text(&output.stdout),
            text(&output.stderr)
        );
        text(&output.stdout)
    };
    assert!(run("/nowhere").contains("install the package fuse3"));
    if testkit::tool("fusermount3").is_none() {
        testkit::skip!("fusermount3 is not installed");
    }
    assert!(run(&env::var("PATH").unwrap()).contains("served as a user"));
}

fn as_user(directory: &Path) {
    let service = Arc::new(MemoryService::new(1 << 20, 512));
    let mut mount = match Mount::start(&export(&service, false), directory) {
        Err(error @ FuseError::NoHelper) => return println!("{error}"),
        started => started.unwrap(),
    };
    fs::write(mount.file(), [5; 1000]).unwrap();
    assert_eq!(service.data()[..1000], [5; 1000]);
    assert_eq!(fs::read(mount.file()).unwrap(), service.data());
    let error = mount.attach_loop().expect_err("only root can").to_string();
    assert!(error.contains("needs root"), "{error}");
    let file = fs::File::open(mount.file()).unwrap();
    let error = mount.stop().expect_err("the file is open");
    assert!(matches!(error, FuseError::InUse { .. }), "{error}");
    drop(file);
    mount.stop().unwrap();
    assert!(fs::read_dir(directory).unwrap().next().is_none());
    println!("served as a user");
}
