//! Output: standard output, and files that are written atomically.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, StdoutLock, Write};
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

/// A file that appears under its name once it is complete. Until then, its content is in a
/// temporary file next to it, which is removed if this is dropped.
pub(crate) struct AtomicFile {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
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
        } else {
            let mut temporary = tempfile::Builder::new();
            temporary.prefix(".traxtent-");
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
        let fail = |error: &io::Error| Failure::file(&path, error);
        match sink {
            Sink::Direct(mut file) => file.flush().map_err(|error| fail(&error)),
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
        Failure::file(&self.path, error)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.sink {
            Sink::Beside(file) => file.write(bytes),
            Sink::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Beside(file) => file.flush(),
            Sink::Direct(file) => file.flush(),
        }
    }
}

fn readable() -> Permissions {
    use std::os::unix::fs::PermissionsExt;
    // The user's umask still applies.
    Permissions::from_mode(0o666)
}
