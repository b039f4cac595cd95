//! DiskSim's own two trace formats.
//!
//! Ascii (`iotrace_ascii_get_ioreq_event`): arrival in ms since the beginning of the trace, device,
//! block, blocks, flags in hexadecimal. Bit 0 of the flags marks a read. The flags for synchronous
//! requests are not used.
//!
//! Validate (`iotrace_validate_get_ioreq_event`): R or W, the buffer's action on the real drive (a
//! word, not used), block, blocks, service time in µs, pause in µs between this completion and the
//! next request.

use std::io::BufRead;

use super::TraceRecord;
use super::error::TraceError;
use super::fields::{PS_PER_MS, PS_PER_US};
use super::lines::{Line, TraceInput};
use traxtent_units::request::Op;
use traxtent_units::{SimTime, Span};

pub(super) struct Ascii;

pub(super) struct Validate;

impl Ascii {
    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        lines.next_line()?.map(|line| ascii(&line)).transpose()
    }
}

impl Validate {
    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        lines.next_line()?.map(|line| validate(&line)).transpose()
    }
}

pub(super) fn ascii(line: &Line<'_>) -> Result<TraceRecord, TraceError> {
    let [arrival, device, block, blocks, flags] =
        line.split(false, false, "arrival in ms, device, block, blocks, flags")?;
    // C's %x accepts the prefix.
    let digits = flags.strip_prefix("0x").or(flags.strip_prefix("0X"));
    let flags = u32::from_str_radix(digits.unwrap_or(flags), 16).map_err(|_| {
        let expected =
            "expected a hexadecimal number of 32 bits, such as 0 for a write or 1 for a read";
        line.field("flags", flags, expected)
    })?;
    let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
    Ok(TraceRecord {
        arrival: Some(SimTime(line.time("arrival", arrival, PS_PER_MS)?)),
        pause: None,
        completed: None,
        measured: None,
        device: line.whole("device", device, u64::from(u32::MAX))? as u32,
        request: line.sectors(op, line.whole("block", block, i64::MAX as u64)?, blocks)?,
    })
}

pub(super) fn validate(line: &Line<'_>) -> Result<TraceRecord, TraceError> {
    let [op, _, block, blocks, service, pause] = line.split(
        false,
        false,
        "R or W, buffer action, block, blocks, service time and pause in us",
    )?;
    let op = match op {
        "R" => Op::Read,
        "W" => Op::Write,
        _ => return Err(line.field("operation", op, "expected R or W")),
    };
    Ok(TraceRecord {
        arrival: None,
        pause: Some(Span(line.time("pause", pause, PS_PER_US)?)),
        completed: None,
        measured: Some(Span(line.time("service time", service, PS_PER_US)?)),
        device: 0,
        request: line.sectors(op, line.whole("block", block, i64::MAX as u64)?, blocks)?,
    })
}
