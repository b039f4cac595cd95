//! The specification of the columns of a text file that holds a trace.

use std::fmt;
use std::num::{NonZeroU16, NonZeroU32};
use std::str::FromStr;

use crate::trace::fields::{PS_PER_MS, PS_PER_NS, PS_PER_S, PS_PER_US};
use traxtent_units::byte_size::parse_byte_size;

/// The keys of columns and their meanings, in the order of the documentation.
pub const COLUMN_KEYS: &[(&str, &str)] = &[
    ("time", "time of arrival"),
    ("completed", "time of completion"),
    ("response", "measured response time"),
    ("pause", "time from this completion to the next request"),
    ("op", "read or write"),
    ("lbn", "first sector"),
    ("offset", "first byte"),
    ("sectors", "number of sectors"),
    ("bytes", "number of bytes"),
    ("fua", "1 if the write forces unit access, else 0"),
    ("device", "number or name of the device"),
    (
        "file",
        "name of the file or block in which the offset counts",
    ),
];

/// The largest number of a column.
pub const COLUMN_NUMBER_MAX: u16 = 1000;

/// The largest block, in bytes, that can be the unit of addresses or lengths.
pub const BLOCK_BYTES_MAX: u32 = 1 << 30;

/// A column of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ColumnId {
    /// By its number, counted from 1.
    Number(NonZeroU16),
    /// By its name in the first line of the file.
    Name(String),
}

impl fmt::Display for ColumnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ColumnId::Number(number) => number.fmt(f),
            ColumnId::Name(name) => name.fmt(f),
        }
    }
}

impl FromStr for ColumnId {
    type Err = String;

    fn from_str(text: &str) -> Result<ColumnId, String> {
        if text.is_empty() {
            return Err("expected the number or the name of a column".to_owned());
        }
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Ok(ColumnId::Name(text.to_owned()));
        }
        let number = text.parse::<NonZeroU16>().ok();
        number
            .filter(|number| number.get() <= COLUMN_NUMBER_MAX)
            .map(ColumnId::Number)
            .ok_or_else(|| format!("expected a number from 1 to {COLUMN_NUMBER_MAX}, or a name"))
    }
}

/// The unit of a column of times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// `s`
    Seconds,
    /// `ms`
    Milliseconds,
    /// `us`
    Microseconds,
    /// `100ns`, as in times of Windows.
    HundredNanoseconds,
    /// `ns`
    Nanoseconds,
}

const TIME_UNITS: &[(&str, TimeUnit, u64)] = &[
    ("s", TimeUnit::Seconds, PS_PER_S),
    ("ms", TimeUnit::Milliseconds, PS_PER_MS),
    ("us", TimeUnit::Microseconds, PS_PER_US),
    ("100ns", TimeUnit::HundredNanoseconds, 100 * PS_PER_NS),
    ("ns", TimeUnit::Nanoseconds, PS_PER_NS),
];

impl TimeUnit {
    /// The picoseconds in the unit.
    pub(super) fn ps(self) -> u64 {
        self.entry().2
    }

    fn entry(self) -> &'static (&'static str, TimeUnit, u64) {
        let mut units = TIME_UNITS.iter();
        units
            .find(|entry| entry.1 == self)
            .expect("every unit has an entry")
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.entry().0)
    }
}

/// A column of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeColumn {
    /// The column.
    pub column: ColumnId,
    /// The unit.
    pub unit: TimeUnit,
}

/// The unit of a column of addresses or lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUnit {
    /// Logical sectors of the simulated drive.
    Sector,
    /// Blocks of this many bytes.
    Bytes(NonZeroU32),
}

/// A column of addresses or lengths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockColumn {
    /// The key under which it was specified.
    pub(super) key: &'static str,
    /// The column.
    pub column: ColumnId,
    /// The unit.
    pub unit: BlockUnit,
}

/// A condition on the lines that are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnFilter {
    /// The column.
    pub column: ColumnId,
    /// The values; lines with another value are skipped.
    pub values: Vec<String>,
}

/// The separator of columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delimiter {
    /// One character.
    Char(char),
    /// One or more blanks and tabs.
    Blanks,
}

/// The columns of a trace, and the meanings of their values.
///
/// ```
/// use traxtent_workload::trace::{ColumnSpec, ColumnText};
///
/// let spec = ColumnSpec::parse(&ColumnText {
///     columns: "time=1,op=2,lbn=3,sectors=4,response=5",
///     units: &["us"],
///     ..ColumnText::default()
/// })?;
/// assert_eq!(spec.op.to_string(), "2");
/// # Ok::<(), traxtent_workload::trace::ColumnError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec {
    /// The time of arrival.
    pub arrival: Option<TimeColumn>,
    /// The time of completion.
    pub completion: Option<TimeColumn>,
    /// The measured response time.
    pub response: Option<TimeColumn>,
    /// The pause after the request.
    pub pause: Option<TimeColumn>,
    /// The operation.
    pub op: ColumnId,
    /// Values of `op` that mean a read; empty for the usual ones.
    pub reads: Vec<String>,
    /// Values of `op` that mean a write; empty for the usual ones.
    pub writes: Vec<String>,
    /// The first sector or byte.
    pub address: BlockColumn,
    /// The number of sectors or bytes.
    pub length: BlockColumn,
    /// Whether a write forces unit access.
    pub fua: Option<ColumnId>,
    /// The device.
    pub device: Option<ColumnId>,
    /// The file or block in which the address counts.
    pub file: Option<ColumnId>,
    /// The separator; `None` to recognize it from the first line.
    pub delimiter: Option<Delimiter>,
    /// Conditions on the lines that are read.
    pub filters: Vec<ColumnFilter>,
}

/// The text of a specification, as on a command line.
#[derive(Clone, Copy, Debug, Default)]
pub struct ColumnText<'a> {
    /// `KEY=COLUMN,…`, with the keys of [`COLUMN_KEYS`].
    pub columns: &'a str,
    /// The unit of all times, or `KEY=UNIT`.
    pub units: &'a [&'a str],
    /// One character, `tab` or `blanks`.
    pub delimiter: Option<&'a str>,
    /// `COLUMN=VALUE,…`.
    pub filters: &'a [&'a str],
    /// Values of `op` that mean a read.
    pub reads: &'a [&'a str],
    /// Values of `op` that mean a write.
    pub writes: &'a [&'a str],
}

/// An error in a specification of columns, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{part}: {problem}")]
pub struct ColumnError {
    /// The part of the specification, named like a field of [`ColumnText`]; `where` for `filters`.
    pub part: &'static str,
    /// The problem.
    pub problem: String,
}

impl ColumnSpec {
    /// Parses a specification.
    ///
    /// # Errors
    /// Returns an error if a part is malformed, if a required column or unit is absent, if a unit
    /// has no column, or if columns contradict each other.
    pub fn parse(text: &ColumnText<'_>) -> Result<ColumnSpec, ColumnError> {
        let mut columns = Pairs::columns(text.columns)?;
        let mut units = Units::parse(text.units, &columns)?;
        let arrival = columns.time("time", &mut units)?;
        let completion = columns.time("completed", &mut units)?;
        let response = columns.time("response", &mut units)?;
        let pause = columns.time("pause", &mut units)?;
        let address = columns.block("lbn", "offset", &mut units)?;
        let length = columns.block("sectors", "bytes", &mut units)?;
        let op = columns.take("op");
        let op = op.ok_or_else(|| error("columns", "op= is missing"))?;
        if completion.is_some() && arrival.is_none() && response.is_none() {
            return Err(error(
                "columns",
                "completed= gives arrivals only with response=; add it, or time=",
            ));
        }
        if completion.is_some() && arrival.is_some() && response.is_some() {
            return Err(error(
                "columns",
                "one of time=, completed= and response= follows from the others; omit one",
            ));
        }
        if pause.is_some() && (arrival.is_some() || completion.is_some()) {
            return Err(error(
                "columns",
                "pause= replaces time= and completed=; omit one of them",
            ));
        }
        if let Some((key, unit)) = units.unused() {
            return Err(error("units", format!("{key}={unit}: {key}= has no unit")));
        }
        Ok(ColumnSpec {
            arrival,
            completion,
            response,
            pause,
            op,
            reads: values("reads", text.reads)?,
            writes: values("writes", text.writes)?,
            address,
            length,
            fua: columns.take("fua"),
            device: columns.take("device"),
            file: columns.take("file"),
            delimiter: text.delimiter.map(delimiter).transpose()?,
            filters: text
                .filters
                .iter()
                .map(|text| filter(text))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Returns whether records have measured times.
    pub fn has_measured_times(&self) -> bool {
        self.response.is_some() || (self.arrival.is_some() && self.completion.is_some())
    }
}

fn error(part: &'static str, problem: impl Into<String>) -> ColumnError {
    ColumnError {
        part,
        problem: problem.into(),
    }
}

/// The columns that have not been taken yet.
struct Pairs(Vec<(&'static str, ColumnId)>);

impl Pairs {
    fn columns(text: &str) -> Result<Pairs, ColumnError> {
        let mut pairs: Vec<(&'static str, ColumnId)> = Vec::new();
        for item in text.split(',') {
            let wrong = |why: &str| error("columns", format!("{item}: {why}"));
            let (key, column) = item
                .split_once('=')
                .ok_or_else(|| wrong("expected KEY=COLUMN, such as time=1"))?;
            let key = key.trim();
            let known = COLUMN_KEYS.iter().find(|entry| entry.0 == key);
            let Some(&(key, _)) = known else {
                let keys: Vec<&str> = COLUMN_KEYS.iter().map(|entry| entry.0).collect();
                return Err(wrong(&format!("expected one of {}", keys.join(", "))));
            };
            if pairs.iter().any(|pair| pair.0 == key) {
                return Err(wrong(&format!("{key}= is given twice")));
            }
            let column = column.trim().parse().map_err(|why: String| wrong(&why))?;
            pairs.push((key, column));
        }
        Ok(Pairs(pairs))
    }

    fn has(&self, key: &str) -> bool {
        self.0.iter().any(|pair| pair.0 == key)
    }

    fn take(&mut self, key: &str) -> Option<ColumnId> {
        let index = self.0.iter().position(|pair| pair.0 == key)?;
        Some(self.0.swap_remove(index).1)
    }

    fn time(
        &mut self,
        key: &'static str,
        units: &mut Units,
    ) -> Result<Option<TimeColumn>, ColumnError> {
        let Some(column) = self.take(key) else {
            return Ok(None);
        };
        let unit = match (units.take(key), &units.all_times) {
            (Some(text), _) => time_unit(&text).ok_or_else(|| {
                error(
                    "units",
                    format!("{key}={text}: expected {}", time_unit_names()),
                )
            })?,
            (None, Some(unit)) => *unit,
            (None, None) => {
                return Err(error(
                    "units",
                    format!(
                        "{key}= has no unit; add --units {key}=UNIT, or --units UNIT for all times ({})",
                        time_unit_names()
                    ),
                ));
            }
        };
        Ok(Some(TimeColumn { column, unit }))
    }

    /// Returns the column of an address or length: in sectors under one key, in bytes under the
    /// other.
    fn block(
        &mut self,
        sectors: &'static str,
        bytes: &'static str,
        units: &mut Units,
    ) -> Result<BlockColumn, ColumnError> {
        let (key, column, unit) = match (self.take(sectors), self.take(bytes)) {
            (Some(column), None) => (sectors, column, BlockUnit::Sector),
            (None, Some(column)) => (bytes, column, BlockUnit::Bytes(NonZeroU32::MIN)),
            (None, None) => {
                return Err(error(
                    "columns",
                    format!("{sectors}= or {bytes}= is missing"),
                ));
            }
            (Some(_), Some(_)) => {
                return Err(error(
                    "columns",
                    format!("{sectors}= and {bytes}= give the same value twice; omit one"),
                ));
            }
        };
        let unit = match units.take(key) {
            None => unit,
            Some(text) => parse_byte_size(&text)
                .ok()
                .and_then(|size| u32::try_from(size).ok())
                .filter(|&size| size <= BLOCK_BYTES_MAX)
                .and_then(NonZeroU32::new)
                .map(BlockUnit::Bytes)
                .ok_or_else(|| {
                    error(
                        "units",
                        format!(
                            "{key}={text}: expected a block size from 1 byte to 1 GiB, such as 512"
                        ),
                    )
                })?,
        };
        Ok(BlockColumn { key, column, unit })
    }
}

/// The units that have not been taken yet.
struct Units {
    all_times: Option<TimeUnit>,
    by_key: Vec<(String, String)>,
}

impl Units {
    fn parse(texts: &[&str], columns: &Pairs) -> Result<Units, ColumnError> {
        let mut units = Units {
            all_times: None,
            by_key: Vec::new(),
        };
        for item in texts.iter().flat_map(|text| text.split(',')) {
            let item = item.trim();
            let Some((key, unit)) = item.split_once('=') else {
                let unit = time_unit(item).ok_or_else(|| {
                    error("units", format!("{item}: expected {}", time_unit_names()))
                })?;
                if units.all_times.replace(unit).is_some() {
                    return Err(error(
                        "units",
                        format!("{item}: a second unit for all times"),
                    ));
                }
                continue;
            };
            if !columns.has(key) {
                return Err(error("units", format!("{item}: there is no column {key}=")));
            }
            if units.by_key.iter().any(|pair| pair.0 == key) {
                return Err(error("units", format!("{item}: {key}= is given twice")));
            }
            units.by_key.push((key.to_owned(), unit.to_owned()));
        }
        Ok(units)
    }

    fn take(&mut self, key: &str) -> Option<String> {
        let index = self.by_key.iter().position(|pair| pair.0 == key)?;
        Some(self.by_key.swap_remove(index).1)
    }

    fn unused(&self) -> Option<&(String, String)> {
        self.by_key.first()
    }
}

fn time_unit(text: &str) -> Option<TimeUnit> {
    let mut units = TIME_UNITS.iter();
    units.find(|entry| entry.0 == text).map(|entry| entry.1)
}

/// The names of the units of time.
fn time_unit_names() -> String {
    let names: Vec<&str> = TIME_UNITS.iter().map(|entry| entry.0).collect();
    names.join(", ")
}

fn values(part: &'static str, texts: &[&str]) -> Result<Vec<String>, ColumnError> {
    let values = texts.iter().flat_map(|text| text.split(',')).map(str::trim);
    let values: Vec<String> = values.map(str::to_owned).collect();
    if values.iter().any(String::is_empty) {
        return Err(error(part, "expected values separated by commas"));
    }
    Ok(values)
}

fn filter(text: &str) -> Result<ColumnFilter, ColumnError> {
    let (column, values) = text.split_once('=').ok_or_else(|| {
        error(
            "where",
            format!("{text}: expected COLUMN=VALUE, such as 2=usr"),
        )
    })?;
    let column = column.trim().parse();
    Ok(ColumnFilter {
        column: column.map_err(|why: String| error("where", format!("{text}: {why}")))?,
        values: values
            .split(',')
            .map(|value| value.trim().to_owned())
            .collect(),
    })
}

fn delimiter(text: &str) -> Result<Delimiter, ColumnError> {
    let mut chars = text.chars();
    match (text, chars.next(), chars.next()) {
        ("tab", ..) => Ok(Delimiter::Char('\t')),
        ("blanks", ..) | (_, Some(' '), None) => Ok(Delimiter::Blanks),
        (_, Some(one), None) if !one.is_alphanumeric() && one != '"' && one != '.' => {
            Ok(Delimiter::Char(one))
        }
        _ => Err(error(
            "delimiter",
            format!(
                "{text:?}: expected one character that is not a letter, digit, dot or quote; or tab, or blanks"
            ),
        )),
    }
}
