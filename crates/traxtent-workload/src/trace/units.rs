//! A plausibility check of a trace's times, which may be off by a factor of a thousand.
//!
//! Milliseconds and seconds are easily confused in a trace written by hand. The first
//! [`GAPS_CHECKED`] gaps between arrivals, or pauses (or all, if there are fewer), are judged:
//! - too short, if their mean is below 50 µs in the formats that are written by hand (DiskSim's and
//!   SPC), or below 1 µs in the others. No disk of these formats' era sustained 20,000 requests per
//!   second. The mean is used because many traces have coarse clocks and therefore many gaps of 0.
//! - too long, if their median is above 5 s, in any format. The median is used because nights and
//!   weekends are long.

use super::{TraceFormat, TraceRecord};
use traxtent_units::{SimTime, Span};

/// The maximum number of gaps that are judged.
pub const GAPS_CHECKED: usize = 1000;

/// The smallest number of gaps that permits a judgement.
const GAPS_MIN: usize = 10;

const LONG: Span = Span(5_000_000_000_000);

/// The direction in which gaps look wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapSuspicion {
    /// The times may be in a larger unit than the format's.
    TooShort,
    /// The times may be in a smaller unit than the format's.
    TooLong,
}

/// A suspicion about the unit of a trace's times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GapWarning {
    /// The format that the trace is read as.
    pub format: TraceFormat,
    /// The direction in which the gaps look wrong.
    pub suspicion: GapSuspicion,
    /// The typical gap: the mean if gaps are short, the median if they are long.
    pub gap: Span,
    /// The number of gaps judged.
    pub gaps: usize,
}

impl std::fmt::Display for GapWarning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (word, measure) = match self.suspicion {
            GapSuspicion::TooShort => ("short", "mean"),
            GapSuspicion::TooLong => ("long", "median"),
        };
        let unit = match self.format {
            TraceFormat::DiskSimAscii => "milliseconds",
            TraceFormat::Spc => "seconds",
            TraceFormat::Msr => "units of 100 ns",
            TraceFormat::Blkparse => "seconds",
            TraceFormat::FioLatency => "milliseconds",
            TraceFormat::Csv => {
                return write!(
                    f,
                    "the {measure} of the first {} gaps between requests is {} ms, which is {word} for a disk; \
                     check the unit of arrivals",
                    self.gaps,
                    self.gap.as_ms()
                );
            }
            _ => "microseconds",
        };
        write!(
            f,
            "the {measure} of the first {} gaps between requests is {} ms, which is {word} for a disk; \
             check that the times are in {unit}, as in a {} trace",
            self.gaps,
            self.gap.as_ms(),
            self.format
        )
    }
}

pub(super) struct GapCheck {
    format: TraceFormat,
    gaps: Vec<Span>,
    last: Option<SimTime>,
    warning: Option<GapWarning>,
    done: bool,
}

impl GapCheck {
    pub(super) fn new(format: TraceFormat) -> GapCheck {
        GapCheck {
            format,
            gaps: Vec::new(),
            last: None,
            warning: None,
            // The unit of our own log is certain.
            done: format == TraceFormat::RequestLog,
        }
    }

    pub(super) fn add(&mut self, record: &TraceRecord) {
        if self.done {
            return;
        }
        if let Some(arrival) = record.arrival {
            if let Some(last) = self.last {
                self.gaps.push(arrival.saturating_since(last));
            }
            self.last = Some(arrival);
        } else if let Some(think) = record.pause {
            self.gaps.push(think);
        }
        if self.gaps.len() == GAPS_CHECKED {
            self.end();
        }
    }

    pub(super) fn end(&mut self) {
        if !self.done {
            self.done = true;
            self.warning = self.warning_of_gaps();
            self.gaps = Vec::new();
        }
    }

    pub(super) fn warning(&self) -> Option<GapWarning> {
        self.warning
    }

    fn warning_of_gaps(&mut self) -> Option<GapWarning> {
        let gaps = self.gaps.len();
        // A version 2 fio log may hold no times.
        if gaps < GAPS_MIN
            || (self.format == TraceFormat::FioV2 && self.gaps.iter().all(|&gap| gap == Span::ZERO))
        {
            return None;
        }
        let mean = Span(
            (self.gaps.iter().map(|gap| u128::from(gap.0)).sum::<u128>() / gaps as u128) as u64,
        );
        let median = *self.gaps.select_nth_unstable(gaps / 2).1;
        let by_hand = matches!(
            self.format,
            TraceFormat::DiskSimAscii | TraceFormat::DiskSimValidate | TraceFormat::Spc
        );
        let short = Span(if by_hand { 50_000_000 } else { 1_000_000 });
        let warning = |suspicion, gap| {
            Some(GapWarning {
                format: self.format,
                suspicion,
                gap,
                gaps,
            })
        };
        if mean < short {
            warning(GapSuspicion::TooShort, mean)
        } else if median > LONG {
            warning(GapSuspicion::TooLong, median)
        } else {
            None
        }
    }
}
