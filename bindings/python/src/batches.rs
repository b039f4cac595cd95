//! Simulations whose requests are handed over batch by batch, in bounded memory.

use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict};
use traxtent_run::{RunError, Summary};

use crate::arrow::Batch;
use crate::errors::{TraxtentError, guarded, input_error};
use crate::observer::PythonObserver;
use crate::request_log::{LogBuilder, RequestBatch};
use crate::result::SimulationResult;
use crate::simulate::{Arguments, Plan};
use crate::values::{Whole, optional};

/// The number of batches that may wait for the reader before the simulation waits too.
const BATCHES_AHEAD: usize = 2;

/// The largest number of rows in a batch, about 2.5 GB.
const ROWS_MAX: usize = 1 << 24;

/// The interval at which signals are checked.
const SIGNALS_EVERY: Duration = Duration::from_millis(40);

enum Message {
    Batch(Batch),
    End(Box<Plan>, Box<Result<Summary, RunError>>),
}

/// An iterator over batches of the requests of a running simulation.
///
/// The simulation is at most a few batches ahead, and ends when the iterator is deleted. After the
/// last batch, ``result`` is the ``Result`` without requests.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct BatchIterator {
    messages: Mutex<Option<Receiver<Message>>>,
    observer: Arc<PythonObserver>,
    result: Mutex<Option<Py<SimulationResult>>>,
}

#[pymethods]
impl BatchIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<RequestBatch>> {
        guarded(|| self.next(py))
    }

    /// The result of the whole simulation; ``None`` until the iteration has ended.
    #[getter]
    fn result(&self, py: Python<'_>) -> Option<Py<SimulationResult>> {
        let result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        result.as_ref().map(|result| result.clone_ref(py))
    }
}

impl BatchIterator {
    fn next(&self, py: Python<'_>) -> PyResult<Option<RequestBatch>> {
        loop {
            let received = py.detach(|| {
                let messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
                messages
                    .as_ref()
                    .map(|messages| messages.recv_timeout(SIGNALS_EVERY))
            });
            match received {
                None => return Ok(None),
                Some(Ok(Message::Batch(batch))) => return Ok(Some(RequestBatch::new(batch))),
                Some(Ok(Message::End(mut plan, summary))) => {
                    self.close();
                    let result = Py::new(py, plan.finish(py, *summary, None)?)?;
                    let mut kept = self.result.lock().unwrap_or_else(PoisonError::into_inner);
                    *kept = Some(result);
                    return Ok(None);
                }
                Some(Err(RecvTimeoutError::Timeout)) => {
                    if let Err(exception) = py.check_signals() {
                        self.close();
                        return Err(exception);
                    }
                }
                Some(Err(RecvTimeoutError::Disconnected)) => {
                    self.close();
                    return Err(TraxtentError::new_err(
                        "internal error: the simulation has died",
                    ));
                }
            }
        }
    }

    /// Ends the simulation.
    fn close(&self) {
        self.observer.stop_now();
        let mut messages = self.messages.lock().unwrap_or_else(PoisonError::into_inner);
        *messages = None;
    }
}

impl Drop for BatchIterator {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs a plan, and sends its batches and then its summary.
fn run(mut plan: Box<Plan>, rows: usize, sender: &SyncSender<Message>) {
    let mut builder = LogBuilder::new(rows);
    let summary = plan.execute(|outcome| match builder.push(outcome) {
        Some(batch) => sender.send(Message::Batch(batch)).is_ok(),
        None => true,
    });
    // A reader that is gone needs nothing more.
    if let (Ok(_), Some(batch)) = (&summary, builder.finish()) {
        let _ = sender.send(Message::Batch(batch));
    }
    let _ = sender.send(Message::End(plan, Box::new(summary)));
}

/// Begins a simulation, and returns an iterator over its requests.
#[pyfunction]
#[pyo3(signature = (drive, workload, seed, rows, warmup, set, progress, options, scheduler, place))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn simulate_in_batches(
    drive: Bound<'_, PyAny>,
    workload: Option<Bound<'_, PyAny>>,
    seed: Option<Whole<u64>>,
    rows: Whole<usize>,
    warmup: Whole<u64>,
    set: Option<Bound<'_, PyDict>>,
    progress: Option<Bound<'_, PyAny>>,
    options: Option<Bound<'_, PyDict>>,
    scheduler: Option<Bound<'_, PyAny>>,
    place: Option<Bound<'_, PyAny>>,
) -> PyResult<BatchIterator> {
    guarded(|| {
        let rows = rows.named("rows")?;
        if !(1..=ROWS_MAX).contains(&rows) {
            return Err(input_error(format!(
                "rows: {rows}: expected 1 to {ROWS_MAX}"
            )));
        }
        let plan = Box::new(Plan::new(&Arguments {
            drive,
            workload,
            seed: optional("seed", seed)?,
            warmup: warmup.named("warmup")?,
            set,
            progress,
            options,
            scheduler,
            place,
        })?);
        let observer = Arc::clone(&plan.observer);
        let (sender, messages) = sync_channel(BATCHES_AHEAD);
        thread::spawn(move || run(plan, rows, &sender));
        Ok(BatchIterator {
            messages: Mutex::new(Some(messages)),
            observer,
            result: Mutex::new(None),
        })
    })
}
