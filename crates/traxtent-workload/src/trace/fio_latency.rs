//! fio's latency log with offsets (fio(1), "Log file formats"; options `write_lat_log` and
//! `log_offset`).
//!
//! A line holds the time of completion in whole ms, the latency in ns, the direction (0 read, 1
//! write, 2 trim), bytes, offset, and the priority. A seventh field is the time of issue in ns
//! (`log_issue_time`), or 0 where fio does not know it. fio writes a line when a request completes
//! (`add_log_sample` in its `stat.c`). Trims are skipped, and fio logs no flushes.
//!
//! The log does not name its file; all requests are for device 0. fio writes one log for submission
//! (slat), one for completion (clat) and one for their sum (lat), which look the same. clat holds
//! the times of the drive.
//!
//! Arrivals: the time of issue if there is one. Otherwise the arrival is the completion minus the
//! latency. The completion is placed in its millisecond as early as a single outstanding request
//! allows, which is at the previous completion plus the latency. The log of a job with one
//! outstanding request thereby gets exact latencies, the recorded order, and pauses that are right
//! to a millisecond.

use std::io::BufRead;

use super::TraceRecord;
use super::error::TraceError;
use super::fields::{PS_PER_MS, PS_PER_NS, TIME_MAX_PS};
use super::lines::{Line, TraceInput};
use super::reorder::Reorder;
use traxtent_units::Span;
use traxtent_units::request::{Op, Request};

/// The number of fields up to the priority, which follows the offset.
const FIELDS: usize = 6;

pub(super) struct FioLatency {
    sector_bytes: u32,
    pub(super) held: Reorder,
    ended: bool,
    /// The instant of the last completion in ps, as placed in its millisecond.
    completed_ps: i128,
}

impl FioLatency {
    pub(super) fn new(sector_bytes: u32) -> FioLatency {
        FioLatency {
            sector_bytes,
            held: Reorder::default(),
            ended: false,
            completed_ps: 0,
        }
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        while !self.ended && !self.held.is_full() {
            let Some(line) = lines.next_line()? else {
                self.ended = true;
                break;
            };
            let Some(entry) = entry(&line, self.sector_bytes)? else {
                continue;
            };
            let arrival = match entry.issued_ps {
                Some(issued) => issued,
                None => self.place(&entry) - i128::from(entry.latency.0),
            };
            let record = TraceRecord {
                arrival: None,
                pause: None,
                completed: None,
                measured: Some(entry.latency),
                device: 0,
                request: entry.request,
            };
            self.held.push(arrival, record, line.place);
        }
        self.held.pop(lines)
    }

    /// Places a completion in its millisecond, and returns its instant.
    fn place(&mut self, entry: &Entry) -> i128 {
        let start = entry.completed_ps;
        let alone = self.completed_ps + i128::from(entry.latency.0);
        self.completed_ps = alone.clamp(start, start + i128::from(PS_PER_MS) - 1);
        self.completed_ps
    }
}

/// A line of the log.
struct Entry {
    /// The start of the millisecond of completion.
    completed_ps: i128,
    latency: Span,
    issued_ps: Option<i128>,
    request: Request,
}

/// Checks that a line belongs to a latency log with offsets.
pub(super) fn check(line: &Line<'_>) -> Result<(), TraceError> {
    entry(line, 512).map(drop)
}

/// Returns whether a line belongs to a log of fio without offsets.
pub(super) fn lacks_offset(line: &Line<'_>) -> bool {
    let fields: Vec<&str> = line.text.split(", ").collect();
    let whole = |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (FIELDS - 2..FIELDS).contains(&fields.len())
        && fields[..4].iter().all(whole)
        && matches!(fields[2], "0" | "1" | "2")
}

/// Returns the entry of a line, or `None` for a trim.
fn entry(line: &Line<'_>, sector_bytes: u32) -> Result<Option<Entry>, TraceError> {
    if lacks_offset(line) {
        return Err(line.shape("the log has no offsets; record it with log_offset=1"));
    }
    let [time, latency, direction, bytes, offset, _] = line.split(
        true,
        true,
        "time in ms, latency in ns, direction, bytes, offset, priority",
    )?;
    let issued = match line.text.split(',').nth(FIELDS) {
        Some(text) => line.whole("issue time", text.trim(), u64::MAX)?,
        None => 0,
    };
    let op = match direction {
        "0" => Some(Op::Read),
        "1" => Some(Op::Write),
        "2" => None,
        _ => {
            let expected = "expected 0 (read), 1 (write) or 2 (trim)";
            return Err(line.field("direction", direction, expected));
        }
    };
    let completed = line.whole("time", time, u64::MAX)?;
    let latency = line.whole("latency", latency, TIME_MAX_PS / PS_PER_NS)?;
    let bytes = line.whole("bytes", bytes, u64::MAX)?;
    let offset = line.whole("offset", offset, u64::MAX)?;
    if bytes == 0 {
        let why = "the log holds averages, not requests; record it without log_avg_msec";
        return Err(line.shape(why));
    }
    let Some(op) = op else {
        return Ok(None);
    };
    Ok(Some(Entry {
        completed_ps: i128::from(completed) * i128::from(PS_PER_MS),
        latency: Span(latency * PS_PER_NS),
        issued_ps: (issued > 0).then(|| i128::from(issued) * i128::from(PS_PER_NS)),
        request: line.bytes(op, u128::from(offset), bytes, sector_bytes)?,
    }))
}
