//! Access to any bytes of a block service, as users of a file expect it.
//!
//! Requests for whole sectors are passed on as they are. A read that covers sectors in part reads
//! all of them. A write that does so reads them, changes them and writes them; no other write
//! through the same file comes in between. Writes that reach the drive through another front end
//! can.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::RwLock;

use crate::service::{BlockService, ServiceError};

/// The memory in bytes that a thread keeps for its next read.
const BUFFER_KEPT: usize = 1 << 20;

thread_local! {
    /// The memory of the thread's reads. New memory would be filled with zeros before each read
    /// reaches the drive. A read that comes shortly after could then overtake it, and a sequence
    /// out of order costs the drive a revolution.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The bytes of a block service.
#[derive(Debug)]
pub(super) struct ByteAccess {
    service: Arc<dyn BlockService>,
    sector: u64,
    /// The maximum count of one request to zero or trim.
    maximum: u64,
    /// Held exclusively by writes of sectors in part, and shared by all other writes.
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

    /// Reads `count` bytes from `offset` on, which must lie within the drive, and passes them on.
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
        if buffer.len() <= BUFFER_KEPT {
            BUFFER.set(buffer);
        }
    }

    /// Writes from `offset` on; the bytes must lie within the drive.
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
        // The last sector has been read if it is the first, too, unless the range begins with it.
        if range.end != sectors.end && (last != sectors.start || range.start == sectors.start) {
            let at = (last - sectors.start) as usize;
            self.service.read(&mut buffer[at..], last)?;
        }
        let before = (range.start - sectors.start) as usize;
        buffer[before..before + bytes.len()].copy_from_slice(&bytes);
        self.service.write(buffer, sectors.start, fua)
    }

    /// Zeroes bytes, which must lie within the drive.
    pub(super) fn zero(&self, range: Range<u64>) -> Result<(), ServiceError> {
        self.clear(range, |service, offset, count| {
            service.zero(offset, count, false)
        })
    }

    /// Trims bytes, which must lie within the drive. The parts of sectors at the ends are zeroed.
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
    /// writes zeros to the parts of sectors at its ends.
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
