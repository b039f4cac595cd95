//! Rebuilding, syncing and scrubbing a volume, stripe by stripe. The work can be limited in rate
//! and resumed, and its remaining time is estimated.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use traxtent_layout::raid::{Array, Level};
use traxtent_volume::superblock::{MemberEntry, MemberState, Superblock};
use traxtent_volume::{Difference, Fault, Repair, Scrubbed, VolumeError};

use super::error::VolumeIoError;
use super::{DeviceVolume, rebuild_for_a_second};
use crate::remaining_time::RemainingTime;
use futures_lite::future::block_on;

/// The interval at which progress is made durable.
const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);

/// The interval at which a waiting thread checks whether it should stop.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A maintenance operation on a whole volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MaintenanceKind {
    /// Restores the content of a replaced member.
    Rebuild,
    /// Makes the parity or the replicas of a new volume agree with its data.
    Sync,
    /// Reads and compares the whole volume. Differences are reported, and repaired if permitted.
    Scrub,
}

/// The changes that a scrub may make: the form of [`Repair`] in an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Repairs {
    /// Repair sectors that cannot be read, and replicas that a majority disagrees with.
    #[serde(default)]
    pub sectors: bool,
    /// The member whose replica is correct if there is no majority.
    #[serde(default)]
    pub from: Option<usize>,
    /// Repair parity that does not match.
    #[serde(default)]
    pub parity: bool,
}

/// A requested rebuild, sync or scrub.
#[derive(Clone, Copy, Debug)]
pub struct MaintenanceTask {
    /// The kind of work.
    pub work: MaintenanceKind,
    /// The changes that a scrub may make.
    pub repair: Repairs,
    /// The maximum rate, in bytes per second for each member, if it is limited.
    pub rate: Option<u64>,
}

impl MaintenanceTask {
    /// Creates a task without a rate limit that repairs nothing.
    pub fn new(work: MaintenanceKind) -> MaintenanceTask {
        MaintenanceTask {
            work,
            repair: Repairs::default(),
            rate: None,
        }
    }
}

impl From<Repairs> for Repair {
    fn from(repairs: Repairs) -> Repair {
        Repair {
            sectors: repairs.sectors,
            preferred: repairs.from,
            parity: repairs.parity,
        }
    }
}

/// Rows of a stripe in which a scrub found a fault.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DifferenceReport {
    /// The stripe.
    pub stripe: u64,
    /// The volume's first affected LBN.
    pub lbn: u64,
    /// The number of rows, each of one sector.
    pub rows: u64,
    /// `unreadable`, `lost`, `outvoted`, `tied` or `parity`.
    pub fault: String,
    /// The members at fault; for parity, the member that holds it.
    pub members: Vec<usize>,
    /// Whether the rows were repaired.
    pub repaired: bool,
}

impl DifferenceReport {
    fn of(difference: &Difference) -> DifferenceReport {
        DifferenceReport {
            stripe: difference.stripe,
            lbn: difference.first.0,
            rows: difference.rows.0,
            fault: difference.fault.name().to_owned(),
            members: difference.members.iter().collect(),
            repaired: difference.repaired,
        }
    }
}

/// The maximum number of differences that a scrub reports individually. All are counted.
pub(super) const DIFFERENCES_MAX: usize = 100;

impl MaintenanceKind {
    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            MaintenanceKind::Rebuild => "rebuild",
            MaintenanceKind::Sync => "sync",
            MaintenanceKind::Scrub => "scrub",
        }
    }
}

/// The progress of a maintenance operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MaintenanceProgress {
    /// The operation.
    pub work: MaintenanceKind,
    /// Whether it is still running.
    pub under_way: bool,
    /// Whether it has completed.
    pub done: bool,
    /// The stripe at which this run began.
    pub first: u64,
    /// The next stripe.
    pub next: u64,
    /// The number of stripes in the volume.
    pub stripes: u64,
    /// The share of the volume's sectors that precede the next stripe.
    pub share: f64,
    /// The maximum rate, in bytes per second for each member, if it is limited.
    pub rate: Option<u64>,
    /// The recent rate, in bytes per second for each member, once it has been measured for two
    /// seconds.
    pub bytes_per_second: Option<f64>,
    /// The duration of this run in seconds.
    pub seconds: f64,
    /// The estimated remaining time in seconds, once enough of the work has been measured.
    pub seconds_left: Option<f64>,
    /// Rows in which parity or replicas differ.
    #[serde(default)]
    pub wrong_rows: u64,
    /// Rows with an unreadable sector that the other members can restore.
    #[serde(default)]
    pub unreadable_rows: u64,
    /// Rows with unreadable sectors that the other members cannot restore. A sync counts one for
    /// each stripe with such rows.
    #[serde(default)]
    pub lost_rows: u64,
    /// The rows among these three kinds that were repaired.
    #[serde(default)]
    pub repaired_rows: u64,
    /// The number of sectors that a sync rewrote because parity or replicas did not agree.
    #[serde(default)]
    pub synced_sectors: u64,
    /// The differences found, up to 100.
    #[serde(default)]
    pub differences: Vec<DifferenceReport>,
    /// The error that ended the work early, if any.
    pub error: Option<String>,
}

impl MaintenanceProgress {
    /// Returns the progress before the first step.
    pub(super) fn begin(
        volume: &DeviceVolume,
        work: MaintenanceKind,
        rate: Option<u64>,
    ) -> MaintenanceProgress {
        let superblock = block_on(volume.superblock());
        let stripes = volume.array().stripes();
        let first = match work {
            MaintenanceKind::Rebuild if rebuilding(&superblock).is_some() => volume.rebuilt(),
            MaintenanceKind::Rebuild => stripes,
            MaintenanceKind::Sync => superblock.synced,
            MaintenanceKind::Scrub => superblock.scrubbed,
        };
        let mut progress = MaintenanceProgress {
            work,
            under_way: true,
            done: false,
            first,
            next: first,
            stripes,
            share: 0.0,
            rate,
            bytes_per_second: None,
            seconds: 0.0,
            seconds_left: None,
            wrong_rows: 0,
            unreadable_rows: 0,
            lost_rows: 0,
            repaired_rows: 0,
            synced_sectors: 0,
            differences: Vec::new(),
            error: None,
        };
        progress.share = before(volume, first) as f64 / volume.capacity().0.max(1) as f64;
        progress
    }

    fn count(&mut self, scrubbed: &Scrubbed) {
        self.wrong_rows += scrubbed.wrong();
        self.unreadable_rows += scrubbed.rows(Fault::Unreadable);
        self.lost_rows += scrubbed.rows(Fault::Lost);
        let repaired = scrubbed.differences.iter().filter(|one| one.repaired);
        self.repaired_rows += repaired.map(|one| one.rows.0).sum::<u64>();
        let room = DIFFERENCES_MAX - self.differences.len();
        let reports = scrubbed.differences.iter().take(room);
        self.differences.extend(reports.map(DifferenceReport::of));
    }

    /// Returns the stripe at which the next scrub begins: the first one with a difference, even if
    /// it was repaired. Otherwise the next scrub would not repair it, or would report no
    /// differences.
    fn scrub_next(&self) -> u64 {
        match self.differences.first() {
            Some(difference) if self.next < self.stripes => difference.stripe,
            _ => self.next,
        }
    }

    /// Returns the number of rows with a fault that was not repaired.
    fn unrepaired_rows(&self) -> u64 {
        self.faulty_rows() - self.repaired_rows
    }

    /// Returns the number of rows with a fault.
    pub fn faulty_rows(&self) -> u64 {
        self.wrong_rows + self.unreadable_rows + self.lost_rows
    }

    /// Returns whether the work completed without finding a fault.
    pub fn is_clean(&self) -> bool {
        self.done && self.faulty_rows() == 0
    }
}

/// The minimum rate of a maintenance operation, in bytes per second for each member. A lower value
/// probably lacks its unit.
pub const RATE_MIN: u64 = 1 << 16;

/// Rebuilds, syncs or scrubs until the end of the volume, until `stop` is set, or until an error
/// occurs. `report` is called after each step. The work resumes where the last run ended, and
/// requests are served meanwhile.
///
/// # Errors
/// Returns an error if the rate is too low, or if the volume does not permit the task in its
/// current state. After the start, returns an error if a member that the task needs fails, or if
/// the other members do not have the data to rebuild. Progress is then made durable too.
pub fn maintain(
    volume: &DeviceVolume,
    task: MaintenanceTask,
    stop: &AtomicBool,
    mut report: impl FnMut(&MaintenanceProgress),
) -> Result<MaintenanceProgress, VolumeIoError> {
    check(volume, task)?;
    let MaintenanceTask { work, rate, .. } = task;
    let mut progress = MaintenanceProgress::begin(volume, work, rate);
    let mut meter = ProgressMeter::new(volume, progress.next);
    let target = rebuilding(&block_on(volume.superblock()));
    let mut ended = Ok(());
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        match step(volume, task, target, &mut progress) {
            Ok(true) => {}
            Ok(false) => {
                meter.count(volume, &mut progress);
                break;
            }
            Err(error) => {
                ended = Err(error);
                break;
            }
        }
        meter.count(volume, &mut progress);
        report(&progress);
        if meter.is_due() {
            checkpoint(volume, &progress)?;
        }
        let least = rate.map(|rate| meter.last as f64 / rate.max(1) as f64);
        wait_for_rate(begun, least.unwrap_or(0.0), stop);
    }
    // An error of the work takes precedence over an error of the checkpoint.
    let recorded = checkpoint(volume, &progress);
    ended?;
    recorded?;
    let superblock = block_on(volume.superblock());
    let failed = |member: &usize| superblock.members[*member].state == MemberState::Failed;
    match work {
        MaintenanceKind::Rebuild => {
            if let Some(member) = target.filter(failed) {
                let problem = "failed during the rebuild";
                return Err(VolumeError::Member { member, problem }.into());
            }
            progress.done = rebuilding(&superblock).is_none();
        }
        MaintenanceKind::Sync | MaintenanceKind::Scrub => {
            progress.done = progress.next == progress.stripes;
        }
    }
    progress.under_way = false;
    report(&progress);
    Ok(progress)
}

/// Checks that the rate is not below the minimum.
fn check_rate(rate: Option<u64>) -> Result<(), VolumeIoError> {
    match rate {
        Some(rate) if rate < RATE_MIN => Err(VolumeIoError::Order(format!(
            "a rate of {rate} bytes per second: expected at least {RATE_MIN} (64K)"
        ))),
        _ => Ok(()),
    }
}

/// Checks that the volume permits the task in its current state.
pub(super) fn check(volume: &DeviceVolume, task: MaintenanceTask) -> Result<(), VolumeIoError> {
    let writes = task.work != MaintenanceKind::Scrub || task.repair != Repairs::default();
    if writes && volume.is_read_only() {
        return Err(VolumeError::ReadOnly.into());
    }
    check_state(&block_on(volume.superblock()), volume.array(), task)
}

/// Checks that a volume in this state permits a task.
pub(super) fn check_state(
    superblock: &Superblock,
    array: &Array,
    task: MaintenanceTask,
) -> Result<(), VolumeIoError> {
    check_rate(task.rate)?;
    let (work, repairs) = (task.work, task.repair);
    let (level, stripes) = (array.shape().level, array.stripes());
    let has_parity = matches!(level, Level::Raid4 | Level::Raid5);
    let mut states = superblock.members.iter().map(|member| member.state);
    let gone = states.position(|state| state != MemberState::Active);
    let is_active = |member: &&MemberEntry| member.state == MemberState::Active;
    let active = superblock.members.iter().filter(is_active).count();
    let order = |text: String| Err(VolumeIoError::Order(text));
    if repairs != Repairs::default() {
        if let Some(member) = superblock.members.iter().position(|one| one.doubtful) {
            return Err(VolumeError::Doubtful { member }.into());
        }
        if repairs.parity && !has_parity {
            return order(format!("{} has no parity to repair", level.name()));
        }
        if let Some(member) = repairs.from {
            let members = superblock.members.len();
            if level != Level::Raid1 {
                return order(format!("--from {member}: {} has no replicas", level.name()));
            }
            if member >= members {
                return order(format!(
                    "--from {member}: expected a member from 0 to {}",
                    members - 1
                ));
            }
        }
    }
    match (work, gone) {
        (MaintenanceKind::Rebuild, Some(member)) if rebuilding(superblock).is_none() => order(
            format!("member {member} has failed and has not been replaced; `replace` it first"),
        ),
        (MaintenanceKind::Rebuild, _) => Ok(()),
        (MaintenanceKind::Sync | MaintenanceKind::Scrub, _) if level == Level::Raid0 => order(
            format!("raid-0 has no redundancy for a {} to compare", work.name()),
        ),
        (MaintenanceKind::Sync | MaintenanceKind::Scrub, Some(member))
            if has_parity || work == MaintenanceKind::Scrub && active < 2 =>
        {
            let (is, next) = match superblock.members[member].state {
                MemberState::Rebuilding(_) => ("is not rebuilt yet", "`rebuild`"),
                MemberState::Active | MemberState::Failed => {
                    ("has failed", "`replace` and `rebuild`")
                }
            };
            let why = match has_parity {
                true => "parity cannot be compared without it",
                false => "there is no second replica to compare",
            };
            order(format!("member {member} {is}; {why}; {next} it first"))
        }
        (MaintenanceKind::Scrub, _) if superblock.synced < stripes => order(format!(
            "the initial sync has completed {} of {stripes} stripes; the rest cannot be compared; run `volume sync` first, or wait for its end if it is running",
            superblock.synced
        )),
        (MaintenanceKind::Sync | MaintenanceKind::Scrub, _) => Ok(()),
    }
}

fn rebuilding(superblock: &Superblock) -> Option<usize> {
    let mut states = superblock.members.iter().map(|member| member.state);
    states.position(|state| matches!(state, MemberState::Rebuilding(_)))
}

/// Processes one stripe, or the stripes of a second in a rebuild without a rate limit. Returns
/// false if no stripes are left.
fn step(
    volume: &DeviceVolume,
    task: MaintenanceTask,
    target: Option<usize>,
    progress: &mut MaintenanceProgress,
) -> Result<bool, VolumeIoError> {
    if progress.work == MaintenanceKind::Rebuild {
        let more = if task.rate.is_none() {
            rebuild_for_a_second(volume)?
        } else {
            block_on(volume.rebuild_step(1))?
        };
        let states = block_on(volume.superblock()).members;
        progress.next = match target {
            _ if more => volume.rebuilt(),
            Some(member) if states[member].state == MemberState::Active => progress.stripes,
            _ => progress.next,
        };
        return Ok(more);
    }
    if progress.next == progress.stripes {
        return Ok(false);
    }
    match progress.work {
        MaintenanceKind::Sync => match block_on(volume.sync(progress.next)) {
            Ok(written) => progress.synced_sectors += written.0,
            // Reads of these sectors fail, but the remaining stripes can still be synced.
            Err(VolumeError::Unreadable(_)) => progress.lost_rows += 1,
            Err(error) => return Err(error.into()),
        },
        MaintenanceKind::Rebuild | MaintenanceKind::Scrub => {
            let scrubbed = block_on(volume.scrub(progress.next, task.repair.into()))?;
            progress.count(&scrubbed);
        }
    }
    // A member may have failed in this stripe.
    check(volume, task)?;
    progress.next += 1;
    Ok(true)
}

/// Makes the progress durable.
fn checkpoint(volume: &DeviceVolume, progress: &MaintenanceProgress) -> Result<(), VolumeError> {
    match progress.work {
        MaintenanceKind::Rebuild => block_on(volume.rebuild_checkpoint()),
        MaintenanceKind::Sync => block_on(volume.sync_checkpoint(progress.next)),
        MaintenanceKind::Scrub => {
            let found = progress.unrepaired_rows() > 0;
            block_on(volume.scrub_checkpoint(progress.scrub_next(), found))
        }
    }
}

/// Waits until `seconds` have passed since `begun`, or until `stop` is set.
fn wait_for_rate(begun: Instant, seconds: f64, stop: &AtomicBool) {
    let until = Duration::from_secs_f64(seconds.min(1e6));
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(POLL_INTERVAL));
    }
}

/// Returns the number of the volume's sectors before a stripe.
fn before(volume: &DeviceVolume, stripe: u64) -> u64 {
    let stripe = volume.array().stripe(stripe);
    stripe.map_or(volume.capacity().0, |stripe| stripe.logical().start.0)
}

/// The measurement of progress over time.
struct ProgressMeter {
    begun: Instant,
    /// The first stripe that has not been counted.
    next: u64,
    /// The number of bytes per member in the latest count.
    last: u64,
    /// The total number of bytes per member.
    bytes: u64,
    /// The estimator of the rate in bytes per member.
    speed: RemainingTime,
    /// The estimator of the remaining time, by the volume's sectors.
    remaining: RemainingTime,
    /// The time of the last checkpoint.
    checkpoint: Instant,
    /// Whether the latest count found that the next checkpoint is due.
    due: bool,
}

impl ProgressMeter {
    fn new(volume: &DeviceVolume, stripe: u64) -> ProgressMeter {
        let now = Instant::now();
        ProgressMeter {
            begun: now,
            next: stripe,
            last: 0,
            bytes: 0,
            speed: RemainingTime::new(0, u64::MAX),
            remaining: RemainingTime::new(before(volume, stripe), volume.capacity().0),
            checkpoint: now,
            due: false,
        }
    }

    /// Counts the stripes before `progress.next`, and updates the rate and the remaining time.
    fn count(&mut self, volume: &DeviceVolume, progress: &mut MaintenanceProgress) {
        let rows = |number| {
            let stripe = volume.array().stripe(number).ok()?;
            stripe.chunks().map(|chunk| chunk.sectors.0).max()
        };
        let rows: u64 = (self.next..progress.next).filter_map(rows).sum();
        self.next = progress.next;
        self.last = rows * volume.sector_bytes() as u64;
        self.bytes += self.last;
        let elapsed = self.begun.elapsed();
        let (now, all) = (before(volume, progress.next), volume.capacity().0);
        self.speed.update(elapsed, self.bytes);
        self.remaining.update(elapsed, now);
        progress.share = now as f64 / all.max(1) as f64;
        progress.seconds = elapsed.as_secs_f64();
        progress.bytes_per_second = self.speed.rate(elapsed);
        progress.seconds_left = self.remaining.left(elapsed).map(|left| left.as_secs_f64());
        self.due = self.checkpoint.elapsed() >= CHECKPOINT_INTERVAL;
        if self.due {
            self.checkpoint = Instant::now();
        }
    }

    fn is_due(&self) -> bool {
        self.due
    }
}
