//! The host's queue and the drive that it feeds.

use traxtent_model::drive::{Breakdown, Candidate, Completion, Drive, Schedule, Tag};
use traxtent_units::request::{Op, Request};
use traxtent_units::{SimTime, Span};

use super::config::Config;

/// The host's identifier of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Io(pub(super) u64);

/// The traffic of a disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// The number of reads.
    pub reads: u64,
    /// The number of writes.
    pub writes: u64,
    /// The number of sectors read.
    pub sectors_read: u64,
    /// The number of sectors written.
    pub sectors_written: u64,
    /// The time in which all sectors pass under the heads at the rate of their zones.
    pub media: Span,
    /// The sums of the parts of all response times. Waiting in the host counts as queueing.
    pub parts: Breakdown,
}

impl Traffic {
    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.reads + self.writes
    }

    /// Adds the traffic of another disk.
    pub(super) fn add(&mut self, other: &Traffic) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.sectors_read += other.sectors_read;
        self.sectors_written += other.sectors_written;
        self.media += other.media;
        self.add_parts(other.parts, Span::ZERO);
    }

    fn add_parts(&mut self, part: Breakdown, queued: Span) {
        let sum = &mut self.parts;
        sum.queue += part.queue + queued;
        sum.overhead += part.overhead;
        sum.seek += part.seek;
        sum.settle += part.settle;
        sum.head_switch += part.head_switch;
        sum.rotation += part.rotation;
        sum.transfer += part.transfer;
        sum.bus += part.bus;
    }

    /// The mean of one part of the response times, in milliseconds.
    pub fn part_ms(&self, name: &str) -> f64 {
        let parts = Breakdown::NAMES.iter().zip(self.parts.parts());
        let sum: f64 = parts
            .filter(|(part, _)| **part == name)
            .map(|(_, span)| span.as_ms())
            .sum();
        sum / self.requests().max(1) as f64
    }
}

/// A drive with its host's queue; see the module.
#[derive(Debug)]
pub(super) struct QueuedDrive {
    drive: Drive,
    schedule: Schedule,
    deadline: Option<Span>,
    /// The time at which the oldest request was last checked.
    checked: SimTime,
    depth: usize,
    waiting: Vec<(Io, Request, SimTime)>,
    sent: Vec<(Tag, Io, SimTime)>,
    next: u64,
    revolution: Span,
    pub(super) traffic: Traffic,
}

impl QueuedDrive {
    pub(super) fn new(drive: Drive, config: &Config) -> QueuedDrive {
        let depth = config.queue_depth.min(drive.profile().queue.depth).max(1);
        QueuedDrive {
            schedule: Schedule::new(config.scheduler),
            deadline: config.deadline,
            checked: SimTime::ZERO,
            depth: depth as usize,
            waiting: Vec::new(),
            sent: Vec::new(),
            next: 0,
            revolution: Span::from_ms(drive.profile().revolution_ms()),
            drive,
            traffic: Traffic::default(),
        }
    }

    /// The number of outstanding requests.
    pub(super) fn outstanding(&self) -> usize {
        self.waiting.len() + self.sent.len()
    }

    /// Accepts a request at `now`. All events before `now` must have been processed.
    pub(super) fn submit(&mut self, now: SimTime, request: Request) -> Io {
        let io = Io(self.next);
        self.next += 1;
        self.waiting.push((io, request, now));
        self.feed(now);
        io
    }

    pub(super) fn next_wakeup(&self) -> Option<SimTime> {
        self.drive.next_wakeup()
    }

    /// Returns the next request that is complete at `now`, and sends waiting requests.
    pub(super) fn poll(&mut self, now: SimTime) -> Option<Io> {
        let done = self.complete(now);
        self.feed(now);
        done.map(|(io, _)| io)
    }

    /// Returns the next request that is complete at `now`. Waiting requests are not sent until
    /// [`QueuedDrive::feed`].
    pub(super) fn complete(&mut self, now: SimTime) -> Option<(Io, Completion)> {
        let completion = self.drive.poll(now);
        let completion = completion?;
        let place = self
            .sent
            .iter()
            .position(|(tag, ..)| *tag == completion.tag);
        let (_, io, issued) = self
            .sent
            .swap_remove(place.expect("a drive completes only submitted requests"));
        self.count(&completion, completion.submitted.since(issued));
        Some((io, completion))
    }

    fn count(&mut self, completion: &Completion, queued: Span) {
        let sectors = u64::from(completion.request.sectors);
        if completion.request.op == Op::Write {
            self.traffic.writes += 1;
            self.traffic.sectors_written += sectors;
        } else {
            self.traffic.reads += 1;
            self.traffic.sectors_read += sectors;
        }
        let slots = self.drive.geometry().track_of(completion.request.lbn);
        let slots = slots.map_or(1, |track| u64::from(track.slots));
        self.traffic.media += Span(self.revolution.0 / slots * sectors);
        self.traffic.add_parts(completion.breakdown, queued);
    }

    /// Sends as many requests as the drive accepts.
    pub(super) fn feed(&mut self, now: SimTime) {
        while self.sent.len() < self.depth && !self.waiting.is_empty() {
            let index = self.choose(now);
            let (io, request, issued) = self.waiting.remove(index);
            self.schedule.serve(request.lbn, request.end());
            let tag = self.drive.submit(now, request);
            let tag = tag.expect("a file system stays on its partition");
            self.sent.push((tag, io, issued));
        }
    }

    /// Returns the index of the waiting request to send next.
    fn choose(&mut self, now: SimTime) -> usize {
        if let Some(deadline) = self.deadline.filter(|every| self.checked + *every <= now) {
            self.checked = now;
            let (.., oldest) = self.waiting[0];
            if oldest + deadline < now {
                return 0;
            }
        }
        let waiting = self.waiting.iter().map(|(_, request, arrived)| Candidate {
            lbn: request.lbn,
            end: request.end(),
            arrived: *arrived,
        });
        let index = self.schedule.pick(now, waiting, |_| Span::ZERO);
        index.expect("requests wait")
    }
}
