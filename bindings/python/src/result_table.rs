//! Tables of results: a row per run or per claim.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};
use traxtent_run::OutputFormat;
use traxtent_run::data_file::{self, Cell, DataFile, Kind};

use crate::arrow::{self, Batch, Column, ColumnKind, Field, OptionalValues, Presence, TextColumn};
use crate::errors::{guarded, input_error, run_error};

/// The units that a column can have.
const UNITS: [&str; 3] = ["ms", "1/s", "MB/s"];

/// A table of results.
///
/// It has ``__arrow_c_stream__``: ``pyarrow.table(table)`` and ``polars.DataFrame(table)`` take it
/// without a copy; ``pandas.DataFrame.from_arrow(table)`` converts it. ``len(table)`` is the number
/// of rows, and ``table[index]`` is a row as a dict. It is immutable and can be pickled.
#[pyclass(frozen, module = "traxtent")]
pub(crate) struct Table {
    columns: Vec<data_file::Column>,
    fields: Arc<[Field]>,
    batch: Arc<Batch>,
}

impl Table {
    /// Creates a table of rows with one cell for each column.
    pub(crate) fn new(
        columns: Vec<data_file::Column>,
        rows: impl ExactSizeIterator<Item = PyResult<Vec<Cell>>>,
    ) -> PyResult<Table> {
        let fields: Arc<[Field]> = columns.iter().map(field).collect();
        let mut batch = Batch {
            rows: rows.len(),
            columns: fields
                .iter()
                .map(|field| Column::with_capacity(field.kind, rows.len()))
                .collect(),
        };
        for row in rows {
            let row = row?;
            if row.len() != columns.len() {
                let (cells, columns) = (row.len(), columns.len());
                return Err(input_error(format!(
                    "a row has {cells} cells for {columns} columns"
                )));
            }
            for ((cell, column), buffer) in row.iter().zip(&columns).zip(&mut batch.columns) {
                push(buffer, cell).ok_or_else(|| {
                    input_error(format!("{}: {cell:?} has the wrong type", column.name))
                })?;
            }
        }
        Ok(Table {
            columns,
            fields,
            batch: Arc::new(batch),
        })
    }

    fn cell(&self, row: usize, column: usize) -> Cell {
        let number = |value: Option<f64>| value.map_or(Cell::Empty, Cell::Number);
        let whole = |value: Option<i64>| value.map_or(Cell::Empty, Cell::Whole);
        match &self.batch.columns[column] {
            Column::Whole(values) => Cell::Whole(values[row]),
            Column::Number(values) => Cell::Number(values[row]),
            Column::OptionalWhole(values) => whole(values.get(row)),
            Column::OptionalNumber(values) => number(values.get(row)),
            Column::Text(texts) => Cell::Text(texts.get(row).to_owned()),
            Column::OptionalText(texts, presence) => match presence.at(row) {
                true => Cell::Text(texts.get(row).to_owned()),
                false => Cell::Empty,
            },
        }
    }

    fn row(&self, row: usize) -> Vec<Cell> {
        (0..self.columns.len())
            .map(|column| self.cell(row, column))
            .collect()
    }

    /// Writes the table to a file, with facts for its metadata.
    pub(crate) fn write(&self, path: &std::path::Path, facts: &[(String, String)]) -> PyResult<()> {
        let mut file = DataFile::create(path, &self.columns, facts).map_err(run_error)?;
        for row in 0..self.batch.rows {
            file.row(&self.row(row)).map_err(run_error)?;
        }
        file.finish().map_err(run_error)
    }
}

#[pymethods]
impl Table {
    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.columns
            .iter()
            .map(|column| column.name.as_str())
            .collect()
    }

    /// The unit of each column that has one: ``"ms"``, ``"1/s"`` or ``"MB/s"``.
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let units = PyDict::new(py);
        for column in &self.columns {
            if let Some(unit) = column.unit {
                units.set_item(&column.name, unit)?;
            }
        }
        Ok(units)
    }

    /// Writes the table to a file, which gets its name once it is complete.
    ///
    /// The extension selects the format: ``.parquet``; or ``.csv``, also with ``.gz`` or ``.zst``.
    ///
    /// Raises ``InputError`` for another extension, or if the file exists and is not such a table,
    /// and ``FileError`` if the file cannot be written.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        guarded(|| {
            let text = path.to_string_lossy();
            let path = data_file::name(&text)
                .map_err(|why| input_error(format!("{}: {why}", path.display())))?;
            let facts = [("traxtent".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
            py.detach(|| {
                OutputFormat::Summary
                    .check_output(&path)
                    .map_err(run_error)?;
                self.write(&path, &facts)
            })
        })
    }

    fn __len__(&self) -> usize {
        self.batch.rows
    }

    fn __getitem__<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyDict>> {
        let rows = self.batch.rows;
        let row = match index < 0 {
            true => rows.checked_add_signed(index),
            false => Some(index.unsigned_abs()),
        };
        let Some(row) = row.filter(|row| *row < rows) else {
            return Err(PyIndexError::new_err(format!(
                "row {index} of a table with {rows} rows"
            )));
        };
        let dict = PyDict::new(py);
        for (column, cell) in self.columns.iter().zip(self.row(row)) {
            dict.set_item(&column.name, to_object(py, &cell)?)?;
        }
        Ok(dict)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        arrow::stream_capsule(py, Arc::clone(&self.fields), [Arc::clone(&self.batch)])
    }

    fn __repr__(&self) -> String {
        format!(
            "<Table: {} rows, {} columns>",
            self.batch.rows,
            self.columns.len()
        )
    }

    /// Creates a table from columns and rows in the form that `__reduce__` returns.
    #[staticmethod]
    fn _from_parts(
        columns: Vec<(String, String, Option<String>, bool)>,
        rows: Vec<Vec<Bound<'_, PyAny>>>,
    ) -> PyResult<Table> {
        guarded(|| {
            let columns = columns.into_iter().map(|(name, kind, unit, optional)| {
                let kind = match kind.as_str() {
                    "whole" => Kind::Whole,
                    "number" => Kind::Number,
                    _ => Kind::Text,
                };
                let unit = UNITS
                    .into_iter()
                    .find(|known| unit.as_deref() == Some(*known));
                data_file::Column::new(name, kind)
                    .unit(unit)
                    .optional(optional)
            });
            let columns: Vec<data_file::Column> = columns.collect();
            let kinds: Vec<Kind> = columns.iter().map(|column| column.kind).collect();
            let rows = rows.iter().map(|row| to_cells(row, &kinds));
            Table::new(columns, rows)
        })
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let columns = self.columns.iter().map(|column| {
            let kind = match column.kind {
                Kind::Whole => "whole",
                Kind::Number => "number",
                Kind::Text => "text",
            };
            (column.name.as_str(), kind, column.unit, column.optional)
        });
        let columns = PyList::new(py, columns.collect::<Vec<_>>())?.into_any();
        let rows = (0..self.batch.rows).map(|row| to_objects(py, &self.row(row)));
        let rows = PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)?.into_any();
        let make = py.get_type::<Table>().getattr("_from_parts")?;
        Ok((make, PyTuple::new(py, [columns, rows])?))
    }
}

fn field(column: &data_file::Column) -> Field {
    let kind = match (column.kind, column.optional) {
        (Kind::Whole, false) => ColumnKind::Whole,
        (Kind::Whole, true) => ColumnKind::OptionalWhole,
        (Kind::Number, false) => ColumnKind::Number,
        (Kind::Number, true) => ColumnKind::OptionalNumber,
        (Kind::Text, false) => ColumnKind::Text,
        (Kind::Text, true) => ColumnKind::OptionalText,
    };
    Field {
        name: column.name.clone(),
        kind,
    }
}

/// Appends a cell to a column; returns `None` if it has another type.
fn push(column: &mut Column, cell: &Cell) -> Option<()> {
    fn optional<T: Copy + Default>(values: &mut OptionalValues<T>, value: Option<T>) {
        values.push(value);
    }
    fn text(texts: &mut TextColumn, presence: &mut Presence, value: Option<&str>) {
        texts.push(value.unwrap_or_default());
        presence.push(value.is_some());
    }
    match (column, cell) {
        (Column::Whole(values), Cell::Whole(value)) => values.push(*value),
        (Column::Number(values), Cell::Number(value)) => values.push(*value),
        (Column::OptionalWhole(values), Cell::Whole(value)) => optional(values, Some(*value)),
        (Column::OptionalWhole(values), Cell::Empty) => optional(values, None),
        (Column::OptionalNumber(values), Cell::Number(value)) => optional(values, Some(*value)),
        (Column::OptionalNumber(values), Cell::Empty) => optional(values, None),
        (Column::Text(texts), Cell::Text(value)) => texts.push(value),
        (Column::OptionalText(texts, presence), Cell::Text(value)) => {
            text(texts, presence, Some(value));
        }
        (Column::OptionalText(texts, presence), Cell::Empty) => text(texts, presence, None),
        _ => return None,
    }
    Some(())
}

/// Returns a cell as a Python value.
pub(crate) fn to_object<'py>(py: Python<'py>, cell: &Cell) -> PyResult<Bound<'py, PyAny>> {
    match cell {
        Cell::Empty => Ok(py.None().into_bound(py)),
        Cell::Whole(value) => value.into_bound_py_any(py),
        Cell::Number(value) => value.into_bound_py_any(py),
        Cell::Text(text) => text.into_bound_py_any(py),
        Cell::Word(text) => text.into_bound_py_any(py),
    }
}

/// Returns cells as a list of Python values.
pub(crate) fn to_objects<'py>(py: Python<'py>, cells: &[Cell]) -> PyResult<Bound<'py, PyList>> {
    let objects = cells.iter().map(|cell| to_object(py, cell));
    PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// Returns Python values as cells of these kinds. `None` is an empty cell.
pub(crate) fn to_cells(values: &[Bound<'_, PyAny>], kinds: &[Kind]) -> PyResult<Vec<Cell>> {
    let cell = |(value, kind): (&Bound<'_, PyAny>, &Kind)| {
        if value.is_none() {
            return Ok(Cell::Empty);
        }
        Ok(match kind {
            Kind::Whole => Cell::Whole(value.extract()?),
            Kind::Number => Cell::Number(value.extract()?),
            Kind::Text => Cell::Text(value.extract()?),
        })
    };
    values.iter().zip(kinds).map(cell).collect()
}
