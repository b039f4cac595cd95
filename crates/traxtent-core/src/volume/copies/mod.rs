//! A volume that keeps copies of its blocks around their tracks, on one device whose firmware knows nothing of it.
//!
//! [`Copies`] takes requests for sectors and turns them into operations on its device, as the layout
//! ([`crate::layout::tpl`]) says. Like [`super::Volume`], it does no I/O and has no threads: its methods are futures that wait for
//! [`Members::run`] and for each other. Time comes from whoever runs it ([`Clocked`]).
//!
//! # What holds
//! - No read sees stale data, and what was flushed survives any crash: see [the layout](crate::layout::tpl).
//! - A sector that cannot be read is served from a sister copy, and written again from it.
//! - When a page of the table cannot be written, nothing is written any more; what is there can be read.
//!
//! # How
//! A write goes to the copy that passes first. Its sisters are written from memory, as the head passes while nothing else waits,
//! and when the drive has been idle for a revolution: the best of three ways that were measured (docs/tpl.md). Whoever
//! runs the volume asks when work is [`due`](Copies::due) and has it [done](Copies::work). A flush writes the first copies that
//! are behind, which are what a crash leaves to be believed. Where too much is behind, a write goes to all copies at once.
//!
//! A future that is dropped before its end leaves the volume as a crash does: it has to be opened anew.
//!
//! Locks are taken in this order: one plan at a time; pages of the table, which a plan has for itself and requests share; tracks,
//! which a write has for itself, reads share, and what brings copies up to date shares with reads.
//!
//! # Left out
//! Several devices; requests to the device side by side, where it has a survey.

mod arm;
mod error;
mod open;
pub mod superblock;
mod transfer;
mod work;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex as Now, MutexGuard as NowGuard};

use async_lock::{Mutex, RwLock};

pub use error::CopiesError;
pub use open::{Found, Made, NewVolume, find, find_superblock};

use super::{Failed, Members, NoSpace, Op};
use crate::layout::tpl::{Accuracy, Head, Home, Plan, Run, Step, Tpl};
use crate::units::{Lbn, Sectors, SimTime, Span};
use arm::{Arm, Places};

/// The device's position among the members.
const DEVICE: usize = 0;

/// Pages, and tracks, share so many locks.
const LOCKS: usize = 64;

/// Bytes of blocks that are behind in some copies, and kept in memory.
const BEHIND_BYTES: usize = 16 << 20;

/// A device with a clock.
pub trait Clocked: Members {
    /// The time.
    fn now(&self) -> SimTime;
}

/// A volume that is open. See the module.
#[derive(Debug)]
pub struct Copies<M> {
    members: M,
    sector_bytes: usize,
    block_sectors: u64,
    blocks: u64,
    revolution: Span,
    arm: Arm,
    state: Now<State>,
    /// Held by who carries out a plan.
    plans: Mutex<()>,
    pages: Vec<RwLock<()>>,
    tracks: Vec<RwLock<()>>,
    /// A page of the table could not be written.
    is_broken: AtomicBool,
    is_stopped: AtomicBool,
    repaired: AtomicU64,
}

/// What changes with each request; nobody waits while holding it.
#[derive(Debug)]
struct State {
    tpl: Tpl,
    /// What blocks hold that have copies which are behind.
    behind: BTreeMap<Home, Box<[u8]>>,
    /// Copies that could not be written.
    hopeless: BTreeMap<Home, u32>,
    /// Copies that could not be read, and are to be written.
    unread: BTreeMap<Home, u32>,
    /// What blocks hold that no copy has as a whole.
    mend: BTreeMap<Home, Box<[u8]>>,
    /// Requests under way, the end of the last one, and its track.
    asked: u64,
    last: SimTime,
    track: Option<usize>,
    /// The next track to bring up to date, and to split.
    next: work::Next,
}

/// A request that is under way.
struct Asked<'a, M: Clocked>(&'a Copies<M>);

impl<M: Clocked> Drop for Asked<'_, M> {
    fn drop(&mut self) {
        let now = self.0.members.now();
        let mut state = self.0.state();
        state.asked -= 1;
        state.last = state.last.max(now);
    }
}

/// Sectors of a run of blocks.
#[derive(Clone, Copy)]
struct Piece {
    run: Run,
    /// From this sector of the run on.
    from: u64,
    sectors: u64,
}

impl<M: Clocked> Copies<M> {
    fn new(members: M, tpl: Tpl, head: Option<Head>) -> Copies<M> {
        let header = tpl.header();
        let locks = || (0..LOCKS).map(|_| RwLock::new(())).collect();
        // Without a survey: of the usual 7200 revolutions a minute.
        let period = head.as_ref().map_or(8.33e9, Head::period);
        Copies {
            sector_bytes: header.sector_bytes as usize,
            block_sectors: header.block_sectors.into(),
            blocks: tpl.shape().blocks(),
            revolution: Span(period as u64),
            arm: Arm::new(head),
            state: Now::new(State {
                next: work::Next::new(&tpl),
                tpl,
                behind: BTreeMap::new(),
                hopeless: BTreeMap::new(),
                unread: BTreeMap::new(),
                mend: BTreeMap::new(),
                asked: 0,
                last: members.now(),
                track: None,
            }),
            members,
            plans: Mutex::new(()),
            pages: locks(),
            tracks: locks(),
            is_broken: AtomicBool::new(false),
            is_stopped: AtomicBool::new(false),
            repaired: AtomicU64::new(0),
        }
    }

    /// What the volume offers.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.blocks * self.block_sectors)
    }

    /// Bytes of a sector.
    pub fn sector_bytes(&self) -> usize {
        self.sector_bytes
    }

    /// Bytes of a block: what is written at once without reading.
    pub fn block_bytes(&self) -> usize {
        self.block_sectors as usize * self.sector_bytes
    }

    /// What it lies on.
    pub fn members(&self) -> &M {
        &self.members
    }

    /// The layout as it stands.
    pub fn layout(&self) -> Tpl {
        self.state().tpl.clone()
    }

    /// How far off its predictions have been; nothing without a survey.
    pub fn accuracy(&self) -> Option<Accuracy> {
        self.arm.accuracy()
    }

    /// Blocks' copies that were written anew because they could not be read.
    pub fn repaired(&self) -> u64 {
        self.repaired.load(Ordering::Relaxed)
    }

    /// Reads from a sector on.
    ///
    /// # Errors
    /// Outside of the volume, or if no current copy can be read.
    pub async fn read(&self, at: Lbn, into: &mut [u8]) -> Result<(), CopiesError> {
        let _asked = self.ask();
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

    /// Writes from a sector on.
    ///
    /// # Errors
    /// Outside of the volume, if no copy can be written, or part of a block is written whose rest cannot be read.
    pub async fn write(&self, at: Lbn, bytes: &[u8]) -> Result<(), CopiesError> {
        self.write_to(at, bytes, false).await
    }

    /// Writes from a sector on; it is durable when this returns.
    ///
    /// # Errors
    /// As of [`Copies::write`] and [`Copies::flush`].
    pub async fn write_through(&self, at: Lbn, bytes: &[u8]) -> Result<(), CopiesError> {
        // The first copies are what a crash leaves to be believed.
        self.write_to(at, bytes, true).await?;
        let _asked = self.ask();
        Ok(self.one(Op::flush(DEVICE)).await?)
    }

    async fn write_to(&self, at: Lbn, bytes: &[u8], first: bool) -> Result<(), CopiesError> {
        let _asked = self.ask();
        self.check_writable()?;
        let pieces = self.pieces(at, bytes.len())?;
        self.prepare(&pieces).await?;
        let mut rest = bytes;
        for piece in pieces {
            let (part, others) = rest.split_at(piece.sectors as usize * self.sector_bytes);
            rest = others;
            loop {
                let page = self.page(piece.run).read().await;
                // A plan may have come between.
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

    /// Makes sectors zero.
    ///
    /// # Errors
    /// As of [`Copies::write`].
    pub async fn zero(&self, at: Lbn, sectors: Sectors) -> Result<(), CopiesError> {
        self.trim(at, sectors).await?;
        let mut zeros = Vec::new();
        for piece in self.pieces_of(at, sectors.0)? {
            // What holds nothing reads as zeros.
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

    /// Tells that sectors are not needed any more: as far as they are all that a track holds of a layer, they read as zeros
    /// from then on.
    ///
    /// # Errors
    /// Outside of the volume, or if the table cannot be written.
    pub async fn trim(&self, at: Lbn, sectors: Sectors) -> Result<(), CopiesError> {
        let _asked = self.ask();
        self.check_writable()?;
        self.pieces_of(at, sectors.0)?;
        // Whole blocks alone.
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

    /// Makes durable what was written before.
    ///
    /// # Errors
    /// If a first copy cannot be written, or the device cannot be flushed.
    pub async fn flush(&self) -> Result<(), CopiesError> {
        let _asked = self.ask();
        let behind: Vec<(Run, u32)> = work::groups(self.state().tpl.before_flush());
        for (run, _) in behind {
            let _page = self.page(run).read().await;
            let _track = self.track(run.home.track).upgradable_read().await;
            // Some may have been brought up to date, or given up, meanwhile.
            let first = |home| (home, !self.state().tpl.current(Run { home, blocks: 1 }) & 1);
            for (run, copies) in work::groups(run.homes().map(first)) {
                if !self.bring(run, copies, false).await? {
                    return Err(CopiesError::Unwritable(self.sector_of(run)));
                }
            }
        }
        Ok(self.one(Op::flush(DEVICE)).await?)
    }

    /// Stops in order: all copies become current, and the table tells so. Writes fail from then on.
    ///
    /// # Errors
    /// As of [`Copies::flush`].
    pub async fn stop(&self) -> Result<(), CopiesError> {
        if self.is_stopped.swap(true, Ordering::SeqCst) {
            return Ok(());
        }
        self.flush().await?;
        while self.settle().await? {}
        Ok(self.one(Op::flush(DEVICE)).await?)
    }

    /// Makes room for pieces, a page of the table at a time.
    async fn prepare(&self, pieces: &[Piece]) -> Result<(), CopiesError> {
        let runs: Vec<Run> = pieces.iter().map(|piece| piece.run).collect();
        for same in runs.chunk_by(|one, two| self.follows(*one, *two)) {
            let is_prepared = |run: &Run| self.state().tpl.is_prepared(*run);
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

    /// Carries out a plan. Its pages are locked.
    async fn carry_out(&self, plan: Plan, is_work: bool) -> Result<(), CopiesError> {
        for step in plan.steps().to_vec() {
            if let Err(error) = self.perform(&step, is_work).await {
                if matches!(step, Step::Table { .. }) || plan.changes_table() && step == Step::Flush
                {
                    // Nobody knows which of both stands there: what relies on either must not be written.
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
                tpl, behind, mend, ..
            } = &mut *state;
            mend.retain(|home, _| tpl.holds(*home));
            behind.retain(|home, _| {
                let run = Run {
                    home: *home,
                    blocks: 1,
                };
                tpl.holds(*home) && tpl.current(run) != tpl.writable(run)
            });
            rest
        };
        for step in rest {
            // The first copy of the page is durable: without the second, one damage more is lost.
            let _ = self.perform(&step, is_work).await;
        }
        Ok(())
    }

    async fn perform(&self, step: &Step, is_work: bool) -> Result<(), CopiesError> {
        match step {
            Step::Flush => Ok(self.one(Op::flush(DEVICE)).await?),
            Step::Table { lbn, bytes } => {
                let _turn = self.turn([*lbn].into_iter().collect(), is_work).await;
                self.arm.learn(|head| head.moved_to(*lbn));
                Ok(self.one(Op::write(DEVICE, *lbn, bytes)).await?)
            }
            Step::Zeros { to, sectors } => {
                let zeros = vec![0; sectors.0 as usize * self.sector_bytes];
                self.write_all(to, &zeros, is_work).await
            }
            Step::Copy { from, to, sectors } => {
                let mut bytes = self.members.buffer(sectors.0 as usize * self.sector_bytes);
                {
                    let _turn = self.turn([*from].into_iter().collect(), is_work).await;
                    self.arm.learn(|head| head.moved_to(*from));
                    self.one(Op::read(DEVICE, *from, &mut bytes)).await?;
                }
                self.write_all(to, &bytes, is_work).await
            }
        }
    }

    async fn turn(&self, places: Places, is_work: bool) -> arm::Turn<'_, M> {
        self.arm.turn(&self.members, places, is_work).await
    }

    async fn one(&self, op: Op<'_>) -> Result<(), Failed> {
        let mut ops = [op];
        self.members.run(&mut ops).await;
        ops[0].outcome
    }

    fn ask(&self) -> Asked<'_, M> {
        self.state().asked += 1;
        Asked(self)
    }

    fn check_writable(&self) -> Result<(), CopiesError> {
        if self.is_stopped.load(Ordering::SeqCst) {
            return Err(CopiesError::Stopped);
        }
        match self.is_broken.load(Ordering::SeqCst) {
            true => Err(CopiesError::Broken),
            false => Ok(()),
        }
    }

    /// Sectors from one on, run by run.
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
            let behind = first + u64::from(run.blocks) * size;
            let from = at.0.max(first);
            pieces.push(Piece {
                run,
                from: from - first,
                sectors: end.min(behind) - from,
            });
            first = behind;
        }
        Ok(pieces)
    }

    /// A piece, block by block.
    fn blocks_of(&self, piece: Piece) -> impl Iterator<Item = (Run, u64, u64)> {
        let size = self.block_sectors;
        let end = piece.from + piece.sectors;
        let blocks = piece.from / size..end.div_ceil(size);
        blocks.map(move |block| {
            let home = Home {
                index: piece.run.home.index + block as u32,
                ..piece.run.home
            };
            let from = piece.from.max(block * size);
            let until = end.min((block + 1) * size);
            (Run { home, blocks: 1 }, from - block * size, until - from)
        })
    }

    fn block_of(&self, run: Run) -> u64 {
        let state = self.state();
        state
            .tpl
            .shape()
            .block(run.home)
            .expect("it is the layout's")
    }

    fn sector_of(&self, run: Run) -> Lbn {
        self.sector_of_locked(&self.state(), run)
    }

    fn sector_of_locked(&self, state: &State, run: Run) -> Lbn {
        let block = state.tpl.shape().block(run.home);
        Lbn(block.expect("it is the layout's") * self.block_sectors)
    }

    /// Whether a run is the next one behind another, on the same page of the table.
    fn follows(&self, one: Run, two: Run) -> bool {
        let state = self.state();
        let block = |run: Run| state.tpl.shape().block(run.home);
        state.tpl.page(one.home.track).contains(&two.home.track)
            && block(one).map(|first| first + u64::from(one.blocks)) == block(two)
    }

    /// The blocks of runs behind one another.
    fn blocks_in(&self, runs: &[Run]) -> Range<u64> {
        let first = self.block_of(runs[0]);
        first..first + runs.iter().map(|run| u64::from(run.blocks)).sum::<u64>()
    }

    /// The lock of the page of the table that a run's track is on.
    fn page(&self, run: Run) -> &RwLock<()> {
        let state = self.state();
        let each = state.tpl.header().tracks_of_page();
        let position = run.home.track - state.tpl.shape().tracks().start;
        &self.pages[position / each % LOCKS]
    }

    fn track(&self, track: usize) -> &RwLock<()> {
        &self.tracks[track % LOCKS]
    }

    fn state(&self) -> NowGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }
}
