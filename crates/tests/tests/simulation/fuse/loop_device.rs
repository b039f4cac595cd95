//! Does the loop device have the drive's properties, and pass requests on unchanged?

use std::fs;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;
use traxtent_server::fuse::FuseError;
use traxtent_units::Rng;

use super::service::{MemoryService, Seen};
use super::{Mounted, needs_fuse, run, text};

/// The size of the service in bytes.
const SIZE: usize = 64 << 20;

/// Returns an attribute of a block device's queue from sysfs.
fn queue(device: &Path, attribute: &str) -> String {
    let name = device.file_name().unwrap();
    let path = Path::new("/sys/block")
        .join(name)
        .join("queue")
        .join(attribute);
    let value = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    value.trim().to_owned()
}

/// Does the kernel report the drive's size, sector size and rotation, and, after a first attempt,
/// whether the drive supports discards? Is the loop device's I/O direct, and is the device detached
/// by a stop?
#[test]
fn the_kernel_sees_the_drive() {
    needs_fuse!();
    let blockdev = testkit::tool!("blockdev");
    let blkdiscard = testkit::tool!("blkdiscard");
    for (sector, rotational, trim_zeroes) in [(512, true, false), (4096, false, true)] {
        let mut service = MemoryService::new(SIZE, sector);
        service.rotational = rotational;
        service.trim_zeroes = trim_zeroes;
        let service = Arc::new(service);
        let mut mounted = Mounted::of(&service);
        let device = mounted.device();
        assert_eq!(queue(&device, "logical_block_size"), sector.to_string());
        assert_eq!(queue(&device, "rotational") == "1", rotational);
        // The kernel reports the first discard as done, even if the drive refuses it.
        run(&blkdiscard, &["--length", "1048576", text(&device)]);
        assert_eq!(queue(&device, "discard_max_bytes") != "0", trim_zeroes);
        let size = run(&blockdev, &["--getsize64", text(&device)]);
        assert_eq!(size.trim(), SIZE.to_string());
        let name = device.file_name().unwrap();
        let direct = Path::new("/sys/block").join(name).join("loop/dio");
        assert_eq!(fs::read_to_string(direct).unwrap(), "1\n");
        mounted.stop();
        assert!(
            queue(&device, "../size") == "0",
            "the device is still attached"
        );
    }
}

/// Are at least 60 of 64 requests outstanding at the drive at once, through the loop device and
/// through the file?
#[test]
fn requests_are_outstanding_together() {
    needs_fuse!();
    let fio = testkit::tool!("fio");
    let service = Arc::new(MemoryService::new(SIZE, 512));
    let mut mounted = Mounted::of(&service);
    let device = mounted.device();
    for (path, operation) in [
        (&device, "randread"),
        (&device, "randwrite"),
        (&mounted.file(), "randread"),
    ] {
        service.hold_until(64);
        let (path, operation) = (
            format!("--filename={}", text(path)),
            format!("--rw={operation}"),
        );
        let options = ["--ioengine=libaio", "--iodepth=64", "--direct=1", "--bs=4k"];
        let amount = ["--size=64m", "--io_size=1m", "--allow_file_create=0"];
        run(
            &fio,
            &[&["--name=depth", &path, &operation], &options[..], &amount].concat(),
        );
        let peak = service.peak();
        assert!(peak >= 60, "{path} {operation}: {peak} were outstanding");
    }
    mounted.stop();
}

/// Do direct requests arrive with their own offsets and sizes, and 1 MiB requests in at most two
/// pieces?
#[test]
fn requests_arrive_as_they_are() {
    needs_fuse!();
    let dd = testkit::tool!("dd");
    let service = Arc::new(MemoryService::new(SIZE, 512));
    let mut mounted = Mounted::of(&service);
    let device = mounted.device();
    let (from, to) = (
        format!("if={}", text(&device)),
        format!("of={}", text(&device)),
    );
    for count in [512, 4096, 264 << 10, 512 << 10, 1 << 20] {
        let size = format!("bs={count}");
        let read = [
            &*from,
            "of=/dev/null",
            "iflag=direct",
            &size,
            "count=4",
            "skip=1",
        ];
        let write = [
            "if=/dev/zero",
            &*to,
            "oflag=direct",
            &size,
            "count=4",
            "seek=1",
        ];
        for command in [read, write] {
            service.take_seen();
            run(&dd, &command);
            let pieces = pieces_of(&service.take_seen(), count);
            let limit = if count == 1 << 20 { 2 } else { 1 };
            let largest = pieces.iter().max();
            assert!(largest <= Some(&limit), "{command:?}: {pieces:?} pieces");
        }
    }
    mounted.stop();
}

/// Returns the number of pieces of each of four requests of `count` bytes, the first at offset
/// `count`. The pieces must cover the requests exactly.
fn pieces_of(seen: &[Seen], count: u64) -> Vec<usize> {
    let mut ranges: Vec<(u64, u64)> = seen
        .iter()
        .filter_map(|one| match *one {
            Seen::Read { offset, count } | Seen::Write { offset, count, .. } => {
                Some((offset, count))
            }
            _ => None,
        })
        .filter(|(offset, _)| (count..5 * count).contains(offset))
        .collect();
    ranges.sort_unstable();
    let mut pieces = vec![0; 4];
    let mut next = count;
    for (offset, length) in ranges {
        assert_eq!(offset, next, "{seen:?}");
        pieces[(offset / count - 1) as usize] += 1;
        next += length;
    }
    assert_eq!(next, 5 * count, "{seen:?}");
    pieces
}

/// Are zeros written on the kernel's request, even if the drive ignores trims?
#[test]
fn zeros_are_written() {
    needs_fuse!();
    let (blkdiscard, blockdev) = (testkit::tool!("blkdiscard"), testkit::tool!("blockdev"));
    for trim_zeroes in [false, true] {
        let mut service = MemoryService::new(SIZE, 512);
        service.trim_zeroes = trim_zeroes;
        let service = Arc::new(service);
        service.fill(|data| data.fill(3));
        let mut mounted = Mounted::of(&service);
        let device = mounted.device();
        let range = ["--offset", "1048576", "--length", "2097152"];
        run(
            &blkdiscard,
            &[&["--zeroout"], &range[..], &[text(&device)]].concat(),
        );
        run(&blockdev, &["--flushbufs", text(&device)]);
        let data = service.data();
        assert!(data[1 << 20..3 << 20].iter().all(|byte| *byte == 0));
        assert!(data[..1 << 20].iter().all(|byte| *byte == 3));
        assert!(data[3 << 20..].iter().all(|byte| *byte == 3));
        mounted.stop();
    }
}

/// Does a file system on the device keep its files over a remount and a restart of the server, and
/// does it stay consistent?
#[test]
fn a_file_system_keeps_its_files() {
    needs_fuse!();
    let mkfs = testkit::tool!("mkfs.ext4");
    let fsck = testkit::tool!("e2fsck");
    let service = Arc::new(MemoryService::new(SIZE, 512));
    let folder = TempDir::new().unwrap();
    let mut rng = Rng::new(5);
    let contents: Vec<u8> = (0..10 << 20).map(|_| rng.below(256) as u8).collect();
    let mut mounted = Mounted::of(&service);
    let device = mounted.device();
    run(mkfs, &["-q", text(&device)]);
    with_mounted(&device, folder.path(), || {
        fs::write(folder.path().join("file"), &contents).unwrap();
    });
    mounted.stop();
    let mut mounted = Mounted::of(&service);
    let device = mounted.device();
    with_mounted(&device, folder.path(), || {
        assert!(fs::read(folder.path().join("file")).unwrap() == contents);
    });
    run(fsck, &["-f", "-n", text(&device)]);
    mounted.stop();
}

/// Mounts a device while `function` runs.
pub(super) fn with_mounted(device: &Path, at: &Path, function: impl FnOnce()) {
    run("/bin/mount", &[text(device), text(at)]);
    let unmount = UnmountOnDrop(at.to_owned());
    function();
    drop(unmount);
}

/// Unmounts a directory when it is dropped, even if the test fails.
pub(super) struct UnmountOnDrop(pub(super) PathBuf);

impl Drop for UnmountOnDrop {
    fn drop(&mut self) {
        run("/bin/umount", &[text(&self.0)]);
    }
}

/// If the loop device is mounted or open, does a stop fail with the command to run first, and does
/// the server continue?
#[test]
fn a_device_in_use_is_reported() {
    needs_fuse!();
    let mkfs = testkit::tool!("mkfs.ext4");
    let service = Arc::new(MemoryService::new(SIZE, 512));
    let folder = TempDir::new().unwrap();
    let mut mounted = Mounted::of(&service);
    let device = mounted.device();
    run(mkfs, &["-q", text(&device)]);
    with_mounted(&device, folder.path(), || {
        let error = mounted.mount.stop().expect_err("it is mounted");
        assert!(matches!(error, FuseError::LoopInUse { .. }), "{error}");
        let command = format!("`umount {}`", folder.path().display());
        assert!(error.to_string().contains(&command), "{error}");
        fs::write(folder.path().join("file"), "still served").unwrap();
    });
    let file = File::open(&device).unwrap();
    let error = mounted.mount.stop().expect_err("it is open");
    let command = format!("`fuser -v {}`", device.display());
    assert!(error.to_string().contains(&command), "{error}");
    file.read_exact_at(&mut [0; 512], 0).unwrap();
    drop(file);
    mounted.stop();
}
