//! Files that are written atomically.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use traxtent_io::device::guard::refuse_output;

use crate::error::{Result, RunError};

/// A file that gets its name once it is complete. Until then, the content is in a file without a
/// name, so an interrupted process leaves nothing. Where such files are not supported, it is in a
/// temporary file in the same directory, which is removed if this value is dropped unfinished.
pub struct AtomicFile {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    /// A file without a name that will become a regular file.
    Nameless(BufWriter<File>),
    /// A temporary file that will become a regular file.
    Beside(BufWriter<NamedTempFile>),
    /// A special file, such as a pipe, which is written directly.
    Direct(BufWriter<File>),
}

impl AtomicFile {
    /// Begins a file. A special file, such as a pipe, is written directly.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if it is a block device.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        let fail = |error: io::Error| RunError::cannot_create(path, &error);
        refuse_output(path).map_err(RunError::input)?;
        let special = fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        let sink = if special {
            Sink::Direct(BufWriter::new(File::create(path).map_err(fail)?))
        } else if let Some(file) = nameless(folder_of(path)) {
            Sink::Nameless(BufWriter::new(file))
        } else {
            let mut temporary = tempfile::Builder::new();
            temporary.prefix(PREFIX);
            temporary.permissions(readable());
            Sink::Beside(BufWriter::new(
                temporary.tempfile_in(folder_of(path)).map_err(fail)?,
            ))
        };
        Ok(AtomicFile {
            path: path.to_owned(),
            sink,
        })
    }

    /// Synchronizes the data to the disk, gives the file its final name, and synchronizes that.
    ///
    /// # Errors
    /// Returns an error if the rest of the data cannot be written, if the name cannot be given, or
    /// if either cannot be synchronized.
    pub fn finish_synced(mut self) -> Result<()> {
        let path = self.path.clone();
        let fail = |error: io::Error| RunError::file(&path, &error);
        self.sync().map_err(fail)?;
        self.finish()?;
        File::open(folder_of(&path))
            .and_then(|folder| folder.sync_all())
            .map_err(fail)
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
    pub fn finish(self) -> Result<()> {
        let AtomicFile { path, sink } = self;
        let fail = |error: &io::Error| RunError::output(&path, error);
        match sink {
            Sink::Direct(mut file) => file.flush().map_err(|error| fail(&error)),
            Sink::Nameless(file) => {
                let file = file.into_inner().map_err(|error| fail(error.error()))?;
                give_name(&file, &path).map_err(|error| fail(&error))
            }
            Sink::Beside(file) => {
                let file = file.into_inner().map_err(|error| fail(error.error()))?;
                file.persist(&path)
                    .map(drop)
                    .map_err(|error| fail(&error.error))
            }
        }
    }

    /// Converts an I/O error of this file to the error of a run.
    pub fn error(&self, error: &io::Error) -> RunError {
        RunError::output(&self.path, error)
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
fn nameless(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags};
    if !Path::new(OPEN_FILES).exists() {
        return None;
    }
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::from_raw_mode(READABLE));
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

/// The beginning of the names of temporary files.
const PREFIX: &str = ".traxtent-";
/// The permissions of files, from which the user's umask is subtracted.
const READABLE: u32 = 0o666;

fn readable() -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    Permissions::from_mode(READABLE)
}

/// Returns the directory of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}
