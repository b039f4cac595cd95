//! Image files and loop devices, which have no spindle, and paths that are not disks.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use traxtent_io::device::{BlockTarget, Device, DeviceError, in_use, open};
use traxtent_probe::{ProbeError, Target, TargetError, qualify};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors};

/// An image file that is deleted after the test.
pub(crate) struct Image(pub(crate) PathBuf);

/// The size of an image in sectors of 512 bytes.
pub(crate) const SECTORS: u64 = 65_536;

impl Image {
    pub(crate) fn new(name: &str) -> Image {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        File::create(&path).unwrap().set_len(SECTORS * 512).unwrap();
        Image(path)
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A loop device that is detached after the test.
pub(crate) struct Loop(pub(crate) PathBuf);

impl Loop {
    pub(crate) fn attach(losetup: &Path, image: &Path) -> Result<Loop, String> {
        let attach = Command::new(losetup)
            .args(["--find", "--show"])
            .arg(image)
            .output();
        let output = attach.map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned());
        }
        let device = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok(Loop(device.into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
    }
}

/// Asserts that a device is refused as not rotating because of measured values, not because of a
/// timer tick or a cache.
fn assert_nothing_turns(device: &mut dyn Target) {
    let error = qualify(device).unwrap_err();
    let ProbeError::NotRotating(why) = &error else {
        panic!("{error}");
    };
    for reason in [
        "verify: the drive does not support VERIFY",
        "read-fua: the drive does not support force unit access",
        "caching stays on: the drive does not support cache control",
        "read-interleaved: distant sectors that have not been read before arrive in 0.",
    ] {
        assert!(why.contains(reason), "{reason:?} is not in {why:?}");
    }
    // On a busy machine, some reads of a sector take longer than others.
    let is_too_fast = why.contains("read: reading the same sector again takes 0.")
        && why.contains("faster than any disk turns (3 ms at 20,000 RPM)");
    let has_no_period = why.contains("read: the same sector, read at random times, takes a median")
        && why.contains("are not multiples of any revolution from 3 to 30 ms apart");
    assert!(is_too_fast || has_no_period, "{why:?}");
}

/// Is the size of an image file given in sectors, and is the file refused as not rotating, with the
/// reasons?
#[test]
fn an_image_file_does_not_turn() {
    let image = Image::new("image-file");
    let mut device = open(&image.0).unwrap();
    assert!(matches!(device, Device::Block(_)));
    assert_eq!(device.identity().capacity, Sectors(SECTORS));
    assert_eq!(device.identity().logical_bytes, 512);
    assert_nothing_turns(&mut device);
}

/// Is a loop device refused as not rotating? Is it detected that an image file backs a loop
/// device, and that another program holds the device?
#[test]
fn a_loop_device_does_not_turn() {
    let losetup = testkit::tool!("losetup");
    let image = Image::new("loop-image");
    assert_eq!(in_use(&image.0), None);
    let device = match Loop::attach(&losetup, &image.0) {
        Ok(device) => device,
        Err(why) => testkit::skip!("no loop device: {why}"),
    };
    let user = in_use(&image.0).unwrap();
    assert!(
        user.ends_with(&format!("backs {}", device.0.display())),
        "{user}"
    );

    let mut target = BlockTarget::open(&device.0).unwrap();
    assert_eq!(target.identity().capacity, Sectors(SECTORS));
    assert_nothing_turns(&mut target);

    assert_eq!(
        in_use(&device.0),
        None,
        "a device that only this process reads is in use"
    );
    let exclusive = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::EXCL.bits() as i32)
        .open(&device.0)
        .unwrap();
    let user = in_use(&device.0).unwrap();
    assert_eq!(
        user,
        format!("another program holds {}", device.0.display())
    );
    drop(exclusive);
    assert_eq!(in_use(&device.0), None);
}

/// Does a block target serve only reads of 1 to 131,072 sectors within the device, without force
/// unit access?
#[test]
fn only_reads_within_bounds_are_served() {
    let image = Image::new("bounds");
    let mut target = BlockTarget::open(&image.0).unwrap();
    let read = Request::read(Lbn(3), 5);
    let timing = target.request(read).unwrap();
    assert!(timing.sent < timing.completed && timing.completed <= target.now());
    target.request(Request::read(Lbn(SECTORS - 1), 1)).unwrap();
    for (request, message) in [
        (
            Request {
                op: Op::Verify,
                ..read
            },
            "the drive does not support VERIFY",
        ),
        (
            Request { fua: true, ..read },
            "the drive does not support force unit access",
        ),
        (
            Request {
                op: Op::Write,
                ..read
            },
            "the drive refused the request: writes are not allowed",
        ),
        (Request::read(Lbn(9), 0), "0 sectors at LBN 9"),
        (Request::read(Lbn(9), u32::MAX), "expected 1 to 131072"),
        (
            Request::read(Lbn(SECTORS - 1), 2),
            "the device ends before LBN 65536",
        ),
        (
            Request::read(Lbn(u64::MAX), 2),
            "the device ends before LBN 65536",
        ),
    ] {
        let error = target.request(request).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// If a device shrinks during a probe, is it reported as gone, not as unreadable?
#[test]
fn a_device_that_shrinks_is_gone() {
    let image = Image::new("shrinks");
    let mut target = BlockTarget::open(&image.0).unwrap();
    target.request(Request::read(Lbn(4000), 1)).unwrap();
    OpenOptions::new()
        .write(true)
        .open(&image.0)
        .unwrap()
        .set_len(4096)
        .unwrap();
    let error = target.request(Request::read(Lbn(4000), 1)).unwrap_err();
    assert!(matches!(error, TargetError::Gone(_)), "{error}");
}

/// Is each path that is not a disk refused in one line that gives the reason?
#[test]
fn paths_that_are_not_disks_are_refused() {
    let empty = Image::new("empty");
    File::create(&empty.0).unwrap().set_len(511).unwrap();
    let message = |path: &str| {
        let error: DeviceError = open(Path::new(path)).unwrap_err();
        assert!(!error.to_string().contains('\n'));
        error.to_string()
    };
    assert_eq!(message("/no/disk"), "/no/disk: no such device or file");
    assert_eq!(
        message("/proc"),
        "/proc: is a directory; expected a block device or image file"
    );
    assert_eq!(
        message("/dev/null"),
        "/dev/null: is a character device; expected a block device or image file"
    );
    let path = empty.0.to_str().unwrap();
    assert_eq!(
        message(path),
        format!("{path}: 511 bytes are less than one sector")
    );
}
