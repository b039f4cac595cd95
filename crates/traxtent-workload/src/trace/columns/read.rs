//! Lines of a trace with specified columns.

use std::collections::BTreeMap;
use std::ops::Range;

use super::spec::{
    BlockColumn, BlockUnit, ColumnFilter, ColumnId, ColumnSpec, Delimiter, TimeColumn,
};
use super::{PLACE_BYTES, PlacedDrive};
use crate::trace::TraceRecord;
use crate::trace::error::TraceError;
use crate::trace::fields::{TIME_MAX_PS, decimal, wide_decimal};
use crate::trace::lines::Line;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Span};

/// The maximum number of devices with names.
const NAMES_MAX: usize = 16_384;

/// The longest name of a device, in bytes.
const NAME_BYTES_MAX: usize = 4096;

/// A column, by its index.
#[derive(Clone, Copy)]
struct Place {
    key: &'static str,
    index: usize,
}

/// The places of the specified columns in a line.
pub(super) struct Layout {
    pub(super) delimiter: Delimiter,
    arrival: Option<Place>,
    completion: Option<Place>,
    response: Option<Place>,
    pause: Option<Place>,
    op: Place,
    address: Place,
    length: Place,
    fua: Option<Place>,
    device: Option<Place>,
    file: Option<Place>,
    filters: Vec<Place>,
    /// The last column that is used.
    last: Place,
}

impl Layout {
    /// Finds the columns, and returns whether the first line is a heading.
    pub(super) fn new(spec: &ColumnSpec, line: &Line<'_>) -> Result<(Layout, bool), TraceError> {
        let text = line.text.trim_start_matches('\u{feff}');
        let delimiter = spec.delimiter.unwrap_or_else(|| delimiter_of(text));
        let mut ranges = Vec::new();
        split(text, delimiter, &mut ranges);
        let cells: Vec<&str> = ranges.iter().map(|range| &text[range.clone()]).collect();
        let mut has_names = false;
        let mut last = None;
        let mut place = |key: &'static str, column: &ColumnId| {
            let index = match column {
                ColumnId::Number(number) => usize::from(number.get()) - 1,
                ColumnId::Name(name) => {
                    has_names = true;
                    let found = cells.iter().position(|cell| cell == name);
                    found.ok_or_else(|| {
                        let expected = format!(
                            "the first line has no column {name:?}; its columns are {}",
                            cells.join(", ")
                        );
                        line.shape(expected)
                    })?
                }
            };
            let place = Place { key, index };
            if last.is_none_or(|last: Place| last.index < index) {
                last = Some(place);
            }
            Ok(place)
        };
        let mut time = |key, column: &Option<TimeColumn>| {
            let column = column.as_ref();
            column.map(|time| place(key, &time.column)).transpose()
        };
        let arrival = time("time", &spec.arrival)?;
        let completion = time("completed", &spec.completion)?;
        let response = time("response", &spec.response)?;
        let pause = time("pause", &spec.pause)?;
        let address = place(spec.address.key, &spec.address.column)?;
        let length = place(spec.length.key, &spec.length.column)?;
        let op = place("op", &spec.op)?;
        let mut optional = |key, column: &Option<ColumnId>| {
            let column = column.as_ref();
            column.map(|column| place(key, column)).transpose()
        };
        let fua = optional("fua", &spec.fua)?;
        let device = optional("device", &spec.device)?;
        let file = optional("file", &spec.file)?;
        let filters = spec.filters.iter();
        let filters = filters
            .map(|filter| place("where", &filter.column))
            .collect::<Result<_, _>>()?;
        let numbers = [Some(address), Some(length), arrival, completion, response];
        let is_number = |place: &Place| {
            let cell = cells.get(place.index).copied().unwrap_or_default();
            cell.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '.' | '-'))
        };
        let has_numbers = numbers.iter().flatten().any(is_number);
        let layout = Layout {
            delimiter,
            arrival,
            completion,
            response,
            pause,
            op,
            address,
            length,
            fua,
            device,
            file,
            filters,
            last: last.expect("op is a column"),
        };
        let is_heading = has_names || (!has_numbers && cells.len() > layout.last.index);
        Ok((layout, is_heading))
    }

    /// The number of columns that a line needs.
    pub(super) fn columns(&self) -> usize {
        self.last.index + 1
    }

    /// Returns a line's values.
    pub(super) fn row<'a>(
        &'a self,
        spec: &'a ColumnSpec,
        line: &'a Line<'a>,
        ranges: &'a [Range<usize>],
    ) -> Result<Row<'a>, TraceError> {
        if ranges.len() < self.columns() {
            return Err(line.shape(format!(
                "expected at least {} columns, for {}; found {}",
                self.columns(),
                self.last.key,
                ranges.len()
            )));
        }
        Ok(Row {
            layout: self,
            spec,
            line,
            ranges,
        })
    }
}

/// Returns the separator that a line uses.
fn delimiter_of(text: &str) -> Delimiter {
    let found = [',', ';', '\t', '|']
        .into_iter()
        .find(|&c| text.contains(c));
    found.map_or(Delimiter::Blanks, Delimiter::Char)
}

/// Finds the values of a line, without blanks around them and without quotes.
pub(super) fn split(text: &str, delimiter: Delimiter, ranges: &mut Vec<Range<usize>>) {
    ranges.clear();
    let mut start = 0;
    loop {
        let rest = &text[start..];
        let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        // A tab may be the separator itself.
        let blanks = match delimiter {
            Delimiter::Char('\t') => rest.len() - rest.trim_start_matches(' ').len(),
            _ => blanks,
        };
        start += blanks;
        let rest = &text[start..];
        if rest.is_empty() && delimiter == Delimiter::Blanks {
            return;
        }
        let separates = |c: char| match delimiter {
            Delimiter::Char(one) => c == one,
            Delimiter::Blanks => matches!(c, ' ' | '\t'),
        };
        let quoted = rest.strip_prefix('"').and_then(|inner| inner.find('"'));
        let (value, after) = match quoted {
            Some(length) => (start + 1..start + 1 + length, length + 2),
            None => {
                let end = rest.find(separates).unwrap_or(rest.len());
                let length = rest[..end].trim_end().len();
                (start..start + length, end)
            }
        };
        ranges.push(value);
        match rest[after..].find(separates) {
            Some(gap) => {
                let separator = rest[after + gap..].chars().next().map_or(0, char::len_utf8);
                start += after + gap + separator;
            }
            None => return,
        }
    }
}

/// A line and the meanings of its values.
pub(super) struct Row<'a> {
    layout: &'a Layout,
    spec: &'a ColumnSpec,
    line: &'a Line<'a>,
    ranges: &'a [Range<usize>],
}

impl<'a> Row<'a> {
    fn text(&self, place: Place) -> &'a str {
        &self.line.text[self.ranges[place.index].clone()]
    }

    fn wrong(&self, place: Place, expected: impl Into<String>) -> TraceError {
        let field = format!("{} (column {})", place.key, place.index + 1);
        self.line.field(field, self.text(place), expected)
    }

    /// Returns, for each condition, which of its values the line has; `None` if it has none.
    pub(super) fn conditions(&self) -> impl Iterator<Item = Option<usize>> {
        let filters = self.layout.filters.iter().zip(&self.spec.filters);
        filters.map(|(&place, filter)| {
            let value = self.text(place);
            filter.values.iter().position(|wanted| wanted == value)
        })
    }

    /// Returns the device's name.
    pub(super) fn device(&self) -> Option<&'a str> {
        self.layout.device.map(|place| self.text(place))
    }

    /// Returns the record, and the time at which it arrived if the columns give one.
    pub(super) fn record(
        &self,
        drive: PlacedDrive,
    ) -> Result<(Option<i128>, TraceRecord), TraceError> {
        let Layout {
            arrival,
            completion,
            response,
            pause,
            ..
        } = *self.layout;
        let spec = self.spec;
        let arrival = self.instant(arrival, spec.arrival.as_ref())?;
        let completed = self.instant(completion, spec.completion.as_ref())?;
        let mut measured = self.span(response, spec.response.as_ref())?;
        let pause = self.span(pause, spec.pause.as_ref())?;
        if let (Some(arrival), Some(end), Some(place)) = (arrival, completed, completion) {
            let span = u64::try_from(end - arrival)
                .ok()
                .filter(|&span| span <= TIME_MAX_PS);
            measured = Some(Span(span.ok_or_else(|| {
                let expected = format!(
                    "expected at most {} s from the arrival, and not before it",
                    TIME_MAX_PS / 1_000_000_000_000
                );
                self.wrong(place, expected)
            })?));
        }
        let arrival = match (arrival, completed, measured) {
            (None, Some(end), Some(measured)) => Some(end - i128::from(measured.0)),
            (None, Some(_), None) => {
                let place = response.expect("completed needs response");
                return Err(self.wrong(
                    place,
                    "expected a time, because completed= gives no arrival without it",
                ));
            }
            (arrival, ..) => arrival,
        };
        let record = TraceRecord {
            arrival: None,
            pause,
            completed: None,
            measured,
            device: 0,
            request: self.request(drive)?,
        };
        Ok((arrival, record))
    }

    /// Returns a time from any origin, in picoseconds, or `None` if there is no such column.
    fn instant(
        &self,
        place: Option<Place>,
        column: Option<&TimeColumn>,
    ) -> Result<Option<i128>, TraceError> {
        let Some((place, column)) = place.zip(column) else {
            return Ok(None);
        };
        let ps = wide_decimal(self.text(place), column.unit.ps());
        match ps.and_then(|ps| i128::try_from(ps).ok()) {
            Some(ps) => Ok(Some(ps)),
            None => {
                let most = u64::MAX;
                let expected = format!("expected a time from 0 to {most} {}", column.unit);
                Err(self.wrong(place, expected))
            }
        }
    }

    /// Returns a length of time, or `None` if there is no such column or its value is empty.
    fn span(
        &self,
        place: Option<Place>,
        column: Option<&TimeColumn>,
    ) -> Result<Option<Span>, TraceError> {
        let Some((place, column)) = place.zip(column) else {
            return Ok(None);
        };
        let text = self.text(place);
        if text.is_empty() {
            return Ok(None);
        }
        let unit_ps = column.unit.ps();
        match decimal(text, unit_ps).filter(|&ps| ps <= TIME_MAX_PS) {
            Some(ps) => Ok(Some(Span(ps))),
            None => {
                let most = TIME_MAX_PS / unit_ps;
                let expected = format!("expected a time from 0 to {most} {}", column.unit);
                Err(self.wrong(place, expected))
            }
        }
    }

    fn op(&self) -> Result<Op, TraceError> {
        let text = self.text(self.layout.op);
        let is_any = |values: &[&str]| values.iter().any(|value| text.eq_ignore_ascii_case(value));
        let is_listed = |values: &[String]| values.iter().any(|value| text == value);
        let (reads, writes) = (&self.spec.reads, &self.spec.writes);
        if is_listed(reads) || (reads.is_empty() && is_any(&["read", "r", "0"])) {
            Ok(Op::Read)
        } else if is_listed(writes) || (writes.is_empty() && is_any(&["write", "w", "1"])) {
            Ok(Op::Write)
        } else if is_any(&["flush"]) {
            Ok(Op::Flush)
        } else if is_any(&["verify"]) {
            Ok(Op::Verify)
        } else {
            let listed = |values: &[String], usual: &str| match values {
                [] => usual.to_owned(),
                values => values.join(", "),
            };
            let expected = format!(
                "expected {} (read), {} (write), flush or verify; --where skips other lines",
                listed(reads, "R, read or 0"),
                listed(writes, "W, write or 1")
            );
            Err(self.wrong(self.layout.op, expected))
        }
    }

    fn request(&self, drive: PlacedDrive) -> Result<Request, TraceError> {
        let op = self.op()?;
        if op == Op::Flush {
            return Ok(Request::flush());
        }
        let (address, length) = (&self.spec.address, &self.spec.length);
        let (first, end) = {
            let first = self.bytes(self.layout.address, address, drive)?;
            (
                first,
                first + self.bytes(self.layout.length, length, drive)?,
            )
        };
        let length = u64::try_from(end - first).unwrap_or(u64::MAX);
        if length == 0 {
            return Err(self.line.empty(self.spec.length.key));
        }
        let mut request = self.line.bytes(op, first, length, drive.sector_bytes)?;
        if let Some(place) = self.layout.file {
            request.lbn = placed(self.text(place), &request, drive);
        }
        if let Some(place) = self.layout.fua {
            request.fua = match self.text(place) {
                "0" | "false" | "" => false,
                "1" | "true" => true,
                _ => return Err(self.wrong(place, "expected 0 or 1")),
            };
        }
        Ok(request)
    }

    /// Returns an address or a length in bytes.
    fn bytes(
        &self,
        place: Place,
        column: &BlockColumn,
        drive: PlacedDrive,
    ) -> Result<u128, TraceError> {
        let unit = match column.unit {
            BlockUnit::Sector => u128::from(drive.sector_bytes),
            BlockUnit::Bytes(bytes) => u128::from(bytes.get()),
        };
        let value = self.text(place).parse::<u64>();
        let value = value.ok().filter(|&value| value <= i64::MAX as u64);
        let value = value.ok_or_else(|| {
            self.wrong(
                place,
                format!("expected a whole number from 0 to {}", i64::MAX),
            )
        })?;
        Ok(u128::from(value) * unit)
    }
}

/// Returns the first sector of a request whose address counts within a file or block.
fn placed(file: &str, request: &Request, drive: PlacedDrive) -> Lbn {
    let step = (PLACE_BYTES / u64::from(drive.sector_bytes)).max(1);
    let places = (drive.capacity / step).max(1);
    let start = hash(file) % places * step;
    let first = start.saturating_add(request.lbn.0);
    match drive.capacity {
        0 => request.lbn,
        capacity => {
            let last = capacity.saturating_sub(u64::from(request.sectors));
            Lbn((first % capacity).min(last))
        }
    }
}

/// FNV-1a of 64 bits (Fowler, Noll and Vo), with a final mix, because only the remainder is used.
fn hash(text: &str) -> u64 {
    const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    let hash = text.bytes().fold(BASIS, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(PRIME)
    });
    hash ^ (hash >> 32)
}

/// The lines that fulfil the conditions.
pub(super) struct Selection {
    /// For each condition and each of its values, whether a line had it.
    is_met: Vec<Vec<bool>>,
    has_lines: bool,
    has_selected: bool,
}

impl Selection {
    pub(super) fn new(spec: &ColumnSpec) -> Selection {
        Selection {
            is_met: spec
                .filters
                .iter()
                .map(|filter| vec![false; filter.values.len()])
                .collect(),
            has_lines: false,
            has_selected: false,
        }
    }

    /// Returns whether a line fulfils all conditions.
    pub(super) fn selects(&mut self, row: &Row<'_>) -> bool {
        self.has_lines = true;
        let mut all = true;
        for (is_met, found) in self.is_met.iter_mut().zip(row.conditions()) {
            match found {
                Some(value) => is_met[value] = true,
                None => all = false,
            }
        }
        self.has_selected |= all;
        all
    }

    /// Returns an error for each condition of which no line had some values; none if no line was
    /// selected, which [`Selection::check`] reports.
    pub(super) fn absent(&self, spec: &ColumnSpec) -> Vec<TraceError> {
        let filters = self.is_met.iter().zip(&spec.filters);
        let filters = filters.filter(|_| self.has_selected);
        let absent = filters.filter_map(|(is_met, filter)| {
            let values = filter.values.iter().zip(is_met).enumerate();
            let absent = values.filter(|(at, (value, is_met))| {
                // Only the first of equal values is met.
                !**is_met && !filter.values[..*at].contains(value)
            });
            let absent: Vec<&str> = absent.map(|(_, (value, _))| value.as_str()).collect();
            (!absent.is_empty()).then(|| no_line_has(filter, &absent))
        });
        absent.collect()
    }

    /// Checks at the end of the file that a line was selected, if there were any.
    pub(super) fn check(&self, spec: &ColumnSpec) -> Result<(), TraceError> {
        if self.has_selected || !self.has_lines {
            return Ok(());
        }
        let mut filters = self.is_met.iter().zip(&spec.filters);
        Err(match filters.find(|(is_met, _)| !is_met.contains(&true)) {
            Some((_, filter)) => {
                let values: Vec<&str> = filter.values.iter().map(String::as_str).collect();
                no_line_has(filter, &values)
            }
            None => TraceError::NoLineSelected,
        })
    }
}

/// Returns the error for `values` of a condition that no line has.
fn no_line_has(filter: &ColumnFilter, values: &[&str]) -> TraceError {
    TraceError::NoLineHas {
        condition: format!("{}={}", filter.column, values.join(",")),
        values: values.len(),
    }
}

/// The numbers of devices: their own if the first one is a number, otherwise in order of
/// appearance.
#[derive(Default)]
pub(super) struct Names {
    /// Whether devices are numbers, once the first one has been read.
    are_numbers: Option<bool>,
    names: BTreeMap<String, u32>,
}

impl Names {
    pub(super) fn number(&mut self, line: &Line<'_>, name: &str) -> Result<u32, TraceError> {
        let own = name.parse::<u32>().ok();
        if *self.are_numbers.get_or_insert(own.is_some()) {
            return own.ok_or_else(|| {
                let expected = "expected a number below 2^32, as in the first request";
                line.field("device", name, expected)
            });
        }
        if let Some(&number) = self.names.get(name) {
            return Ok(number);
        }
        if self.names.len() == NAMES_MAX || name.len() > NAME_BYTES_MAX {
            let expected = format!(
                "expected at most {NAMES_MAX} devices with names of at most {NAME_BYTES_MAX} bytes"
            );
            return Err(line.field("device", name, expected));
        }
        let number = self.names.len() as u32;
        self.names.insert(name.to_owned(), number);
        Ok(number)
    }

    /// The names that were numbered.
    pub(super) fn numbered(&self) -> &BTreeMap<String, u32> {
        &self.names
    }
}
