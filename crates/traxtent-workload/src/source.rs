//! Sources of requests: the interface between a workload and the simulation or server that runs it.
//!
//! A source has no clock. Its driver calls [`RequestSource::due`], advances the clock to that
//! instant (or to an earlier completion), takes the request that the source issues, and reports
//! completions to it:
//!
//! ```text
//! loop:  a = source.due();  b = drive.next_wakeup()
//!      a is At(t), t < b   ->  source.take(t), submit its request, if any
//!      else b exists       ->  poll the drive at b, source.complete(tag, time) for each completion
//!      neither             ->  the end
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::distribution::Distribution;
use super::generate::{RequestGenerator, TrackSource};
use super::spec::{ArrivalModel, WorkloadError, WorkloadSpec};
use super::trace::TraceError;
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{SimTime, Span};

/// The next step of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Call [`RequestSource::take`] at this instant, unless a completion comes first.
    At(SimTime),
    /// Wait for another completion.
    AfterCompletion,
    /// The source has ended.
    Never,
}

/// The urgency of a request for the process that issued it. DiskSim's driver serves urgent requests
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// The process continues without waiting for the response.
    #[default]
    None,
    /// The process continues for a limited time, then waits.
    Limited,
    /// The process waits.
    Critical,
}

/// A request as issued by its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// The instant of issue.
    pub at: SimTime,
    /// A number counted from 0 in order of issue. It identifies the request in
    /// [`RequestSource::complete`].
    pub tag: u64,
    /// The device, if a workload has several.
    pub device: u32,
    /// The urgency.
    pub urgency: Urgency,
    /// The time that a real drive took for the request, if a trace records it.
    pub measured: Option<Span>,
    /// The request.
    pub request: Request,
}

/// A source of requests over simulated time.
pub trait RequestSource {
    /// Returns the next step. Repeated calls change nothing.
    ///
    /// # Errors
    /// Returns an error if a trace cannot be read further, or if its next record lacks a time that
    /// the replay needs. The driver must then stop.
    fn due(&mut self) -> Result<NextStep, TraceError>;

    /// Returns the request that is due at `now`, or `None` if the source only had to update its
    /// state. In that case call [`RequestSource::due`] again.
    ///
    /// # Panics
    /// May panic if `now` is not the instant that [`RequestSource::due`] returned.
    fn take(&mut self, now: SimTime) -> Option<Arrival>;

    /// Reports that a request is complete. Times must not decrease.
    fn complete(&mut self, tag: u64, at: SimTime);
}

/// A synthetic workload, open or closed.
#[derive(Clone)]
pub struct Synthetic<'a> {
    requests: RequestGenerator<'a>,
    time_rng: Rng,
    flow: Flow,
    remaining: u64,
    end: SimTime,
    tag: u64,
}

#[derive(Clone)]
enum Flow {
    /// One instant for each request that may be issued: the end of its think time. Outstanding
    /// requests have none.
    Closed {
        think: Times,
        ready: BinaryHeap<Reverse<SimTime>>,
    },
    Open {
        gap: Times,
        next: SimTime,
    },
}

/// Times between requests.
#[derive(Clone)]
enum Times {
    /// Always the same. It is converted to a span only once, for speed.
    Constant(Span),
    Drawn(Distribution),
}

impl Times {
    fn new(distribution: &Distribution, rng: &mut Rng) -> Times {
        match distribution {
            // No random number is drawn.
            Distribution::Constant(_) => Times::Constant(distribution.sample_time(rng)),
            _ => Times::Drawn(distribution.clone()),
        }
    }

    #[inline]
    fn sample(&self, rng: &mut Rng) -> Span {
        match self {
            Times::Constant(time) => *time,
            Times::Drawn(distribution) => distribution.sample_time(rng),
        }
    }
}

impl<'a> Synthetic<'a> {
    /// Creates the workload of `spec` on a drive.
    ///
    /// # Errors
    /// Returns the errors of [`RequestGenerator::new`].
    pub fn new(
        spec: &WorkloadSpec,
        sector_bytes: u32,
        tracks: &'a dyn TrackSource,
    ) -> Result<Self, WorkloadError> {
        let mut time_rng = Rng::new(spec.seed);
        let requests = RequestGenerator::new(spec, sector_bytes, tracks, time_rng.split())?;
        let flow = match &spec.pace {
            ArrivalModel::Closed { outstanding, think } => {
                let ready = (0..*outstanding).map(|_| Reverse(SimTime::ZERO)).collect();
                let think = Times::new(think, &mut time_rng);
                Flow::Closed { think, ready }
            }
            ArrivalModel::Open { gap } => {
                let gap = Times::new(gap, &mut time_rng);
                let next = SimTime::ZERO + gap.sample(&mut time_rng);
                Flow::Open { gap, next }
            }
        };
        let end = spec.end_time.unwrap_or(SimTime(u64::MAX));
        Ok(Synthetic {
            requests,
            time_rng,
            flow,
            remaining: spec.count,
            end,
            tag: 0,
        })
    }
}

impl RequestSource for Synthetic<'_> {
    #[inline]
    fn due(&mut self) -> Result<NextStep, TraceError> {
        if self.remaining == 0 {
            return Ok(NextStep::Never);
        }
        let next = match &self.flow {
            Flow::Closed { ready, .. } => match ready.peek() {
                Some(&Reverse(at)) => at,
                None => return Ok(NextStep::AfterCompletion),
            },
            Flow::Open { next, .. } => *next,
        };
        Ok(if next <= self.end {
            NextStep::At(next)
        } else {
            NextStep::Never
        })
    }

    #[inline]
    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        match &mut self.flow {
            Flow::Closed { ready, .. } => {
                ready.pop();
            }
            Flow::Open { gap, next } => {
                let wait = gap.sample(&mut self.time_rng);
                *next = SimTime(next.0.saturating_add(wait.0));
            }
        }
        let request = self.requests.next()?;
        let tag = self.tag;
        self.tag += 1;
        self.remaining -= 1;
        Some(Arrival {
            at: now,
            tag,
            device: 0,
            urgency: Urgency::None,
            measured: None,
            request,
        })
    }

    #[inline]
    fn complete(&mut self, _: u64, at: SimTime) {
        if let Flow::Closed { think, ready } = &mut self.flow {
            ready.push(Reverse(SimTime(
                at.0.saturating_add(think.sample(&mut self.time_rng).0),
            )));
        }
    }
}
