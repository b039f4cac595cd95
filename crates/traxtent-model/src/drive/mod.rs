//! The drive: a state machine without I/O.
//!
//! Time is passed in as an argument. [`Drive::submit`] takes a request, [`Drive::poll`] returns
//! completed ones, and [`Drive::next_wakeup`] returns the time of the next event. Nothing happens
//! between calls; the owner of the drive controls the clock.
//!
//! Four parts work concurrently and share a request's time: the controller (command overheads), the
//! arm with its heads (one access at a time, then read-ahead), the buffer (segments), and the bus
//! (one transfer at a time). These parts and the order of their actions follow the disk controller
//! of DiskSim 4.0. Unlike DiskSim, the model computes each access as a whole instead of sector by
//! sector.

mod breakdown;
mod bus;
mod cache;
mod controller;
mod disturbances;
mod oversize;
mod passes;
mod physical;
mod policy;
mod queue;
mod readahead;
mod reads;
mod schedule;
mod serve;
mod sweep;
mod writes;

pub use breakdown::Breakdown;
pub use passes::Pass;
pub use policy::{ClonePolicy, HeadView, QueuePolicy, Waiting, WaitingRequest};
pub use schedule::{Candidate, Schedule};

use crate::geometry::Geometry;
use crate::mechanics::{HeadPosition, Mechanics};
use crate::profile::{Preseek, Profile, ProfileError, ReadAheadUntil, WriteBack};
pub use bus::SharedBus;
use bus::{Bus, Ramp};
use cache::{Cache, State};
use controller::Controller;
use disturbances::RetryTable;
use readahead::ReadAheadRun;
use std::collections::VecDeque;
use std::sync::Arc;
use sweep::{AccessModel, DataArrival, Leg};
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Count, Lbn, Sectors, SimTime, Span};

/// The identifier of a request, unique and ascending over the drive's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// The part of the drive that served a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedBy {
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
    /// The tag that [`Drive::submit`] returned.
    pub tag: Tag,
    /// The request.
    pub request: Request,
    /// The time of submission.
    pub submitted: SimTime,
    /// The time of completion.
    pub completed: SimTime,
    /// The parts of the time between the two.
    pub breakdown: Breakdown,
    /// The part of the drive that served the request.
    pub served: ServedBy,
}

impl Completion {
    /// The response time.
    pub fn response(&self) -> Span {
        self.completed.since(self.submitted)
    }
}

/// The reason why a drive refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The request extends beyond the last sector.
    #[error(
        "{op} of {} at LBN {lbn}: the drive ends before LBN {capacity}",
        Count(sectors, "sector")
    )]
    BeyondEnd {
        /// The operation's name.
        op: &'static str,
        /// The first sector.
        lbn: u64,
        /// The number of sectors.
        sectors: u32,
        /// The drive's capacity in sectors.
        capacity: u64,
    },
    /// The request has no sectors.
    #[error("{op} at LBN {lbn}: zero sectors")]
    Empty {
        /// The operation's name.
        op: &'static str,
        /// The first sector.
        lbn: u64,
    },
    /// A flush that addresses sectors.
    #[error(
        "flush of {} at LBN {lbn}: a flush addresses no sectors",
        Count(sectors, "sector")
    )]
    FlushOfSectors {
        /// The first sector.
        lbn: u64,
        /// The number of sectors.
        sectors: u32,
    },
}

impl RequestError {
    /// Returns the error with the name of the command that made the request.
    pub(crate) fn of_command(mut self, name: &'static str) -> RequestError {
        if let RequestError::BeyondEnd { op, .. } | RequestError::Empty { op, .. } = &mut self {
            *op = name;
        }
        self
    }
}

/// The buffer's functions that a host can switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caching {
    /// Whether reads may come from the buffer.
    pub read: bool,
    /// Whether the drive may read ahead, to the extent that its profile provides for it.
    pub read_ahead: bool,
    /// Whether a write without FUA is complete once it is in the buffer.
    pub write_back: bool,
}

impl Caching {
    /// Reads come from the media, writes complete on the media, and there is no read-ahead.
    pub const OFF: Caching = Caching {
        read: false,
        read_ahead: false,
        write_back: false,
    };

    /// Returns the profile's default settings.
    pub fn of(profile: &Profile) -> Caching {
        Caching {
            read: profile.cache.enabled,
            read_ahead: profile.cache.read_ahead.until != ReadAheadUntil::None,
            write_back: profile.cache.enabled && profile.cache.write_back == WriteBack::Full,
        }
    }
}

/// A request that waits or is being served.
#[derive(Clone, Copy, Debug)]
struct DriveJob {
    tag: Tag,
    request: Request,
    submitted: SimTime,
    /// The time from which the arm may move for it.
    ready: SimTime,
    /// The time at which the drive has left the bus after its command.
    off_bus: SimTime,
    after_read: bool,
    /// Whether it begins where the previous command ended.
    continues: bool,
    /// The place of a write's data in the buffer, once the buffer has accepted it.
    accepted: Option<Accepted>,
}

/// The state of the media after the last write.
#[derive(Clone, Copy, Debug)]
struct LastWrite {
    /// The time at which it was on the media.
    media_end: SimTime,
    /// The end of its sectors.
    end: Lbn,
    /// The index of the first leg that wrote it. The legs before that read the physical sectors
    /// that the write covers only in part.
    first_leg: usize,
    /// The LBN up to which the following write is already on the media. It is greater than `end` if
    /// the buffer also held the beginning of that write in the same physical sector.
    written: Lbn,
}

/// A write in the buffer.
#[derive(Clone, Copy, Debug)]
struct Accepted {
    segment: usize,
    inflow: DataArrival,
    /// The time at which its last sector is in the buffer.
    full: SimTime,
    appended: bool,
    /// Whether the buffer held the rest of its first and of its last physical sector.
    edges: (bool, bool),
    /// Whether it made the additional disconnection.
    extra: bool,
    /// The time at which the drive began to serve it.
    began: SimTime,
    /// Whether its completion has been scheduled.
    completed: bool,
}

impl DriveJob {
    fn end(&self) -> Lbn {
        self.request.end()
    }

    fn is_write(&self) -> bool {
        self.request.op == Op::Write
    }

    fn overlaps(&self, other: &DriveJob) -> bool {
        self.request.lbn < other.end() && other.request.lbn < self.end()
    }
}

/// A submitted command. It waits if the drive still keeps the bus for an earlier one.
#[derive(Clone, Copy, Debug)]
struct Command {
    tag: Tag,
    submitted: SimTime,
    request: Request,
}

/// The activity of the arm.
#[derive(Clone, Copy, Debug)]
enum Arm {
    /// The arm reads ahead if there is a read-ahead. Otherwise it is idle.
    Free,
    /// The arm works for a request until `release`. The read-ahead, if there is one, follows. For a
    /// write, `writing` is its segment and the end of its sectors.
    Access {
        release: SimTime,
        writing: Option<(usize, Lbn)>,
    },
}

/// A flush that waits for writes to reach the media.
#[derive(Clone, Copy, Debug)]
struct PendingFlush {
    tag: Tag,
    request: Request,
    submitted: SimTime,
    /// The time at which all preceding writes are on the media, as far as it is known. It is not
    /// before the flush's arrival or the end of a stall.
    latest: SimTime,
}

/// The work of the heads for requests since the drive started, including writes that completed
/// before they reached the media. Read-ahead is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// The number of accesses to the media.
    pub count: u64,
    /// The time spent waiting for sectors to come under the head.
    pub rotation: Span,
}

/// One drive.
#[derive(Clone, Debug)]
pub struct Drive {
    geometry: Arc<Geometry>,
    mechanics: Mechanics,
    profile: Arc<Profile>,
    controller: Controller,
    /// The buffer settings that the host has requested.
    caching: Caching,
    /// The settings that the drive applies.
    applied_caching: Caching,
    cache: Cache,
    bus: Bus,
    schedule: Schedule,
    /// The user's own policy, which takes the place of the schedule.
    policy: Option<Box<dyn QueuePolicy>>,
    arm: Arm,
    /// The current read-ahead, or the one that follows the current access. It is not a part of
    /// `arm`, because it is large and would be copied with each change of the arm's activity.
    read_ahead: Option<ReadAheadRun>,
    position: HeadPosition,
    /// The time from which the arm may move again after a read-ahead was stopped.
    arm_free: SimTime,
    waiting: Vec<DriveJob>,
    /// Commands that wait for the bus, if the drive keeps it from the command to the completion.
    held: VecDeque<Command>,
    flushes: Vec<PendingFlush>,
    done: VecDeque<Completion>,
    next_tag: u64,
    last_was_read: bool,
    /// The end of the previous command's sectors.
    last_end: Option<Lbn>,
    /// The track that is being read as a whole.
    whole_track: Option<reads::WholeTrack>,
    last_write: LastWrite,
    /// Random numbers that determine which reads keep the sectors that passed before the wanted
    /// ones.
    on_arrival_rng: Rng,
    /// The time before which the drive starts nothing.
    stalled: SimTime,
    slow: RetryTable,
    accesses: Accesses,
    legs: Vec<Leg>,
    ramps: Vec<Ramp>,
}

impl Drive {
    /// Creates a drive at rest, with its heads over the first cylinder.
    ///
    /// # Errors
    /// Returns an error if a value of the profile is out of bounds, or if its geometry cannot be
    /// built.
    pub fn new(profile: &Profile) -> Result<Drive, ProfileError> {
        profile.check()?;
        let geometry = Geometry::build(&profile.geometry)
            .map_err(|e| ProfileError::Geometry(e.to_string()))?;
        Ok(Drive::with_geometry(
            Arc::new(profile.clone()),
            Arc::new(geometry),
        ))
    }

    /// Creates a drive from a checked profile and its geometry, which has already been built.
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
            applied_caching: Caching::of(&profile),
            cache: Cache::new(&profile.cache),
            bus: Bus::default(),
            schedule: Schedule::new(profile.queue.scheduler),
            policy: None,
            arm: Arm::Free,
            read_ahead: None,
            position: HeadPosition::default(),
            arm_free: SimTime::ZERO,
            waiting: Vec::new(),
            held: VecDeque::new(),
            flushes: Vec::new(),
            done: VecDeque::new(),
            next_tag: 0,
            last_was_read: true,
            last_end: None,
            whole_track: None,
            last_write: LastWrite {
                media_end: SimTime::ZERO,
                end: Lbn(u64::MAX),
                first_leg: 0,
                written: Lbn(u64::MAX),
            },
            on_arrival_rng: Rng::new(0),
            stalled: SimTime::ZERO,
            slow: RetryTable::default(),
            accesses: Accesses::default(),
            legs: Vec::new(),
            ramps: Vec::new(),
            geometry,
            profile,
        }
    }

    /// Connects the drive to a bus that other drives share. The drive waits for their transfers,
    /// and they wait for its transfers. A clone uses the same bus.
    pub fn share_bus(&mut self, bus: SharedBus) {
        self.bus.share(bus);
    }

    /// The layout of the drive's sectors.
    pub fn geometry(&self) -> &Arc<Geometry> {
        &self.geometry
    }

    /// The drive's profile.
    pub fn profile(&self) -> &Arc<Profile> {
        &self.profile
    }

    /// Returns the work of the heads so far.
    pub fn accesses(&self) -> Accesses {
        self.accesses
    }

    /// Returns the buffer settings that the host has requested. A drive may ignore some of them.
    pub fn caching(&self) -> Caching {
        self.caching
    }

    /// Switches parts of the buffer on or off at `now`, which must not be earlier than any time
    /// given before.
    ///
    /// If read-ahead is switched off, a current read-ahead is stopped. If reads from the buffer are
    /// switched off, its contents are dropped. Writes that it has accepted stay, and go to the
    /// media as before. A drive that reads ahead regardless of its host's settings
    /// (`cache.read_ahead.ignores_host`) applies only the setting for writes.
    pub fn set_caching(&mut self, now: SimTime, caching: Caching) {
        self.run_until(now);
        self.caching = caching;
        let caching = if self.profile.cache.read_ahead.ignores_host {
            Caching {
                write_back: caching.write_back,
                ..self.applied_caching
            }
        } else {
            caching
        };
        let before = std::mem::replace(&mut self.applied_caching, caching);
        if before.read_ahead && !caching.read_ahead {
            self.stop_read_ahead(now);
            self.cache.forget_read_ahead();
        }
        self.cache.set_enabled(caching.read);
    }

    /// Submits a request at `now`, which must not be earlier than any time given before. Every
    /// request enters the drive's queue immediately: to model a host, the caller keeps at most
    /// [`queue.depth`](crate::profile::QueueSpec::depth) requests outstanding.
    ///
    /// # Errors
    /// Returns an error if the drive cannot serve such a request. The request then has no effect.
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
        if self.holds_bus(now) {
            self.held.push_back(command);
        } else {
            self.begin(command, now);
        }
        Ok(tag)
    }

    /// Starts a command that the bus delivers at `now`.
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
            self.last_end = Some(request.end());
        }
    }

    /// Returns whether the drive still keeps the bus at `now` because it never releases it before a
    /// request is complete.
    fn holds_bus(&self, now: SimTime) -> bool {
        self.controller.never_disconnect
            && (!self.held.is_empty()
                || self.has_unscheduled_completions()
                || self.done.back().is_some_and(|last| last.completed > now))
    }

    /// Returns whether the drive has requests whose completion time is not yet known.
    fn has_unscheduled_completions(&self) -> bool {
        let is_incomplete =
            |job: &DriveJob| !job.accepted.is_some_and(|accepted| accepted.completed);
        !self.flushes.is_empty() || self.waiting.iter().any(is_incomplete)
    }

    /// Returns the next request that has completed by `now`, in order of completion.
    #[inline]
    pub fn poll(&mut self, now: SimTime) -> Option<Completion> {
        self.run_until(now);
        if self.done.front()?.completed <= now {
            self.done.pop_front()
        } else {
            None
        }
    }

    /// Submits a request at `now` to a drive that has no other, and runs the drive until the
    /// request is complete.
    ///
    /// # Errors
    /// Same as [`Drive::submit`].
    ///
    /// # Panics
    /// Panics if the completion of another request is reported first.
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

    /// Returns the earlier of two times: that of the first unreported completion, and that at which
    /// the arm can start a waiting request. Returns `None` if there is neither.
    #[inline]
    pub fn next_wakeup(&self) -> Option<SimTime> {
        let completion = self.done.front().map(|completion| completion.completed);
        let work = match &self.arm {
            Arm::Access { release, .. } if !self.waiting.is_empty() => Some(*release),
            _ => None,
        };
        match (completion, work) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Iterates over the completions that are certain but not yet reported, in order of time. Code
    /// that paces a drive against a clock can use them to tell a waiting host in advance when its
    /// response is due.
    pub fn scheduled_completions(&self) -> impl Iterator<Item = &Completion> {
        self.done.iter()
    }

    /// Returns whether all completions have been reported, and all writes are on the media, at the
    /// latest time given.
    pub fn is_idle(&self) -> bool {
        self.done.is_empty()
            && self.waiting.is_empty()
            && self.held.is_empty()
            && matches!(self.arm, Arm::Free)
    }

    /// Checks that the drive can serve a request.
    ///
    /// # Errors
    /// Returns an error if the request is empty, if it ends after the last sector, or if it is a
    /// flush of sectors.
    pub fn check(&self, request: &Request) -> Result<(), RequestError> {
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
            return Err(RequestError::Empty { op: op.name(), lbn });
        }
        let Sectors(capacity) = self.geometry.capacity();
        match lbn.checked_add(u64::from(sectors)) {
            Some(end) if end <= capacity => Ok(()),
            _ => Err(RequestError::BeyondEnd {
                op: op.name(),
                lbn,
                sectors,
                capacity,
            }),
        }
    }

    /// Runs the arm from access to access, and starts commands that wait for the bus, until `now`.
    #[inline]
    fn run_until(&mut self, now: SimTime) {
        // Usually nothing has happened.
        let is_due = matches!(self.arm, Arm::Access { release, .. } if release <= now);
        if is_due || !self.held.is_empty() {
            self.run_events(now);
        }
    }

    fn run_events(&mut self, now: SimTime) {
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

    /// The time at which the next of the commands that wait for the bus may start, if there is one
    /// and the time is certain.
    fn bus_free(&self) -> Option<SimTime> {
        let next = self.held.front()?;
        let certain = !self.has_unscheduled_completions();
        let last = self
            .done
            .back()
            .map_or(next.submitted, |last| last.completed);
        certain.then(|| last.max(next.submitted))
    }

    /// Ends the arm's current access and starts the next request, or read-ahead.
    fn release(&mut self, now: SimTime) {
        let Arm::Access { writing, .. } = self.arm else {
            return;
        };
        self.arm = Arm::Free;
        if let Some((segment, end)) = writing {
            self.cache.drain(segment, end);
        }
        if let Some(run) = &self.read_ahead {
            // A write may since have replaced its segment or its sectors.
            if self.cache.segment(run.segment).state != State::Reading {
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
                self.start_write(&job, now);
                self.take_next_write(now);
            } else {
                self.start_read(&job, now, false);
                self.take_waiting_writes(now);
            }
        }
    }

    #[inline]
    fn access_model(&self) -> AccessModel<'_> {
        AccessModel::new(&self.geometry, &self.mechanics, &self.slow, &self.profile)
    }

    /// Stops any read-ahead at `now`, or later if it has not yet reached its minimum, and returns
    /// the time from which the arm may move.
    fn take_arm(&mut self, now: SimTime) -> SimTime {
        if let (Arm::Free, Some(run)) = (self.arm, &mut self.read_ahead) {
            let ahead = &self.profile.cache.read_ahead;
            // `access_model` would borrow the read-ahead too.
            let model =
                AccessModel::new(&self.geometry, &self.mechanics, &self.slow, &self.profile);
            let least = self.cache.segment(run.segment).ahead_least.min(run.limit());
            let mut at = now;
            let (mut next, _) = run.advance(model, ahead.until, now);
            if next < least {
                at = at.max(run.reaches(model, ahead.until, least));
                (next, _) = run.advance(model, ahead.until, at);
            }
            (self.position, self.arm_free) = run.stop(at, ahead.stop_in_sector);
            if self.cache.segment(run.segment).state == State::Reading {
                self.cache.fill_to(run.segment, next);
                self.cache.set_reading(run.segment, false);
            }
        }
        (self.arm, self.read_ahead) = (Arm::Free, None);
        self.arm_free.max(now)
    }

    /// Updates the segment that read-ahead is filling.
    fn observe_read_ahead(&mut self, now: SimTime) {
        let leaves_sectors = self.leaves_sectors();
        let (Arm::Free, Some(run)) = (self.arm, &mut self.read_ahead) else {
            return;
        };
        let model = AccessModel::new(&self.geometry, &self.mechanics, &self.slow, &self.profile);
        let until = self.profile.cache.read_ahead.until;
        let (next, more) = run.advance(model, until, now);
        self.cache.fill_to(run.segment, next);
        self.cache
            .set_joins(!leaves_sectors || !run.is_in_sector(now));
        if !more {
            self.take_arm(now);
        }
    }

    /// Returns whether the drive stops read-ahead within a sector even if that sector is requested.
    fn leaves_sectors(&self) -> bool {
        let cache = &self.profile.cache;
        cache.read_ahead.stop_in_sector && !cache.almost_hits && !cache.read_ahead.on_arrival
    }

    /// The time at which the arm is free, given the times at which the media have finished a
    /// request, its data has been sent, and its completion has been sent.
    fn release_time(&self, media: SimTime, sent: SimTime, acknowledged: SimTime) -> SimTime {
        match self.profile.queue.preseek {
            Preseek::BeforeCompletion => media,
            Preseek::DuringCompletion => media.max(sent),
            Preseek::None => media.max(acknowledged),
        }
    }

    // Always inlined. The completion is then written directly to its place, not copied.
    #[inline(always)]
    fn complete(&mut self, completion: Completion) {
        debug_assert_eq!(
            completion.breakdown.total(),
            completion.response(),
            "{completion:?}"
        );
        let completed = completion.completed;
        let is_last = self
            .done
            .back()
            .is_none_or(|last| last.completed <= completed);
        self.done.push_back(completion);
        if !is_last {
            self.order_last();
        }
    }

    /// Moves the newest completion to its place in order of time.
    fn order_last(&mut self) {
        let mut place = self.done.len() - 1;
        let completed = self.done[place].completed;
        while place > 0 && self.done[place - 1].completed > completed {
            self.done.swap(place - 1, place);
            place -= 1;
        }
    }

    /// Returns whether the profile's scheduler takes rotation into account.
    pub fn schedules_by_position(&self) -> bool {
        self.profile.queue.scheduler.is_positional()
    }
}
