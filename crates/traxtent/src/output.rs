//! Output: standard output and files.

use std::fs;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::Path;

use serde::Serialize;
use traxtent_run::AtomicFile;

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
    Ok(file.finish()?)
}

/// Checks that files can be created in a directory, which is created if needed.
pub(crate) fn folder(path: &Path) -> Result<()> {
    let fail = |error: io::Error| Failure::file(path, &error);
    if path.exists() && !path.is_dir() {
        let what = format!("{}: is not a directory; name another one", path.display());
        return Err(Failure::Io(what));
    }
    fs::create_dir_all(path).map_err(fail)?;
    tempfile::tempfile_in(path).map(drop).map_err(fail)
}

/// Writes a file and synchronizes it to the disk before it replaces an existing one.
pub(crate) fn write_synced(path: &Path, bytes: &[u8]) -> Result<()> {
    let fail = |error: &io::Error| Failure::file(path, error);
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).map_err(|error| fail(&error))?;
    Ok(file.finish_synced()?)
}
