//! The states in which a crash can leave the members of a volume, including the loss of any one
//! member.
//!
//! A workload of concurrent writes, reads and flushes runs on a tiny volume and is interrupted. Of
//! the writes since each member's last flush, any subset may have become durable, the last one
//! torn. A random selection of these states is recovered, each with all members or without one.

use std::cell::RefCell;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use traxtent_layout::raid::{Array, Level};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_volume::superblock::MemberState;
use traxtent_volume::{Repair, Volume, VolumeError, WriteHole};

use super::memory::{Drive, Memory, SECTOR, Tasks, interleave, later, wait};
use super::setup::{Setup, assembled, open, setup, usable_pairs};

/// The largest number of pending writes for which states are selected from all subsets, without
/// repetition.
const ALL_SUBSETS: usize = 8;
/// The number of workloads, unless the test runs as a soak.
const SEEDS: u64 = 400;
/// The maximum number of states examined for each workload.
const STATES: u64 = 120;
/// The number of random subsets to select from if more than [`ALL_SUBSETS`] writes are pending.
const SAMPLES: u64 = 256;

/// The content that the volume may have.
#[derive(Clone)]
struct Model {
    sectors: Vec<History>,
    /// The value that the next write writes.
    next: u64,
}

/// The values written to a sector, and which of them are still possible.
#[derive(Clone)]
struct History {
    /// The values that may be found after a crash, oldest first. 0 stands for anything, because the
    /// sector was never written.
    values: Vec<u64>,
    /// All values ever written. A read that began before a flush may return a value that the flush
    /// has made impossible after a crash.
    ever: Vec<u64>,
    /// The number of values up to and including the last acknowledged one.
    acknowledged: usize,
    /// True while a write is outstanding.
    busy: bool,
}

impl Model {
    fn new(sectors: u64) -> Model {
        let none = History {
            values: vec![0],
            ever: vec![0],
            acknowledged: 1,
            busy: false,
        };
        Model {
            sectors: vec![none; sectors as usize],
            next: 1,
        }
    }
}

/// Returns the content that stands for `value` in `sector`.
fn stamp(sector: u64, value: u64) -> [u8; SECTOR] {
    let mut bytes = [0; SECTOR];
    for (index, word) in bytes.chunks_exact_mut(8).enumerate() {
        let mixed = (value << 20 | sector)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(index as u32);
        word.copy_from_slice(&mixed.to_le_bytes());
    }
    bytes
}

fn allowed(values: &[u64], sector: u64, bytes: &[u8]) -> bool {
    values
        .iter()
        .any(|value| *value == 0 || stamp(sector, *value) == bytes)
}

type Shared = Rc<RefCell<Model>>;

/// Runs one client: a few requests, one after another.
async fn client(volume: &Volume<&Memory>, model: Shared, seed: u64, requests: u64) {
    let mut rng = Rng::new(seed);
    let capacity = volume.capacity().0;
    for _ in 0..requests {
        let first = rng.below(capacity);
        let most = if rng.chance(0.3) { capacity } else { 6 };
        let count = (1 + rng.below(most)).min(capacity - first);
        let sectors = first as usize..(first + count) as usize;
        match rng.below(10) {
            0 | 1 => {
                // Writes acknowledged when the flush begins are durable when it ends.
                let acknowledged: Vec<u64> = model
                    .borrow()
                    .sectors
                    .iter()
                    .map(|one| one.values[one.acknowledged - 1])
                    .collect();
                if volume.flush().await.is_err() {
                    break;
                }
                for (one, acknowledged) in model.borrow_mut().sectors.iter_mut().zip(acknowledged) {
                    if let Some(index) = one.values.iter().position(|value| *value == acknowledged)
                    {
                        one.values.drain(..index);
                        one.acknowledged -= index;
                    }
                }
            }
            2 => {
                let before: Vec<u64> = model.borrow().sectors[sectors.clone()]
                    .iter()
                    .map(|one| one.values[one.acknowledged - 1])
                    .collect();
                let mut bytes = vec![0; count as usize * SECTOR];
                match volume.read(Lbn(first), &mut bytes).await {
                    Ok(()) => {}
                    Err(VolumeError::Lost(..) | VolumeError::Broken { .. }) => continue,
                    Err(error) => panic!("{error}"),
                }
                let model = model.borrow();
                for ((sector, before), bytes) in sectors.zip(before).zip(bytes.chunks_exact(SECTOR))
                {
                    let values = &model.sectors[sector].ever;
                    let from = values.iter().position(|value| *value == before);
                    let from = from.expect("it was written");
                    assert!(
                        allowed(&values[from..], sector as u64, bytes),
                        "read of sector {sector}: none of {:?}",
                        &values[from..]
                    );
                }
            }
            _ => {
                while model.borrow().sectors[sectors.clone()]
                    .iter()
                    .any(|one| one.busy)
                {
                    later().await;
                }
                let mut data = Vec::new();
                {
                    let mut model = model.borrow_mut();
                    let value = model.next;
                    model.next += 1;
                    for sector in sectors.clone() {
                        let one = &mut model.sectors[sector];
                        one.busy = true;
                        one.values.push(value);
                        one.ever.push(value);
                        data.extend(stamp(sector as u64, value));
                    }
                }
                let done = volume.write(Lbn(first), &data).await;
                for one in &mut model.borrow_mut().sectors[sectors] {
                    one.busy = false;
                    if done.is_ok() {
                        one.acknowledged = one.values.len();
                    }
                }
                match done {
                    Ok(()) => {}
                    Err(VolumeError::Unreadable(sector)) => panic!("sector {sector} is not fixed"),
                    Err(_) => break,
                }
            }
        }
    }
}

/// An event besides the workload.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    /// Nothing else happens.
    Calm,
    /// A member fails during the workload.
    Pulled,
    /// A member has failed before the workload.
    Degraded,
    /// A member has failed before the workload and is being rebuilt.
    Rebuilding,
    /// Up to three sectors of a member cannot be read.
    BadSectors,
}

/// The events to draw from. Each entry has the same probability.
const EVENTS: [Event; 8] = [
    Event::Calm,
    Event::Calm,
    Event::Calm,
    Event::Calm,
    Event::Pulled,
    Event::Degraded,
    Event::Rebuilding,
    Event::BadSectors,
];

/// The moment of a crash.
#[derive(Clone)]
struct Moment {
    drives: Vec<Drive>,
    model: Model,
    /// Members that the volume may already have recorded as failed.
    failed: Vec<usize>,
    event: Event,
}

/// Runs a workload, records moments after the numbers of writes and flushes in `at`, and ends after
/// the last. If `at` is empty, the workload runs to its end. Returns the number of writes and
/// flushes carried out, the volume at its start, and whether it was synced.
fn run(
    seed: u64,
    level: Level,
    hole: WriteHole,
    at: &[u64],
    moments: &mut Vec<Moment>,
) -> (u64, Setup, bool) {
    let mut rng = Rng::new(seed);
    let mut setup = setup(level, &mut rng);
    let mut event = EVENTS[rng.below(EVENTS.len() as u64) as usize];
    if level == Level::Raid0 || hole == WriteHole::Open {
        event = Event::Calm;
    }
    let count = setup.drives.len();
    let victim = rng.below(count as u64) as usize;
    let memory = Memory::new(setup.drives.clone(), None);
    let volume = open(&setup.array, &memory, hole).expect("it is new");
    let model = Rc::new(RefCell::new(Model::new(volume.capacity().0)));
    let synced = rng.chance(0.7);
    if synced {
        let first: Vec<u8> = (0..volume.capacity().0)
            .flat_map(|sector| stamp(sector, 1))
            .collect();
        wait(volume.write(Lbn(0), &first)).unwrap();
        for stripe in 0..setup.array.stripes() {
            wait(volume.sync(stripe)).unwrap();
        }
        wait(volume.sync_checkpoint(setup.array.stripes())).unwrap();
        let mut model = model.borrow_mut();
        model.next = 2;
        model
            .sectors
            .iter_mut()
            .for_each(|one| (one.values, one.ever) = (vec![1], vec![1]));
    }
    let mut failed = Vec::new();
    if matches!(event, Event::Degraded | Event::Rebuilding) {
        wait(volume.fail(victim)).unwrap();
        failed.push(victim);
    }
    if event == Event::Rebuilding {
        wait(volume.begin_rebuild(victim)).unwrap();
    }
    drop(volume);
    setup.drives = memory.drives.into_inner();
    if event == Event::BadSectors {
        let data = setup.superblock.members[victim].data.clone();
        for _ in 0..3 {
            let bad = data.start.0 + rng.below(data.end.0 - data.start.0);
            setup.drives[victim].bad.push(bad as usize);
        }
    }
    let memory = Memory::new(setup.drives.clone(), Some(rng.split()));
    let volume =
        open(&setup.array, &memory, hole).expect("a volume without outstanding writes opens");
    memory.count.set(0);
    let pulled_at = if event == Event::Pulled {
        rng.below(40)
    } else {
        u64::MAX
    };
    let clients = 1 + rng.below(3);
    let mut tasks: Tasks<'_> = Vec::new();
    for _ in 0..clients {
        let requests = 2 + rng.below(6);
        tasks.push(Box::pin(client(
            &volume,
            Rc::clone(&model),
            rng.bits(),
            requests,
        )));
    }
    if event == Event::Rebuilding {
        // One or two tasks rebuild the member, concurrently.
        for _ in 0..1 + rng.below(2) {
            let (every, stripes) = (1 + rng.below(3), 1 + rng.below(4));
            let volume = &volume;
            tasks.push(Box::pin(async move {
                let mut step = 0;
                while volume.rebuild_step(stripes).await.unwrap() {
                    step += 1;
                    if step % every == 0 {
                        volume.rebuild_checkpoint().await.unwrap();
                    }
                }
            }));
        }
    }
    let (mut index, mut last) = (0, 0);
    interleave(tasks, &mut rng, || {
        let count = memory.count.get();
        if count >= pulled_at {
            memory.drives.borrow_mut()[victim].gone = true;
            failed = vec![victim];
        }
        if count == last {
            return false;
        }
        last = count;
        while index < at.len() && at[index] <= count {
            moments.push(Moment {
                drives: memory.drives.borrow().clone(),
                model: model.borrow().clone(),
                failed: failed.clone(),
                event,
            });
            index += 1;
        }
        index == at.len() && !at.is_empty()
    });
    (last, setup, synced)
}

/// The reason why a state is wrong.
type Wrong = String;

/// Recovers the state after a crash, checks all of it, and returns the number of sectors reported
/// as lost. `lost` is the member lost in the crash. With a seed in `again`, the recovery itself is
/// interrupted by a crash and repeated.
fn check(
    array: &Array,
    left: Vec<Drive>,
    moment: &Moment,
    lost: Option<usize>,
    synced: bool,
    hole: WriteHole,
    again: Option<u64>,
) -> Result<u64, Wrong> {
    let mut drives = left;
    if let Some(lost) = lost {
        drives[lost].gone = true;
    }
    if let Some(seed) = again {
        drives = crash_in_recovery(array, drives, seed, hole);
        if let Some(lost) = lost {
            drives[lost].gone = true;
        }
    }
    let memory = Memory::new(drives, None);
    let volume =
        open(array, &memory, hole).map_err(|error| format!("it does not open: {error}"))?;
    let has_bad = moment.drives.iter().any(|drive| !drive.bad.is_empty());
    let mut reported = 0;
    let mut bytes = [0; SECTOR];
    for (sector, history) in moment.model.sectors.iter().enumerate() {
        match wait(volume.read(Lbn(sector as u64), &mut bytes)) {
            Ok(()) if allowed(&history.values, sector as u64, &bytes) => {}
            Ok(()) => return Err(format!("sector {sector} is none of {:?}", history.values)),
            Err(VolumeError::Lost(..)) => {
                let location = array.locate(Lbn(sector as u64)).expect("it is there");
                let chunk = location.stripe.data(location.chunk);
                let member = chunk.member;
                let sectors = chunk.lbn.0 as usize..(chunk.lbn + chunk.sectors).0 as usize;
                let is_bad = moment.drives[member]
                    .bad
                    .iter()
                    .any(|bad| sectors.contains(bad));
                // If a member was pulled just before the crash, stripes in flight have not yet been
                // recovered without it.
                let is_pulled = moment.event == Event::Pulled && moment.failed.contains(&member);
                if !is_bad && lost != Some(member) && !is_pulled {
                    return Err(format!(
                        "sector {sector} of member {member} is reported lost without need"
                    ));
                }
                // All writes to the sector since the last flush count as in flight, because none of
                // them need be durable.
                if history.values.len() == 1 {
                    return Err(format!(
                        "sector {sector} is reported lost, but no write to it was outstanding"
                    ));
                }
                reported += 1;
            }
            // A bad sector is a second fault, in addition to the lost member.
            Err(VolumeError::Unreadable(_)) if has_bad && lost.is_some() => {}
            Err(error) => return Err(format!("sector {sector}: {error}")),
        }
    }
    let superblock = wait(volume.superblock());
    let whole = superblock
        .members
        .iter()
        .all(|member| member.state == MemberState::Active);
    if whole && synced {
        for stripe in 0..array.stripes() {
            let scrubbed = wait(volume.scrub(stripe, Repair::NONE));
            let scrubbed = scrubbed.map_err(|error| error.to_string())?;
            // A stripe with a lost part has no valid parity.
            let stripe_lbns = array.stripe(stripe).expect("it is there").logical();
            let has_lost = superblock
                .lost
                .iter()
                .any(|lost| lost.start < stripe_lbns.end.0 && stripe_lbns.start.0 < lost.end);
            if scrubbed.wrong() > 0 && !has_lost {
                return Err(format!("stripe {stripe}: {scrubbed:?}"));
            }
        }
    }
    Ok(reported)
}

/// Begins a recovery and crashes during it.
fn crash_in_recovery(array: &Array, drives: Vec<Drive>, seed: u64, hole: WriteHole) -> Vec<Drive> {
    let mut rng = Rng::new(seed);
    let memory = Memory::new(drives, Some(rng.split()));
    let stop = 1 + rng.below(24);
    let task = async {
        let found = open_later(array, &memory, hole).await;
        drop(found);
    };
    interleave(vec![Box::pin(task)], &mut rng, || {
        memory.count.get() >= stop
    });
    let drives = memory.drives.into_inner();
    drives
        .iter()
        .map(|drive| {
            let kept = rng.bits();
            drive.left(|index| kept >> (index % 64) & 1 == 1, || rng.chance(0.3))
        })
        .collect()
}

/// Like [`open`], but for members that complete their operations later.
async fn open_later<'a>(
    array: &Array,
    memory: &'a Memory,
    hole: WriteHole,
) -> Option<Volume<&'a Memory>> {
    let superblock = assembled(array, usable_pairs(&memory).await);
    Volume::open(array.clone(), memory, superblock, hole)
        .await
        .ok()
}

/// The numbers of states examined, of those with a lost member, and of sectors reported as lost.
#[derive(Default, Debug)]
struct Tally {
    states: u64,
    with_loss: u64,
    reported: u64,
}

/// Prints the workload's seed and level on a panic.
struct PrintOnPanic(u64, Level);

impl Drop for PrintOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, {}", self.0, self.1.name());
        }
    }
}

/// Examines up to `states` states after crashes of a workload.
fn crash(
    seed: u64,
    level: Level,
    states: u64,
    hole: WriteHole,
    tally: &mut Tally,
) -> Result<(), Wrong> {
    let _print = PrintOnPanic(seed, level);
    let (total, _, _) = run(seed, level, hole, &[], &mut Vec::new());
    if total == 0 {
        return Ok(());
    }
    let mut rng = Rng::new(seed ^ 0x5eed);
    let mut at: Vec<u64> = (0..9 + states.div_ceil(100))
        .map(|_| 1 + rng.below(total))
        .collect();
    at.sort_unstable();
    let mut moments = Vec::new();
    let (_, setup, synced) = run(seed, level, hole, &at, &mut moments);
    let mut left_over = states;
    let count = moments.len();
    for (index, moment) in moments.iter().enumerate() {
        let quota = left_over.div_ceil((count - index) as u64);
        let pending: usize = moment.drives.iter().map(|drive| drive.pending.len()).sum();
        let subsets = if pending <= ALL_SUBSETS {
            1 << pending
        } else {
            SAMPLES
        };
        let redundant = level != Level::Raid0 && moment.failed.is_empty();
        let losses = if redundant {
            1 + moment.drives.len() as u64
        } else {
            1
        };
        let mut all: Vec<u64> = (0..subsets * losses).collect();
        for index in (1..all.len()).rev() {
            all.swap(index, rng.below(index as u64 + 1) as usize);
        }
        for state in all.into_iter().take(quota as usize) {
            let (subset, lost) = (state / losses, (state % losses).checked_sub(1));
            let sample = if pending <= ALL_SUBSETS {
                subset
            } else {
                rng.bits()
            };
            let tear = rng.chance(0.5);
            let again = rng.chance(0.1).then(|| rng.bits());
            let mut before = 0;
            let mut left: Vec<Drive> = Vec::new();
            for drive in &moment.drives {
                let base = before;
                before += drive.pending.len();
                left.push(drive.left(
                    |index| sample.rotate_right((base + index) as u32) & 1 == 1,
                    || tear && rng.chance(0.5),
                ));
            }
            let lost = lost.map(|lost| lost as usize);
            left_over -= 1;
            tally.states += 1;
            tally.with_loss += u64::from(lost.is_some());
            tally.reported += check(&setup.array, left, moment, lost, synced, hole, again)
                .map_err(|wrong| {
                    format!(
                        "seed {seed}, {}, {:?}, subset {sample:#x}, {lost:?} lost: {wrong}",
                        level.name(),
                        moment.event
                    )
                })?;
        }
    }
    Ok(())
}

/// Does every flushed write survive any crash with the loss of any member, are sectors with writes
/// in flight either old, new or reported as lost, and do parity and replicas agree afterwards?
#[test]
fn nothing_flushed_is_lost() {
    // Some tiny workloads have fewer states, so there are more workloads than the number of states
    // requires.
    let seeds = testkit::repeats(SEEDS);
    let progress = testkit::SoakProgress::new("states", seeds * STATES);
    let (next, all) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds {
                return;
            }
            let level = [
                Level::Raid5,
                Level::Raid5,
                Level::Raid4,
                Level::Raid1,
                Level::Raid0,
            ][seed as usize % 5];
            let mut tally = Tally::default();
            let done = crash(seed, level, STATES, WriteHole::Closed, &mut tally);
            done.unwrap_or_else(|wrong| panic!("{wrong}"));
            let mut all = all
                .lock()
                .expect("no thread panics while it holds the lock");
            all.states += tally.states;
            all.with_loss += tally.with_loss;
            all.reported += tally.reported;
            progress.at(all.states);
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..cores).for_each(|_| drop(scope.spawn(work))));
    let tally = all
        .into_inner()
        .expect("no thread panics while it holds the lock");
    eprintln!("{tally:?}");
    assert!(tally.states >= testkit::repeats(40_000), "{tally:?}");
    assert!(
        tally.with_loss * 4 > tally.states && tally.reported > 0,
        "{tally:?}"
    );
}

/// Do these checks detect an open write hole in at least 20 of 100 workloads?
#[test]
fn without_a_journal_data_is_lost() {
    for level in [Level::Raid5, Level::Raid1] {
        let mut caught = 0;
        for seed in 0..100 {
            let wrong = crash(seed, level, 50, WriteHole::Open, &mut Tally::default());
            caught += u64::from(wrong.is_err());
        }
        assert!(caught >= 20, "{}: {caught} of 100 workloads", level.name());
    }
}
