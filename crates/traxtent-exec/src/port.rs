//! A drive with the host's queue in front of it, which holds what the drive has no room for.
//!
//! Both clocks run it: the virtual one in [`crate::simulate()`], the real one in [`crate::serve`]. What it
//! does depends on the instants of its arrivals alone, so that a served drive's log, simulated, gives the
//! same completions.

use traxtent_core::drive::{Candidate, Drive, RequestError, Schedule};
use traxtent_core::profile::Scheduler;
use traxtent_core::units::{SimTime, Span};
use traxtent_core::workload::Arrival;

use crate::simulate::Outcome;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Port {
    drive: Drive,
    depth: usize,
    schedule: Schedule,
    queue: Vec<Arrival>,
    /// What the drive has, by its tags, which ascend.
    sent: Vec<(u64, Arrival)>,
}

/// A request that a drive refuses.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) arrival: Arrival,
    pub(crate) error: RequestError,
}

impl Port {
    /// A drive that gets what comes, first come first served, up to its depth.
    pub(crate) fn new(drive: Drive) -> Port {
        let depth = drive.profile().queue.depth as usize;
        Port {
            drive,
            depth,
            schedule: Schedule::new(Scheduler::Fcfs),
            queue: Vec::new(),
            sent: Vec::new(),
        }
    }

    /// The host's queue ordered by `scheduler`, and at most `depth` requests at the drive.
    pub(crate) fn set_queue(&mut self, scheduler: Scheduler, depth: u32) {
        self.schedule = Schedule::new(scheduler);
        self.depth = (depth as usize).min(self.depth).max(1);
    }

    pub(crate) fn drive(&self) -> &Drive {
        &self.drive
    }

    /// Takes a request in at its arrival. Everything due earlier has been done.
    pub(crate) fn arrive(&mut self, arrival: Arrival) -> Result<(), Refused> {
        self.queue.push(arrival);
        self.feed(arrival.at)
    }

    /// When to call [`Port::wake`] next.
    pub(crate) fn next_wakeup(&self) -> Option<SimTime> {
        self.drive.next_wakeup()
    }

    /// Does what is due at `wake`, and hands each completion to `sink` until that returns false; says
    /// whether it never did.
    pub(crate) fn wake(
        &mut self,
        wake: SimTime,
        mut sink: impl FnMut(Outcome) -> bool,
    ) -> Result<bool, Refused> {
        while let Some(completion) = self.drive.poll(wake) {
            let tag = completion.tag.0;
            let place = self.sent.iter().position(|(sent, _)| *sent == tag);
            let place = place.expect("a drive completes what it was given");
            let (_, arrival) = self.sent.swap_remove(place);
            if !sink(Outcome {
                arrival,
                completion,
            }) {
                return Ok(false);
            }
        }
        self.feed(wake)?;
        Ok(true)
    }

    /// The tags of requests whose completion is certain and still to come, and when that is.
    pub(crate) fn foreseen(&self) -> impl Iterator<Item = (u64, SimTime)> {
        self.drive.foreseen().filter_map(|completion| {
            let (_, arrival) = self.sent.iter().find(|(tag, _)| *tag == completion.tag.0)?;
            Some((arrival.tag, completion.completed))
        })
    }

    /// Passes on what the drive has room for.
    fn feed(&mut self, now: SimTime) -> Result<(), Refused> {
        while self.sent.len() < self.depth && !self.queue.is_empty() {
            let waiting = self.queue.iter().map(|arrival| Candidate {
                lbn: arrival.request.lbn,
                end: arrival.request.end(),
                arrived: arrival.at,
            });
            let Some(index) = self.schedule.pick(now, waiting, |_| Span::ZERO) else {
                break;
            };
            let arrival = self.queue.remove(index);
            self.schedule
                .serve(arrival.request.lbn, arrival.request.end());
            let tag = self
                .drive
                .submit(now, arrival.request)
                .map_err(|error| Refused { arrival, error })?;
            self.sent.push((tag.0, arrival));
        }
        Ok(())
    }
}
