//! `--summary`: one row per run with all its figures, as CSV or Parquet.

use std::path::Path;

use super::labels::LabelColumns;
use super::run::{Case, pairs};
use super::summary::{Figure, PARTIAL_WRITES, Summary};
use crate::data_file::{Cell, Column, DataFile, Kind};
use crate::failure::Result;

/// Writes a row for each run.
pub(crate) fn write(
    mut file: DataFile,
    labels: &LabelColumns,
    cases: &[Case],
    summaries: &mut [Summary],
) -> Result<()> {
    let names: Vec<String> = figure_names();
    for ((case, run), summary) in pairs(cases).zip(summaries) {
        let mut cells = labels.cells(case, run);
        cells.push(Cell::Text(run.workload.describe()));
        let figures = summary.figures();
        cells.extend(names.iter().map(|name| {
            let found = figures.iter().find(|figure| column_name(figure) == *name);
            found.map_or(Cell::Empty, cell)
        }));
        file.row(&cells)?;
    }
    file.finish()
}

/// Begins the file of the results.
pub(crate) fn create(
    path: &Path,
    labels: &LabelColumns,
    facts: &[(String, String)],
) -> Result<DataFile> {
    let figures = figure_names().into_iter().map(|name| {
        let kind = if COUNTS.contains(&name.as_str()) {
            Kind::Whole
        } else {
            Kind::Number
        };
        let unit = unit(&name);
        let optional = name == ARRAYS_ONLY;
        Column::new(name, kind).unit(unit).optional(optional)
    });
    let workload = Column::new("workload", Kind::Text);
    let columns: Vec<Column> = labels.columns().chain([workload]).chain(figures).collect();
    DataFile::create(path, &columns, facts)
}

/// The figures that are whole numbers.
const COUNTS: [&str; 2] = ["requests", PARTIAL_WRITES];
/// The figure that only machines with arrays have.
const ARRAYS_ONLY: &str = "drive_response_ms";

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
