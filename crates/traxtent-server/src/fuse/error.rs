//! The errors of the front end for files and loop devices.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a file system cannot be mounted or unmounted, or a loop device cannot be attached
/// or detached.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FuseError {
    /// A directory that cannot be used.
    #[error("{}: cannot mount there: {error}; name a directory that exists and is empty", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A directory that is not empty, whose files would be hidden.
    #[error("{}: cannot mount there: the directory is not empty; name an empty one", path.display())]
    NotEmpty {
        /// The directory.
        path: PathBuf,
    },
    /// A directory where another file system is mounted.
    #[error(
        "{}: cannot mount there: {source_name} ({kind}) is mounted there; unmount it, or name \
         another directory",
        path.display()
    )]
    MountPoint {
        /// The directory.
        path: PathBuf,
        /// The device that is mounted, or the name that stands for it in the mount table.
        source_name: String,
        /// The type of the file system.
        kind: String,
    },
    /// A directory where another server's file system is mounted.
    #[error(
        "{}: cannot mount there: another server serves there; stop it, or name another directory",
        path.display()
    )]
    Served {
        /// The directory.
        path: PathBuf,
    },
    /// A loop device that a killed server has left, and that is still in use.
    #[error(
        "{}: a killed server has left {}, which is still in use{}; data \
         written to it since then is lost",
        path.display(), device.display(), remedy(mounted_at, processes, device)
    )]
    LeftoverInUse {
        /// The directory.
        path: PathBuf,
        /// The loop device.
        device: PathBuf,
        /// Where file systems on the device are mounted.
        mounted_at: Vec<PathBuf>,
        /// The processes that have the device open.
        processes: Vec<u32>,
    },
    /// A killed server's mount that is still in use.
    #[error(
        "{0}: a killed server has left this mount, which is still in use; end the processes that \
         use it (`fuser -vm {0}` lists them), or run `umount -l {0}`",
        path.display()
    )]
    LeftoverMount {
        /// The directory.
        path: PathBuf,
    },
    /// A kernel without FUSE.
    #[error("/dev/fuse: {0}; `modprobe fuse` (as root) loads the kernel module")]
    NoFuse(io::Error),
    /// The program that mounts for ordinary users is not installed.
    #[error(
        "fusermount3 is not installed, and an ordinary user cannot mount without it; install the \
         package fuse3, or run as root"
    )]
    NoHelper,
    /// The program that mounts for ordinary users refused.
    #[error("{}: cannot mount there: {message}", path.display())]
    Refused {
        /// The directory.
        path: PathBuf,
        /// The program's message.
        message: String,
    },
    /// The kernel refused the mount.
    #[error("{}: cannot mount there: {error}{}", path.display(), rights(error, "mounting"))]
    Mount {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The connection to the kernel cannot be served.
    #[error("{}: cannot serve the kernel's requests: {error}", path.display())]
    Session {
        /// The directory.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// A file system that is still in use.
    #[error(
        "{}: cannot unmount it: it is in use; end the processes that use it (`fuser -vm {}` lists them)",
        path.display(), path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A file system that cannot be unmounted.
    #[error("{}: cannot unmount it: {error}; run `umount -l {}` as root", path.display(), path.display())]
    Unmount {
        /// The directory.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A kernel without loop devices.
    #[error("/dev/loop-control: {0}; `modprobe loop` (as root) loads the kernel module")]
    NoLoop(io::Error),
    /// A loop device that cannot be attached or detached.
    #[error("{}: {error}{}", device.display(), rights(error, "attaching or detaching a loop device"))]
    Loop {
        /// The loop device, the control device of loop devices, or a file that cannot be opened.
        device: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// A loop device that is still in use.
    #[error("{}: cannot detach it: it is in use{}", device.display(), remedy(mounted_at, processes, device))]
    LoopInUse {
        /// The loop device.
        device: PathBuf,
        /// Where file systems on the device are mounted.
        mounted_at: Vec<PathBuf>,
        /// The processes that have the device open.
        processes: Vec<u32>,
    },
}

impl FuseError {
    /// Returns the directory or device that could not be released because it is in use.
    pub fn in_use(&self) -> Option<&Path> {
        match self {
            FuseError::InUse { path } | FuseError::LoopInUse { device: path, .. } => Some(path),
            _ => None,
        }
    }
}

/// Returns the remedy if permission was denied, and an empty text otherwise.
fn rights(error: &io::Error, what: &str) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => format!("; {what} needs root"),
        _ => String::new(),
    }
}

/// Returns the remedy for a device that is in use.
fn remedy(mounted_at: &[PathBuf], processes: &[u32], device: &Path) -> String {
    if mounted_at.is_empty() {
        let device = device.display();
        return match processes {
            [] => {
                format!("; close its users (`fuser -v {device}` and `lsblk {device}` list them)")
            }
            [one] => format!("; end process {one}, which has it open"),
            [first, rest @ ..] => format!(
                "; end processes {first} and {} more, which have it open (`fuser -v {device}` \
                 lists them)",
                rest.len()
            ),
        };
    }
    let mut text = String::from("; run");
    for (at, path) in mounted_at.iter().enumerate() {
        let join = if at == 0 { "" } else { " and" };
        let _ = write!(text, "{join} `umount {}`", path.display());
    }
    text
}
