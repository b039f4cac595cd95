//! The choice of the waiting request to serve next, in a drive's own queue or in a host's queue.

use std::collections::BTreeMap;

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

    /// Returns the key of the request to serve next among requests ordered by first sector and then
    /// by number of arrival: the same request as [`Schedule::pick`], without a scan. Returns `None`
    /// if nothing waits, or if the policy does not order by LBN.
    pub fn pick_by_lbn<T>(&self, waiting: &BTreeMap<(Lbn, u64), T>) -> Option<(Lbn, u64)> {
        let last = (self.last, 0);
        let up = || Some(*waiting.range(last..).next()?.0);
        let down = || Some(*waiting.range(..last).next_back()?.0);
        match self.policy {
            Scheduler::Fcfs | Scheduler::Sptf | Scheduler::AgedSptf { .. } => None,
            Scheduler::CLook => up().or_else(|| Some(*waiting.first_key_value()?.0)),
            Scheduler::Look if self.upward => up().or_else(down),
            Scheduler::Look => down().or_else(up),
            Scheduler::Sstf => {
                // Of the requests at one LBN, the first to arrive comes first.
                let down = down().and_then(|(lbn, _)| Some(*waiting.range((lbn, 0)..).next()?.0));
                let nearest = up().into_iter().chain(down);
                nearest.min_by_key(|(lbn, number)| (lbn.0.abs_diff(self.last.0), *number))
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use traxtent_units::Rng;

    /// Do the search by LBN and the scan choose the same request, including among requests at one
    /// LBN and at the same distance in both directions?
    #[test]
    fn the_search_chooses_as_the_scan_does() {
        for policy in [Scheduler::Sstf, Scheduler::CLook, Scheduler::Look] {
            for seed in 0..200 {
                let mut rng = Rng::new(seed);
                let mut schedule = Schedule::new(policy);
                let mut in_order: Vec<(Lbn, u64)> = Vec::new();
                let mut by_lbn = BTreeMap::new();
                for number in 0..100 {
                    // Few LBNs, so that ties are frequent.
                    let key = (Lbn(rng.below(24)), number);
                    in_order.push(key);
                    by_lbn.insert(key, ());
                    if rng.chance(0.3) {
                        continue;
                    }
                    let end = |lbn: Lbn| Lbn(lbn.0 + 1 + lbn.0 % 3);
                    let waiting = in_order.iter().map(|&(lbn, _)| Candidate {
                        lbn,
                        end: end(lbn),
                        arrived: SimTime::ZERO,
                    });
                    let index = schedule.pick(SimTime::ZERO, waiting, |_| Span::ZERO);
                    let scanned = index.map(|index| in_order.remove(index));
                    let found = schedule.pick_by_lbn(&by_lbn);
                    assert_eq!(found, scanned, "seed {seed}, {policy}, request {number}");
                    let (lbn, number) = scanned.unwrap();
                    by_lbn.remove(&(lbn, number));
                    schedule.serve(lbn, end(lbn));
                }
            }
        }
    }
}
