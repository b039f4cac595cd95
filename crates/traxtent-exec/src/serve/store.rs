//! Where a served drive's data are: in a sparse file, or in memory.
//!
//! The file is locked: one server writes it at a time. It holds what the model's media hold, so a server
//! that is killed loses what was in the drive's volatile cache, and no more.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};

use rustix::fs::{FallocateFlags, FlockOperation, SeekFrom};
use rustix::io::Errno;
use traxtent_core::disk::{Media, MediaError, Memory};

use super::error::ServeError;
use super::keys::Key;

/// The data of a drive.
#[derive(Debug)]
pub(super) struct Store {
    place: Place,
    changes: AtomicU64,
}

/// Where they are.
#[derive(Debug)]
enum Place {
    File(File),
    /// Stripes of the drive in turn, so that threads seldom wait for each other.
    Memory(Vec<RwLock<Memory>>),
}

/// Bytes of a stripe, and how many memories take turns.
const STRIPE: u64 = 1 << 20;
const MEMORIES: u64 = 64;

impl Store {
    /// Opens the drive's file, or makes it if there is none; or takes memory.
    ///
    /// # Errors
    /// A file that is too small, that another server holds, or that cannot be used.
    pub(super) fn open(path: Option<&Path>, bytes: u64) -> Result<Store, ServeError> {
        let place = match path {
            Some(path) => Place::File(Store::open_file(path, bytes)?),
            None => Place::Memory((0..MEMORIES).map(|_| RwLock::default()).collect()),
        };
        Ok(Store {
            place,
            changes: AtomicU64::new(0),
        })
    }

    fn open_file(path: &Path, needed: u64) -> Result<File, ServeError> {
        let failed = |what| move |error| ServeError::file(Key::File, path, what, error);
        let mut open = OpenOptions::new();
        open.read(true).write(true);
        let (file, new) = match open.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = open.create_new(true).open(path);
                (file.map_err(failed("make"))?, true)
            }
            opened => (opened.map_err(failed("open"))?, false),
        };
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                let path = path.to_owned();
                return Err(ServeError::Locked { path });
            }
            locked => locked.map_err(|errno| failed("lock")(errno.into()))?,
        }
        if new {
            file.set_len(needed).map_err(failed("lengthen"))?;
        }
        // Also tells the size of a block device.
        let bytes = rustix::fs::seek(&file, SeekFrom::End(0))
            .map_err(|errno| failed("measure")(errno.into()))?;
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

    /// A number that every change increases when it is made: what was read since this was so is what is there, unless
    /// a change is under way.
    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    pub(super) fn read(&self, into: &mut [u8], at: u64) -> Result<(), MediaError> {
        match &self.place {
            Place::File(file) => file.read_exact_at(into, at).map_err(|error| failed(&error)),
            Place::Memory(memories) => stripes(at, into.len() as u64).try_for_each(|stripe| {
                let memory = memories[stripe.memory].read().expect(SOUND);
                memory.read(stripe.at, &mut into[stripe.place()])
            }),
        }
    }

    /// Brings memory near that is about to be written, which is quicker than to wait for it with the model locked.
    pub(super) fn warm(&self, at: u64, count: u64) {
        if let Place::Memory(memories) = &self.place {
            for stripe in stripes(at, count) {
                let memory = memories[stripe.memory].read().expect(SOUND);
                memory.touch(stripe.at, stripe.count);
            }
        }
    }

    fn write(&self, data: &[u8], at: u64) -> Result<(), MediaError> {
        let written = match &self.place {
            Place::File(file) => file.write_all_at(data, at).map_err(|error| failed(&error)),
            Place::Memory(memories) => stripes(at, data.len() as u64).try_for_each(|stripe| {
                let mut memory = memories[stripe.memory].write().expect(SOUND);
                memory.write(stripe.at, &data[stripe.place()])
            }),
        };
        self.changes.fetch_add(1, Ordering::Release);
        written
    }

    /// Makes bytes zero, and gives up their space where that can be.
    fn zero(&self, at: u64, count: u64) -> Result<(), MediaError> {
        let zeroed = match &self.place {
            Place::File(file) => zero(file, at, count).map_err(|error| failed(&error)),
            Place::Memory(memories) => stripes(at, count).try_for_each(|stripe| {
                let mut memory = memories[stripe.memory].write().expect(SOUND);
                memory.zero(stripe.at, stripe.count)
            }),
        };
        self.changes.fetch_add(1, Ordering::Release);
        zeroed
    }

    /// Brings what was written to the disk below.
    pub(super) fn sync(&self) -> Result<(), ServeError> {
        match &self.place {
            Place::File(file) => file.sync_data().map_err(|error| ServeError::Data {
                what: "flush",
                error,
            }),
            Place::Memory(_) => Ok(()),
        }
    }
}

const SOUND: &str = "nobody panics with the data";

/// Bytes of one stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stripe {
    /// Which of the memories has them.
    memory: usize,
    /// Where they begin there: in each memory, its stripes follow one another.
    at: u64,
    count: u64,
    /// How many bytes of the request are before them.
    before: u64,
}

impl Stripe {
    /// Where they are in a request's buffer.
    fn place(&self) -> Range<usize> {
        self.before as usize..(self.before + self.count) as usize
    }
}

/// The stripes that bytes are in, cut to them.
fn stripes(at: u64, count: u64) -> impl Iterator<Item = Stripe> {
    let mut before = 0;
    std::iter::from_fn(move || {
        let (number, inside) = ((at + before) / STRIPE, (at + before) % STRIPE);
        let stripe = Stripe {
            memory: (number % MEMORIES) as usize,
            at: number / MEMORIES * STRIPE + inside,
            count: (STRIPE - inside).min(count - before),
            before,
        };
        before += stripe.count;
        (stripe.count > 0).then_some(stripe)
    })
}

/// Punches a hole, or writes zeros where the file system has none.
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
pub(super) struct Platters(pub(super) Arc<Store>);

impl Media for Platters {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError> {
        self.0.read(into, at)
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), MediaError> {
        self.0.write(data, at)
    }

    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError> {
        self.0.zero(at, length)
    }

    /// Nothing: this is called with the model locked. Who flushes calls [`Store::sync`] afterwards, before
    /// the client hears of it.
    fn sync(&mut self) -> Result<(), MediaError> {
        Ok(())
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

    /// Do stripes cover bytes without gaps, and does memory hold what is written across them?
    #[test]
    fn memory_is_striped() {
        let store = Store::open(None, 8 * STRIPE).unwrap();
        let data: Vec<u8> = (0..3 * STRIPE + 17).map(|at| (at % 251) as u8).collect();
        let at = STRIPE - 100;
        store.write(&data, at).unwrap();
        store.zero(2 * STRIPE - 7, 14).unwrap();
        let mut back = vec![1; data.len() + 2];
        store.read(&mut back, at - 1).unwrap();
        let hole = (2 * STRIPE - 7 - at) as usize;
        let mut expected = [&[0], &data[..], &[0]].concat();
        expected[1 + hole..1 + hole + 14].fill(0);
        assert!(back == expected);
        assert_eq!(stripes(0, 0).count(), 0);
    }

    /// Is every byte in a place of its own, without gaps in a memory?
    #[test]
    fn stripes_fill_memories() {
        let bytes = 3 * MEMORIES * STRIPE;
        let (mut ends, mut seen) = (vec![0; MEMORIES as usize], 0);
        for stripe in stripes(0, bytes) {
            assert_eq!((stripe.before, stripe.count), (seen, STRIPE));
            assert_eq!(stripe.at, ends[stripe.memory]);
            ends[stripe.memory] += STRIPE;
            seen += STRIPE;
        }
        assert_eq!(seen, bytes);
        assert!(ends.iter().all(|end| *end == 3 * STRIPE));
    }
}
