//! Loop devices: files as block devices (loop(4)).
//!
//! A loop device with direct I/O passes each request to the file separately, and has up to 128 of
//! them outstanding. Its size, logical sector size, read-only state and rotational flag are those
//! of the drive. Its physical sector size and optimal request size cannot be set. It passes flushes
//! to the file unless it is read-only. A drive that cannot discard rejects the first discard, and
//! the kernel then sends no more.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use linux_raw_sys::loop_device::{
    LO_FLAGS_DIRECT_IO, LO_FLAGS_PARTSCAN, LO_FLAGS_READ_ONLY, loop_config, loop_info64,
};
use rustix::fs::OFlags;

use super::error::FuseError;
use super::users::users_of;
use crate::service::Export;
use traxtent_io::device::mounts::mounts_of_device;

const CONTROL: &str = "/dev/loop-control";

/// The number of attempts to attach a free device. Other programs may take it first.
const ATTACH_TRIES: u32 = 16;

/// The time for other programs to close a device after it was detached. Programs that examine new
/// devices open them briefly.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The poll interval while a device is still open.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The time for other programs to close a device before it counts as in use.
const OPEN_TIMEOUT: Duration = Duration::from_millis(500);

/// A loop device of a served file, which is detached when this is dropped.
#[derive(Debug)]
pub(super) struct LoopDevice {
    device: PathBuf,
    file: PathBuf,
}

impl LoopDevice {
    /// Attaches an export's file to a free loop device.
    pub(super) fn attach(file: &Path, export: &Export) -> Result<LoopDevice, FuseError> {
        let failed = |error| FuseError::Loop {
            device: file.to_owned(),
            error,
        };
        let opened = OpenOptions::new()
            .read(true)
            .write(!export.read_only)
            .open(file)
            .map_err(failed)?;
        let mut config = configuration(file, export);
        config.fd = opened.as_raw_fd().cast_unsigned();
        for _ in 0..ATTACH_TRIES {
            let device = free_device()?;
            let failed = |error| FuseError::Loop {
                device: device.clone(),
                error,
            };
            let loop_file = open(&device, OFlags::empty(), !export.read_only).map_err(failed)?;
            match control::configure(&loop_file, config) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(error) => return Err(failed(error)),
                Ok(()) => {
                    // A loop device keeps the flag that `blockdev --setro` has set.
                    if !export.read_only {
                        control::allow_writes(&loop_file).map_err(failed)?;
                    }
                    let file = file.to_owned();
                    let attached = LoopDevice { device, file };
                    attached.set_rotational(export);
                    return Ok(attached);
                }
            }
        }
        Err(FuseError::Loop {
            device: CONTROL.into(),
            error: io::Error::other(format!(
                "other programs took the free loop device in each of {ATTACH_TRIES} attempts"
            )),
        })
    }

    /// Returns the loop devices that are attached to a file.
    pub(super) fn all_of(file: &Path) -> Vec<LoopDevice> {
        let attached = |device| LoopDevice {
            device,
            file: file.to_owned(),
        };
        devices_of(file).into_iter().map(attached).collect()
    }

    pub(super) fn device(&self) -> &Path {
        &self.device
    }

    /// Detaches the device, unless somebody already has. If it is in use, it stays attached.
    pub(super) fn detach(&self) -> Result<(), FuseError> {
        if !self.is_attached() {
            return Ok(());
        }
        let in_use = || FuseError::LoopInUse {
            device: self.device.clone(),
            mounted_at: mounts_of_device(&self.device),
            processes: users_of(&self.device),
        };
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::ResourceBusy => in_use(),
            _ => FuseError::Loop {
                device: self.device.clone(),
                error,
            },
        };
        let begun = Instant::now();
        while !users_of(&self.device).is_empty() {
            if begun.elapsed() > OPEN_TIMEOUT {
                return Err(in_use());
            }
            thread::sleep(POLL_INTERVAL);
        }
        // Mounts, volumes and swap claim their device exclusively; opening it then fails.
        let device = open(&self.device, OFlags::EXCL, false).map_err(failed)?;
        control::clear(&device).map_err(failed)?;
        // Closing the device writes the kernel's cached data to the drive.
        drop(device);
        let cleared_at = Instant::now();
        while self.is_attached() {
            if cleared_at.elapsed() > CLOSE_TIMEOUT {
                return Err(in_use());
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Returns whether the device is attached to the file.
    fn is_attached(&self) -> bool {
        is_attached(&self.device, &self.file)
    }

    /// Sets the rotational flag. Other attributes of the queue are not set, because they would
    /// outlast the attachment.
    fn set_rotational(&self, export: &Export) {
        let rotational = if export.service.is_rotational() {
            "1"
        } else {
            "0"
        };
        let attribute = sysfs(&self.device, "queue/rotational");
        if let Err(error) = fs::write(attribute, rotational) {
            let device = self.device.display();
            tracing::warn!("{device}: cannot set queue/rotational to {rotational}: {error}");
        }
    }
}

impl Drop for LoopDevice {
    /// Detaches the device. If it is in use, the kernel does so once it no longer is.
    fn drop(&mut self) {
        if self.is_attached()
            && let Ok(device) = open(&self.device, OFlags::empty(), false)
        {
            let _ = control::clear(&device);
        }
    }
}

/// Returns the paths of the loop devices that are attached to a file.
pub(super) fn devices_of(file: &Path) -> Vec<PathBuf> {
    let devices = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    devices
        .map(|entry| Path::new("/dev").join(entry.file_name()))
        .filter(|device| is_attached(device, file))
        .collect()
}

/// Returns whether a device is a loop device that is attached to a file.
fn is_attached(device: &Path, file: &Path) -> bool {
    let backing = fs::read(sysfs(device, "loop/backing_file")).unwrap_or_default();
    let backing = backing.strip_suffix(b"\n").unwrap_or(&backing);
    backing == file.as_os_str().as_bytes()
}

fn sysfs(device: &Path, attribute: &str) -> PathBuf {
    let name = device.file_name().unwrap_or_default();
    Path::new("/sys/block").join(name).join(attribute)
}

/// Opens a block device. A loop device is attached as read-only unless it is opened for writing.
fn open(device: &Path, flags: OFlags, write: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(flags.bits().cast_signed())
        .open(device)
}

/// Returns the path of a loop device that is free now.
fn free_device() -> Result<PathBuf, FuseError> {
    let control = OpenOptions::new()
        .read(true)
        .write(true)
        .open(CONTROL)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FuseError::NoLoop(error),
            _ => FuseError::Loop {
                device: CONTROL.into(),
                error,
            },
        })?;
    let number = control::free_number(&control).map_err(|error| FuseError::Loop {
        device: CONTROL.into(),
        error,
    })?;
    Ok(format!("/dev/loop{number}").into())
}

/// Returns the configuration of a loop device for an export's file, without the file descriptor.
fn configuration(file: &Path, export: &Export) -> loop_config {
    let mut flags = LO_FLAGS_DIRECT_IO as u32 | LO_FLAGS_PARTSCAN as u32;
    if export.read_only {
        flags |= LO_FLAGS_READ_ONLY as u32;
    }
    // The kernel only reports the name. Its last byte must be zero.
    let mut name = [0; 64];
    let path = file.as_os_str().as_bytes();
    let length = path.len().min(name.len() - 1);
    name[..length].copy_from_slice(&path[..length]);
    loop_config {
        fd: 0,
        block_size: export.service.block_sizes().minimum,
        info: loop_info64 {
            lo_device: 0,
            lo_inode: 0,
            lo_rdevice: 0,
            lo_offset: 0,
            lo_sizelimit: 0,
            lo_number: 0,
            lo_encrypt_type: 0,
            lo_encrypt_key_size: 0,
            lo_flags: flags,
            lo_file_name: name,
            lo_crypt_name: [0; 64],
            lo_encrypt_key: [0; 32],
            lo_init: [0; 2],
        },
        __reserved: [0; 8],
    }
}

/// The calls to the kernel.
#[allow(unsafe_code)]
mod control {
    use std::ffi::{c_int, c_void};
    use std::fs::File;
    use std::io;
    use std::ptr;

    use linux_raw_sys::ioctl::BLKROSET;
    use linux_raw_sys::loop_device::{LOOP_CLR_FD, LOOP_CONFIGURE, LOOP_CTL_GET_FREE, loop_config};
    use rustix::ioctl::{Ioctl, IoctlOutput, NoArg, Opcode, Setter, ioctl};

    /// Attaches a file to a loop device.
    pub(super) fn configure(device: &File, config: loop_config) -> io::Result<()> {
        // SAFETY: LOOP_CONFIGURE reads this structure.
        let request = unsafe { Setter::<{ LOOP_CONFIGURE }, loop_config>::new(config) };
        // SAFETY: the request is one of loop devices; any other device refuses it.
        Ok(unsafe { ioctl(device, request) }?)
    }

    /// Clears the flag that makes a block device read-only.
    pub(super) fn allow_writes(device: &File) -> io::Result<()> {
        // SAFETY: BLKROSET reads this number.
        let request = unsafe { Setter::<{ BLKROSET }, c_int>::new(0) };
        // SAFETY: the request is one of block devices; any other device refuses it.
        Ok(unsafe { ioctl(device, request) }?)
    }

    /// Detaches the file of a loop device, once no other program has the device open.
    pub(super) fn clear(device: &File) -> io::Result<()> {
        // SAFETY: LOOP_CLR_FD has no argument.
        let request = unsafe { NoArg::<{ LOOP_CLR_FD }>::new() };
        // SAFETY: the request is one of loop devices; any other device refuses it.
        Ok(unsafe { ioctl(device, request) }?)
    }

    /// Returns the number of a free loop device, which is created if necessary.
    pub(super) fn free_number(control: &File) -> io::Result<i32> {
        // SAFETY: the request is one of /dev/loop-control; any other device refuses it.
        Ok(unsafe { ioctl(control, GetFree) }?)
    }

    /// LOOP_CTL_GET_FREE, which has no argument and returns a number.
    struct GetFree;

    // SAFETY: the request has no argument, so the kernel accesses no memory of this process.
    unsafe impl Ioctl for GetFree {
        type Output = i32;

        const IS_MUTATING: bool = false;

        fn opcode(&self) -> Opcode {
            LOOP_CTL_GET_FREE
        }

        fn as_ptr(&mut self) -> *mut c_void {
            ptr::null_mut()
        }

        unsafe fn output_from_ptr(number: IoctlOutput, _: *mut c_void) -> rustix::io::Result<i32> {
            Ok(number)
        }
    }
}
