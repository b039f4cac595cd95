//! Background work: synchronizing replicas, rewriting blocks that could be read only sector by
//! sector, making replicas equal after a crash, splitting tracks, and closing pages of the table.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::{CopiesError, MemberClock, ReplicatedVolume, State};
use traxtent_layout::tpl::{BlockHome, BlockRun, DeviceStep, Tpl};
use traxtent_units::{SimTime, Span};

/// The idle time before a write's other replicas are updated while the head is still on the track.
/// It is less than the time to the next replica, and more than the turnaround of a client.
const IDLE_BEFORE_PASSING: Span = Span(500_000_000);

/// The idle time before pages of the table are closed, in revolutions. The next write to a closed
/// page has to open it again.
const IDLE_REVOLUTIONS_BEFORE_CLOSING: u64 = 250;

/// The progress of background work.
#[derive(Debug)]
pub(super) struct Next {
    /// The next track to synchronize.
    sync: usize,
    /// The next track to split.
    split: usize,
    /// A track that is being filled, and its remaining steps, with the next one last.
    filling: (usize, Vec<DeviceStep>),
    /// Tracks on which the work failed.
    given_up: BTreeSet<usize>,
}

impl Next {
    pub(super) fn new(tpl: &Tpl) -> Next {
        let first = tpl.shape().tracks().start;
        Next {
            sync: first,
            split: first,
            filling: (first, Vec::new()),
            given_up: BTreeSet::new(),
        }
    }
}

/// A unit of background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Update a track's replicas.
    Sync(usize),
    /// Rewrite a block that could be read only sector by sector.
    Rewrite(BlockHome),
    /// Make the replicas of a track equal after a crash.
    Resync(usize),
    /// Continue splitting tracks.
    Split,
    /// Close the page of a track.
    Close(usize),
}

impl State {
    /// Returns the next job, and the idle time required before it. `settling` is set while the
    /// volume is being stopped.
    fn job(&self, revolution: Span, settling: bool) -> Option<(Job, Span)> {
        let first = self.tpl.shape().tracks().start;
        if let Some(track) = self.track.filter(|track| self.is_out_of_date(*track)) {
            return Some((Job::Sync(track), IDLE_BEFORE_PASSING.min(revolution)));
        }
        let stale = self.next_stale(self.next.sync);
        if let Some(track) = stale.or_else(|| self.next_stale(first)) {
            return Some((Job::Sync(track), revolution));
        }
        if let Some(home) = self.rebuilt_blocks.keys().next() {
            return Some((Job::Rewrite(*home), revolution));
        }
        let mut from = first;
        while let Some(track) = self.tpl.suspect(from) {
            if !self.next.given_up.contains(&track) {
                return Some((Job::Resync(track), revolution));
            }
            from = track + 1;
            if from >= self.tpl.shape().tracks().end {
                break;
            }
        }
        if !settling && (self.tpl.filled(first).is_some() || self.to_split(first).is_some()) {
            return Some((Job::Split, revolution));
        }
        let mut from = first;
        loop {
            let track = self.tpl.closable(from)?;
            if !self.next.given_up.contains(&track) {
                return Some((
                    Job::Close(track),
                    Span(revolution.0 * IDLE_REVOLUTIONS_BEFORE_CLOSING),
                ));
            }
            from = self.tpl.page(track).end;
            if from >= self.tpl.shape().tracks().end {
                return None;
            }
        }
    }

    /// Returns whether a track has out-of-date replicas that may be written.
    fn is_out_of_date(&self, track: usize) -> bool {
        let on = self.tpl.stale(BlockHome { track, index: 0 });
        on.take_while(|(home, _)| home.track == track)
            .any(|(home, current)| self.missing(home, current) != 0)
    }

    fn next_stale(&self, from: usize) -> Option<usize> {
        let mut stale = self.tpl.stale(BlockHome {
            track: from,
            index: 0,
        });
        let found = stale.find(|(home, current)| self.missing(*home, *current) != 0);
        found.map(|(home, _)| home.track)
    }

    fn missing(&self, home: BlockHome, current: u32) -> u32 {
        let run = BlockRun { home, blocks: 1 };
        let unwritable = self.unwritable.get(&home).copied().unwrap_or(0);
        self.tpl.writable(run) & !current & !unwritable
    }

    fn to_split(&self, from: usize) -> Option<usize> {
        let most = self.tpl.header().bounds.most();
        let mut from = from;
        loop {
            let track = self.tpl.splittable(from, most)?;
            if !self.next.given_up.contains(&track) {
                return Some(track);
            }
            from = track + 1;
            if from >= self.tpl.shape().tracks().end {
                return None;
            }
        }
    }

    /// Abandons tracks that have been filled but could not be split.
    fn give_up_filled(&mut self) {
        let first = self.tpl.shape().tracks().start;
        while let Some(track) = self.tpl.filled(first) {
            self.tpl.discard_fill(track);
            self.next.given_up.insert(track);
        }
    }
}

impl<M: MemberClock> ReplicatedVolume<M> {
    /// Returns the time at which work is due if no request arrives before then; `None` while
    /// requests are outstanding, when nothing is left to do, or if the volume is stopped or
    /// read-only.
    pub fn due(&self) -> Option<SimTime> {
        let state = self.state();
        let may = self.check_writable().is_ok() && state.outstanding == 0;
        let (_, after) = state.job(self.revolution, false).filter(|_| may)?;
        Some(state.last + after)
    }

    /// Does one unit of work. Returns whether there was any. Only one call may be in progress at a
    /// time.
    ///
    /// # Errors
    /// Returns an error if the volume was stopped, or if the table cannot be written.
    pub async fn work(&self) -> Result<bool, CopiesError> {
        self.check_writable()?;
        let job = self.state().job(self.revolution, false);
        self.run_job(job.map(|(job, _)| job)).await
    }

    /// Does one unit of the work required before the volume is stopped.
    pub(super) async fn settle(&self) -> Result<bool, CopiesError> {
        let job = self.state().job(self.revolution, true);
        self.run_job(job.map(|(job, _)| job)).await
    }

    async fn run_job(&self, job: Option<Job>) -> Result<bool, CopiesError> {
        let Some(job) = job else { return Ok(false) };
        let (track, done) = match job {
            Job::Sync(track) => (track, self.sync(track).await),
            Job::Rewrite(home) => (home.track, self.rewrite(home).await),
            Job::Resync(track) => (track, self.resync(track).await),
            Job::Split => {
                let done = self.split_some().await;
                (self.state().next.filling.0, done)
            }
            Job::Close(track) => (track, self.close(track).await),
        };
        match done {
            Err(error) if self.is_broken.load(Ordering::SeqCst) => Err(error),
            Err(_) => {
                let mut state = self.state();
                state.next.given_up.insert(track);
                if job == Job::Split {
                    state.give_up_filled();
                }
                Ok(true)
            }
            Ok(()) => Ok(true),
        }
    }

    /// Updates the replicas on a track. Consecutive blocks are updated together.
    async fn sync(&self, track: usize) -> Result<(), CopiesError> {
        let home = BlockHome { track, index: 0 };
        let _page = self.page(BlockRun { home, blocks: 1 }).read().await;
        let _track = self.track(track).upgradable_read().await;
        let groups: Vec<(BlockRun, u32)> = {
            let mut state = self.state();
            state.next.sync = track + 1;
            let on = state.tpl.stale(home);
            let on = on.take_while(|(home, _)| home.track == track);
            groups(on.map(|(home, current)| (home, state.missing(home, current))))
        };
        for (run, missing) in groups {
            if self.update_replicas(run, missing, true).await.is_ok() {
                continue;
            }
            // A block of the run cannot be read, so nothing was written. The others are updated one
            // by one.
            for home in run.homes() {
                let one = BlockRun { home, blocks: 1 };
                if let Err(error) = self.update_replicas(one, missing, true).await {
                    *self.state().unwritable.entry(home).or_default() |= missing;
                    if self.is_broken.load(Ordering::SeqCst) {
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    }

    /// Rewrites the current replicas of a block that could be read only sector by sector.
    async fn rewrite(&self, home: BlockHome) -> Result<(), CopiesError> {
        let run = BlockRun { home, blocks: 1 };
        let _page = self.page(run).read().await;
        let _track = self.track(home.track).write().await;
        let (block, places) = {
            let mut state = self.state();
            // It is gone if it was written or discarded in the meantime.
            let Some(block) = state.rebuilt_blocks.remove(&home) else {
                return Ok(());
            };
            let mask = state.tpl.current(run);
            let places: Vec<_> = state.tpl.places(run, mask).map(|(_, lbn)| lbn).collect();
            (block, places)
        };
        self.write_all(&places, &block, true).await?;
        self.repaired
            .fetch_add(places.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Makes the replicas on a track equal to the first ones.
    async fn resync(&self, track: usize) -> Result<(), CopiesError> {
        let home = BlockHome { track, index: 0 };
        let _plans = self.plans.lock().await;
        let _page = self.page(BlockRun { home, blocks: 1 }).read().await;
        let _track = self.track(track).upgradable_read().await;
        let plan = self.state().tpl.resync(track)?;
        self.carry_out(plan, true).await
    }

    /// Does one step of splitting tracks: chooses a track to fill, fills a place on it, or, once
    /// all splittable tracks of a page of the table have been filled, writes that page.
    async fn split_some(&self) -> Result<(), CopiesError> {
        let (track, step) = {
            let mut state = self.state();
            let (track, steps) = &mut state.next.filling;
            (*track, steps.pop())
        };
        let home = |track| BlockHome { track, index: 0 };
        if let Some(step) = step {
            let run = BlockRun {
                home: home(track),
                blocks: 1,
            };
            let _page = self.page(run).read().await;
            let _track = self.track(track).upgradable_read().await;
            if self.state().tpl.is_filled(track) {
                let done = self.perform(&step, true).await;
                if done.is_err() {
                    let mut state = self.state();
                    state.tpl.discard_fill(track);
                    state.next.filling.1.clear();
                }
                return done;
            }
            self.state().next.filling.1.clear();
            return Ok(());
        }
        let (next, filled) = {
            let state = self.state();
            let first = state.tpl.shape().tracks().start;
            let next = state.to_split(state.next.split);
            (
                next.or_else(|| state.to_split(first)),
                state.tpl.filled(first),
            )
        };
        if let Some(filled) = filled {
            let page = self.state().tpl.page(filled);
            if next.is_none_or(|next| !page.contains(&next)) {
                let _plans = self.plans.lock().await;
                let run = BlockRun {
                    home: home(filled),
                    blocks: 1,
                };
                let _page = self.page(run).write().await;
                let plan = {
                    let mut state = self.state();
                    let still = state.tpl.filled(page.start);
                    if still.is_some_and(|track| page.contains(&track)) {
                        state.tpl.split(page.start)?
                    } else {
                        None
                    }
                };
                return match plan {
                    Some(plan) => self.carry_out(plan, true).await,
                    None => Ok(()),
                };
            }
        }
        let Some(next) = next else { return Ok(()) };
        let run = BlockRun {
            home: home(next),
            blocks: 1,
        };
        let _page = self.page(run).read().await;
        let _track = self.track(next).upgradable_read().await;
        let mut state = self.state();
        state.next.split = next;
        state.next.filling = (next, Vec::new());
        let mut steps = state.tpl.fill(next)?;
        steps.reverse();
        state.next.filling.1 = steps;
        Ok(())
    }

    /// Closes the page of a track.
    async fn close(&self, track: usize) -> Result<(), CopiesError> {
        let home = BlockHome { track, index: 0 };
        let _plans = self.plans.lock().await;
        let _page = self.page(BlockRun { home, blocks: 1 }).write().await;
        let plan = {
            let mut state = self.state();
            if state.tpl.closable(track) == Some(track) {
                state.tpl.close(track)?
            } else {
                None
            }
        };
        match plan {
            Some(plan) => self.carry_out(plan, true).await,
            None => Ok(()),
        }
    }
}

/// Groups consecutive blocks of a track that have the same mask into runs. Omits blocks with an
/// empty mask.
pub(super) fn groups(blocks: impl Iterator<Item = (BlockHome, u32)>) -> Vec<(BlockRun, u32)> {
    let mut groups: Vec<(BlockRun, u32)> = Vec::new();
    for (home, mask) in blocks.filter(|(_, mask)| *mask != 0) {
        match groups.last_mut() {
            Some((run, same))
                if *same == mask
                    && run.home.track == home.track
                    && run.home.index + run.blocks == home.index =>
            {
                run.blocks += 1;
            }
            _ => groups.push((BlockRun { home, blocks: 1 }, mask)),
        }
    }
    groups
}
