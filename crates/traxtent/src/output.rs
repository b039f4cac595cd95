//! What is written: standard output, and files that appear whole or not at all.

use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::{NamedTempFile, TempDir};
use traxtent_exec::device::guard::refuse_output;

use crate::failure::{Failure, Result};

/// Standard output, buffered. Call [`finish`] at the end.
pub(crate) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Writes what is still buffered.
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

/// Writes a file at once.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fill(Whole::create(path)?, bytes)
}

/// Writes a file that has been begun, and nothing after it.
pub(crate) fn fill(mut file: Whole, bytes: &[u8]) -> Result<()> {
    file.write_all(bytes).map_err(|error| file.error(&error))?;
    file.finish()
}

/// A new folder that only its user can enter, whatever the mask of modes says: for sockets.
pub(crate) fn private_folder() -> Result<TempDir> {
    use std::os::unix::fs::PermissionsExt;
    let mut folder = tempfile::Builder::new();
    folder.prefix("traxtent-");
    folder.permissions(Permissions::from_mode(0o700));
    let made = folder.tempdir();
    made.map_err(|error| Failure::file(&std::env::temp_dir(), &error))
}

/// A folder that files can be written to; it is made if need be.
pub(crate) fn folder(path: &Path) -> Result<()> {
    let fail = |error: io::Error| Failure::file(path, &error);
    fs::create_dir_all(path).map_err(fail)?;
    tempfile::tempfile_in(path).map(drop).map_err(fail)
}

/// Writes a file that is on the disk before it takes its place.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |error: &io::Error| Failure::file(path, error);
    let mut file = Whole::create(path)?;
    file.write_all(bytes).map_err(|error| fail(&error))?;
    file.sync().map_err(|error| fail(&error))?;
    file.finish()?;
    File::open(folder_of(path))
        .and_then(|folder| folder.sync_all())
        .map_err(|error| fail(&error))
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A file that takes its place when it is complete. Until then its bytes are in a temporary file
/// beside it, which goes when this is dropped.
pub(crate) struct Whole {
    path: PathBuf,
    sink: Sink,
}

enum Sink {
    /// A file to be.
    Beside(BufWriter<NamedTempFile>),
    /// Something that is no regular file, such as a pipe.
    Direct(BufWriter<File>),
}

impl Whole {
    /// Begins a file.
    pub(crate) fn create(path: &Path) -> Result<Whole> {
        let fail = |error: io::Error| Failure::unmade(path, &error);
        refuse_output(path).map_err(Failure::input)?;
        let special = fs::metadata(path).is_ok_and(|meta| !meta.is_file());
        let sink = if special {
            Sink::Direct(BufWriter::new(File::create(path).map_err(fail)?))
        } else {
            let mut beside = tempfile::Builder::new();
            beside.prefix(".traxtent-");
            beside.permissions(readable());
            Sink::Beside(BufWriter::new(
                beside.tempfile_in(folder_of(path)).map_err(fail)?,
            ))
        };
        Ok(Whole {
            path: path.to_owned(),
            sink,
        })
    }

    /// Waits until what has been written is on the disk.
    fn sync(&mut self) -> io::Result<()> {
        match &mut self.sink {
            Sink::Beside(file) => {
                file.flush()?;
                file.get_ref().as_file().sync_all()
            }
            Sink::Direct(file) => file.flush(),
        }
    }

    /// Gives the file its name.
    pub(crate) fn finish(self) -> Result<()> {
        let Whole { path, sink } = self;
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

    /// An error of this file.
    pub(crate) fn error(&self, error: &io::Error) -> Failure {
        Failure::file(&self.path, error)
    }
}

impl Write for Whole {
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
    // Less what the user's mask takes away.
    Permissions::from_mode(0o666)
}
