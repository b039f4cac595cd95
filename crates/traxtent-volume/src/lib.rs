//! A volume on several members: its data, its redundancy, and its crash safety.
//!
//! A [`Volume`] turns requests into operations on its members ([`MemberIo`]). It does no I/O and
//! has no threads. Its methods are futures that wait for [`MemberIo::run`] and for each other. The
//! same code therefore runs on a server's threads, on drives in simulated time, and on members in
//! memory in tests that try crashes.
//!
//! [`NewVolume`] makes a volume. [`read_superblocks`] and [`assemble`] find the devices that form
//! one, and [`Volume::open`] opens it. [`copies`] has volumes with replicas around the track, on
//! one member.
//!
//! # Invariants
//! - Once a flush is complete, everything completed before it survives any crash. With redundancy
//!   (RAID-1, RAID-4 and RAID-5), it survives any crash together with the loss of any one member.
//! - After a crash, each sector that was being written holds its old or its new data. In RAID-4 and
//!   RAID-5, if a member is lost in the same crash, its blocks in stripes that were being written
//!   as a whole are reported as lost ([`VolumeError::Lost`]).
//! - Opening a volume makes parity and replicas consistent again after a crash.
//! - A member's failure is recorded before any request that it missed completes.
//!
//! # Design
//! A journal closes the write hole: without it, a crash between the writes of a stripe leaves
//! parity that matches neither the old nor the new data. The journal is on the members themselves.
//! Each record is on two of them, or on the only active one:
//! - A write of part of a stripe first goes to the journal, with its data and the new parity. Once
//!   the record is durable, so is the write, and the data then goes to its place. After a crash it
//!   is written there again.
//! - A write of a whole stripe only records an intent. After a crash the parity is computed again.
//!   This is impossible if a member is lost in the crash; its blocks of the stripe are then
//!   recorded as lost. While a member is missing, whole stripes are therefore written in the first
//!   way.
//! - Writes in RAID-1 record an intent. After a crash the first readable replica is copied to the
//!   others.
//!
//! A record is *settled* once the writes that it describes are in place and durable. All records
//! are settled together: writes pause, all members are flushed, and a record of this is made
//! durable. Between two such moments, all records of one stripe are of the same kind. A replay
//! therefore never undoes a later write. A flush of the volume does nothing if the journal holds
//! the data of all writes since the last flush. Otherwise it flushes the members, and with parity
//! it also settles the records.
//!
//! The on-disk format is described in docs/reference/volume-format.md.
//!
//! # Left out
//! RAID-6; a journal on a separate device; growing and reshaping.
#![forbid(unsafe_code)]

mod admin;
mod assembly;
pub mod copies;
mod error;
mod journal_space;
mod members;
mod open;
mod read;
mod rebuild;
pub mod record;
mod recovery;
mod scrub;
mod stripe_buffer;
mod stripe_rows;
pub mod superblock;
mod sync;
mod write;
mod xor;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex as BlockingMutex, MutexGuard as BlockingGuard};

use async_lock::{Mutex, RwLock};
use smallvec::SmallVec;

pub use assembly::{
    Assembly, AssemblyError, SuperblockPair, assemble, contradictions, read_superblocks,
};
pub use error::VolumeError;
pub use members::{Action, Failed, MemberIo, NoSpace, Op};
pub use open::NewVolume;
pub use scrub::{Difference, Fault, Repair, Scrubbed};

use journal_space::JournalSpace;
use record::{JournalRecord, head_sectors};
use stripe_buffer::StripeBuffers;
use superblock::{MemberState, Superblock, superblock_sectors};
use traxtent_layout::raid::{Array, Level, Stripe, StripePlanner};
use traxtent_units::{Lbn, Sectors};

/// The number of locks that all stripes share.
const LOCKS: u64 = 64;

/// The number of consecutive records that go to the same two members, so that one flush serves
/// several.
const RECORDS_IN_A_ROW: u64 = 64;

/// The usual limit on the number of operations carried out together. Longer lists are allocated on
/// the heap.
const AT_ONCE: usize = 32;

type Ops<'a> = SmallVec<[Op<'a>; AT_ONCE]>;

/// The parameters of the volume's stripe plans. The positioning cost of a read is the number of
/// sectors that pass under the head of a modern drive during a seek and half a revolution: about a
/// track. Dummy reads are off: their data would have to be transferred only to be discarded.
const PLANNER: StripePlanner = StripePlanner {
    positioning: Sectors(1024),
    dummy_reads: false,
};

/// The protection against the write hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteHole {
    /// Closed by the journal.
    Closed,
    /// Open, without protection: for measurements, and to show that tests detect it.
    Open,
}

/// An open volume. See [the module](self).
#[derive(Debug)]
pub struct Volume<M: MemberIo> {
    array: Array,
    members: M,
    sector_bytes: usize,
    hole: WriteHole,
    /// Held in shared mode by every read and write.
    gate: RwLock<State>,
    stripes: Vec<Mutex<()>>,
    ring: BlockingMutex<JournalSpace>,
    flushers: Vec<Flusher>,
    /// Stripe buffers of completed requests.
    idle: BlockingMutex<Vec<StripeBuffers<M::Buffer>>>,
    /// The number of stripes, counted from the first, that are valid on the member being rebuilt.
    rebuilt: AtomicU64,
    rebuild_next: Mutex<Rebuilds>,
    repaired: AtomicU64,
    /// The number of journal records replayed when the volume was opened; `None` if it needed no
    /// recovery.
    recovered: Option<u64>,
    is_read_only: bool,
    /// A copy of the state for [`Volume::snapshot`], updated with every change.
    known: BlockingMutex<Snapshot>,
}

/// A copy of a volume's last state, for callers that must not wait for requests.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The superblock of member 0.
    pub superblock: Superblock,
    /// Whether more members have failed than the level tolerates.
    pub broken: bool,
}

/// The distribution of stripes among concurrent rebuild steps.
#[derive(Debug)]
struct Rebuilds {
    /// The first stripe that no step has taken yet.
    stripe: u64,
    /// Locked until the last step that took stripes has counted them as rebuilt, or has failed.
    last: Arc<Mutex<()>>,
}

/// The state that changes rarely.
#[derive(Clone, Debug)]
struct State {
    superblock: Superblock,
    /// Whether more members have failed than the level tolerates.
    broken: bool,
    stopped: bool,
    /// Whether the members must not be written. Their failures are then only recorded in memory.
    read_only: bool,
}

/// Combines concurrent flushes of a member: one flush serves all callers that wait for one.
#[derive(Debug, Default)]
struct Flusher {
    /// The number of callers so far. Each has completed its writes.
    written: AtomicU64,
    /// The number of callers whose writes are durable.
    flushed: Mutex<u64>,
}

/// Members whose operations failed.
type Failures = SmallVec<[usize; 4]>;

impl<M: MemberIo> Volume<M> {
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
            ring: BlockingMutex::new(JournalSpace::new(journal)),
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
            recovered: None,
            is_read_only: false,
            known: BlockingMutex::new(Snapshot {
                superblock: superblock.clone(),
                broken: false,
            }),
            gate: RwLock::new(State {
                superblock,
                broken: false,
                stopped: false,
                read_only: false,
            }),
            array,
            idle: BlockingMutex::default(),
            members,
        }
    }

    /// Returns the capacity available to users.
    pub fn capacity(&self) -> Sectors {
        self.array.capacity()
    }

    /// Returns the size of a sector in bytes.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Returns the array that maps blocks to members.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Returns the members.
    pub fn members(&self) -> &M {
        &self.members
    }

    /// Returns the current superblock of member 0.
    pub async fn superblock(&self) -> Superblock {
        self.gate.read().await.superblock.clone()
    }

    /// Returns the superblock and whether the volume is broken, without waiting. A member that does
    /// not respond blocks requests, but must not block queries of the state.
    pub fn snapshot(&self) -> Snapshot {
        self.known
            .lock()
            .expect("no holder of the lock panics")
            .clone()
    }

    /// Updates the copy that [`Volume::snapshot`] returns.
    fn publish(&self, state: &State) {
        *self.known.lock().expect("no holder of the lock panics") = Snapshot {
            superblock: state.superblock.clone(),
            broken: state.broken,
        };
    }

    /// Returns whether more members have failed than the level tolerates.
    pub async fn is_broken(&self) -> bool {
        self.gate.read().await.broken
    }

    /// Returns the number of journal records that were replayed when the volume was opened; `None`
    /// if it needed no recovery.
    pub fn recovered(&self) -> Option<u64> {
        self.recovered
    }

    /// Returns the number of sectors that were rewritten because a member could not read them or a
    /// scrub found them wrong.
    pub fn repaired(&self) -> Sectors {
        Sectors(self.repaired.load(Ordering::Relaxed))
    }

    /// Returns the number of stripes, counted from the first, that are valid on the member being
    /// rebuilt.
    pub fn rebuilt(&self) -> u64 {
        self.rebuilt.load(Ordering::Relaxed)
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Returns an error if too many members fail.
    pub async fn flush(&self) -> Result<(), VolumeError> {
        if !self.ring().dirty {
            return Ok(());
        }
        let mut state = self.gate.write().await;
        if !self.ring().dirty {
            return Ok(());
        }
        // RAID-1 need not settle the records here: copying a replica again after a crash is always
        // correct.
        let retire = self.level() != Level::Raid1;
        self.settle(&mut state, retire).await
    }

    /// Stops the volume cleanly. Later writes fail.
    ///
    /// # Errors
    /// Returns an error if the volume is broken, or if too many members fail.
    pub async fn stop(&self) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        if state.stopped || state.read_only {
            return Ok(());
        }
        if state.broken {
            // The volume stays unclean; the next start recovers it.
            return Err(self.broken(&state));
        }
        self.settle(&mut state, true).await?;
        state.superblock.clean = true;
        self.persist(&mut state).await?;
        state.stopped = true;
        Ok(())
    }

    /// Marks a member as failed. If the volume needs the member, the volume becomes broken instead.
    ///
    /// # Errors
    /// Returns an error if the volume needs the member, or if too many others fail in the meantime.
    ///
    /// # Panics
    /// Panics if there is no such member.
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
        let is_dispensable = state.superblock.is_dispensable(member);
        if is_dispensable {
            state.superblock.members[member].state = MemberState::Failed;
        } else {
            // The member keeps its state: its data is as good as before.
            state.broken = true;
        }
        self.publish(state);
        if is_dispensable {
            Ok(())
        } else {
            Err(self.broken(state))
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

    /// Flushes all members and, with `retire`, makes a record durable that settles all others. The
    /// caller must have exclusive access. The records of a broken volume are kept: the failure of a
    /// member might not have been recorded, and recovery then has to replay its writes.
    async fn settle(&self, state: &mut State, retire: bool) -> Result<(), VolumeError> {
        if state.read_only {
            return Ok(());
        }
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
            let record = JournalRecord {
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

    /// Writes the superblocks in a round: the first ones of all members that have not failed, and
    /// once those are durable, the second ones. The assembly relies on this order. A change of the
    /// members' states and its effect on the next scrub are part of the same round.
    async fn persist(&self, state: &mut State) -> Result<(), VolumeError> {
        'again: loop {
            state.superblock.check_scrubbed();
            if state.read_only {
                self.publish(state);
                return Ok(());
            }
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
                        let at = if second {
                            state.superblock.second(member)
                        } else {
                            Lbn(0)
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

    /// Waits until all completed writes to the members are durable. Returns the members that
    /// failed.
    async fn flush_members(&self, members: &[usize]) -> Failures {
        let mut members: SmallVec<[usize; 2]> = SmallVec::from_slice(members);
        // Members are locked in ascending order, to prevent deadlock.
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

    fn ring(&self) -> BlockingGuard<'_, JournalSpace> {
        self.ring.lock().expect("no holder of the lock panics")
    }

    fn level(&self) -> Level {
        self.array.shape().level
    }

    /// Returns a stripe. Its number must have been checked.
    fn stripe(&self, number: u64) -> Stripe<'_> {
        self.array.stripe(number).expect("the number was checked")
    }

    /// Returns the stripe of a sector. The sector must have been checked.
    fn stripe_of(&self, sector: Lbn) -> Stripe<'_> {
        let location = self.array.locate(sector);
        location.expect("the sector was checked").stripe
    }

    fn lock_of(&self, stripe: u64) -> usize {
        (stripe % LOCKS) as usize
    }

    /// Returns whether a member has valid data of a stripe. The lock of the stripe must be held,
    /// except for reads: true stays right during a read, and false makes it use the other members.
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

/// Returns the members that accept writes.
fn live(superblock: &Superblock) -> impl Iterator<Item = usize> {
    let members = superblock.members.iter().enumerate();
    members
        .filter(|(_, member)| member.state != MemberState::Failed)
        .map(|(index, _)| index)
}

/// Returns the members to which a record is written.
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
