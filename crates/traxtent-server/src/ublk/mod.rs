//! Serving a drive as a block device of this machine's kernel, by its ublk driver.
//!
//! [`UblkDevice`] makes `/dev/ublkbN` from an [`Export`]. File systems and tools see the drive
//! itself: its sector sizes, its optimal size of requests, that it rotates, and its write cache.
//! Unlike NBD and FUSE, no client or mount stands between.
//!
//! The interface is described in the kernel's `Documentation/block/ublk.rst` and
//! `<linux/ublk_cmd.h>`. Linux 6.5 or later is needed. Left out are zero copy, zoned devices, and
//! recovery: a device ends with its server, and its users get I/O errors at once. A killed server
//! leaves the node `/dev/ublkcN`, which the next start deletes.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use traxtent_model::profile::builtin;
//! use traxtent_server::serve::{DriveServer, Settings};
//! use traxtent_server::service::Export;
//! use traxtent_server::ublk::UblkDevice;
//!
//! let profile = builtin("atlas10k2").expect("it is built in");
//! let service = Arc::new(DriveServer::open(Settings::of("atlas10k2", profile))?);
//! let export = Export {
//!     name: "atlas10k2".to_owned(),
//!     description: String::new(),
//!     service,
//!     read_only: false,
//! };
//! export.service.start()?;
//! let device = UblkDevice::start(&export, None)?;
//! println!("{}", device.path().display());
//! // Until the device is not needed any more:
//! device.stop()?;
//! export.service.stop()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod abi;
mod completions;
mod control;
mod error;
mod memory;
mod parameters;
mod queue;
#[cfg(test)]
mod recorder;
mod request;
mod ring;

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

pub use error::UblkError;

use self::control::{Control, Device};
use self::queue::{DEPTH, QueueThread};
use crate::service::Export;

/// The maximum time that udev may take to set the rights of a new node.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval at which the node is tried meanwhile.
const NODE_INTERVAL: Duration = Duration::from_millis(10);

/// A block device of this machine that an export serves. It is removed when this is dropped.
pub struct UblkDevice {
    control: Control,
    device: Device,
    path: PathBuf,
    /// The running queue; `None` before the start and after the end.
    queue: Option<QueueThread>,
    is_deleted: bool,
}

impl UblkDevice {
    /// Makes a block device: `/dev/ublkbN` with this number, or with the first free one. The
    /// export's service must have been started.
    ///
    /// Devices that servers of this program have left because they were killed are deleted, with a
    /// warning that names each.
    ///
    /// # Errors
    /// Returns an error if the kernel has no ublk driver, if the user may not use it, if the number
    /// is taken, or if block devices cannot have the export's sector sizes.
    pub fn start(export: &Export, number: Option<u32>) -> Result<UblkDevice, UblkError> {
        let parameters = parameters::parameters(export)?;
        let mut control = Control::open()?;
        for number in control.delete_leftovers() {
            tracing::warn!("ublk device {number}: deleted, because its server was killed");
        }
        let device = control.add(number, DEPTH, parameters::IO_BYTES_MAX)?;
        // From here on, an error deletes the device.
        let mut started = UblkDevice {
            control,
            device,
            path: device.block_node(),
            queue: None,
            is_deleted: false,
        };
        let node = open_when_ready(&device.server_node())?;
        started.control.set_parameters(device, parameters)?;
        started.queue = Some(QueueThread::start(
            Arc::clone(&export.service),
            node,
            device.number,
        )?);
        started.control.start(device)?;
        Ok(started)
    }

    /// Returns the path of the block device.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the block device. The kernel first writes back what file systems on it and its cache
    /// hold. Whoever still uses the device then gets I/O errors.
    ///
    /// # Errors
    /// Returns an error if the driver does not remove the device.
    pub fn stop(mut self) -> Result<(), UblkError> {
        self.remove()
    }

    fn remove(&mut self) -> Result<(), UblkError> {
        if std::mem::replace(&mut self.is_deleted, true) {
            return Ok(());
        }
        if let Some(queue) = self.queue.take() {
            if queue.has_ended() {
                // Others have stopped it, and may have deleted it and used its number again.
                self.control.delete_leftover(self.device.number);
                return Ok(());
            }
            self.control.stop(self.device)?;
            queue.join();
        }
        self.control.delete(self.device)
    }
}

impl Drop for UblkDevice {
    fn drop(&mut self) {
        if let Err(error) = self.remove() {
            tracing::error!("{error}");
        }
    }
}

impl fmt::Debug for UblkDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UblkDevice")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Opens the node for servers once udev has given this user the right.
fn open_when_ready(path: &Path) -> Result<File, UblkError> {
    let end = Instant::now() + NODE_TIMEOUT;
    loop {
        let error = match OpenOptions::new().read(true).write(true).open(path) {
            Ok(node) => return Ok(node),
            Err(error) => error,
        };
        let may_change = matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
        );
        if !may_change || Instant::now() > end {
            let path = path.to_owned();
            return Err(match error.kind() {
                io::ErrorKind::PermissionDenied => UblkError::Denied { path },
                io::ErrorKind::ResourceBusy => UblkError::Busy { path },
                _ => UblkError::Node {
                    what: "open",
                    path,
                    error,
                },
            });
        }
        thread::sleep(NODE_INTERVAL);
    }
}
