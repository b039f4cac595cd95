//! The drive: a state machine without I/O.
//!
//! Time comes in as an argument. [`Drive::submit`] hands over a request, [`Drive::poll`] hands back
//! what is complete, [`Drive::next_wakeup`] says when there will be more. Nothing happens between
//! calls; whoever owns the drive owns the clock.
//!
//! Four parts work side by side and share a request's time: the controller (command overheads),
//! the arm with its heads (one access at a time, then read-ahead), the buffer (segments), and the
//! bus (one transfer at a time). The model follows the disk controller of DiskSim 4.0 in what these
//! parts do and in which order, and computes each access as a whole instead of sector by sector.

mod breakdown;
mod bus;
mod cache;
mod controller;
mod oversize;
mod physical;
mod readahead;
mod reads;
mod schedule;
mod serve;
mod sweep;
mod upset;
mod writes;

pub use breakdown::Breakdown;
pub use schedule::{Candidate, Schedule};

use crate::geometry::{Geometry, Piece};
use crate::mechanics::{Mechanics, Position};
use crate::profile::{Preseek, Profile, ProfileError, ReadAheadUntil, Scheduler, WriteBack};
use crate::request::{Op, Request};
use crate::units::{Lbn, Sectors, SimTime, Span};
use crate::workload::Rng;
pub use bus::SharedBus;
use bus::{Bus, Ramp};
use cache::{Cache, ReadPlace, State, WritePlace};
use controller::Controller;
use readahead::ReadAheadRun;
use std::collections::VecDeque;
use std::sync::Arc;
use sweep::{Inflow, Leg, Platters};
use upset::Slow;

/// The name of a request at its drive, unique for the drive's life and ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// What served a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Served {
    /// The media alone.
    Media,
    /// The buffer alone.
    Buffer,
    /// The buffer first, then the media.
    Both,
}

/// A request that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The name that [`Drive::submit`] gave it.
    pub tag: Tag,
    /// What was asked.
    pub request: Request,
    /// When it was submitted.
    pub submitted: SimTime,
    /// When it was complete.
    pub completed: SimTime,
    /// Where the time between went.
    pub breakdown: Breakdown,
    /// What served it.
    pub served: Served,
}

impl Completion {
    /// The response time.
    pub fn response(&self) -> Span {
        self.completed.since(self.submitted)
    }
}

/// Why a drive refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Beyond the last sector.
    #[error("{op} of {sectors} sectors at LBN {lbn}: the drive ends at LBN {capacity}")]
    BeyondEnd {
        /// What was asked.
        op: Op,
        /// First sector.
        lbn: u64,
        /// How many.
        sectors: u32,
        /// Sectors of the drive.
        capacity: u64,
    },
    /// No sectors.
    #[error("{op} at LBN {lbn}: zero sectors")]
    Empty {
        /// What was asked.
        op: Op,
        /// First sector.
        lbn: u64,
    },
    /// A flush that names sectors.
    #[error("flush of {sectors} sectors at LBN {lbn}: a flush addresses no sectors")]
    FlushOfSectors {
        /// First sector.
        lbn: u64,
        /// How many.
        sectors: u32,
    },
}

/// What a host may switch of a drive's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Whether reads may come from the buffer.
    pub read: bool,
    /// Whether the drive may read ahead, as far as its profile does at all.
    pub read_ahead: bool,
    /// Whether a write is complete when the buffer has it.
    pub write_back: bool,
}

impl Caching {
    /// Every read comes from the media, every write goes there, and nothing else is done.
    pub const OFF: Caching = Caching {
        read: false,
        read_ahead: false,
        write_back: false,
    };

    /// As the profile has it when nobody has switched anything.
    pub fn of(profile: &Profile) -> Caching {
        Caching {
            read: profile.cache.enabled,
            read_ahead: profile.cache.read_ahead.until != ReadAheadUntil::None,
            write_back: profile.cache.enabled && profile.cache.write_back == WriteBack::Full,
        }
    }
}

/// A request on its way through the drive.
#[derive(Clone, Copy, Debug)]
struct Job {
    tag: Tag,
    request: Request,
    submitted: SimTime,
    /// When the arm may begin to move for it.
    ready: SimTime,
    /// When the bus is free of its command.
    off_bus: SimTime,
    after_read: bool,
    /// For a write whose data the buffer has taken: where they are.
    accepted: Option<Accepted>,
}

/// How the last write left the media.
#[derive(Clone, Copy, Debug)]
struct LastWrite {
    /// When.
    media_end: SimTime,
    /// The end of its sectors.
    end: Lbn,
    /// The first of the legs that wrote it; those before it read what it does not cover of physical sectors.
    first_leg: usize,
    /// Before which sector nothing is left to write of the one behind it: further on than `end` if that was in the buffer too,
    /// and its beginning lies in the same physical sector.
    written: Lbn,
}

/// A write in the buffer.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    segment: usize,
    inflow: Inflow,
    /// When its last sector is in the buffer.
    full: SimTime,
    appended: bool,
    /// Whether the buffer had the rest of its first and of its last physical sector.
    edges: (bool, bool),
    /// Whether it made the additional disconnection.
    extra: bool,
    /// When the drive began to serve it.
    began: SimTime,
    /// Whether its completion has been scheduled.
    completed: bool,
}

impl Job {
    fn end(&self) -> Lbn {
        self.request.end()
    }

    fn is_write(&self) -> bool {
        self.request.op == Op::Write
    }

    fn overlaps(&self, other: &Job) -> bool {
        self.request.lbn < other.end() && other.request.lbn < self.end()
    }
}

/// A command that waits for a bus that the drive does not leave.
#[derive(Clone, Copy, Debug)]
struct Command {
    tag: Tag,
    submitted: SimTime,
    request: Request,
}

/// What the arm is doing.
#[derive(Clone, Debug)]
enum Arm {
    Idle,
    /// Works for a request, and is its own master again at `release`.
    Access {
        release: SimTime,
        then: Option<ReadAheadRun>,
        writing: Option<(usize, Lbn)>,
    },
    ReadAhead(ReadAheadRun),
}

/// A flush that waits for writes to reach the media.
#[derive(Clone, Copy, Debug)]
struct PendingFlush {
    tag: Tag,
    request: Request,
    submitted: SimTime,
    /// The latest of the writes so far.
    latest: SimTime,
}

/// What the heads have done for requests since the drive began, also for writes that were complete before they reached
/// the media; read-ahead is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// How often they were sent to the media.
    pub count: u64,
    /// Time spent waiting for sectors to come round.
    pub rotation: Span,
}

/// One drive.
#[derive(Clone, Debug)]
pub struct Drive {
    geometry: Arc<Geometry>,
    mechanics: Mechanics,
    profile: Arc<Profile>,
    controller: Controller,
    /// What the host has ordered of the buffer.
    caching: Caching,
    /// What of it the drive does.
    in_force: Caching,
    cache: Cache,
    bus: Bus,
    schedule: Schedule,
    arm: Arm,
    position: Position,
    /// When the arm may move again after a read-ahead that was stopped.
    arm_free: SimTime,
    waiting: Vec<Job>,
    /// Commands that wait for the bus, if the drive keeps it from the command to the completion.
    held: VecDeque<Command>,
    flushes: Vec<PendingFlush>,
    done: VecDeque<Completion>,
    next_tag: u64,
    last_was_read: bool,
    last_write: LastWrite,
    /// Draws which reads keep the sectors that passed before.
    keeping: Rng,
    /// Nothing is begun before this.
    stalled: SimTime,
    slow: Slow,
    accesses: Accesses,
    legs: Vec<Leg>,
    ramps: Vec<Ramp>,
}

impl Drive {
    /// A drive at rest, with its heads over the first cylinder.
    ///
    /// # Errors
    /// If the profile is out of its bounds.
    pub fn new(profile: &Profile) -> Result<Drive, ProfileError> {
        profile.check()?;
        let geometry = Geometry::build(&profile.geometry)
            .map_err(|e| ProfileError::Geometry(e.to_string()))?;
        Ok(Drive::with_geometry(
            Arc::new(profile.clone()),
            Arc::new(geometry),
        ))
    }

    /// A drive of a checked profile whose geometry has been built before.
    pub fn with_geometry(profile: Arc<Profile>, geometry: Arc<Geometry>) -> Drive {
        Drive {
            mechanics: profile
                .mechanics
                .as_ref()
                .map_or_else(Mechanics::none, |spec| {
                    Mechanics::new(spec, geometry.cylinders())
                }),
            controller: Controller::new(&profile),
            caching: Caching::of(&profile),
            in_force: Caching::of(&profile),
            cache: Cache::new(&profile.cache),
            bus: Bus::default(),
            schedule: Schedule::new(profile.queue.scheduler),
            arm: Arm::Idle,
            position: Position::default(),
            arm_free: SimTime::ZERO,
            waiting: Vec::new(),
            held: VecDeque::new(),
            flushes: Vec::new(),
            done: VecDeque::new(),
            next_tag: 0,
            last_was_read: true,
            last_write: LastWrite {
                media_end: SimTime::ZERO,
                end: Lbn(u64::MAX),
                first_leg: 0,
                written: Lbn(u64::MAX),
            },
            keeping: Rng::new(0),
            stalled: SimTime::ZERO,
            slow: Slow::default(),
            accesses: Accesses::default(),
            legs: Vec::new(),
            ramps: Vec::new(),
            geometry,
            profile,
        }
    }

    /// Hangs the drive from a bus with others, for whose transfers it waits and which wait for its. So does a clone.
    pub fn share_bus(&mut self, bus: SharedBus) {
        self.bus.share(bus);
    }

    /// Where the drive's sectors lie.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// The drive's figures.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// What the heads have done so far.
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// What of the buffer is switched on, as the host has ordered; a drive need not obey.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// Switches parts of the buffer on or off at `now`, which is no earlier than any time before.
    ///
    /// A read-ahead under way is stopped where read-ahead is switched off; what the buffer holds
    /// is forgotten where reads may not come from it any more. Writes that it has taken stay, and
    /// go to the media as before. A drive that reads ahead whatever its host orders
    /// (`cache.read_ahead.ignores_host`) obeys as to writes only.
    pub fn set_caching(&mut self, now: SimTime, caching: Caching) {
        self.run_until(now);
        self.caching = caching;
        let caching = if self.profile.cache.read_ahead.ignores_host {
            Caching {
                write_back: caching.write_back,
                ..self.in_force
            }
        } else {
            caching
        };
        let before = std::mem::replace(&mut self.in_force, caching);
        if before.read_ahead && !caching.read_ahead {
            self.stop_read_ahead(now);
            self.cache.forget_read_ahead();
        }
        self.cache.set_enabled(caching.read);
    }

    /// Hands over a request at `now`, which is no earlier than any time before.
    ///
    /// # Errors
    /// If the request is not one that the drive can serve; it then leaves no trace.
    pub fn submit(&mut self, now: SimTime, request: Request) -> Result<Tag, RequestError> {
        self.check(&request)?;
        self.run_until(now);
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        let command = Command {
            tag,
            submitted: now,
            request,
        };
        if self.keeps_others_out(now) {
            self.held.push_back(command);
        } else {
            self.begin(command, now);
        }
        Ok(tag)
    }

    /// Takes a command from the bus at `now`.
    fn begin(&mut self, command: Command, now: SimTime) {
        let Command {
            tag,
            submitted,
            request,
        } = command;
        let begun = now.max(self.stalled) + self.controller.per_request;
        match request.op {
            Op::Read | Op::Verify => self.read_arrives(tag, submitted, begun, request),
            Op::Write => self.write_arrives(tag, submitted, begun, request),
            Op::Flush => self.flush_arrives(command, now),
        }
        if request.op != Op::Flush {
            self.last_was_read = request.op != Op::Write;
        }
    }

    /// Whether the drive still has the bus at `now`, since it never leaves it before a request is complete.
    fn keeps_others_out(&self, now: SimTime) -> bool {
        self.controller.never_disconnect
            && (!self.held.is_empty()
                || self.owes_completions()
                || self.done.back().is_some_and(|last| last.completed > now))
    }

    /// Whether the drive has requests whose completion has no time yet.
    fn owes_completions(&self) -> bool {
        let owes = |job: &Job| !job.accepted.is_some_and(|accepted| accepted.completed);
        !self.flushes.is_empty() || self.waiting.iter().any(owes)
    }

    /// The next request that is complete at `now`, in order of completion.
    pub fn poll(&mut self, now: SimTime) -> Option<Completion> {
        self.run_until(now);
        if self.done.front()?.completed <= now {
            self.done.pop_front()
        } else {
            None
        }
    }

    /// Submits a request at `now` to a drive that has no other, and lets it work until the request
    /// is complete.
    ///
    /// # Errors
    /// As of [`Drive::submit`].
    pub fn serve(&mut self, now: SimTime, request: Request) -> Result<Completion, RequestError> {
        let tag = self.submit(now, request)?;
        loop {
            let wake = self.next_wakeup().expect("a request is outstanding");
            if let Some(completion) = self.poll(wake) {
                assert_eq!(completion.tag, tag, "another request was outstanding");
                return Ok(completion);
            }
        }
    }

    /// When the drive has something to do or to report next; never, if nothing is outstanding.
    pub fn next_wakeup(&self) -> Option<SimTime> {
        let report = self.done.front().map(|completion| completion.completed);
        let work = match &self.arm {
            Arm::Access { release, .. } if !self.waiting.is_empty() => Some(*release),
            _ => None,
        };
        match (report, work) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// The completions that are certain and still to be reported, in order of time. Whoever paces a
    /// drive against a clock can tell a waiting host in advance when its answer is due.
    pub fn foreseen(&self) -> impl Iterator<Item = &Completion> {
        self.done.iter()
    }

    /// Whether every request is complete and every write on the media by `now`.
    pub fn is_quiet(&self) -> bool {
        self.done.is_empty()
            && self.waiting.is_empty()
            && self.held.is_empty()
            && matches!(self.arm, Arm::Idle | Arm::ReadAhead(_))
    }

    /// Whether the drive can serve a request.
    pub(crate) fn check(&self, request: &Request) -> Result<(), RequestError> {
        let Request {
            lbn: Lbn(lbn),
            sectors,
            op,
            ..
        } = *request;
        if op == Op::Flush {
            return if sectors == 0 {
                Ok(())
            } else {
                Err(RequestError::FlushOfSectors { lbn, sectors })
            };
        }
        if sectors == 0 {
            return Err(RequestError::Empty { op, lbn });
        }
        let Sectors(capacity) = self.geometry.capacity();
        match lbn.checked_add(u64::from(sectors)) {
            Some(end) if end <= capacity => Ok(()),
            _ => Err(RequestError::BeyondEnd {
                op,
                lbn,
                sectors,
                capacity,
            }),
        }
    }

    /// Lets the arm go from access to access until `now`.
    fn run_until(&mut self, now: SimTime) {
        loop {
            let release = match self.arm {
                Arm::Access { release, .. } if release <= now => Some(release),
                _ => None,
            };
            let bus = self.bus_free().filter(|&free| free <= now);
            match (release, bus) {
                (Some(release), bus) if bus.is_none_or(|free| release <= free) => {
                    self.release(release);
                }
                (_, Some(free)) => {
                    let command = self.held.pop_front().expect("a command waits for the bus");
                    self.begin(command, free);
                }
                _ => break,
            }
        }
    }

    /// When the next command that the drive keeps from the bus may come, if there is one and the time is certain.
    fn bus_free(&self) -> Option<SimTime> {
        let next = self.held.front()?;
        let certain = !self.owes_completions();
        let last = self
            .done
            .back()
            .map_or(next.submitted, |last| last.completed);
        certain.then(|| last.max(next.submitted))
    }

    /// The arm is done with its request: on to the next one, or to read-ahead.
    fn release(&mut self, now: SimTime) {
        let Arm::Access { then, writing, .. } = std::mem::replace(&mut self.arm, Arm::Idle) else {
            return;
        };
        if let Some((segment, end)) = writing {
            self.cache.drain(segment, end);
        }
        if let Some(run) = then {
            let ended = self.cache.segment(run.segment).state != State::Reading;
            self.arm = Arm::ReadAhead(run);
            // A write took its segment or its sectors meanwhile.
            if ended {
                self.take_arm(now);
            }
        }
        if !self.waiting.is_empty() {
            self.observe_read_ahead(now);
        }
        if let Some(mut job) = self.next_job(now) {
            if job.is_write() {
                self.accept_waiting(&mut job, now);
                self.take_waiting_writes(now);
                self.start_write(job, now);
                self.take_next_write(now);
            } else {
                self.start_read(job, now, false);
                self.take_waiting_writes(now);
            }
        }
    }

    /// Takes the request to be served next out of the waiting ones.
    fn next_job(&mut self, now: SimTime) -> Option<Job> {
        if self.waiting.is_empty() {
            return None;
        }
        let waiting = &self.waiting;
        let candidates = waiting.iter().map(|job| Candidate {
            lbn: job.request.lbn,
            end: job.end(),
            arrived: job.submitted,
        });
        let (platters, mechanics, position) = (self.platters(), &self.mechanics, self.position);
        let mut index = self.schedule.pick(now, candidates, |i| {
            let job = &waiting[i];
            if self.finds_first_sector(job, now) {
                return Span::ZERO;
            }
            let piece = platters.geometry.piece(self.left_of(job), 1);
            let start = self.start_of(job, now);
            let landed = start
                + mechanics
                    .reposition(position, Position::from(&piece.track), job.is_write())
                    .total();
            let wait = |piece: Piece| {
                mechanics.wait(landed, mechanics.edge(&piece.track, piece.first_slot))
            };
            let others = platters.copies(piece, job.is_write()).map(wait);
            landed.since(now) + others.fold(wait(piece), Span::min)
        })?;
        // Requests for the same sectors keep their order, also those that others link, and a write
        // that finds no room in the buffer lets one go first that is there already.
        while let Some(older) = (0..index).find(|&i| {
            waiting[i].overlaps(&waiting[index])
                && (waiting[i].is_write() || waiting[index].is_write())
        }) {
            index = older;
        }
        let job = &waiting[index];
        if job.is_write()
            && job.accepted.is_none()
            && self.cache.find_write(now, job.request.lbn, job.end()) == WritePlace::Blocked
        {
            index = waiting
                .iter()
                .position(|job| job.accepted.is_some())
                .unwrap_or(index);
        } else if !job.is_write()
            && self.cache.find_read(now, job.request.lbn, job.end()) == ReadPlace::Blocked
        {
            let blocker = |other: &Job| other.accepted.is_some() && other.overlaps(job);
            let by_segment = |other: &Job| other.accepted.is_some();
            let first = waiting
                .iter()
                .position(blocker)
                .or_else(|| waiting.iter().position(by_segment));
            index = first.unwrap_or(index);
        }
        Some(self.waiting.remove(index))
    }

    /// Whether the buffer has a read's first sector, or read-ahead is about to bring it.
    fn finds_first_sector(&self, job: &Job, now: SimTime) -> bool {
        let from_media = job.is_write() || job.request.op == Op::Verify || job.request.fua;
        !from_media
            && matches!(
                self.cache.find_read(now, job.request.lbn, job.end()),
                ReadPlace::Whole(_) | ReadPlace::Partial(_)
            )
    }

    /// The first sector that is left to do of a request: a write's beginning may share a physical sector with the end of the
    /// one before, and be written with that.
    fn left_of(&self, job: &Job) -> Lbn {
        let LastWrite { end, written, .. } = self.last_write;
        match job.is_write() && job.request.lbn == end && written < job.end() {
            true => written,
            false => job.request.lbn,
        }
    }

    /// When the arm may begin to move for a waiting request: for a write that the buffer does not hold, once its first
    /// sector has come.
    fn start_of(&self, job: &Job, now: SimTime) -> SimTime {
        let c = &self.controller;
        let start = now.max(job.ready);
        match job.is_write() && job.accepted.is_none() {
            true => start + c.first_reselect + c.data_preparation + c.write_sector,
            false => start,
        }
    }

    fn platters(&self) -> Platters<'_> {
        Platters {
            geometry: &self.geometry,
            mechanics: &self.mechanics,
            slow: &self.slow,
            partitions: self.profile.access.track_partitions,
        }
    }

    /// Stops any read-ahead at `now`, and says when the arm may move.
    fn take_arm(&mut self, now: SimTime) -> SimTime {
        if let Arm::ReadAhead(mut run) = std::mem::replace(&mut self.arm, Arm::Idle) {
            let mut legs = std::mem::take(&mut self.legs);
            let ahead = &self.profile.cache.read_ahead;
            let platters = self.platters();
            let least = self.cache.segment(run.segment).ahead_least.min(run.limit());
            let mut at = now;
            let (mut next, _) = run.advance(platters, ahead.until, now, &mut legs);
            if next < least {
                at = at.max(run.reaches(platters, ahead.until, least, &mut legs));
                (next, _) = run.advance(platters, ahead.until, at, &mut legs);
            }
            (self.position, self.arm_free) = run.stop(at, ahead.stop_in_sector);
            self.legs = legs;
            if self.cache.segment(run.segment).state == State::Reading {
                self.cache.fill_to(run.segment, next);
                self.cache.set_reading(run.segment, false);
            }
        }
        self.arm_free.max(now)
    }

    /// Brings the segment that is read ahead into up to date.
    fn observe_read_ahead(&mut self, now: SimTime) {
        if !matches!(self.arm, Arm::ReadAhead(_)) {
            return;
        }
        let mut legs = std::mem::take(&mut self.legs);
        let mut arm = std::mem::replace(&mut self.arm, Arm::Idle);
        let mut done = false;
        if let Arm::ReadAhead(run) = &mut arm {
            let until = self.profile.cache.read_ahead.until;
            let (next, more) = run.advance(self.platters(), until, now, &mut legs);
            self.cache.fill_to(run.segment, next);
            self.cache
                .set_joins(!self.leaves_sectors() || !run.is_in_sector(now));
            done = !more;
        }
        (self.arm, self.legs) = (arm, legs);
        if done {
            self.take_arm(now);
        }
    }

    /// Whether the drive stops read-ahead in the middle of a sector even if that sector is asked for.
    fn leaves_sectors(&self) -> bool {
        let cache = &self.profile.cache;
        cache.read_ahead.stop_in_sector && !cache.almost_hits && !cache.read_ahead.on_arrival
    }

    /// When the arm is free, given when the media and the host are done with a request.
    fn release_time(&self, media: SimTime, sent: SimTime, acknowledged: SimTime) -> SimTime {
        match self.profile.queue.preseek {
            Preseek::BeforeCompletion => media,
            Preseek::DuringCompletion => media.max(sent),
            Preseek::None => media.max(acknowledged),
        }
    }

    fn complete(&mut self, completion: Completion) {
        debug_assert_eq!(
            completion.breakdown.total(),
            completion.response(),
            "{completion:?}"
        );
        let place = self
            .done
            .partition_point(|other| other.completed <= completion.completed);
        self.done.insert(place, completion);
    }

    /// Whether the scheduler weighs rotation.
    pub fn schedules_by_position(&self) -> bool {
        matches!(
            self.profile.queue.scheduler,
            Scheduler::Sptf | Scheduler::AgedSptf { .. }
        )
    }
}
