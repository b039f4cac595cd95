//! A text file with one request per line, whose columns a [`ColumnSpec`] names.
//!
//! Columns are separated by one character or by blanks. A value in double quotes may hold the
//! separator. The first line gives the names if a column is specified by name; otherwise it is
//! skipped if it has all the columns, but none of its addresses, lengths, arrival, completion and
//! response times begins like a number.
//!
//! A request arrives at its `time`, or at its completion minus its response time. Records are
//! returned in order of arrival (see the module `reorder`), because files are often written in
//! order of completion. Without either column, they are returned in the order of the file.
//!
//! Traces without disk addresses (`file`): each file or block is placed at a multiple of
//! [`PLACE_BYTES`] that a hash of its name determines, and is contiguous. Offsets beyond the end of
//! the drive continue at its beginning.

mod read;
mod spec;

use std::collections::BTreeMap;
use std::io::BufRead;

pub use spec::{
    BLOCK_BYTES_MAX, BlockColumn, BlockUnit, COLUMN_KEYS, COLUMN_NUMBER_MAX, ColumnError,
    ColumnFilter, ColumnId, ColumnSpec, ColumnText, Delimiter, TimeColumn, TimeUnit,
};

use super::TraceRecord;
use super::error::TraceError;
use super::lines::TraceInput;
use super::reorder::Reorder;
use read::{Layout, Names, Selection, split};
use std::ops::Range;
use traxtent_units::Span;

/// The alignment of files that a hash places.
pub const PLACE_BYTES: u64 = 1 << 20;

/// The drive on which requests are placed.
#[derive(Clone, Copy)]
pub(super) struct PlacedDrive {
    /// The size of a logical sector.
    pub(super) sector_bytes: u32,
    /// The number of sectors, or 0 if it is unknown.
    pub(super) capacity: u64,
}

pub(super) struct Columns {
    spec: ColumnSpec,
    drive: PlacedDrive,
    layout: Option<Layout>,
    ranges: Vec<Range<usize>>,
    devices: Names,
    selection: Selection,
    pub(super) held: Reorder,
    ended: bool,
}

impl Columns {
    pub(super) fn new(spec: ColumnSpec, drive: PlacedDrive) -> Columns {
        Columns {
            selection: Selection::new(&spec),
            spec,
            drive,
            layout: None,
            ranges: Vec::new(),
            devices: Names::default(),
            held: Reorder::default(),
            ended: false,
        }
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        while !self.ended && !self.held.is_full() {
            let Some(line) = lines.next_line()? else {
                self.ended = true;
                self.selection.check(&self.spec)?;
                break;
            };
            let layout = match &self.layout {
                Some(layout) => layout,
                None => {
                    let (layout, is_heading) = Layout::new(&self.spec, &line)?;
                    let layout = self.layout.insert(layout);
                    if is_heading {
                        continue;
                    }
                    layout
                }
            };
            split(line.text, layout.delimiter, &mut self.ranges);
            // Trimming the end of the line has removed the tabs before empty last columns.
            while layout.delimiter == Delimiter::Char('\t') && self.ranges.len() < layout.columns()
            {
                self.ranges.push(line.text.len()..line.text.len());
            }
            let row = layout.row(&self.spec, &line, &self.ranges)?;
            if !self.selection.selects(&row) {
                continue;
            }
            let (at_ps, mut record) = row.record(self.drive)?;
            if let Some(device) = row.device() {
                record.device = self.devices.number(&line, device)?;
            }
            match at_ps {
                Some(at_ps) => self.held.push(at_ps, record, line.place),
                None => return Ok(Some(record)),
            }
        }
        self.held.pop(lines)
    }

    /// The names of devices so far, with their numbers; empty if the devices are numbers.
    pub(super) fn device_names(&self) -> &BTreeMap<String, u32> {
        self.devices.numbered()
    }

    /// Returns an error for each condition of which no line had some values; none until the file
    /// has ended with a selected line.
    pub(super) fn absent_values(&self) -> Vec<TraceError> {
        match self.ended {
            true => self.selection.absent(&self.spec),
            false => Vec::new(),
        }
    }

    pub(super) fn records_pauses(&self) -> bool {
        self.spec.pause.is_some()
    }

    /// Returns the time by which the record returned last precedes the first one; 0 if it does not.
    pub(super) fn early(&self) -> Span {
        self.held.early
    }
}
