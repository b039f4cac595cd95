//! A front end that presents an export as a file through FUSE, and as a block device on that file.
//!
//! [`Mount::start`] mounts a file system with one file, `disk`, whose bytes are the drive's.
//! [`Mount::attach_loop`] attaches that file to a loop device, for programs that need a block
//! device. The kernel's reads and writes go to the [`BlockService`](crate::service::BlockService)
//! without a cache in between, and each outstanding request occupies a thread.
//!
//! # Source
//! The protocol is that of `linux/fuse.h`, implemented by the crate `fuser`.
//!
//! # What it leaves out
//! Shared mappings of the file (`mmap` with `MAP_SHARED`), which would need a cache: the kernel
//! refuses them. Changes of names, owners, modes and times.

mod bytes;
mod error;
mod filesystem;
mod leftovers;
mod loop_device;
mod mount_point;
mod users;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use fuser::{BackgroundSession, Config, Session, SessionACL};

pub use self::error::FuseError;
use self::filesystem::{ExportFileSystem, FILE_NAME, READERS};
use self::loop_device::LoopDevice;
use self::mount_point::MountPoint;
pub(crate) use self::mount_point::is_served_here;
use crate::service::Export;

/// A mounted export.
///
/// Dropping it detaches and unmounts without waiting for users: they receive errors once the
/// service has stopped or the process has ended. [`Mount::stop`] returns an error instead if there
/// are users.
#[derive(Debug)]
pub struct Mount {
    // Fields are dropped in this order.
    loop_device: Option<LoopDevice>,
    mount_point: MountPoint,
    session: BackgroundSession,
    export: Export,
}

impl Mount {
    /// Mounts an export at an empty directory. Only the user who runs the server can access the
    /// file; other users, including root, cannot. Leftovers of a killed server at the directory are
    /// removed.
    ///
    /// # Errors
    /// Returns an error if the directory is missing, not empty or in use, if the system cannot
    /// mount, or if the user lacks permission.
    pub fn start(export: &Export, directory: &Path) -> Result<Mount, FuseError> {
        let directory = Mount::prepare(directory)?;
        let (mount_point, connection) = MountPoint::mount(&directory, export.read_only)?;
        let mut config = Config::default();
        config.n_threads = Some(READERS);
        // The kernel decides who may access the file system.
        let session = Session::from_fd(
            ExportFileSystem::new(export),
            connection,
            SessionACL::All,
            config,
        );
        let session = session
            .and_then(Session::spawn)
            .map_err(|error| FuseError::Session {
                path: directory,
                error,
            })?;
        Ok(Mount {
            loop_device: None,
            mount_point,
            session,
            export: export.clone(),
        })
    }

    /// Removes leftovers of a killed server at a directory, and checks that it is empty. Returns
    /// its canonical path.
    ///
    /// # Errors
    /// Returns an error if the directory is missing, not empty or in use.
    pub fn prepare(directory: &Path) -> Result<PathBuf, FuseError> {
        let failed = |error| FuseError::Directory {
            path: directory.to_owned(),
            error,
        };
        let directory = canonical_path(directory).map_err(failed)?;
        leftovers::remove(&directory)?;
        if fs::read_dir(&directory).map_err(failed)?.next().is_some() {
            return Err(FuseError::NotEmpty { path: directory });
        }
        Ok(directory)
    }

    /// Returns the path of the file.
    pub fn file(&self) -> PathBuf {
        self.mount_point.directory().join(FILE_NAME)
    }

    /// Attaches the file to a free loop device, unless it is already attached, and returns the
    /// device's path. Requires root.
    ///
    /// # Errors
    /// Returns an error if no loop device can be attached, for example because the user lacks
    /// permission.
    pub fn attach_loop(&mut self) -> Result<&Path, FuseError> {
        let device = match self.loop_device.take() {
            Some(device) => device,
            None => LoopDevice::attach(&self.file(), &self.export)?,
        };
        Ok(self.loop_device.insert(device).device())
    }

    /// Returns whether the file system is still mounted. Other programs can unmount it.
    pub fn is_mounted(&self) -> bool {
        !self.session.guard.is_finished()
    }

    /// Returns the loop devices of the file, including those that other programs have attached.
    pub fn loop_devices(&self) -> Vec<PathBuf> {
        loop_device::devices_of(&self.file())
    }

    /// Detaches the loop device and unmounts the file system.
    ///
    /// # Errors
    /// Returns an error if either is in use or cannot be released. What remains is still served,
    /// and this can be called again.
    pub fn stop(&mut self) -> Result<(), FuseError> {
        if let Some(device) = &self.loop_device {
            device.detach()?;
        }
        self.loop_device = None;
        self.mount_point.unmount()
    }
}

/// Returns the canonical path of a directory, with all symbolic links resolved. A mount whose
/// server has ended cannot be resolved, but its parent can.
fn canonical_path(directory: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(directory) {
        Err(error) if leftovers::is_disconnected(&error) => {
            let absolute = std::path::absolute(directory)?;
            match (absolute.parent(), absolute.file_name()) {
                (Some(parent), Some(name)) => Ok(fs::canonicalize(parent)?.join(name)),
                _ => Err(error),
            }
        }
        done => done,
    }
}
