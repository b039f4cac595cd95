//! A disk: the timing model of the drive ([`crate::drive`]), and its data, which may be lost.
//!
//! ```
//! use traxtent_model::disk::Disk;
//! use traxtent_model::profile::builtin;
//!
//! let mut profile = builtin("atlas10k2").unwrap();
//! profile.cache.write_back = traxtent_model::profile::WriteBack::Full;
//! let mut disk = Disk::new(&profile)?;
//!
//! disk.write(1000, &[1; 512])?;
//! let flush = disk.flush()?;
//! disk.write(1000, &[2; 512])?;
//! disk.power_cut(7)?;
//!
//! let mut sector = [0; 512];
//! let read = disk.read(1000, &mut sector)?;
//! assert!(sector == [1; 512] || sector == [2; 512]); // never zeros, never a mixture
//! assert!(read.rotation.as_ms() < 6.0 && flush.total().as_ms() < 20.0);
//! # Ok::<(), traxtent_model::disk::DiskError>(())
//! ```
//!
//! Like the drive, a disk is a state machine without I/O, and time is an argument:
//! [`Disk::submit`], [`Disk::poll`], [`Disk::next_wakeup`]. [`Disk::read`] and similar methods
//! build on these. They run one command after another, and advance the disk's clock by the time
//! that each takes. A server uses the state machine, a unit test the methods; both run the same
//! code.
//!
//! The guarantees to a host are these, and no others:
//! - A write becomes visible as a whole at the instant at which it completes. A read that is
//!   outstanding at that time returns either version of each sector.
//! - A completed write is durable once a later flush has completed. It is durable immediately if it
//!   uses force unit access or if the drive has no write-back. Otherwise it is volatile.
//! - After a power cut, each sector (see [`Tearing`]) holds its last durable version, or any
//!   version that was written after it, complete or outstanding.
//! - A command that fails because the storage is full leaves acknowledged data unchanged. If it is
//!   a flush, it can be repeated once there is space.
//!
//! The clock ends at [`END_OF_TIME`]. Later times count as this one. Commands that are not complete
//! by then fail with [`DiskError::EndOfTime`].
//!
//! Left out: the time to spin up (a scenario sets how long the power is off), and a time for TRIM,
//! because no source gives one for hard disks.

mod command;
mod cut;
mod duration_text;
mod embed;
mod error;
mod fault;
mod fault_effects;
mod media;
mod scenario;
mod store;
mod volatile;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

pub use command::{Command, Completion, Tag};
pub use cut::{PowerCutResult, Tearing};
pub use error::DiskError;
pub use fault::{Fault, FaultError};
pub use fault_effects::FaultEvent;
pub use media::{Media, MediaError, MemoryMedia};
pub use scenario::{Scenario, ScenarioError, Scheduled};

use crate::drive::{self, Breakdown, Drive};
use crate::geometry::GeometrySpec;
use crate::profile::{Profile, Unmap};
use store::Store;
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors, SimTime};
use volatile::{WriteData, WriteMark};

/// A drive with data.
#[derive(Clone, Debug)]
pub struct Disk<M = MemoryMedia> {
    drive: Drive,
    store: Store<M>,
    /// The latest time seen.
    now: SimTime,
    /// The drive's outstanding commands, by the drive's tag.
    outstanding: BTreeMap<drive::Tag, (DiskJob, CommandEffect)>,
    done: VecDeque<Completion>,
    next_tag: u64,
    /// Future faults.
    upcoming: VecDeque<Scheduled>,
    events: VecDeque<FaultEvent>,
    /// The source of seeds for power cuts without a seed of their own.
    seeds: Rng,
    /// The time until which the drive does not respond.
    unresponsive_until: SimTime,
    /// The times until which flushes, and force unit access, are acknowledged without effect.
    ignores_until: [SimTime; 2],
    /// The layout, including grown defects.
    layout: Arc<GeometrySpec>,
}

/// A command that has been submitted.
#[derive(Clone, Copy, Debug)]
struct DiskJob {
    tag: Tag,
    command: Command,
    submitted: SimTime,
}

/// The effect of a command when it completes.
#[derive(Clone, Debug)]
enum CommandEffect {
    Read,
    Write { data: WriteData, fua: bool },
    Flush { before: WriteMark },
}

/// The latest time that a disk's clock reaches: 106 days. The drive can compute the time of a
/// command that it begins then, because an instant can hold twice as much.
pub const END_OF_TIME: SimTime = SimTime(u64::MAX >> 1);

/// Indexes into [`Disk::ignores_until`].
const FLUSH: usize = 0;
const FUA: usize = 1;

impl Disk<MemoryMedia> {
    /// Creates a zero-filled disk in memory, at rest.
    ///
    /// # Errors
    /// Returns an error if a value of the profile is out of bounds, or if its geometry cannot be
    /// built.
    pub fn new(profile: &Profile) -> Result<Disk, DiskError> {
        Ok(Disk::with_media(Drive::new(profile)?, MemoryMedia::new()))
    }
}

impl<M: Media> Disk<M> {
    /// Creates a disk at rest from a drive and a medium that is at least as large as the drive.
    pub fn with_media(drive: Drive, media: M) -> Disk<M> {
        let profile = drive.profile();
        let cache = &profile.cache;
        let room = u64::from(cache.write_segments)
            * u64::from(cache.segment_sectors)
            * u64::from(profile.sector.logical_bytes);
        Disk {
            store: Store::new(media, room),
            layout: Arc::new(profile.geometry.clone()),
            drive,
            now: SimTime::ZERO,
            outstanding: BTreeMap::new(),
            done: VecDeque::new(),
            next_tag: 0,
            upcoming: VecDeque::new(),
            events: VecDeque::new(),
            seeds: Rng::new(0),
            unresponsive_until: SimTime::ZERO,
            ignores_until: [SimTime::ZERO; 2],
        }
    }

    /// The drive, without its data.
    pub fn drive(&self) -> &Drive {
        &self.drive
    }

    /// The media.
    pub fn media(&self) -> &M {
        self.store.media()
    }

    /// Returns the media in the state after a power cut that loses all volatile data.
    pub fn into_media(self) -> M {
        self.store.into_media()
    }

    /// The disk's clock: the latest time that was given to the disk, or that it has reached by
    /// itself.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// The number of logical sectors.
    pub fn capacity(&self) -> Sectors {
        self.drive.geometry().capacity()
    }

    /// The number of bytes in a logical sector.
    pub fn sector_bytes(&self) -> u32 {
        self.drive.profile().sector.logical_bytes
    }

    /// The number of bytes that are acknowledged but not durable. Each version of a sector counts.
    pub fn unflushed_bytes(&self) -> u64 {
        self.store.unflushed()
    }

    /// The number of bytes that are durable, but that a flush has left for [`Disk::write_out`]. It
    /// is 0 unless the media permit this ([`Media::defers_writes`]).
    pub fn backlog_bytes(&self) -> u64 {
        self.store.backlog()
    }

    /// Writes to the media at most `most` bytes that flushes have left for later, oldest first.
    /// Only zeros may exceed `most`, because they are not copied. Returns whether any bytes remain.
    /// Writes do this too, so calls are optional.
    ///
    /// # Errors
    /// Returns an error if the media fail. The bytes that could not be written remain.
    pub fn write_out(&mut self, most: u64) -> Result<bool, DiskError> {
        Ok(self.store.write_out(most)?)
    }

    /// Writes all acknowledged data to the media, as a drive does that is shut down in an orderly
    /// way. This takes no modelled time, and no fault prevents it: a drive that ignores flushes
    /// writes its cache in the end. Outstanding commands are not completed.
    ///
    /// # Errors
    /// Returns an error if the media fail. The data that could not be written remains volatile.
    pub fn write_cache(&mut self) -> Result<(), DiskError> {
        let all = self.store.mark();
        self.store.flush(all)?;
        while self.store.write_out(u64::MAX)? {}
        self.clear_retries_of_rewritten();
        Ok(self.store.sync()?)
    }

    /// Submits a command at `now`, which must not be earlier than any time given before. `data`
    /// holds the data of a write, and is empty for other commands. If the drive does not respond,
    /// the command fails immediately. As in [`Drive::submit`], the caller keeps at most
    /// `queue.depth` commands outstanding, as a host would.
    ///
    /// # Errors
    /// Returns an error if the drive does not have the sectors, if a command other than a flush has
    /// no sectors, or if the length of `data` does not match the command. The command then has no
    /// effect.
    pub fn submit(
        &mut self,
        now: SimTime,
        command: Command,
        data: Vec<u8>,
    ) -> Result<Tag, DiskError> {
        self.check(&command, data.len())?;
        self.advance(now);
        let tag = Tag(self.next_tag);
        self.next_tag += 1;
        let submitted = self.now;
        let range = self.bytes_of(&command);
        let work = match command {
            Command::Read { .. } => CommandEffect::Read,
            Command::Write { fua, .. } => CommandEffect::Write {
                data: WriteData::Bytes(data),
                fua,
            },
            Command::WriteZeroes { fua, .. } => CommandEffect::Write {
                data: WriteData::Zeros(range.end - range.start),
                fua,
            },
            Command::Flush => CommandEffect::Flush {
                before: self.store.mark(),
            },
            Command::Trim { .. } => CommandEffect::Write {
                data: WriteData::Zeros(range.end - range.start),
                fua: false,
            },
        };
        let job = DiskJob {
            tag,
            command,
            submitted,
        };
        if self.is_unresponsive() {
            self.end_unserved(job, Err(DiskError::Unresponsive));
        } else if let Command::Trim { .. } = command {
            let outcome = match self.drive.profile().scsi.unmap {
                Unmap::Ignored => Ok(()),
                Unmap::Zeroes => self.carry_out(&command, work),
            };
            self.end_unserved(job, outcome);
        } else {
            let mut request = request(&command);
            // Sectors that cannot be read are not in the drive's buffer either.
            request.fua |= request.op == Op::Read && self.store.first_unreadable(&range).is_some();
            let drive_tag = self.drive.submit(submitted, request)?;
            self.outstanding.insert(drive_tag, (job, work));
        }
        Ok(tag)
    }

    /// Returns the next command that has completed by `now`, in order of time.
    pub fn poll(&mut self, now: SimTime) -> Option<Completion> {
        self.advance(now);
        self.done.pop_front()
    }

    /// Returns the time of the next event or unreported completion, or `None` if there is neither.
    /// The time is never after [`END_OF_TIME`].
    pub fn next_wakeup(&self) -> Option<SimTime> {
        let completed = self.done.front().map(|done| done.completed);
        completed.into_iter().chain(self.next_change()).min()
    }

    /// Returns the time of the next event, regardless of completions that are not yet reported.
    fn next_change(&self) -> Option<SimTime> {
        let fault = self.upcoming.front().map(|fault| fault.at);
        let events = self.drive.next_wakeup().into_iter().chain(fault);
        // Commands that remain outstanding fail at the end of time.
        let end = (!self.outstanding.is_empty()).then_some(END_OF_TIME);
        let reached = events.filter(|at| *at <= END_OF_TIME);
        reached.chain(end).min()
    }

    /// Returns the outstanding commands whose completion time is certain unless a fault occurs
    /// first, and that time. See [`Drive::scheduled_completions`].
    pub fn scheduled_completions(&self) -> impl Iterator<Item = (Tag, SimTime)> {
        self.drive.scheduled_completions().filter_map(|completion| {
            let (job, _) = self.outstanding.get(&completion.tag)?;
            Some((job.tag, completion.completed))
        })
    }

    /// Copies the data, starting at `lbn`, that a host sees at the disk's current time. This lets a
    /// server copy the data of a successful read directly into its own buffer. Takes no modelled
    /// time.
    ///
    /// # Errors
    /// Returns an error if the length is 0 or not a whole number of sectors, if the drive does not
    /// have the sectors, or if the media fail.
    pub fn fetch(&self, lbn: Lbn, into: &mut [u8]) -> Result<(), DiskError> {
        let sectors = self.whole_sectors(into.len())?;
        self.drive.check(&Request::read(lbn, sectors))?;
        Ok(self.store.fetch(self.byte(lbn), into)?)
    }

    /// Returns whether the drive does not respond.
    pub fn is_unresponsive(&self) -> bool {
        self.now < self.unresponsive_until
    }

    fn check(&self, command: &Command, data: usize) -> Result<(), DiskError> {
        self.drive
            .check(&request(command))
            .map_err(|error| error.of_command(command.name()))?;
        let (_, sectors) = command.sectors();
        let expected = match command {
            Command::Write { .. } => sectors as usize * self.sector_bytes() as usize,
            _ => 0,
        };
        if data == expected {
            return Ok(());
        }
        Err(DiskError::Length {
            bytes: data,
            expected: format!("{expected} for a {command}"),
        })
    }

    /// Advances to `now`, but not beyond [`END_OF_TIME`]. All events until then are processed in
    /// order.
    fn advance(&mut self, now: SimTime) {
        let now = now.min(END_OF_TIME).max(self.now);
        while let Some(&next) = self.upcoming.front().filter(|next| next.at <= now) {
            self.upcoming.pop_front();
            self.settle(next.at.max(self.now));
            self.apply_scheduled(next.fault);
        }
        self.settle(now);
        if now == END_OF_TIME {
            for (job, _) in std::mem::take(&mut self.outstanding).into_values() {
                self.end_unserved(job, Err(DiskError::EndOfTime));
            }
        }
    }

    /// Carries out the commands that the drive has completed by `until`.
    fn settle(&mut self, until: SimTime) {
        while let Some(wake) = self.drive.next_wakeup().filter(|wake| *wake <= until) {
            self.now = wake.max(self.now);
            while let Some(done) = self.drive.poll(self.now) {
                let Some((job, work)) = self.outstanding.remove(&done.tag) else {
                    unreachable!("the drive completes only commands of this disk");
                };
                let outcome = self.carry_out(&job.command, work);
                self.done.push_back(Completion {
                    tag: job.tag,
                    command: job.command,
                    submitted: job.submitted,
                    completed: done.completed,
                    breakdown: done.breakdown,
                    served: Some(done.served),
                    outcome,
                });
            }
        }
        self.now = until;
    }

    /// Applies the effect of a command to the data.
    fn carry_out(&mut self, command: &Command, work: CommandEffect) -> Result<(), DiskError> {
        let range = self.bytes_of(command);
        match work {
            CommandEffect::Read => match self.store.first_unreadable(&range) {
                None => Ok(()),
                Some(byte) => Err(DiskError::Unreadable {
                    lbn: byte / u64::from(self.sector_bytes()),
                }),
            },
            CommandEffect::Write { data, fua } => {
                let fua = fua && !self.lies(FUA);
                if self.drive.caching().write_back && !fua {
                    self.store.write_back(range.start, data)?;
                } else {
                    self.store.write_through(range.start, &data)?;
                    if fua {
                        self.store.sync()?;
                    }
                }
                self.clear_retries_of_rewritten();
                Ok(())
            }
            CommandEffect::Flush { .. } if self.lies(FLUSH) => Ok(()),
            CommandEffect::Flush { before } => {
                let flushed = self.store.flush(before);
                self.clear_retries_of_rewritten();
                Ok(flushed?)
            }
        }
    }

    /// Ends a command at the current time without an access to the drive's media or buffer.
    fn end_unserved(&mut self, job: DiskJob, outcome: Result<(), DiskError>) {
        self.done.push_back(Completion {
            tag: job.tag,
            command: job.command,
            submitted: job.submitted,
            completed: self.now,
            breakdown: Breakdown {
                queue: self.now.since(job.submitted),
                ..Breakdown::default()
            },
            served: None,
            outcome,
        });
    }

    fn lies(&self, about: usize) -> bool {
        self.now < self.ignores_until[about]
    }

    fn byte(&self, lbn: Lbn) -> u64 {
        lbn.0 * u64::from(self.sector_bytes())
    }

    fn bytes_of(&self, command: &Command) -> Range<u64> {
        let (lbn, sectors) = command.sectors();
        self.byte(lbn)..self.byte(lbn + Sectors(sectors.into()))
    }

    /// Converts a number of bytes to sectors.
    fn whole_sectors(&self, bytes: usize) -> Result<u32, DiskError> {
        let size = self.sector_bytes() as usize;
        match u32::try_from(bytes / size) {
            Ok(sectors) if bytes.is_multiple_of(size) => Ok(sectors),
            _ => Err(DiskError::Length {
                bytes,
                expected: format!("a multiple of the sector size, {size}"),
            }),
        }
    }
}

/// Returns the request that models the time of a command. Zeros cross the bus like other data; a
/// drive that generates them itself would save that time. The request of a trim only serves to
/// check its sectors, because a trim takes no time.
pub fn request(command: &Command) -> Request {
    let (lbn, sectors) = command.sectors();
    let (op, fua) = match *command {
        Command::Read { .. } => (Op::Read, false),
        Command::Trim { .. } => (Op::Write, false),
        Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } => (Op::Write, fua),
        Command::Flush => (Op::Flush, false),
    };
    Request {
        lbn,
        sectors,
        op,
        fua,
    }
}
