//! The request log: one row per request, as CSV or Parquet.
//!
//! A log of a single run has the columns of the request log, version 2. In a log of several runs,
//! these are preceded by the columns that identify the run; such a log is not a trace.

use std::io::Write;
use std::path::{Path, PathBuf};

use traxtent_io::CompressedWriter;
use traxtent_model::drive::ServedBy;
use traxtent_sim::{Outcome, request_log};
use traxtent_units::Span;
use traxtent_units::request::Op;
use traxtent_workload::trace::LOG_COLUMNS;

use crate::atomic_file::AtomicFile;
use crate::data_file::{Cell, Column, DataFile, Kind, is_parquet, write_cell};
use crate::error::{Result, RunError};
use crate::labels::LabelColumns;
use crate::observer::Observer;
use crate::run::{Case, SimulationRun, execute, name_case, name_drive};
use crate::summary::Summary;

/// A request log that is being written.
pub struct Log {
    form: Form,
    /// The label columns of a log of several runs.
    labels: Option<LabelColumns>,
}

enum Form {
    /// The columns of version 2 as text, exact to the picosecond.
    Csv {
        path: PathBuf,
        out: Box<CompressedWriter<AtomicFile>>,
        /// The labels of the current run, which begin each line.
        begin: Vec<u8>,
        line: Vec<u8>,
    },
    Table {
        file: DataFile,
        /// The labels of the current run, followed by the cells of a request.
        cells: Vec<Cell>,
        /// The number of labels.
        labels: usize,
    },
}

impl Log {
    /// Begins a log of all runs of the cases. `facts` are names and values for the file's metadata.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if this build cannot write its format.
    pub fn create(path: &Path, cases: &[Case], facts: &[(String, String)]) -> Result<Log> {
        let several = cases.iter().map(|case| case.runs.len()).sum::<usize>() > 1;
        let labels = several.then(|| LabelColumns::of(cases));
        let label_columns: Vec<Column> = labels.iter().flat_map(LabelColumns::columns).collect();
        let form = if is_parquet(path) {
            let columns: Vec<Column> = label_columns.into_iter().chain(request_columns()).collect();
            Form::Table {
                file: DataFile::create(path, &columns, facts)?,
                cells: Vec::new(),
                labels: 0,
            }
        } else {
            let mut head = Vec::new();
            for column in label_columns {
                write_cell(&mut head, &Cell::Text(column.name))
                    .expect("writing to memory cannot fail");
                head.push(b',');
            }
            let mut out = CompressedWriter::new(AtomicFile::create(path)?, path);
            out.write_all(&head)
                .and_then(|()| request_log::write_head(&mut out))
                .map_err(|error| RunError::output(path, &error))?;
            Form::Csv {
                path: path.to_owned(),
                out: Box::new(out),
                begin: Vec::new(),
                line: Vec::with_capacity(512),
            }
        };
        Ok(Log { form, labels })
    }

    /// Begins the rows of a run.
    pub fn begin_run(&mut self, case: &Case, run: &SimulationRun) {
        let labels = self.labels.as_ref();
        let labels = labels.map_or_else(Vec::new, |labels| labels.cells(case, run));
        match &mut self.form {
            Form::Csv { begin, .. } => {
                begin.clear();
                for label in &labels {
                    write_cell(begin, label).expect("writing to memory cannot fail");
                    begin.push(b',');
                }
            }
            Form::Table {
                cells,
                labels: count,
                ..
            } => {
                *count = labels.len();
                *cells = labels;
            }
        }
    }

    /// Adds a request.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn row(&mut self, outcome: &Outcome) -> Result<()> {
        match &mut self.form {
            Form::Csv {
                path,
                out,
                begin,
                line,
            } => {
                line.clear();
                line.extend_from_slice(begin);
                request_log::write_row(line, outcome)
                    .and_then(|()| out.write_all(line))
                    .map_err(|error| RunError::output(path, &error))
            }
            Form::Table {
                file,
                cells,
                labels,
            } => {
                cells.truncate(*labels);
                push_request_cells(cells, outcome);
                file.row(cells)
            }
        }
    }

    /// Completes the log and gives it its name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written or named.
    pub fn finish(self) -> Result<()> {
        match self.form {
            Form::Csv { path, out, .. } => {
                let finished = out.finish();
                finished
                    .map_err(|error| RunError::output(&path, &error))?
                    .finish()
            }
            Form::Table { file, .. } => file.finish(),
        }
    }
}

/// Runs simulations one after another, and logs their requests, except those of the warm-up.
/// Returns the summaries of each case's runs, or the error of the first of them whose input is
/// invalid, as [`run_each`](crate::run_each) does. The log has the requests of the other cases.
///
/// Rows cannot be withdrawn. If there are several cases, the requests of a trace are therefore
/// checked against the drives of each case before its first row.
///
/// # Errors
/// Returns an error if the only case fails, if a case fails after its first row, if a file cannot
/// be used, or if the observer stops the runs.
pub fn run_logged(
    cases: &[Case],
    mut log: Log,
    observer: &dyn Observer,
) -> Result<Vec<Result<Vec<Summary>>>> {
    let mut results = Vec::new();
    for case in cases {
        let mut has_rows = false;
        results.push(match log_case(case, &mut log, &mut has_rows, cases, observer) {
            Err(RunError::Input(line)) if cases.len() > 1 => {
                let error = name_case(RunError::Input(line), case, cases);
                if has_rows {
                    return Err(RunError::input(format!(
                        "{error}; the log already has requests of this case, so no other case is \
                         reported; omit --log to report them"
                    )));
                }
                Err(error)
            }
            result => Ok(result?),
        });
    }
    if results.iter().any(Result::is_ok) {
        log.finish()?;
    }
    Ok(results)
}

/// Runs the simulations of a case, and logs their requests. Sets `has_rows` before the first row.
fn log_case(
    case: &Case,
    log: &mut Log,
    has_rows: &mut bool,
    cases: &[Case],
    observer: &dyn Observer,
) -> Result<Vec<Summary>> {
    if cases.len() > 1 {
        for run in &case.runs {
            run.check_trace(observer)
                .map_err(|error| name_drive(error, case))?;
        }
    }
    let mut summaries = Vec::new();
    for run in &case.runs {
        log.begin_run(case, run);
        let mut written = Ok(());
        let summary = execute(case, run, observer, |outcome| {
            *has_rows = true;
            written = log.row(outcome);
            written.is_ok()
        })?;
        written?;
        summaries.push(summary);
    }
    Ok(summaries)
}

/// Returns the columns of a log of a single run.
pub fn request_columns() -> impl Iterator<Item = Column> {
    LOG_COLUMNS.split(',').map(column)
}

/// Returns the column of a data file for a column of the request log.
fn column(name: &str) -> Column {
    let (kind, unit) = match name {
        "op" | "served" | "status" => (Kind::Text, None),
        "lbn" | "sectors" => (Kind::Whole, Some("logical sectors")),
        _ if name.ends_with("_ms") => (Kind::Number, Some("ms")),
        _ => (Kind::Whole, None),
    };
    Column::new(name, kind)
        .unit(unit)
        .optional(name == "measured_ms")
}

/// Appends the cells of a request, in the order of [`request_columns`]. Times are in milliseconds.
pub fn push_request_cells(cells: &mut Vec<Cell>, outcome: &Outcome) {
    // LBNs are far below 2^63, since a drive has fewer bytes than that.
    let whole = |value: u64| Cell::Whole(value as i64);
    let ms = |time: Span| Cell::Number(ms(time));
    let arrival = &outcome.arrival;
    let request = &arrival.request;
    cells.extend([
        whole(arrival.tag),
        whole(arrival.device.into()),
        Cell::Word(match request.op {
            Op::Read => "read",
            Op::Write => "write",
            Op::Flush => "flush",
            Op::Verify => "verify",
        }),
        whole(request.fua.into()),
        whole(request.lbn.0),
        whole(request.sectors.into()),
        ms(Span(arrival.at.0)),
        ms(Span(outcome.completion.submitted.0)),
        ms(Span(outcome.completion.completed.0)),
        ms(outcome.response()),
    ]);
    cells.extend(outcome.breakdown().parts().into_iter().map(ms));
    cells.push(Cell::Word(match outcome.completion.served {
        ServedBy::Media => "media",
        ServedBy::Buffer => "buffer",
        ServedBy::Both => "both",
    }));
    cells.push(arrival.measured.map_or(Cell::Empty, ms));
    cells.push(Cell::Word(outcome.status.name()));
}

/// Returns a time in milliseconds: the same number as one parsed from its decimals in CSV.
fn ms(time: Span) -> f64 {
    const PS_PER_MS: f64 = 1e9;
    time.0 as f64 / PS_PER_MS
}
