//! Requests and completions, as generators and policies see them.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use traxtent_model::drive::{Breakdown, ServedBy};
use traxtent_sim::Outcome;
use traxtent_units::request::Op;
use traxtent_units::{Count, Lbn, SimTime, Span};

use crate::errors::{guarded, input_error};
use crate::values::{NewArguments, Whole};

/// The largest time that an argument may have, in milliseconds: about 100 days.
const MS_MAX: f64 = 9e9;

const PS_PER_MS: f64 = 1e9;

/// A request for a simulated drive.
///
/// ``lbn`` is the first logical block, ``sectors`` the number of logical sectors, ``op`` one of
/// ``read``, ``write``, ``flush`` and ``verify``; a flush has neither LBN nor sectors. ``fua``
/// forces the access to the media. ``device`` is the drive, if there are several. ``at_ms`` is the
/// time of issue in milliseconds of simulated time; ``delay_ms`` is a time after the completion of
/// the previous request. Without either, the request is issued as soon as the previous one is
/// complete.
///
/// Raises ``InputError`` for values that no request can have.
#[pyclass(frozen, eq, from_py_object, module = "traxtent")]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct Request {
    pub(crate) request: traxtent_units::request::Request,
    pub(crate) device: u32,
    pub(crate) at: Option<f64>,
    pub(crate) delay: Option<f64>,
}

/// Returns the kind of request with this name.
pub(crate) fn op_named(name: &str) -> Option<Op> {
    Some(match name {
        "read" => Op::Read,
        "write" => Op::Write,
        "flush" => Op::Flush,
        "verify" => Op::Verify,
        _ => return None,
    })
}

/// The name of the part of a drive that served a request.
pub(crate) const fn served_name(served: ServedBy) -> &'static str {
    match served {
        ServedBy::Media => "media",
        ServedBy::Buffer => "buffer",
        ServedBy::Both => "both",
    }
}

/// Returns the part of a drive with this name.
fn served_named(name: &str) -> Option<ServedBy> {
    let all = [ServedBy::Media, ServedBy::Buffer, ServedBy::Both];
    all.into_iter().find(|served| served_name(*served) == name)
}

/// The name of a kind of request.
pub(crate) const fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Verify => "verify",
    }
}

/// Returns a time in milliseconds as simulated time; `None` if it is out of range.
pub(crate) fn span(ms: f64) -> Option<Span> {
    (0.0..=MS_MAX)
        .contains(&ms)
        .then(|| Span((ms * PS_PER_MS).round() as u64))
}

/// Returns the problem of a time that [`span`] refuses.
pub(crate) fn span_problem(name: &str, ms: f64) -> String {
    format!("{name}: {ms}: expected a number of milliseconds from 0 to {MS_MAX:e}")
}

/// Returns a time in milliseconds: exactly the number in the command's Parquet log.
#[inline]
pub(crate) fn ms(time: Span) -> f64 {
    time.0 as f64 / PS_PER_MS
}

fn checked_ms(name: &str, value: Option<f64>) -> PyResult<Option<f64>> {
    match value {
        Some(ms) if span(ms).is_none() => Err(input_error(span_problem(name, ms))),
        value => Ok(value),
    }
}

#[pymethods]
impl Request {
    #[new]
    #[pyo3(
        signature = (
            lbn=Whole::from(0),
            sectors=Whole::from(0),
            op="read",
            *,
            at_ms=None,
            delay_ms=None,
            fua=false,
            device=Whole::from(0),
        ),
        text_signature = "(lbn=0, sectors=0, op=\"read\", *, at_ms=None, delay_ms=None, \
                          fua=False, device=0)"
    )]
    fn new(
        lbn: Whole<u64>,
        sectors: Whole<u32>,
        op: &str,
        at_ms: Option<f64>,
        delay_ms: Option<f64>,
        fua: bool,
        device: Whole<u32>,
    ) -> PyResult<Request> {
        guarded(|| {
            let (lbn, sectors) = (lbn.named("lbn")?, sectors.named("sectors")?);
            let device = device.named("device")?;
            let kind = op_named(op).ok_or_else(|| {
                input_error(format!("op: {op:?}: expected read, write, flush or verify"))
            })?;
            if (kind == Op::Flush) != (sectors == 0) || (kind == Op::Flush && lbn != 0) {
                return Err(input_error(format!(
                    "{op} of {} at LBN {lbn}: a flush has LBN 0 and 0 sectors, any other request \
                     at least 1 sector",
                    Count(sectors, "sector")
                )));
            }
            if at_ms.is_some() && delay_ms.is_some() {
                return Err(input_error("at_ms and delay_ms exclude each other"));
            }
            Ok(Request {
                request: traxtent_units::request::Request {
                    lbn: Lbn(lbn),
                    sectors,
                    op: kind,
                    fua,
                },
                device,
                at: checked_ms("at_ms", at_ms)?,
                delay: checked_ms("delay_ms", delay_ms)?,
            })
        })
    }

    /// The first logical block; 0 for a flush.
    #[getter]
    fn lbn(&self) -> u64 {
        self.request.lbn.0
    }

    /// The number of logical sectors; 0 for a flush.
    #[getter]
    fn sectors(&self) -> u32 {
        self.request.sectors
    }

    /// ``read``, ``write``, ``flush`` or ``verify``.
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.request.op)
    }

    /// Whether the access is forced to the media.
    #[getter]
    fn fua(&self) -> bool {
        self.request.fua
    }

    /// The number of the drive, if there are several.
    #[getter]
    fn device(&self) -> u32 {
        self.device
    }

    /// The time of issue in milliseconds, if it is given.
    #[getter]
    fn at_ms(&self) -> Option<f64> {
        self.at
    }

    /// The time after the previous completion in milliseconds, if it is given.
    #[getter]
    fn delay_ms(&self) -> Option<f64> {
        self.delay
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (self.request, self.device).hash(&mut hasher);
        hasher.finish()
    }

    fn __repr__(&self) -> String {
        let mut text = match self.request.op {
            Op::Flush => "Request(op=\"flush\"".to_owned(),
            op => format!(
                "Request({}, {}, {:?}",
                self.lbn(),
                self.sectors(),
                op_name(op)
            ),
        };
        for (name, value) in [("at_ms", self.at), ("delay_ms", self.delay)] {
            if let Some(value) = value {
                text += &format!(", {name}={value}");
            }
        }
        if self.fua() {
            text += ", fua=True";
        }
        if self.device > 0 {
            text += &format!(", device={}", self.device);
        }
        text + ")"
    }

    fn __getnewargs_ex__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<NewArguments<'py, (u64, u32, &'static str)>> {
        let keywords = PyDict::new(py);
        keywords.set_item("at_ms", self.at)?;
        keywords.set_item("delay_ms", self.delay)?;
        keywords.set_item("fua", self.fua())?;
        keywords.set_item("device", self.device)?;
        Ok(((self.lbn(), self.sectors(), self.op()), keywords))
    }
}

/// A request that a simulated drive has completed. All times are in milliseconds.
///
/// It can be pickled.
#[pyclass(frozen, eq, module = "traxtent")]
#[derive(PartialEq, Eq)]
pub(crate) struct Completion {
    number: u64,
    device: u32,
    request: traxtent_units::request::Request,
    issued: SimTime,
    completed: SimTime,
    /// The components of the response time, in the order of [`Breakdown::NAMES`].
    parts: [Span; 8],
    served: ServedBy,
}

/// A completion as pickle keeps it: number, device, LBN, sectors, operation, FUA, the times in
/// picoseconds, and the part of the drive that served it.
type CompletionParts = (u64, u32, u64, u32, String, bool, [u64; 10], String);

impl Completion {
    pub(crate) fn new(outcome: &Outcome) -> Completion {
        Completion {
            number: outcome.arrival.tag,
            device: outcome.arrival.device,
            request: outcome.arrival.request,
            issued: outcome.arrival.at,
            completed: outcome.completion.completed,
            parts: outcome.breakdown().parts(),
            served: outcome.completion.served,
        }
    }
}

#[pymethods]
impl Completion {
    /// The number of the request, from 0 in order of issue.
    #[getter]
    fn number(&self) -> u64 {
        self.number
    }

    /// The number of the drive.
    #[getter]
    fn device(&self) -> u32 {
        self.device
    }

    /// The first logical block.
    #[getter]
    fn lbn(&self) -> u64 {
        self.request.lbn.0
    }

    /// The number of logical sectors.
    #[getter]
    fn sectors(&self) -> u32 {
        self.request.sectors
    }

    /// ``read``, ``write``, ``flush`` or ``verify``.
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.request.op)
    }

    /// The simulated time at which the request was issued.
    #[getter]
    fn issued_ms(&self) -> f64 {
        ms(since_start(self.issued))
    }

    /// The simulated time at which the request was complete.
    #[getter]
    fn completed_ms(&self) -> f64 {
        ms(since_start(self.completed))
    }

    /// The time from issue to completion.
    #[getter]
    fn response_ms(&self) -> f64 {
        ms(self.completed.since(self.issued))
    }

    /// The components of the response time, which sum to it.
    #[getter]
    fn breakdown_ms<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let parts = PyDict::new(py);
        for (name, part) in Breakdown::NAMES.into_iter().zip(self.parts) {
            parts.set_item(name, ms(part))?;
        }
        Ok(parts)
    }

    /// The part of the drive that served the request: ``media``, ``buffer`` or ``both``.
    #[getter]
    fn served(&self) -> &'static str {
        served_name(self.served)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Completion {}: {} of {} at LBN {} in {:.3} ms>",
            self.number(),
            self.op(),
            self.sectors(),
            self.lbn(),
            self.response_ms()
        )
    }

    fn __hash__(&self) -> u64 {
        use std::hash::{DefaultHasher, Hash, Hasher};
        let mut hasher = DefaultHasher::new();
        (self.number, self.request, self.completed).hash(&mut hasher);
        hasher.finish()
    }

    /// Creates a completion from the parts that `__reduce__` returns.
    #[staticmethod]
    fn _from_parts(parts: CompletionParts) -> PyResult<Completion> {
        guarded(|| {
            let (number, device, lbn, sectors, op, fua, times, served) = parts;
            let damaged = || input_error("the pickled completion is damaged");
            let [issued, completed, parts @ ..] = times;
            Ok(Completion {
                number,
                device,
                request: traxtent_units::request::Request {
                    lbn: Lbn(lbn),
                    sectors,
                    op: op_named(&op).ok_or_else(damaged)?,
                    fua,
                },
                issued: SimTime(issued),
                completed: SimTime(completed.max(issued)),
                parts: parts.map(Span),
                served: served_named(&served).ok_or_else(damaged)?,
            })
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (CompletionParts,))> {
        let [
            queue,
            overhead,
            seek,
            settle,
            head_switch,
            rotation,
            transfer,
            bus,
        ] = self.parts.map(|part| part.0);
        let (issued, completed) = (self.issued.0, self.completed.0);
        let parts = (
            self.number,
            self.device,
            self.lbn(),
            self.sectors(),
            self.op().to_owned(),
            self.request.fua,
            [
                issued,
                completed,
                queue,
                overhead,
                seek,
                settle,
                head_switch,
                rotation,
                transfer,
                bus,
            ],
            self.served().to_owned(),
        );
        let make = py.get_type::<Completion>().getattr("_from_parts")?;
        Ok((make, (parts,)))
    }
}

fn since_start(at: SimTime) -> Span {
    Span(at.0)
}
