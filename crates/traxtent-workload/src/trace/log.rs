//! Our own request log (docs/reference/request-log.md), written by `traxtent sim --log` and by a
//! served drive. Version 1, which has no column `status`, is still read.
//!
//! The log is a CSV file with a line of column names. The reader uses number, device, op, fua, LBN,
//! sectors, times of issue and completion, and measured time. Times are exact to the picosecond, so
//! that a replay at recorded arrivals reproduces the logged completions. A request that failed is
//! replayed like the others.
//!
//! Pauses are those of the logged run, from a completion to the next issue. A measured time is only
//! for comparison: if the run replayed a trace, it is the time of the drive in that trace, whose
//! requests began at other times.
//!
//! Rows are in order of completion; records are returned in the order of their numbers. Rows are
//! held until the one with the next number has been read. If that number is missing (the log of a
//! run with a warm-up, or a truncated log), the record with the lowest number is returned once
//! [`ROWS_HELD_MAX`] rows are held or the log has ended.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::TraceRecord;
use super::error::{TraceError, TracePosition};
use super::fields::PS_PER_MS;
use super::lines::{Line, TraceInput};
use traxtent_units::request::{Op, Request};
use traxtent_units::{SimTime, Span};

/// The columns of version 2, in order.
pub const COLUMNS: &str = "request,device,op,fua,lbn,sectors,issued_ms,submitted_ms,completed_ms,response_ms,\
    queue_ms,overhead_ms,seek_ms,settle_ms,head_switch_ms,rotation_ms,transfer_ms,bus_ms,served,measured_ms,status";

/// The columns of version 1, in order.
pub(super) const COLUMNS_1: &str = "request,device,op,fua,lbn,sectors,issued_ms,submitted_ms,completed_ms,response_ms,\
    queue_ms,overhead_ms,seek_ms,settle_ms,head_switch_ms,rotation_ms,transfer_ms,bus_ms,served,measured_ms";

/// The maximum number of rows held. No drive has this many requests outstanding.
const ROWS_HELD_MAX: usize = 65_536;

/// Returns whether the first line is that of a log of several runs, whose columns are preceded by
/// those that identify the run.
pub(super) fn is_of_several_runs(first_line: &[u8]) -> bool {
    let labels = |columns: &str| first_line.strip_suffix(columns.as_bytes());
    let labels = labels(COLUMNS).or_else(|| labels(COLUMNS_1));
    labels.is_some_and(|labels| labels.ends_with(b","))
}

/// A version of the log.
#[derive(Clone, Copy)]
enum Version {
    One,
    Two,
}

impl Version {
    /// Returns the version with these column names.
    fn of(first_line: &str) -> Option<Version> {
        match first_line {
            COLUMNS_1 => Some(Version::One),
            COLUMNS => Some(Version::Two),
            _ => None,
        }
    }
}

#[derive(Default)]
pub(super) struct Log {
    /// The version; `None` before the first line has been read.
    version: Option<Version>,
    /// The number of the next record.
    next: u64,
    held: BTreeMap<u64, (TraceRecord, TracePosition)>,
}

impl Log {
    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        let version = match self.version {
            Some(version) => version,
            None => *self.version.insert(read_head(lines)?),
        };
        while self.held.len() < ROWS_HELD_MAX
            && self.held.keys().next() != Some(&self.next)
            && let Some(line) = lines.next_line()?
        {
            let (number, record) = row(&line, version)?;
            let held = (record, line.place);
            if number < self.next || self.held.insert(number, held).is_some() {
                let expected = format!("expected each number once, and none below {}", self.next);
                return Err(line.field("request", &number.to_string(), expected));
            }
        }
        Ok(self.held.pop_first().map(|(number, (record, place))| {
            lines.set_position(place);
            self.next = number.saturating_add(1);
            record
        }))
    }
}

/// Reads the line of column names.
fn read_head<R: BufRead>(lines: &mut TraceInput<R>) -> Result<Version, TraceError> {
    match lines.next_line()? {
        Some(line) if is_of_several_runs(line.text.as_bytes()) => Err(TraceError::SeveralRuns),
        Some(line) => Version::of(line.text)
            .ok_or_else(|| line.shape("expected the column names of version 1 or 2")),
        None => Err(lines.ends_within("its first line")),
    }
}

/// Parses a row and returns its number and record.
fn row(line: &Line<'_>, version: Version) -> Result<(u64, TraceRecord), TraceError> {
    let fields: [&str; 20] = match version {
        Version::One => line.split(true, false, "the columns of version 1")?,
        Version::Two => {
            let fields: [&str; 21] = line.split(true, false, "the columns of version 2")?;
            let [fields @ .., _status] = fields;
            fields
        }
    };
    let [number, device, op, fua, lbn, sectors, issued, ..] = fields;
    let op = match op {
        "read" => Op::Read,
        "write" => Op::Write,
        "flush" => Op::Flush,
        "verify" => Op::Verify,
        _ => return Err(line.field("op", op, "expected read, write, flush or verify")),
    };
    let fua = line.whole("fua", fua, 1)? == 1;
    let lbn = line.whole("lbn", lbn, u64::MAX)?;
    let request = match op {
        Op::Flush if (lbn, sectors) != (0, "0") => {
            return Err(line.field(
                "sectors",
                sectors,
                "expected LBN 0 and 0 sectors for a flush",
            ));
        }
        Op::Flush => Request::flush(),
        _ => Request {
            fua,
            ..line.sectors(op, lbn, sectors)?
        },
    };
    let issued = line.time("issued_ms", issued, PS_PER_MS)?;
    let completed = line.time("completed_ms", fields[8], PS_PER_MS)?;
    let measured = match fields[19] {
        "" => None,
        text => Some(Span(line.time("measured_ms", text, PS_PER_MS)?)),
    };
    let record = TraceRecord {
        arrival: Some(SimTime(issued)),
        pause: None,
        // A log that is not ours may have zeros instead of completions.
        completed: (completed >= issued).then_some(SimTime(completed)),
        measured,
        device: line.whole("device", device, u64::from(u32::MAX))? as u32,
        request,
    };
    Ok((line.whole("request", number, u64::MAX - 1)?, record))
}
