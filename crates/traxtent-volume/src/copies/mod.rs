//! A volume that keeps replicas of its blocks around their tracks, on one device with ordinary
//! firmware.
//!
//! [`ReplicatedVolume`] turns requests for sectors into operations on its device, according to the
//! layout ([`traxtent_layout::tpl`]). Like [`super::Volume`], it does no I/O and has no threads.
//! Its methods are futures that wait for [`MemberIo::run`] and for each other. The caller supplies
//! the time ([`MemberClock`]).
//!
//! # Guarantees
//! - No read returns stale data, and flushed data survives any crash: see [the
//!   layout](traxtent_layout::tpl).
//! - A sector that cannot be read is served from another replica, and is rewritten from it.
//! - When a page of the table cannot be written, the volume becomes read-only.
//!
//! # Design
//! A write goes to the replica that passes first. The other replicas are written from memory: as
//! the head passes them while no other request waits, or when the drive has been idle for a
//! revolution. This was the best of three methods that were measured (docs/results/tpl.md). The
//! caller polls the time at which work is [`due`](ReplicatedVolume::due), and then calls
//! [`work`](ReplicatedVolume::work). Only the first replica of each block is trusted after a crash,
//! so a flush updates the first replicas that are out of date. When too much data is out of date, a
//! write completes only after all replicas have been written.
//!
//! A future that is dropped before it completes leaves the volume as a crash would. The volume must
//! then be reopened.
//!
//! Locks are taken in this order:
//! - the lock for plans, which are carried out one at a time
//! - the locks of the table's pages: exclusive for a plan that changes the table, shared for
//!   requests and for synchronizing or filling tracks
//! - the locks of tracks: exclusive for a write, shared for reads, and upgradable for synchronizing
//!   replicas, so that reads continue
//!
//! # Left out
//! Several devices; concurrent requests to the device if it has a survey.

mod error;
mod maintenance;
mod open;
mod queue;
pub mod superblock;
mod transfer;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex as BlockingMutex, MutexGuard as BlockingGuard};

use async_lock::{Mutex, RwLock};

pub use error::CopiesError;
pub use open::{FoundVolume, NewVolume, PreparedVolume, find, find_superblock};

use super::{Failed, MemberIo, NoSpace, Op};
use queue::{DriveQueue, Places};
use traxtent_layout::tpl::{
    Accuracy, BlockHome, BlockRun, DeviceStep, HeadTracker, TablePlan, Tpl,
};
use traxtent_units::{Lbn, Sectors, SimTime, Span};

/// The device's index among the members.
const DEVICE: usize = 0;

/// The number of locks for pages, and the number for tracks.
const LOCKS: usize = 64;

/// The limit in bytes on the blocks kept in memory because replicas are out of date. An ordinary
/// write that could exceed it goes to all replicas; a durable write still goes to the first only.
const PENDING_BYTES_MAX: usize = 16 << 20;

/// A device with a clock.
pub trait MemberClock: MemberIo {
    /// Returns the current time.
    fn now(&self) -> SimTime;
}

/// An open volume. See [the module](self).
#[derive(Debug)]
pub struct ReplicatedVolume<M> {
    members: M,
    sector_bytes: usize,
    block_sectors: u64,
    blocks: u64,
    revolution: Span,
    queue: DriveQueue,
    state: BlockingMutex<State>,
    /// Held while a plan is carried out.
    plans: Mutex<()>,
    pages: Vec<RwLock<()>>,
    tracks: Vec<RwLock<()>>,
    /// Whether a page of the table could not be written.
    is_broken: AtomicBool,
    is_stopped: AtomicBool,
    /// Whether the volume was stopped without an error.
    is_settled: Mutex<bool>,
    repaired: AtomicU64,
}

/// The state that changes with each request. The lock is never held across an await.
#[derive(Debug)]
struct State {
    tpl: Tpl,
    /// The contents of blocks that have out-of-date replicas.
    pending: BTreeMap<BlockHome, Box<[u8]>>,
    /// Replicas that could not be written, or whose data could not be read.
    unwritable: BTreeMap<BlockHome, u32>,
    /// Replicas that could not be read, and have to be rewritten.
    unreadable: BTreeMap<BlockHome, u32>,
    /// The contents of blocks that could be read only sector by sector.
    rebuilt_blocks: BTreeMap<BlockHome, Box<[u8]>>,
    /// The number of outstanding requests.
    outstanding: u64,
    /// The time at which the last request ended.
    last: SimTime,
    /// The track of the last request.
    track: Option<usize>,
    /// The progress of background work.
    next: maintenance::Next,
}

/// An outstanding request.
struct Outstanding<'a, M: MemberClock>(&'a ReplicatedVolume<M>);

impl<M: MemberClock> Drop for Outstanding<'_, M> {
    fn drop(&mut self) {
        let now = self.0.members.now();
        let mut state = self.0.state();
        state.outstanding -= 1;
        state.last = state.last.max(now);
    }
}

/// Sectors of a run of blocks.
#[derive(Clone, Copy)]
struct Piece {
    run: BlockRun,
    /// The offset of the first sector from the beginning of the run, in sectors.
    from: u64,
    sectors: u64,
}

impl<M: MemberClock> ReplicatedVolume<M> {
    fn new(members: M, tpl: Tpl, head: Option<HeadTracker>) -> ReplicatedVolume<M> {
        let header = tpl.header();
        let locks = || (0..LOCKS).map(|_| RwLock::new(())).collect();
        // Without a survey, the usual 7200 revolutions per minute are assumed.
        let period = head.as_ref().map_or(8.33e9, HeadTracker::period);
        ReplicatedVolume {
            sector_bytes: header.sector_bytes as usize,
            block_sectors: header.block_sectors.into(),
            blocks: tpl.shape().blocks(),
            revolution: Span(period as u64),
            queue: DriveQueue::new(head),
            state: BlockingMutex::new(State {
                next: maintenance::Next::new(&tpl),
                tpl,
                pending: BTreeMap::new(),
                unwritable: BTreeMap::new(),
                unreadable: BTreeMap::new(),
                rebuilt_blocks: BTreeMap::new(),
                outstanding: 0,
                last: members.now(),
                track: None,
            }),
            members,
            plans: Mutex::new(()),
            pages: locks(),
            tracks: locks(),
            is_broken: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            is_settled: Mutex::new(false),
            repaired: AtomicU64::new(0),
        }
    }

    /// Returns the capacity available to users.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.blocks * self.block_sectors)
    }

    /// Returns the size of a sector in bytes.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Returns the size of a block in bytes. Writes of whole blocks need no reads.
    pub fn block_bytes(&self) -> usize {
        self.block_sectors as usize * self.sector_bytes
    }

    /// Returns the device of the volume.
    pub fn members(&self) -> &M {
        &self.members
    }

    /// Returns a copy of the layout in its present state.
    pub fn layout(&self) -> Tpl {
        self.state().tpl.clone()
    }

    /// Returns the accuracy with which the head's position is predicted; `None` without a survey.
    pub fn accuracy(&self) -> Option<Accuracy> {
        self.queue.accuracy()
    }

    /// Returns the number of replicas of blocks that were rewritten because they could not be read.
    pub fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Reads sectors, starting at `at`.
    ///
    /// # Errors
    /// Returns an error if the length is not a whole number of sectors, if the range is not within
    /// the volume, or if no current replica can be read.
    pub async fn read(&self, at: Lbn, into: &mut [u8]) -> Result<(), CopiesError> {
        let _request = self.begin_request();
        let mut rest = into;
        for piece in self.pieces(at, rest.len())? {
            let (part, others) = rest.split_at_mut(piece.sectors as usize * self.sector_bytes);
            rest = others;
            let _page = self.page(piece.run).read().await;
            let _track = self.track(piece.run.home.track).read().await;
            self.read_piece(piece, part).await?;
        }
        Ok(())
    }

    /// Writes sectors, starting at `at`.
    ///
    /// # Errors
    /// Returns an error if the length is not a whole number of sectors, if the range is not within
    /// the volume, if the volume is stopped or read-only, if the device has no space or fails while
    /// the layout is prepared, if no replica can be written, or if the range begins or ends within
    /// a block and its blocks cannot be read.
    pub async fn write(&self, at: Lbn, bytes: &[u8]) -> Result<(), CopiesError> {
        self.write_to(at, bytes, false).await
    }

    /// Writes sectors, starting at `at`. The data is durable when this returns.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`ReplicatedVolume::write`] and
    /// [`ReplicatedVolume::flush`].
    pub async fn write_through(&self, at: Lbn, bytes: &[u8]) -> Result<(), CopiesError> {
        // Only the first replicas are trusted after a crash.
        self.write_to(at, bytes, true).await?;
        let _request = self.begin_request();
        Ok(self.one(Op::flush(DEVICE)).await?)
    }

    async fn write_to(&self, at: Lbn, bytes: &[u8], first: bool) -> Result<(), CopiesError> {
        let _request = self.begin_request();
        self.check_writable()?;
        let pieces = self.pieces(at, bytes.len())?;
        self.prepare(&pieces).await?;
        let mut rest = bytes;
        for piece in pieces {
            let (part, others) = rest.split_at(piece.sectors as usize * self.sector_bytes);
            rest = others;
            loop {
                let page = self.page(piece.run).read().await;
                // A plan may have been carried out in between.
                if self.state().tpl.is_prepared(piece.run) {
                    let _track = self.track(piece.run.home.track).write().await;
                    self.write_piece(piece, part, first).await?;
                    break;
                }
                drop(page);
                self.prepare(&[piece]).await?;
            }
        }
        Ok(())
    }

    /// Writes zeros to sectors.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`ReplicatedVolume::write`].
    pub async fn zero(&self, at: Lbn, sectors: Sectors) -> Result<(), CopiesError> {
        self.trim(at, sectors).await?;
        let mut zeros = Vec::new();
        for piece in self.pieces_of(at, sectors.0)? {
            // Blocks that hold no data read as zeros.
            if !self.state().tpl.holds(piece.run.home) {
                continue;
            }
            let bytes = piece.sectors as usize * self.sector_bytes;
            zeros.resize(bytes.max(zeros.len()), 0);
            let first = self.block_of(piece.run) * self.block_sectors + piece.from;
            self.write(Lbn(first), &zeros[..bytes]).await?;
        }
        Ok(())
    }

    /// Discards sectors that are no longer needed. If they include a whole layer of a track, that
    /// layer reads as zeros afterwards.
    ///
    /// # Errors
    /// Returns an error if the range is not within the volume, if the volume is stopped or
    /// read-only, or if the table cannot be written.
    pub async fn trim(&self, at: Lbn, sectors: Sectors) -> Result<(), CopiesError> {
        let _request = self.begin_request();
        self.check_writable()?;
        self.pieces_of(at, sectors.0)?;
        // Only whole blocks can be discarded.
        let first = at.0.div_ceil(self.block_sectors);
        let end = (at.0 + sectors.0) / self.block_sectors;
        if first >= end {
            return Ok(());
        }
        let runs = self.state().tpl.runs(first..end)?;
        let _plans = self.plans.lock().await;
        for same in runs.chunk_by(|one, two| self.follows(*one, *two)) {
            let _page = self.page(same[0]).write().await;
            let blocks = self.blocks_in(same);
            loop {
                let plan = self.state().tpl.trim(blocks.clone())?;
                let Some(plan) = plan else { break };
                self.carry_out(plan, false).await?;
            }
        }
        Ok(())
    }

    /// Makes all earlier writes durable.
    ///
    /// # Errors
    /// Returns an error if a first replica cannot be written, if the data for it cannot be read, or
    /// if the device cannot be flushed.
    pub async fn flush(&self) -> Result<(), CopiesError> {
        let _request = self.begin_request();
        let stale: Vec<(BlockRun, u32)> = maintenance::groups(self.state().tpl.before_flush());
        for (run, _) in stale {
            let _page = self.page(run).read().await;
            let _track = self.track(run.home.track).upgradable_read().await;
            // Some may have been synchronized or discarded in the meantime.
            let first = |home| {
                (
                    home,
                    !self.state().tpl.current(BlockRun { home, blocks: 1 }) & 1,
                )
            };
            for (run, copies) in maintenance::groups(run.homes().map(first)) {
                if !self.update_replicas(run, copies, false).await? {
                    return Err(CopiesError::Unwritable(self.sector_of(run)));
                }
            }
        }
        Ok(self.one(Op::flush(DEVICE)).await?)
    }

    /// Stops the volume cleanly: updates all replicas that can be written, and records this in the
    /// table. Later writes fail. After an error, another call tries again.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`ReplicatedVolume::flush`], or if the table cannot be
    /// written.
    pub async fn stop(&self) -> Result<(), CopiesError> {
        let mut is_settled = self.is_settled.lock().await;
        if *is_settled {
            return Ok(());
        }
        self.is_stopped.store(true, Ordering::SeqCst);
        self.flush().await?;
        if self.is_broken.load(Ordering::SeqCst) {
            return Err(CopiesError::Broken);
        }
        while self.settle().await? {}
        self.one(Op::flush(DEVICE)).await?;
        *is_settled = true;
        Ok(())
    }

    /// Prepares the layout for writing pieces, one page of the table at a time.
    async fn prepare(&self, pieces: &[Piece]) -> Result<(), CopiesError> {
        let runs: Vec<BlockRun> = pieces.iter().map(|piece| piece.run).collect();
        for same in runs.chunk_by(|one, two| self.follows(*one, *two)) {
            let is_prepared = |run: &BlockRun| self.state().tpl.is_prepared(*run);
            if same.iter().all(is_prepared) {
                continue;
            }
            let blocks = self.blocks_in(same);
            let _plans = self.plans.lock().await;
            let _page = self.page(same[0]).write().await;
            self.check_writable()?;
            loop {
                let plan = self.state().tpl.prepare(blocks.clone())?;
                let Some(plan) = plan else { break };
                self.carry_out(plan, false).await?;
            }
        }
        Ok(())
    }

    /// Carries out a plan whose pages are locked.
    async fn carry_out(&self, plan: TablePlan, is_work: bool) -> Result<(), CopiesError> {
        for step in plan.steps().to_vec() {
            if let Err(error) = self.perform(&step, is_work).await {
                if matches!(step, DeviceStep::Table { .. })
                    || plan.changes_table() && step == DeviceStep::Flush
                {
                    // It is unknown which of the two states of the table is on the device. Nothing
                    // that relies on either may be written.
                    self.is_broken.store(true, Ordering::SeqCst);
                    return Err(CopiesError::Broken);
                }
                self.state().tpl.abandon(plan);
                return Err(error);
            }
        }
        let rest = {
            let mut state = self.state();
            let rest = state.tpl.commit(plan);
            let State {
                tpl,
                pending,
                rebuilt_blocks,
                ..
            } = &mut *state;
            rebuilt_blocks.retain(|home, _| tpl.holds(*home));
            pending.retain(|home, _| {
                let run = BlockRun {
                    home: *home,
                    blocks: 1,
                };
                tpl.holds(*home) && tpl.current(run) != tpl.writable(run)
            });
            rest
        };
        for step in rest {
            // The first copy of the page is durable. Without the second, the page is merely not
            // protected against damage.
            let _ = self.perform(&step, is_work).await;
        }
        Ok(())
    }

    async fn perform(&self, step: &DeviceStep, is_work: bool) -> Result<(), CopiesError> {
        match step {
            DeviceStep::Flush => Ok(self.one(Op::flush(DEVICE)).await?),
            DeviceStep::Table { lbn, bytes } => {
                let _turn = self.turn([*lbn].into_iter().collect(), is_work).await;
                self.queue.update_head(|head| head.moved_to(*lbn));
                Ok(self.one(Op::write(DEVICE, *lbn, bytes)).await?)
            }
            DeviceStep::Zeros { to, sectors } => {
                let zeros = vec![0; sectors.0 as usize * self.sector_bytes];
                self.write_all(to, &zeros, is_work).await
            }
            DeviceStep::Copy { from, to, sectors } => {
                let mut bytes = self.members.buffer(sectors.0 as usize * self.sector_bytes);
                {
                    let _turn = self.turn([*from].into_iter().collect(), is_work).await;
                    self.queue.update_head(|head| head.moved_to(*from));
                    self.one(Op::read(DEVICE, *from, &mut bytes)).await?;
                }
                self.write_all(to, &bytes, is_work).await
            }
        }
    }

    async fn turn(&self, places: Places, is_work: bool) -> queue::DeviceLock<'_, M> {
        self.queue.turn(&self.members, places, is_work).await
    }

    async fn one(&self, op: Op<'_>) -> Result<(), Failed> {
        let mut ops = [op];
        self.members.run(&mut ops).await;
        ops[0].outcome
    }

    fn begin_request(&self) -> Outstanding<'_, M> {
        self.state().outstanding += 1;
        Outstanding(self)
    }

    fn check_writable(&self) -> Result<(), CopiesError> {
        if self.is_stopped.load(Ordering::SeqCst) {
            return Err(CopiesError::Stopped);
        }
        if self.is_broken.load(Ordering::SeqCst) {
            Err(CopiesError::Broken)
        } else {
            Ok(())
        }
    }

    /// Returns the sectors starting at `at`, run by run.
    fn pieces(&self, at: Lbn, bytes: usize) -> Result<Vec<Piece>, CopiesError> {
        if !bytes.is_multiple_of(self.sector_bytes) {
            return Err(CopiesError::Length {
                bytes,
                sector_bytes: self.sector_bytes,
            });
        }
        self.pieces_of(at, (bytes / self.sector_bytes) as u64)
    }

    fn pieces_of(&self, at: Lbn, sectors: u64) -> Result<Vec<Piece>, CopiesError> {
        let end = at.0.saturating_add(sectors);
        if end > self.capacity().0 {
            return Err(CopiesError::Range {
                first: at,
                end: Lbn(end),
                capacity: self.capacity(),
            });
        }
        if sectors == 0 {
            return Ok(Vec::new());
        }
        let size = self.block_sectors;
        let runs = self.state().tpl.runs(at.0 / size..end.div_ceil(size))?;
        let mut first = at.0 / size * size;
        let mut pieces = Vec::with_capacity(runs.len());
        for run in runs {
            let next = first + u64::from(run.blocks) * size;
            let from = at.0.max(first);
            pieces.push(Piece {
                run,
                from: from - first,
                sectors: end.min(next) - from,
            });
            first = next;
        }
        Ok(pieces)
    }

    /// Splits a piece into blocks. Returns each block with the piece's first sector within it,
    /// counted from the beginning of the block, and the number of sectors.
    fn blocks_of(&self, piece: Piece) -> impl Iterator<Item = (BlockRun, u64, u64)> {
        let size = self.block_sectors;
        let end = piece.from + piece.sectors;
        let blocks = piece.from / size..end.div_ceil(size);
        blocks.map(move |block| {
            let home = BlockHome {
                index: piece.run.home.index + block as u32,
                ..piece.run.home
            };
            let from = piece.from.max(block * size);
            let until = end.min((block + 1) * size);
            (
                BlockRun { home, blocks: 1 },
                from - block * size,
                until - from,
            )
        })
    }

    fn block_of(&self, run: BlockRun) -> u64 {
        let state = self.state();
        state
            .tpl
            .shape()
            .block(run.home)
            .expect("the run is in the layout")
    }

    fn sector_of(&self, run: BlockRun) -> Lbn {
        self.sector_of_locked(&self.state(), run)
    }

    fn sector_of_locked(&self, state: &State, run: BlockRun) -> Lbn {
        let block = state.tpl.shape().block(run.home);
        Lbn(block.expect("the run is in the layout") * self.block_sectors)
    }

    /// Returns whether `two` directly follows `one`, on the same page of the table.
    fn follows(&self, one: BlockRun, two: BlockRun) -> bool {
        let state = self.state();
        let block = |run: BlockRun| state.tpl.shape().block(run.home);
        state.tpl.page(one.home.track).contains(&two.home.track)
            && block(one).map(|first| first + u64::from(one.blocks)) == block(two)
    }

    /// Returns the blocks of consecutive runs.
    fn blocks_in(&self, runs: &[BlockRun]) -> Range<u64> {
        let first = self.block_of(runs[0]);
        first..first + runs.iter().map(|run| u64::from(run.blocks)).sum::<u64>()
    }

    /// Returns the lock of the table page that describes the run's track.
    fn page(&self, run: BlockRun) -> &RwLock<()> {
        let state = self.state();
        let each = state.tpl.header().tracks_of_page();
        let position = run.home.track - state.tpl.shape().tracks().start;
        &self.pages[position / each % LOCKS]
    }

    fn track(&self, track: usize) -> &RwLock<()> {
        &self.tracks[track % LOCKS]
    }

    fn state(&self) -> BlockingGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}
