//! The Storage Performance Council's trace format, revision 1.0.1, as used by the UMass trace
//! repository.
//!
//! Fields separated by commas: application storage unit (the device), address in blocks of 512
//! bytes, bytes, `R` or `W` in upper or lower case, seconds since the beginning. Optional fields
//! after these are not used.

use std::io::BufRead;

use super::TraceRecord;
use super::error::TraceError;
use super::fields::PS_PER_S;
use super::lines::{Line, TraceInput};
use traxtent_units::SimTime;
use traxtent_units::request::Op;

pub(super) struct Spc {
    pub(super) sector_bytes: u32,
}

impl Spc {
    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        lines
            .next_line()?
            .map(|line| spc(&line, self.sector_bytes))
            .transpose()
    }
}

pub(super) fn spc(line: &Line<'_>, sector_bytes: u32) -> Result<TraceRecord, TraceError> {
    let [unit, address, bytes, opcode, seconds] =
        line.split(true, true, "ASU, LBA, bytes, opcode, seconds")?;
    let op = match opcode {
        "R" | "r" => Op::Read,
        "W" | "w" => Op::Write,
        _ => return Err(line.field("opcode", opcode, "expected R or W")),
    };
    let offset = u128::from(line.whole("LBA", address, i64::MAX as u64)?) * 512;
    let length = line.whole("bytes", bytes, u64::MAX)?;
    Ok(TraceRecord {
        arrival: Some(SimTime(line.time("timestamp", seconds, PS_PER_S)?)),
        pause: None,
        completed: None,
        measured: None,
        device: line.whole("ASU", unit, u64::from(u32::MAX))? as u32,
        request: line.bytes(op, offset, length, sector_bytes)?,
    })
}
