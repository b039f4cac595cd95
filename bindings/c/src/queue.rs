//! Several outstanding requests, with the caller's clock and tags: the state machine of
//! `traxtent_model::disk` (`submit`, `poll`, `next_wakeup`).

use std::slice;

use traxtent_model::disk::{Command, Completion as Done};
use traxtent_units::{Count, Lbn, SimTime};

use crate::{Disk, Status, TRAXTENT_TIME_MAX};

/// The operation of a request.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types)]
pub enum Op {
    /// Reads sectors. Once the command has completed, `traxtent_fetch` copies the data.
    TRAXTENT_READ = 1,
    /// Writes sectors.
    TRAXTENT_WRITE = 2,
    /// Waits for all writes that were submitted before it, and makes durable those that had
    /// completed before the submission. `lbn` and `sectors` must be zero.
    TRAXTENT_FLUSH = 3,
    /// Discards sectors (TRIM); their content afterwards depends on the drive.
    TRAXTENT_TRIM = 4,
    /// Writes zeros to sectors.
    TRAXTENT_WRITE_ZEROES = 5,
}

use Op::{TRAXTENT_FLUSH, TRAXTENT_READ, TRAXTENT_TRIM, TRAXTENT_WRITE, TRAXTENT_WRITE_ZEROES};

/// A flag of writes, including writes of zeros: force unit access. The write is durable when it
/// completes.
pub const TRAXTENT_FUA: u32 = 1;

/// The result of `traxtent_next_wakeup` if no event is due. `traxtent_poll` at this time does not
/// advance the clock.
pub const TRAXTENT_NEVER: u64 = 0xffff_ffff_ffff_ffff;

/// A request. Set unused fields to zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Request {
    /// The caller's identifier of the request. The completion returns it; the disk does not use it.
    pub tag: u64,
    /// The first sector.
    pub lbn: u64,
    /// The data to write, for `TRAXTENT_WRITE`.
    pub data: *const u8,
    /// The number of sectors.
    pub sectors: u32,
    /// One of `traxtent_op`.
    pub op: u32,
    /// Zero or `TRAXTENT_FUA`.
    pub flags: u32,
}

/// The parts of a response time in picoseconds. Their sum is the response time.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Breakdown {
    /// Waiting for other requests, for read-ahead to stop, or for the end of a stall.
    pub queue: u64,
    /// The controller's command and completion processing, the reselection of the bus, and delays
    /// before the head moves.
    pub overhead: u64,
    /// The first movement of the arm.
    pub seek: u64,
    /// Settling before writes.
    pub settle: u64,
    /// Track switches within the request, and the part of a head switch before it that exceeds
    /// the seek.
    pub head_switch: u64,
    /// Waiting for sectors to come under the head.
    pub rotation: u64,
    /// Sectors passing under the head.
    pub transfer: u64,
    /// The transfer on the bus, and waiting for the bus before it, except while any part above
    /// takes place.
    pub bus: u64,
}

/// A request that has completed.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Completion {
    /// The request's tag.
    pub tag: u64,
    /// The time of submission in picoseconds.
    pub submitted: u64,
    /// The time of completion in picoseconds.
    pub completed: u64,
    /// The parts of the time from submission to completion.
    pub breakdown: Breakdown,
    /// The first sector.
    pub lbn: u64,
    /// The number of sectors.
    pub sectors: u32,
    /// The request's operation, one of `traxtent_op`.
    pub op: u32,
    /// Success, or the reason for the failure.
    pub status: Status,
}

/// Submits a request at `now`, in picoseconds on a clock that is zero when the disk is created or
/// opened. A time before `traxtent_now` counts as `traxtent_now`. The request and its data are
/// copied, so the caller may reuse both after the call. Tags need not be unique. Every request
/// enters the drive's queue immediately: keep at most the profile's `queue.depth` requests
/// outstanding, as a host would.
///
/// Returns `TRAXTENT_INVALID`, without any effect, if a field is invalid, the disk does not have
/// the sectors, or `now` is after `TRAXTENT_TIME_MAX`. Other errors are in the completion.
///
/// # Safety
/// If the request is a write, its `data` has `sectors` sectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_submit(disk: &mut Disk, now: u64, request: &Request) -> Status {
    let command = match command(request) {
        Ok(command) => command,
        Err(message) => return disk.refuse(&message),
    };
    if now > TRAXTENT_TIME_MAX {
        return disk.refuse(&format!(
            "the time {now} ps is after TRAXTENT_TIME_MAX; count times from the disk's creation"
        ));
    }
    let data = match (command, disk.bytes_of(request.lbn, request.sectors)) {
        (Command::Write { .. }, Some(_)) if request.data.is_null() => {
            return disk.refuse("a write without data: `data` is null");
        }
        // SAFETY: the caller provides that many bytes.
        (Command::Write { .. }, Some(bytes)) => unsafe {
            slice::from_raw_parts(request.data, bytes).to_vec()
        },
        // The model rejects a write beyond the end before it examines the data.
        _ => Vec::new(),
    };
    match disk.model.submit(SimTime(now), command, data) {
        Ok(tag) => {
            disk.tags.insert(tag, request.tag);
            Status::TRAXTENT_OK
        }
        Err(error) => disk.finish(Err(error)),
    }
}

/// If a request has completed by `now`, in picoseconds, writes its completion to `completion` and
/// returns true. Otherwise returns false and writes nothing. Completions are returned in order of
/// time. The disk's clock advances to `now`, so do not poll at a time in the future. `now` is
/// limited to the range from `traxtent_now` to `TRAXTENT_TIME_MAX`. `TRAXTENT_NEVER` counts as
/// `traxtent_now`, so `traxtent_poll(disk, traxtent_next_wakeup(disk), &completion)` is safe even
/// if no event is due.
///
/// Requests that are not complete by `TRAXTENT_TIME_MAX` complete then, with `TRAXTENT_FAILED`.
///
/// If the request failed, `completion->status` is not `TRAXTENT_OK`, and `traxtent_error` returns
/// the reason.
///
/// # Safety
/// `completion` has room for a completion.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_poll(
    disk: &mut Disk,
    now: u64,
    completion: *mut Completion,
) -> bool {
    let now = match now {
        TRAXTENT_NEVER => disk.model.now(),
        now => SimTime(now),
    };
    let Some(done) = disk.model.poll(now) else {
        return false;
    };
    let done = disk.completion(done);
    // SAFETY: the caller provides room for it.
    unsafe { completion.write(done) };
    true
}

/// Copies the data of `sectors` sectors that start at `lbn` to `into`. A read that completes at
/// `traxtent_now` returns this data. Takes no time on the disk's clock. Call it after
/// `traxtent_poll` has returned the read's completion, and before `traxtent_power_cut`.
///
/// Returns `TRAXTENT_INVALID` if the disk does not have the sectors, or if `sectors` is zero, and
/// `TRAXTENT_FAILED` if the storage of the data fails. The content of `into` is then undefined.
/// Unreadable sectors are not reported here, but by the completion of the read.
///
/// # Safety
/// `into` has room for the sectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_fetch(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    into: *mut u8,
) -> Status {
    let bytes = match disk.bytes_of(lbn, sectors) {
        Some(bytes) if !into.is_null() => bytes,
        Some(_) => return disk.refuse("a fetch without room for its data: `into` is null"),
        None => return disk.beyond_end("fetch", lbn, sectors),
    };
    // SAFETY: the caller provides room for that many bytes.
    let into = unsafe { slice::from_raw_parts_mut(into, bytes) };
    let done = disk.model.fetch(Lbn(lbn), into);
    disk.finish(done)
}

/// Returns the time of the disk's next event, in picoseconds, or `TRAXTENT_NEVER` if no event is
/// due. No other result is after `TRAXTENT_TIME_MAX`. Call `traxtent_poll` at that time. It may
/// return no completion, because drives also have internal events.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_next_wakeup(disk: &Disk) -> u64 {
    disk.model.next_wakeup().map_or(TRAXTENT_NEVER, |at| at.0)
}

/// Returns the number of submitted requests that `traxtent_poll` has not returned yet.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_outstanding(disk: &Disk) -> u64 {
    disk.tags.len() as u64
}

impl Disk {
    /// Converts a completion of the model, and keeps the message if the request failed.
    fn completion(&mut self, done: Done) -> Completion {
        let (lbn, sectors) = done.command.sectors();
        let Some(tag) = self.tags.remove(&done.tag) else {
            unreachable!("other commands are complete when their call returns");
        };
        let [
            queue,
            overhead,
            seek,
            settle,
            head_switch,
            rotation,
            transfer,
            bus,
        ] = done.breakdown.parts().map(|part| part.0);
        Completion {
            tag,
            submitted: done.submitted.0,
            completed: done.completed.0,
            breakdown: Breakdown {
                queue,
                overhead,
                seek,
                settle,
                head_switch,
                rotation,
                transfer,
                bus,
            },
            lbn: lbn.0,
            sectors,
            op: op(&done.command) as u32,
            status: self.finish(done.outcome),
        }
    }
}

/// Returns the command of a request, or the reason why there is none.
fn command(request: &Request) -> Result<Command, String> {
    let &Request {
        lbn, sectors, op, ..
    } = request;
    let lbn = Lbn(lbn);
    let fua = match request.flags {
        0 => false,
        TRAXTENT_FUA => true,
        flags => return Err(format!("flags {flags:#x}: only TRAXTENT_FUA is defined")),
    };
    let command = match op {
        op if op == TRAXTENT_READ as u32 => Command::Read { lbn, sectors },
        op if op == TRAXTENT_WRITE as u32 => Command::Write { lbn, sectors, fua },
        op if op == TRAXTENT_FLUSH as u32 => Command::Flush,
        op if op == TRAXTENT_TRIM as u32 => Command::Trim { lbn, sectors },
        op if op == TRAXTENT_WRITE_ZEROES as u32 => Command::WriteZeroes { lbn, sectors, fua },
        op => {
            return Err(format!(
                "operation {op} is unknown; set `op` to a traxtent_op"
            ));
        }
    };
    match command {
        Command::Write { .. } | Command::WriteZeroes { .. } => Ok(command),
        Command::Flush if (lbn, sectors) != (Lbn(0), 0) => Err(format!(
            "flush of {} at LBN {lbn}: a flush addresses no sectors",
            Count(sectors, "sector")
        )),
        _ if fua => Err(format!(
            "{}: TRAXTENT_FUA applies only to writes",
            command.name()
        )),
        _ => Ok(command),
    }
}

fn op(command: &Command) -> Op {
    match command {
        Command::Read { .. } => TRAXTENT_READ,
        Command::Write { .. } => TRAXTENT_WRITE,
        Command::Flush => TRAXTENT_FLUSH,
        Command::Trim { .. } => TRAXTENT_TRIM,
        Command::WriteZeroes { .. } => TRAXTENT_WRITE_ZEROES,
    }
}
