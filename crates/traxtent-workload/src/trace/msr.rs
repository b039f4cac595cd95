//! The CSV of the MSR Cambridge traces (Narayanan, Donnelly and Rowstron, "Write off-loading", FAST
//! 2008).
//!
//! The columns are: timestamp (Windows file time: 100 ns since 1601), host name, disk number (the
//! device), `Read` or `Write`, offset and size in bytes, response time in 100 ns. A line of column
//! names may come first.

use std::io::BufRead;

use super::TraceRecord;
use super::error::TraceError;
use super::fields::{PS_PER_NS, TIME_MAX_PS};
use super::lines::{Line, TraceInput};
use traxtent_units::request::Op;
use traxtent_units::{SimTime, Span};

const PS_PER_TICK: u64 = 100 * PS_PER_NS;

pub(super) struct Msr {
    sector_bytes: u32,
    /// The file time of the first record.
    origin: Option<u64>,
    /// The time by which the record returned last precedes the first one; 0 if it does not.
    pub(super) early: Span,
}

impl Msr {
    pub(super) fn new(sector_bytes: u32) -> Msr {
        Msr {
            sector_bytes,
            origin: None,
            early: Span::ZERO,
        }
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        while let Some(line) = lines.next_line()? {
            if self.origin.is_none() && is_heading(&line) {
                continue;
            }
            let (record, early) = msr(&line, self.sector_bytes, &mut self.origin)?;
            self.early = early;
            return Ok(Some(record));
        }
        Ok(None)
    }
}

/// Returns whether a line has the names of this format's columns: seven, of which the first begins
/// with `timestamp` and the second with `host`.
pub(super) fn is_heading(line: &Line<'_>) -> bool {
    let names: Vec<&str> = line.text.split(',').map(str::trim).collect();
    let begins = |name: &str, with: &str| {
        let start = name.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    matches!(names[..], [time, host, _, _, _, _, _] if begins(time, "timestamp") && begins(host, "host"))
}

/// Returns the record of a line, and the time by which it arrived before the first record.
pub(super) fn msr(
    line: &Line<'_>,
    sector_bytes: u32,
    origin: &mut Option<u64>,
) -> Result<(TraceRecord, Span), TraceError> {
    let [time, _, disk, kind, offset, size, response] = line.split(
        true,
        false,
        "timestamp, host, disk, type, offset, size, response time",
    )?;
    let op = match kind {
        _ if kind.eq_ignore_ascii_case("read") => Op::Read,
        _ if kind.eq_ignore_ascii_case("write") => Op::Write,
        _ => return Err(line.field("type", kind, "expected Read or Write")),
    };
    let ticks_max = TIME_MAX_PS / PS_PER_TICK;
    let ticks = line.whole("timestamp", time, u64::MAX)?;
    let origin = *origin.get_or_insert(ticks);
    let since = ticks.saturating_sub(origin);
    let early = origin.saturating_sub(ticks).min(ticks_max);
    if since > ticks_max {
        return Err(line.field(
            "timestamp",
            time,
            format!("expected at most {ticks_max} x 100 ns after the first timestamp"),
        ));
    }
    let response = line.whole("response time", response, ticks_max)?;
    let offset = u128::from(line.whole("offset", offset, u64::MAX)?);
    let size = line.whole("size", size, u64::MAX)?;
    let record = TraceRecord {
        arrival: Some(SimTime(since * PS_PER_TICK)),
        pause: None,
        completed: None,
        measured: Some(Span(response * PS_PER_TICK)),
        device: line.whole("disk", disk, u64::from(u32::MAX))? as u32,
        request: line.bytes(op, offset, size, sector_bytes)?,
    };
    Ok((record, Span(early * PS_PER_TICK)))
}
