//! Mounting and unmounting.
//!
//! Root mounts with the system call. Ordinary users mount with the program fusermount3, which
//! returns the connection to the kernel through a socket (`_FUSE_COMMFD` in fusermount3's source,
//! `util/fusermount.c` of libfuse). `fuser` could do both, but it unmounts by path, without
//! checking that the mount there is still its own, and has no error for a mount in use.

use std::ffi::CString;
use std::fs::OpenOptions;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType,
};

use super::error::FuseError;
use parking_lot::Mutex;
use rustix::fs::Dev;
use traxtent_io::device::Storage;
use traxtent_io::device::mounts::{Mount, mounted_at};

/// The file system type that identifies our mounts.
pub(super) const FILE_SYSTEM_TYPE: &str = "fuse.traxtent";

/// The source of our mounts, as shown by `df`.
const SOURCE: &str = "traxtent";

/// The program that mounts for ordinary users.
const HELPER: &str = "fusermount3";

/// The number of attempts to unmount. The kernel closes the file of a detached loop device with a
/// delay.
const UNMOUNT_TRIES: u32 = 20;

/// The pause between attempts to unmount.
const UNMOUNT_PAUSE: Duration = Duration::from_millis(25);

/// The device numbers of the file systems that this process serves, as `major:minor`.
static SERVED: Mutex<Vec<Dev>> = Mutex::new(Vec::new());

/// Returns whether a file system that this process serves holds the bytes.
pub(crate) fn is_served_here(storage: &Storage) -> bool {
    let device = storage.file_system();
    device.is_some_and(|device| SERVED.lock().contains(&device))
}

/// A mounted file system, which is unmounted when this is dropped.
#[derive(Debug)]
pub(super) struct MountPoint {
    directory: PathBuf,
    /// The device number of the mount, as `major:minor`; empty if the mount was gone at once.
    device: Option<Dev>,
}

impl MountPoint {
    /// Mounts a file system at a directory, whose path must be canonical. Also returns the
    /// connection to the kernel.
    pub(super) fn mount(
        directory: &Path,
        read_only: bool,
    ) -> Result<(MountPoint, OwnedFd), FuseError> {
        let connection = if rustix::process::geteuid().is_root() {
            mount_as_root(directory, read_only)?
        } else {
            mount_by_helper(directory, read_only)?
        };
        let mount = mounted_at(directory).map_err(|error| {
            // Without its device number, the mount could not be recognized later.
            detach(directory);
            FuseError::Mount {
                path: directory.to_owned(),
                error,
            }
        })?;
        let mount_point = MountPoint {
            directory: directory.to_owned(),
            device: mount.map(|mount| mount.device),
        };
        SERVED.lock().extend(mount_point.device);
        Ok((mount_point, connection))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts the file system. Does nothing if the mount at the directory is another one.
    ///
    /// # Errors
    /// Returns an error if the file system is in use, if the system cannot unmount it, or if the
    /// mount table cannot be read.
    pub(super) fn unmount(&self) -> Result<(), FuseError> {
        if self.is_ours(mounted_at(&self.directory))? {
            unmount(&self.directory)
        } else {
            Ok(())
        }
    }

    /// Returns whether the visible mount at the directory, which the mount table names, is this
    /// one.
    fn is_ours(&self, visible: io::Result<Option<Mount>>) -> Result<bool, FuseError> {
        let visible = visible.map_err(|error| FuseError::Unmount {
            path: self.directory.clone(),
            error,
        })?;
        Ok(visible.is_some_and(|mount| {
            mount.kind == FILE_SYSTEM_TYPE && Some(mount.device) == self.device
        }))
    }
}

impl Drop for MountPoint {
    /// Removes the mount from the directory even if it is in use.
    fn drop(&mut self) {
        SERVED.lock().retain(|device| Some(*device) != self.device);
        if let Ok(true) = self.is_ours(mounted_at(&self.directory)) {
            detach(&self.directory);
        }
    }
}

/// Removes the mount from a directory even if it is in use, if possible.
fn detach(directory: &Path) {
    if rustix::process::geteuid().is_root() {
        let _ = rustix::mount::unmount(directory, UnmountFlags::DETACH);
    } else {
        let _ = helper(&["-u", "-z"], directory).output();
    }
}

/// Unmounts the FUSE file system at a directory.
pub(super) fn unmount(directory: &Path) -> Result<(), FuseError> {
    let path = directory.to_owned();
    for _ in 1..UNMOUNT_TRIES {
        match try_unmount(directory) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                thread::sleep(UNMOUNT_PAUSE);
            }
            Err(error) => return Err(FuseError::Unmount { path, error }),
            Ok(()) => return Ok(()),
        }
    }
    match try_unmount(directory) {
        Err(error) if error.kind() == io::ErrorKind::ResourceBusy => Err(FuseError::InUse { path }),
        Err(error) => Err(FuseError::Unmount { path, error }),
        Ok(()) => Ok(()),
    }
}

fn try_unmount(directory: &Path) -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        return Ok(rustix::mount::unmount(directory, UnmountFlags::NOFOLLOW)?);
    }
    let output = helper(&["-u"], directory).output()?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if message.contains("busy") {
        Err(io::ErrorKind::ResourceBusy.into())
    } else {
        Err(io::Error::other(message))
    }
}

fn mount_as_root(directory: &Path, read_only: bool) -> Result<OwnedFd, FuseError> {
    let failed = |error: io::Error| match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NODEV | Errno::NXIO) => FuseError::NoFuse(error),
        _ => FuseError::Mount {
            path: directory.to_owned(),
            error,
        },
    };
    let connection = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/fuse")
        .map_err(failed)?;
    let mut flags = MountFlags::NOSUID | MountFlags::NODEV;
    flags.set(MountFlags::RDONLY, read_only);
    let options = format!(
        "fd={},rootmode=40000,user_id={},group_id={},default_permissions",
        connection.as_raw_fd(),
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw()
    );
    let options = CString::new(options).expect("it has no zero byte");
    rustix::mount::mount(SOURCE, directory, FILE_SYSTEM_TYPE, flags, &*options)
        .map_err(|error| failed(error.into()))?;
    Ok(connection.into())
}

fn mount_by_helper(directory: &Path, read_only: bool) -> Result<OwnedFd, FuseError> {
    let refused = |message: String| FuseError::Refused {
        path: directory.to_owned(),
        message,
    };
    let failed = |error: Errno| refused(error.to_string());
    let (ours, theirs) = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )
    .map_err(failed)?;
    let access = if read_only { "ro" } else { "rw" };
    let options =
        format!("{access},nosuid,nodev,default_permissions,fsname={SOURCE},subtype=traxtent");
    // The program's standard input is the socket.
    let output = helper(&["-o", &options], directory)
        .env("_FUSE_COMMFD", "0")
        .stdin(Stdio::from(theirs))
        .output()
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => FuseError::NoHelper,
            _ => refused(error.to_string()),
        })?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        return Err(refused(message.trim().replace('\n', "; ")));
    }
    receive_connection(&ours)
        .map_err(failed)?
        .ok_or_else(|| refused(format!("{HELPER} has not returned a connection")))
}

/// Returns the command for the program that mounts and unmounts for ordinary users.
fn helper(options: &[&str], directory: &Path) -> Command {
    let mut helper = Command::new(HELPER);
    helper.args(options).arg("--").arg(directory);
    helper
}

/// Receives the file descriptor that the helper has sent.
fn receive_connection(socket: &OwnedFd) -> rustix::io::Result<Option<OwnedFd>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut received = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut received,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    let mut descriptors = received.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    Ok(descriptors.next().and_then(|mut sent| sent.next()))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::path::PathBuf;

    use super::{FILE_SYSTEM_TYPE, Mount, MountPoint};

    /// Is an unreadable mount table an error, not a sign that the file system is unmounted? Is a
    /// mount recognized by its type and its device number?
    #[test]
    fn an_unknown_mount_is_not_an_unmounted_one() {
        let point = MountPoint {
            directory: PathBuf::from("/no/such/directory"),
            device: Some(45),
        };
        let entry = |kind: &str, device| Mount {
            device,
            point: point.directory.clone(),
            kind: kind.to_owned(),
            source: PathBuf::from("traxtent"),
        };
        let is_ours = |visible| point.is_ours(visible).unwrap();
        assert!(is_ours(Ok(Some(entry(FILE_SYSTEM_TYPE, 45)))));
        assert!(!is_ours(Ok(Some(entry(FILE_SYSTEM_TYPE, 46)))));
        assert!(!is_ours(Ok(Some(entry("tmpfs", 45)))));
        assert!(!is_ours(Ok(None)));
        let unread = point.is_ours(Err(io::ErrorKind::PermissionDenied.into()));
        let message = unread.unwrap_err().to_string();
        let says = "/no/such/directory: cannot unmount it: ";
        assert!(message.starts_with(says), "{message}");
    }
}
