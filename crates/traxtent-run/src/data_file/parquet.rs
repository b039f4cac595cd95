//! Data files as Parquet, written by the crate `parquet` without Arrow.
//!
//! Rows are collected in memory until a row group is full. The file's metadata holds the facts
//! given at its creation, and `units`: a JSON object with the unit of each column that has one.
//! Columns are compressed with Snappy. Dictionaries are used for whole numbers and texts only: the
//! times of a log rarely repeat.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{WriterProperties, WriterPropertiesPtr};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type, TypePtr};

use super::{Cell, Column, Kind};
use crate::atomic_file::AtomicFile;
use crate::error::{FileProblem, Result, RunError};

/// The number of rows in a row group. With the 20 columns of a request log, a row group takes some
/// 26 MiB of memory before it is encoded. With up to 4 billion rows, a file has fewer than 2^15 row
/// groups, so that each can have an ordinal, for which the format has 16 bits.
const GROUP_ROWS: usize = 1 << 17;

/// The largest number of distinct texts per column that are kept for reuse.
const TEXTS_KEPT: usize = 16;

/// A Parquet file that is being written.
pub(crate) struct ParquetFile {
    path: PathBuf,
    writer: SerializedFileWriter<AtomicFile>,
    columns: Vec<Buffer>,
    rows: usize,
}

/// The cells of a column in the unfinished row group.
struct Buffer {
    name: String,
    /// For each row, whether it has a value (1 or 0); `None` if all rows must have one.
    present: Option<Vec<i16>>,
    values: Values,
}

enum Values {
    Whole(Vec<i64>),
    Number(Vec<f64>),
    Text {
        values: Vec<ByteArray>,
        kept: Vec<ByteArray>,
    },
}

impl ParquetFile {
    pub(super) fn create(
        path: &Path,
        columns: &[Column],
        facts: &[(String, String)],
    ) -> Result<ParquetFile> {
        let fail = |error| failure(path, error);
        let schema = schema(columns).map_err(fail)?;
        let writer = SerializedFileWriter::new(
            AtomicFile::create(path)?,
            schema,
            properties(columns, facts),
        );
        Ok(ParquetFile {
            path: path.to_owned(),
            writer: writer.map_err(fail)?,
            columns: columns.iter().map(Buffer::new).collect(),
            rows: 0,
        })
    }

    pub(super) fn row(&mut self, cells: &[Cell]) -> Result<()> {
        debug_assert_eq!(cells.len(), self.columns.len());
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            column.push(cell);
        }
        self.rows += 1;
        if self.rows == GROUP_ROWS {
            self.write_group()?;
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let file = self.writer.into_inner();
        file.map_err(|error| failure(&self.path, error))?.finish()
    }

    fn write_group(&mut self) -> Result<()> {
        let written = self.writer.next_row_group().and_then(|mut group| {
            for column in &mut self.columns {
                column.write(&mut group)?;
            }
            group.close().map(drop)
        });
        self.rows = 0;
        written.map_err(|error| failure(&self.path, error))
    }
}

impl Buffer {
    fn new(column: &Column) -> Buffer {
        Buffer {
            name: column.name.clone(),
            present: column.optional.then(Vec::new),
            values: match column.kind {
                Kind::Whole => Values::Whole(Vec::new()),
                Kind::Number => Values::Number(Vec::new()),
                Kind::Text => Values::Text {
                    values: Vec::new(),
                    kept: Vec::new(),
                },
            },
        }
    }

    fn push(&mut self, cell: &Cell) {
        match (&mut self.values, cell) {
            (_, Cell::Empty) => assert!(self.present.is_some(), "{} has no value", self.name),
            (Values::Whole(values), Cell::Whole(value)) => values.push(*value),
            (Values::Number(values), Cell::Number(value)) => values.push(*value),
            (Values::Text { values, kept }, Cell::Text(text)) => values.push(shared(kept, text)),
            (Values::Text { values, kept }, Cell::Word(text)) => values.push(shared(kept, text)),
            _ => unreachable!("{}: {cell:?} has another type", self.name),
        }
        if let Some(present) = &mut self.present {
            present.push(i16::from(*cell != Cell::Empty));
        }
    }

    /// Writes the cells as the next column of a row group, and empties the buffer.
    fn write(&mut self, group: &mut SerializedRowGroupWriter<'_, AtomicFile>) -> Written {
        let present = self.present.as_deref();
        match &mut self.values {
            Values::Whole(values) => write::<Int64Type>(group, values, present)?,
            Values::Number(values) => write::<DoubleType>(group, values, present)?,
            Values::Text { values, .. } => write::<ByteArrayType>(group, values, present)?,
        }
        if let Some(present) = &mut self.present {
            present.clear();
        }
        Ok(())
    }
}

type Written = Result<(), ParquetError>;

fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, AtomicFile>,
    values: &mut Vec<T::T>,
    present: Option<&[i16]>,
) -> Written {
    let mut column = group.next_column()?.expect("the schema has all columns");
    column.typed::<T>().write_batch(values, present, None)?;
    values.clear();
    column.close()
}

/// Returns `text` as a byte array, which shares the memory of an equal kept text if there is one.
fn shared(kept: &mut Vec<ByteArray>, text: &str) -> ByteArray {
    if let Some(known) = kept.iter().find(|known| known.data() == text.as_bytes()) {
        return known.clone();
    }
    let made = ByteArray::from(text);
    if kept.len() == TEXTS_KEPT {
        kept.clear();
    }
    kept.push(made.clone());
    made
}

fn schema(columns: &[Column]) -> Result<TypePtr, ParquetError> {
    let field = |column: &Column| {
        let physical = match column.kind {
            Kind::Whole => Physical::INT64,
            Kind::Number => Physical::DOUBLE,
            Kind::Text => Physical::BYTE_ARRAY,
        };
        let repetition = if column.optional {
            Repetition::OPTIONAL
        } else {
            Repetition::REQUIRED
        };
        let mut field =
            Type::primitive_type_builder(&column.name, physical).with_repetition(repetition);
        if column.kind == Kind::Text {
            field = field
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8);
        }
        field.build().map(Arc::new)
    };
    let fields = columns.iter().map(field).collect::<Result<_, _>>()?;
    let root = Type::group_type_builder("rows").with_fields(fields);
    root.build().map(Arc::new)
}

fn properties(columns: &[Column], facts: &[(String, String)]) -> WriterPropertiesPtr {
    let units: serde_json::Map<String, serde_json::Value> = columns
        .iter()
        .filter_map(|column| Some((column.name.clone(), column.unit?.into())))
        .collect();
    let units = serde_json::Value::Object(units).to_string();
    let facts = facts.iter().cloned().chain([("units".to_owned(), units)]);
    let facts = facts.map(|(key, value)| KeyValue::new(key, value));
    let mut properties = WriterProperties::builder()
        .set_created_by(concat!("traxtent ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_compression(Compression::SNAPPY)
        .set_key_value_metadata(Some(facts.collect()));
    for column in columns {
        let path = ColumnPath::new(vec![column.name.clone()]);
        properties = properties.set_column_dictionary_enabled(path, column.kind != Kind::Number);
    }
    Arc::new(properties.build())
}

/// Converts an error of the Parquet writer to the error of a run. I/O errors are reported in the
/// same way as for other files.
fn failure(path: &Path, error: ParquetError) -> RunError {
    let problem = |error: &dyn std::fmt::Display| {
        FileProblem::new(format!("{}: {error}", path.display()), path, None)
    };
    match error {
        ParquetError::External(inner) => match inner.downcast::<io::Error>() {
            Ok(error) => RunError::file(path, &error),
            Err(other) => RunError::Io(problem(&*other)),
        },
        other => RunError::Io(problem(&other)),
    }
}
