//! What is wrong with a trace.

use std::fmt;

use super::TraceFormat;
use crate::units::Span;

/// Where in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A line of text, from 1.
    Line(u64),
    /// A binary record, from 1, and the offset of its first byte.
    Record {
        /// Which record.
        number: u64,
        /// Its first byte.
        offset: u64,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Line(line) => write!(f, "line {line}"),
            Place::Record { number, offset } => write!(f, "record {number} at byte {offset}"),
        }
    }
}

/// What is wrong with a trace, in one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TraceError {
    /// A field that holds something else than it should.
    #[error("{format} trace, {place}: {field}: {value:?}: {expected}")]
    Field {
        /// The format that it is read as.
        format: TraceFormat,
        /// Where.
        place: Place,
        /// Which field.
        field: &'static str,
        /// What it holds, cut after 60 bytes.
        value: String,
        /// What would be right, with its bound.
        expected: String,
    },
    /// A line or record of the wrong shape.
    #[error("{format} trace, {place}: {expected}")]
    Shape {
        /// The format that it is read as.
        format: TraceFormat,
        /// Where.
        place: Place,
        /// What would be right, and what is there.
        expected: String,
    },
    /// A file that ends within a record or before its first.
    #[error("{format} trace, {place}: the file ends within {within}")]
    Truncated {
        /// The format that it is read as.
        format: TraceFormat,
        /// Where.
        place: Place,
        /// In what.
        within: &'static str,
    },
    /// A request for nothing.
    #[error("{format} trace, {place}: a request of 0 {unit}; it needs at least 1")]
    Empty {
        /// The format that it is read as.
        format: TraceFormat,
        /// Where.
        place: Place,
        /// The unit that it counts in: sectors or bytes.
        unit: &'static str,
    },
    /// An arrival before the one above it, in a format whose records are in order of time.
    #[error(
        "{format} trace, {place}: the request arrives {} ms before one above it; sort the trace by time", back.as_ms()
    )]
    Order {
        /// The format that it is read as.
        format: TraceFormat,
        /// Where.
        place: Place,
        /// How long before.
        back: Span,
    },
    /// A record without what a replay needs.
    #[error("trace, record {record}: no {field}, which this way of replaying needs")]
    Missing {
        /// Which record, from 1.
        record: u64,
        /// What it lacks.
        field: &'static str,
    },
    /// Bytes that no format fits.
    #[error("not a trace of a known format ({}): {reason}", names())]
    Unrecognized {
        /// What was looked at.
        reason: String,
    },
    /// A name that no format has.
    #[error("{name:?} is no trace format; they are {}", names())]
    UnknownFormat {
        /// The name.
        name: String,
    },
    /// The input could not be read.
    #[error("{format} trace, {place}: {error}")]
    Io {
        /// The format that it is read as.
        format: TraceFormat,
        /// Where.
        place: Place,
        /// Why not.
        error: std::io::Error,
    },
}

fn names() -> String {
    TraceFormat::all()
        .map(TraceFormat::name)
        .collect::<Vec<_>>()
        .join(", ")
}
