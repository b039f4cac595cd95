//! Arrivals out of order: refused if the format orders its records, counted otherwise.
//!
//! DiskSim ends a run at an arrival before that of an earlier record, in any of its formats. The
//! Storage Performance Council's format and fio's iolog are written in order of time. In all of
//! these, a step back means a damaged file, or two joined ones. MSR Cambridge's records, blkparse's
//! events and our own log are gathered from several processors or threads. A step back of a few
//! microseconds is normal there, so these are counted. The records of fio's latency logs and of
//! specified columns are sorted as far as memory permits, and the rest is counted.

use super::error::{TraceError, TracePosition, TraceProblem};
use super::{TraceFormat, TraceRecord};
use traxtent_units::Span;

/// Arrivals that precede the arrival of an earlier record, in a format whose records need not be in
/// order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrderWarning {
    /// The number of such arrivals.
    pub count: u64,
    /// The position of the first one.
    pub first: TracePosition,
    /// The largest time by which one precedes the latest arrival of an earlier record.
    pub step_back_max: Span,
}

impl std::fmt::Display for OrderWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (requests, arrive) = match self.count {
            1 => ("request", "arrives"),
            _ => ("requests", "arrive"),
        };
        write!(
            f,
            "{} {requests} {arrive} before an earlier one in the file, the first in {}, by up to {} ms; each is issued \
             together with the preceding request; to issue it at its own time, sort the trace by time",
            self.count,
            self.first,
            self.step_back_max.as_ms()
        )
    }
}

/// Returns whether a step back in time is refused.
fn is_ordered(format: TraceFormat) -> bool {
    match format {
        TraceFormat::DiskSimAscii
        | TraceFormat::DiskSimValidate
        | TraceFormat::HpSrt
        | TraceFormat::Spc
        | TraceFormat::FioV2
        | TraceFormat::FioV3 => true,
        TraceFormat::Msr
        | TraceFormat::Blkparse
        | TraceFormat::FioLatency
        | TraceFormat::RequestLog
        | TraceFormat::Csv => false,
    }
}

pub(super) struct OrderCheck {
    format: TraceFormat,
    enabled: bool,
    /// The latest arrival, in picoseconds from the trace's origin.
    latest: Option<u64>,
    warning: Option<OrderWarning>,
}

impl OrderCheck {
    pub(super) fn new(format: TraceFormat, enabled: bool) -> OrderCheck {
        OrderCheck {
            format,
            enabled,
            latest: None,
            warning: None,
        }
    }

    /// Checks a record; `early` is the time by which it arrived before the trace's origin.
    pub(super) fn check(
        &mut self,
        record: &TraceRecord,
        early: Span,
        place: TracePosition,
    ) -> Result<(), TraceError> {
        let Some(arrival) = record.arrival.filter(|_| self.enabled) else {
            return Ok(());
        };
        let latest = *self.latest.get_or_insert(arrival.0);
        let back = Span((latest + early.0).saturating_sub(arrival.0));
        if back == Span::ZERO {
            self.latest = Some(arrival.0);
            return Ok(());
        }
        if is_ordered(self.format) {
            return Err(TraceError::At {
                format: self.format,
                place,
                problem: TraceProblem::Order { back },
            });
        }
        let warning = self.warning.get_or_insert(OrderWarning {
            count: 0,
            first: place,
            step_back_max: Span::ZERO,
        });
        warning.count += 1;
        warning.step_back_max = warning.step_back_max.max(back);
        Ok(())
    }

    pub(super) fn warning(&self) -> Option<OrderWarning> {
        self.warning
    }
}
