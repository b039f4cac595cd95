//! The default text output of blkparse(1).
//!
//! A line holds the device as major,minor; processor; sequence number; seconds; process; action;
//! RWBS; then, for requests, `sector + sectors` of 512 bytes, and `[process name]`. Only lines
//! whose action is the chosen event are requests. Messages, merges, completions and other actions
//! are skipped, as are discards and requests that only carry a command to the drive. The summary
//! after the events ends the trace.
//!
//! RWBS, as the kernel writes it: a leading F requests a flush first, then comes R, W, D (discard)
//! or N, and a later F forces unit access. A flush before a write becomes a request of its own.
//! Time counts from the first record.

use std::io::BufRead;

use super::error::TraceError;
use super::fields::{PS_PER_S, TIME_MAX_PS};
use super::lines::{Line, TraceInput};
use super::{BlkparseEvent, TraceRecord};
use traxtent_units::request::{Op, Request};
use traxtent_units::{SimTime, Span};

/// The number of bits of the minor number. Major and minor number are combined as in Linux: 12 and
/// 20 bits.
const MINOR_BITS: u32 = 20;

pub(super) struct Blkparse {
    sector_bytes: u32,
    action: &'static str,
    origin: Option<u64>,
    /// The time by which the last record arrived before the first one.
    pub(super) before_origin: Span,
    /// The write that follows a flush.
    after_flush: Option<TraceRecord>,
}

impl Blkparse {
    pub(super) fn new(sector_bytes: u32, event: BlkparseEvent) -> Blkparse {
        let action = match event {
            BlkparseEvent::Dispatch => "D",
            BlkparseEvent::Queue => "Q",
        };
        Blkparse {
            sector_bytes,
            action,
            origin: None,
            before_origin: Span::ZERO,
            after_flush: None,
        }
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        if let Some(record) = self.after_flush.take() {
            return Ok(Some(record));
        }
        while let Some(line) = lines.next_line()? {
            if is_summary(&line) {
                return Ok(None);
            }
            let event = Event::parse(&line)?;
            if event.action != self.action {
                continue;
            }
            if let Some(record) = self.record(&line, &event)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn record(
        &mut self,
        line: &Line<'_>,
        event: &Event<'_>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        let (flush, rest) = match event.rwbs.strip_prefix('F') {
            Some(rest) => (true, rest),
            None => (false, event.rwbs),
        };
        let op = match rest.bytes().next() {
            Some(b'R') => Some(Op::Read),
            Some(b'W') => Some(Op::Write),
            _ => None,
        };
        let mut words = event.rest.split_ascii_whitespace();
        let range = match (words.next(), words.next(), words.next()) {
            (Some(sector), Some("+"), Some(sectors)) => Some((sector, sectors)),
            // A bare flush has only the process name; a command for the drive has its bytes in
            // parentheses.
            (Some(name), ..) if name.starts_with('[') => None,
            (Some(_), Some(bytes), _) if bytes.starts_with('(') => None,
            _ if op.is_none() => None,
            _ => {
                return Err(line.field("range", event.rest, "expected SECTOR + SECTORS"));
            }
        };
        let request = match (op, range) {
            (Some(op), Some((sector, sectors))) => {
                let offset = u128::from(line.whole("sector", sector, i64::MAX as u64)?) * 512;
                let length = line.whole("sectors", sectors, u64::from(u32::MAX))? * 512;
                if length == 0 && flush {
                    None
                } else if length == 0 {
                    return Err(line.empty("sectors"));
                } else {
                    let mut request = line.bytes(op, offset, length, self.sector_bytes)?;
                    request.fua = rest[1..].contains('F');
                    Some(request)
                }
            }
            _ => None,
        };
        // The origin is the first record's time, not the first line's.
        let since = || event.ps.saturating_sub(self.origin.unwrap_or(event.ps));
        let record = |request| TraceRecord {
            arrival: Some(SimTime(since())),
            pause: None,
            measured: None,
            device: event.device,
            request,
        };
        let (first, second) = match (flush, request) {
            (true, request) => (Some(record(Request::flush())), request.map(record)),
            (false, request) => (request.map(record), None),
        };
        if first.is_some() {
            let origin = *self.origin.get_or_insert(event.ps);
            self.before_origin = Span(origin.saturating_sub(event.ps));
        }
        self.after_flush = second;
        Ok(first)
    }
}

/// Returns whether the line begins blkparse's summary.
pub(super) fn is_summary(line: &Line<'_>) -> bool {
    line.text.starts_with("CPU") || line.text.starts_with("Total (")
}

/// The fields that every line has.
pub(super) struct Event<'a> {
    device: u32,
    ps: u64,
    action: &'a str,
    rwbs: &'a str,
    rest: &'a str,
}

impl<'a> Event<'a> {
    pub(super) fn parse(line: &Line<'a>) -> Result<Event<'a>, TraceError> {
        let mut rest = line.text.trim_start();
        let mut word = || {
            let end = rest
                .find(|c: char| c.is_ascii_whitespace())
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            rest = after.trim_start();
            word
        };
        let [device, cpu, sequence, seconds, process, action, rwbs] =
            std::array::from_fn(|_| word());
        if action.is_empty() {
            return Err(
                line.shape("expected device, processor, sequence, seconds, process, action, RWBS")
            );
        }
        let numbers = device.split_once(',').and_then(|(major, minor)| {
            let (major, minor) = (major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?);
            (major < 1 << (32 - MINOR_BITS) && minor < 1 << MINOR_BITS)
                .then_some(major << MINOR_BITS | minor)
        });
        let device = numbers.ok_or_else(|| {
            line.field(
                "device",
                device,
                "expected major,minor, below 4096 and 1048576",
            )
        })?;
        line.whole("processor", cpu, u64::from(u32::MAX))?;
        line.whole("sequence", sequence, u64::MAX)?;
        line.whole("process", process, u64::from(u32::MAX))?;
        let ps = line.time("seconds", seconds, PS_PER_S)?;
        debug_assert!(ps <= TIME_MAX_PS);
        Ok(Event {
            device,
            ps,
            action,
            rwbs,
            rest,
        })
    }
}
