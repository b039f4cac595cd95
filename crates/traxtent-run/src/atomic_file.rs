//! Files that are written atomically, with errors of a run.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use traxtent_io::device::guard::refuse_output;

use crate::error::{Result, RunError};

/// A file that gets its name once it is complete. See [`traxtent_io::AtomicFile`].
pub struct AtomicFile {
    path: PathBuf,
    file: traxtent_io::AtomicFile,
}

impl AtomicFile {
    /// Begins a file. A special file, such as a pipe, is written directly.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if it is a block device.
    pub fn create(path: &Path) -> Result<AtomicFile> {
        refuse_output(path).map_err(RunError::input)?;
        let file = traxtent_io::AtomicFile::create(path);
        Ok(AtomicFile {
            path: path.to_owned(),
            file: file.map_err(|error| RunError::cannot_create(path, &error))?,
        })
    }

    /// Synchronizes the data to the disk, gives the file its final name, and synchronizes that.
    ///
    /// # Errors
    /// Returns an error if the rest of the data cannot be written, if the name cannot be given, or
    /// if either cannot be synchronized.
    pub fn finish_synced(self) -> Result<()> {
        let finished = self.file.finish_synced();
        finished.map_err(|error| RunError::file(&self.path, &error))
    }

    /// Gives the file its final name, which replaces an existing file.
    ///
    /// # Errors
    /// Returns an error if the rest of the data cannot be written, or the name cannot be given.
    pub fn finish(self) -> Result<()> {
        let finished = self.file.finish();
        finished.map_err(|error| RunError::output(&self.path, &error))
    }

    /// Converts an I/O error of this file to the error of a run.
    pub fn error(&self, error: &io::Error) -> RunError {
        RunError::output(&self.path, error)
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
