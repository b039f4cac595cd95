//! A disk with data, for tests of programs that store something.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyMemoryView};
use traxtent_model::disk::{
    Disk as ModelDisk, DiskError, Fault, MemoryMedia, PowerCutResult, Scenario, Tearing,
};
use traxtent_model::drive::Breakdown;
use traxtent_units::{Count, Span};

use crate::drive::Drive;
use crate::errors::{device_error, guarded, input_error};
use crate::request::{ms, span, span_problem};
use crate::values::{Whole, setting_text};

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
    capacity: u64,
    sector_bytes: u32,
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
    fn new(
        seed: Whole<u64>,
        kept: Whole<u64>,
        lost: Whole<u64>,
        torn: Whole<u64>,
    ) -> PyResult<PowerCut> {
        Ok(PowerCut {
            seed: seed.named("seed")?,
            kept: kept.named("kept")?,
            lost: lost.named("lost")?,
            torn: torn.named("torn")?,
        })
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
    /// Does something with the disk, without the GIL. A thread that holds the GIL never waits for
    /// the disk, and a thread that uses the disk never waits for the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut ModelDisk<MemoryMedia>) -> T + Send,
    ) -> T {
        py.detach(|| work(&mut self.disk.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn serve(
        &self,
        py: Python<'_>,
        command: impl FnOnce(&mut ModelDisk<MemoryMedia>) -> Result<Breakdown, DiskError> + Send,
    ) -> PyResult<f64> {
        let took = self.with(py, command).map_err(disk_error)?;
        Ok(ms(took.total()))
    }

    fn inject(&self, py: Python<'_>, fault: Fault) -> PyResult<Option<PowerCut>> {
        let cut = self.with(py, |disk| disk.inject(disk.now(), fault));
        Ok(cut.map_err(disk_error)?.map(PowerCut::from))
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
                capacity: disk.capacity().0,
                sector_bytes: disk.sector_bytes(),
                disk: Mutex::new(disk),
                name: only.name.clone(),
            })
        })
    }

    /// The number of logical sectors.
    #[getter]
    fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The size of a logical sector in bytes.
    #[getter]
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }

    /// The simulated time in milliseconds, from 0.
    #[getter]
    fn now_ms(&self, py: Python<'_>) -> f64 {
        ms(Span(self.with(py, |disk| disk.now().0)))
    }

    /// The number of bytes of completed writes that are not durable.
    #[getter]
    fn unflushed_bytes(&self, py: Python<'_>) -> u64 {
        self.with(py, |disk| disk.unflushed_bytes())
    }

    /// Returns the contents of ``sectors`` sectors from ``lbn``, at most 1 GiB.
    #[pyo3(
        signature = (lbn, sectors=Whole::from(1)),
        text_signature = "($self, lbn, sectors=1)"
    )]
    fn read<'py>(
        &self,
        py: Python<'py>,
        lbn: Whole<u64>,
        sectors: Whole<u32>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let (lbn, sectors) = (lbn.named("lbn")?, sectors.named("sectors")?);
            let bytes = u64::from(sectors) * u64::from(self.sector_bytes);
            let beyond = lbn
                .checked_add(sectors.into())
                .is_none_or(|end| end > self.capacity);
            if beyond {
                let what = format!(
                    "read of {} at LBN {lbn}: the drive ends before LBN {}",
                    Count(sectors, "sector"),
                    self.capacity
                );
                return Err(input_error(what));
            }
            if bytes > READ_BYTES_MAX || bytes == 0 {
                let what =
                    format!("sectors: {sectors}: expected at least 1 sector, and at most 1 GiB");
                return Err(input_error(what));
            }
            let data = self.with(py, |disk| {
                let mut data = vec![0; bytes as usize];
                disk.read(lbn, &mut data).map(|_| data)
            });
            Ok(PyBytes::new(py, &data.map_err(disk_error)?))
        })
    }

    /// Writes whole sectors from ``lbn``. With ``fua``, they are durable when this returns.
    ///
    /// ``data`` is ``bytes``, or any other object with the buffer protocol, which is copied.
    /// Returns the response time in milliseconds. Raises ``InputError`` unless ``data`` has a whole
    /// number of sectors.
    #[pyo3(signature = (lbn, data, *, fua=false))]
    fn write(
        &self,
        py: Python<'_>,
        lbn: Whole<u64>,
        data: &Bound<'_, PyAny>,
        fua: bool,
    ) -> PyResult<f64> {
        guarded(|| {
            let lbn = lbn.named("lbn")?;
            let data = bytes_of(data)?;
            let data = data.as_bytes();
            self.serve(py, |disk| match fua {
                true => disk.write_fua(lbn, data),
                false => disk.write(lbn, data),
            })
        })
    }

    /// Makes all earlier writes durable. Returns the response time in milliseconds.
    fn flush(&self, py: Python<'_>) -> PyResult<f64> {
        guarded(|| self.serve(py, ModelDisk::flush))
    }

    /// Discards sectors. Returns the response time in milliseconds.
    fn trim(&self, py: Python<'_>, lbn: Whole<u64>, sectors: Whole<u32>) -> PyResult<f64> {
        guarded(|| {
            let (lbn, sectors) = (lbn.named("lbn")?, sectors.named("sectors")?);
            self.serve(py, |disk| disk.trim(lbn, sectors))
        })
    }

    /// Fills sectors with zeros. Returns the response time in milliseconds.
    fn write_zeroes(&self, py: Python<'_>, lbn: Whole<u64>, sectors: Whole<u32>) -> PyResult<f64> {
        guarded(|| {
            let (lbn, sectors) = (lbn.named("lbn")?, sectors.named("sectors")?);
            self.serve(py, |disk| disk.write_zeroes(lbn, sectors))
        })
    }

    /// Lets simulated time pass. Faults that become due occur.
    fn sleep(&self, py: Python<'_>, length_ms: f64) -> PyResult<()> {
        guarded(|| {
            let length = span(length_ms);
            let length = length.ok_or_else(|| input_error(span_problem("length_ms", length_ms)))?;
            self.with(py, |disk| disk.sleep(length));
            Ok(())
        })
    }

    /// Turns the power off and on again.
    ///
    /// ``seed`` determines what remains of the writes that were not durable. ``tearing`` is the
    /// unit that is never torn: ``physical`` (a physical sector) or ``512`` (bytes). ``off_ms`` is
    /// the time without power. It begins now, and all commands fail until it has passed: call
    /// ``sleep(off_ms)`` after this.
    #[pyo3(
        signature = (seed=Whole::from(1), *, tearing="physical", off_ms=0.0),
        text_signature = "($self, seed=1, *, tearing=\"physical\", off_ms=0.0)"
    )]
    fn power_cut(
        &self,
        py: Python<'_>,
        seed: Whole<u64>,
        tearing: &str,
        off_ms: f64,
    ) -> PyResult<PowerCut> {
        guarded(|| {
            let seed = seed.named("seed")?;
            let tearing: Tearing = tearing
                .parse()
                .map_err(|why| input_error(format!("tearing: {tearing:?}: {why}")))?;
            let off = span(off_ms).ok_or_else(|| input_error(span_problem("off_ms", off_ms)))?;
            let fault = Fault::PowerCut {
                seed: Some(seed),
                tearing,
                off,
            };
            let cut = self.inject(py, fault)?;
            Ok(cut.unwrap_or_else(|| PowerCutResult::default().into()))
        })
    }

    /// Injects a fault now.
    ///
    /// ``name`` and the fields are those of ``traxtent fault``: ``disk.fault("latent-error",
    /// lbn=100, sectors=8)``, ``disk.fault("lying-flush", for_="10ms")``. A field that is a keyword
    /// of Python has a ``_`` at its end. Times are texts with a unit, such as ``"10ms"``. The
    /// book's page "Injecting faults" lists the fields.
    ///
    /// Returns the effect of a power cut, and ``None`` for other faults.
    #[pyo3(signature = (name, **fields))]
    fn fault(
        &self,
        py: Python<'_>,
        name: &str,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Option<PowerCut>> {
        guarded(|| {
            let mut given: Vec<(String, String)> = Vec::new();
            for (key, value) in fields.into_iter().flat_map(|fields| fields.iter()) {
                let key: String = key.extract()?;
                let text = setting_text(&key, &value)?;
                given.push((key, text));
            }
            let texts: Vec<(&str, &str)> = given
                .iter()
                .map(|(key, value)| (key.trim_end_matches('_'), value.as_str()))
                .collect();
            let fault = Fault::from_fields(name, &texts).map_err(|error| {
                // The error has the argument's name, such as `for_`.
                let mut keys = given.iter().map(|(key, _)| key.as_str());
                let key = keys.find(|key| key.trim_end_matches('_') == error.key);
                let key = key.unwrap_or(match error.key.as_str() {
                    "for" => "for_",
                    key => key,
                });
                input_error(format!("{key}: {}", error.problem))
            });
            self.inject(py, fault?)
        })
    }

    /// Schedules the faults of a scenario, in place of those that an earlier one scheduled.
    ///
    /// ``scenario`` is text in TOML, with times since the disk's clock was 0.
    fn schedule_faults(&self, py: Python<'_>, scenario: &str) -> PyResult<()> {
        guarded(|| {
            let scenario = Scenario::from_toml(scenario).map_err(input_error)?;
            let scheduled = self.with(py, |disk| disk.schedule_faults(&scenario));
            scheduled.map_err(disk_error)
        })
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a Disk cannot be pickled; pickle its Drive, and create the Disk where it is used",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Disk {} at {:.3} ms>", self.name, self.now_ms(py))
    }
}

/// Returns the bytes of an object with the buffer protocol. They are copied unless the object is
/// `bytes`, because other threads could change them during a command.
fn bytes_of<'py>(data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = data.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let kind = data.get_type();
    let view = PyMemoryView::from(data).map_err(|_| {
        PyTypeError::new_err(format!(
            "data: expected bytes or another buffer, not {kind}"
        ))
    })?;
    Ok(view.call_method0("tobytes")?.cast_into()?)
}
