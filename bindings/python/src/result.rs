//! Results of simulations.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::Value;
use traxtent_model::drive::Breakdown;
use traxtent_plot::{Axes, Distribution, Draw as _, Response};
use traxtent_run::{AtomicFile, OutputFormat, Summary, json_text};
use traxtent_units::Span;

use crate::arrow::Batch;
use crate::drive::Drive;
use crate::errors::{guarded, input_error, run_error};
use crate::request_log::RequestLog;
use crate::values::{of_python, to_python};

/// The largest number of steps of the distribution that a result keeps, apart from the last step.
const STEPS_MAX: usize = 2000;

/// The result of one simulation.
///
/// It can be pickled. In a notebook, it shows its figures and the distribution of response times.
#[pyclass(frozen, name = "Result", module = "traxtent")]
pub(crate) struct SimulationResult {
    drive: Drive,
    workload: String,
    seed: Option<u64>,
    json: Value,
    notes: Vec<String>,
    /// Response times in milliseconds, each with the share of requests that took no longer.
    steps: Vec<(f64, f64)>,
    p99_9_ms: f64,
    requests: OnceLock<Py<RequestLog>>,
    batches: Mutex<Option<Vec<Batch>>>,
    logged: bool,
}

impl SimulationResult {
    pub(crate) fn new(
        drive: Drive,
        workload: String,
        seed: Option<u64>,
        json: Value,
        notes: Vec<String>,
        summary: &mut Summary,
        batches: Option<Vec<Batch>>,
    ) -> SimulationResult {
        let count = summary.requests().max(1) as f64;
        let steps = summary.quantiles.steps();
        let every = steps.len().div_ceil(STEPS_MAX).max(1);
        let last = steps.len().saturating_sub(1);
        let kept = steps.into_iter().enumerate();
        let kept = kept.filter(|(index, _)| index % every == 0 || *index == last);
        SimulationResult {
            drive,
            workload,
            seed,
            json,
            notes,
            steps: kept
                .map(|(_, (time, upto))| (time.as_ms(), upto as f64 / count))
                .collect(),
            p99_9_ms: summary.quantiles.at(0.999).map_or(0.0, Span::as_ms),
            requests: OnceLock::new(),
            logged: batches.is_some(),
            batches: Mutex::new(batches),
        }
    }

    fn picture(&self, log_x: bool, log_y: bool) -> Response {
        let parts = Breakdown::NAMES.map(|name| {
            let part = &self.json["breakdown_ms"][name];
            part.as_f64().unwrap_or_default()
        });
        Response {
            title: format!("{}: {}", self.drive.machine.target, self.workload),
            distribution: Distribution {
                name: String::new(),
                steps: self.steps.clone(),
                p99_9_ms: self.p99_9_ms,
            },
            axes: Axes { log_x, log_y },
            parts_ms: parts,
        }
    }
}

#[pymethods]
impl SimulationResult {
    /// The figures of the run, with the keys of ``traxtent sim --json``.
    #[getter]
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json)
    }

    /// Returns the text that ``traxtent sim --json`` prints for the same run.
    fn to_json(&self) -> String {
        json_text(&self.json)
    }

    /// The requests as a ``RequestLog``, or ``None`` if the run was not logged.
    #[getter]
    fn requests(&self, py: Python<'_>) -> PyResult<Option<Py<RequestLog>>> {
        if !self.logged {
            return Ok(None);
        }
        if let Some(log) = self.requests.get() {
            return Ok(Some(log.clone_ref(py)));
        }
        let batches = self
            .batches
            .lock()
            .ok()
            .and_then(|mut batches| batches.take());
        if let Some(batches) = batches {
            let log = Py::new(py, RequestLog::new(batches))?;
            let _ = self.requests.set(log);
        }
        Ok(self.requests.get().map(|log| log.clone_ref(py)))
    }

    /// The seed of a synthetic workload; ``None`` if the requests were recorded or made in Python.
    #[getter]
    fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// The drive as it was given, without the changes of ``set``.
    #[getter]
    fn drive(&self) -> Drive {
        self.drive.clone()
    }

    /// The workload in one line.
    #[getter]
    fn workload(&self) -> &str {
        &self.workload
    }

    /// The notes that ``traxtent sim`` prints for the run: facts that may be unexpected, such as
    /// settings without an effect.
    #[getter]
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    /// The distribution of response times: pairs of milliseconds and the share of requests that
    /// took no longer, in ascending order, at most 2,001 of them.
    #[getter]
    fn distribution(&self) -> Vec<(f64, f64)> {
        self.steps.clone()
    }

    /// Returns an SVG picture of the distribution of response times, and of the mean components of
    /// a response time.
    #[pyo3(signature = (*, log_x=false, log_y=false))]
    fn to_svg(&self, py: Python<'_>, log_x: bool, log_y: bool) -> PyResult<String> {
        guarded(|| {
            let picture = self.picture(log_x, log_y);
            py.detach(|| picture.svg()).map_err(input_error)
        })
    }

    /// Draws the distribution of response times.
    ///
    /// Returns the ``Axes`` of matplotlib on which it is drawn: ``ax``, or new ones. If matplotlib
    /// is not installed, it returns an ``SvgPicture``, which has ``save(path)``. Notebooks show
    /// either. Code that must not depend on matplotlib calls ``to_svg``, which always returns text.
    /// ``log_x`` makes the axis of times logarithmic; ``log_y`` shows the share of slower requests
    /// on a logarithmic axis.
    #[pyo3(signature = (ax=None, *, log_x=false, log_y=false))]
    fn plot<'py>(
        this: &Bound<'py, Self>,
        ax: Option<Bound<'py, PyAny>>,
        log_x: bool,
        log_y: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = this.py().import("traxtent._plot")?;
        module.call_method1("plot", (this, ax, log_x, log_y))
    }

    fn _repr_html_<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        this.py()
            .import("traxtent._plot")?
            .call_method1("to_html", (this,))
    }

    fn __repr__(&self) -> String {
        let mean = self.json["response_ms"]["mean"]
            .as_f64()
            .unwrap_or_default();
        format!(
            "<Result {}: {}: {} requests, mean response {mean:.3} ms>",
            self.drive.machine.target, self.workload, self.json["requests"]
        )
    }

    /// Creates a result from the parts that `__reduce__` returns.
    #[staticmethod]
    fn _from_parts(parts: &Bound<'_, PyDict>) -> PyResult<SimulationResult> {
        guarded(|| {
            let get = |key: &str| {
                let found = parts.get_item(key)?;
                found.ok_or_else(|| input_error(format!("the pickled result lacks {key:?}")))
            };
            let drive = get("drive")?;
            let requests: Option<Py<RequestLog>> = get("requests")?.extract()?;
            Ok(SimulationResult {
                drive: drive.cast::<Drive>()?.get().clone(),
                workload: get("workload")?.extract()?,
                seed: get("seed")?.extract()?,
                json: of_python(&get("summary")?)?,
                notes: get("notes")?.extract()?,
                steps: get("steps")?.extract()?,
                p99_9_ms: get("p99_9_ms")?.extract()?,
                logged: requests.is_some(),
                requests: requests.map(OnceLock::from).unwrap_or_default(),
                batches: Mutex::new(None),
            })
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let parts = PyDict::new(py);
        parts.set_item("drive", Py::new(py, self.drive.clone())?)?;
        parts.set_item("workload", &self.workload)?;
        parts.set_item("seed", self.seed)?;
        parts.set_item("summary", to_python(py, &self.json)?)?;
        parts.set_item("notes", self.notes.clone())?;
        parts.set_item("steps", self.steps.clone())?;
        parts.set_item("p99_9_ms", self.p99_9_ms)?;
        parts.set_item("requests", self.requests(py)?)?;
        let make = py.get_type::<SimulationResult>().getattr("_from_parts")?;
        Ok((make, PyTuple::new(py, [parts])?))
    }
}

/// Writes a picture in SVG to a file, which gets its name once it is complete.
#[pyfunction]
pub(crate) fn save_picture(py: Python<'_>, path: PathBuf, text: String) -> PyResult<()> {
    guarded(|| {
        let saved = py.detach(|| {
            OutputFormat::Picture.check_output(&path)?;
            let mut file = AtomicFile::create(&path)?;
            let written = file.write_all(text.as_bytes());
            written.map_err(|error| file.error(&error))?;
            file.finish()
        });
        saved.map_err(run_error)
    })
}
