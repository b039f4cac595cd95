//! Output: standard output, and files that are written atomically.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;
use traxtent_io::device::guard::refuse_output;

use crate::failure::{Failure, Result};

/// Returns buffered standard output. Call [`finish`] at the end.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes the remaining buffered data.
pub(crate) fn finish(mut out: impl Write) -> Result<()> {
    Ok(out.flush()?)
}

/// Prints a value as JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<()> {
    let mut out = stdout();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    finish(out)
}

/// Writes a file atomically.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fill(AtomicFile::create(path)?, bytes)
}

/// Writes all bytes to a new file, and finishes it.
pub(crate) fn fill(mut file: AtomicFile, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).map_err(|error| file.error(&error))?;
    file.finish()
}

/// Checks that files can be created in a directory, which is created if needed.
pub(crate) fn folder(path: &Path) -> Result<()> {
    let fail = |error: io::Error| Failure::file(path, &error);
    fs::create_dir_all(path).map_err(fail)?;
    tempfile::tempfile_in(path).map(drop).map_err(fail)
}

/// Writes a file and synchronizes it to the disk before it replaces an existing one.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |error: &io::Error| Failure::file(path, error);
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(|error| fail(&error))?;
    file.sync().map_err(|error| fail(&error))?;
    file.finish()?;
    File::open(folder_of(path))
        .and_then(|folder| folder.sync_all())
        .map_err(|error| fail(&error))
}

/// Returns the directory of a file.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A file that gets its name once it is complete. An interrupted command therefore leaves nothing.
/// On file systems without nameless files, the content is in a temporary file in the same
/// directory, which is removed if this value is dropped.
pub(crate) struct AtomicFile {
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
    /// Begins a file.
    pub(crate) fn create(path: &Path) -> Result<AtomicFile> {
        let fail = |error: io::Error| Failure::cannot_create(path, &error);
        refuse_output(path).map_err(Failure::input)?;
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

    /// Waits until all written data is on the disk.
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

    /// Gives the file its final name.
    pub(crate) fn finish(self) -> Result<()> {
        let AtomicFile { path, sink } = self;
        let fail = |error: &io::Error| Failure::output(&path, error);
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

    /// Returns an error about this file.
    pub(crate) fn error(&self, error: &io::Error) -> Failure {
        Failure::output(&self.path, error)
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
