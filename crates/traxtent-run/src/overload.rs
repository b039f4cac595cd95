//! The numbers of requests from which a run that is overloaded is recognized.

use traxtent_units::SimTime;
use traxtent_workload::{Arrival, NextStep, RequestSource, TraceError};

/// The smallest number of requests that are outstanding when the last one arrives, if they arrive
/// too fast. A short burst at the end of a workload leaves fewer.
const OUTSTANDING_MIN: u64 = 100;

/// The same as a share of all requests: one in this many, or 5 %. If requests arrive faster than
/// they are served by a factor f, the share is 1 - 1/f, whatever their number; 5 % is reached at
/// 1.05. At a factor of 1, the queue's random length grows only with the square root of the number
/// of requests: after 10,000 of them, it is about 100, or 1 %.
const REQUESTS_PER_OUTSTANDING: u64 = 20;

/// The numbers of requests of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ArrivalCounts {
    issued: u64,
    completed: u64,
    /// The number of outstanding requests when the last one arrived, including that one.
    outstanding_at_last: u64,
}

impl ArrivalCounts {
    /// Returns whether requests arrived faster than they were served. A run that ended before its
    /// last completion permits no judgement.
    pub(crate) fn is_overloaded(self) -> bool {
        let outstanding = self.outstanding_at_last;
        self.completed == self.issued
            && outstanding >= OUTSTANDING_MIN
            && outstanding > self.issued / REQUESTS_PER_OUTSTANDING
    }
}

/// A source whose requests are counted.
pub(crate) struct Counted<'a, S> {
    source: &'a mut S,
    pub(crate) counts: ArrivalCounts,
}

impl<S> Counted<'_, S> {
    pub(crate) fn new(source: &mut S) -> Counted<'_, S> {
        Counted {
            source,
            counts: ArrivalCounts::default(),
        }
    }
}

impl<S: RequestSource> RequestSource for Counted<'_, S> {
    #[inline]
    fn due(&mut self) -> Result<NextStep, TraceError> {
        self.source.due()
    }

    #[inline]
    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        let arrival = self.source.take(now)?;
        self.counts.issued += 1;
        self.counts.outstanding_at_last = self.counts.issued - self.counts.completed;
        Some(arrival)
    }

    #[inline]
    fn complete(&mut self, tag: u64, at: SimTime) {
        self.counts.completed += 1;
        self.source.complete(tag, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the judgement exact at both bounds, and is there none about a run that ended early?
    #[test]
    fn bounds_of_the_judgement() {
        let judged = |outstanding_at_last, issued| {
            let completed = issued;
            ArrivalCounts {
                issued,
                completed,
                outstanding_at_last,
            }
            .is_overloaded()
        };
        assert!(!judged(99, 200) && judged(100, 200));
        assert!(!judged(500, 10_000) && judged(501, 10_000));
        let early = ArrivalCounts {
            issued: 200,
            completed: 199,
            outstanding_at_last: 150,
        };
        assert!(!early.is_overloaded());
    }
}
