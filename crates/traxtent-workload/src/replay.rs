//! Trace replay: at recorded arrival times, semi-closed, or closed.

use super::source::{Arrival, NextStep, RequestSource, Urgency};
use super::trace::{TraceError, TraceFormat, TraceRecord};
use traxtent_units::{SimTime, Span};

/// The rule that determines when the records of a trace are issued.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplayPace {
    /// At the recorded arrival times, divided by `speed`. A record whose arrival precedes that of
    /// an earlier record is issued together with the earlier one.
    Recorded {
        /// The speed-up; 2 is twice as fast as recorded.
        speed: f64,
    },
    /// Each record is issued once its recorded pause after the previous completion has passed; the
    /// first at time 0.
    SemiClosed,
    /// As fast as completions allow.
    Closed {
        /// The number of requests that are always outstanding.
        outstanding: u32,
    },
}

impl ReplayPace {
    /// Returns the default pace of a format: semi-closed if its traces record pauses, else at the
    /// recorded arrival times.
    pub fn default_for(format: TraceFormat) -> ReplayPace {
        match format {
            TraceFormat::DiskSimValidate => ReplayPace::SemiClosed,
            _ => ReplayPace::Recorded { speed: 1.0 },
        }
    }
}

/// A trace as a [`RequestSource`]. One record is read ahead.
pub struct Replay<I> {
    records: I,
    pace: ReplayPace,
    next: Option<TraceRecord>,
    issued: u64,
    outstanding: u32,
    /// The earliest instant for the next record.
    ready: SimTime,
    /// The pause after the outstanding record.
    pause: Span,
}

impl<I: Iterator<Item = Result<TraceRecord, TraceError>>> Replay<I> {
    /// Creates a source that replays `records` at `pace`.
    pub fn new(records: I, pace: ReplayPace) -> Replay<I> {
        Replay {
            records,
            pace,
            next: None,
            issued: 0,
            outstanding: 0,
            ready: SimTime::ZERO,
            pause: Span::ZERO,
        }
    }

    /// The trace reader, which holds the warnings.
    pub fn records(&self) -> &I {
        &self.records
    }

    fn fill(&mut self) -> Result<Option<&TraceRecord>, TraceError> {
        if self.next.is_none() {
            self.next = self.records.next().transpose()?;
        }
        Ok(self.next.as_ref())
    }
}

impl<I: Iterator<Item = Result<TraceRecord, TraceError>>> RequestSource for Replay<I> {
    fn due(&mut self) -> Result<NextStep, TraceError> {
        let (pace, ready, outstanding, number) =
            (self.pace, self.ready, self.outstanding, self.issued);
        let Some(record) = self.fill()? else {
            return Ok(NextStep::Never);
        };
        match pace {
            ReplayPace::Recorded { speed } => match record.arrival {
                Some(arrival) if speed == 1.0 => Ok(NextStep::At(arrival.max(ready))),
                Some(arrival) => Ok(NextStep::At(
                    SimTime((arrival.0 as f64 / speed) as u64).max(ready),
                )),
                None => Err(TraceError::Missing {
                    record: number + 1,
                    field: "arrival time",
                }),
            },
            ReplayPace::SemiClosed if record.pause.is_none() => Err(TraceError::Missing {
                record: number + 1,
                field: "pause",
            }),
            ReplayPace::SemiClosed if outstanding > 0 => Ok(NextStep::AfterCompletion),
            ReplayPace::Closed { outstanding: most } if outstanding >= most => {
                Ok(NextStep::AfterCompletion)
            }
            ReplayPace::SemiClosed | ReplayPace::Closed { .. } => Ok(NextStep::At(ready)),
        }
    }

    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        let record = self.next.take()?;
        let tag = self.issued;
        self.issued += 1;
        self.outstanding += 1;
        self.ready = now;
        self.pause = record.pause.unwrap_or(Span::ZERO);
        Some(Arrival {
            at: now,
            tag,
            device: record.device,
            urgency: Urgency::None,
            measured: record.measured,
            request: record.request,
        })
    }

    fn complete(&mut self, _: u64, at: SimTime) {
        self.outstanding = self.outstanding.saturating_sub(1);
        match self.pace {
            ReplayPace::SemiClosed => self.ready = SimTime(at.0.saturating_add(self.pause.0)),
            ReplayPace::Closed { .. } => self.ready = self.ready.max(at),
            ReplayPace::Recorded { .. } => {}
        }
    }
}
