//! Data files as CSV (RFC 4180, with lines that end in a line feed).

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use traxtent_io::CompressedWriter;

use super::{Cell, Column};
use crate::atomic_file::AtomicFile;
use crate::error::{Result, RunError};

/// A CSV file that is being written.
pub(crate) struct CsvFile {
    path: PathBuf,
    out: CompressedWriter<AtomicFile>,
    line: Vec<u8>,
}

impl CsvFile {
    /// Begins a file with a line of column names.
    pub(super) fn create(path: &Path, columns: &[Column]) -> Result<CsvFile> {
        let mut file = CsvFile {
            path: path.to_owned(),
            out: CompressedWriter::new(AtomicFile::create(path)?, path),
            line: Vec::new(),
        };
        for (index, column) in columns.iter().enumerate() {
            separate(&mut file.line, index);
            text(&mut file.line, &column.name);
        }
        file.end_line()?;
        Ok(file)
    }

    pub(super) fn row(&mut self, cells: &[Cell]) -> Result<()> {
        for (index, cell) in cells.iter().enumerate() {
            separate(&mut self.line, index);
            write_cell(&mut self.line, cell).expect("writing to memory cannot fail");
        }
        self.end_line()
    }

    pub(super) fn finish(self) -> Result<()> {
        let finished = self.out.finish();
        finished
            .map_err(|error| RunError::file(&self.path, &error))?
            .finish()
    }

    fn end_line(&mut self) -> Result<()> {
        self.line.push(b'\n');
        let written = self.out.write_all(&self.line);
        self.line.clear();
        written.map_err(|error| RunError::file(&self.path, &error))
    }
}

fn separate(line: &mut Vec<u8>, index: usize) {
    if index > 0 {
        line.push(b',');
    }
}

/// Writes a value as CSV.
pub(crate) fn write_cell(line: &mut Vec<u8>, cell: &Cell) -> io::Result<()> {
    match cell {
        Cell::Empty => Ok(()),
        Cell::Whole(value) => write!(line, "{value}"),
        Cell::Number(value) => write!(line, "{value}"),
        Cell::Text(value) => {
            text(line, value);
            Ok(())
        }
        Cell::Word(value) => {
            text(line, value);
            Ok(())
        }
    }
}

/// Writes a text, quoted if necessary.
fn text(line: &mut Vec<u8>, value: &str) {
    if value.contains([',', '"', '\n', '\r']) {
        line.push(b'"');
        line.extend(value.replace('"', "\"\"").bytes());
        line.push(b'"');
    } else {
        line.extend(value.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a text with separators and quotes quoted, and are other cells written as they are?
    #[test]
    fn cells() {
        for (cell, expected) in [
            (Cell::Empty, ""),
            (Cell::Whole(-3), "-3"),
            (Cell::Number(0.1), "0.1"),
            (Cell::Text("a b".to_owned()), "a b"),
            (Cell::Text("a,\"b\"".to_owned()), "\"a,\"\"b\"\"\""),
            (Cell::Word("read"), "read"),
        ] {
            let mut line = Vec::new();
            write_cell(&mut line, &cell).unwrap();
            assert_eq!(line, expected.as_bytes());
        }
    }
}
