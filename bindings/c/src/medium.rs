//! The storage of a disk's data: memory, or a sparse file.
//!
//! A file is an image of the media. Data in the drive's volatile cache is not in it, so killing the
//! program has the same effect on the file as a power cut.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{FallocateFlags, FlockOperation};
use rustix::io::Errno;
use traxtent_model::disk::{Media, MediaError, MemoryMedia};

/// The storage of a disk's data.
#[derive(Debug)]
pub(crate) enum Medium {
    Memory(MemoryMedia),
    /// A locked file that is at least as long as the disk.
    File(File),
}

impl Medium {
    pub(crate) fn memory() -> Medium {
        Medium::Memory(MemoryMedia::new())
    }

    /// Creates a file of `bytes` zeros. On failure, no new file is left behind.
    pub(crate) fn create(path: &Path, bytes: u64) -> Result<Medium, String> {
        let mut options = OpenOptions::new();
        let made = options.read(true).write(true).create_new(true).open(path);
        let file = made.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => {
                format!("{}: the file exists; use traxtent_open", path.display())
            }
            _ => failed("create", path, &error),
        })?;
        let sized = lock(&file, path).and_then(|()| {
            file.set_len(bytes)
                .map_err(|error| failed(&format!("extend to {bytes} bytes"), path, &error))
        });
        match sized {
            Ok(()) => Ok(Medium::File(file)),
            Err(message) => {
                // The new file is empty. The first error is the one to report.
                let _ = fs::remove_file(path);
                Err(message)
            }
        }
    }

    /// Opens a file of at least `bytes` bytes. On failure it is unchanged.
    pub(crate) fn open(path: &Path, bytes: u64) -> Result<Medium, String> {
        // The check comes before opening, because opening alone has effects on some devices.
        let kind = fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("{}: no such file; use traxtent_create", path.display())
            }
            _ => failed("open", path, &error),
        })?;
        if !kind.is_file() {
            return Err(format!("{}: not a regular file", path.display()));
        }
        let opened = OpenOptions::new().read(true).write(true).open(path);
        let file = opened.map_err(|error| failed("open for writing", path, &error))?;
        lock(&file, path)?;
        let length = file
            .metadata()
            .map_err(|error| failed("determine the length", path, &error))?
            .len();
        if length < bytes {
            return Err(format!(
                "{}: {length} bytes is too short; the disk needs {bytes} bytes",
                path.display()
            ));
        }
        Ok(Medium::File(file))
    }
}

impl Media for Medium {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError> {
        match self {
            Medium::Memory(memory) => memory.read(at, into),
            Medium::File(file) => file.read_exact_at(into, at).map_err(media_error),
        }
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), MediaError> {
        match self {
            Medium::Memory(memory) => memory.write(at, data),
            Medium::File(file) => file.write_all_at(data, at).map_err(media_error),
        }
    }

    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError> {
        match self {
            Medium::Memory(memory) => memory.zero(at, length),
            Medium::File(file) => zero(file, at, length).map_err(media_error),
        }
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        match self {
            Medium::Memory(memory) => memory.sync(),
            Medium::File(file) => file.sync_data().map_err(media_error),
        }
    }
}

/// Punches a hole, or writes zeros if the file system does not support holes.
fn zero(file: &File, at: u64, length: u64) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    match rustix::fs::fallocate(file, punch, at, length) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let end = at + length;
            (at..end).step_by(ZEROS.len()).try_for_each(|from| {
                let count = ZEROS.len().min((end - from) as usize);
                file.write_all_at(&ZEROS[..count], from)
            })
        }
        punched => Ok(punched?),
    }
}

/// Locks a file like `traxtent serve`, so that only one disk or server at a time uses it.
fn lock(file: &File, path: &Path) -> Result<(), String> {
    match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Err(format!(
            "{}: in use by another disk or a server; close that first",
            path.display()
        )),
        locked => locked.map_err(|errno| failed("lock", path, &errno.into())),
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> String {
    format!("{}: cannot {what}: {error}", path.display())
}

fn media_error(error: io::Error) -> MediaError {
    match error.kind() {
        io::ErrorKind::StorageFull => MediaError::NoSpace,
        _ => MediaError::Failed {
            what: error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Disk, Status};
    use traxtent_model::disk::DiskError;

    /// Does a full file system have a status of its own?
    #[test]
    fn no_space_has_its_own_status() {
        let full = |errno: Errno| DiskError::from(media_error(errno.into()));
        assert_eq!(Disk::status(&full(Errno::NOSPC)), Status::TRAXTENT_NO_SPACE);
        assert_eq!(Disk::status(&full(Errno::IO)), Status::TRAXTENT_FAILED);
    }
}
