//! The request log of a served drive, written by its own thread.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::error::ServeError;
use crate::service::{FileRole, ServiceError};
use traxtent_io::device::guard;
use traxtent_io::packed::CompressedWriter;
use traxtent_sim::request_log;
use traxtent_sim::simulate::Outcome;

/// The maximum number of rows that wait to be written. When it is reached, requests wait for the
/// log, because a complete log is worth more than a punctual run. That wait is not part of the
/// lateness in the receipt.
const ROWS_WAITING_MAX: usize = 1 << 16;

/// The interval at which buffered rows are written to a plain file.
const FLUSH_INTERVAL: Duration = Duration::from_millis(500);

/// A log that is being written.
#[derive(Debug)]
pub(super) struct Log {
    path: PathBuf,
    rows: Mutex<Option<SyncSender<Outcome>>>,
    stage: Mutex<Stage>,
}

#[derive(Debug)]
enum Stage {
    /// The file is locked and unchanged, and the writer has not started.
    Open(File, Receiver<Outcome>),
    Writing(JoinHandle<io::Result<()>>),
    Done,
}

impl Log {
    /// Opens and locks the file. The log of an earlier run stays.
    pub(super) fn open(path: &Path) -> Result<Log, ServeError> {
        let role = FileRole::Log;
        let file =
            guard::open_output(path).map_err(|refusal| ServeError::Output { role, refusal })?;
        let (sender, rows) = sync_channel(ROWS_WAITING_MAX);
        Ok(Log {
            path: path.to_owned(),
            rows: Mutex::new(Some(sender)),
            stage: Mutex::new(Stage::Open(file, rows)),
        })
    }

    /// Removes the rows of an earlier run, writes the column names, and starts the writer thread.
    pub(super) fn start(&self) -> Result<(), ServiceError> {
        let mut stage = self.stage.lock();
        if let Stage::Open(file, rows) = std::mem::replace(&mut *stage, Stage::Done) {
            let out = self.begin(file).map_err(|error| self.failed(error))?;
            let writer = thread::Builder::new().name("log".to_owned());
            let writing = writer.spawn(move || write(out, &rows));
            *stage = Stage::Writing(writing.map_err(ServiceError::Thread)?);
        }
        Ok(())
    }

    fn begin(&self, file: File) -> io::Result<CompressedWriter<BufWriter<File>>> {
        if file.metadata()?.is_file() {
            file.set_len(0)?;
        }
        let mut out = CompressedWriter::new(BufWriter::new(file), &self.path);
        request_log::write_head(&mut out)?;
        Ok(out)
    }

    /// Adds a row.
    pub(super) fn push(&self, outcome: Outcome) {
        let rows = self.rows.lock();
        if let Some(rows) = &*rows {
            // The send fails if the writer has stopped after an error, which `finish` reports.
            let _ = rows.send(outcome);
        }
    }

    /// Writes all remaining rows and ends the writer thread.
    pub(super) fn finish(&self) -> Result<(), ServiceError> {
        self.rows.lock().take();
        let mut stage = self.stage.lock();
        let written = match std::mem::replace(&mut *stage, Stage::Done) {
            Stage::Writing(writer) => writer.join().expect("the writer does not panic"),
            Stage::Open(..) | Stage::Done => Ok(()),
        };
        written.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> ServiceError {
        ServiceError::Output {
            role: FileRole::Log,
            path: self.path.clone(),
            error,
        }
    }
}

/// Writes rows until the last sender is gone.
fn write(mut out: CompressedWriter<BufWriter<File>>, rows: &Receiver<Outcome>) -> io::Result<()> {
    let mut line = Vec::with_capacity(512);
    let mut flushed = Instant::now();
    loop {
        match rows.recv_timeout(FLUSH_INTERVAL.saturating_sub(flushed.elapsed())) {
            Ok(outcome) => {
                line.clear();
                request_log::write_row(&mut line, &outcome)?;
                out.write_all(&line)?;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if flushed.elapsed() >= FLUSH_INTERVAL {
            out.flush()?;
            flushed = Instant::now();
        }
    }
    out.finish()?.flush()
}
