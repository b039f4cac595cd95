//! The model drive on the real clock.
//!
//! Many threads make requests. Each submits its request to the model at the instant of its arrival,
//! and then waits for the completion. The model announces a completion time as soon as it is
//! certain. The waiting thread can therefore sleep until that time, and no other thread has to wake
//! it. A separate thread, the pacer, only has to poll the model while a completion time is not yet
//! certain or a fault is scheduled. The model is evaluated lazily: a late poll delays the delivery
//! of a completion, but does not change the completion time.
//!
//! No lock is held while a thread sleeps. A flush of a drive whose data is in memory only marks
//! data durable; the pacer copies it to the media in pieces afterwards. With a data file, the
//! flush's own thread copies it before the response, and unlocks the model after each piece.

use std::collections::{BTreeMap, VecDeque};
use std::error::Error;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

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

/// The note on faults that test the durability of writes, on drives without a write cache.
pub(super) const NO_WRITE_CACHE: &str =
    "the drive has no write cache, so each write is durable when it completes";
/// The maximum number of faults that are kept for the receipt. Older ones are dropped.
pub(super) const FAULTS_KEPT: usize = 1000;

/// The model drive on the real clock; see the module's documentation.
#[derive(Debug)]
pub(super) struct RealTimeDrive {
    clock: Clock,
    /// The transport time to subtract, if any.
    transport: Option<Transport>,
    state: Mutex<State>,
    /// The number of threads that wait to lock the state.
    contenders: AtomicUsize,
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
    /// The time from which the pacer may copy the next piece of flushed data to the media; `None`
    /// if flushes do so themselves.
    next_write_out: Option<SimTime>,
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
    /// The time from the request's arrival until it could enter the model, which had advanced in
    /// the meantime. It is part of the lateness.
    pub(super) held_up: Span,
    /// The time that a read spent reading the data file.
    pub(super) file_time: Duration,
    /// The time at which the waiting thread continued, after any use of the data file.
    pub(super) delivered_at: SimTime,
}

/// The end of the simulated clock: half of its range, so that no sum overflows.
const SIM_TIME_MAX: SimTime = SimTime(u64::MAX / 2);

/// The maximum number of bytes of flushed data that are copied to the media at once. The model is
/// locked meanwhile, for some tens of microseconds.
const WRITE_OUT_PIECE_BYTES: u64 = 64 << 10;
/// The pause of the pacer between two pieces, during which requests can lock the model.
const WRITE_OUT_PAUSE: Duration = Duration::from_micros(100);
/// The pause after a piece for which there was no room.
const WRITE_OUT_RETRY: Duration = Duration::from_secs(1);
/// The maximum time for which a flush gives way to other threads after a piece.
const GIVE_WAY_MAX: Duration = Duration::from_micros(200);

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
                next_write_out: settings.file.is_none().then_some(SimTime::ZERO),
                stopped: false,
            }),
            contenders: AtomicUsize::new(0),
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

    /// Submits a command to the model, with the data that it writes, and waits for its completion.
    /// If the command does not complete immediately, `meanwhile` is called before the wait. After
    /// the completion, `then` receives the disk, while the model is locked and no change is in
    /// progress.
    ///
    /// The command's arrival in the model is earlier than the real one by up to its transport time.
    /// This never changes past events, and no response is delivered before its completion in the
    /// model. The real arrival is the time of this call, before the wait for the model's lock.
    pub(super) fn serve<T>(
        &self,
        command: Command,
        data: Vec<u8>,
        meanwhile: impl FnOnce(),
        then: impl FnOnce(&Disk<StoreMedia>) -> T,
    ) -> Result<(Delivered, T), ServiceError> {
        let mut meanwhile = Some(meanwhile);
        let arrived = self.now()?;
        let mut state = self.lock();
        let taken = self.transport.as_ref().map_or(Span(0), |transport| {
            let taken = transport.of(state.response_bytes(&command));
            self.clock.simulated(taken)
        });
        let now = self.now()?;
        let seen = state.backdated(now, now.since(arrived) + taken);
        let subtracted = self.transport.as_ref();
        let subtracted = subtracted.map(|_| arrived.saturating_since(seen));
        let held_up = seen.saturating_since(arrived);
        let number = state.submit(seen, command, data)?;
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
                    held_up,
                    file_time: Duration::ZERO,
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

    /// Copies all flushed data to the media, in pieces between which other threads can lock the
    /// model.
    pub(super) fn write_out(&self) -> Result<(), ServiceError> {
        while self
            .lock()
            .port
            .unit_mut()
            .write_out(WRITE_OUT_PIECE_BYTES)?
        {
            let begun = Instant::now();
            while self.contenders.load(Ordering::Relaxed) > 0 && begun.elapsed() < GIVE_WAY_MAX {
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Writes the drive's volatile cache to the media.
    pub(super) fn write_cache(&self) -> Result<(), ServiceError> {
        Ok(self.lock().port.unit_mut().write_cache()?)
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

    /// Returns the faults that have happened since the last call, and the number of the scenario's
    /// faults that have not.
    pub(super) fn take_events(&self) -> (VecDeque<FaultEvent>, usize) {
        let mut state = self.lock();
        (std::mem::take(&mut state.events), state.faults)
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
                state.write_out_piece(&self.clock);
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
        self.contenders.fetch_add(1, Ordering::Relaxed);
        let state = self.state.lock();
        self.contenders.fetch_sub(1, Ordering::Relaxed);
        // After a panic of the model in another thread, its state is undefined. The poisoned lock
        // makes the next request panic too.
        state.expect("the model has not panicked")
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
        let mut reply = cut.map_or_else(|| fault.to_string(), |cut| format!("power-cut, {cut}"));
        let caches_writes = self.lock().port.unit().drive().caching().write_back;
        if fault.concerns_write_cache() && !caches_writes {
            reply.push_str("; note: ");
            reply.push_str(NO_WRITE_CACHE);
        }
        Ok(reply)
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
            // A command is refused here only if it is passed to the drive immediately. It then has
            // no effect.
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

    /// Copies a piece of flushed data to the media, unless it is too early or a flush does so.
    fn write_out_piece(&mut self, clock: &Clock) {
        if self.write_out_time().is_some_and(|at| at <= clock.now()) {
            let pause = match self.port.unit_mut().write_out(WRITE_OUT_PIECE_BYTES) {
                Ok(_) => WRITE_OUT_PAUSE,
                // The data is durable where it is. Writes report the lack of room.
                Err(_) => WRITE_OUT_RETRY,
            };
            self.next_write_out = Some(clock.now() + clock.simulated(pause));
        }
    }

    /// Returns the time from which the pacer may copy the next piece of flushed data; `None` if
    /// there is none.
    fn write_out_time(&self) -> Option<SimTime> {
        self.next_write_out
            .filter(|_| self.port.unit().backlog_bytes() > 0)
    }

    /// Returns the time at which the pacer must continue, if any. This is the earlier of two times:
    /// the model's next event, if a waiting thread has no completion time yet or a fault of the
    /// scenario is still to come; and the time to copy the next flushed data.
    fn next_poll_time(&self) -> Option<SimTime> {
        let unsure = |waiting: &Waiting| waiting.due.is_none() && waiting.end.is_none();
        let is_open = self.faults > 0 || self.waiting.values().any(unsure);
        let poll = is_open.then(|| self.port.next_wakeup()).flatten();
        poll.into_iter().chain(self.write_out_time()).min()
    }
}

/// Keeps a fault until it is collected.
fn record(events: &mut VecDeque<FaultEvent>, event: FaultEvent) {
    if events.len() == FAULTS_KEPT {
        events.pop_front();
    }
    events.push_back(event);
}

#[cfg(test)]
mod tests {
    use traxtent_io::device::guard::Access;
    use traxtent_model::drive::Drive;
    use traxtent_model::profile::builtin;
    use traxtent_units::Lbn;

    use super::super::store::Store;
    use super::*;

    fn start(name: &str) -> Arc<RealTimeDrive> {
        let settings = Settings::of(name, builtin(name).unwrap());
        let drive = Drive::new(&settings.profile).unwrap();
        let media = StoreMedia(Arc::new(Store::open(None, None, 0, Access::Write).unwrap()));
        RealTimeDrive::start(Disk::with_media(drive, media), 0, &settings)
    }

    fn serve(paced: &RealTimeDrive, command: Command, data: Vec<u8>) -> Delivered {
        paced.serve(command, data, || (), |_| ()).unwrap().0
    }

    /// Is a request's arrival the time of its call, although the model stays locked after it?
    #[test]
    fn arrivals_precede_the_wait_for_the_model() {
        let paced = start("atlas10k2");
        let state = paced.lock();
        let host = {
            let paced = Arc::clone(&paced);
            thread::spawn(move || serve(&paced, Command::Flush, Vec::new()))
        };
        while paced.contenders.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let asked = paced.clock.now();
        while paced.clock.now() < asked + Span::from_ms(1.0) {
            thread::yield_now();
        }
        drop(state);
        let delivered = host.join().unwrap();
        assert!(delivered.arrival.at <= asked, "{delivered:?}");
        assert!(delivered.delivered_at >= asked + Span::from_ms(1.0));
    }

    /// If the model has advanced beyond a request's arrival, is the difference recorded?
    #[test]
    fn requests_that_cannot_enter_the_past_are_held_up() {
        let paced = start("atlas10k2");
        let mut state = paced.lock();
        let host = {
            let paced = Arc::clone(&paced);
            thread::spawn(move || serve(&paced, Command::Flush, Vec::new()))
        };
        while paced.contenders.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let asked = paced.clock.now();
        while paced.clock.now() <= asked {
            thread::yield_now();
        }
        let last = paced.clock.now();
        state.last = last;
        drop(state);
        let delivered = host.join().unwrap();
        assert!(delivered.arrival.at > last, "{delivered:?}");
        assert!(delivered.held_up > last.since(asked), "{delivered:?}");
    }

    /// Does the pacer copy flushed data to the media without further requests?
    #[test]
    fn the_pacer_copies_flushed_data() {
        let paced = start("generic-20tb");
        let pacer = paced.pace().unwrap();
        let (sectors, bytes) = (2048, 2048 * 512);
        for lbn in [Lbn(0), Lbn(1 << 20)] {
            let fua = false;
            let command = Command::Write { lbn, sectors, fua };
            serve(&paced, command, vec![7; bytes]);
        }
        serve(&paced, Command::Flush, Vec::new());
        assert_eq!(paced.lock().port.unit().unflushed_bytes(), 0);
        let begun = Instant::now();
        while paced.lock().port.unit().backlog_bytes() > 0 {
            assert!(begun.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(1));
        }
        let mut back = vec![0; bytes];
        let state = paced.lock();
        let media = &state.port.unit().media().0;
        media.read(&mut back, (1 << 20) * 512).unwrap();
        assert!(back.iter().all(|byte| *byte == 7));
        drop(state);
        paced.stop();
        pacer.join().unwrap();
    }
}
