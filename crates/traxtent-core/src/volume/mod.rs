//! A volume on several members: its data, its redundancy, and what survives a crash.
//!
//! A [`Volume`] takes requests and turns them into operations on its [`Members`]. It does no I/O and has no
//! threads: its methods are futures that wait for [`Members::run`] and for each other, so the same code runs on a
//! server's threads, on drives in simulated time, and on members in memory whose every crash is tried.
//!
//! # What holds
//! - When a flush has been answered, all that was answered before it survives any crash, and in RAID-1 and RAID-5
//!   any crash together with the loss of any one member.
//! - What was in flight is found old or new, sector by sector. In RAID-5, if a member is lost in the very crash, those
//!   of its blocks that were in flight as part of whole stripes are reported as lost ([`VolumeError::Lost`]).
//! - Parity and copies agree again when a volume has been opened.
//! - A member that failed is known to have failed before anything that it missed is answered.
//!
//! # How
//! The write hole (a crash between the writes of a stripe leaves parity that fits neither the old nor the new
//! data) is closed by a journal, on the members themselves, each record on two of them:
//! - A write of part of a stripe first goes to the journal, with its data and the new parity. Once that is durable,
//!   so is the write; then it goes to its place. After a crash it is written there again.
//! - A write of a whole stripe only announces itself. After a crash the parity is computed again; without one member
//!   that cannot be done, and that member's blocks of the stripe are lost, which is remembered.
//!   Where a member is missing already, whole stripes take the first way.
//! - Writes to mirrors announce themselves; after a crash the first copy is copied to the others.
//!
//! Records are *settled* (what they tell of is in place and durable) all at once: writes pause, all members are
//! flushed, and a record that says so is made durable. A stripe has records of one kind between two
//! such moments, so that a repetition never undoes what a later write did. A flush of the volume
//! settles if whole stripes were written; otherwise the journal has all already, and it does nothing.
//!
//! The bytes on the members are told in docs/volume-format.md.
//!
//! # Left out
//! RAID-6; a journal on a device of its own; growing and reshaping.

mod assembly;
pub mod copies;
mod desk;
mod error;
mod members;
mod open;
mod orders;
mod read;
mod rebuild;
pub mod record;
mod recovery;
mod ring;
mod scrub;
mod stripe_rows;
pub mod superblock;
mod sync;
mod write;
mod xor;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as Now, MutexGuard as NowGuard};

use async_lock::{Mutex, RwLock};
use smallvec::SmallVec;

pub use assembly::{Assembly, AssemblyError, SuperblockPair, choose, survey};
pub use error::VolumeError;
pub use members::{Action, Failed, Members, NoSpace, Op};
pub use open::Format;
pub use scrub::{Difference, Fault, Repair, Scrubbed};

use crate::layout::raid::{Array, Level, Planner, Stripe};
use crate::units::{Lbn, Sectors};
use desk::Desks;
use record::{Record, head_sectors};
use ring::Ring;
use superblock::{MemberState, Superblock, superblock_sectors};

/// Stripes share so many locks.
const LOCKS: u64 = 64;

/// So many records in a row go to the same two members, so that one flush serves several.
const RECORDS_IN_A_ROW: u64 = 64;

/// Operations that are carried out together, beyond which lists of them need memory.
const AT_ONCE: usize = 32;

type Ops<'a> = SmallVec<[Op<'a>; AT_ONCE]>;

/// How the volume's plans are made. A read costs what a drive of today passes in the time of a seek and half a revolution,
/// about a track. Nothing is read that nobody needs: what lies between would have to be carried from the member and dropped.
const PLANNER: Planner = Planner {
    positioning: Sectors(1024),
    dummy_reads: false,
};

/// Whether the write hole is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteHole {
    /// By the journal.
    Closed,
    /// Not at all: for measurements, and to show that tests notice.
    Open,
}

/// A volume that is open. See the module.
#[derive(Debug)]
pub struct Volume<M: Members> {
    array: Array,
    members: M,
    sector_bytes: usize,
    hole: WriteHole,
    /// Held shared by whoever reads or writes.
    gate: RwLock<State>,
    stripes: Vec<Mutex<()>>,
    ring: Now<Ring>,
    flushers: Vec<Flusher>,
    /// Desks of requests that are done.
    idle: Now<Vec<Desks<M::Buffer>>>,
    /// Stripes below this are good on the member that is being rebuilt.
    rebuilt: AtomicU64,
    rebuild_next: Mutex<Rebuilds>,
    repaired: AtomicU64,
    /// A copy of the state for [`Volume::known`], renewed with every change.
    known: Now<Known>,
}

/// The state of a volume as it was last noted, for callers that must not wait for requests.
#[derive(Clone, Debug)]
pub struct Known {
    /// The superblock, that of member 0.
    pub superblock: Superblock,
    /// Whether more members have failed than the level bears.
    pub broken: bool,
}

/// Who rebuilds what.
#[derive(Debug)]
struct Rebuilds {
    /// Stripes below are taken.
    stripe: u64,
    /// Locked until the last of those that are taken counts as rebuilt, or is given up.
    last: Arc<Mutex<()>>,
}

/// What changes seldom.
#[derive(Clone, Debug)]
struct State {
    superblock: Superblock,
    /// More members have failed than the level bears.
    broken: bool,
    stopped: bool,
}

/// Lets one flush of a member serve all who wait for one.
#[derive(Debug, Default)]
struct Flusher {
    written: AtomicU64,
    flushed: Mutex<u64>,
}

/// Members whose operations failed.
type Failures = SmallVec<[usize; 4]>;

impl<M: Members> Volume<M> {
    fn new(array: Array, members: M, superblock: Superblock, hole: WriteHole) -> Volume<M> {
        let journal = superblock.journal.end.0 - superblock.journal.start.0;
        let progress = superblock
            .members
            .iter()
            .find_map(|member| match member.state {
                MemberState::Rebuilding(stripe) => Some(stripe),
                _ => None,
            });
        Volume {
            sector_bytes: superblock.sector_bytes as usize,
            hole,
            stripes: (0..LOCKS).map(|_| Mutex::new(())).collect(),
            ring: Now::new(Ring::new(journal)),
            flushers: superblock
                .members
                .iter()
                .map(|_| Flusher::default())
                .collect(),
            rebuilt: AtomicU64::new(progress.unwrap_or(0)),
            rebuild_next: Mutex::new(Rebuilds {
                stripe: progress.unwrap_or(0),
                last: Arc::default(),
            }),
            repaired: AtomicU64::new(0),
            known: Now::new(Known {
                superblock: superblock.clone(),
                broken: false,
            }),
            gate: RwLock::new(State {
                superblock,
                broken: false,
                stopped: false,
            }),
            array,
            idle: Now::default(),
            members,
        }
    }

    /// What the volume offers.
    pub fn capacity(&self) -> Sectors {
        self.array.capacity()
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Where its blocks lie.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// What it lies on.
    pub fn members(&self) -> &M {
        &self.members
    }

    /// The superblock as it stands, that of member 0.
    pub async fn superblock(&self) -> Superblock {
        self.gate.read().await.superblock.clone()
    }

    /// The superblock and whether the volume is broken, without waiting for anything: a member that does not answer holds up
    /// requests, and whoever asks for the state must be answered all the same.
    pub fn known(&self) -> Known {
        self.known.lock().expect("nobody panics with it").clone()
    }

    /// Renews what [`Volume::known`] returns.
    fn publish(&self, state: &State) {
        *self.known.lock().expect("nobody panics with it") = Known {
            superblock: state.superblock.clone(),
            broken: state.broken,
        };
    }

    /// Whether more members have failed than the level bears.
    pub async fn is_broken(&self) -> bool {
        self.gate.read().await.broken
    }

    /// Sectors that were written anew because a member could not read them.
    pub fn repaired(&self) -> Sectors {
        Sectors(self.repaired.load(Ordering::Relaxed))
    }

    /// Stripes below this are good on the member that is being rebuilt.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt.load(Ordering::Relaxed)
    }

    /// Makes durable what was written before.
    ///
    /// # Errors
    /// If so many members fail that it cannot be.
    pub async fn flush(&self) -> Result<(), VolumeError> {
        if !self.ring().dirty {
            return Ok(());
        }
        let mut state = self.gate.write().await;
        if !self.ring().dirty {
            return Ok(());
        }
        // Copies need not be exact: what is copied after a crash is right either way.
        let retire = self.level() != Level::Raid1;
        self.settle(&mut state, retire).await
    }

    /// Stops in order. Writes fail from then on.
    ///
    /// # Errors
    /// If so many members fail that it cannot be.
    pub async fn stop(&self) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        if state.stopped {
            return Ok(());
        }
        if state.broken {
            // As it stands it can be recovered.
            return Err(self.broken(&state));
        }
        self.settle(&mut state, true).await?;
        state.superblock.clean = true;
        self.persist(&mut state).await?;
        state.stopped = true;
        Ok(())
    }

    /// Declares a member failed.
    ///
    /// # Errors
    /// If the volume cannot do without it.
    pub async fn fail(&self, member: usize) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        if state.superblock.members[member].state == MemberState::Failed {
            return Ok(());
        }
        self.drop_member(&mut state, member)?;
        self.persist(&mut state).await?;
        self.settle(&mut state, true).await
    }

    async fn fail_all(&self, failures: Failures) -> Result<(), VolumeError> {
        for member in failures {
            self.fail(member).await?;
        }
        Ok(())
    }

    fn drop_member(&self, state: &mut State, member: usize) -> Result<(), VolumeError> {
        let members = &mut state.superblock.members;
        let before = members[member].state;
        members[member].state = MemberState::Failed;
        let active = members
            .iter()
            .filter(|member| member.state == MemberState::Active);
        let enough = match self.level() {
            Level::Raid0 => members.len(),
            Level::Raid1 => 1,
            Level::Raid4 | Level::Raid5 => members.len() - 1,
        };
        let is_spared = active.count() >= enough;
        if !is_spared {
            // It keeps its place: what it has is as good as it was.
            members[member].state = before;
            state.broken = true;
        }
        self.publish(state);
        match is_spared {
            true => Ok(()),
            false => Err(self.broken(state)),
        }
    }

    fn broken(&self, state: &State) -> VolumeError {
        let members = &state.superblock.members;
        let failed = members
            .iter()
            .filter(|member| member.state != MemberState::Active);
        VolumeError::Broken {
            failed: failed.count() + 1,
            members: members.len(),
        }
    }

    /// Flushes all members; with `retire`, also voids the journal's records. Nobody else may be at work. The records of a
    /// broken volume stay: that a member failed may not be noted on the others, which repeat its writes then.
    async fn settle(&self, state: &mut State, retire: bool) -> Result<(), VolumeError> {
        'again: loop {
            let mut ops: Ops<'_> = live(&state.superblock).map(Op::flush).collect();
            self.members.run(&mut ops).await;
            let failed = failures(&ops);
            if !failed.is_empty() {
                self.drop_members(state, failed)?;
                self.persist(state).await?;
                continue 'again;
            }
            if !retire || state.broken || self.ring().is_settled() {
                break;
            }
            let sectors = head_sectors(0, self.sector_bytes) as u64;
            let (position, sequence) = self.ring().take(sectors);
            let record = Record {
                volume: state.superblock.volume,
                epoch: state.superblock.epoch,
                sequence,
                tail: sequence,
                position,
                entries: Vec::new(),
            };
            let mut bytes = self.members.buffer(sectors as usize * self.sector_bytes);
            record.seal(&mut bytes, self.sector_bytes);
            let pair = pair(&state.superblock, sequence);
            let at = state.superblock.journal.start + Sectors(position);
            let mut ops: Ops<'_> = pair
                .iter()
                .map(|&member| Op::write(member, at, &bytes))
                .collect();
            self.members.run(&mut ops).await;
            let mut failed = failures(&ops);
            let mut ops: Ops<'_> = pair.iter().map(|&member| Op::flush(member)).collect();
            self.members.run(&mut ops).await;
            failed.extend(failures(&ops));
            if !failed.is_empty() {
                self.drop_members(state, failed)?;
                self.persist(state).await?;
                continue 'again;
            }
            self.ring().settled(sectors);
            break;
        }
        self.ring().dirty = false;
        Ok(())
    }

    fn drop_members(&self, state: &mut State, failed: Failures) -> Result<(), VolumeError> {
        for member in failed {
            if state.superblock.members[member].state != MemberState::Failed {
                self.drop_member(state, member)?;
            }
        }
        Ok(())
    }

    /// Writes the superblocks in a round: the first ones of all members, and when those are durable, the second ones. The
    /// assembly relies on that order.
    async fn persist(&self, state: &mut State) -> Result<(), VolumeError> {
        'again: loop {
            state.superblock.generation += 1;
            self.publish(state);
            let members: SmallVec<[usize; 8]> = live(&state.superblock).collect();
            let blocks: SmallVec<[Vec<u8>; 8]> = members
                .iter()
                .map(|&index| encoded(&state.superblock, index))
                .collect();
            for second in [false, true] {
                let mut ops: Ops<'_> = members
                    .iter()
                    .zip(&blocks)
                    .map(|(&member, block)| {
                        let at = match second {
                            false => Lbn(0),
                            true => state.superblock.second(member),
                        };
                        Op::write(member, at, block)
                    })
                    .collect();
                self.members.run(&mut ops).await;
                let mut failed = failures(&ops);
                let mut ops: Ops<'_> = members.iter().map(|&member| Op::flush(member)).collect();
                self.members.run(&mut ops).await;
                failed.extend(failures(&ops));
                if !failed.is_empty() {
                    self.drop_members(state, failed)?;
                    continue 'again;
                }
            }
            return Ok(());
        }
    }

    /// Waits until what the members have taken is durable there; returns those that failed.
    async fn flush_members(&self, members: &[usize]) -> Failures {
        let mut members: SmallVec<[usize; 2]> = SmallVec::from_slice(members);
        // In order, so that two who wait for the same do not wait for each other.
        members.sort_unstable();
        let mine: SmallVec<[u64; 2]> = members
            .iter()
            .map(|&member| self.flushers[member].written.fetch_add(1, Ordering::SeqCst) + 1)
            .collect();
        let mut held: SmallVec<[_; 2]> = SmallVec::new();
        let mut ops: Ops<'_> = Ops::new();
        for (&member, mine) in members.iter().zip(mine) {
            let flusher = &self.flushers[member];
            let flushed = flusher.flushed.lock().await;
            if *flushed < mine {
                held.push((flushed, flusher.written.load(Ordering::SeqCst)));
                ops.push(Op::flush(member));
            }
        }
        if !ops.is_empty() {
            self.members.run(&mut ops).await;
        }
        for ((mut flushed, covers), op) in held.into_iter().zip(&ops) {
            if op.outcome.is_ok() {
                *flushed = covers;
            }
        }
        failures(&ops)
    }

    fn ring(&self) -> NowGuard<'_, Ring> {
        self.ring.lock().expect("nobody panics with it")
    }

    fn level(&self) -> Level {
        self.array.shape().level
    }

    /// A stripe, of which there is one of that number.
    fn stripe(&self, number: u64) -> Stripe<'_> {
        self.array.stripe(number).expect("the volume has it")
    }

    /// The stripe of a sector, which has been checked.
    fn stripe_of(&self, sector: Lbn) -> Stripe<'_> {
        let location = self.array.locate(sector);
        location.expect("the volume has it").stripe
    }

    fn lock_of(&self, stripe: u64) -> usize {
        (stripe % LOCKS) as usize
    }

    /// Whether a member is good for a stripe, whose lock is held.
    fn is_live(&self, state: &State, member: usize, stripe: u64) -> bool {
        match state.superblock.members[member].state {
            MemberState::Active => true,
            MemberState::Failed => false,
            MemberState::Rebuilding(_) => stripe < self.rebuilt.load(Ordering::SeqCst),
        }
    }

    fn check(&self, at: Lbn, bytes: usize) -> Result<Range<Lbn>, VolumeError> {
        if !bytes.is_multiple_of(self.sector_bytes) {
            return Err(VolumeError::Length {
                bytes,
                sector_bytes: self.sector_bytes,
            });
        }
        let capacity = self.array.capacity();
        let end = at.0.saturating_add((bytes / self.sector_bytes) as u64);
        if end > capacity.0 {
            return Err(VolumeError::Range {
                first: at,
                end: Lbn(end),
                capacity,
            });
        }
        Ok(at..Lbn(end))
    }
}

fn encoded(superblock: &Superblock, index: usize) -> Vec<u8> {
    let own = Superblock {
        index,
        ..superblock.clone()
    };
    let mut bytes = own.encode();
    let sectors = superblock_sectors(superblock.sector_bytes).0 as usize;
    bytes.resize(sectors * superblock.sector_bytes as usize, 0);
    bytes
}

/// Members that take writes.
fn live(superblock: &Superblock) -> impl Iterator<Item = usize> {
    let members = superblock.members.iter().enumerate();
    members
        .filter(|(_, member)| member.state != MemberState::Failed)
        .map(|(index, _)| index)
}

/// The members that get a record.
fn pair(superblock: &Superblock, sequence: u64) -> SmallVec<[usize; 2]> {
    let members = superblock.members.iter().enumerate();
    let active: SmallVec<[usize; 8]> = members
        .filter(|(_, member)| member.state == MemberState::Active)
        .map(|(index, _)| index)
        .collect();
    let first = (sequence / RECORDS_IN_A_ROW) as usize;
    let count = active.len().min(2);
    (0..count)
        .map(|next| active[(first + next) % active.len()])
        .collect()
}

fn failures(ops: &[Op<'_>]) -> Failures {
    let mut failed: Failures = ops
        .iter()
        .filter(|op| op.outcome.is_err())
        .map(|op| op.member)
        .collect();
    failed.sort_unstable();
    failed.dedup();
    failed
}

fn is_degraded(superblock: &Superblock) -> bool {
    superblock
        .members
        .iter()
        .any(|member| member.state != MemberState::Active)
}
