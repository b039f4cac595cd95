//! What is done while nobody waits: copies brought up to date, what a crash has left made equal, tracks split, pages of the
//! table closed.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::{Clocked, Copies, CopiesError, State};
use crate::layout::tpl::{Home, Run, Step, Tpl};
use crate::units::{SimTime, Span};

/// So long nobody may have asked for anything before the sisters of what was written are, as the head passes: less than the
/// way to the next copy, and more than a client takes to go on.
const PASSING_AFTER: Span = Span(500_000_000);

/// So long nobody may have asked for anything before pages of the table are closed, in revolutions: the next write on a page
/// has to open it again.
const CLOSING_AFTER: u64 = 250;

/// How far the work has come.
#[derive(Debug)]
pub(super) struct Next {
    /// The next track to bring up to date, and to split.
    sync: usize,
    split: usize,
    /// A track that is being filled, and what is left to be done for it, the next last.
    filling: (usize, Vec<Step>),
    /// Tracks that could not be worked on.
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

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Job {
    /// Bring a track's copies up to date.
    Sync(usize),
    /// Write a block anew that no copy has as a whole.
    Mend(Home),
    /// Make a track's copies equal that a crash has left.
    Resync(usize),
    /// Go on with the splitting of tracks.
    Split,
    /// Close the page of a track.
    Close(usize),
}

impl State {
    /// The next thing to do, and how long nobody must have asked for anything before it; `settling`, if the volume is to be
    /// stopped.
    fn job(&self, revolution: Span, settling: bool) -> Option<(Job, Span)> {
        let first = self.tpl.shape().tracks().start;
        if let Some(track) = self.track.filter(|track| self.is_behind(*track)) {
            return Some((Job::Sync(track), PASSING_AFTER.min(revolution)));
        }
        let behind = self.next_behind(self.next.sync);
        if let Some(track) = behind.or_else(|| self.next_behind(first)) {
            return Some((Job::Sync(track), revolution));
        }
        if let Some(home) = self.mend.keys().next() {
            return Some((Job::Mend(*home), revolution));
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
                return Some((Job::Close(track), Span(revolution.0 * CLOSING_AFTER)));
            }
            from = self.tpl.page(track).end;
            if from >= self.tpl.shape().tracks().end {
                return None;
            }
        }
    }

    /// Whether a track has copies that are behind and may be written.
    fn is_behind(&self, track: usize) -> bool {
        let on = self.tpl.stale(Home { track, index: 0 });
        on.take_while(|(home, _)| home.track == track)
            .any(|(home, current)| self.missing(home, current) != 0)
    }

    fn next_behind(&self, from: usize) -> Option<usize> {
        let mut stale = self.tpl.stale(Home {
            track: from,
            index: 0,
        });
        let found = stale.find(|(home, current)| self.missing(*home, *current) != 0);
        found.map(|(home, _)| home.track)
    }

    fn missing(&self, home: Home, current: u32) -> u32 {
        let run = Run { home, blocks: 1 };
        let hopeless = self.hopeless.get(&home).copied().unwrap_or(0);
        self.tpl.writable(run) & !current & !hopeless
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

    /// Gives up what has been filled, and could not be split.
    fn give_up_filled(&mut self) {
        let first = self.tpl.shape().tracks().start;
        while let Some(track) = self.tpl.filled(first) {
            self.tpl.unfill(track);
            self.next.given_up.insert(track);
        }
    }
}

impl<M: Clocked> Copies<M> {
    /// When work is due, if nobody asks for anything before; nothing, while requests are under way or all is done.
    pub fn due(&self) -> Option<SimTime> {
        let state = self.state();
        let may = self.check_writable().is_ok() && state.asked == 0;
        let (_, after) = state.job(self.revolution, false).filter(|_| may)?;
        Some(state.last + after)
    }

    /// Does a bit of what is to be done; says whether there was any. By one at a time.
    ///
    /// # Errors
    /// If the table cannot be written.
    pub async fn work(&self) -> Result<bool, CopiesError> {
        self.check_writable()?;
        let job = self.state().job(self.revolution, false);
        self.carry_on(job.map(|(job, _)| job)).await
    }

    /// Does a bit of what is to be done before the volume is stopped.
    pub(super) async fn settle(&self) -> Result<bool, CopiesError> {
        let job = self.state().job(self.revolution, true);
        self.carry_on(job.map(|(job, _)| job)).await
    }

    async fn carry_on(&self, job: Option<Job>) -> Result<bool, CopiesError> {
        let Some(job) = job else { return Ok(false) };
        let (track, done) = match job {
            Job::Sync(track) => (track, self.sync(track).await),
            Job::Mend(home) => (home.track, self.mend(home).await),
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

    /// Brings the copies on a track up to date, those of blocks behind one another in one go.
    async fn sync(&self, track: usize) -> Result<(), CopiesError> {
        let home = Home { track, index: 0 };
        let _page = self.page(Run { home, blocks: 1 }).read().await;
        let _track = self.track(track).upgradable_read().await;
        let groups: Vec<(Run, u32)> = {
            let mut state = self.state();
            state.next.sync = track + 1;
            let on = state.tpl.stale(home);
            let on = on.take_while(|(home, _)| home.track == track);
            groups(on.map(|(home, current)| (home, state.missing(home, current))))
        };
        for (run, missing) in groups {
            if let Err(error) = self.bring(run, missing, true).await {
                // Nobody can read it: there is nothing to write.
                let mut state = self.state();
                for home in run.homes() {
                    *state.hopeless.entry(home).or_default() |= missing;
                }
                if self.is_broken.load(Ordering::SeqCst) {
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Writes all copies of a block that no copy has as a whole.
    async fn mend(&self, home: Home) -> Result<(), CopiesError> {
        let run = Run { home, blocks: 1 };
        let _page = self.page(run).read().await;
        let _track = self.track(home.track).write().await;
        let (block, places) = {
            let mut state = self.state();
            // Gone, if it was written or given up meanwhile.
            let Some(block) = state.mend.remove(&home) else {
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

    /// Makes the copies on a track equal to the first ones.
    async fn resync(&self, track: usize) -> Result<(), CopiesError> {
        let home = Home { track, index: 0 };
        let _plans = self.plans.lock().await;
        let _page = self.page(Run { home, blocks: 1 }).read().await;
        let _track = self.track(track).upgradable_read().await;
        let plan = self.state().tpl.resync(track)?;
        self.carry_out(plan, true).await
    }

    /// Fills a place of a track that is to be split, or writes the page of the table whose tracks have all been filled.
    async fn split_some(&self) -> Result<(), CopiesError> {
        let (track, step) = {
            let mut state = self.state();
            let (track, steps) = &mut state.next.filling;
            (*track, steps.pop())
        };
        let home = |track| Home { track, index: 0 };
        if let Some(step) = step {
            let run = Run {
                home: home(track),
                blocks: 1,
            };
            let _page = self.page(run).read().await;
            let _track = self.track(track).upgradable_read().await;
            if self.state().tpl.is_filled(track) {
                let done = self.perform(&step, true).await;
                if done.is_err() {
                    let mut state = self.state();
                    state.tpl.unfill(track);
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
                let run = Run {
                    home: home(filled),
                    blocks: 1,
                };
                let _page = self.page(run).write().await;
                let plan = {
                    let mut state = self.state();
                    let still = state.tpl.filled(page.start);
                    match still.is_some_and(|track| page.contains(&track)) {
                        true => state.tpl.split(page.start)?,
                        false => None,
                    }
                };
                return match plan {
                    Some(plan) => self.carry_out(plan, true).await,
                    None => Ok(()),
                };
            }
        }
        let Some(next) = next else { return Ok(()) };
        let run = Run {
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
        let home = Home { track, index: 0 };
        let _plans = self.plans.lock().await;
        let _page = self.page(Run { home, blocks: 1 }).write().await;
        let plan = {
            let mut state = self.state();
            match state.tpl.closable(track) == Some(track) {
                true => state.tpl.close(track)?,
                false => None,
            }
        };
        match plan {
            Some(plan) => self.carry_out(plan, true).await,
            None => Ok(()),
        }
    }
}

/// Blocks behind one another that have the same mask, as runs.
pub(super) fn groups(blocks: impl Iterator<Item = (Home, u32)>) -> Vec<(Run, u32)> {
    let mut groups: Vec<(Run, u32)> = Vec::new();
    for (home, mask) in blocks.filter(|(_, mask)| *mask != 0) {
        match groups.last_mut() {
            Some((run, same))
                if *same == mask
                    && run.home.track == home.track
                    && run.home.index + run.blocks == home.index =>
            {
                run.blocks += 1;
            }
            _ => groups.push((Run { home, blocks: 1 }, mask)),
        }
    }
    groups
}
