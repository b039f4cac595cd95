//! Leftovers of killed servers: a mount without a server, whose users get errors, and the loop
//! device on its file.

use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::error::FuseError;
use super::filesystem::FILE_NAME;
use super::loop_device::LoopDevice;
use super::mount_point::{FILE_SYSTEM_TYPE, unmount};
use traxtent_io::device::mounts::{Mount, mounted_at};

/// Removes the leftovers of killed servers at a directory, whose path must be canonical.
///
/// # Errors
/// Returns an error if the mounts cannot be read, if anything else is mounted there, or if a
/// leftover is in use or cannot be removed.
pub(super) fn remove(directory: &Path) -> Result<(), FuseError> {
    while let Some(mount) = mounted_at(directory).map_err(|error| FuseError::Directory {
        path: directory.to_owned(),
        error,
    })? {
        check_dead(&mount)?;
        let mut removed = vec![format!("the mount at {}", directory.display())];
        for device in LoopDevice::all_of(&directory.join(FILE_NAME)) {
            device.detach().map_err(|error| match error {
                FuseError::LoopInUse {
                    device,
                    mounted_at,
                    processes,
                } => FuseError::LeftoverInUse {
                    path: directory.to_owned(),
                    device,
                    mounted_at,
                    processes,
                },
                other => other,
            })?;
            removed.push(device.device().display().to_string());
        }
        unmount(directory).map_err(|error| match error {
            FuseError::InUse { path } => FuseError::LeftoverMount { path },
            other => other,
        })?;
        let removed = removed.join(" and ");
        tracing::warn!("removed what a killed server had left: {removed}");
    }
    Ok(())
}

/// Returns an error unless a mount is one of ours whose server has ended.
fn check_dead(mount: &Mount) -> Result<(), FuseError> {
    let path = mount.point.clone();
    if mount.kind != FILE_SYSTEM_TYPE {
        return Err(FuseError::MountPoint {
            path,
            source_name: mount.source.display().to_string(),
            kind: mount.kind.clone(),
        });
    }
    // The kernel caches attributes even after the server has ended, but not statistics.
    match rustix::fs::statfs(&mount.point) {
        Err(errno) if is_disconnected(&errno.into()) => Ok(()),
        _ => Err(FuseError::Served { path }),
    }
}

/// Returns whether an error is that of a file system whose server has ended.
pub(super) fn is_disconnected(error: &io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    matches!(errno, Some(Errno::NOTCONN | Errno::CONNABORTED))
}
