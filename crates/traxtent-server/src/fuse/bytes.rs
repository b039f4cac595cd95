//! Access to a block service at any byte, as to a file.
//!
//! Reads and writes of whole sectors are passed on unchanged. A read of partial sectors reads them
//! completely. A write of partial sectors reads, changes and writes them. Meanwhile, other changes
//! through the same file wait, but those through another front end do not.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::service::{BlockService, ServiceError};

/// The maximum size in bytes of a buffer that a thread keeps for its next read.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

thread_local! {
    /// The buffer of the thread's reads. A new buffer would have to be zeroed before each read is
    /// sent to the drive. The next read could then overtake this one, and reads out of order cost a
    /// revolution.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The bytes of a block service.
#[derive(Debug)]
pub(super) struct ByteAccess {
    service: Arc<dyn BlockService>,
    /// The size of a sector in bytes.
    sector: u64,
    /// The maximum number of bytes that one request zeroes or trims.
    maximum: u64,
    /// Held exclusively by writes of partial sectors, and shared by all other changes.
    partial_writes: RwLock<()>,
}

impl ByteAccess {
    pub(super) fn new(service: Arc<dyn BlockService>) -> ByteAccess {
        let sizes = service.block_sizes();
        let sector = u64::from(sizes.minimum);
        ByteAccess {
            service,
            sector,
            maximum: (u64::from(sizes.maximum) / sector).max(1) * sector,
            partial_writes: RwLock::new(()),
        }
    }

    /// Reads `count` bytes at `offset`, and passes them or the error to `then`. The range must be
    /// within the drive.
    pub(super) fn read(
        &self,
        offset: u64,
        count: usize,
        then: impl FnOnce(Result<&[u8], ServiceError>),
    ) {
        let range = offset..offset + count as u64;
        let sectors = self.covering(&range);
        let sector_bytes = (sectors.end - sectors.start) as usize;
        let before = (range.start - sectors.start) as usize;
        let mut buffer = BUFFER.take();
        if buffer.len() < sector_bytes {
            buffer.resize(sector_bytes, 0);
        }
        let read = self
            .service
            .read(&mut buffer[..sector_bytes], sectors.start);
        then(read.map(|()| &buffer[before..before + count]));
        if buffer.len() <= BUFFER_KEPT_BYTES {
            BUFFER.set(buffer);
        }
    }

    /// Writes `bytes` at `offset`. The range must be within the drive.
    pub(super) fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError> {
        let range = offset..offset + bytes.len() as u64;
        let sectors = self.covering(&range);
        if sectors == range {
            let _shared = self.partial_writes.read();
            return self.service.write(bytes, offset, fua);
        }
        let _exclusive = self.partial_writes.write();
        let mut buffer = vec![0; (sectors.end - sectors.start) as usize];
        let last = sectors.end - self.sector;
        if range.start != sectors.start {
            let first = &mut buffer[..self.sector as usize];
            self.service.read(first, sectors.start)?;
        }
        // If there is only one sector, it has already been read, unless the range begins at its
        // start.
        if range.end != sectors.end && (last != sectors.start || range.start == sectors.start) {
            let at = (last - sectors.start) as usize;
            self.service.read(&mut buffer[at..], last)?;
        }
        let before = (range.start - sectors.start) as usize;
        buffer[before..before + bytes.len()].copy_from_slice(&bytes);
        self.service.write(buffer, sectors.start, fua)
    }

    /// Zeroes a range of bytes, which must be within the drive.
    pub(super) fn zero(&self, range: Range<u64>) -> Result<(), ServiceError> {
        self.clear(range, |service, offset, count| {
            service.zero(offset, count, false)
        })
    }

    /// Trims a range of bytes, which must be within the drive. Partial sectors at its ends are
    /// zeroed.
    pub(super) fn trim(&self, range: Range<u64>) -> Result<(), ServiceError> {
        self.clear(range, |service, offset, count| {
            service.trim(offset, count, false)
        })
    }

    /// Makes all completed writes durable.
    pub(super) fn flush(&self) -> Result<(), ServiceError> {
        self.service.flush()
    }

    /// Applies `clear_sectors` to the whole sectors of a range, in pieces of the maximum size, and
    /// writes zeros to partial sectors at its ends.
    fn clear(
        &self,
        range: Range<u64>,
        clear_sectors: impl Fn(&dyn BlockService, u64, u64) -> Result<(), ServiceError>,
    ) -> Result<(), ServiceError> {
        let write_zeros = |part: Range<u64>| match part.end - part.start {
            0 => Ok(()),
            count => self.write(vec![0; count as usize], part.start, false),
        };
        let first = range.start.next_multiple_of(self.sector);
        let end = range.end - range.end % self.sector;
        if first > end {
            // The range lies within one sector.
            return write_zeros(range);
        }
        write_zeros(range.start..first)?;
        let mut at = first;
        while at < end {
            let count = self.maximum.min(end - at);
            let _shared = self.partial_writes.read();
            clear_sectors(&*self.service, at, count)?;
            at += count;
        }
        write_zeros(end..range.end)
    }

    /// Returns the range of whole sectors that covers a range of bytes.
    fn covering(&self, range: &Range<u64>) -> Range<u64> {
        range.start - range.start % self.sector..range.end.next_multiple_of(self.sector)
    }
}
