//! Sweeps: single runs as rows, tables of rows, and the files in which a sweep keeps them.
//!
//! The order of the runs is in `python/traxtent/_sweep_plan.py`. Threads and executors are in
//! `_sweep_runner.py`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList};
use traxtent_run::data_file::{self, Cell, Column, Kind};
use traxtent_run::{LabelColumns, Workload, figure_cells, figure_columns, result_columns};

use crate::errors::{guarded, input_error, run_error};
use crate::observer::PythonObserver;
use crate::result_table::{Table, to_cells, to_objects};
use crate::simulate::{Arguments, Plan};
use crate::values::{Whole, optional, setting_text};

/// The column of a kept file that identifies the run.
const RUN: &str = "run";

/// A flag that stops runs in other threads.
#[pyclass(frozen)]
#[derive(Default)]
pub(crate) struct StopFlag {
    state: Mutex<StopState>,
}

#[derive(Default)]
struct StopState {
    set: bool,
    runs: Vec<Weak<PythonObserver>>,
}

impl StopFlag {
    /// Stops the run of this observer once the flag is set.
    fn watch(&self, observer: &Arc<PythonObserver>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.runs.retain(|run| run.strong_count() > 0);
        state.runs.push(Arc::downgrade(observer));
        if state.set {
            observer.stop_now();
        }
    }
}

#[pymethods]
impl StopFlag {
    #[new]
    fn new() -> StopFlag {
        StopFlag::default()
    }

    /// Stops all runs that have this flag, within a few thousand requests.
    fn set(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.set = true;
        for run in state.runs.drain(..) {
            if let Some(observer) = run.upgrade() {
                observer.stop_now();
            }
        }
    }
}

/// The arguments of one run.
fn arguments<'py>(
    drive: Bound<'py, PyAny>,
    workload: Option<Bound<'py, PyAny>>,
    seed: Option<Whole<u64>>,
    warmup: Whole<u64>,
    set: Option<Bound<'py, PyDict>>,
    options: Option<Bound<'py, PyDict>>,
) -> PyResult<Arguments<'py>> {
    let progress = PyBool::new(drive.py(), false).to_owned().into_any();
    Ok(Arguments {
        drive,
        workload,
        seed: optional("seed", seed)?,
        warmup: warmup.named("warmup")?,
        set,
        progress: Some(progress),
        options,
        scheduler: None,
        place: None,
    })
}

/// Checks the arguments of a run. Returns the workload in one line; the seed, if it determines the
/// requests; and the number of requests, if it is known.
#[pyfunction]
pub(crate) fn check_run(
    drive: Bound<'_, PyAny>,
    workload: Option<Bound<'_, PyAny>>,
    seed: Option<Whole<u64>>,
    warmup: Whole<u64>,
    set: Option<Bound<'_, PyDict>>,
    options: Option<Bound<'_, PyDict>>,
) -> PyResult<(String, Option<u64>, Option<u64>)> {
    guarded(|| {
        let plan = Plan::new(&arguments(drive, workload, seed, warmup, set, options)?)?;
        let workload = &plan.run.workload;
        let seed = workload.is_seeded().then_some(plan.run.seed);
        Ok((workload.describe(), seed, workload.count()))
    })
}

/// Simulates one run. Returns its figures, one for each of `figure_names()`.
#[pyfunction]
#[pyo3(signature = (drive, workload, seed, warmup, set, options, stop=None))]
#[expect(
    clippy::too_many_arguments,
    reason = "only one function of the package calls it"
)]
pub(crate) fn run_figures<'py>(
    py: Python<'py>,
    drive: Bound<'py, PyAny>,
    workload: Option<Bound<'py, PyAny>>,
    seed: Option<Whole<u64>>,
    warmup: Whole<u64>,
    set: Option<Bound<'py, PyDict>>,
    options: Option<Bound<'py, PyDict>>,
    stop: Option<&StopFlag>,
) -> PyResult<Bound<'py, PyList>> {
    guarded(|| {
        let mut plan = Plan::new(&arguments(drive, workload, seed, warmup, set, options)?)?;
        if let Some(stop) = stop {
            stop.watch(&plan.observer);
        }
        let summary = py.detach(|| plan.execute(|_| true));
        let mut summary = plan.outcome(py, summary)?;
        // The percentiles require sorting the response times, which does not need the GIL.
        let cells = py.detach(|| figure_cells(&mut summary));
        to_objects(py, &cells)
    })
}

/// Returns the names of the figures of a run.
#[pyfunction]
pub(crate) fn figure_names() -> Vec<String> {
    figure_columns()
        .into_iter()
        .map(|column| column.name)
        .collect()
}

/// Returns a setting as the text that the command's `--set` would have.
#[pyfunction]
pub(crate) fn setting_value(key: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    guarded(|| setting_text(key, value).map_err(input_error))
}

/// A row of a sweep: the drive's name, a value for each key, the seed, the workload, and the
/// figures.
type Row<'py> = (
    String,
    Vec<String>,
    Option<u64>,
    String,
    Vec<Bound<'py, PyAny>>,
);

/// Returns the table of a sweep. `keys` are the keys of the grid, each with all its values. `runs`
/// identify the rows in a kept file, which has one more column for them.
#[pyfunction]
#[pyo3(signature = (keys, rows, runs=None))]
pub(crate) fn sweep_table(
    keys: Vec<(String, Vec<String>)>,
    rows: Vec<Row<'_>>,
    runs: Option<Vec<String>>,
) -> PyResult<Table> {
    guarded(|| {
        let values = keys.iter();
        let values = values.map(|(key, values)| (key.as_str(), values.iter().map(String::as_str)));
        let labels = LabelColumns::of_values(values, rows.iter().map(|row| row.2));
        let mut columns = result_columns(&labels);
        if runs.is_some() {
            columns.insert(0, Column::new(RUN, Kind::Text));
        }
        let kinds: Vec<Kind> = figure_columns().iter().map(|column| column.kind).collect();
        let cells = rows.iter().enumerate().map(|(index, row)| {
            let (drive, values, seed, workload, figures) = row;
            let mut cells = Vec::with_capacity(columns.len());
            cells.extend(runs.as_ref().map(|runs| Cell::Text(runs[index].clone())));
            let values = values.iter().map(String::as_str);
            cells.extend(labels.cells_of(drive, values, *seed));
            cells.push(Cell::Text(workload.clone()));
            cells.extend(to_cells(figures, &kinds)?);
            Ok(cells)
        });
        Table::new(columns.clone(), cells)
    })
}

/// Reads the figures of the runs in a kept file. Its content must be known to be whole.
#[pyfunction]
pub(crate) fn read_figures(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<Vec<(String, Bound<'_, PyList>)>> {
    guarded(|| {
        let read = py.detach(|| data_file::read_parquet(&path));
        let (columns, rows) = read.map_err(run_error)?;
        let find = |name: &str| columns.iter().position(|column| column.name == name);
        let lacks = |name: &str| input_error(format!("{}: has no column {name}", path.display()));
        let run = find(RUN).ok_or_else(|| lacks(RUN))?;
        let figures: Vec<usize> = figure_names()
            .iter()
            .map(|name| find(name).ok_or_else(|| lacks(name)))
            .collect::<PyResult<_>>()?;
        let row = |row: &Vec<Cell>| {
            let Cell::Text(run) = &row[run] else {
                return Err(lacks(RUN));
            };
            let cells: Vec<Cell> = figures.iter().map(|index| row[*index].clone()).collect();
            Ok((run.clone(), to_objects(py, &cells)?))
        };
        rows.iter().map(row).collect()
    })
}

/// Returns the file that a workload names, unless it is a line of the grammar.
#[pyfunction]
pub(crate) fn workload_file(text: &str) -> Option<PathBuf> {
    Workload::file(text).map(std::path::Path::to_owned)
}
