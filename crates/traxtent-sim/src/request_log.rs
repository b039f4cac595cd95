//! The request log, version 2 (docs/reference/request-log.md), with one row per request.
//! Simulations and served drives write it, and it can be replayed as a trace
//! ([`traxtent_workload::TraceFormat::RequestLog`]).

use std::io::{self, Write};

use traxtent_model::drive::ServedBy;
use traxtent_units::Span;
use traxtent_workload::trace::LOG_COLUMNS;

use crate::simulate::Outcome;

/// Writes the column names. A change in the meaning or order of the columns requires a new version
/// and a different first line.
///
/// # Errors
/// Returns the errors of the output.
pub fn write_head(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{LOG_COLUMNS}")
}

/// Writes the row of one request.
///
/// # Errors
/// Returns the errors of the output.
pub fn write_row(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    let arrival = &outcome.arrival;
    let request = &arrival.request;
    write!(
        out,
        "{},{},{},{},{},{}",
        arrival.tag,
        arrival.device,
        request.op,
        u8::from(request.fua),
        request.lbn,
        request.sectors
    )?;
    let times = [
        Span(arrival.at.0),
        Span(outcome.completion.submitted.0),
        Span(outcome.completion.completed.0),
        outcome.response(),
    ];
    for time in times.into_iter().chain(outcome.breakdown().parts()) {
        out.write_all(b",")?;
        write_ms(out, time)?;
    }
    let served = match outcome.completion.served {
        ServedBy::Media => "media",
        ServedBy::Buffer => "buffer",
        ServedBy::Both => "both",
    };
    write!(out, ",{served},")?;
    if let Some(measured) = arrival.measured {
        write_ms(out, measured)?;
    }
    writeln!(out, ",{}", outcome.status)
}

/// Writes milliseconds with nine decimals, which is exact to the picosecond.
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

    /// Are times written exactly, from a picosecond to seconds?
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
