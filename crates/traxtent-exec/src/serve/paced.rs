//! The model drive on the real clock.
//!
//! Requests come from many threads. Each hands its request to the model at the instant of its arrival and
//! then waits for its own completion. The model tells a completion in advance as soon as it is certain,
//! so the waiting thread sleeps towards it by itself; nobody has to wake it. What is left for the pacer, a
//! thread of its own, is to look at the model when it decides what to serve next. The model is lazy: to
//! look late changes nothing of what it does, so only a completion's delivery can be late, never the model.
//!
//! No lock is held while anybody sleeps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle, Thread};

use traxtent_core::drive::Drive;
use traxtent_core::request::Request;
use traxtent_core::units::SimTime;
use traxtent_core::workload::{Arrival, Urgency};

use super::clock::{Clock, Speed};
use super::error::ServeError;
use crate::port::Port;
use crate::simulate::Outcome;

/// See the module.
#[derive(Debug)]
pub(super) struct Paced {
    clock: Clock,
    state: Mutex<State>,
    pacer: OnceLock<Thread>,
}

#[derive(Debug)]
struct State {
    port: Port,
    /// The number of the next request.
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// When the pacer looks next.
    look: Option<SimTime>,
    stopped: bool,
}

/// A request that is not delivered yet.
#[derive(Debug)]
struct Waiting {
    host: Thread,
    /// When it will be complete, once that is certain.
    due: Option<SimTime>,
    outcome: Option<Outcome>,
}

/// A request on its way: wait for it.
#[must_use]
#[derive(Debug)]
pub(super) struct Ticket(u64);

/// A request that has been answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) outcome: Outcome,
    /// When the waiting thread went on.
    pub(super) at: SimTime,
}

/// The simulated clock ends here: half of what it can count, so that no sum overflows.
const LAST: SimTime = SimTime(u64::MAX / 2);

impl Paced {
    /// The drive at rest, its clock starting now.
    pub(super) fn start(drive: Drive, speed: Speed) -> Arc<Paced> {
        Arc::new(Paced {
            clock: Clock::start(speed),
            state: Mutex::new(State {
                port: Port::new(drive),
                next: 0,
                waiting: BTreeMap::new(),
                look: None,
                stopped: false,
            }),
            pacer: OnceLock::new(),
        })
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Starts the pacer; it ends after [`Paced::stop`].
    pub(super) fn pace(self: &Arc<Self>) -> std::io::Result<JoinHandle<()>> {
        let paced = Arc::clone(self);
        let handle = thread::Builder::new()
            .name("pacer".to_owned())
            .spawn(move || paced.look_on())?;
        self.pacer.get_or_init(|| handle.thread().clone());
        Ok(handle)
    }

    /// Hands a request to the model, now.
    pub(super) fn arrive(&self, request: Request) -> Result<Ticket, ServeError> {
        let mut state = self.lock();
        let at = self.clock.now();
        if at > LAST {
            return Err(ServeError::ClockEnded);
        }
        let number = state.next;
        state.next += 1;
        state.advance(at)?;
        state.waiting.insert(
            number,
            Waiting {
                host: thread::current(),
                due: None,
                outcome: None,
            },
        );
        let arrived = state.port.arrive(Arrival {
            at,
            tag: number,
            device: 0,
            urgency: Urgency::None,
            measured: None,
            request,
        });
        if let Err(refused) = arrived {
            state.waiting.remove(&number);
            return Err(refused.into());
        }
        // It may be complete already, on a drive that takes no time.
        state.advance(at)?;
        self.tell_pacer(&mut state);
        Ok(Ticket(number))
    }

    /// Waits until the request is complete.
    pub(super) fn wait(&self, Ticket(number): Ticket) -> Result<Delivered, ServeError> {
        loop {
            let due = {
                let mut state = self.lock();
                let now = self.clock.now();
                let waiting = state.waiting.get(&number);
                if waiting.is_some_and(|waiting| waiting.outcome.is_none()) {
                    state.advance(now)?;
                    self.tell_pacer(&mut state);
                }
                match state.waiting.get(&number) {
                    Some(Waiting {
                        outcome: Some(outcome),
                        ..
                    }) => {
                        let delivered = Delivered {
                            outcome: *outcome,
                            at: now,
                        };
                        state.waiting.remove(&number);
                        return Ok(delivered);
                    }
                    Some(waiting) => waiting.due,
                    None => return Err(ServeError::Stopped),
                }
            };
            match due {
                Some(due) => self.clock.wait_towards(due),
                None => thread::park(),
            }
        }
    }

    /// Gives up what is outstanding, and ends the pacer.
    pub(super) fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        for waiting in std::mem::take(&mut state.waiting).into_values() {
            waiting.host.unpark();
        }
        if let Some(pacer) = self.pacer.get() {
            pacer.unpark();
        }
    }

    /// What the pacer does.
    fn look_on(&self) {
        loop {
            let look = {
                let mut state = self.lock();
                // Whoever waits sees the same error.
                if state.stopped || state.advance(self.clock.now()).is_err() {
                    return;
                }
                state.look = state.next_look();
                state.look
            };
            match look {
                Some(at) => self.clock.sleep_towards(at),
                None => thread::park(),
            }
        }
    }

    /// Wakes the pacer if it would look too late.
    fn tell_pacer(&self, state: &mut State) {
        let look = state.next_look();
        if let (Some(at), Some(pacer)) = (look, self.pacer.get())
            && state.look.is_none_or(|planned| at < planned)
        {
            state.look = look;
            pacer.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with the model")
    }
}

impl State {
    /// Does everything that is due by `now`, each thing at its own instant.
    fn advance(&mut self, now: SimTime) -> Result<(), ServeError> {
        let this_thread = thread::current().id();
        let tell = |host: &Thread| {
            if host.id() != this_thread {
                host.unpark();
            }
        };
        let waiting = &mut self.waiting;
        while let Some(wake) = self.port.next_wakeup().filter(|wake| *wake <= now) {
            self.port.wake(wake, |outcome| {
                if let Some(waiting) = waiting.get_mut(&outcome.arrival.tag) {
                    waiting.outcome = Some(outcome);
                    tell(&waiting.host);
                }
                true
            })?;
        }
        for (number, at) in self.port.foreseen() {
            if let Some(waiting) = self.waiting.get_mut(&number)
                && waiting.due.replace(at) != Some(at)
            {
                tell(&waiting.host);
            }
        }
        Ok(())
    }

    /// When the pacer must look at the model: when it goes on, if somebody does not know yet when to wake up.
    fn next_look(&self) -> Option<SimTime> {
        let unsure = |waiting: &Waiting| waiting.due.is_none() && waiting.outcome.is_none();
        if self.waiting.values().any(unsure) {
            self.port.next_wakeup()
        } else {
            None
        }
    }
}
