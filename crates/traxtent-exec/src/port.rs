//! A drive with the host's queue in front of it, which holds what the drive has no room for.
//!
//! Both clocks run it: the virtual one in [`crate::simulate()`], the real one in [`crate::serve`]. What it
//! does depends on the instants of its arrivals alone, so that a served drive's log, simulated, gives the
//! same completions.

use std::collections::VecDeque;
use std::fmt::Debug;

use traxtent_core::disk::{self, Disk, DiskError, Media};
use traxtent_core::drive::{Candidate, Completion, Drive, RequestError, Schedule};
use traxtent_core::profile::Scheduler;
use traxtent_core::units::{SimTime, Span};
use traxtent_core::workload::Arrival;

/// What a port feeds: a drive, or a disk, which is a drive with data.
pub(crate) trait Unit {
    /// What goes with a request.
    type Load: Debug + Clone;
    type Completion;
    type Error;

    fn drive(&self) -> &Drive;

    /// Hands over a request; returns the tag that its completion will bear.
    fn submit(
        &mut self,
        now: SimTime,
        arrival: &Arrival,
        load: Self::Load,
    ) -> Result<u64, Self::Error>;

    fn poll(&mut self, now: SimTime) -> Option<(u64, Self::Completion)>;

    fn next_wakeup(&self) -> Option<SimTime>;

    /// The completions that are certain and still to come.
    fn foreseen(&self) -> impl Iterator<Item = (u64, SimTime)>;
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Port<U: Unit> {
    unit: U,
    depth: usize,
    schedule: Schedule,
    queue: VecDeque<(Arrival, U::Load)>,
    /// What the drive has, by its tags.
    sent: Vec<(u64, Arrival)>,
}

/// A request that a drive refuses.
#[derive(Debug)]
pub(crate) struct Refused<E> {
    pub(crate) arrival: Arrival,
    pub(crate) error: E,
}

impl<U: Unit> Port<U> {
    /// A drive that gets what comes, first come first served, up to its depth.
    pub(crate) fn new(unit: U) -> Port<U> {
        let depth = unit.drive().profile().queue.depth as usize;
        Port {
            unit,
            depth,
            schedule: Schedule::new(Scheduler::Fcfs),
            queue: VecDeque::new(),
            sent: Vec::new(),
        }
    }

    /// The host's queue ordered by `scheduler`, and at most `depth` requests at the drive.
    pub(crate) fn set_queue(&mut self, scheduler: Scheduler, depth: u32) {
        self.schedule = Schedule::new(scheduler);
        self.depth = (depth as usize).min(self.depth).max(1);
    }

    pub(crate) fn unit(&self) -> &U {
        &self.unit
    }

    pub(crate) fn unit_mut(&mut self) -> &mut U {
        &mut self.unit
    }

    /// How many requests the drive has had no room for yet.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Takes a request in at its arrival. Everything due earlier has been done.
    pub(crate) fn arrive(
        &mut self,
        arrival: Arrival,
        load: U::Load,
    ) -> Result<(), Refused<U::Error>> {
        self.queue.push_back((arrival, load));
        self.feed(arrival.at)
    }

    /// When to call [`Port::wake`] next.
    pub(crate) fn next_wakeup(&self) -> Option<SimTime> {
        self.unit.next_wakeup()
    }

    /// Does what is due at `wake`, and hands each completion to `sink` until that returns false; says
    /// whether it never did.
    pub(crate) fn wake(
        &mut self,
        wake: SimTime,
        sink: impl FnMut(Arrival, U::Completion) -> bool,
    ) -> Result<bool, Refused<U::Error>> {
        let go_on = self.complete(wake, sink);
        if go_on {
            self.feed(wake)?;
        }
        Ok(go_on)
    }

    /// Hands each completion that is due to `sink` until that returns false; says whether it never did. What waits is
    /// passed on by [`Port::feed`], so that whoever has to answer a completion with a request can do so first.
    pub(crate) fn complete(
        &mut self,
        wake: SimTime,
        mut sink: impl FnMut(Arrival, U::Completion) -> bool,
    ) -> bool {
        while let Some((tag, completion)) = self.unit.poll(wake) {
            let place = self.sent.iter().position(|(sent, _)| *sent == tag);
            let place = place.expect("a drive completes what it was given");
            let (_, arrival) = self.sent.swap_remove(place);
            if !sink(arrival, completion) {
                return false;
            }
        }
        true
    }

    /// The numbers of requests whose completion is certain and still to come, and when that is.
    pub(crate) fn foreseen(&self) -> impl Iterator<Item = (u64, SimTime)> {
        self.unit.foreseen().filter_map(|(tag, at)| {
            let (_, arrival) = self.sent.iter().find(|(sent, _)| *sent == tag)?;
            Some((arrival.tag, at))
        })
    }

    /// Passes on what the drive has room for.
    pub(crate) fn feed(&mut self, now: SimTime) -> Result<(), Refused<U::Error>> {
        while self.sent.len() < self.depth && !self.queue.is_empty() {
            let waiting = self.queue.iter().map(|(arrival, _)| Candidate {
                lbn: arrival.request.lbn,
                end: arrival.request.end(),
                arrived: arrival.at,
            });
            let Some(index) = self.schedule.pick(now, waiting, |_| Span::ZERO) else {
                break;
            };
            let taken = self.queue.remove(index);
            let (arrival, load) = taken.expect("the schedule picks one that waits");
            self.schedule
                .serve(arrival.request.lbn, arrival.request.end());
            let tag = self
                .unit
                .submit(now, &arrival, load)
                .map_err(|error| Refused { arrival, error })?;
            self.sent.push((tag, arrival));
        }
        Ok(())
    }
}

impl Unit for Drive {
    type Load = ();
    type Completion = Completion;
    type Error = RequestError;

    fn drive(&self) -> &Drive {
        self
    }

    fn submit(&mut self, now: SimTime, arrival: &Arrival, (): ()) -> Result<u64, RequestError> {
        Drive::submit(self, now, arrival.request).map(|tag| tag.0)
    }

    fn poll(&mut self, now: SimTime) -> Option<(u64, Completion)> {
        Drive::poll(self, now).map(|completion| (completion.tag.0, completion))
    }

    fn next_wakeup(&self) -> Option<SimTime> {
        Drive::next_wakeup(self)
    }

    fn foreseen(&self) -> impl Iterator<Item = (u64, SimTime)> {
        Drive::foreseen(self).map(|completion| (completion.tag.0, completion.completed))
    }
}

impl<M: Media> Unit for Disk<M> {
    /// The command, and what it writes.
    type Load = (disk::Command, Vec<u8>);
    type Completion = disk::Completion;
    type Error = DiskError;

    fn drive(&self) -> &Drive {
        Disk::drive(self)
    }

    fn submit(
        &mut self,
        now: SimTime,
        _: &Arrival,
        (command, data): Self::Load,
    ) -> Result<u64, DiskError> {
        Disk::submit(self, now, command, data).map(|tag| tag.0)
    }

    fn poll(&mut self, now: SimTime) -> Option<(u64, disk::Completion)> {
        Disk::poll(self, now).map(|completion| (completion.tag.0, completion))
    }

    fn next_wakeup(&self) -> Option<SimTime> {
        Disk::next_wakeup(self)
    }

    fn foreseen(&self) -> impl Iterator<Item = (u64, SimTime)> {
        Disk::foreseen(self).map(|(tag, at)| (tag.0, at))
    }
}
