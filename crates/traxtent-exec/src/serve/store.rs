//! Where a served drive's data are: in a sparse file, or in memory, which is a file without a name.
//!
//! The file is locked: one server writes it at a time. It holds what the model's media hold, so a server
//! that is killed loses what was in the drive's volatile cache, and no more.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{FallocateFlags, FlockOperation, MemfdFlags, SeekFrom};
use rustix::io::Errno;
use traxtent_core::disk::{Media, MediaError};

use super::error::ServeError;
use super::keys::Key;

/// The data of a drive.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    named: bool,
}

impl Store {
    /// Opens the drive's file, or makes it if there is none; or takes memory.
    ///
    /// # Errors
    /// A file that is too small, that another server holds, or that cannot be used.
    pub(super) fn open(path: Option<&Path>, bytes: u64) -> Result<Store, ServeError> {
        match path {
            Some(path) => Store::in_file(path, bytes),
            None => Store::in_memory(bytes),
        }
    }

    fn in_file(path: &Path, needed: u64) -> Result<Store, ServeError> {
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
        Ok(Store { file, named: true })
    }

    fn in_memory(bytes: u64) -> Result<Store, ServeError> {
        let failed = |error| ServeError::Data {
            what: "find memory for",
            error,
        };
        let memory = rustix::fs::memfd_create("traxtent", MemfdFlags::CLOEXEC);
        let file = File::from(memory.map_err(|errno| failed(errno.into()))?);
        file.set_len(bytes).map_err(failed)?;
        Ok(Store { file, named: false })
    }

    pub(super) fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), MediaError> {
        let read = self.file.read_exact_at(buffer, offset);
        read.map_err(|error| failed(&error))
    }

    /// Makes bytes zero, and gives up their space where the file system can.
    fn zero(&self, offset: u64, count: u64) -> io::Result<()> {
        static BLOCK: [u8; 1 << 16] = [0; 1 << 16];
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, punch, offset, count) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let end = offset + count;
                let mut at = offset;
                while at < end {
                    let block = &BLOCK[..BLOCK.len().min((end - at) as usize)];
                    self.file.write_all_at(block, at)?;
                    at += block.len() as u64;
                }
                Ok(())
            }
            punched => Ok(punched?),
        }
    }

    /// Brings what was written to the disk below.
    pub(super) fn sync(&self) -> Result<(), ServeError> {
        if !self.named {
            return Ok(());
        }
        self.file.sync_data().map_err(|error| ServeError::Data {
            what: "flush",
            error,
        })
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
        let written = self.0.file.write_all_at(data, at);
        written.map_err(|error| failed(&error))
    }

    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError> {
        self.0.zero(at, length).map_err(|error| failed(&error))
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
