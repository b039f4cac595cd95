//! Data files: tables with typed columns, as CSV or Parquet.
//!
//! The extension of the file's name selects the format. CSV is compressed if the name ends in `.gz`
//! or `.zst`. Both formats are written row by row in bounded memory, and the file gets its name
//! once it is complete. Without the feature `parquet`, Parquet files are refused.

mod csv;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_reader;

use std::path::{Path, PathBuf};

use crate::error::Result;
pub(crate) use csv::write_cell;
#[cfg(feature = "parquet")]
pub use parquet_reader::read_parquet;

use csv::CsvFile;

/// The type of a column's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers: INT64 in Parquet.
    Whole,
    /// Numbers: DOUBLE in Parquet.
    Number,
    /// Texts: UTF-8 in Parquet.
    Text,
}

/// A column of a data file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The name, which is unique in the file.
    pub name: String,
    /// The type of the values.
    pub kind: Kind,
    /// The unit of the values, if they have one.
    pub unit: Option<&'static str>,
    /// Whether cells can be empty.
    pub optional: bool,
}

/// A value in a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Empty,
    /// A value of [`Kind::Whole`].
    Whole(i64),
    /// A value of [`Kind::Number`].
    Number(f64),
    /// A value of [`Kind::Text`].
    Text(String),
    /// A static text, which needs no allocation.
    Word(&'static str),
}

/// A data file that is being written.
pub struct DataFile(Form);

enum Form {
    Csv(Box<CsvFile>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::ParquetFile>),
}

impl Column {
    /// Returns a column without empty cells.
    pub fn new(name: impl Into<String>, kind: Kind) -> Column {
        Column {
            name: name.into(),
            kind,
            unit: None,
            optional: false,
        }
    }

    /// Sets the unit.
    #[must_use]
    pub fn unit(mut self, unit: Option<&'static str>) -> Column {
        self.unit = unit;
        self
    }

    /// Sets whether cells can be empty.
    #[must_use]
    pub fn optional(mut self, optional: bool) -> Column {
        self.optional = optional;
        self
    }
}

impl DataFile {
    /// Begins a file. `facts` are names and values about the whole file; CSV omits them.
    ///
    /// # Errors
    /// Returns an error if the file cannot be created, or if this build cannot write its format.
    pub fn create(path: &Path, columns: &[Column], facts: &[(String, String)]) -> Result<DataFile> {
        if !is_parquet(path) {
            let file = CsvFile::create(path, columns)?;
            return Ok(DataFile(Form::Csv(Box::new(file))));
        }
        #[cfg(feature = "parquet")]
        return parquet::ParquetFile::create(path, columns, facts)
            .map(|file| DataFile(Form::Parquet(Box::new(file))));
        #[cfg(not(feature = "parquet"))]
        {
            let _ = facts;
            Err(crate::error::RunError::at(path.display(), NO_PARQUET))
        }
    }

    /// Adds a row with one cell for each column.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    ///
    /// # Panics
    /// Panics if a cell of a Parquet file does not have the type of its column, or is empty in a
    /// column that is not optional.
    pub fn row(&mut self, cells: &[Cell]) -> Result<()> {
        match &mut self.0 {
            Form::Csv(file) => file.row(cells),
            #[cfg(feature = "parquet")]
            Form::Parquet(file) => file.row(cells),
        }
    }

    /// Completes the file and gives it its name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written or named.
    pub fn finish(self) -> Result<()> {
        match self.0 {
            Form::Csv(file) => file.finish(),
            #[cfg(feature = "parquet")]
            Form::Parquet(file) => file.finish(),
        }
    }
}

/// The message of a build without Parquet.
const NO_PARQUET: &str = "this build cannot write Parquet files; install a released package, \
    or build with `cargo install --path crates/traxtent --features parquet`, \
    or give a name such as log.csv.zst";

/// Returns whether the name requests a Parquet file.
pub fn is_parquet(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ending.eq_ignore_ascii_case("parquet"))
}

/// Parses the name of a data file.
///
/// # Errors
/// Returns the reason why a data file cannot have this name.
pub fn name(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if text == "-" {
        return Err("expected a file; /dev/stdout writes to standard output".to_owned());
    }
    if is_parquet(&path) {
        return match cfg!(feature = "parquet") {
            true => Ok(path),
            false => Err(NO_PARQUET.to_owned()),
        };
    }
    if !is_csv(&path) {
        return Err(
            "expected a name such as log.csv, log.csv.gz, log.csv.zst or log.parquet".to_owned(),
        );
    }
    Ok(path)
}

/// Returns whether a CSV file may have this name. Apart from an optional final `.gz` or `.zst`, the
/// name must end in `.csv` or have no extension. An existing path that is not a regular file, such
/// as a device, may have any name.
pub fn is_csv(path: &Path) -> bool {
    let is = |path: &Path, known: &[&str]| {
        let ending = path.extension().and_then(|ending| ending.to_str());
        ending.is_some_and(|ending| known.contains(&ending))
    };
    let plain = match is(path, &["gz", "zst"]) {
        true => path.with_extension(""),
        false => path.to_owned(),
    };
    let special = path.metadata().is_ok_and(|meta| !meta.is_file());
    plain.extension().is_none() || is(&plain, &["csv"]) || special
}
