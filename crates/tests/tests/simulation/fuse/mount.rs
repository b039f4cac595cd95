//! Are unusable directories refused, and is nothing left after a stop?

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use tempfile::TempDir;
use traxtent_server::fuse::{FuseError, Mount};

use super::service::MemoryService;
use super::{Mounted, export, needs_fuse, run, text};

fn service() -> Arc<MemoryService> {
    Arc::new(MemoryService::new(1 << 20, 512))
}

/// Is a path that is missing, not empty, not a directory, or another program's mount point refused
/// with the reason?
#[test]
fn unusable_directories_are_refused() {
    needs_fuse!();
    let (mount, umount) = (testkit::tool!("mount"), testkit::tool!("umount"));
    let folder = TempDir::new().unwrap();
    let export = export(&service(), false);
    let refused = |path: &std::path::Path| {
        let error = Mount::start(&export, path).expect_err("it must be refused");
        (error.to_string(), error)
    };
    let (message, error) = refused(&folder.path().join("missing"));
    assert!(matches!(error, FuseError::Directory { .. }), "{message}");
    assert!(message.contains("No such file"), "{message}");
    fs::write(folder.path().join("a"), "b").unwrap();
    let (message, error) = refused(folder.path());
    assert!(matches!(error, FuseError::NotEmpty { .. }), "{message}");
    let (message, error) = refused(&folder.path().join("a"));
    assert!(matches!(error, FuseError::Directory { .. }), "{message}");
    fs::remove_file(folder.path().join("a")).unwrap();
    run(mount, &["-t", "tmpfs", "none", text(folder.path())]);
    let (message, error) = refused(folder.path());
    run(umount, &[text(folder.path())]);
    assert!(matches!(error, FuseError::MountPoint { .. }), "{message}");
    assert!(
        message.contains("none (tmpfs) is mounted there"),
        "{message}"
    );
}

/// Is a directory that another server uses refused, and does the other server continue?
#[test]
fn a_served_directory_is_refused() {
    needs_fuse!();
    let mounted = Mounted::of(&service());
    let error = Mount::start(&export(&service(), false), mounted.folder.path());
    let error = error.expect_err("it must be refused");
    assert!(matches!(error, FuseError::Served { .. }), "{error}");
    assert!(mounted.mount.is_mounted());
    File::open(mounted.file()).unwrap();
    mounted.stop();
}

/// Do two exports in one process, each at its own directory, keep their own data?
#[test]
fn two_exports_are_independent() {
    needs_fuse!();
    let services = [service(), service()];
    let mounted = services.each_ref().map(Mounted::of);
    for (number, one) in (1..).zip(&mounted) {
        fs::write(one.file(), [number; 512]).unwrap();
    }
    for (number, service) in (1..).zip(&services) {
        assert_eq!(service.data()[..512], [number; 512]);
    }
    mounted.into_iter().for_each(Mounted::stop);
}

/// Does a stop report an open file and continue to serve it, and does a stop succeed once the file
/// is closed?
#[test]
fn a_stop_reports_files_in_use() {
    needs_fuse!();
    let mut mounted = Mounted::of(&service());
    let file = File::open(mounted.file()).unwrap();
    let error = mounted.mount.stop().expect_err("the file is open");
    assert!(matches!(error, FuseError::InUse { .. }), "{error}");
    assert!(mounted.mount.is_mounted());
    file.read_exact_at(&mut [0; 512], 0).unwrap();
    drop(file);
    mounted.stop();
}

/// Does dropping a mount whose file is open remove it from its directory?
#[test]
fn a_dropped_mount_is_gone() {
    needs_fuse!();
    let Mounted { mount, folder } = Mounted::of(&service());
    let file = File::open(mount.file()).unwrap();
    drop(mount);
    assert!(folder.path().read_dir().unwrap().next().is_none());
    drop(file);
}

/// Is an unmount by another program noticed, and does a stop then leave a newer mount at the
/// directory in place?
#[test]
fn an_external_unmount_is_noticed() {
    needs_fuse!();
    let (mount, umount) = (testkit::tool!("mount"), testkit::tool!("umount"));
    let mut mounted = Mounted::of(&service());
    let folder = mounted.folder.path().to_owned();
    assert!(mounted.mount.is_mounted());
    run(&umount, &[text(&folder)]);
    let began = Instant::now();
    while mounted.mount.is_mounted() {
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "the unmount is not noticed"
        );
        thread::sleep(Duration::from_millis(5));
    }
    run(mount, &["-t", "tmpfs", "none", text(&folder)]);
    fs::write(folder.join("kept"), "").unwrap();
    mounted.mount.stop().unwrap();
    drop(mounted.mount);
    let is_kept = folder.join("kept").exists();
    run(umount, &[text(&folder)]);
    assert!(is_kept, "a stop removed the mount of another program");
}

/// Can the file of a read-only export be opened only for reading, and is its loop device read-only?
#[test]
fn read_only_exports_are_not_written() {
    needs_fuse!();
    let service = service();
    let mut mounted = Mounted::start(&export(&service, true));
    File::open(mounted.file()).unwrap();
    let error = File::options().write(true).open(mounted.file());
    let error = error.expect_err("it is read-only");
    assert_eq!(Errno::from_io_error(&error), Some(Errno::ROFS));
    let device = mounted.device();
    let blockdev = testkit::tool!("blockdev");
    assert_eq!(run(blockdev, &["--getro", text(&device)]), "1\n");
    mounted.stop();
}
