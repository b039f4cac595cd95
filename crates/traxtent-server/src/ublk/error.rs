//! The errors of making and removing block devices.

use std::io;
use std::path::PathBuf;

use rustix::io::Errno;

/// The reason why a block device cannot be made or removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UblkError {
    /// The kernel has no ublk driver, or has not loaded it.
    #[error(
        "the ublk driver is not loaded; load it with `modprobe ublk_drv` (Linux 6.5 or later, with CONFIG_BLK_DEV_UBLK)"
    )]
    NoDriver,
    /// The driver is older than the commands that this front end sends.
    #[error("the kernel's ublk driver is too old; use Linux 6.5 or later")]
    OldDriver,
    /// The driver is loaded, but its node does not exist.
    #[error(
        "/dev/ublk-control does not exist, although the driver is loaded; create it with `mknod /dev/ublk-control c 10 {minor}`, or pass it into this container"
    )]
    NoNode {
        /// The minor number of the node, or `MINOR` if it is unknown.
        minor: String,
    },
    /// The user may not use a node.
    #[error(
        "{}: permission denied; run as root, or have an administrator grant read and write access to /dev/ublk-control and /dev/ublk[bc]* with a udev rule",
        path.display()
    )]
    Denied {
        /// The node.
        path: PathBuf,
    },
    /// The system does not permit io_uring.
    #[error(
        "io_uring is not permitted here: {error}; permit it with `sysctl kernel.io_uring_disabled=0` and, in a container, in its seccomp profile"
    )]
    IoUringDisabled {
        /// The system's error.
        error: io::Error,
    },
    /// The system cannot set up io_uring.
    #[error("cannot set up io_uring for ublk: {0}")]
    IoUring(io::Error),
    /// The requested number belongs to another device.
    #[error("ublk device {number} exists; choose another number, or omit it")]
    NumberTaken {
        /// The number.
        number: u32,
    },
    /// Another process has opened the device's node for servers.
    #[error("{}: in use by another process; end it and try again", path.display())]
    Busy {
        /// The node.
        path: PathBuf,
    },
    /// A sector size that the kernel's block devices do not support.
    #[error(
        "{what} of {bytes} bytes: the kernel's block devices need a power of two from 512 to {maximum}; serve this drive over NBD"
    )]
    SectorSize {
        /// The kind of sector.
        what: &'static str,
        /// Its size in bytes.
        bytes: u32,
        /// The maximum in bytes.
        maximum: u32,
    },
    /// A command that the driver refused, or memory that could not be mapped.
    #[error(
        "ublk device {number}: cannot {what}: {errno}; the kernel's log can contain the reason"
    )]
    Command {
        /// The operation.
        what: &'static str,
        /// The device's number, or `(new)`.
        number: String,
        /// The system's error.
        errno: Errno,
    },
    /// A node that cannot be opened.
    #[error("{}: cannot {what} it: {error}", path.display())]
    Node {
        /// The operation.
        what: &'static str,
        /// The node.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
