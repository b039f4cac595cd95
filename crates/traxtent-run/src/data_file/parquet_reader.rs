//! Parquet files of [`DataFile`](super::DataFile), read as a whole.

use std::fs::File;
use std::path::Path;

use parquet::basic::{Repetition, Type as Physical};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::ColumnDescriptor;

use super::{Cell, Column, Kind};
use crate::error::{Result, RunError};

/// Reads the columns and rows of a file that [`DataFile`](super::DataFile) has written. Units and
/// facts are not read.
///
/// # Errors
/// Returns an error if the file cannot be read, or if it has types that such a file does not have.
///
/// # Panics
/// May panic if the file is damaged: the crate `parquet` does not check everything. Compare the
/// file with a checksum first.
pub fn read_parquet(path: &Path) -> Result<(Vec<Column>, Vec<Vec<Cell>>)> {
    let file = File::open(path).map_err(|error| RunError::file(path, &error))?;
    let invalid = |error: ParquetError| RunError::at(path.display(), error);
    let reader = SerializedFileReader::new(file).map_err(invalid)?;
    let schema = reader.metadata().file_metadata().schema_descr_ptr();
    let columns = schema.columns().iter().map(|column| {
        let column = self::column(column);
        column.ok_or_else(|| RunError::at(path.display(), UNEXPECTED))
    });
    let columns = columns.collect::<Result<Vec<Column>>>()?;
    let mut rows = Vec::new();
    for row in reader.get_row_iter(None).map_err(invalid)? {
        let row = row.map_err(invalid)?;
        let cells = row.get_column_iter().map(|(_, field)| cell(field));
        let cells: Option<Vec<Cell>> = cells.collect();
        rows.push(cells.ok_or_else(|| RunError::at(path.display(), UNEXPECTED))?);
    }
    Ok((columns, rows))
}

const UNEXPECTED: &str = "is not a table that traxtent has written: a column has another type";

fn column(column: &ColumnDescriptor) -> Option<Column> {
    let kind = match column.physical_type() {
        Physical::INT64 => Kind::Whole,
        Physical::DOUBLE => Kind::Number,
        Physical::BYTE_ARRAY => Kind::Text,
        _ => return None,
    };
    let repetition = column.self_type().get_basic_info().repetition();
    Some(Column::new(column.name(), kind).optional(repetition == Repetition::OPTIONAL))
}

fn cell(field: &Field) -> Option<Cell> {
    match field {
        Field::Null => Some(Cell::Empty),
        Field::Long(value) => Some(Cell::Whole(*value)),
        Field::Double(value) => Some(Cell::Number(*value)),
        Field::Str(value) => Some(Cell::Text(value.clone())),
        _ => None,
    }
}
