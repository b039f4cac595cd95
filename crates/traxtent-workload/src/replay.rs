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
    /// Each record is issued once the pause recorded with the previous one has passed since the
    /// completion of that one; the first is issued at time 0.
    ///
    /// If the trace records arrivals and completions instead of pauses, the pause is the time
    /// from the end of one record ([`TraceRecord::end`]) to the arrival of the next, and 0 if the
    /// next arrived before. After a record without an end, the next is issued at the recorded
    /// distance from it, but not before its completion.
    SemiClosed,
    /// As fast as completions allow.
    Closed {
        /// The number of requests that are kept outstanding.
        outstanding: u32,
    },
}

impl ReplayPace {
    /// Returns the default pace of a format: semi-closed if its traces always record pauses, else
    /// at the recorded arrival times. Whether a trace with specified columns records pauses depends
    /// on the columns (see [`TraceReader::records_pauses`](crate::TraceReader::records_pauses)).
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
    /// The last record that was issued, if the pace is semi-closed.
    last: Option<Issued>,
}

/// A record that was issued.
#[derive(Clone, Copy)]
struct Issued {
    pause: Option<Span>,
    arrival: Option<SimTime>,
    /// The end of the record in the trace.
    end: Option<SimTime>,
    issued: SimTime,
    completed: SimTime,
}

impl Issued {
    /// Returns the instant at which the next record, which arrived at `next`, is issued.
    fn next_issue(&self, next: Option<SimTime>) -> SimTime {
        let after = |start: SimTime, span: Span| SimTime(start.0.saturating_add(span.0));
        match (self.pause, self.arrival.zip(next), self.end) {
            (Some(pause), ..) => after(self.completed, pause),
            (None, Some((_, next)), Some(end)) => after(self.completed, next.saturating_since(end)),
            (None, Some((arrival, next)), None) => {
                after(self.issued, next.saturating_since(arrival)).max(self.completed)
            }
            (None, None, _) => self.completed,
        }
    }
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
            last: None,
        }
    }

    /// Returns the iterator over the records, such as a trace reader, which holds the warnings.
    pub fn records(&self) -> &I {
        &self.records
    }

    /// Returns the rule that determines when records are issued.
    pub fn pace(&self) -> ReplayPace {
        self.pace
    }

    /// Returns the records that have not been issued, without the one that was read ahead.
    pub fn into_records(self) -> I {
        self.records
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
        let last = self.last;
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
            ReplayPace::SemiClosed if record.pause.is_none() && record.arrival.is_none() => {
                Err(TraceError::Missing {
                    record: number + 1,
                    field: "pause",
                })
            }
            ReplayPace::SemiClosed if outstanding > 0 => Ok(NextStep::AfterCompletion),
            ReplayPace::SemiClosed => {
                let next = last.map(|last| last.next_issue(record.arrival));
                Ok(NextStep::At(next.unwrap_or(SimTime::ZERO)))
            }
            ReplayPace::Closed { outstanding: most } if outstanding >= most => {
                Ok(NextStep::AfterCompletion)
            }
            ReplayPace::Closed { .. } => Ok(NextStep::At(ready)),
        }
    }

    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        let record = self.next.take()?;
        let tag = self.issued;
        self.issued += 1;
        self.outstanding += 1;
        self.ready = now;
        if self.pace == ReplayPace::SemiClosed {
            self.last = Some(Issued {
                pause: record.pause,
                arrival: record.arrival,
                end: record.end(),
                issued: now,
                completed: now,
            });
        }
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
            ReplayPace::SemiClosed => {
                if let Some(last) = &mut self.last {
                    last.completed = at;
                }
            }
            ReplayPace::Closed { .. } => self.ready = self.ready.max(at),
            ReplayPace::Recorded { .. } => {}
        }
    }
}
