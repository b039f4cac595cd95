//! The model drive on the real clock.
//!
//! Many threads make requests. Each submits its request to the model at the instant of its arrival,
//! and then waits for the completion. The model announces a completion time as soon as it is
//! certain. The waiting thread can therefore sleep until that time, and no other thread has to wake
//! it. A separate thread, the pacer, only has to poll the model when the model chooses the next
//! request to serve. The model is evaluated lazily: a late poll delays the delivery of a
//! completion, but does not change the completion time.
//!
//! No lock is held while a thread sleeps.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle, Thread};

use traxtent_model::disk::{self, Command, Completion, Disk, Fault, FaultEvent, PowerCutResult};
use traxtent_units::{SimTime, Span};
use traxtent_workload::{Arrival, Urgency};

use super::clock::Clock;
use super::settings::Settings;
use super::store::StoreMedia;
use super::transport::Transport;
use crate::control::OrderHandler;
use crate::service::ServiceError;
use traxtent_sim::port::DriveQueue;

/// The number of faults that are kept for the receipt. The oldest are dropped.
pub(super) const FAULTS_KEPT: usize = 1000;

/// The model drive on the real clock; see the module's documentation.
#[derive(Debug)]
pub(super) struct RealTimeDrive {
    clock: Clock,
    /// The transport time to subtract, if any.
    transport: Option<Transport>,
    state: Mutex<State>,
    pacer: OnceLock<Thread>,
}

#[derive(Debug)]
struct State {
    port: DriveQueue<Disk<StoreMedia>>,
    /// The number of the next request.
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
    /// The number of the scenario's faults that have not yet occurred.
    faults: usize,
    /// Faults that have happened and have not been collected; only the last [`FAULTS_KEPT`].
    events: VecDeque<FaultEvent>,
    /// The time of the model's last event; nothing can happen earlier any more.
    last: SimTime,
    /// The time at which the pacer polls next.
    next_poll: Option<SimTime>,
    stopped: bool,
}

/// A request whose response has not been delivered yet.
#[derive(Debug)]
struct Waiting {
    host: Thread,
    /// The completion time, once it is certain.
    due: Option<SimTime>,
    end: Option<(Arrival, Completion)>,
}

impl Waiting {
    /// Wakes the request's thread, unless it is the current one.
    fn wake(&self) {
        if self.host.id() != thread::current().id() {
            self.host.unpark();
        }
    }
}

/// A request whose response has been delivered.
#[derive(Clone, Debug)]
pub(super) struct Delivered {
    pub(super) arrival: Arrival,
    pub(super) completion: Completion,
    /// The time by which the request's arrival in the model was moved earlier, if transport time is
    /// subtracted.
    pub(super) transport_subtracted: Option<Span>,
    /// The time at which the waiting thread continued.
    pub(super) delivered_at: SimTime,
}

/// The end of the simulated clock: half of its range, so that no sum overflows.
const SIM_TIME_MAX: SimTime = SimTime(u64::MAX / 2);

impl RealTimeDrive {
    /// Creates the drive from an idle disk with `faults` scheduled faults, and starts the clock.
    pub(super) fn start(
        disk: Disk<StoreMedia>,
        faults: usize,
        settings: &Settings,
    ) -> Arc<RealTimeDrive> {
        let mut clock = Clock::start(settings.speed);
        let timed = settings.profile.mechanics.is_some();
        // Transport time cannot be subtracted from responses that take no time.
        let transport = (settings.subtract_transport && timed).then(|| Transport::measure(&clock));
        clock.restart();
        Arc::new(RealTimeDrive {
            clock,
            transport,
            state: Mutex::new(State {
                port: DriveQueue::new(disk),
                next: 0,
                waiting: BTreeMap::new(),
                faults,
                events: VecDeque::new(),
                last: SimTime::ZERO,
                next_poll: None,
                stopped: false,
            }),
            pacer: OnceLock::new(),
        })
    }

    pub(super) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Starts the pacer, which ends after [`RealTimeDrive::stop`].
    pub(super) fn pace(self: &Arc<Self>) -> std::io::Result<JoinHandle<()>> {
        let paced = Arc::clone(self);
        let handle = thread::Builder::new()
            .name("pacer".to_owned())
            .spawn(move || paced.run_pacer())?;
        self.pacer.get_or_init(|| handle.thread().clone());
        Ok(handle)
    }

    /// Submits a command and the data that it writes to the model, and waits for its completion. If
    /// the command does not complete immediately, `meanwhile` is called before the wait. After the
    /// completion, `then` receives the disk, while the model is locked and no change is in
    /// progress.
    ///
    /// The command's arrival in the model is earlier than the real one by up to its transport time.
    /// This never changes past events, and no response is delivered before its completion in the
    /// model.
    pub(super) fn serve<T>(
        &self,
        command: Command,
        data: Vec<u8>,
        meanwhile: impl FnOnce(),
        then: impl FnOnce(&Disk<StoreMedia>) -> T,
    ) -> Result<(Delivered, T), ServiceError> {
        let mut meanwhile = Some(meanwhile);
        let mut state = self.lock();
        let at = self.now()?;
        let seen = self.transport.as_ref().map(|transport| {
            let taken = transport.of(state.response_bytes(&command));
            state.backdated(at, self.clock.simulated(taken))
        });
        let subtracted = seen.map(|seen| at.since(seen));
        let number = state.submit(seen.unwrap_or(at), command, data)?;
        loop {
            // Commands that take no time are complete now, without unlocking the model.
            let at = self.clock.now();
            state.advance(at)?;
            let waiting = state
                .waiting
                .get_mut(&number)
                .ok_or(ServiceError::Stopped)?;
            if let Some((arrival, completion)) = waiting.end.take() {
                state.waiting.remove(&number);
                self.wake_pacer(&mut state);
                let delivered = Delivered {
                    arrival,
                    completion,
                    transport_subtracted: subtracted,
                    delivered_at: at,
                };
                return Ok((delivered, then(state.port.unit())));
            }
            let due = waiting.due;
            self.wake_pacer(&mut state);
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

    /// Injects a fault now.
    pub(super) fn inject(&self, fault: Fault) -> Result<Option<PowerCutResult>, ServiceError> {
        let mut state = self.lock();
        let at = self.now()?;
        state.catch_up(at)?;
        let cut = state.port.unit_mut().inject(at, fault)?;
        let outcome = Ok(cut);
        record(&mut state.events, FaultEvent { at, fault, outcome });
        state.last = at;
        // Completions that were certain may have changed.
        state.advance(at)?;
        self.wake_pacer(&mut state);
        Ok(cut)
    }

    /// Returns the faults that have happened since the last call.
    pub(super) fn take_events(&self) -> VecDeque<FaultEvent> {
        std::mem::take(&mut self.lock().events)
    }

    fn now(&self) -> Result<SimTime, ServiceError> {
        let now = self.clock.now();
        if now > SIM_TIME_MAX {
            return Err(ServiceError::ClockEnded);
        }
        Ok(now)
    }

    /// Abandons outstanding requests, and ends the pacer.
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

    /// The pacer's loop.
    fn run_pacer(&self) {
        loop {
            let poll_at = {
                let mut state = self.lock();
                // The waiting threads receive the same error.
                if state.stopped || state.advance(self.clock.now()).is_err() {
                    return;
                }
                state.next_poll = state.next_poll_time();
                state.next_poll
            };
            match poll_at {
                Some(at) => self.clock.sleep_towards(at),
                None => thread::park(),
            }
        }
    }

    /// Wakes the pacer if it would poll too late.
    fn wake_pacer(&self, state: &mut State) {
        let poll_at = state.next_poll_time();
        if let (Some(at), Some(pacer)) = (poll_at, self.pacer.get())
            && state.next_poll.is_none_or(|planned| at < planned)
        {
            state.next_poll = poll_at;
            pacer.unpark();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic of the model in another thread, its state is undefined. The poisoned lock
        // makes the next request panic too.
        self.state.lock().expect("the model has not panicked")
    }
}

impl OrderHandler for RealTimeDrive {
    fn carry_out(self: &Arc<RealTimeDrive>, line: &str) -> Result<String, Box<dyn Error>> {
        if line.starts_with('{') {
            let problem =
                "this is the control socket of a drive; send this order to that of a volume";
            return Err(problem.into());
        }
        let fault: Fault = line.parse()?;
        let cut = self.inject(fault)?;
        Ok(cut.map_or_else(|| fault.to_string(), |cut| format!("power-cut, {cut}")))
    }
}

impl State {
    /// Returns the bytes of data in the command's response.
    fn response_bytes(&self, command: &Command) -> u32 {
        match command {
            Command::Read { sectors, .. } => {
                let sector = self.port.unit().drive().profile().sector;
                sectors.saturating_mul(sector.logical_bytes)
            }
            _ => 0,
        }
    }

    /// Returns the instant that precedes `now` by `before`. It is later than the model's last event
    /// if possible, and never later than `now`.
    fn backdated(&self, now: SimTime, before: Span) -> SimTime {
        let earliest = self.last + Span(1);
        SimTime(now.0.saturating_sub(before.0))
            .max(earliest)
            .min(now)
    }

    /// Submits a command at its arrival; returns its number.
    fn submit(
        &mut self,
        at: SimTime,
        command: Command,
        data: Vec<u8>,
    ) -> Result<u64, ServiceError> {
        if self.stopped {
            return Err(ServiceError::Stopped);
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
            // The drive refuses a command here only if it is passed on immediately. The command
            // then has no effect.
            self.waiting.remove(&number);
            return Err(refused.into());
        }
        Ok(number)
    }

    /// Processes all events that are due by `now`, and gives the waiting threads their completion
    /// times.
    fn advance(&mut self, now: SimTime) -> Result<(), ServiceError> {
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

    /// Processes all events that are due by `now`, each at its own time.
    fn catch_up(&mut self, now: SimTime) -> Result<(), ServiceError> {
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
                record(&mut self.events, event);
            }
        }
        Ok(())
    }

    /// Returns the time at which the pacer must poll the model. This is the model's next event if a
    /// waiting thread has no completion time yet, or if a fault could change a completion time.
    fn next_poll_time(&self) -> Option<SimTime> {
        let unsure = |waiting: &Waiting| waiting.due.is_none() && waiting.end.is_none();
        if self.faults > 0 || self.waiting.values().any(unsure) {
            self.port.next_wakeup()
        } else {
            None
        }
    }
}

/// Keeps a fault until it is collected.
fn record(events: &mut VecDeque<FaultEvent>, event: FaultEvent) {
    if events.len() == FAULTS_KEPT {
        events.pop_front();
    }
    events.push_back(event);
}
