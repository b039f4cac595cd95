//! The request log in columns, with the names and types of the command's Parquet log.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::{mem, panic};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyTuple};
use traxtent_model::drive::ServedBy;
use traxtent_sim::{Outcome, RequestStatus};
use traxtent_units::Span;
use traxtent_units::request::Op;
use traxtent_workload::trace::LOG_COLUMNS;

use crate::arrow::{self, Batch, Column, ColumnKind, Field, Word};
use crate::errors::{guarded, input_error};
use crate::request::{ms, op_name, served_name};

/// The number of rows of a batch, unless the caller chooses it: about 10 MB.
pub(crate) const BATCH_ROWS: usize = 1 << 16;

/// The columns of the log.
static FIELDS: LazyLock<Arc<[Field]>> =
    LazyLock::new(|| LOG_COLUMNS.split(',').map(field).collect());

fn field(name: &str) -> Field {
    let kind = match name {
        "op" | "served" | "status" => ColumnKind::Text,
        "measured_ms" => ColumnKind::OptionalNumber,
        _ if name.ends_with("_ms") => ColumnKind::Number,
        _ => ColumnKind::Whole,
    };
    Field {
        name: name.to_owned(),
        kind,
    }
}

/// The number of requests that are collected before they are turned into columns, about 22 KB.
/// Column by column is faster than row by row, as long as the rows are in the processor's cache.
const BLOCK_ROWS: usize = 128;

/// Collects requests into batches.
pub(crate) struct LogBuilder {
    rows: usize,
    batch: Batch,
    /// Requests that are not in the batch yet.
    block: Vec<Outcome>,
    /// The number of requests after which the block is full.
    block_rows: usize,
}

impl LogBuilder {
    /// Creates a builder for batches of `rows` requests.
    pub(crate) fn new(rows: usize) -> LogBuilder {
        LogBuilder {
            rows,
            batch: empty(rows.min(BATCH_ROWS)),
            block: Vec::with_capacity(BLOCK_ROWS.min(rows)),
            block_rows: BLOCK_ROWS.min(rows),
        }
    }

    /// Adds a request. Returns the batch if it is full.
    #[inline]
    pub(crate) fn push(&mut self, outcome: &Outcome) -> Option<Batch> {
        self.block.push(*outcome);
        if self.block.len() < self.block_rows {
            return None;
        }
        self.turn()
    }

    /// Turns the collected requests into columns; returns the batch if it is full.
    #[inline(never)]
    fn turn(&mut self) -> Option<Batch> {
        append(&mut self.batch, &self.block);
        self.block.clear();
        let left = self.rows - self.batch.rows;
        self.block_rows = BLOCK_ROWS.min(left);
        if left > 0 {
            return None;
        }
        let next = LogBuilder::new(self.rows);
        Some(mem::replace(self, next).batch)
    }

    /// Returns the last batch, unless it is empty.
    pub(crate) fn finish(mut self) -> Option<Batch> {
        append(&mut self.batch, &self.block);
        (self.batch.rows > 0).then_some(self.batch)
    }
}

/// The number of requests that are handed to the thread of a log at once, about 350 KB.
const HANDED_ROWS: usize = 2048;

/// The number of blocks that a simulation and the thread of its log pass to each other.
const HANDED_BLOCKS: usize = 4;

/// Collects requests into batches in a thread of its own. Columns cost a third of a simulation's
/// time, half of it for memory that is new to the process.
pub(crate) struct LogThread {
    block: Vec<Outcome>,
    full: SyncSender<Vec<Outcome>>,
    empty: Receiver<Vec<Outcome>>,
    batches: JoinHandle<Vec<Batch>>,
}

impl LogThread {
    /// Starts the thread.
    pub(crate) fn start() -> LogThread {
        let block = || Vec::with_capacity(HANDED_ROWS);
        let (full, blocks) = sync_channel::<Vec<Outcome>>(HANDED_BLOCKS);
        let (emptied, empty) = sync_channel(HANDED_BLOCKS);
        for _ in 1..HANDED_BLOCKS {
            let _ = emptied.send(block());
        }
        let batches = thread::spawn(move || {
            let (mut builder, mut batches) = (LogBuilder::new(BATCH_ROWS), Vec::new());
            for mut block in blocks {
                for outcome in block.drain(..) {
                    batches.extend(builder.push(&outcome));
                }
                let _ = emptied.send(block);
            }
            batches.extend(builder.finish());
            batches
        });
        LogThread {
            block: block(),
            full,
            empty,
            batches,
        }
    }

    /// Adds a request.
    #[inline]
    pub(crate) fn push(&mut self, outcome: &Outcome) {
        self.block.push(*outcome);
        if self.block.len() == HANDED_ROWS {
            // The thread is gone only if it has panicked, which `finish` passes on.
            let next = self.empty.recv().unwrap_or_default();
            let _ = self.full.send(mem::replace(&mut self.block, next));
        }
    }

    /// Waits for the thread, and returns the batches.
    pub(crate) fn finish(self) -> Vec<Batch> {
        let _ = self.full.send(self.block);
        drop(self.full);
        self.batches
            .join()
            .unwrap_or_else(|payload| panic::resume_unwind(payload))
    }
}

/// Appends requests to a batch.
fn append(batch: &mut Batch, block: &[Outcome]) {
    batch.rows += block.len();
    let [
        number,
        device,
        ops,
        fua,
        lbn,
        sectors,
        issued,
        submitted,
        completed,
        response,
        queue,
        overhead,
        seek,
        settle,
        head_switch,
        rotation,
        transfer,
        bus,
        served,
        measured,
        status,
    ] = &mut batch.columns[..]
    else {
        unreachable!("the batch has the columns of the log");
    };
    wholes(number, block, |one| one.arrival.tag as i64);
    wholes(device, block, |one| one.arrival.device.into());
    words(ops, block, |one| op_word(one.arrival.request.op));
    wholes(fua, block, |one| one.arrival.request.fua.into());
    // LBNs are far below 2^63, since a drive has fewer bytes than that.
    wholes(lbn, block, |one| one.arrival.request.lbn.0 as i64);
    wholes(sectors, block, |one| one.arrival.request.sectors.into());
    times(issued, block, |one| Span(one.arrival.at.0));
    times(submitted, block, |one| Span(one.completion.submitted.0));
    times(completed, block, |one| Span(one.completion.completed.0));
    times(response, block, Outcome::response);
    times(queue, block, |one| one.breakdown().queue);
    times(overhead, block, |one| one.completion.breakdown.overhead);
    times(seek, block, |one| one.completion.breakdown.seek);
    times(settle, block, |one| one.completion.breakdown.settle);
    times(head_switch, block, |one| {
        one.completion.breakdown.head_switch
    });
    times(rotation, block, |one| one.completion.breakdown.rotation);
    times(transfer, block, |one| one.completion.breakdown.transfer);
    times(bus, block, |one| one.completion.breakdown.bus);
    words(served, block, |one| served_word(one.completion.served));
    match measured {
        Column::OptionalNumber(numbers) => {
            if block.iter().all(|one| one.arrival.measured.is_none()) {
                numbers.push_absent(block.len());
            } else {
                block
                    .iter()
                    .for_each(|one| numbers.push(one.arrival.measured.map(ms)));
            }
        }
        _ => unreachable!("the measured time is optional"),
    }
    words(status, block, |one| status_word(one.status));
}

fn empty(rows: usize) -> Batch {
    let columns = FIELDS
        .iter()
        .map(|field| Column::with_capacity(field.kind, rows));
    Batch {
        rows: 0,
        columns: columns.collect(),
    }
}

#[inline]
fn wholes(column: &mut Column, block: &[Outcome], value: impl Fn(&Outcome) -> i64) {
    match column {
        Column::Whole(values) => values.extend(block.iter().map(value)),
        _ => unreachable!("the column has whole numbers"),
    }
}

#[inline]
fn times(column: &mut Column, block: &[Outcome], value: impl Fn(&Outcome) -> Span) {
    match column {
        Column::Number(values) => {
            // Collecting the times first lets the compiler divide several at once.
            let mut spans = [Span::ZERO; BLOCK_ROWS];
            let spans = &mut spans[..block.len()];
            for (span, one) in spans.iter_mut().zip(block) {
                *span = value(one);
            }
            values.extend(spans.iter().map(|span| ms(*span)));
        }
        _ => unreachable!("the column has numbers"),
    }
}

#[inline]
fn words(column: &mut Column, block: &[Outcome], word: impl Fn(&Outcome) -> Word) {
    match column {
        Column::Text(texts) => texts.push_words(block.iter().map(word)),
        _ => unreachable!("the column has texts"),
    }
}

fn op_word(op: Op) -> Word {
    match op {
        Op::Read => const { Word::new(op_name(Op::Read)) },
        Op::Write => const { Word::new(op_name(Op::Write)) },
        Op::Flush => const { Word::new(op_name(Op::Flush)) },
        Op::Verify => const { Word::new(op_name(Op::Verify)) },
    }
}

fn served_word(served: ServedBy) -> Word {
    match served {
        ServedBy::Media => const { Word::new(served_name(ServedBy::Media)) },
        ServedBy::Buffer => const { Word::new(served_name(ServedBy::Buffer)) },
        ServedBy::Both => const { Word::new(served_name(ServedBy::Both)) },
    }
}

fn status_word(status: RequestStatus) -> Word {
    match status {
        RequestStatus::Ok => const { Word::new(RequestStatus::Ok.name()) },
        RequestStatus::Unreadable => const { Word::new(RequestStatus::Unreadable.name()) },
        RequestStatus::NoSpace => const { Word::new(RequestStatus::NoSpace.name()) },
        RequestStatus::Failed => const { Word::new(RequestStatus::Failed.name()) },
    }
}

/// The requests of a run, one row for each in order of completion.
///
/// The object has ``__arrow_c_stream__``: ``polars.DataFrame(requests)`` and
/// ``pyarrow.table(requests)`` take it without a copy; ``pandas.DataFrame.from_arrow(requests)``
/// converts it. It has a length, and can be pickled.
///
/// Columns: ``request`` (from 0, in order of issue), ``device``, ``op``, ``fua``, ``lbn`` and
/// ``sectors`` (logical sectors); the times ``issued_ms``, ``submitted_ms`` and ``completed_ms`` in
/// milliseconds of simulated time; ``response_ms``, and its components ``queue_ms``,
/// ``overhead_ms``, ``seek_ms``, ``settle_ms``, ``head_switch_ms``, ``rotation_ms``,
/// ``transfer_ms`` and ``bus_ms``, which sum to it; ``served`` (``media``, ``buffer`` or ``both``);
/// ``measured_ms``, which is null unless a trace has it; ``status``, which is ``ok`` for every
/// simulated request.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct RequestLog {
    batches: Vec<Arc<Batch>>,
}

impl RequestLog {
    pub(crate) fn new(batches: Vec<Batch>) -> RequestLog {
        RequestLog {
            batches: batches.into_iter().map(Arc::new).collect(),
        }
    }
}

#[pymethods]
impl RequestLog {
    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<&str> {
        FIELDS.iter().map(|field| field.name.as_str()).collect()
    }

    /// The number of bytes in the buffers of the columns.
    #[getter]
    fn nbytes(&self) -> usize {
        let columns = self.batches.iter().flat_map(|batch| &batch.columns);
        columns.map(Column::bytes).sum()
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore the requested schema.
        let _ = requested_schema;
        arrow::stream_capsule(py, Arc::clone(&FIELDS), self.batches.clone())
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(|batch| batch.rows).sum()
    }

    fn __repr__(&self) -> String {
        format!("<log of {} requests>", self.__len__())
    }

    /// Creates a log from the batches that `__reduce__` returns.
    #[staticmethod]
    fn _from_bytes(batches: Vec<Bound<'_, PyBytes>>) -> PyResult<RequestLog> {
        guarded(|| {
            let read = |bytes: &Bound<'_, PyBytes>| decode(bytes.as_bytes());
            let batches: Option<Vec<Batch>> = batches.iter().map(read).collect();
            batches
                .map(RequestLog::new)
                .ok_or_else(|| input_error("the pickled request log is damaged"))
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<RequestLog>().getattr("_from_bytes")?;
        let batches = self
            .batches
            .iter()
            .map(|batch| PyBytes::new(py, &encode(batch)));
        let batches: Vec<_> = batches.collect();
        Ok((make, PyTuple::new(py, [batches])?))
    }
}

/// A batch of requests, with the columns of ``RequestLog``.
///
/// It has ``__arrow_c_array__`` (a struct array: ``pyarrow.record_batch(batch)``) and
/// ``__arrow_c_stream__`` (a table of one chunk). It can be pickled.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct RequestBatch {
    batch: Arc<Batch>,
}

impl RequestBatch {
    pub(crate) fn new(batch: Batch) -> RequestBatch {
        RequestBatch {
            batch: Arc::new(batch),
        }
    }
}

#[pymethods]
impl RequestBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let _ = requested_schema;
        arrow::array_capsules(py, &FIELDS, &self.batch)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream_capsule(py, Arc::clone(&FIELDS), [Arc::clone(&self.batch)])
    }

    fn __len__(&self) -> usize {
        self.batch.rows
    }

    fn __repr__(&self) -> String {
        format!("<batch of {} requests>", self.batch.rows)
    }

    /// Creates a batch from the bytes that `__reduce__` returns.
    #[staticmethod]
    fn _from_bytes(batch: &[u8]) -> PyResult<RequestBatch> {
        guarded(|| {
            decode(batch)
                .map(RequestBatch::new)
                .ok_or_else(|| input_error("the pickled batch is damaged"))
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let make = py.get_type::<RequestBatch>().getattr("_from_bytes")?;
        let bytes = PyBytes::new(py, &encode(&self.batch));
        Ok((make, PyTuple::new(py, [bytes])?))
    }
}

/// Returns a batch as bytes: the number of rows, and then each column.
fn encode(batch: &Batch) -> Vec<u8> {
    let mut bytes = (batch.rows as u64).to_le_bytes().to_vec();
    for column in &batch.columns {
        match column {
            Column::Whole(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
            Column::Number(values) => bytes.extend(values.iter().flat_map(|v| v.to_le_bytes())),
            Column::OptionalNumber(numbers) => {
                // A measured time is a number; NaN stands for its absence.
                let value = |row| numbers.get(row).unwrap_or(f64::NAN);
                bytes.extend((0..batch.rows).flat_map(|row| value(row).to_le_bytes()));
            }
            Column::OptionalWhole(_) | Column::OptionalText(..) => {
                unreachable!("a log has no such column")
            }
            Column::Text(texts) => {
                for row in 0..batch.rows {
                    let word = texts.get(row);
                    bytes.push(word.len() as u8);
                    bytes.extend_from_slice(word.as_bytes());
                }
            }
        }
    }
    bytes
}

/// Reads the bytes of [`encode`]; returns `None` if they are damaged.
fn decode(mut bytes: &[u8]) -> Option<Batch> {
    fn eight(bytes: &mut &[u8]) -> Option<[u8; 8]> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }
    let rows = usize::try_from(u64::from_le_bytes(eight(&mut bytes)?)).ok()?;
    // Every row has bytes in every column.
    if rows > bytes.len() {
        return None;
    }
    let mut batch = empty(rows);
    batch.rows = rows;
    for column in &mut batch.columns {
        for _ in 0..rows {
            match column {
                Column::Whole(values) => values.push(i64::from_le_bytes(eight(&mut bytes)?)),
                Column::Number(values) => values.push(f64::from_le_bytes(eight(&mut bytes)?)),
                Column::OptionalNumber(numbers) => {
                    let value = f64::from_le_bytes(eight(&mut bytes)?);
                    numbers.push((!value.is_nan()).then_some(value));
                }
                Column::OptionalWhole(_) | Column::OptionalText(..) => {
                    unreachable!("a log has no such column")
                }
                Column::Text(texts) => {
                    let (length, rest) = bytes.split_first()?;
                    let (word, rest) = rest.split_at_checked(usize::from(*length))?;
                    texts.push(std::str::from_utf8(word).ok()?);
                    bytes = rest;
                }
            }
        }
    }
    bytes.is_empty().then_some(batch)
}
