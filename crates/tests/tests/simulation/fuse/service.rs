//! A service in memory that records its requests.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use traxtent_server::service::{BlockService, BlockSizes, ServiceError};

/// A request that reached the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Read { offset: u64, count: u64 },
    Write { offset: u64, count: u64, fua: bool },
    Zero { offset: u64, count: u64 },
    Trim { offset: u64, count: u64 },
    Flush,
}

#[derive(Debug)]
pub(super) struct MemoryService {
    /// The size of a sector in bytes.
    pub(super) sector: u32,
    /// True if trims zero the discarded range, false if they do nothing.
    pub(super) trim_zeroes: bool,
    pub(super) rotational: bool,
    /// The maximum size of a request in bytes, as reported by the service. Only requests for zeros
    /// are checked.
    pub(super) maximum: u32,
    data: Mutex<Vec<u8>>,
    seen: Mutex<Vec<Seen>>,
    outstanding: Mutex<Outstanding>,
    changed: Condvar,
    failing: Mutex<bool>,
}

/// The numbers of outstanding requests.
#[derive(Debug, Default)]
struct Outstanding {
    now: usize,
    peak: usize,
    /// Requests are held until this many are outstanding.
    held_until: usize,
}

impl MemoryService {
    pub(super) fn new(bytes: usize, sector: u32) -> MemoryService {
        MemoryService {
            sector,
            trim_zeroes: false,
            rotational: true,
            maximum: 32 << 20,
            data: Mutex::new(vec![0; bytes]),
            seen: Mutex::default(),
            outstanding: Mutex::default(),
            changed: Condvar::new(),
            failing: Mutex::new(false),
        }
    }

    /// Returns a copy of the data.
    pub(super) fn data(&self) -> Vec<u8> {
        self.data.lock().unwrap().clone()
    }

    /// Changes the data without a request.
    pub(super) fn fill(&self, with: impl FnOnce(&mut [u8])) {
        with(&mut self.data.lock().unwrap());
    }

    /// Returns the requests since the last call.
    pub(super) fn take_seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }

    /// Makes all later requests fail, or succeed again.
    pub(super) fn set_failing(&self, failing: bool) {
        *self.failing.lock().unwrap() = failing;
    }

    /// Holds the next requests until `count` are outstanding, each for at most ten seconds.
    pub(super) fn hold_until(&self, count: usize) {
        let mut outstanding = self.outstanding.lock().unwrap();
        outstanding.held_until = count;
        outstanding.peak = 0;
    }

    /// Returns the largest number of outstanding requests since the hold began.
    pub(super) fn peak(&self) -> usize {
        self.outstanding.lock().unwrap().peak
    }

    /// Records a request, holds it as [`Self::hold_until`] demands, and then runs `job`, or fails
    /// if [`Self::set_failing`] was set.
    fn serve(&self, seen: Seen, job: impl FnOnce(&mut [u8])) -> Result<(), ServiceError> {
        self.seen.lock().unwrap().push(seen);
        let mut outstanding = self.outstanding.lock().unwrap();
        outstanding.now += 1;
        outstanding.peak = outstanding.peak.max(outstanding.now);
        if outstanding.now >= outstanding.held_until {
            outstanding.held_until = 0;
            self.changed.notify_all();
        }
        let held = |outstanding: &mut Outstanding| outstanding.held_until > 0;
        let limit = Duration::from_secs(10);
        let waited = self.changed.wait_timeout_while(outstanding, limit, held);
        waited.unwrap().0.now -= 1;
        if *self.failing.lock().unwrap() {
            return Err(ServiceError::ClockEnded);
        }
        job(&mut self.data.lock().unwrap());
        Ok(())
    }

    /// Asserts that a request is for whole sectors within the drive, and returns its range.
    fn range(&self, offset: u64, count: u64) -> std::ops::Range<usize> {
        let sector = u64::from(self.sector);
        assert!(offset.is_multiple_of(sector) && count.is_multiple_of(sector) && count > 0);
        assert!(offset + count <= self.bytes());
        offset as usize..(offset + count) as usize
    }
}

impl BlockService for MemoryService {
    fn start(&self) -> Result<(), ServiceError> {
        Ok(())
    }

    fn stop(&self) -> Result<(), ServiceError> {
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.data.lock().unwrap().len() as u64
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes {
            minimum: self.sector,
            preferred: 4096,
            maximum: self.maximum,
        }
    }

    fn trim_zeroes(&self) -> bool {
        self.trim_zeroes
    }

    fn is_rotational(&self) -> bool {
        self.rotational
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServiceError> {
        let range = self.range(offset, buffer.len() as u64);
        let count = buffer.len() as u64;
        self.serve(Seen::Read { offset, count }, |data| {
            buffer.copy_from_slice(&data[range]);
        })
    }

    fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError> {
        let range = self.range(offset, bytes.len() as u64);
        let count = bytes.len() as u64;
        self.serve(Seen::Write { offset, count, fua }, |data| {
            data[range].copy_from_slice(&bytes);
        })
    }

    fn zero(&self, offset: u64, count: u64, _: bool) -> Result<(), ServiceError> {
        assert!(count <= u64::from(self.maximum));
        let range = self.range(offset, count);
        self.serve(Seen::Zero { offset, count }, |data| data[range].fill(0))
    }

    fn trim(&self, offset: u64, count: u64, _: bool) -> Result<(), ServiceError> {
        let range = self.range(offset, count);
        self.serve(Seen::Trim { offset, count }, |data| {
            if self.trim_zeroes {
                data[range].fill(0);
            }
        })
    }

    fn flush(&self) -> Result<(), ServiceError> {
        self.serve(Seen::Flush, |_| {})
    }
}
