//! The file of results: one row per run with all its figures, as CSV or Parquet.

use std::path::Path;

use crate::data_file::{Cell, Column, DataFile, Kind};
use crate::error::Result;
use crate::labels::LabelColumns;
use crate::run::{Case, SimulationRun, runs_with_cases};
use crate::summary::{DRIVE_RESPONSE, Figure, PARTIAL_WRITES, Summary};

/// The file of results that is being written.
pub struct ResultsFile {
    file: DataFile,
    labels: LabelColumns,
}

impl ResultsFile {
    /// Begins a file for the runs of the cases. `facts` are names and values for its metadata.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if this build cannot write its format.
    ///
    /// # Panics
    /// Panics if there is no case.
    pub fn create(path: &Path, cases: &[Case], facts: &[(String, String)]) -> Result<ResultsFile> {
        let labels = LabelColumns::of(cases);
        let file = DataFile::create(path, &result_columns(&labels), facts)?;
        Ok(ResultsFile { file, labels })
    }

    /// Writes a row for each run, and gives the file its name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written or named.
    pub fn write(mut self, cases: &[Case], summaries: &mut [Summary]) -> Result<()> {
        for ((case, run), summary) in runs_with_cases(cases).zip(summaries) {
            self.file
                .row(&result_cells(&self.labels, case, run, summary))?;
        }
        self.file.finish()
    }
}

/// Returns the cells of a run, in the order of [`result_columns`].
pub fn result_cells(
    labels: &LabelColumns,
    case: &Case,
    run: &SimulationRun,
    summary: &mut Summary,
) -> Vec<Cell> {
    let mut cells = labels.cells(case, run);
    cells.push(Cell::Text(run.workload.describe()));
    cells.extend(figure_cells(summary));
    cells
}

/// Returns the cells of a run's figures: one for each of [`figure_columns`].
pub fn figure_cells(summary: &mut Summary) -> Vec<Cell> {
    let figures = summary.figures();
    let find = |name: &String| {
        let found = figures.iter().find(|figure| column_name(figure) == *name);
        found.map_or(Cell::Empty, cell)
    };
    figure_names().iter().map(find).collect()
}

/// Returns the columns of the results: labels, the workload, and all figures.
pub fn result_columns(labels: &LabelColumns) -> Vec<Column> {
    let workload = Column::new("workload", Kind::Text);
    let columns = labels.columns().chain([workload]);
    columns.chain(figure_columns()).collect()
}

/// Returns the columns of all figures.
pub fn figure_columns() -> Vec<Column> {
    let figures = figure_names().into_iter().map(|name| {
        let kind = if COUNTS.contains(&name.as_str()) {
            Kind::Whole
        } else {
            Kind::Number
        };
        let unit = unit(&name);
        let optional = name == DRIVE_RESPONSE;
        Column::new(name, kind).unit(unit).optional(optional)
    });
    figures.collect()
}

/// The figures that are whole numbers.
const COUNTS: [&str; 2] = ["requests", PARTIAL_WRITES];

/// Returns the names of the columns for the figures.
fn figure_names() -> Vec<String> {
    let mut with_arrays = Summary::default();
    with_arrays.drive_response_ms = Some(0.0);
    with_arrays.figures().iter().map(column_name).collect()
}

/// Returns the name of a figure's column: the JSON keys, with the unit at the end.
fn column_name(figure: &Figure) -> String {
    match figure.group {
        None => figure.key.to_owned(),
        Some(group) => {
            let group = group.strip_suffix("_ms").unwrap_or(group);
            format!("{group}_{}_ms", figure.key)
        }
    }
}

fn unit(name: &str) -> Option<&'static str> {
    if name.ends_with("_ms") {
        Some("ms")
    } else if name == "requests_per_s" {
        Some("1/s")
    } else if name == "mb_per_s" {
        Some("MB/s")
    } else {
        None
    }
}

fn cell(figure: &Figure) -> Cell {
    if COUNTS.contains(&figure.key) {
        Cell::Whole(figure.value as i64)
    } else {
        Cell::Number(figure.value)
    }
}
