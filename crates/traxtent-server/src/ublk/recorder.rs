//! A block device that records its requests, for tests.

use parking_lot::Mutex;

use crate::service::{BlockService, BlockSizes, ServiceError};

/// The size of the device in bytes.
pub(super) const BYTES: u64 = 1 << 20;

/// A device of [`BYTES`] bytes with configurable properties. It records its requests, and fails
/// those that begin at its end or beyond.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) requests: Mutex<Vec<String>>,
    /// The size of a logical sector in bytes.
    pub(super) logical: u32,
    /// The size of a physical sector in bytes.
    pub(super) physical: u32,
    /// The optimal size of a request in bytes.
    pub(super) optimal: Option<u32>,
    /// Whether the device rotates, has a write cache, and supports trim.
    pub(super) is_disk: bool,
}

impl Default for Recorder {
    fn default() -> Recorder {
        Recorder {
            requests: Mutex::default(),
            logical: 512,
            physical: 4096,
            optimal: None,
            is_disk: true,
        }
    }
}

impl Recorder {
    fn record(&self, request: String, offset: u64, count: u64) -> Result<(), ServiceError> {
        self.requests.lock().push(request);
        if offset < BYTES {
            return Ok(());
        }
        Err(ServiceError::BeyondEnd {
            offset,
            count,
            bytes: BYTES,
        })
    }
}

impl BlockService for Recorder {
    fn start(&self) -> Result<(), ServiceError> {
        Ok(())
    }

    fn stop(&self) -> Result<(), ServiceError> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        BYTES
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes {
            minimum: self.logical,
            preferred: self.physical,
            maximum: 32 << 20,
        }
    }

    fn can_trim(&self) -> bool {
        self.is_disk
    }

    fn has_write_cache(&self) -> bool {
        self.is_disk
    }

    fn is_rotational(&self) -> bool {
        self.is_disk
    }

    fn optimal_bytes(&self) -> Option<u32> {
        self.optimal
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServiceError> {
        let count = buffer.len() as u64;
        self.record(format!("read {count} at {offset}"), offset, count)
    }

    fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError> {
        let count = bytes.len() as u64;
        self.record(format!("write {count} at {offset} {fua}"), offset, count)
    }

    fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        self.record(format!("zero {count} at {offset} {fua}"), offset, count)
    }

    fn trim(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        self.record(format!("trim {count} at {offset} {fua}"), offset, count)
    }

    fn flush(&self) -> Result<(), ServiceError> {
        self.record("flush".to_owned(), 0, 0)
    }
}
