//! The server of a volume with replicas, and the thread that works on the volume while it is idle.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::copies::{CopiesError, MemberClock, ReplicatedVolume};

use super::{DeviceReplicaVolume, ReplicaVolumeIoError, find};
use crate::service::{BlockService, BlockSizes, REQUEST_MAX, ServiceError};
use futures_lite::future::block_on;

/// A volume with replicas that serves requests for bytes at offsets, from any thread.
#[derive(Debug)]
pub struct ReplicaVolumeServer {
    shared: Arc<Shared>,
    worker: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    volume: DeviceReplicaVolume,
    messages: Mutex<WorkerMessages>,
    changed: Condvar,
}

/// Messages to the worker thread.
#[derive(Debug, Default)]
struct WorkerMessages {
    /// Whether a request has ended since the worker last checked.
    request_ended: bool,
    /// Whether the worker must end.
    stop: bool,
}

impl ReplicaVolumeServer {
    /// Finds the volume on a device and opens it. A damaged superblock is rewritten. A device is
    /// refused if its first superblock is not usable and `holds` recognizes other content: the
    /// device has been reused.
    ///
    /// # Errors
    /// Returns the errors of [`find`], [`ReplicaVolumeIoError::Reused`], or an error if the table
    /// cannot be repaired.
    pub fn open(
        path: &Path,
        holds: impl Fn(&Path) -> Option<String>,
    ) -> Result<ReplicaVolumeServer, ReplicaVolumeIoError> {
        let (device, found) = find(path)?;
        if device.superblock(Lbn(0)).is_err()
            && let Some(what) = holds(path)
        {
            let path = path.to_owned();
            return Err(ReplicaVolumeIoError::Reused { path, what });
        }
        if !found.has_both_superblocks() {
            let path = path.display();
            match block_on(found.repair_superblocks(&device)) {
                Ok(()) => tracing::warn!("{path}: a missing or damaged superblock was rewritten"),
                Err(error) => tracing::warn!(
                    "{path}: a superblock is missing or damaged, and cannot be rewritten: {error}"
                ),
            }
        }
        let volume = block_on(ReplicatedVolume::open(device, found));
        let volume = volume.map_err(|error| ReplicaVolumeIoError::Copies {
            path: path.to_owned(),
            error: Box::new(error),
        })?;
        Ok(ReplicaVolumeServer {
            shared: Arc::new(Shared {
                volume,
                messages: Mutex::default(),
                changed: Condvar::new(),
            }),
            worker: Mutex::new(None),
        })
    }

    /// Returns the volume.
    pub fn volume(&self) -> &DeviceReplicaVolume {
        &self.shared.volume
    }

    /// Carries out a request, then notifies the worker.
    fn serve<T>(&self, request: impl FnOnce(&DeviceReplicaVolume) -> T) -> T {
        let done = request(self.volume());
        self.shared.messages().request_ended = true;
        self.shared.changed.notify_all();
        done
    }

    /// Converts an offset, or a number of bytes, to sectors.
    fn to_sectors(&self, bytes: u64) -> Result<u64, CopiesError> {
        let sector_bytes = self.volume().sector_bytes();
        match bytes.is_multiple_of(sector_bytes as u64) {
            true => Ok(bytes / sector_bytes as u64),
            false => Err(CopiesError::Length {
                bytes: bytes as usize,
                sector_bytes,
            }),
        }
    }
}

impl BlockService for ReplicaVolumeServer {
    fn start(&self) -> Result<(), ServiceError> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("copies".to_owned());
        let thread = thread.spawn(move || shared.work());
        let thread = thread.map_err(ServiceError::Thread)?;
        *self.worker.lock() = Some(thread);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        let volume = self.volume();
        volume.capacity().0 * volume.sector_bytes() as u64
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes {
            minimum: self.volume().sector_bytes() as u32,
            preferred: (self.volume().block_bytes() as u32).max(4096),
            maximum: REQUEST_MAX,
        }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServiceError> {
        let at = Lbn(self.to_sectors(offset)?);
        Ok(self.serve(|volume| block_on(volume.read(at, buffer)))?)
    }

    fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError> {
        let at = Lbn(self.to_sectors(offset)?);
        Ok(self.serve(|volume| match fua {
            true => block_on(volume.write_through(at, &bytes)),
            false => block_on(volume.write(at, &bytes)),
        })?)
    }

    fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        let at = Lbn(self.to_sectors(offset)?);
        let sectors = Sectors(self.to_sectors(count)?);
        Ok(self.serve(|volume| {
            block_on(async {
                volume.zero(at, sectors).await?;
                if fua { volume.flush().await } else { Ok(()) }
            })
        })?)
    }

    fn trim(&self, offset: u64, count: u64, _fua: bool) -> Result<(), ServiceError> {
        // The table entries that record a trim are durable immediately.
        let at = Lbn(self.to_sectors(offset)?);
        let sectors = Sectors(self.to_sectors(count)?);
        Ok(self.serve(|volume| block_on(volume.trim(at, sectors)))?)
    }

    fn flush(&self) -> Result<(), ServiceError> {
        Ok(self.serve(|volume| block_on(volume.flush()))?)
    }

    fn stop(&self) -> Result<(), ServiceError> {
        self.shared.messages().stop = true;
        self.shared.changed.notify_all();
        let worker = self.worker.lock().take();
        if let Some(worker) = worker {
            let _ = worker.join();
        }
        Ok(block_on(self.volume().stop())?)
    }
}

impl Shared {
    /// Does work whenever it is due, until the server stops or the work fails.
    fn work(&self) {
        loop {
            let due = self.volume.due();
            let now = self.volume.members().now();
            if due.is_some_and(|due| due <= now) {
                if self.messages().stop || block_on(self.volume.work()).is_err() {
                    return;
                }
                continue;
            }
            let mut messages = self.messages();
            if !std::mem::take(&mut messages.request_ended) && !messages.stop {
                // A request notifies the worker only when it ends. The time at which work is due
                // may therefore have changed during the wait; the loop asks for it again.
                let wait = due.map_or(Duration::MAX, |due| {
                    Duration::from_nanos(due.saturating_since(now).0.div_ceil(1000))
                });
                match wait {
                    Duration::MAX => self.changed.wait(&mut messages),
                    wait => _ = self.changed.wait_for(&mut messages, wait),
                }
                messages.request_ended = false;
            }
            if messages.stop {
                return;
            }
        }
    }

    fn messages(&self) -> MutexGuard<'_, WorkerMessages> {
        self.messages.lock()
    }
}
