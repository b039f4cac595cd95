//! A plausibility check of measured times, in formats in which their unit may be wrong.
//!
//! The first [`RESPONSES_CHECKED`] measured times (or all of them, if there are fewer) are judged:
//! - too short, if their median is below 10 µs: no interface of a disk delivers a sector that fast;
//! - too long, if their median is above 5 s;
//! - too many outstanding, if their sum is more than 256 times as long as the time from the first
//!   to the last arrival of their requests (Little's law). Linux queues at most 256 requests of a
//!   disk (`nr_requests`). The unit of arrivals or that of measured times is then wrong.

use super::{TraceFormat, TraceRecord};
use traxtent_units::{SimTime, Span};

/// The maximum number of measured times that are judged.
pub const RESPONSES_CHECKED: usize = 1000;

/// The smallest number of measured times that permits a judgement.
const RESPONSES_MIN: usize = 10;

const SHORT: Span = Span(10_000_000);
const LONG: Span = Span(5_000_000_000_000);
const OUTSTANDING_MAX: u64 = 256;

/// A suspicion about the unit of measured times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ResponseWarning {
    /// The median is short for a disk.
    TooShort {
        /// The median.
        median: Span,
        /// The number of times judged.
        responses: usize,
    },
    /// The median is long for a disk.
    TooLong {
        /// The median.
        median: Span,
        /// The number of times judged.
        responses: usize,
    },
    /// Measured times and arrivals disagree.
    TooManyOutstanding {
        /// The mean number of outstanding requests.
        outstanding: u64,
        /// The number of times judged.
        responses: usize,
    },
}

impl std::fmt::Display for ResponseWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (median, word, responses) = match *self {
            ResponseWarning::TooShort { median, responses } => (median, "short", responses),
            ResponseWarning::TooLong { median, responses } => (median, "long", responses),
            ResponseWarning::TooManyOutstanding {
                outstanding,
                responses,
            } => {
                return write!(
                    f,
                    "during the first {responses} requests with measured times, {outstanding} of them are outstanding on \
                     average; check the units of arrivals and of measured times"
                );
            }
        };
        write!(
            f,
            "the median of the first {responses} measured times is {} ms, which is {word} for a disk; check their unit",
            median.as_ms()
        )
    }
}

pub(super) struct ResponseCheck {
    responses: Vec<Span>,
    first: Option<SimTime>,
    latest: SimTime,
    warning: Option<ResponseWarning>,
    done: bool,
}

impl ResponseCheck {
    pub(super) fn new(format: TraceFormat) -> ResponseCheck {
        ResponseCheck {
            responses: Vec::new(),
            first: None,
            latest: SimTime::ZERO,
            warning: None,
            // Other formats fix the unit. fio's was the microsecond before version 3.
            done: !matches!(format, TraceFormat::Csv | TraceFormat::FioLatency),
        }
    }

    pub(super) fn add(&mut self, record: &TraceRecord) {
        let Some(measured) = record.measured.filter(|_| !self.done) else {
            return;
        };
        self.responses.push(measured);
        if let Some(arrival) = record.arrival {
            self.first.get_or_insert(arrival);
            self.latest = self.latest.max(arrival);
        }
        if self.responses.len() == RESPONSES_CHECKED {
            self.end();
        }
    }

    pub(super) fn end(&mut self) {
        if !self.done {
            self.done = true;
            self.warning = self.judge();
            self.responses = Vec::new();
        }
    }

    pub(super) fn warning(&self) -> Option<ResponseWarning> {
        self.warning
    }

    fn judge(&mut self) -> Option<ResponseWarning> {
        let responses = self.responses.len();
        if responses < RESPONSES_MIN {
            return None;
        }
        let total: u128 = self.responses.iter().map(|span| u128::from(span.0)).sum();
        let median = *self.responses.select_nth_unstable(responses / 2).1;
        if median < SHORT {
            return Some(ResponseWarning::TooShort { median, responses });
        }
        if median > LONG {
            return Some(ResponseWarning::TooLong { median, responses });
        }
        let elapsed = self.latest.saturating_since(self.first?);
        // The clock of the arrivals may be coarse; times of one instant permit no judgement.
        let outstanding = total.checked_div(u128::from(elapsed.0))? as u64;
        (outstanding > OUTSTANDING_MAX).then_some(ResponseWarning::TooManyOutstanding {
            outstanding,
            responses,
        })
    }
}
