//! Replays a recorded stream of requests on the virtual clock, to find how long a drive takes for
//! the requests of a kernel.
//!
//! The stream was recorded on the same drive while its time passed much faster than the kernel's.
//! The recording therefore gives an order, not times: a request can depend only on requests whose
//! responses the kernel had received before it sent this one. The replay sends each request once
//! those requests are complete. The host takes no time of its own; only the drive's time is
//! measured.

use std::collections::VecDeque;
use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use traxtent_model::drive::Drive;
use traxtent_sim::{Host, simulate};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::trace::{TraceError, TraceFormat, TraceOptions, TraceReader};
use traxtent_workload::{Arrival, NextStep, RequestSource, Urgency};

use super::REQUEST_MAX;
use super::coalesce::WriteBuffer;
use crate::bench::{Bench, LabError};

/// The requests that a kernel sent to a drive.
#[derive(Clone, Debug)]
pub struct RequestStream {
    /// The steps in the order of their arrival.
    steps: Vec<Step>,
    /// The indices of the steps in the order of their completion.
    by_completion: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    request: Request,
    /// The number of requests that were complete when it was sent.
    completed_before: usize,
}

impl RequestStream {
    /// Reads the requests to a partition, and all flushes, from the request log of a served drive.
    /// Requests elsewhere, such as a starting machine's search for a partition table, are omitted.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a request log.
    pub fn read(path: &Path, partition: &Range<Lbn>) -> Result<RequestStream, LabError> {
        let failed = |error| LabError::file(path, error);
        let input = BufReader::new(File::open(path).map_err(failed)?);
        let reader = TraceReader::new(TraceFormat::RequestLog, input, TraceOptions::default());
        let mut rows = Vec::new();
        for record in reader {
            let record = record.map_err(|error| LabError::Simulation(error.into()))?;
            if record.request.sectors > 0 && !partition.contains(&record.request.lbn) {
                continue;
            }
            let sent = record.arrival.unwrap_or(SimTime::ZERO);
            rows.push((
                sent,
                sent + record.measured.unwrap_or(Span::ZERO),
                record.request,
            ));
        }
        Ok(RequestStream::of(&rows))
    }

    /// Builds a stream from requests and the times at which each was sent and completed.
    fn of(rows: &[(SimTime, SimTime, Request)]) -> RequestStream {
        let mut by_completion: Vec<usize> = (0..rows.len()).collect();
        by_completion.sort_by_key(|index| rows[*index].1);
        let step = |&(sent, _, request): &(SimTime, SimTime, Request)| Step {
            request,
            completed_before: by_completion.partition_point(|index| rows[*index].1 <= sent),
        };
        RequestStream {
            steps: rows.iter().map(step).collect(),
            by_completion,
        }
    }

    /// Returns the time that the drive of a bench takes for the stream, from the first request to
    /// the last completion. The drive holds up to `held_sectors` sectors of writes (0: none, as in
    /// the model).
    ///
    /// # Errors
    /// Returns an error if the drive refuses a request.
    pub fn time(&self, bench: &Bench, held_sectors: u64) -> Result<Span, LabError> {
        let drive = Drive::with_geometry(Arc::clone(&bench.profile), Arc::clone(&bench.geometry));
        let ratio = u64::from(bench.profile.sector.ratio());
        let mut replay = Replay::new(self, WriteBuffer::new(held_sectors, ratio));
        let end = simulate(&mut Host::new(vec![drive]), &mut replay, |_| true)?;
        Ok(Span(end.0))
    }
}

/// A stream that is being replayed.
struct Replay<'a> {
    stream: &'a RequestStream,
    /// The parts of all requests, each with the index of its step. A request larger than
    /// [`REQUEST_MAX`] has several parts.
    parts: Vec<(usize, Request)>,
    /// The index of the next part.
    next: usize,
    /// The number of incomplete parts of each step.
    left: Vec<u32>,
    /// The number of steps at the front of `by_completion` that are complete in this replay.
    completed: usize,
    buffer: WriteBuffer,
    /// The requests to send next, each with the index of its part. A held write has none: it is
    /// already complete for the kernel.
    ready: VecDeque<(Option<usize>, Request)>,
    /// The requests that have been sent to the drive.
    sent: Vec<(Option<usize>, Request)>,
    /// Sectors of held writes that have been released and are not complete on the drive.
    leaving: u64,
    now: SimTime,
}

impl<'a> Replay<'a> {
    fn new(stream: &'a RequestStream, buffer: WriteBuffer) -> Replay<'a> {
        let mut parts = Vec::new();
        let mut left = Vec::new();
        for (index, step) in stream.steps.iter().enumerate() {
            let before = parts.len();
            parts.extend(cut(step.request).map(|part| (index, part)));
            left.push((parts.len() - before) as u32);
        }
        Replay {
            stream,
            parts,
            next: 0,
            left,
            completed: 0,
            buffer,
            ready: VecDeque::new(),
            sent: Vec::new(),
            leaving: 0,
            now: SimTime::ZERO,
        }
    }

    /// Holds, completes or queues the next part, or makes room for it. Returns false if the drive
    /// must complete a request first.
    fn advance(&mut self) -> bool {
        let Some(&(step, request)) = self.parts.get(self.next) else {
            let rest = self.buffer.all();
            self.release(rest);
            return true;
        };
        if self.stream.steps[step].completed_before > self.completed {
            return false;
        }
        let may_wait = request.op == Op::Write && !request.fua;
        if may_wait && self.buffer.can_hold(request.sectors) {
            if self.buffer.has_room(request.sectors, self.leaving) {
                self.buffer.hold(&request);
                self.finish_part(step);
                self.next += 1;
                return true;
            }
            if self.leaving > 0 {
                return false;
            }
            let run = self.buffer.next();
            self.release(run);
            return true;
        }
        if request.op == Op::Read && self.buffer.holds(&request) {
            self.finish_part(step);
            self.next += 1;
            return true;
        }
        let before = match request.op {
            Op::Flush => self.buffer.all(),
            _ => self.buffer.overlapping(&request),
        };
        self.release(before);
        self.ready.push_back((Some(self.next), request));
        self.next += 1;
        true
    }

    /// Queues held writes for the drive.
    fn release(&mut self, writes: Vec<Request>) {
        self.leaving += writes.iter().map(|w| u64::from(w.sectors)).sum::<u64>();
        self.ready
            .extend(writes.into_iter().map(|write| (None, write)));
    }

    /// Records that a part of a step is complete.
    fn finish_part(&mut self, step: usize) {
        self.left[step] -= 1;
        let rest = &self.stream.by_completion[self.completed..];
        self.completed += rest
            .iter()
            .take_while(|step| self.left[**step] == 0)
            .count();
    }
}

impl RequestSource for Replay<'_> {
    fn due(&mut self) -> Result<NextStep, TraceError> {
        while self.ready.is_empty() {
            if self.next == self.parts.len() && self.buffer.is_empty() {
                return Ok(NextStep::Never);
            }
            if !self.advance() {
                return Ok(NextStep::AfterCompletion);
            }
        }
        Ok(NextStep::At(self.now))
    }

    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        let (part, request) = self.ready.pop_front()?;
        let tag = self.sent.len() as u64;
        self.sent.push((part, request));
        self.now = now;
        Some(Arrival {
            at: now,
            tag,
            device: 0,
            urgency: Urgency::None,
            measured: None,
            request,
        })
    }

    fn complete(&mut self, tag: u64, at: SimTime) {
        self.now = at;
        match self.sent[tag as usize] {
            (Some(part), _) => self.finish_part(self.parts[part].0),
            (None, write) => self.leaving -= u64::from(write.sectors),
        }
    }
}

/// Splits a request into parts no larger than [`REQUEST_MAX`].
fn cut(request: Request) -> impl Iterator<Item = Request> {
    let parts = request.sectors.div_ceil(REQUEST_MAX).max(1);
    (0..parts).map(move |part| {
        let from = part * REQUEST_MAX;
        Request {
            lbn: Lbn(request.lbn.0 + u64::from(from)),
            sectors: (request.sectors - from).min(REQUEST_MAX),
            ..request
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(times: &[(u64, u64)]) -> Vec<(SimTime, SimTime, Request)> {
        let row = |(lbn, &(sent, completed)): (u64, &(u64, u64))| {
            (
                SimTime(sent),
                SimTime(completed),
                Request::read(Lbn(lbn * 100_000), 8),
            )
        };
        (0..).zip(times).map(row).collect()
    }

    /// Does a request wait for exactly those requests that were complete when it was sent?
    #[test]
    fn order() {
        let stream = RequestStream::of(&rows(&[(0, 10), (5, 7), (7, 20), (10, 30), (30, 40)]));
        let after: Vec<usize> = stream
            .steps
            .iter()
            .map(|step| step.completed_before)
            .collect();
        assert_eq!(after, [0, 0, 1, 2, 4]);
    }

    /// Does a stream whose requests each waited for the previous one take as long as serving them
    /// one by one, and less if all were sent at once?
    #[test]
    fn one_by_one_and_at_once() {
        let bench = Bench::new("atlas10k2", 1).unwrap();
        let chain: Vec<(u64, u64)> = (0..50).map(|i| (10 * i, 10 * i + 10)).collect();
        let chained = RequestStream::of(&rows(&chain)).time(&bench, 0).unwrap();
        let mut drive =
            Drive::with_geometry(Arc::clone(&bench.profile), Arc::clone(&bench.geometry));
        let mut now = SimTime::ZERO;
        for (_, _, request) in rows(&chain) {
            now = drive.serve(now, request).unwrap().completed;
        }
        assert_eq!(chained, Span(now.0));
        let crowd: Vec<(u64, u64)> = (0..50).map(|i| (0, i + 1)).collect();
        let crowded = RequestStream::of(&rows(&crowd)).time(&bench, 0).unwrap();
        assert!(crowded < chained, "{crowded:?} {chained:?}");
    }

    /// Do the parts of a large request cover it, and does a flush remain a single request?
    #[test]
    fn parts() {
        let parts: Vec<Request> = cut(Request::write(Lbn(34), 2500)).collect();
        let sizes: Vec<u32> = parts.iter().map(|part| part.sectors).collect();
        assert_eq!(sizes, [1024, 1024, 452]);
        assert_eq!(parts[2].lbn, Lbn(34 + 2048));
        assert_eq!(
            cut(Request::flush()).collect::<Vec<_>>(),
            [Request::flush()]
        );
    }
}
