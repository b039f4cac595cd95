//! The data of a served drive, in a sparse file or in memory.
//!
//! The file is locked, so only one server writes it at a time. It holds the content of the model's
//! media. If the server is killed, only the content of the drive's volatile cache is lost.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use parking_lot::RwLock;
use rustix::fs::{FallocateFlags, SeekFrom};
use rustix::io::Errno;
use traxtent_model::disk::{Media, MediaError, MemoryMedia};

use super::error::ServeError;
use super::file_times::{FileOperations, FileTimes};
use crate::service::{FileRole, ServiceError};
use traxtent_io::device::guard::{self, Access, DirectIo, Refusal};

/// The data of a drive.
#[derive(Debug)]
pub(super) struct Store {
    place: Place,
    changes: AtomicU64,
    /// The reads of the data file.
    reads: Stopwatch,
    /// The writes to the data file, including zeros.
    writes: Stopwatch,
    /// The calls of fdatasync.
    syncs: Stopwatch,
}

/// The number and the duration of operations on the data file.
#[derive(Debug, Default)]
struct Stopwatch {
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
}

impl Stopwatch {
    fn time<T>(&self, operation: impl FnOnce() -> T) -> T {
        let begun = Instant::now();
        let result = operation();
        let ns = begun.elapsed().as_nanos() as u64;
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total_ns.fetch_add(ns, Ordering::Relaxed);
        self.longest_ns.fetch_max(ns, Ordering::Relaxed);
        result
    }

    fn operations(&self) -> FileOperations {
        let us = |ns: &AtomicU64| ns.load(Ordering::Relaxed) as f64 / 1000.0;
        FileOperations {
            count: self.count.load(Ordering::Relaxed),
            total_us: us(&self.total_ns),
            max_us: us(&self.longest_ns),
        }
    }
}

/// The location of the data.
#[derive(Debug)]
enum Place {
    File(File),
    /// Memories that hold the drive's stripes in rotation. Threads seldom need the same one.
    Memory {
        memories: Vec<RwLock<MemoryMedia>>,
        /// The number of bytes that the memories may still allocate.
        left: AtomicU64,
    },
}

/// The size of a stripe in bytes.
const STRIPE_BYTES: u64 = 1 << 20;
/// The number of memories in rotation.
const MEMORIES: u64 = 64;

/// The maximum memory in bytes that a write takes in addition to its own size and a 64th of it: for
/// pages that it covers in part, and for tables.
const WRITE_OVERHEAD_BYTES_MAX: u64 = 16 << 10;

/// The maximum size in bytes of a write whose memory is prefetched.
const PREFETCH_BYTES_MAX: u64 = 32 << 10;

/// The divisor that limits the drives' data to half of the memory available when the server starts.
const MEMORY_DIVISOR: u64 = 2;

/// Returns the maximum memory, in bytes, for the data of all drives without a file; `None` if the
/// available memory is unknown.
pub fn memory_limit() -> Option<u64> {
    let table = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = table
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some((kib << 10) / MEMORY_DIVISOR)
}

impl Store {
    /// Opens the drive's file. If it does not exist, it is created for writing. Without a path, the
    /// data is in memory, which is allocated by writes, up to `memory_bytes_max`
    /// ([`memory_bytes_max`](super::Settings::memory_bytes_max)).
    ///
    /// # Errors
    /// Returns an error if the file is too small, is in use, or cannot be opened or created.
    pub(super) fn open(
        path: Option<&Path>,
        memory_bytes_max: Option<u64>,
        bytes: u64,
        access: Access,
    ) -> Result<Store, ServeError> {
        let place = match path {
            Some(path) => Place::File(Store::open_file(path, bytes, access)?),
            None => {
                let limit = memory_bytes_max.or_else(memory_limit);
                Store::memory(limit.unwrap_or(u64::MAX))
            }
        };
        Ok(Store::at(place))
    }

    fn at(place: Place) -> Store {
        Store {
            place,
            changes: AtomicU64::new(0),
            reads: Stopwatch::default(),
            writes: Stopwatch::default(),
            syncs: Stopwatch::default(),
        }
    }

    /// Returns the durations of the operations on the data file so far, with a `lateness_share` of
    /// 0; `None` without a file.
    pub(super) fn file_times(&self) -> Option<FileTimes> {
        self.is_file().then(|| FileTimes {
            reads: self.reads.operations(),
            writes: self.writes.operations(),
            syncs: self.syncs.operations(),
            lateness_share: 0.0,
        })
    }

    pub(super) fn is_file(&self) -> bool {
        matches!(self.place, Place::File(_))
    }

    fn memory(limit: u64) -> Place {
        Place::Memory {
            memories: (0..MEMORIES).map(|_| RwLock::default()).collect(),
            left: AtomicU64::new(limit),
        }
    }

    fn open_file(path: &Path, needed: u64, access: Access) -> Result<File, ServeError> {
        let missing = |error: &Refusal| match error {
            Refusal::System { error, .. } => error.kind() == io::ErrorKind::NotFound,
            _ => false,
        };
        let open = || guard::open_for(path, DirectIo::No, access);
        let held = match open() {
            Err(error) if missing(&error) => {
                if access == Access::Read {
                    return Err(ServeError::Missing(path.to_owned()));
                }
                make(path, needed)?;
                open()
            }
            opened => opened,
        };
        let file = File::from(held.map_err(ServeError::Guarded)?.file);
        // Seeking also works for the size of a block device.
        let bytes = rustix::fs::seek(&file, SeekFrom::End(0))
            .map_err(|errno| ServeError::file(FileRole::Data, path, "measure", errno.into()))?;
        if bytes < needed {
            let path = path.to_owned();
            return Err(ServeError::TooSmall {
                path,
                bytes,
                needed,
            });
        }
        Ok(file)
    }

    /// Returns the number of completed changes. Data that was read at the current count is up to
    /// date, unless a change is in progress.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(super) fn read(&self, into: &mut [u8], at: u64) -> Result<(), MediaError> {
        match &self.place {
            Place::File(file) => {
                let read = self.reads.time(|| file.read_exact_at(into, at));
                read.map_err(|error| failed(&error))
            }
            Place::Memory { memories, .. } => {
                stripes(at, into.len() as u64).try_for_each(|stripe| {
                    let memory = memories[stripe.memory].read();
                    memory.read(stripe.at, &mut into[stripe.in_buffer()])
                })
            }
        }
    }

    /// Loads the memory of an imminent write into the processor's cache. Otherwise the write would
    /// wait for the memory while the model is locked. Large writes are left to the processor's own
    /// prefetching, and may not fit into its cache.
    pub(super) fn prefetch(&self, at: u64, count: u64) {
        if count > PREFETCH_BYTES_MAX {
            return;
        }
        if let Place::Memory { memories, .. } = &self.place {
            for stripe in stripes(at, count) {
                let memory = memories[stripe.memory].read();
                memory.touch(stripe.at, stripe.count);
            }
        }
    }

    fn write(&self, data: &[u8], at: u64) -> Result<(), MediaError> {
        let written = match &self.place {
            Place::File(file) => {
                let written = self.writes.time(|| file.write_all_at(data, at));
                written.map_err(|error| failed(&error))
            }
            Place::Memory { memories, left } => {
                stripes(at, data.len() as u64).try_for_each(|stripe| {
                    let mut memory = memories[stripe.memory].write();
                    reserve_memory(left, memory.bytes_missing(stripe.at, stripe.count))?;
                    memory.write(stripe.at, &data[stripe.in_buffer()])
                })
            }
        };
        self.changes.fetch_add(1, Ordering::Release);
        written
    }

    /// Zeroes bytes, and releases their space if possible.
    fn zero(&self, at: u64, count: u64) -> Result<(), MediaError> {
        let zeroed = match &self.place {
            Place::File(file) => {
                let zeroed = self.writes.time(|| zero(file, at, count));
                zeroed.map_err(|error| failed(&error))
            }
            Place::Memory { memories, left } => stripes(at, count).try_for_each(|stripe| {
                let mut memory = memories[stripe.memory].write();
                let before = memory.bytes_held();
                let zeroed = memory.zero(stripe.at, stripe.count);
                left.fetch_add(before - memory.bytes_held(), Ordering::Relaxed);
                zeroed
            }),
        };
        self.changes.fetch_add(1, Ordering::Release);
        zeroed
    }

    /// Makes the data file's written data durable.
    pub(super) fn sync(&self) -> Result<(), ServiceError> {
        match &self.place {
            Place::File(file) => {
                let synced = self.syncs.time(|| file.sync_data());
                synced.map_err(|error| ServiceError::Data {
                    what: "flush",
                    error,
                })
            }
            Place::Memory { .. } => Ok(()),
        }
    }
}

/// A range of bytes within one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StripeRange {
    /// The index of the memory that holds the bytes.
    memory: usize,
    /// The offset in that memory, where its stripes are contiguous.
    at: u64,
    count: u64,
    /// The number of the request's bytes before this range.
    before: u64,
}

impl StripeRange {
    /// Returns the range of these bytes in a request's buffer.
    fn in_buffer(&self) -> Range<usize> {
        self.before as usize..(self.before + self.count) as usize
    }
}

/// Divides a range of bytes at the bounds of stripes.
fn stripes(at: u64, count: u64) -> impl Iterator<Item = StripeRange> {
    let mut before = 0;
    std::iter::from_fn(move || {
        let (number, inside) = ((at + before) / STRIPE_BYTES, (at + before) % STRIPE_BYTES);
        let stripe = StripeRange {
            memory: (number % MEMORIES) as usize,
            at: number / MEMORIES * STRIPE_BYTES + inside,
            count: (STRIPE_BYTES - inside).min(count - before),
            before,
        };
        before += stripe.count;
        (stripe.count > 0).then_some(stripe)
    })
}

/// Creates a drive's sparse file, and removes it again on failure.
fn make(path: &Path, bytes: u64) -> Result<(), ServeError> {
    let failed = |what| move |error| ServeError::file(FileRole::Data, path, what, error);
    let made = OpenOptions::new().write(true).create_new(true).open(path);
    let file = made.map_err(failed("create"))?;
    let Err(error) = file.set_len(bytes) else {
        return Ok(());
    };
    let longest = (error.kind() == io::ErrorKind::FileTooLarge).then(|| longest(&file, bytes));
    // The new file is empty. The first error is the one to report.
    let _ = std::fs::remove_file(path);
    Err(match longest {
        Some(longest) => ServeError::FileTooLarge {
            path: path.to_owned(),
            needed: bytes,
            longest,
        },
        None => failed("extend")(error),
    })
}

/// Returns the maximum file size, rounded down to a mebibyte, for a file system that refused
/// `bytes`.
fn longest(file: &File, bytes: u64) -> u64 {
    let (mut fits, mut fails) = (0, bytes >> 20);
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        match file.set_len(middle << 20) {
            Ok(()) => fits = middle,
            Err(_) => fails = middle,
        }
    }
    fits << 20
}

/// Subtracts bytes from the memory that may still be allocated.
fn reserve_memory(left: &AtomicU64, bytes: u64) -> Result<(), MediaError> {
    if bytes == 0 {
        return Ok(());
    }
    let taken = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
        left.checked_sub(bytes)
    });
    taken.map(drop).map_err(|_| MediaError::NoSpace)
}

/// Punches a hole, or writes zeros if the file system does not support holes.
fn zero(file: &File, at: u64, count: u64) -> io::Result<()> {
    static BLOCK: [u8; 1 << 16] = [0; 1 << 16];
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, punch, at, count) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let (mut from, end) = (at, at + count);
            while from < end {
                let block = &BLOCK[..BLOCK.len().min((end - from) as usize)];
                file.write_all_at(block, from)?;
                from += block.len() as u64;
            }
            Ok(())
        }
        punched => Ok(punched?),
    }
}

/// The store as the media of a drive.
#[derive(Clone, Debug)]
pub(super) struct StoreMedia(pub(super) Arc<Store>);

impl Media for StoreMedia {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError> {
        self.0.read(into, at)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), MediaError> {
        self.0.write(data, at)
    }

    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError> {
        self.0.zero(at, length)
    }

    /// Does nothing, because the model is locked during this call. The server calls [`Store::sync`]
    /// afterwards, before the client receives the response.
    fn sync(&mut self) -> Result<(), MediaError> {
        Ok(())
    }

    /// With a data file, the server writes the data before the response to the flush, without
    /// keeping the model locked. In memory, the data may stay where it is as long as there is room
    /// for it.
    fn defers_writes(&self, bytes: u64, writes: u64) -> bool {
        match &self.0.place {
            Place::File(_) => true,
            Place::Memory { left, .. } => {
                let tables = bytes / 64 + writes * WRITE_OVERHEAD_BYTES_MAX;
                bytes + tables <= left.load(Ordering::Relaxed)
            }
        }
    }
}

fn failed(error: &io::Error) -> MediaError {
    if error.kind() == io::ErrorKind::StorageFull {
        MediaError::NoSpace
    } else {
        MediaError::Failed {
            what: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Can data that crosses stripes be written, zeroed in part and read back, and does an empty
    /// range have no stripes?
    #[test]
    fn memory_is_striped() {
        let store = Store::open(None, None, 8 * STRIPE_BYTES, Access::Write).unwrap();
        let data: Vec<u8> = (0..3 * STRIPE_BYTES + 17)
            .map(|at| (at % 251) as u8)
            .collect();
        let at = STRIPE_BYTES - 100;
        store.write(&data, at).unwrap();
        store.zero(2 * STRIPE_BYTES - 7, 14).unwrap();
        let mut back = vec![1; data.len() + 2];
        store.read(&mut back, at - 1).unwrap();
        let hole = (2 * STRIPE_BYTES - 7 - at) as usize;
        let mut expected = [&[0], &data[..], &[0]].concat();
        expected[1 + hole..1 + hole + 14].fill(0);
        assert!(back == expected);
        assert_eq!(stripes(0, 0).count(), 0);
    }

    /// Does every byte have its own location, and does no memory have gaps?
    #[test]
    fn stripes_fill_memories() {
        let bytes = 3 * MEMORIES * STRIPE_BYTES;
        let (mut ends, mut seen) = (vec![0; MEMORIES as usize], 0);
        for stripe in stripes(0, bytes) {
            assert_eq!((stripe.before, stripe.count), (seen, STRIPE_BYTES));
            assert_eq!(stripe.at, ends[stripe.memory]);
            ends[stripe.memory] += STRIPE_BYTES;
            seen += STRIPE_BYTES;
        }
        assert_eq!(seen, bytes);
        assert!(ends.iter().all(|end| *end == 3 * STRIPE_BYTES));
    }

    /// May a flush leave data for later only if there is certainly memory for it?
    #[test]
    fn data_is_left_for_later_only_if_there_is_memory() {
        let media = |limit| StoreMedia(Arc::new(Store::at(Store::memory(limit))));
        let (bytes, writes) = (1 << 20, 2048);
        assert!(!media(bytes).defers_writes(bytes, writes));
        let mut enough = media(bytes + bytes / 64 + writes * WRITE_OVERHEAD_BYTES_MAX);
        assert!(enough.defers_writes(bytes, writes));
        // Each write of 512 bytes takes a page and tables of its own.
        for write in 0..writes {
            enough
                .write(write * ((MEMORIES + 1) * STRIPE_BYTES), &[1; 512])
                .unwrap();
        }
    }

    /// Do writes beyond the memory limit fail for lack of space, and does zeroing free space for
    /// them?
    #[test]
    fn memory_ends_at_its_limit() {
        let store = Store::at(Store::memory(64 << 10));
        let full = (0..64).find(|page| store.write(&[1; 512], page << 12).is_err());
        // Sixteen pages, minus the tables.
        assert!(
            full.is_some_and(|page| (12..16).contains(&page)),
            "{full:?}"
        );
        assert_eq!(store.write(&[1; 512], 1 << 30), Err(MediaError::NoSpace));
        store.write(&[2; 4096], 0).unwrap();
        store.zero(0, 32 << 10).unwrap();
        store.write(&[3; 512], 60 << 10).unwrap();
        let mut back = [9; 512];
        store.read(&mut back, 60 << 10).unwrap();
        assert_eq!(back, [3; 512]);
    }
}
