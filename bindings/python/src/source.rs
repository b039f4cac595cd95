//! Workloads made in Python: tables of requests, and generators.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use traxtent_sim::Outcome;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime};
use traxtent_workload::{Arrival, NextStep, RequestSource, TraceError, TraceRecord, Urgency};

use crate::arrow::{ImportError, TableStream, Values};
use crate::errors::input_error;
use crate::request::{self, Completion, op_named, span, span_problem};

/// The first exception of a source or a policy in Python, which ends the run. A source itself can
/// only report errors of traces.
#[derive(Clone, Default)]
pub(crate) struct Fault(Arc<Mutex<Option<PyErr>>>);

impl Fault {
    /// Keeps the exception, and returns an error that ends the source.
    pub(crate) fn set(&self, error: PyErr) -> TraceError {
        let mut fault = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        fault.get_or_insert(error);
        TraceError::Unrecognized {
            reason: "an exception in Python".to_owned(),
        }
    }

    /// Returns whether there was an exception.
    pub(crate) fn is_set(&self) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// Returns the exception, if there was one.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The columns of a table of requests, by their places in the table.
#[derive(Clone, Copy, Debug)]
struct Columns {
    at_ms: Option<usize>,
    op: Option<usize>,
    lbn: usize,
    sectors: usize,
    device: Option<usize>,
    fua: Option<usize>,
}

/// The requests of a table with the columns `lbn` and `sectors`, and optionally `at_ms` (or
/// `issued_ms`), `op`, `device` and `fua`.
pub(crate) struct TableRecords {
    stream: TableStream,
    columns: Columns,
    ready: VecDeque<TraceRecord>,
    /// The number of rows in the chunks read so far.
    rows: usize,
    latest: SimTime,
    ordered: bool,
    fault: Fault,
}

impl TableRecords {
    /// Opens a table. If `ordered`, arrivals must not decrease.
    pub(crate) fn open(
        table: &Bound<'_, PyAny>,
        ordered: bool,
        fault: Fault,
    ) -> PyResult<TableRecords> {
        let stream = TableStream::open(table)?;
        let names = stream.names();
        let find = |name: &str| names.iter().position(|column| column == name);
        let needed = |name: &str| {
            find(name).ok_or_else(|| {
                let names = names.join(", ");
                input_error(format!(
                    "the table has no column {name}; its columns are {names}"
                ))
            })
        };
        let columns = Columns {
            at_ms: find("at_ms").or_else(|| find("issued_ms")),
            op: find("op"),
            lbn: needed("lbn")?,
            sectors: needed("sectors")?,
            device: find("device"),
            fua: find("fua"),
        };
        Ok(TableRecords {
            stream,
            columns,
            ready: VecDeque::new(),
            rows: 0,
            latest: SimTime::ZERO,
            ordered,
            fault,
        })
    }

    /// Returns whether the table has times.
    pub(crate) fn has_times(&self) -> bool {
        self.columns.at_ms.is_some()
    }

    /// Reads the next chunk; returns false at the end.
    fn fill(&mut self) -> PyResult<bool> {
        let first = self.rows;
        let failed = |column: &str, error: ImportError| match error {
            ImportError::Row(row, problem) => {
                input_error(format!("table, row {}: {column}: {problem}", first + row))
            }
            ImportError::Column(problem) => input_error(format!("table, {column}: {problem}")),
            ImportError::Producer(problem) => input_error(format!("table: {problem}")),
        };
        let chunk = self
            .stream
            .next_chunk()
            .map_err(|error| failed("table", error))?;
        let Some(chunk) = chunk else {
            return Ok(false);
        };
        let rows = chunk.rows();
        let read = |name: &str, index: Option<usize>| {
            let values = index.map(|index| chunk.column(index));
            values.transpose().map_err(|error| failed(name, error))
        };
        let times = read("at_ms", self.columns.at_ms)?;
        let ops = read("op", self.columns.op)?;
        let lbns = read("lbn", Some(self.columns.lbn))?;
        let sectors = read("sectors", Some(self.columns.sectors))?;
        let devices = read("device", self.columns.device)?;
        let fuas = read("fua", self.columns.fua)?;
        for row in 0..rows {
            let wrong = |text: String| input_error(format!("table, row {}: {text}", first + row));
            let arrival = match &times {
                None => None,
                Some(values) => {
                    let ms = number(values, row).ok_or_else(|| {
                        input_error("table, at_ms: expected numbers of milliseconds")
                    })?;
                    let at = span(ms).ok_or_else(|| wrong(span_problem("at_ms", ms)))?;
                    Some(SimTime(at.0))
                }
            };
            if let (Some(at), true) = (arrival, self.ordered) {
                if at < self.latest {
                    return Err(wrong(
                        "at_ms: is below that of an earlier row; sort the table by time".to_owned(),
                    ));
                }
                self.latest = at;
            }
            let op = match &ops {
                None => Op::Read,
                Some(Values::Text(texts)) => {
                    let text = texts.get(row);
                    op_named(text).ok_or_else(|| {
                        wrong(format!(
                            "op: {text:?}: expected read, write, flush or verify"
                        ))
                    })?
                }
                Some(_) => {
                    return Err(input_error(
                        "table, op: expected texts such as read and write",
                    ));
                }
            };
            let whole = |name: &str, values: &Option<Values>, least: u64, most: u64| {
                let Some(values) = values else {
                    return Ok(0);
                };
                let value = number(values, row)
                    .ok_or_else(|| input_error(format!("table, {name}: expected whole numbers")))?;
                let exact = match values {
                    Values::Whole(values) => u64::try_from(values[row]).ok(),
                    _ => (value.fract() == 0.0 && (0.0..9e15).contains(&value))
                        .then_some(value as u64),
                };
                exact
                    .filter(|value| (least..=most).contains(value))
                    .ok_or_else(|| {
                        let bound = format!("expected a whole number from {least} to {most}");
                        wrong(format!("{name}: {value}: {bound}"))
                    })
            };
            let least = u64::from(op != Op::Flush);
            let most = if op == Op::Flush {
                0
            } else {
                u64::from(u32::MAX)
            };
            let request = Request {
                lbn: Lbn(whole("lbn", &lbns, 0, u64::MAX)?),
                sectors: whole("sectors", &sectors, least, most)? as u32,
                op,
                fua: whole("fua", &fuas, 0, 1)? == 1,
            };
            let request = if op == Op::Flush {
                Request::flush()
            } else {
                request
            };
            self.ready.push_back(TraceRecord {
                arrival,
                pause: None,
                completed: None,
                measured: None,
                device: whole("device", &devices, 0, u64::from(u32::MAX))? as u32,
                request,
            });
        }
        self.rows += rows;
        Ok(true)
    }
}

fn number(values: &Values, row: usize) -> Option<f64> {
    match values {
        Values::Whole(values) => Some(values[row] as f64),
        Values::Number(values) => Some(values[row]),
        Values::Text(_) => None,
    }
}

impl Iterator for TableRecords {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(record) = self.ready.pop_front() {
                return Some(Ok(record));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(self.fault.set(error))),
            }
        }
    }
}

/// Clients in Python: each is an iterator of requests. An iterator with `send` has one request
/// outstanding, and receives its completion. From one without `send`, requests with a time are
/// issued at that time, and other requests once all earlier ones are complete.
pub(crate) struct ClientSource {
    clients: Vec<Client>,
    /// The completions that the clients have not seen.
    completed: Arc<Mutex<Vec<Outcome>>>,
    issued: u64,
    now: SimTime,
    fault: Fault,
}

struct Client {
    iterator: Py<PyAny>,
    /// Whether the iterator receives completions.
    receives: bool,
    begun: bool,
    state: ClientState,
    /// The tags of the requests that are not complete.
    outstanding: BTreeSet<u64>,
    last_completed: SimTime,
}

enum ClientState {
    /// The next request must be asked for.
    Idle,
    /// A request that is due at a time.
    Due(SimTime, request::Request),
    /// A request that waits until all outstanding ones are complete.
    Held(request::Request),
    Ended,
}

impl ClientSource {
    /// Returns the source of a Python object: a generator function, a generator, a list or tuple of
    /// these, or an iterable of requests.
    pub(crate) fn new(object: &Bound<'_, PyAny>, fault: Fault) -> PyResult<ClientSource> {
        let object = match object.is_callable() && !object.hasattr("__next__")? {
            true => object.call0()?,
            false => object.clone(),
        };
        let is_sequence = object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>();
        let mut iterators = Vec::new();
        if is_sequence && object.len()? > 0 && is_client(&object.get_item(0)?)? {
            for item in object.try_iter()? {
                let item = item?;
                let item = match item.is_callable() {
                    true => item.call0()?,
                    false => item,
                };
                iterators.push(item.try_iter()?.into_any());
            }
        } else {
            iterators.push(object.try_iter().map_err(|_| {
                let kind = object.get_type();
                PyTypeError::new_err(format!(
                    "workload: expected a text, a path, a table, or an iterable of requests, not {kind}"
                ))
            })?.into_any());
        }
        let clients = iterators.into_iter().map(|iterator| {
            Ok(Client {
                receives: iterator.hasattr("send")?,
                iterator: iterator.unbind(),
                begun: false,
                state: ClientState::Idle,
                outstanding: BTreeSet::new(),
                last_completed: SimTime::ZERO,
            })
        });
        Ok(ClientSource {
            clients: clients.collect::<PyResult<_>>()?,
            completed: Arc::default(),
            issued: 0,
            now: SimTime::ZERO,
            fault,
        })
    }

    /// Returns the place for completions. The simulation puts every outcome there.
    pub(crate) fn completions(&self) -> Arc<Mutex<Vec<Outcome>>> {
        Arc::clone(&self.completed)
    }

    /// Passes completions to the clients, and asks those that need not wait for a next request.
    fn advance(&mut self) -> PyResult<()> {
        let completed = {
            let mut completed = self
                .completed
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *completed)
        };
        for outcome in completed {
            self.now = self.now.max(outcome.completion.completed);
            let tag = outcome.arrival.tag;
            let owner = self
                .clients
                .iter_mut()
                .find(|client| client.outstanding.contains(&tag));
            let client = owner.expect("every request has a client");
            client.outstanding.remove(&tag);
            client.last_completed = outcome.completion.completed;
            if client.receives {
                client.ask(Some(outcome), self.now)?;
            } else if let ClientState::Held(request) = client.state {
                client.hold(request, self.now);
            }
        }
        for client in &mut self.clients {
            if matches!(client.state, ClientState::Idle) && (!client.receives || !client.begun) {
                client.ask(None, self.now)?;
            }
        }
        Ok(())
    }
}

fn is_client(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(object.hasattr("send")? || object.is_callable())
}

impl Client {
    /// Asks for the next request.
    fn ask(&mut self, completion: Option<Outcome>, now: SimTime) -> PyResult<()> {
        Python::attach(|py| {
            let iterator = self.iterator.bind(py);
            self.begun = true;
            let next = match completion {
                Some(outcome) => iterator.call_method1("send", (Completion::new(&outcome),)),
                None => iterator.call_method0("__next__"),
            };
            let item = match next {
                Ok(item) => item,
                Err(error) if error.is_instance_of::<pyo3::exceptions::PyStopIteration>(py) => {
                    self.state = ClientState::Ended;
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
            let request = item.extract::<request::Request>().map_err(|_| {
                let kind = item.get_type();
                PyTypeError::new_err(format!("workload: expected a Request, not {kind}"))
            })?;
            self.hold(request, now);
            Ok(())
        })
    }

    /// Determines when a request is due.
    fn hold(&mut self, request: request::Request, now: SimTime) {
        let time = |ms: f64| span(ms).expect("a request has a valid time").0;
        self.state = match (request.at, request.delay) {
            (Some(at), _) => ClientState::Due(SimTime(time(at)).max(now), request),
            _ if !self.outstanding.is_empty() => ClientState::Held(request),
            (None, delay) => {
                let from = self.last_completed.0;
                let at = from.saturating_add(delay.map_or(0, time));
                ClientState::Due(SimTime(at).max(now), request)
            }
        };
    }

    fn due(&self) -> Option<SimTime> {
        match &self.state {
            ClientState::Due(at, _) => Some(*at),
            _ => None,
        }
    }
}

impl RequestSource for ClientSource {
    fn due(&mut self) -> Result<NextStep, TraceError> {
        self.advance().map_err(|error| self.fault.set(error))?;
        if let Some(at) = self.clients.iter().filter_map(Client::due).min() {
            return Ok(NextStep::At(at));
        }
        let ended = |client: &Client| matches!(client.state, ClientState::Ended);
        Ok(match self.clients.iter().all(ended) {
            true => NextStep::Never,
            false => NextStep::AfterCompletion,
        })
    }

    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        let first = self
            .clients
            .iter_mut()
            .find(|client| client.due() == Some(now))?;
        let ClientState::Due(_, request) = first.state else {
            return None;
        };
        let tag = self.issued;
        self.issued += 1;
        self.now = now;
        first.state = ClientState::Idle;
        first.outstanding.insert(tag);
        Some(Arrival {
            at: now,
            tag,
            device: request.device,
            urgency: Urgency::None,
            measured: None,
            request: request.request,
        })
    }

    fn complete(&mut self, _: u64, _: SimTime) {
        // The whole outcome, with its breakdown, comes through `completions`.
    }
}
