//! A drive with the host's queue in front of it, which holds the requests that the drive has no
//! room for.
//!
//! Both clocks run it: the virtual one in [`crate::simulate()`], and the real one in
//! `traxtent_server::serve`. Its behaviour depends only on the requests and their arrival times.
//! Simulating a served drive's log therefore gives the same completions.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;

use traxtent_model::disk::{self, Disk, DiskError, Media};
use traxtent_model::drive::{Candidate, Completion, Drive, RequestError, Schedule};
use traxtent_model::profile::Scheduler;
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::Arrival;

/// The device behind a port: a drive, or a disk, which is a drive with data.
pub trait QueuedDevice {
    /// The payload that accompanies a request.
    type Payload: Debug + Clone;
    /// The completion of a request.
    type Completion;
    /// The reason why a request is refused.
    type Error;

    /// The drive.
    fn drive(&self) -> &Drive;

    /// Submits a request; returns the tag of its completion.
    fn submit(
        &mut self,
        now: SimTime,
        arrival: &Arrival,
        payload: Self::Payload,
    ) -> Result<u64, Self::Error>;

    /// Returns the next completion up to `now`, with its tag.
    fn poll(&mut self, now: SimTime) -> Option<(u64, Self::Completion)>;

    /// Returns the next time at which something happens.
    fn next_wakeup(&self) -> Option<SimTime>;

    /// Returns the tags and times of the future completions that are certain.
    fn certain_completions(&self) -> impl Iterator<Item = (u64, SimTime)>;
}

/// A drive and its queue; see the module's documentation.
#[derive(Clone, Debug)]
pub struct DriveQueue<U: QueuedDevice> {
    unit: U,
    depth: usize,
    schedule: Schedule,
    queue: HostQueue<U::Payload>,
    /// The requests at the drive, by the drive's tags.
    sent: Vec<(u64, Arrival)>,
}

/// The requests in the host's queue, each with its payload. The queue can be long, so policies that
/// order by LBN search it instead of scanning it.
#[derive(Clone, Debug)]
enum HostQueue<P> {
    InOrder(VecDeque<(Arrival, P)>),
    /// The requests by first sector and number of arrival, and the number of the next one.
    ByLbn(BTreeMap<(Lbn, u64), (Arrival, P)>, u64),
}

impl<P> HostQueue<P> {
    fn new(scheduler: Scheduler) -> HostQueue<P> {
        match scheduler {
            Scheduler::Sstf | Scheduler::Look | Scheduler::CLook => {
                HostQueue::ByLbn(BTreeMap::new(), 0)
            }
            Scheduler::Fcfs | Scheduler::Sptf | Scheduler::AgedSptf { .. } => {
                HostQueue::InOrder(VecDeque::new())
            }
        }
    }

    fn len(&self) -> usize {
        match self {
            HostQueue::InOrder(requests) => requests.len(),
            HostQueue::ByLbn(requests, _) => requests.len(),
        }
    }

    fn push(&mut self, arrival: Arrival, payload: P) {
        match self {
            HostQueue::InOrder(requests) => requests.push_back((arrival, payload)),
            HostQueue::ByLbn(requests, next) => {
                requests.insert((arrival.request.lbn, *next), (arrival, payload));
                *next += 1;
            }
        }
    }

    /// Removes the request that `schedule` chooses; `None` if nothing waits.
    ///
    /// It is kept out of [`DriveQueue::dispatch`], which most often finds an empty queue.
    #[inline(never)]
    fn pop(&mut self, schedule: &Schedule, now: SimTime) -> Option<(Arrival, P)> {
        match self {
            HostQueue::InOrder(requests) => {
                let waiting = requests.iter().map(|(arrival, _)| Candidate {
                    lbn: arrival.request.lbn,
                    end: arrival.request.end(),
                    arrived: arrival.at,
                });
                let index = schedule.pick(now, waiting, |_| Span::ZERO)?;
                requests.remove(index)
            }
            HostQueue::ByLbn(requests, _) => {
                let key = schedule.pick_by_lbn(requests)?;
                requests.remove(&key)
            }
        }
    }
}

/// A request that the drive refused.
#[derive(Debug)]
pub struct Refused<E> {
    /// The request.
    pub arrival: Arrival,
    /// The reason.
    pub error: E,
}

impl<U: QueuedDevice> DriveQueue<U> {
    /// Creates a port that passes requests on in order of arrival, up to the drive's queue depth.
    pub fn new(unit: U) -> DriveQueue<U> {
        let depth = unit.drive().profile().queue.depth as usize;
        DriveQueue {
            unit,
            depth,
            schedule: Schedule::new(Scheduler::Fcfs),
            queue: HostQueue::new(Scheduler::Fcfs),
            sent: Vec::new(),
        }
    }

    /// Orders the host's queue by `scheduler`, with at most `depth` requests at the drive: at least
    /// one, and no more than before this call.
    ///
    /// # Panics
    /// Panics if requests wait in the queue.
    pub fn set_queue(&mut self, scheduler: Scheduler, depth: u32) {
        assert_eq!(
            self.waiting(),
            0,
            "the queue is set up before the first request"
        );
        self.queue = HostQueue::new(scheduler);
        self.schedule = Schedule::new(scheduler);
        self.depth = (depth as usize).min(self.depth).max(1);
    }

    /// The device behind the port.
    pub fn unit(&self) -> &U {
        &self.unit
    }

    /// The device behind the port, to change it.
    pub fn unit_mut(&mut self) -> &mut U {
        &mut self.unit
    }

    /// Returns the number of requests in the host's queue.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Takes a request at its arrival time. All work due earlier must have been done.
    ///
    /// # Errors
    /// Returns the request that the drive refused: this one, or an earlier one from the queue.
    #[inline]
    pub fn arrive(
        &mut self,
        arrival: Arrival,
        payload: U::Payload,
    ) -> Result<(), Refused<U::Error>> {
        if self.waiting() == 0 && self.has_room() {
            self.schedule
                .serve(arrival.request.lbn, arrival.request.end());
            return self.send(arrival.at, arrival, payload);
        }
        self.queue.push(arrival, payload);
        self.dispatch(arrival.at)
    }

    /// Returns the time at which to call [`DriveQueue::wake`] next.
    pub fn next_wakeup(&self) -> Option<SimTime> {
        self.unit.next_wakeup()
    }

    /// Does the work that is due at `wake`, and passes each completion to `sink` until `sink`
    /// returns false. Returns false if `sink` did.
    ///
    /// # Errors
    /// Returns the queued request that the drive refused.
    pub fn wake(
        &mut self,
        wake: SimTime,
        sink: impl FnMut(Arrival, U::Completion) -> bool,
    ) -> Result<bool, Refused<U::Error>> {
        let continues = self.complete(wake, sink);
        if continues {
            self.dispatch(wake)?;
        }
        Ok(continues)
    }

    /// Passes each completion that is due to `sink` until `sink` returns false. Returns false if
    /// `sink` did. Queued requests are sent to the drive by a separate call to
    /// [`DriveQueue::dispatch`], so the caller can first submit requests that a completion
    /// releases.
    pub fn complete(
        &mut self,
        wake: SimTime,
        mut sink: impl FnMut(Arrival, U::Completion) -> bool,
    ) -> bool {
        while let Some((tag, completion)) = self.unit.poll(wake) {
            let place = self.sent.iter().position(|(sent, _)| *sent == tag);
            let place = place.expect("a drive completes only requests that it was sent");
            let (_, arrival) = self.sent.swap_remove(place);
            if !sink(arrival, completion) {
                return false;
            }
        }
        true
    }

    /// Returns the tags of the arrivals whose completion is certain and still to come, and their
    /// completion times.
    pub fn foreseen(&self) -> impl Iterator<Item = (u64, SimTime)> {
        self.unit.certain_completions().filter_map(|(tag, at)| {
            let (_, arrival) = self.sent.iter().find(|(sent, _)| *sent == tag)?;
            Some((arrival.tag, at))
        })
    }

    /// Sends queued requests to the drive while it has room.
    ///
    /// # Errors
    /// Returns the queued request that the drive refused.
    #[inline]
    pub fn dispatch(&mut self, now: SimTime) -> Result<(), Refused<U::Error>> {
        while self.waiting() > 0
            && self.has_room()
            && let Some((arrival, payload)) = self.queue.pop(&self.schedule, now)
        {
            self.schedule
                .serve(arrival.request.lbn, arrival.request.end());
            self.send(now, arrival, payload)?;
        }
        Ok(())
    }

    /// Returns whether the drive can take another request.
    fn has_room(&self) -> bool {
        self.sent.len() < self.depth
    }

    /// Sends a request to the drive.
    #[inline]
    fn send(
        &mut self,
        now: SimTime,
        arrival: Arrival,
        payload: U::Payload,
    ) -> Result<(), Refused<U::Error>> {
        match self.unit.submit(now, &arrival, payload) {
            Ok(tag) => self.sent.push((tag, arrival)),
            Err(error) => return Err(Refused { arrival, error }),
        }
        Ok(())
    }
}

impl QueuedDevice for Drive {
    type Payload = ();
    type Completion = Completion;
    type Error = RequestError;

    #[inline]
    fn drive(&self) -> &Drive {
        self
    }

    #[inline]
    fn submit(&mut self, now: SimTime, arrival: &Arrival, (): ()) -> Result<u64, RequestError> {
        Drive::submit(self, now, arrival.request).map(|tag| tag.0)
    }

    #[inline]
    fn poll(&mut self, now: SimTime) -> Option<(u64, Completion)> {
        Drive::poll(self, now).map(|completion| (completion.tag.0, completion))
    }

    #[inline]
    fn next_wakeup(&self) -> Option<SimTime> {
        Drive::next_wakeup(self)
    }

    fn certain_completions(&self) -> impl Iterator<Item = (u64, SimTime)> {
        Drive::scheduled_completions(self)
            .map(|completion| (completion.tag.0, completion.completed))
    }
}

impl<M: Media> QueuedDevice for Disk<M> {
    /// The command, and the data that it writes.
    type Payload = (disk::Command, Vec<u8>);
    type Completion = disk::Completion;
    type Error = DiskError;

    fn drive(&self) -> &Drive {
        Disk::drive(self)
    }

    fn submit(
        &mut self,
        now: SimTime,
        _: &Arrival,
        (command, data): Self::Payload,
    ) -> Result<u64, DiskError> {
        Disk::submit(self, now, command, data).map(|tag| tag.0)
    }

    fn poll(&mut self, now: SimTime) -> Option<(u64, disk::Completion)> {
        Disk::poll(self, now).map(|completion| (completion.tag.0, completion))
    }

    fn next_wakeup(&self) -> Option<SimTime> {
        Disk::next_wakeup(self)
    }

    fn certain_completions(&self) -> impl Iterator<Item = (u64, SimTime)> {
        Disk::scheduled_completions(self).map(|(tag, at)| (tag.0, at))
    }
}
