//! Progress, warnings and Ctrl-C during long work.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use traxtent_calibrate::CalibrationObserver;
use traxtent_run::{Machine, Observer, RunError};

use crate::errors::{TraxtentError, guarded, run_error};

/// The interval at which signals are checked. Ctrl-C must end work within 0.2 s.
const SIGNALS_EVERY: Duration = Duration::from_millis(40);

/// The time after which work is long enough to show its progress. A function of the user is called
/// from the beginning.
const PROGRESS_AFTER: Duration = Duration::from_secs(1);

/// An observer that calls Python.
pub(crate) struct PythonObserver {
    /// The argument `progress`.
    progress: Option<Py<PyAny>>,
    /// Whether `progress` is a function of the user.
    is_function: bool,
    /// The number of requests, if it is known.
    total: Option<u64>,
    done: AtomicU64,
    state: Mutex<State>,
}

struct State {
    begun: Instant,
    last_look: Instant,
    /// The function that shows progress: `None` until it is determined, and `Some(None)` if
    /// progress is not shown.
    report: Option<Option<Py<PyAny>>>,
    warnings: Vec<String>,
    notes: Vec<String>,
    /// The exception that stops the work.
    exception: Option<PyErr>,
    stopped: bool,
}

impl PythonObserver {
    pub(crate) fn new(progress: Option<Py<PyAny>>, total: Option<u64>) -> PythonObserver {
        let now = Instant::now();
        let is_function = progress
            .as_ref()
            .is_some_and(|progress| Python::attach(|py| progress.bind(py).is_callable()));
        PythonObserver {
            progress,
            is_function,
            total,
            done: AtomicU64::new(0),
            state: Mutex::new(State {
                begun: now,
                last_look: now,
                report: None,
                warnings: Vec::new(),
                notes: Vec::new(),
                exception: None,
                stopped: false,
            }),
        }
    }

    /// Stops the work at the next opportunity.
    pub(crate) fn stop_now(&self) {
        self.lock().stopped = true;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A panic while the state was locked is reported separately.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the notes that have been collected since the last call, each once.
    pub(crate) fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notes)
    }

    /// Ends the display of progress, and returns the result of the work, or the exception that
    /// stopped it. If the work has succeeded, shows the collected warnings.
    pub(crate) fn finish<T>(&self, py: Python<'_>, result: Result<T, RunError>) -> PyResult<T> {
        let (warnings, exception, report) = {
            let mut state = self.lock();
            (
                std::mem::take(&mut state.warnings),
                state.exception.take(),
                state.report.take(),
            )
        };
        let report = match report {
            // The work has ended before its first report.
            None if self.is_function && result.is_ok() => self.reporter(py)?,
            report => report.flatten(),
        };
        let ended = report.map_or(Ok(()), |report| {
            let done = self.done.load(Ordering::Relaxed);
            report.bind(py).call1((done, self.total, true)).map(drop)
        });
        // The first exception is the one to raise.
        if let Some(exception) = exception {
            return Err(exception);
        }
        ended?;
        let value = result.map_err(run_error)?;
        warn(py, warnings)?;
        Ok(value)
    }

    fn look(&self) -> bool {
        let mut state = self.lock();
        if state.stopped {
            return true;
        }
        if state.last_look.elapsed() < SIGNALS_EVERY {
            return false;
        }
        state.last_look = Instant::now();
        let show = self.is_function || state.begun.elapsed() >= PROGRESS_AFTER;
        let known = state.report.is_some();
        drop(state);
        // Not locked: Python code may run here, in this thread or another.
        let looked = Python::attach(|py| {
            py.check_signals()?;
            if show && !known {
                let report = self.reporter(py)?;
                self.lock().report = Some(report);
            }
            let report = self
                .lock()
                .report
                .as_ref()
                .and_then(|report| report.as_ref().map(|report| report.clone_ref(py)));
            if let Some(report) = report {
                let done = self.done.load(Ordering::Relaxed);
                let reported = report.bind(py).call1((done, self.total, false));
                if let Err(exception) = reported {
                    // A function that has failed is not called again.
                    self.lock().report = Some(None);
                    return Err(exception);
                }
            }
            Ok(())
        });
        if let Err(exception) = looked {
            let mut state = self.lock();
            state.exception = Some(exception);
            state.stopped = true;
        }
        self.lock().stopped
    }

    fn reporter(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let module = py.import("traxtent._progress")?;
        let wanted = self.progress.as_ref().map(|progress| progress.bind(py));
        let report = module.call_method1("reporter", (wanted, self.total))?;
        Ok((!report.is_none()).then(|| report.unbind()))
    }
}

impl Observer for PythonObserver {
    fn add(&self, requests: u64) {
        self.done.fetch_add(requests, Ordering::Relaxed);
    }

    fn note(&self, line: &str) {
        let mut state = self.lock();
        if !state.notes.iter().any(|note| note == line) {
            state.notes.push(line.to_owned());
        }
    }

    fn warn(&self, line: &str) {
        self.lock().warnings.push(line.to_owned());
    }

    fn stop(&self) -> bool {
        self.look()
    }
}

/// Issues Python warnings that point to the user's code.
pub(crate) fn warn(py: Python<'_>, texts: Vec<String>) -> PyResult<()> {
    if texts.is_empty() {
        return Ok(());
    }
    let warn = py.import("traxtent._warnings")?.getattr("warn")?;
    texts
        .into_iter()
        .try_for_each(|text| warn.call1((text,)).map(drop))
}

/// Does work in a thread of its own, while this thread checks for signals and shows progress. Work
/// whose own threads ask whether to stop needs this, because Python handles signals only in
/// its main thread. A panic becomes an exception.
pub(crate) fn in_thread<T: Send>(
    observer: &PythonObserver,
    work: impl FnOnce(&ThreadObserver<'_>) -> T + Send,
) -> PyResult<T> {
    let (sender, done) = mpsc::sync_channel(1);
    thread::scope(|scope| {
        scope.spawn(move || {
            let _ = sender.send(guarded(|| Ok(work(&ThreadObserver(observer)))));
        });
        loop {
            match done.recv_timeout(SIGNALS_EVERY) {
                Ok(result) => return result,
                Err(RecvTimeoutError::Timeout) => {
                    observer.look();
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(TraxtentError::new_err("internal error: a thread has died"));
                }
            }
        }
    })
}

/// The observer of a thread that must not call Python.
pub(crate) struct ThreadObserver<'a>(&'a PythonObserver);

impl Observer for ThreadObserver<'_> {
    fn add(&self, requests: u64) {
        self.0.add(requests);
    }

    fn note(&self, line: &str) {
        self.0.note(line);
    }

    fn warn(&self, line: &str) {
        self.0.warn(line);
    }

    fn stop(&self) -> bool {
        self.0.lock().stopped
    }
}

impl CalibrationObserver for ThreadObserver<'_> {
    fn stop(&self) -> bool {
        Observer::stop(self)
    }
}

/// Loads a target. DiskSim parameters that are not modelled cause warnings.
pub(crate) fn load_machine(py: Python<'_>, text: &str) -> PyResult<Machine> {
    let observer = PythonObserver::new(None, None);
    let loaded = py.detach(|| Machine::load(text, &observer));
    observer.finish(py, loaded)
}
