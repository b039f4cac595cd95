//! Scheduling of requests to the drive, one at a time. The next request is the one whose sector
//! passes first.
//!
//! Each waiter states the LBNs at which its request could begin. Whenever the drive is free, all
//! replicas of all waiters are compared (shortest positioning time first, among replicas).
//! Background work runs when nothing else waits, or when it has waited for too many other requests.
//! Without a survey, the drive orders its requests itself, and every request is sent immediately.

use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard};
use std::task::{Poll, Waker};

use smallvec::SmallVec;

use super::MemberClock;
use traxtent_layout::tpl::{Accuracy, HeadTracker};
use traxtent_units::{Lbn, SimTime};

/// The oldest waiter is next once this many other requests were served while it waited.
const BYPASS_MAX: u64 = 64;

/// LBNs at which a request could begin.
pub(super) type Places = SmallVec<[Lbn; 8]>;

#[derive(Debug)]
pub(super) struct DriveQueue(Mutex<State>);

#[derive(Debug)]
struct State {
    head: Option<HeadTracker>,
    is_taken: bool,
    waiting: Vec<Waiting>,
    /// The number of waiters that arrived.
    arrived: u64,
    /// The number of waiters that were given the drive.
    served: u64,
}

#[derive(Debug)]
struct Waiting {
    ticket: u64,
    /// The number of waiters that had been given the drive when this one arrived.
    since: u64,
    is_work: bool,
    places: Places,
    /// The index of the chosen LBN, set when the waiter is given the drive.
    chosen: Option<usize>,
    waker: Option<Waker>,
}

/// The right to use the drive until this is dropped; exclusive if there is a survey.
pub(super) struct DeviceLock<'a, M: MemberClock> {
    queue: &'a DriveQueue,
    clock: &'a M,
    /// The waiter's ticket; `None` without a survey, in which case there is no waiting.
    ticket: Option<u64>,
    /// The index of the LBN to use.
    pub(super) index: usize,
}

impl DriveQueue {
    pub(super) fn new(head: Option<HeadTracker>) -> DriveQueue {
        DriveQueue(Mutex::new(State {
            head,
            is_taken: false,
            waiting: Vec::new(),
            arrived: 0,
            served: 0,
        }))
    }

    /// Waits for the drive. `is_work` marks background work.
    pub(super) async fn turn<'a, M: MemberClock>(
        &'a self,
        clock: &'a M,
        places: Places,
        is_work: bool,
    ) -> DeviceLock<'a, M> {
        let Some(ticket) = self.join(clock.now(), places, is_work) else {
            return DeviceLock {
                queue: self,
                clock,
                ticket: None,
                index: 0,
            };
        };
        // Dropping this removes the waiter from the queue, or releases the drive if it is its turn.
        let mut turn = DeviceLock {
            queue: self,
            clock,
            ticket: Some(ticket),
            index: 0,
        };
        turn.index = poll_fn(|context| {
            let mut state = self.state();
            let mut all = state.waiting.iter_mut();
            let own = all.find(|waiting| waiting.ticket == ticket);
            let own = own.expect("a waiter is in the list until it is dropped");
            match own.chosen {
                Some(index) => Poll::Ready(index),
                None => {
                    own.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await;
        turn
    }

    /// Joins the queue. Returns `None` without a survey, in which case there is no queue.
    fn join(&self, now: SimTime, places: Places, is_work: bool) -> Option<u64> {
        let mut state = self.state();
        state.head.as_ref()?;
        let (ticket, since) = (state.arrived, state.served);
        state.arrived += 1;
        state.waiting.push(Waiting {
            ticket,
            since,
            is_work,
            places,
            chosen: None,
            waker: None,
        });
        state.grant(now);
        Some(ticket)
    }

    /// Updates the head's state.
    pub(super) fn update_head(&self, update: impl FnOnce(&mut HeadTracker)) {
        if let Some(head) = &mut self.state().head {
            update(head);
        }
    }

    /// Returns the accuracy of the predictions; `None` without a survey.
    pub(super) fn accuracy(&self) -> Option<Accuracy> {
        self.state().head.as_ref().map(HeadTracker::accuracy)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("no holder of the lock panics")
    }
}

impl State {
    /// Gives the drive to the next waiter.
    fn grant(&mut self, now: SimTime) {
        if self.is_taken || self.waiting.is_empty() {
            return;
        }
        let oldest = self.waiting.iter().min_by_key(|one| one.ticket);
        let oldest = oldest.expect("the list is not empty");
        let is_work = self.waiting.iter().all(|waiting| waiting.is_work);
        let is_eligible = |waiting: &&Waiting| {
            if is_overdue(oldest.since, self.served) {
                waiting.ticket == oldest.ticket
            } else {
                waiting.is_work == is_work
            }
        };
        let mut candidates: SmallVec<[(u64, usize); 16]> = SmallVec::new();
        let mut lbns = Places::new();
        for waiting in self.waiting.iter().filter(is_eligible) {
            for (index, place) in waiting.places.iter().enumerate() {
                candidates.push((waiting.ticket, index));
                lbns.push(*place);
            }
        }
        let head = self
            .head
            .as_ref()
            .expect("only queues with a survey have waiters");
        let choice = head.choose(now, lbns).map(|choice| choice.index);
        let (ticket, index) = candidates[choice.unwrap_or(0)];
        let next = self.waiting.iter_mut().find(|one| one.ticket == ticket);
        let next = next.expect("the ticket belongs to a waiter");
        next.chosen = Some(index);
        if let Some(waker) = next.waker.take() {
            waker.wake();
        }
        self.is_taken = true;
        self.served += 1;
    }
}

/// Returns whether a waiter that arrived when `since` others had been served has been bypassed as
/// often as permitted.
fn is_overdue(since: u64, served: u64) -> bool {
    served - since >= BYPASS_MAX
}

impl<M: MemberClock> Drop for DeviceLock<'_, M> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let now = self.clock.now();
        let mut state = self.queue.state();
        let own = state.waiting.iter().position(|one| one.ticket == ticket);
        if let Some(own) = own {
            let own = state.waiting.swap_remove(own);
            if own.chosen.is_some() {
                state.is_taken = false;
                state.grant(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a waiter become overdue after exactly [`BYPASS_MAX`] bypasses?
    #[test]
    fn bypassed_waiters_become_overdue() {
        let bypassed = (10..).take_while(|served| !is_overdue(10, *served)).count();
        assert_eq!(bypassed as u64, BYPASS_MAX);
    }
}
