//! The request log: a row a request.

use std::io::{self, Write};

use traxtent_core::drive::{Breakdown, Served};
use traxtent_core::request::Op;
use traxtent_core::units::Span;
use traxtent_exec::Outcome;

use super::summary::parts;

/// The columns of log version 1, in order. `docs/sim.md` describes them; a change of meaning or order
/// is another version, and another first line.
const COLUMNS: &str = "request,device,op,fua,lbn,sectors,issued_ms,submitted_ms,completed_ms,response_ms,\
    queue_ms,overhead_ms,seek_ms,settle_ms,head_switch_ms,rotation_ms,transfer_ms,bus_ms,served,measured_ms";

/// Writes the names of the columns.
pub(crate) fn write_head(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{COLUMNS}")
}

/// Writes the row of a request.
pub(crate) fn write_row(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let arrival = &outcome.arrival;
    let request = &arrival.request;
    let op = match request.op {
        Op::Read => "read",
        Op::Write => "write",
        Op::Flush => "flush",
        Op::Verify => "verify",
    };
    write!(
        out,
        "{},{},{op},{},{},{}",
        arrival.tag,
        arrival.device,
        u8::from(request.fua),
        request.lbn,
        request.sectors
    )?;
    let breakdown: Breakdown = parts(outcome);
    let times = [
        Span(arrival.at.0),
        Span(outcome.completion.submitted.0),
        Span(outcome.completion.completed.0),
        outcome.response(),
    ];
    for time in times.into_iter().chain(breakdown.parts()) {
        out.write_all(b",")?;
        write_ms(out, time)?;
    }
    let served = match outcome.completion.served {
        Served::Media => "media",
        Served::Buffer => "buffer",
        Served::Both => "both",
    };
    write!(out, ",{served},")?;
    if let Some(measured) = arrival.measured {
        write_ms(out, measured)?;
    }
    out.write_all(b"\n")
}

/// Milliseconds with nine decimals: exact to the picosecond.
fn write_ms(out: &mut impl Write, time: Span) -> io::Result<()> {
    write!(
        out,
        "{}.{:09}",
        time.0 / 1_000_000_000,
        time.0 % 1_000_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are times written without loss, whatever their size?
    #[test]
    fn times_are_exact() {
        let written = |ps| {
            let mut bytes = Vec::new();
            write_ms(&mut bytes, Span(ps)).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(written(0), "0.000000000");
        assert_eq!(written(1), "0.000000001");
        assert_eq!(written(5_999_999_999_999), "5999.999999999");
    }
}
