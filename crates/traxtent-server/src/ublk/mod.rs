//! Serving a drive as a block device of this machine, through the kernel's ublk driver.
//!
//! [`UblkDevice`] makes `/dev/ublkbN` from an [`Export`]. File systems and tools see the properties
//! that the service reports: sector sizes, an optimal request size if there is one, a write cache,
//! and whether the device rotates. Unlike NBD and FUSE, this needs no client or mount.
//!
//! The kernel's `Documentation/block/ublk.rst` and `<linux/ublk_cmd.h>` describe the interface,
//! which needs Linux 6.5 or later. Zero copy and zoned devices are left out. So is recovery: a
//! device ends with its server, and its users immediately get I/O errors. A killed server leaves
//! the node `/dev/ublkcN`, which the next start deletes.
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
//! // When the device is no longer needed:
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

/// The maximum time that udev may take to set the permissions of a new node.
const NODE_TIMEOUT: Duration = Duration::from_secs(5);
/// The interval between attempts to open the node.
const NODE_INTERVAL: Duration = Duration::from_millis(10);

/// A block device that serves an export. It is removed when this is dropped.
pub struct UblkDevice {
    control: Control,
    device: Device,
    path: PathBuf,
    /// The running queue; `None` before the start and after the end.
    queue: Option<QueueThread>,
    is_deleted: bool,
}

impl UblkDevice {
    /// Makes the block device `/dev/ublkbN` with the given number, or with the first free one. The
    /// export's service must have been started.
    ///
    /// Devices that killed servers of this program have left are deleted, with a warning for each.
    ///
    /// # Errors
    /// Returns an error if the kernel's ublk driver is missing or too old, if the user may not use
    /// it or io_uring, if the number is taken, if block devices cannot have the export's sector
    /// sizes, or if the driver or the system refuses an operation.
    pub fn start(export: &Export, number: Option<u32>) -> Result<UblkDevice, UblkError> {
        let parameters = parameters::parameters(export)?;
        let mut control = Control::open()?;
        for number in control.delete_leftovers() {
            tracing::warn!("ublk device {number}: deleted, because its server was killed");
        }
        let device = control.add(number, DEPTH, parameters::IO_BYTES_MAX)?;
        // After this, dropping `started` on an error deletes the device.
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

    /// Removes the block device. The kernel first writes back cached data. Programs that still use
    /// the device then get I/O errors.
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
                // Another program has stopped the device, and may have deleted it and reused its
                // number.
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

/// Opens the node for servers, as soon as udev has given this user access. Waits at most
/// [`NODE_TIMEOUT`].
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
