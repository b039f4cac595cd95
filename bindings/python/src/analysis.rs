//! Comparisons with measured traces, calibration, and checks of alignment.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyTuple};
use serde_json::{Value, json};
use traxtent_calibrate::{
    CalibrateError, Calibration as Found, Judgement, MeasuredTrace, Options, calibrate as fit,
};
use traxtent_check::drive::StatedDrive;
use traxtent_check::rules::TrackCheck;
use traxtent_check::target::{HostPaths, TargetError, examine_targets};
use traxtent_run::validation::{ClassVerdict, compare, compare_on, find_traces};
use traxtent_run::{Machine, OBSERVED_REQUESTS, Observer, RunError, simulation_error, trace_error};

use crate::drive::{Drive, settings};
use crate::errors::{guarded, input_error, run_error};
use crate::observer::{PythonObserver, in_thread, warn};
use crate::simulate::TraceOptions;
use crate::values::{of_python, to_python};

/// Returns the paths of an argument that is one path or several.
fn paths(argument: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    if let Ok(one) = argument.extract::<PathBuf>() {
        return Ok(vec![one]);
    }
    argument.try_iter()?.map(|item| item?.extract()).collect()
}

/// Compares simulated response times with measured ones; the package's `validate` describes it.
///
/// Returns the verdicts as dicts.
#[pyfunction]
#[pyo3(signature = (paths, drive, set, options))]
pub(crate) fn validate_traces<'py>(
    py: Python<'py>,
    paths: &Bound<'py, PyAny>,
    drive: Option<&Bound<'py, PyAny>>,
    set: Option<&Bound<'py, PyDict>>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    guarded(|| {
        let paths = self::paths(paths)?;
        let drive = drive.map(Drive::of_argument).transpose()?;
        let set = settings(set)?;
        let machine = drive.as_ref().map(|drive| drive.changed(&set));
        let machine = machine.transpose().map_err(run_error)?;
        let plan = TraceOptions::of(options)?.plan;
        let observer = PythonObserver::new(None, None);
        let compared = py.detach(|| {
            let found = find_traces(&paths, machine.as_ref().map(|_| ""), &observer);
            // One exception, for the first path that cannot be used.
            if let Some((_, error)) = found.failures.into_iter().next() {
                return Err(error);
            }
            let mut verdicts = Vec::new();
            for pair in &found.pairs {
                let compared = match &machine {
                    Some(machine) => compare_on(machine, pair, &plan, &observer),
                    None => compare(pair, &plan, &set, &observer),
                };
                verdicts.extend(compared?.map(|comparison| comparison.verdict));
            }
            if verdicts.is_empty() {
                let names: Vec<String> = paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                return Err(RunError::at(
                    names.join(", "),
                    "found no trace that has measured times and, unless a drive is given, parameters",
                ));
            }
            Ok(verdicts)
        });
        let verdicts = observer.finish(py, compared)?;
        warn(py, observer.take_notes())?;
        let verdicts = verdicts
            .iter()
            .map(|verdict| to_python(py, &serde_json::to_value(verdict).map_err(input_error)?));
        verdicts.collect()
    })
}

/// A profile that was fitted to measured traces, and how well it agrees with them.
///
/// ``drive`` is the calibrated ``Drive``. ``is_improvement`` states whether it agrees better than
/// the original with the part of the traces that was held out. ``settings`` are the settings that
/// were changed, each a dict of ``key``, ``start`` and ``value``. ``figures`` are the times that
/// can be fitted, each a dict of ``name``, ``start_ms``, ``value_ms``, ``plus_minus_ms`` (half the
/// width of the 95 % interval) and ``is_determined``. ``fitted`` and ``held_out`` are dicts of
/// ``before`` and ``after``, each a dict of ``rms_ms`` (the demerit), ``noise_p95_ms``,
/// ``requests``, ``reads``, ``disagreement`` and ``classes``.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct Calibration {
    drive: Drive,
    json: Value,
}

#[pymethods]
impl Calibration {
    /// The calibrated drive.
    #[getter]
    fn drive(&self) -> Drive {
        self.drive.clone()
    }

    /// Whether the calibrated drive agrees better than the original with the held-out part.
    #[getter]
    fn is_improvement(&self) -> bool {
        self.json["is_improvement"] == true
    }

    /// The settings that were changed.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json["settings"])
    }

    /// The times that can be fitted.
    #[getter]
    fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json["figures"])
    }

    /// The agreement with the part that was fitted.
    #[getter]
    fn fitted<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json["fitted"])
    }

    /// The agreement with the part that was held out.
    #[getter]
    fn held_out<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.json["held_out"])
    }

    /// Creates a calibration from the parts that `__reduce__` returns.
    #[staticmethod]
    fn _from_parts(drive: &Drive, report: &Bound<'_, PyAny>) -> PyResult<Calibration> {
        guarded(|| {
            Ok(Calibration {
                drive: drive.clone(),
                json: of_python(report)?,
            })
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<Calibration>().getattr("_from_parts")?;
        let drive = Bound::new(py, self.drive.clone())?.into_any();
        let report = to_python(py, &self.json)?;
        Ok((make, PyTuple::new(py, [drive, report])?))
    }

    fn __repr__(&self) -> String {
        let demerit = |when: &str| {
            self.json["held_out"][when]["rms_ms"]
                .as_f64()
                .unwrap_or_default()
        };
        format!(
            "<Calibration of {}: demerit {:.3} ms before, {:.3} ms after>",
            self.drive.machine.target,
            demerit("before"),
            demerit("after")
        )
    }
}

fn judgement(of: &Judgement) -> Value {
    let classes: Vec<ClassVerdict> = of.classes.iter().cloned().map(ClassVerdict::from).collect();
    json!({
        "requests": of.requests,
        "rms_ms": of.demerit_ms,
        "noise_p95_ms": of.noise_p95_ms,
        "reads": of.reads,
        "disagreement": of.disagreement(),
        "classes": classes,
    })
}

fn report(found: &Found) -> Value {
    let settings = found
        .settings
        .iter()
        .map(|one| json!({ "key": one.key, "start": one.start, "value": one.value }));
    let figures = found.figures.iter().map(|one| {
        json!({
            "name": one.name,
            "start_ms": one.start_ms,
            "value_ms": one.value_ms,
            "plus_minus_ms": one.plus_minus_ms,
            "is_determined": one.is_determined,
        })
    });
    json!({
        "is_improvement": found.is_improvement(),
        "settings": settings.collect::<Vec<_>>(),
        "figures": figures.collect::<Vec<_>>(),
        "fitted": {
            "before": judgement(&found.fitted_before),
            "after": judgement(&found.fitted_after),
        },
        "held_out": {
            "before": judgement(&found.held_out_before),
            "after": judgement(&found.held_out_after),
        },
    })
}

/// Reads the traces that a drive is calibrated with.
fn measured(
    paths: &[PathBuf],
    machine: &Machine,
    options: &TraceOptions,
    observer: &dyn Observer,
) -> Result<Vec<MeasuredTrace>, RunError> {
    let mut traces = Vec::new();
    for path in paths {
        let plan = options.plan.for_comparison(path, machine, observer)?;
        let plan = plan.ok_or_else(|| RunError::at(path.display(), CalibrateError::NotMeasured))?;
        let source = plan.open(path, machine)?;
        let pace = source.pace();
        let (mut trace, mut records) = (source.into_records(), Vec::new());
        for record in trace.by_ref() {
            records.push(record.map_err(|error| trace_error(path, &error))?);
            if (records.len() as u64).is_multiple_of(OBSERVED_REQUESTS) && observer.stop() {
                return Err(RunError::Stopped);
            }
        }
        trace.report(observer);
        traces.push(MeasuredTrace::new(records, pace));
    }
    Ok(traces)
}

/// Fits a drive to measured traces; the package's `calibrate` describes it.
#[pyfunction]
#[pyo3(signature = (drive, traces, holdout, keep, options))]
pub(crate) fn calibrate_drive(
    py: Python<'_>,
    drive: &Bound<'_, PyAny>,
    traces: &Bound<'_, PyAny>,
    holdout: f64,
    keep: Vec<String>,
    options: Option<&Bound<'_, PyDict>>,
) -> PyResult<Calibration> {
    guarded(|| {
        let drive = Drive::of_argument(drive)?;
        let only = drive.only()?;
        let paths = self::paths(traces)?;
        if paths.is_empty() {
            return Err(input_error("traces: at least 1 is needed"));
        }
        if !(0.1..=0.9).contains(&holdout) {
            return Err(input_error(format!(
                "holdout: {holdout}: expected a share from 0.1 to 0.9"
            )));
        }
        let known = only.profile.value_paths();
        for key in &keep {
            let below = format!("{key}.");
            let is_known = known
                .iter()
                .any(|path| path == key || path.starts_with(&below));
            if !is_known && only.profile.value_text(key).is_none() {
                let target = &drive.machine.target;
                return Err(input_error(format!(
                    "keep: {key}: {target} has no such figure"
                )));
            }
        }
        let options = TraceOptions::of(options)?;
        let names: Vec<String> = paths
            .iter()
            .map(|path| {
                path.file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        let share = 100.0 * (1.0 - holdout);
        let fitting = Options {
            held_out: holdout,
            keep,
            source: format!("the first {share:.0} % of {}", names.join(", ")),
        };
        let observer = PythonObserver::new(None, None);
        let found = py.detach(|| {
            in_thread(&observer, |watch| {
                let traces = measured(&paths, &drive.machine, &options, watch)?;
                let found = fit(&only.profile, &traces, &fitting, watch);
                found.map_err(|error| match &error {
                    CalibrateError::Stopped => RunError::Stopped,
                    CalibrateError::Simulate(error) if paths.len() == 1 => {
                        simulation_error(&paths[0], error)
                    }
                    _ => RunError::at(names.join(", "), error),
                })
            })
        })?;
        let found = observer.finish(py, found)?;
        let json = report(&found);
        let target = format!("{} (calibrated)", drive.machine.target);
        let machine =
            Machine::of_profile(&target, only.name.clone(), found.profile).map_err(run_error)?;
        Ok(Calibration {
            drive: Drive::of_machine(machine)?,
            json,
        })
    })
}

/// Checks the alignment of images and devices; the package's `check` describes it.
///
/// Returns the layers and the findings as dicts.
#[pyfunction]
#[pyo3(signature = (paths, drive))]
pub(crate) fn check_targets<'py>(
    py: Python<'py>,
    paths: &Bound<'py, PyAny>,
    drive: Option<&Bound<'py, PyAny>>,
) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyAny>)> {
    guarded(|| {
        let paths = self::paths(paths)?;
        let drive = drive.map(Drive::of_argument).transpose()?;
        let only = drive.as_ref().map(Drive::only).transpose()?;
        let checked = py.detach(|| {
            let mut stated = only.map_or_else(StatedDrive::default, |drive| {
                StatedDrive::of(&drive.profile)
            });
            let tracks = only.map(|drive| {
                let sector_bytes = u64::from(drive.profile.sector.logical_bytes);
                stated.capacity_bytes =
                    Some(drive.geometry.capacity().0.saturating_mul(sector_bytes));
                (
                    crate::drive::map_of(drive).tracks,
                    sector_bytes,
                    &drive.name,
                )
            });
            let stack = examine_targets(&paths, &stated, &HostPaths::default());
            let stack = stack.map_err(|error| match error {
                TargetError::File { path, error } => RunError::file(&path, &error),
                error => RunError::Io(error.to_string().into()),
            })?;
            let tracks = tracks.as_ref().map(|(map, sector_bytes, name)| TrackCheck {
                drive: name,
                map,
                sector_bytes: *sector_bytes,
                extents: Vec::new(),
                excluded: Vec::new(),
            });
            let profile = only.map(|drive| Arc::clone(&drive.profile));
            let rows = traxtent_check::findings(&stack, tracks.as_ref(), profile.as_deref(), &[]);
            let value = |value| serde_json::to_value(value).map_err(RunError::input);
            Ok((value(json!(stack.layers))?, value(json!(rows))?))
        });
        let (layers, rows) = checked.map_err(run_error)?;
        Ok((to_python(py, &layers)?, to_python(py, &rows)?))
    })
}
