//! Drives.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use serde_json::json;
use traxtent_map::{MapFile, MapSource};
use traxtent_model::profile::{Profile, builtin};
use traxtent_probe::Target as _;
use traxtent_run::{Machine, NamedDrive, RunError};
use traxtent_sim::SimTarget;

use crate::errors::{guarded, input_error, run_error};
use crate::observer::load_machine;
use crate::track_map::TrackMap;
use crate::values::{setting_text, to_python};

/// A drive, or the drives of a DiskSim parameter file, as the simulator models them.
///
/// ``target`` is a built-in drive's name (see ``drives()``), a profile (``"my.toml"``), or DiskSim
/// parameters (``"disksim:FILE"``, or ``"disksim:FILE#DISK"`` for one of several disks). A drive is
/// immutable. It can be pickled, with its figures, so that the process that unpickles it needs no
/// file.
///
/// Raises ``InputError`` for an unknown name or invalid content, and ``FileError`` if a file cannot
/// be read.
#[pyclass(frozen, eq, module = "traxtent")]
#[derive(Clone)]
pub(crate) struct Drive {
    pub(crate) machine: Arc<Machine>,
    /// The values that `replace` has set, in order.
    changes: Vec<(String, String)>,
    /// The DiskSim files that the drive was loaded from, with their contents.
    sources: Vec<(PathBuf, Vec<u8>)>,
}

/// Returns the names of the built-in drives.
#[pyfunction]
pub(crate) fn drives() -> Vec<&'static str> {
    builtin::names().collect()
}

impl PartialEq for Drive {
    fn eq(&self, other: &Drive) -> bool {
        let drives = |drive: &Drive| drive.machine.drives.clone();
        let (ours, theirs) = (drives(self), drives(other));
        self.machine.target == other.machine.target
            && ours.len() == theirs.len()
            && ours
                .iter()
                .zip(&theirs)
                .all(|(a, b)| a.profile == b.profile)
    }
}

impl Drive {
    pub(crate) fn of_machine(machine: Machine) -> PyResult<Drive> {
        let mut sources = Vec::new();
        if machine.system.is_some() {
            // The files were read a moment ago; a drive keeps them so that it can be pickled.
            for path in machine
                .drives
                .first()
                .into_iter()
                .flat_map(|drive| drive.files.iter())
            {
                let bytes =
                    std::fs::read(path).map_err(|error| crate::errors::file_error(path, &error))?;
                sources.push((path.clone(), bytes));
            }
        }
        Ok(Drive {
            machine: Arc::new(machine),
            changes: Vec::new(),
            sources,
        })
    }

    /// Returns the drive of an argument, which is a `Drive` or a target.
    pub(crate) fn of_argument(argument: &Bound<'_, PyAny>) -> PyResult<Drive> {
        if let Ok(drive) = argument.cast::<Drive>() {
            return Ok(drive.get().clone());
        }
        Drive::of_machine(load_machine(argument.py(), &target_text(argument)?)?)
    }

    /// Returns the only drive of the machine.
    pub(crate) fn only(&self) -> PyResult<&NamedDrive> {
        match &self.machine.drives[..] {
            [only] => Ok(only),
            _ => Err((*self.machine)
                .clone()
                .only_drive()
                .map_or_else(run_error, |_| unreachable!("there are several drives"))),
        }
    }

    /// Returns the machine with some figures of its drives replaced.
    pub(crate) fn changed(&self, changes: &[(String, String)]) -> Result<Machine, RunError> {
        let mut machine = (*self.machine).clone();
        for (key, value) in changes {
            machine.set(key, value)?;
        }
        Ok(machine)
    }

    fn of_parts(state: &Bound<'_, PyDict>) -> PyResult<Drive> {
        let get = |key: &str| {
            let found = state.get_item(key)?;
            found.ok_or_else(|| input_error(format!("the pickled drive lacks {key:?}")))
        };
        let target: String = get("target")?.extract()?;
        let name: String = get("name")?.extract()?;
        let toml: Option<String> = get("toml")?.extract()?;
        let sources: Vec<(PathBuf, Vec<u8>)> = get("sources")?.extract()?;
        let changes: Vec<(String, String)> = get("changes")?.extract()?;
        let mut machine = match toml {
            Some(toml) => {
                let profile = Profile::from_toml_named(&toml, &name).map_err(input_error)?;
                Machine::of_profile(&target, name, profile).map_err(run_error)?
            }
            None => Machine::of_disksim(&target, &sources).map_err(run_error)?,
        };
        if !sources.is_empty() {
            for (key, value) in &changes {
                machine.set(key, value).map_err(run_error)?;
            }
        }
        Ok(Drive {
            machine: Arc::new(machine),
            changes,
            sources,
        })
    }
}

/// Returns the text of a target that is given as a text or a path.
pub(crate) fn target_text(argument: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(text) = argument.extract::<String>() {
        return Ok(text);
    }
    let path: PathBuf = argument.extract()?;
    let text = path.to_str().map(str::to_owned);
    let text = text.ok_or_else(|| input_error(format!("{}: is not UTF-8", path.display())))?;
    // A path without a slash or a dot would be taken for a name.
    Ok(match text.contains(['/', '.']) {
        true => text,
        false => format!("./{text}"),
    })
}

#[pymethods]
impl Drive {
    #[new]
    fn new(target: &Bound<'_, PyAny>) -> PyResult<Drive> {
        guarded(|| Drive::of_argument(target))
    }

    /// Returns the drive that a file describes: a profile in TOML, or DiskSim parameters with
    /// ``disksim:`` before the path.
    ///
    /// Raises ``InputError`` if the content is invalid, with the line, and ``FileError`` if the
    /// file cannot be read.
    #[classmethod]
    fn from_file(_class: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Drive> {
        guarded(|| {
            let mut text = target_text(path)?;
            if !text.contains(['/', '.', ':']) {
                text = format!("./{text}");
            }
            Drive::of_machine(load_machine(path.py(), &text)?)
        })
    }

    /// The drive's name.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        Ok(&self.only()?.name)
    }

    /// The names of the drives; several if DiskSim parameters describe several disks.
    #[getter]
    fn names(&self) -> Vec<&str> {
        let drives = self.machine.drives.iter();
        drives.map(|drive| drive.name.as_str()).collect()
    }

    /// The target from which the drive was made, followed by ``(calibrated)`` if it was calibrated.
    #[getter]
    fn target(&self) -> &str {
        &self.machine.target
    }

    /// The number of logical sectors.
    #[getter]
    fn capacity(&self) -> PyResult<u64> {
        Ok(self.only()?.geometry.capacity().0)
    }

    /// The size of a logical sector in bytes.
    #[getter]
    fn sector_bytes(&self) -> PyResult<u32> {
        Ok(self.only()?.profile.sector.logical_bytes)
    }

    /// The figures of the drive, by dotted key such as ``"mechanics.rpm"``.
    ///
    /// Each is a dict with the ``"value"``; the ``"origin"``, which begins with ``measured``,
    /// ``published``, ``fitted`` or ``assumed``; and this first word alone as its ``"kind"``. The
    /// book's page "Profiles" lists the keys with their units.
    #[getter]
    fn profile<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let profile = &self.only()?.profile;
            let root = serde_json::to_value(&**profile).map_err(input_error)?;
            let figures = PyDict::new(py);
            for key in profile.value_paths() {
                let mut parts = key.split('.');
                let Some(value) = parts.try_fold(&root, |value, part| value.get(part)) else {
                    continue;
                };
                let origin = profile.provenance.of(&key);
                let kind = origin.map_or("assumed", |origin| origin.kind.word());
                let note = origin.map(|origin| format!("{kind}: {}", origin.note));
                let figure = json!({
                    "value": value,
                    "origin": note.unwrap_or_else(|| kind.to_owned()),
                    "kind": kind,
                });
                figures.set_item(key, to_python(py, &figure)?)?;
            }
            Ok(figures)
        })
    }

    /// Returns the profile as TOML, which ``Drive.from_file`` can read.
    fn to_toml(&self) -> PyResult<String> {
        guarded(|| Ok(self.only()?.profile.to_toml()))
    }

    /// Returns a drive with some figures replaced: ``drive.replace({"queue.scheduler": "sptf"})``.
    ///
    /// Keys are those of ``profile``; values have the key's unit. The origin of a replaced figure
    /// becomes ``assumed``.
    ///
    /// Raises ``InputError`` for an unknown key, or a value of the wrong type or out of bounds.
    #[pyo3(signature = (changes=None, /, **figures))]
    fn replace(
        &self,
        changes: Option<&Bound<'_, PyDict>>,
        figures: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Drive> {
        guarded(|| {
            let mut all = settings(changes)?;
            all.extend(settings(figures)?);
            let machine = self.changed(&all).map_err(run_error)?;
            Ok(Drive {
                machine: Arc::new(machine),
                changes: [self.changes.clone(), all].concat(),
                sources: self.sources.clone(),
            })
        })
    }

    /// The track map of the drive.
    #[getter]
    fn map(&self, py: Python<'_>) -> PyResult<TrackMap> {
        guarded(|| {
            let drive = self.only()?;
            Ok(TrackMap::new(py.detach(|| map_of(drive))))
        })
    }

    fn __repr__(&self) -> String {
        let target = serde_json::Value::from(self.machine.target.as_str());
        let mut changes: Vec<String> = Vec::new();
        for (key, value) in &self.changes {
            changes.push(format!("{key}={value}"));
        }
        match changes.is_empty() {
            true => format!("Drive({target})"),
            false => format!("<Drive {target} with {}>", changes.join(", ")),
        }
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        self.machine.target.hash(&mut hasher);
        self.names().hash(&mut hasher);
        hasher.finish()
    }

    /// Creates a drive from the parts that `__reduce__` returns.
    #[staticmethod]
    fn _from_parts(parts: &Bound<'_, PyDict>) -> PyResult<Drive> {
        guarded(|| Drive::of_parts(parts))
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let parts = PyDict::new(py);
        parts.set_item("target", &self.machine.target)?;
        let first = self.machine.drives.first();
        parts.set_item("name", first.map_or("", |drive| drive.name.as_str()))?;
        let toml = match (&self.machine.system, first) {
            (None, Some(drive)) => Some(drive.profile.to_toml()),
            _ => None,
        };
        parts.set_item("toml", toml)?;
        let sources = self
            .sources
            .iter()
            .map(|(path, bytes)| (path.clone(), pyo3::types::PyBytes::new(py, bytes)));
        parts.set_item("sources", sources.collect::<Vec<_>>())?;
        parts.set_item("changes", self.changes.clone())?;
        let make = py.get_type::<Drive>().getattr("_from_parts")?;
        Ok((make, PyTuple::new(py, [parts])?))
    }
}

/// Returns the map of a modelled drive, with the identity that a probe of it would find.
pub(crate) fn map_of(drive: &NamedDrive) -> MapFile {
    let target = SimTarget::new(Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
    let tracks = traxtent_map::TrackMap::from_sizes(drive.geometry.track_sizes());
    MapFile::new(target.identity().clone(), MapSource::Model, tracks)
}

/// Returns the keys and values of a dict of settings as texts.
pub(crate) fn settings(dict: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<(String, String)>> {
    let mut texts = Vec::new();
    for (key, value) in dict.into_iter().flat_map(|dict| dict.iter()) {
        let key: String = key.extract()?;
        let value = setting_text(&key, &value)?;
        texts.push((key, value));
    }
    Ok(texts)
}
