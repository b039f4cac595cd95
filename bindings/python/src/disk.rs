//! A disk with data, for tests of programs that store something.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use traxtent_model::disk::{
    Disk as ModelDisk, DiskError, Fault, MemoryMedia, PowerCutResult, Scenario, Tearing,
};
use traxtent_model::drive::Breakdown;
use traxtent_units::{Count, Span};

use crate::drive::Drive;
use crate::errors::{device_error, guarded, input_error};
use crate::request::{ms, span, span_problem};
use crate::values::setting_text;

/// The largest number of bytes in one read.
const READ_BYTES_MAX: u64 = 1 << 30;

/// A disk with its data in memory and a clock of its own. Faults can be injected into it.
///
/// ``read``, ``write``, ``flush``, ``trim`` and ``write_zeroes`` run one command to its end, and
/// advance the clock. All but ``read`` return the response time, in milliseconds of simulated time.
/// If the drive's profile has a volatile write cache, writes are not durable before a flush, and a
/// power cut can lose them. The same calls with the same seeds give the same data and times.
///
/// A disk cannot be pickled, because it has the state of a drive and data of any size. To use one
/// in another process, create it there from a ``Drive``, which can be pickled.
///
/// ``drive`` is a ``Drive`` or a target. Calls raise ``InputError`` for invalid requests, such as
/// those beyond the end of the drive, and ``FileError`` (an ``OSError``) with the number
/// ``EIO`` if the drive fails.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct Disk {
    disk: Mutex<ModelDisk<MemoryMedia>>,
    name: String,
}

/// The effect of a power cut on the writes that were not durable.
///
/// ``seed`` is the seed that determined it. ``kept``, ``lost`` and ``torn`` count the writes that
/// are on the media completely, not at all, and in part.
#[pyclass(frozen, get_all, eq, module = "traxtent")]
#[derive(Clone, PartialEq)]
pub(crate) struct PowerCut {
    seed: u64,
    kept: u64,
    lost: u64,
    torn: u64,
}

#[pymethods]
impl PowerCut {
    #[new]
    fn new(seed: u64, kept: u64, lost: u64, torn: u64) -> PowerCut {
        PowerCut {
            seed,
            kept,
            lost,
            torn,
        }
    }

    fn __getnewargs__(&self) -> (u64, u64, u64, u64) {
        (self.seed, self.kept, self.lost, self.torn)
    }

    fn __repr__(&self) -> String {
        let PowerCut {
            seed,
            kept,
            lost,
            torn,
        } = self;
        format!("PowerCut(seed={seed}, kept={kept}, lost={lost}, torn={torn})")
    }
}

impl From<PowerCutResult> for PowerCut {
    fn from(result: PowerCutResult) -> PowerCut {
        PowerCut {
            seed: result.seed,
            kept: result.kept,
            lost: result.lost,
            torn: result.torn,
        }
    }
}

impl Disk {
    fn lock(&self) -> MutexGuard<'_, ModelDisk<MemoryMedia>> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(
        &self,
        command: impl FnOnce(&mut ModelDisk<MemoryMedia>) -> Result<Breakdown, DiskError>,
    ) -> PyResult<f64> {
        guarded(|| {
            let took = command(&mut self.lock()).map_err(disk_error)?;
            Ok(ms(took.total()))
        })
    }

    fn inject(&self, fault: Fault) -> PyResult<Option<PowerCut>> {
        let mut disk = self.lock();
        let now = disk.now();
        let cut = disk.inject(now, fault).map_err(disk_error)?;
        Ok(cut.map(PowerCut::from))
    }
}

/// Returns the exception for an error of a disk.
fn disk_error(error: DiskError) -> PyErr {
    match error {
        DiskError::Unreadable { .. }
        | DiskError::Unresponsive
        | DiskError::PowerCut
        | DiskError::EndOfTime
        | DiskError::Media(_) => device_error(error),
        error => input_error(error),
    }
}

#[pymethods]
impl Disk {
    #[new]
    fn new(drive: &Bound<'_, PyAny>) -> PyResult<Disk> {
        guarded(|| {
            let drive = Drive::of_argument(drive)?;
            let only = drive.only()?;
            let disk = ModelDisk::new(&only.profile).map_err(disk_error)?;
            Ok(Disk {
                disk: Mutex::new(disk),
                name: only.name.clone(),
            })
        })
    }

    /// The number of logical sectors.
    #[getter]
    fn capacity(&self) -> u64 {
        self.lock().capacity().0
    }

    /// The size of a logical sector in bytes.
    #[getter]
    fn sector_bytes(&self) -> u32 {
        self.lock().sector_bytes()
    }

    /// The simulated time in milliseconds, from 0.
    #[getter]
    fn now_ms(&self) -> f64 {
        ms(Span(self.lock().now().0))
    }

    /// The number of bytes of completed writes that are not durable.
    #[getter]
    fn unflushed_bytes(&self) -> u64 {
        self.lock().unflushed_bytes()
    }

    /// Returns the contents of ``sectors`` sectors from ``lbn``, at most 1 GiB.
    #[pyo3(signature = (lbn, sectors=1))]
    fn read<'py>(&self, py: Python<'py>, lbn: u64, sectors: u32) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let mut disk = self.lock();
            let bytes = u64::from(sectors) * u64::from(disk.sector_bytes());
            let beyond = lbn
                .checked_add(sectors.into())
                .is_none_or(|end| end > disk.capacity().0);
            if beyond {
                let what = format!(
                    "read of {} at LBN {lbn}: the drive ends before LBN {}",
                    Count(sectors, "sector"),
                    disk.capacity()
                );
                return Err(input_error(what));
            }
            if bytes > READ_BYTES_MAX || bytes == 0 {
                let what =
                    format!("sectors: {sectors}: expected at least 1 sector, and at most 1 GiB");
                return Err(input_error(what));
            }
            let mut data = vec![0; bytes as usize];
            disk.read(lbn, &mut data).map_err(disk_error)?;
            Ok(PyBytes::new(py, &data))
        })
    }

    /// Writes whole sectors from ``lbn``. With ``fua``, they are durable when this returns.
    ///
    /// Returns the response time in milliseconds. Raises ``InputError`` unless ``data`` has a whole
    /// number of sectors.
    #[pyo3(signature = (lbn, data, *, fua=false))]
    fn write(&self, lbn: u64, data: &[u8], fua: bool) -> PyResult<f64> {
        self.serve(|disk| match fua {
            true => disk.write_fua(lbn, data),
            false => disk.write(lbn, data),
        })
    }

    /// Makes all earlier writes durable. Returns the response time in milliseconds.
    fn flush(&self) -> PyResult<f64> {
        self.serve(ModelDisk::flush)
    }

    /// Discards sectors. Returns the response time in milliseconds.
    fn trim(&self, lbn: u64, sectors: u32) -> PyResult<f64> {
        self.serve(|disk| disk.trim(lbn, sectors))
    }

    /// Fills sectors with zeros. Returns the response time in milliseconds.
    fn write_zeroes(&self, lbn: u64, sectors: u32) -> PyResult<f64> {
        self.serve(|disk| disk.write_zeroes(lbn, sectors))
    }

    /// Lets simulated time pass. Faults that become due occur.
    fn sleep(&self, length_ms: f64) -> PyResult<()> {
        guarded(|| {
            let length = span(length_ms);
            let length = length.ok_or_else(|| input_error(span_problem("length_ms", length_ms)))?;
            self.lock().sleep(length);
            Ok(())
        })
    }

    /// Turns the power off and on again.
    ///
    /// ``seed`` determines what remains of the writes that were not durable. ``tearing`` is the
    /// unit that is never torn: ``physical`` (a physical sector) or ``512`` (bytes). ``off_ms`` is
    /// the time without power.
    #[pyo3(signature = (seed=0, *, tearing="physical", off_ms=0.0))]
    fn power_cut(&self, seed: u64, tearing: &str, off_ms: f64) -> PyResult<PowerCut> {
        guarded(|| {
            let tearing: Tearing = tearing
                .parse()
                .map_err(|why| input_error(format!("tearing: {tearing:?}: {why}")))?;
            let off = span(off_ms).ok_or_else(|| input_error(span_problem("off_ms", off_ms)))?;
            let cut = self.inject(Fault::PowerCut {
                seed: Some(seed),
                tearing,
                off,
            })?;
            Ok(cut.unwrap_or_else(|| PowerCutResult::default().into()))
        })
    }

    /// Injects a fault now.
    ///
    /// ``name`` and the fields are those of ``traxtent fault``: ``disk.fault("latent-error",
    /// lbn=100, sectors=8)``, ``disk.fault("lying-flush", for_="10ms")``. A field that is a keyword
    /// of Python has a ``_`` at its end. The book's page "Injecting faults" lists them.
    ///
    /// Returns the effect of a power cut, and ``None`` for other faults.
    #[pyo3(signature = (name, **fields))]
    fn fault(&self, name: &str, fields: Option<&Bound<'_, PyDict>>) -> PyResult<Option<PowerCut>> {
        guarded(|| {
            let mut texts = Vec::new();
            for (key, value) in fields.into_iter().flat_map(|fields| fields.iter()) {
                let key: String = key.extract()?;
                texts.push((
                    key.trim_end_matches('_').to_owned(),
                    setting_text(&key, &value)?,
                ));
            }
            let texts: Vec<(&str, &str)> = texts
                .iter()
                .map(|(key, value)| (key.as_str(), value.as_str()))
                .collect();
            self.inject(Fault::from_fields(name, &texts).map_err(input_error)?)
        })
    }

    /// Schedules the faults of a scenario, in place of those that an earlier one scheduled.
    ///
    /// ``scenario`` is text in TOML, with times since the disk's clock was 0.
    fn schedule_faults(&self, scenario: &str) -> PyResult<()> {
        guarded(|| {
            let scenario = Scenario::from_toml(scenario).map_err(input_error)?;
            self.lock().schedule_faults(&scenario).map_err(disk_error)
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Disk cannot be pickled; pickle its Drive, and create the Disk where it is used",
        ))
    }

    fn __repr__(&self) -> String {
        format!("<Disk {} at {:.3} ms>", self.name, self.now_ms())
    }
}
