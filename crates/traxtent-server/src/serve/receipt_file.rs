//! The file with the receipt of a served drive.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use traxtent_io::AtomicFile;
use traxtent_io::device::guard;

use super::error::ServeError;
use super::receipt::Receipt;
use crate::service::{FileRole, ServiceError};

/// The file for the receipt.
#[derive(Debug)]
pub(super) struct ReceiptFile {
    path: PathBuf,
    /// The file of an earlier run, whose mode the new one gets.
    older: OnceLock<Metadata>,
}

impl ReceiptFile {
    /// Checks that the receipt can be written. The file of an earlier run stays.
    pub(super) fn open(path: &Path) -> Result<ReceiptFile, ServeError> {
        let role = FileRole::Receipt;
        guard::refuse_output(path).map_err(|refusal| ServeError::Output { role, refusal })?;
        AtomicFile::check(path).map_err(|error| ServeError::file(role, path, "write", error))?;
        Ok(ReceiptFile {
            path: path.to_owned(),
            older: OnceLock::new(),
        })
    }

    /// Removes the file of an earlier run, which would otherwise be taken for this run's if this
    /// run is killed. Special files stay.
    pub(super) fn start(&self) -> Result<(), ServiceError> {
        let Some(older) = fs::metadata(&self.path).ok().filter(Metadata::is_file) else {
            return Ok(());
        };
        fs::remove_file(&self.path).map_err(|error| self.failed(error))?;
        self.older.get_or_init(|| older);
        Ok(())
    }

    /// Replaces the file: a reader sees the old receipt or the complete new one.
    pub(super) fn write(&self, receipt: &Receipt) -> Result<(), ServiceError> {
        let mut text = serde_json::to_string_pretty(receipt).expect("a receipt is plain data");
        text.push('\n');
        let written = || {
            let mut file = AtomicFile::create_like(&self.path, self.older.get())?;
            file.write_all(text.as_bytes())?;
            file.finish()
        };
        written().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> ServiceError {
        ServiceError::Output {
            role: FileRole::Receipt,
            path: self.path.clone(),
            error,
        }
    }
}
