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

use traxtent_core::disk::{self, Command, Completion, Cut, Disk, Event, Fault};
use traxtent_core::units::{SimTime, Span};
use traxtent_core::workload::{Arrival, Urgency};

use super::clock::Clock;
use super::error::ServeError;
use super::keys::Settings;
use super::store::Platters;
use super::transport::Transport;
use crate::port::Port;

/// See the module.
#[derive(Debug)]
pub(super) struct Paced {
    clock: Clock,
    /// What it takes off; nothing where there is none.
    transport: Option<Transport>,
    state: Mutex<State>,
    pacer: OnceLock<Thread>,
}

#[derive(Debug)]
struct State {
    port: Port<Disk<Platters>>,
    /// The number of the next request.
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// Faults of the scenario that are still to come.
    faults: usize,
    /// Those that have happened and that nobody has asked for.
    events: Vec<Event>,
    /// When something last happened to the model: nothing happens earlier any more.
    last: SimTime,
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
    end: Option<(Arrival, Completion)>,
}

impl Waiting {
    /// Lets its thread look again, if that is not this one.
    fn wake(&self) {
        if self.host.id() != thread::current().id() {
            self.host.unpark();
        }
    }
}

/// A request that has been answered.
#[derive(Clone, Debug)]
pub(super) struct Delivered {
    pub(super) arrival: Arrival,
    pub(super) completion: Completion,
    /// How much earlier than it came the model saw the request, if transport is taken off.
    pub(super) dated_back: Option<Span>,
    /// When the waiting thread went on.
    pub(super) at: SimTime,
}

/// The simulated clock ends here: half of what it can count, so that no sum overflows.
const LAST: SimTime = SimTime(u64::MAX / 2);

impl Paced {
    /// The disk at rest, with so many faults to come, its clock starting at the end of this call.
    pub(super) fn start(disk: Disk<Platters>, faults: usize, settings: &Settings) -> Arc<Paced> {
        let mut clock = Clock::start(settings.speed);
        let timed = settings.profile.mechanics.is_some();
        // A drive that takes no time has none from which to take it off.
        let transport = (settings.take_off_transport && timed).then(|| Transport::measure(&clock));
        clock.restart();
        Arc::new(Paced {
            clock,
            transport,
            state: Mutex::new(State {
                port: Port::new(disk),
                next: 0,
                waiting: BTreeMap::new(),
                faults,
                events: Vec::new(),
                last: SimTime::ZERO,
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

    /// Hands a command to the model, with what it writes, and waits until it has ended. If there is time to
    /// wait, `meanwhile` is called first; `then` sees the disk at the end, with nothing under way.
    ///
    /// The model sees the command as early as it may, up to what its transport takes: nothing that has happened
    /// changes, and nothing is answered before the model has done it.
    pub(super) fn serve<T>(
        &self,
        command: Command,
        data: Vec<u8>,
        meanwhile: impl FnOnce(),
        then: impl FnOnce(&Disk<Platters>) -> T,
    ) -> Result<(Delivered, T), ServeError> {
        let mut meanwhile = Some(meanwhile);
        let mut state = self.lock();
        let at = self.now()?;
        let seen = self.transport.as_ref().map(|transport| {
            let taken = transport.of(state.answer_bytes(&command));
            state.as_early_as(at, self.clock.simulated(taken))
        });
        let dated_back = seen.map(|seen| at.since(seen));
        let number = state.take_in(seen.unwrap_or(at), command, data)?;
        loop {
            // What takes no time is over by now: no reason to let go of the model.
            let at = self.clock.now();
            state.advance(at)?;
            let waiting = state.waiting.get_mut(&number).ok_or(ServeError::Stopped)?;
            if let Some((arrival, completion)) = waiting.end.take() {
                state.waiting.remove(&number);
                self.tell_pacer(&mut state);
                let delivered = Delivered {
                    arrival,
                    completion,
                    dated_back,
                    at,
                };
                return Ok((delivered, then(state.port.unit())));
            }
            let due = waiting.due;
            self.tell_pacer(&mut state);
            drop(state);
            if let Some(meanwhile) = meanwhile.take() {
                meanwhile();
            }
            match due {
                Some(due) => self.clock.wait_towards(due),
                None => thread::park(),
            }
            state = self.lock();
        }
    }

    /// Lets a fault happen, now.
    pub(super) fn inject(&self, fault: Fault) -> Result<Option<Cut>, ServeError> {
        let mut state = self.lock();
        let at = self.now()?;
        state.catch_up(at)?;
        let cut = state.port.unit_mut().inject(at, fault)?;
        state.last = at;
        // What was certain may have changed.
        state.advance(at)?;
        self.tell_pacer(&mut state);
        Ok(cut)
    }

    /// The scenario's faults that have happened since the last call.
    pub(super) fn take_events(&self) -> Vec<Event> {
        std::mem::take(&mut self.lock().events)
    }

    fn now(&self) -> Result<SimTime, ServeError> {
        let now = self.clock.now();
        if now > LAST {
            return Err(ServeError::ClockEnded);
        }
        Ok(now)
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
    /// The bytes of data that the command's answer brings.
    fn answer_bytes(&self, command: &Command) -> u32 {
        match command {
            Command::Read { sectors, .. } => {
                let sector = self.port.unit().drive().profile().sector;
                sectors.saturating_mul(sector.logical_bytes)
            }
            _ => 0,
        }
    }

    /// The instant so much before `now` if nothing has happened since, or just after the last thing that has.
    fn as_early_as(&self, now: SimTime, before: Span) -> SimTime {
        let earliest = self.last + Span(1);
        SimTime(now.0.saturating_sub(before.0))
            .max(earliest)
            .min(now)
    }

    /// Takes a command in at its arrival; returns its number.
    fn take_in(&mut self, at: SimTime, command: Command, data: Vec<u8>) -> Result<u64, ServeError> {
        if self.stopped {
            return Err(ServeError::Stopped);
        }
        self.catch_up(at)?;
        self.last = at;
        let number = self.next;
        self.next += 1;
        let waiting = Waiting {
            host: thread::current(),
            due: None,
            end: None,
        };
        self.waiting.insert(number, waiting);
        let arrival = Arrival {
            at,
            tag: number,
            device: 0,
            urgency: Urgency::None,
            measured: None,
            request: disk::request(&command),
        };
        if let Err(refused) = self.port.arrive(arrival, (command, data)) {
            // Only what the drive has room for at once is refused so; nothing is left of it.
            self.waiting.remove(&number);
            return Err(refused.into());
        }
        Ok(number)
    }

    /// Does everything that is due by `now`, and tells those who wait when they will be served.
    fn advance(&mut self, now: SimTime) -> Result<(), ServeError> {
        self.catch_up(now)?;
        for (number, at) in self.port.foreseen() {
            if let Some(waiting) = self.waiting.get_mut(&number)
                && waiting.due.replace(at) != Some(at)
            {
                waiting.wake();
            }
        }
        Ok(())
    }

    /// Does everything that is due by `now`, each thing at its own instant.
    fn catch_up(&mut self, now: SimTime) -> Result<(), ServeError> {
        let waiting = &mut self.waiting;
        while let Some(wake) = self.port.next_wakeup().filter(|wake| *wake <= now) {
            self.last = wake;
            self.port.wake(wake, |arrival, completion| {
                if let Some(waiting) = waiting.get_mut(&arrival.tag) {
                    waiting.end = Some((arrival, completion));
                    waiting.wake();
                }
                true
            })?;
            while let Some(event) = self.port.unit_mut().next_event() {
                self.faults = self.faults.saturating_sub(1);
                self.events.push(event);
            }
        }
        Ok(())
    }

    /// When the pacer must look at the model: when it goes on, if somebody does not know yet when to wake
    /// up, or may have to wake up earlier because of a fault.
    fn next_look(&self) -> Option<SimTime> {
        let unsure = |waiting: &Waiting| waiting.due.is_none() && waiting.end.is_none();
        if self.faults > 0 || self.waiting.values().any(unsure) {
            self.port.next_wakeup()
        } else {
            None
        }
    }
}
