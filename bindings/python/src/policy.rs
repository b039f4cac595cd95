//! A user's own policies in Python: a queue scheduler, and the placement of requests.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use traxtent_model::drive::{HeadView, QueuePolicy, Waiting, WaitingRequest};
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::Arrival;

use crate::errors::input_error;
use crate::request::{Request, ms, op_name};
use crate::source::Fault;

/// The heads of a drive when its next request is chosen.
#[pyclass(frozen, get_all, module = "traxtent")]
pub(crate) struct Head {
    /// The cylinder that the arm is on.
    cylinder: u32,
    /// The surface that was accessed last.
    surface: u16,
    /// The LBN after the last one that was served.
    lbn: u64,
    /// The angle of the platter under the heads, in revolutions from 0 to 1.
    angle: f64,
}

#[pymethods]
impl Head {
    fn __repr__(&self) -> String {
        let Head {
            cylinder,
            surface,
            lbn,
            angle,
        } = self;
        format!("<Head at cylinder {cylinder}, surface {surface}, LBN {lbn}, angle {angle:.3}>")
    }
}

/// A request that waits in the drive's queue.
#[pyclass(frozen, name = "WaitingRequest", module = "traxtent")]
pub(crate) struct PythonRequest {
    request: WaitingRequest,
}

#[pymethods]
impl PythonRequest {
    /// The first logical block.
    #[getter]
    fn lbn(&self) -> u64 {
        self.request.request.lbn.0
    }

    /// The number of logical sectors.
    #[getter]
    fn sectors(&self) -> u32 {
        self.request.request.sectors
    }

    /// ``read``, ``write``, ``flush`` or ``verify``.
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.request.request.op)
    }

    /// The simulated time at which the drive received the request, in milliseconds.
    #[getter]
    fn arrived_ms(&self) -> f64 {
        ms(Span(self.request.submitted.0))
    }

    fn __repr__(&self) -> String {
        format!(
            "<WaitingRequest: {} of {} at LBN {}>",
            self.op(),
            self.sectors(),
            self.lbn()
        )
    }
}

/// The requests that wait in a drive's queue, in order of arrival: a sequence of
/// ``WaitingRequest``.
///
/// It shows the queue at the moment of a decision, and raises ``InputError`` afterwards.
#[pyclass(frozen, name = "WaitingQueue", module = "traxtent")]
pub(crate) struct PythonQueue {
    /// The queue during a call of the scheduler, and `None` afterwards. The lifetime is extended,
    /// because a Python object cannot have a lifetime parameter.
    current: Mutex<Option<Waiting<'static>>>,
}

impl PythonQueue {
    /// Passes the queue to a function, which must not call Python. The lock, which is held
    /// meanwhile, keeps the queue valid.
    fn with<T>(&self, read: impl FnOnce(&Waiting<'_>) -> T) -> PyResult<T> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = current.as_ref().ok_or_else(|| {
            input_error("waiting shows the queue only until the scheduler has returned")
        })?;
        Ok(read(waiting))
    }
}

#[pymethods]
impl PythonQueue {
    fn __len__(&self) -> PyResult<usize> {
        self.with(|waiting| waiting.len())
    }

    fn __getitem__(&self, index: isize) -> PyResult<PythonRequest> {
        let (found, length) = self.with(|waiting| {
            let place = match index {
                0.. => Some(index as usize),
                _ => waiting.len().checked_sub(index.unsigned_abs()),
            };
            (place.and_then(|place| waiting.get(place)), waiting.len())
        })?;
        found
            .map(|request| PythonRequest { request })
            .ok_or_else(|| PyIndexError::new_err(format!("{length} requests wait")))
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyIterator>> {
        let all: Vec<WaitingRequest> = self.with(|waiting| waiting.iter().collect())?;
        let all = all.into_iter().map(|request| PythonRequest { request });
        PyList::new(
            py,
            all.map(|one| Bound::new(py, one))
                .collect::<PyResult<Vec<_>>>()?,
        )?
        .try_iter()
    }

    /// Returns the first LBN of each request.
    fn lbns(&self) -> PyResult<Vec<u64>> {
        self.with(|waiting| waiting.iter().map(|one| one.request.lbn.0).collect())
    }

    /// Returns the number of sectors of each request.
    fn sectors(&self) -> PyResult<Vec<u32>> {
        self.with(|waiting| waiting.iter().map(|one| one.request.sectors).collect())
    }

    /// Returns the time at which the drive received each request, in milliseconds.
    fn arrived_ms(&self) -> PyResult<Vec<f64>> {
        self.with(|waiting| {
            waiting
                .iter()
                .map(|one| ms(Span(one.submitted.0)))
                .collect()
        })
    }

    /// Returns the time in milliseconds until the first remaining sector of each request comes
    /// under the head: the value that ``sptf`` minimizes. It is 0 for a read without FUA whose
    /// first sector is in the buffer, or about to be.
    fn access_ms(&self) -> PyResult<Vec<f64>> {
        self.with(|waiting| {
            let time = |index| waiting.positioning(index).map_or(f64::INFINITY, ms);
            (0..waiting.len()).map(time).collect()
        })
    }

    fn __repr__(&self) -> String {
        match self.__len__() {
            Ok(length) => format!("<WaitingQueue of {length} requests>"),
            Err(_) => "<WaitingQueue of an earlier decision>".to_owned(),
        }
    }
}

/// A queue scheduler in Python.
#[derive(Clone)]
pub(crate) struct PythonScheduler {
    pick: Arc<Py<PyAny>>,
    fault: Fault,
}

impl PythonScheduler {
    pub(crate) fn new(pick: &Bound<'_, PyAny>, fault: Fault) -> PyResult<PythonScheduler> {
        if !pick.is_callable() {
            let kind = pick.get_type();
            let what =
                format!("scheduler: expected a function (now_ms, head, waiting), not {kind}");
            return Err(PyTypeError::new_err(what));
        }
        Ok(PythonScheduler {
            pick: Arc::new(pick.clone().unbind()),
            fault,
        })
    }

    fn ask(&self, now: SimTime, head: &HeadView, waiting: &Waiting<'_>) -> PyResult<usize> {
        Python::attach(|py| {
            let head = Head {
                cylinder: head.position.cylinder.0,
                surface: head.position.surface.0,
                lbn: head.lbn.0,
                angle: head.angle.as_turns(),
            };
            // SAFETY: only `PythonQueue::with` uses the extended lifetime, under a lock, and only
            // while this call lasts: `Shown` takes the queue away under the same lock before
            // `waiting` ends, even if the call panics.
            let queue = unsafe { std::mem::transmute::<Waiting<'_>, Waiting<'static>>(*waiting) };
            let shown = Shown(Bound::new(
                py,
                PythonQueue {
                    current: Mutex::new(Some(queue)),
                },
            )?);
            let picked = self
                .pick
                .bind(py)
                .call1((ms(Span(now.0)), head, &shown.0))?;
            let index = picked.extract::<usize>().map_err(|_| {
                PyTypeError::new_err(format!("scheduler: expected an index, not {picked}"))
            })?;
            if index >= waiting.len() {
                return Err(input_error(format!(
                    "scheduler: index {index}: {} requests wait",
                    waiting.len()
                )));
            }
            Ok(index)
        })
    }
}

/// Takes the queue away from Python at the end of a decision.
struct Shown<'py>(Bound<'py, PythonQueue>);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let mut current = self
            .0
            .get()
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *current = None;
    }
}

impl QueuePolicy for PythonScheduler {
    fn choose(&mut self, now: SimTime, head: &HeadView, waiting: &Waiting<'_>) -> usize {
        if self.fault.is_set() {
            return 0;
        }
        self.ask(now, head, waiting).unwrap_or_else(|error| {
            self.fault.set(error);
            0
        })
    }
}

impl fmt::Debug for PythonScheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PythonScheduler")
    }
}

/// The placement of requests in Python.
pub(crate) struct PythonPlacement {
    place: Py<PyAny>,
    fault: Fault,
}

impl PythonPlacement {
    pub(crate) fn new(place: &Bound<'_, PyAny>, fault: Fault) -> PyResult<PythonPlacement> {
        if !place.is_callable() {
            let kind = place.get_type();
            let what = format!("place: expected a function (request), not {kind}");
            return Err(PyTypeError::new_err(what));
        }
        Ok(PythonPlacement {
            place: place.clone().unbind(),
            fault,
        })
    }

    /// Replaces a request's LBN, or the request itself, by the function's result.
    pub(crate) fn place(&self, arrival: &mut Arrival) {
        if self.fault.is_set() {
            return;
        }
        if let Err(error) = self.ask(arrival) {
            self.fault.set(error);
        }
    }

    fn ask(&self, arrival: &mut Arrival) -> PyResult<()> {
        Python::attach(|py| {
            let request = Request {
                request: arrival.request,
                device: arrival.device,
                at: Some(ms(Span(arrival.at.0))),
                delay: None,
            };
            let placed = self.place.bind(py).call1((request,))?;
            if let Ok(request) = placed.extract::<Request>() {
                arrival.request = request.request;
                arrival.device = request.device;
                return Ok(());
            }
            arrival.request.lbn = Lbn(placed.extract::<u64>().map_err(|_| {
                PyTypeError::new_err(format!("place: expected an LBN or a Request, not {placed}"))
            })?);
            Ok(())
        })
    }
}
