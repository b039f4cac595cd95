//! Files that are written atomically.

use std::fs::{self, File, Metadata, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::device::guard::refuse_output;

/// A file that gets its name once it is complete. Until then, the content is in a file without a
/// name, so an interrupted process leaves nothing. Where such files are not supported, it is in a
/// temporary file in the same directory, which is removed if this value is dropped unfinished.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    sink: Sink,
}

#[derive(Debug)]
enum Sink {
    /// A file without a name that will become a regular file.
    Nameless(BufWriter<File>),
    /// A temporary file that will become a regular file.
    Beside(BufWriter<NamedTempFile>),
    /// A special file, such as a pipe, which is written directly.
    Direct(BufWriter<File>),
}

impl AtomicFile {
    /// Begins a file. It gets the mode of the file that it replaces, if there is one. A special
    /// file, such as a pipe, is written directly.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if it is a block device.
    pub fn create(path: &Path) -> io::Result<AtomicFile> {
        AtomicFile::create_like(path, fs::metadata(path).ok().as_ref())
    }

    /// Begins a file with the mode of an older one, if there is one.
    ///
    /// # Errors
    /// Returns the errors of [`AtomicFile::create`].
    pub fn create_like(path: &Path, older: Option<&Metadata>) -> io::Result<AtomicFile> {
        refuse_output(path).map_err(io::Error::other)?;
        let mode = older.map(|older| older.permissions().mode() & PERMISSIONS);
        // Until the mode is set, the file is at most as accessible as the older one.
        let first = READABLE & mode.unwrap_or(READABLE);
        let sink = if is_special(path) {
            Sink::Direct(BufWriter::new(File::create(path)?))
        } else if let Some(file) = nameless(folder_of(path), first) {
            set_mode(&file, mode);
            Sink::Nameless(BufWriter::new(file))
        } else {
            let mut options = File::options();
            options.write(true).create_new(true).mode(first);
            let mut temporary = tempfile::Builder::new();
            temporary.prefix(PREFIX);
            let file = temporary.make_in(folder_of(path), |name| options.open(name))?;
            set_mode(file.as_file(), mode);
            Sink::Beside(BufWriter::new(file))
        };
        Ok(AtomicFile {
            path: path.to_owned(),
            sink,
        })
    }

    /// Checks that a file can be created. Existing files and special files are not changed.
    ///
    /// # Errors
    /// Returns the errors of [`AtomicFile::create`].
    pub fn check(path: &Path) -> io::Result<()> {
        match fs::metadata(path) {
            Ok(meta) if meta.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            // Opening a pipe would wait for its reader.
            Ok(meta) if !meta.is_file() => refuse_output(path).map_err(io::Error::other),
            _ => AtomicFile::create(path).map(drop),
        }
    }

    /// Synchronizes the data to the disk, gives the file its final name, and synchronizes that.
    ///
    /// # Errors
    /// Returns an error if the rest of the data cannot be written, if the name cannot be given, or
    /// if either cannot be synchronized.
    pub fn finish_synced(mut self) -> io::Result<()> {
        let path = self.path.clone();
        self.sync()?;
        self.finish()?;
        File::open(folder_of(&path))?.sync_all()
    }

    /// Writes the buffered data and, except for special files, waits until it is on the disk.
    fn sync(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Nameless(file) => {
                file.flush()?;
                file.get_ref().sync_all()
            }
            Sink::Beside(file) => {
                file.flush()?;
                file.get_ref().as_file().sync_all()
            }
            Sink::Direct(file) => file.flush(),
        }
    }

    /// Gives the file its final name, which replaces an existing file.
    ///
    /// # Errors
    /// Returns an error if the rest of the data cannot be written, or the name cannot be given.
    pub fn finish(self) -> io::Result<()> {
        match self.sink {
            Sink::Direct(mut file) => file.flush(),
            Sink::Nameless(file) => give_name(&file.into_inner()?, &self.path),
            Sink::Beside(file) => {
                file.into_inner()?.persist(&self.path)?;
                Ok(())
            }
        }
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Beside(file) => file.write(bytes),
            Sink::Nameless(file) | Sink::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Beside(file) => file.flush(),
            Sink::Nameless(file) | Sink::Direct(file) => file.flush(),
        }
    }
}

/// The directory with links to the open files of this process.
const OPEN_FILES: &str = "/proc/self/fd";

/// Creates a file without a name; `None` if the file system does not support such files, or they
/// could not be named later.
fn nameless(folder: &Path, mode: u32) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    if !Path::new(OPEN_FILES).exists() {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::from_raw_mode(mode));
    file.ok().map(File::from)
}

/// Gives a nameless file its name, by way of a temporary link that is renamed: unlike a rename, a
/// link cannot replace an existing file.
fn give_name(file: &File, path: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
    let mut beside = tempfile::Builder::new();
    let linked = beside.prefix(PREFIX).make_in(folder_of(path), |name| {
        linkat(CWD, &open, CWD, name, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    });
    linked?.persist(path).map(drop).map_err(|error| error.error)
}

/// Sets the mode of a new file that replaces an older one.
fn set_mode(file: &File, mode: Option<u32>) {
    if let Some(mode) = mode {
        // On file systems without modes, all files have the same one.
        let _ = file.set_permissions(Permissions::from_mode(mode));
    }
}

/// Returns whether a path names an existing file that is not a regular one, such as a pipe.
fn is_special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| !meta.is_file())
}

/// The beginning of the names of temporary files.
const PREFIX: &str = ".traxtent-";
/// The permissions of files, from which the user's umask is subtracted.
const READABLE: u32 = 0o666;
/// The permissions in a file's mode.
const PERMISSIONS: u32 = 0o777;

/// Returns the directory of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a new file get the mode of the one that it replaces? Does a check leave the directory
    /// unchanged?
    #[test]
    fn modes_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        for mode in [0o600, 0o666, 0o750] {
            fs::write(&path, "older").unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            AtomicFile::check(&path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"older");
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(b"newer").unwrap();
            file.finish_synced().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"newer");
            let found = fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(found & PERMISSIONS, mode, "{mode:o}");
        }
        AtomicFile::check(&folder.path().join("new")).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        AtomicFile::check(&folder.path().join("none/new")).unwrap_err();
        AtomicFile::check(folder.path()).unwrap_err();
    }
}
