//! The server of a volume: requests from any thread, and orders from a control socket.

mod shutdown;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use traxtent_layout::raid::Level;
use traxtent_units::{Count, Lbn};
use traxtent_volume::VolumeError;
use traxtent_volume::superblock::MemberState;
use uuid::Uuid;

use super::error::VolumeIoError;
use super::maintenance::{
    self, MaintenanceKind, MaintenanceProgress, MaintenanceTask, Repairs, maintain,
};
use super::status::{DELETED, MemberStatus, VolumeStatus};
use super::{DeviceVolume, MEMBER_TIMEOUT, find_to_read, find_within, replace, substitute};
use crate::control::{Control, OrderHandler};
use crate::service::{BlockService, BlockSizes, REQUEST_MAX, ServiceError};
use futures_lite::future::block_on;

pub use shutdown::LINGERING_MESSAGE;
use shutdown::close_sockets;

/// The `tracing` target of messages about orders. A server logs each order except `status`.
pub const ORDER_LOG: &str = "traxtent_server::orders";

/// The maximum size of one write of zeros in bytes.
const ZERO_BYTES_MAX: usize = 1 << 20;

/// The first part of the time limit for failing a member, in which the member can still respond.
/// The sum of this and [`FAIL_TIMEOUT_GIVEN_UP`] is less than a second.
const FAIL_TIMEOUT: Duration = Duration::from_millis(300);

/// The second part of the time limit, after the member has been given up.
const FAIL_TIMEOUT_GIVEN_UP: Duration = Duration::from_millis(500);

/// The rate of an automatic initial sync, in bytes per second for each member. It leaves time for
/// requests.
pub const SYNC_RATE: u64 = 32 << 20;

/// An order to a served volume, as a line of JSON: `{"order":"fail","member":1}`. The reply to each
/// order is the resulting [`VolumeStatus`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "kebab-case", deny_unknown_fields)]
pub enum VolumeOrder {
    /// Only returns the status.
    Status,
    /// Declares a member failed.
    Fail {
        /// The member.
        member: usize,
    },
    /// Replaces a failed member with a device.
    Replace {
        /// The member.
        member: usize,
        /// The device.
        with: PathBuf,
        /// The identity of the new member.
        id: Uuid,
        /// Whether existing content of the device may be overwritten.
        force: bool,
    },
    /// Begins a rebuild, a sync or a scrub, which continues after the reply.
    Begin {
        /// The kind of work.
        work: MaintenanceKind,
        /// The maximum rate in bytes per second for each member.
        rate: Option<u64>,
        /// The changes that a scrub may make.
        #[serde(default)]
        repair: Repairs,
    },
    /// Rewrites all superblocks. Members whose superblocks were missing, damaged or too old are
    /// then trusted again.
    RepairSuperblocks,
    /// Interrupts the current maintenance. The reply is sent after it has stopped.
    Pause,
}

/// A served volume.
#[derive(Debug)]
pub struct VolumeServer {
    kept: Arc<ServedVolume>,
    control: Mutex<Option<Control>>,
    /// The rate of the initial sync that begins with the server. With `None`, the sync waits for an
    /// order.
    sync_rate: Option<u64>,
}

/// The state that requests and orders share.
#[derive(Debug)]
struct ServedVolume {
    volume: DeviceVolume,
    stop: AtomicBool,
    worker: Mutex<Worker>,
    /// The members that are being declared failed.
    failing: Mutex<Vec<usize>>,
    /// The failures that have been reported. Each is reported only once.
    reported: Mutex<ReportedFailures>,
}

/// The failures that the log contains, or that were known before the start.
#[derive(Debug, Default)]
struct ReportedFailures {
    members: Vec<usize>,
    /// The errors of each member.
    errors: BTreeMap<usize, ReportedErrors>,
    is_broken: bool,
}

impl ReportedFailures {
    /// Adds the failures that a status shows, and returns a message for each new one.
    fn add(&mut self, status: &VolumeStatus) -> Vec<String> {
        let mut lines = Vec::new();
        for one in status.members.iter().filter(|one| one.state == "failed") {
            if !self.members.contains(&one.member) {
                self.members.push(one.member);
                lines.push(failure_of(one));
            }
        }
        for one in status.members.iter().filter(|one| one.errors > 0) {
            let errors = self.errors.entry(one.member).or_default();
            let is_first = one.errors > errors.count && !errors.is_reported;
            errors.count = one.errors;
            errors.is_reported |= is_first;
            if let (Some(error), "active" | "rebuilding", true) =
                (&one.error, one.state.as_str(), is_first)
            {
                let more = "`volume status` counts further errors";
                lines.push(format!("{}: {error}; {more}", named(one)));
            }
        }
        if status.broken && !self.is_broken {
            self.is_broken = true;
            lines.push("the volume is read-only, and only undamaged data can be read".to_owned());
        }
        lines
    }

    /// Forgets the failure of a member, which can then be reported again.
    fn forget(&mut self, member: usize) {
        self.members.retain(|other| *other != member);
        self.errors.remove(&member);
    }

    /// Lets the next error of each member be reported again, after a repair.
    fn forget_errors(&mut self) {
        for errors in self.errors.values_mut() {
            errors.is_reported = false;
        }
    }
}

/// The errors of a member, of which one is in the log.
#[derive(Debug, Default)]
struct ReportedErrors {
    /// The number that was last seen.
    count: u64,
    /// Whether one has been reported since the start or the last repair.
    is_reported: bool,
}

#[derive(Debug, Default)]
struct Worker {
    /// Whether orders are refused because the server is stopping.
    closed: bool,
    thread: Option<JoinHandle<()>>,
    progress: Option<MaintenanceProgress>,
}

impl VolumeServer {
    /// Assembles the members and opens the volume. `control` is the path at which the control
    /// socket is created.
    ///
    /// # Errors
    /// Returns the errors of [`find`](fn@super::find) and [`Found::open`](super::Found::open), or
    /// an error if the socket cannot be created.
    pub fn open(paths: &[PathBuf], control: Option<&Path>) -> Result<VolumeServer, VolumeIoError> {
        VolumeServer::open_within(paths, control, MEMBER_TIMEOUT)
    }

    /// Assembles the members and opens the volume as [`VolumeServer::open`] does. A member that
    /// does not complete an operation within `timeout` fails.
    ///
    /// # Errors
    /// Returns the errors of [`VolumeServer::open`].
    pub fn open_within(
        paths: &[PathBuf],
        control: Option<&Path>,
        timeout: Duration,
    ) -> Result<VolumeServer, VolumeIoError> {
        let found = find_within(paths, false, timeout)?;
        let control = control.map(Control::open).transpose()?;
        let known = found.status();
        Ok(VolumeServer::of(found.open()?, &known, control))
    }

    /// Assembles the members as [`VolumeServer::open_within`] does, and opens the volume without
    /// writing to them. Members can be missing if the others hold all data.
    ///
    /// # Errors
    /// Returns the errors of [`find_to_read`], [`Found::check_doubts`](super::Found::check_doubts)
    /// and [`Found::open_to_read`](super::Found::open_to_read), or an error if the socket cannot be
    /// created.
    pub fn open_to_read(
        paths: &[PathBuf],
        control: Option<&Path>,
        timeout: Duration,
    ) -> Result<VolumeServer, VolumeIoError> {
        let found = find_to_read(paths, timeout)?;
        found.check_doubts()?;
        let control = control.map(Control::open).transpose()?;
        let known = found.status();
        let server = VolumeServer::of(found.open_to_read()?, &known, control);
        Ok(VolumeServer {
            sync_rate: None,
            ..server
        })
    }

    /// Makes a server of a volume that has been opened. The failures in `known` were known before;
    /// others are reported.
    fn of(volume: DeviceVolume, known: &VolumeStatus, control: Option<Control>) -> VolumeServer {
        let mut reported = ReportedFailures::default();
        reported.add(known);
        let server = VolumeServer {
            kept: Arc::new(ServedVolume {
                volume,
                stop: AtomicBool::new(false),
                worker: Mutex::default(),
                failing: Mutex::default(),
                reported: Mutex::new(reported),
            }),
            control: Mutex::new(control),
            sync_rate: Some(SYNC_RATE),
        };
        server.report_failures();
        server
    }

    /// Sets the rate of the initial sync that begins with the server. With `None`, the sync waits
    /// for an order.
    pub fn set_sync_rate(&mut self, rate: Option<u64>) {
        self.sync_rate = rate;
    }

    /// Returns the volume.
    pub fn volume(&self) -> &DeviceVolume {
        &self.kept.volume
    }

    /// Removes the control socket, so that no more clients can connect to it.
    pub(super) fn close_control(&self) {
        drop(self.control.lock().take());
    }

    fn report_failures(&self) {
        self.kept.report_failures();
    }

    fn write_slice(&self, bytes: &[u8], offset: u64, fua: bool) -> Result<(), ServiceError> {
        let at = self.at(offset)?;
        let done = block_on(async {
            self.volume().write(at, bytes).await?;
            if fua {
                self.volume().flush().await
            } else {
                Ok(())
            }
        });
        self.report_failures();
        Ok(done?)
    }

    /// Returns the LBN at a byte offset, or an error if the offset is not aligned to sectors.
    fn at(&self, offset: u64) -> Result<Lbn, VolumeError> {
        let sector_bytes = self.volume().sector_bytes();
        if offset.is_multiple_of(sector_bytes as u64) {
            Ok(Lbn(offset / sector_bytes as u64))
        } else {
            Err(VolumeError::Length {
                bytes: offset as usize,
                sector_bytes,
            })
        }
    }
}

impl BlockService for VolumeServer {
    fn start(&self) -> Result<(), ServiceError> {
        if let Some(control) = &*self.control.lock() {
            control.start(&self.kept).map_err(ServiceError::Thread)?;
        }
        let status = VolumeStatus::served(self.volume(), None);
        let is_complete = status.members.iter().all(|member| member.state == "active");
        if status.unsynced() > 0 && is_complete && self.sync_rate.is_some() {
            let task = MaintenanceTask {
                rate: self.sync_rate,
                ..MaintenanceTask::new(MaintenanceKind::Sync)
            };
            self.kept
                .begin(task)
                .map_err(|error| ServiceError::Maintenance(error.into()))?;
        }
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.volume().capacity().0 * self.volume().sector_bytes() as u64
    }

    fn block_sizes(&self) -> BlockSizes {
        let sector = self.volume().sector_bytes() as u32;
        BlockSizes {
            minimum: sector,
            preferred: sector.max(4096),
            maximum: REQUEST_MAX,
        }
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), ServiceError> {
        let done = block_on(self.volume().read(self.at(offset)?, buffer));
        self.report_failures();
        Ok(done?)
    }

    fn write(&self, bytes: Vec<u8>, offset: u64, fua: bool) -> Result<(), ServiceError> {
        self.write_slice(&bytes, offset, fua)
    }

    fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), ServiceError> {
        let zeros = vec![0; ZERO_BYTES_MAX.min(count as usize)];
        let mut done = 0;
        while done < count {
            let now = (count - done).min(zeros.len() as u64);
            self.write_slice(&zeros[..now as usize], offset + done, false)?;
            done += now;
        }
        if fua { self.flush() } else { Ok(()) }
    }

    fn flush(&self) -> Result<(), ServiceError> {
        let done = block_on(self.volume().flush());
        self.report_failures();
        Ok(done?)
    }

    fn stop(&self) -> Result<(), ServiceError> {
        self.close_control();
        self.kept.worker().closed = true;
        self.kept.pause();
        let done = block_on(self.volume().stop());
        for member in VolumeStatus::served(self.volume(), None).members {
            if let (Some(path), Some(DELETED)) = (&member.path, member.error.as_deref()) {
                tracing::warn!(
                    "member {} (`{}`): its file has been deleted, and its data is now lost; `status` shows the state of the volume without it",
                    member.member,
                    path.display()
                );
            }
        }
        let lingering = self.volume().members().devices_with_outstanding();
        for path in &lingering {
            tracing::warn!("{}: {LINGERING_MESSAGE}", path.display());
        }
        if !lingering.is_empty() {
            close_sockets();
        }
        Ok(done?)
    }

    fn trim(&self, _: u64, _: u64, _: bool) -> Result<(), ServiceError> {
        // Volumes do not support trim.
        Ok(())
    }

    fn can_trim(&self) -> bool {
        false
    }

    fn limit_shutdown(&self) {
        self.end_in_time();
    }
}

/// Returns a message on a complete rebuild, sync or scrub, or on a scrub that was interrupted after
/// it had found differences; `None` for other work, and if there was nothing to do.
fn end_line(progress: &MaintenanceProgress) -> Option<String> {
    match progress.work {
        MaintenanceKind::Rebuild if progress.done && progress.first < progress.stripes => {
            Some("rebuild: complete; all members are active".to_owned())
        }
        MaintenanceKind::Sync if progress.done && progress.first < progress.stripes => {
            Some("sync: complete; all stripes are synced".to_owned())
        }
        MaintenanceKind::Scrub if progress.is_clean() => Some(format!(
            "scrub: complete; {} read, no differences",
            Count(progress.stripes - progress.first, "stripe")
        )),
        MaintenanceKind::Scrub if progress.faulty_rows() > 0 => {
            let end = if progress.done {
                "complete"
            } else {
                "interrupted"
            };
            Some(format!(
                "scrub: {end}; {} of {} repaired",
                progress.repaired_rows,
                Count(progress.faulty_rows(), "row")
            ))
        }
        _ => None,
    }
}

/// Returns a message on a failed member: its number, its path and the system's error.
fn failure_of(member: &MemberStatus) -> String {
    let error = member.error.as_ref();
    let error = error.map_or(String::new(), |error| format!(": {error}"));
    format!("{} has failed{error}", named(member))
}

/// Returns a member's number, and its path if it is present.
fn named(member: &MemberStatus) -> String {
    match &member.path {
        Some(path) => format!("member {} (`{}`)", member.member, path.display()),
        None => format!("member {}", member.member),
    }
}

/// Describes an order for the log; `None` for a query.
fn description(order: &VolumeOrder) -> Option<String> {
    Some(match order {
        VolumeOrder::Status => return None,
        VolumeOrder::Fail { member } => format!("fail {member}"),
        VolumeOrder::Replace { member, with, .. } => {
            format!("replace {member} --with {}", with.display())
        }
        VolumeOrder::Begin { work, .. } => work.name().to_owned(),
        VolumeOrder::RepairSuperblocks => "repair-superblocks".to_owned(),
        VolumeOrder::Pause => "pause".to_owned(),
    })
}

impl OrderHandler for ServedVolume {
    fn carry_out(self: &Arc<ServedVolume>, line: &str) -> Result<String, Box<dyn Error>> {
        if !line.starts_with('{') {
            let problem = "this is the control socket of a volume; send faults to that of a drive";
            return Err(VolumeIoError::Order(problem.to_owned()).into());
        }
        let order = serde_json::from_str(line).map_err(|error| {
            VolumeIoError::Order(format!(
                "an order to a volume must be a line of JSON: {error}"
            ))
        })?;
        if self.worker().closed {
            return Err(ServiceError::Stopped.into());
        }
        let described = description(&order);
        let executed = self.execute(order);
        if let Some(order) = described {
            match &executed {
                Ok(None) => tracing::info!(target: ORDER_LOG, "order: {order}"),
                Ok(Some(unfinished)) => {
                    tracing::info!(target: ORDER_LOG, "order: {order}: {unfinished}");
                }
                Err(error) => tracing::info!(target: ORDER_LOG, "order refused: {order}: {error}"),
            }
        }
        let unfinished = executed?;
        let progress = self.worker().progress.clone();
        let mut status = VolumeStatus::served(&self.volume, progress);
        status.unfinished = unfinished;
        Ok(serde_json::to_string(&status).expect("it is plain data"))
    }
}

impl ServedVolume {
    /// Carries out an order. Returns a message if failing a member is still in progress.
    fn execute(
        self: &Arc<ServedVolume>,
        order: VolumeOrder,
    ) -> Result<Option<String>, VolumeIoError> {
        let volume = &self.volume;
        // `begin` checks itself whether the task would write.
        let is_harmless = matches!(
            order,
            VolumeOrder::Status | VolumeOrder::Pause | VolumeOrder::Begin { .. }
        );
        if !is_harmless && volume.is_read_only() {
            return Err(VolumeError::ReadOnly.into());
        }
        match order {
            VolumeOrder::Status => {}
            VolumeOrder::Fail { member } => return self.fail(member),
            VolumeOrder::Replace {
                member,
                with,
                id,
                force,
            } => {
                let superblock = block_on(volume.superblock());
                let devices = volume.members();
                // The program that sent the order has checked for other content.
                let device = substitute(&superblock, devices, member, &with, force, |_| None)?;
                replace(volume, device, id)?;
                self.reported.lock().forget(member);
            }
            VolumeOrder::Begin { work, rate, repair } => {
                self.begin(MaintenanceTask { work, repair, rate })?
            }
            VolumeOrder::RepairSuperblocks => block_on(volume.repair_superblocks())?,
            VolumeOrder::Pause => self.pause(),
        }
        Ok(None)
    }

    /// Declares a member failed. If the volume can do without the member, requests stop waiting for
    /// it. If outstanding requests delay the declaration, it continues after the reply.
    fn fail(self: &Arc<ServedVolume>, member: usize) -> Result<Option<String>, VolumeIoError> {
        let unfinished = || {
            Ok(Some(format!(
                "fail {member} is still in progress; it waits for outstanding requests"
            )))
        };
        {
            let mut failing = self.failing();
            if failing.contains(&member) {
                return unfinished();
            }
            failing.push(member);
        }
        let (sender, receiver) = mpsc::sync_channel(1);
        let kept = Arc::clone(self);
        let run = move || {
            // The order itself is logged, so its effect is not reported again.
            kept.reported.lock().members.push(member);
            let done = block_on(kept.volume.mark_failed(member));
            if done.is_err() {
                kept.reported.lock().forget(member);
            }
            kept.failing().retain(|other| *other != member);
            if let Err(mpsc::SendError(Err(error))) = sender.send(done) {
                tracing::warn!("fail {member}: {error}");
            }
        };
        let thread = thread::Builder::new().name("fail".to_owned());
        if let Err(error) = thread.spawn(run) {
            self.failing().retain(|other| *other != member);
            return Err(VolumeIoError::Thread(error));
        }
        if let Ok(done) = receiver.recv_timeout(FAIL_TIMEOUT) {
            return Ok(done.map(|()| None)?);
        }
        if self.can_spare(member) {
            self.volume.members().give_up(member, FAIL_TIMEOUT / 2);
        }
        match receiver.recv_timeout(FAIL_TIMEOUT_GIVEN_UP) {
            Ok(done) => Ok(done.map(|()| None)?),
            Err(_) => unfinished(),
        }
    }

    /// Returns whether the volume would still work if this member failed now.
    fn can_spare(&self, member: usize) -> bool {
        let superblock = self.volume.snapshot().superblock;
        let others = superblock.members.iter().enumerate();
        let others =
            others.filter(|(other, entry)| *other != member && entry.state == MemberState::Active);
        match superblock.level {
            Level::Raid0 => false,
            Level::Raid1 => others.count() >= 1,
            Level::Raid4 | Level::Raid5 => others.count() + 1 >= superblock.members.len(),
        }
    }

    /// Reports failed members, and the first error of each other member, if an operation has failed
    /// since the last call. Members that cannot be used any more are first declared failed durably.
    /// These are members that did not respond in time, and members whose files were shortened. If
    /// such a file grew again, the missing part would read as zeros.
    fn report_failures(&self) {
        let volume = &self.volume;
        if !volume.members().had_failures() {
            return;
        }
        for member in volume.members().unusable() {
            // An error means that the volume is broken without the member, which is reported next.
            let _ = block_on(volume.fail(member));
        }
        let mut reported = self.reported.lock();
        for line in reported.add(&VolumeStatus::served(volume, None)) {
            tracing::warn!("{line}");
        }
    }

    fn failing(&self) -> MutexGuard<'_, Vec<usize>> {
        self.failing.lock()
    }

    /// Begins a rebuild, a sync or a scrub.
    fn begin(self: &Arc<ServedVolume>, task: MaintenanceTask) -> Result<(), VolumeIoError> {
        maintenance::check(&self.volume, task)?;
        let current = self.worker().progress.clone();
        let is_sync = |one: MaintenanceProgress| one.under_way && one.work == MaintenanceKind::Sync;
        if task.work == MaintenanceKind::Rebuild && current.is_some_and(is_sync) {
            // Redundancy comes first. A rebuilt member is in sync with the one it is copied from.
            self.pause();
        }
        let begun = MaintenanceProgress::begin(&self.volume, task.work, task.rate);
        let mut worker = self.worker();
        if let Some(other) = worker.progress.as_ref().filter(|other| other.under_way) {
            return Err(VolumeIoError::Order(format!(
                "a {} is already running; wait for its end, which `volume status` shows",
                other.work.name()
            )));
        }
        self.stop.store(false, Ordering::Relaxed);
        let kept = Arc::clone(self);
        let run = move || {
            let report = |progress: &MaintenanceProgress| {
                kept.worker().progress = Some(progress.clone());
                kept.report_failures();
            };
            let ended = maintain(&kept.volume, task, &kept.stop, report);
            kept.report_failures();
            if let Ok(progress) = &ended
                && let Some(line) = end_line(progress)
            {
                if progress.repaired_rows > 0 || progress.work == MaintenanceKind::Rebuild {
                    kept.reported.lock().forget_errors();
                }
                tracing::info!(target: ORDER_LOG, "{line}");
            }
            if let Some(progress) = &mut kept.worker().progress {
                progress.under_way = false;
                progress.error = ended.err().map(|error| error.to_string());
            }
        };
        let thread = thread::Builder::new().name(task.work.name().to_owned());
        worker.thread = Some(thread.spawn(run).map_err(VolumeIoError::Thread)?);
        worker.progress = Some(begun);
        Ok(())
    }

    /// Stops the current maintenance, and waits until it has stopped.
    fn pause(&self) {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.worker().thread.take();
        if let Some(thread) = thread {
            thread.join().expect("it does not panic");
        }
    }

    fn worker(&self) -> MutexGuard<'_, Worker> {
        self.worker.lock()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MaintenanceProgress, ReportedFailures, end_line};
    use crate::volume::VolumeStatus;

    fn status(members: &[(&str, u64)]) -> VolumeStatus {
        let members: Vec<_> = members
            .iter()
            .enumerate()
            .map(|(member, (state, errors))| {
                let error = (*errors > 0).then_some("Input/output error");
                json!({"member": member, "id": "x", "path": format!("/nas/{member}"),
                    "state": state, "rebuilt_stripes": null, "error": error, "errors": errors})
            })
            .collect();
        let status = json!({
            "volume": "x", "level": "raid-5", "chunks": "sectors", "chunk_sectors": 128,
            "sector_bytes": 512, "bytes": 1 << 20, "journal_bytes": 0, "stripes": 1,
            "synced_stripes": 1, "served": true, "clean": false, "broken": false,
            "generation": 1, "scrub_next": 0, "unrepaired": false, "repaired_sectors": 0, "members": members, "lost": [], "work": null,
        });
        serde_json::from_value(status).unwrap()
    }

    /// Is the first error of a member reported, once, and again after a repair? Is a failed member
    /// reported only as failed?
    #[test]
    fn first_errors_are_reported() {
        let mut reported = ReportedFailures::default();
        let first =
            "member 1 (`/nas/1`): Input/output error; `volume status` counts further errors";
        let failed = "member 1 (`/nas/1`) has failed: Input/output error";
        let none: [&str; 0] = [];
        assert_eq!(reported.add(&status(&[("active", 0), ("active", 0)])), none);
        assert_eq!(
            reported.add(&status(&[("active", 0), ("active", 1)])),
            [first]
        );
        assert_eq!(reported.add(&status(&[("active", 0), ("active", 9)])), none);
        reported.forget_errors();
        assert_eq!(reported.add(&status(&[("active", 0), ("active", 9)])), none);
        assert_eq!(
            reported.add(&status(&[("active", 0), ("active", 10)])),
            [first]
        );
        assert_eq!(
            reported.add(&status(&[("active", 0), ("failed", 11)])),
            [failed]
        );
        reported.forget(1);
        assert_eq!(
            reported.add(&status(&[("active", 0), ("failed", 1)])),
            [failed]
        );
    }

    /// Does the log mention work that is complete and a scrub that found something, but no other
    /// work?
    #[test]
    fn ends_are_logged() {
        let line_of = |work: &str, first: u64, done: bool, repaired: u64, unreadable: u64| {
            let progress = json!({
                "work": work, "under_way": false, "done": done, "first": first, "next": 9,
                "stripes": 9, "share": 1.0, "rate": null, "bytes_per_second": null,
                "seconds": 1.0, "seconds_left": null, "error": null,
                "unreadable_rows": unreadable, "repaired_rows": repaired,
            });
            let progress: MaintenanceProgress = serde_json::from_value(progress).unwrap();
            end_line(&progress).unwrap_or_default()
        };
        let line = |work, first, done, repaired| line_of(work, first, done, repaired, 64);
        assert_eq!(
            line_of("scrub", 2, true, 0, 0),
            "scrub: complete; 7 stripes read, no differences"
        );
        assert_eq!(line_of("scrub", 2, false, 0, 0), "");
        assert_eq!(
            line("scrub", 0, true, 0),
            "scrub: complete; 0 of 64 rows repaired"
        );
        assert_eq!(
            line("scrub", 0, true, 64),
            "scrub: complete; 64 of 64 rows repaired"
        );
        assert_eq!(
            line("scrub", 0, false, 3),
            "scrub: interrupted; 3 of 64 rows repaired"
        );
        assert_eq!(
            line("rebuild", 0, true, 0),
            "rebuild: complete; all members are active"
        );
        assert_eq!(line("rebuild", 9, true, 0), "");
        assert_eq!(line("rebuild", 0, false, 0), "");
        assert_eq!(
            line("sync", 0, true, 0),
            "sync: complete; all stripes are synced"
        );
        assert_eq!(line("sync", 9, true, 0), "");
        assert_eq!(line("sync", 0, false, 0), "");
    }
}
