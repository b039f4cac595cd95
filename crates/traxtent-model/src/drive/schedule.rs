//! The choice of the waiting request to serve next, in a drive's own queue or in a host's queue.

use crate::profile::Scheduler;
use traxtent_units::{Lbn, SimTime, Span};

/// A waiting request, with the values that a scheduler uses.
#[derive(Clone, Copy, Debug)]
pub struct Candidate {
    /// The first sector.
    pub lbn: Lbn,
    /// The sector after the last one.
    pub end: Lbn,
    /// The time of arrival.
    pub arrived: SimTime,
}

/// A scheduling policy with its state.
#[derive(Clone, Debug)]
pub struct Schedule {
    policy: Scheduler,
    /// The position of the last request served: its first sector for elevators, otherwise its end.
    last: Lbn,
    /// The end of the last request served.
    end: Lbn,
    upward: bool,
}

impl Schedule {
    /// Creates a policy that has served nothing yet.
    pub fn new(policy: Scheduler) -> Schedule {
        Schedule {
            policy,
            last: Lbn(0),
            end: Lbn(0),
            upward: true,
        }
    }

    /// Returns the index of the request to serve next, or `None` if nothing waits. Candidates must
    /// be in order of arrival. `positioning` returns the time that the head needs to reach a
    /// candidate.
    pub fn pick(
        &self,
        now: SimTime,
        waiting: impl ExactSizeIterator<Item = Candidate> + Clone,
        mut positioning: impl FnMut(usize) -> Span,
    ) -> Option<usize> {
        let count = waiting.len();
        if count <= 1 || self.policy == Scheduler::Fcfs {
            return (count > 0).then_some(0);
        }
        let last = self.last;
        let indexed = waiting.enumerate();
        let ahead = |(i, c): (usize, Candidate)| (c.lbn >= last).then_some((c.lbn, i));
        let behind = |(i, c): (usize, Candidate)| (c.lbn < last).then_some((c.lbn, i));
        let picked = match self.policy {
            Scheduler::Fcfs => 0,
            Scheduler::Sstf => {
                indexed
                    .min_by_key(|(i, c)| (c.lbn.0.abs_diff(last.0), *i))?
                    .0
            }
            Scheduler::CLook => {
                indexed
                    .clone()
                    .filter_map(ahead)
                    .min()
                    .or_else(|| indexed.filter_map(behind).min())?
                    .1
            }
            Scheduler::Look => {
                let up = indexed.clone().filter_map(ahead).min();
                let down = indexed.filter_map(behind).max();
                (if self.upward {
                    up.or(down)
                } else {
                    down.or(up)
                })?
                .1
            }
            Scheduler::Sptf => (0..count).min_by_key(|&i| (positioning(i), i))?,
            Scheduler::AgedSptf { weight } => {
                let mut cost = |(i, c): (usize, Candidate)| {
                    let age = now.saturating_since(c.arrived).0 as f64 * weight;
                    positioning(i).0 as f64 - age
                };
                indexed
                    .map(|(i, c)| (i, cost((i, c))))
                    .min_by(|a, b| a.1.total_cmp(&b.1))?
                    .0
            }
        };
        Some(picked)
    }

    /// Records that `[lbn, end)` is being served, whether it was picked or was the only request.
    /// Distances and the direction of elevators depend on it. As in DiskSim (`disksim_ioqueue.c`),
    /// elevators continue from the beginning of the request, so sectors that were just read can be
    /// written before the elevator moves on.
    pub fn serve(&mut self, lbn: Lbn, end: Lbn) {
        self.upward = lbn >= self.last;
        self.last = match self.policy {
            Scheduler::CLook | Scheduler::Look => lbn,
            Scheduler::Fcfs | Scheduler::Sstf | Scheduler::Sptf | Scheduler::AgedSptf { .. } => end,
        };
        self.end = end;
    }

    /// The LBN after the last request served; 0 before the first.
    pub(super) fn last_end(&self) -> Lbn {
        self.end
    }
}
