//! Errors in a trace.

use std::borrow::Cow;
use std::fmt;

use super::TraceFormat;
use traxtent_units::Span;

/// A position in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePosition {
    /// A line of text, counted from 1.
    Line(u64),
    /// A binary record, counted from 1, and the offset of its first byte.
    Record {
        /// The record's number.
        number: u64,
        /// The offset of its first byte.
        offset: u64,
    },
}

impl fmt::Display for TracePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TracePosition::Line(line) => write!(f, "line {line}"),
            TracePosition::Record { number, offset } => {
                write!(f, "record {number} at byte {offset}")
            }
        }
    }
}

/// An error in a trace, described in one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A problem at a position of the trace.
    #[error("{format} trace, {place}: {problem}")]
    At {
        /// The format that the trace is read as.
        format: TraceFormat,
        /// The position.
        place: TracePosition,
        /// The problem.
        problem: TraceProblem,
    },
    /// A record without a field that the replay needs.
    #[error("trace, record {record}: no {field}; choose a replay pace that does not need one")]
    Missing {
        /// The record, counted from 1.
        record: u64,
        /// The missing field.
        field: &'static str,
    },
    /// A request for another device than those before it, although there is only one drive.
    #[error(
        "request {number} is for device {device}, those before it are for device {first}, and there is only one drive"
    )]
    OtherDevice {
        /// The number of the request, counted from 1.
        number: u64,
        /// Its device.
        device: u32,
        /// The device of the first request.
        first: u32,
    },
    /// Bytes that fit no format.
    #[error("not a trace of a known format ({}): {reason}", names())]
    Unrecognized {
        /// The beginning of the first line, or the reason why the file cannot be read as a trace.
        reason: String,
    },
    /// The log of a sweep or of several seeds.
    #[error("a request log of several runs; only the log of one run can be replayed")]
    SeveralRuns,
    /// A condition on the lines, whose column has the value in no line.
    #[error(
        "--where {condition}: no line has {}",
        if *.values > 1 { "one of these values" } else { "this value" }
    )]
    NoLineHas {
        /// The condition as in [`ColumnText::filters`](super::ColumnText::filters).
        condition: String,
        /// The number of values.
        values: usize,
    },
    /// Conditions of which no line fulfils all, although each is fulfilled by some line.
    #[error("no line fulfils all conditions of --where")]
    NoLineSelected,
    /// An unknown format name.
    #[error("{name:?} is not a trace format; expected one of {}", names())]
    UnknownFormat {
        /// The name.
        name: String,
    },
}

/// A problem of a line or record of a trace, without its position.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceProblem {
    /// A field with a wrong value.
    #[error("{field}: {value:?}: {expected}")]
    Field {
        /// The name of the field.
        field: Cow<'static, str>,
        /// The value found, cut after 60 bytes.
        value: String,
        /// The values expected, with the bound.
        expected: String,
    },
    /// A line or record of the wrong shape, or one too late after the first.
    #[error("{expected}")]
    Malformed {
        /// A description of the problem, such as the shape expected and the one found.
        expected: String,
    },
    /// A file that ends within a record or before the first one.
    #[error("the file ends within {within}")]
    Truncated {
        /// The part within which the file ends.
        within: &'static str,
    },
    /// A request for no sectors or bytes.
    #[error("the request has 0 {unit}; expected at least 1")]
    Empty {
        /// The unit of the request's length: sectors or bytes.
        unit: &'static str,
    },
    /// An arrival before that of an earlier record, in a format whose records are in order of time.
    #[error(
        "the request arrives {} ms before an earlier one in the file; sort the trace by time", back.as_ms()
    )]
    Order {
        /// The time by which the request arrives too early.
        back: Span,
    },
    /// The input could not be read.
    #[error("{0}")]
    Io(std::io::Error),
}

fn names() -> String {
    TraceFormat::all()
        .map(TraceFormat::name)
        .collect::<Vec<_>>()
        .join(", ")
}
