//! Background operations on tracks: fill and split, merge, trim, synchronize, close.

use std::ops::Range;

use super::format;
use super::plan::{Change, DeviceStep, TablePlan};
use super::{BlockHome, BlockRun, PartitionCount, Tpl, TplError, TrackState, home};
use traxtent_units::Lbn;

impl Tpl {
    /// Returns the steps that fill the free places of a track with the replicas for twice as many
    /// partitions: the first half of a split.
    ///
    /// Nothing relies on these replicas until [`Tpl::split`]. Requests can therefore be served
    /// between the steps. A change of the track in the meantime cancels the filling: see
    /// [`Tpl::is_filled`].
    ///
    /// # Errors
    /// Returns an error if the track already has the most partitions, if its data leaves no space,
    /// if not all its replicas are current, or if a plan for it is in progress.
    pub fn fill(&mut self, track: usize) -> Result<Vec<DeviceStep>, TplError> {
        if self.busy.as_ref().is_some_and(|busy| busy.contains(&track)) {
            return Err(TplError::Busy);
        }
        let state = self.track(track);
        let not = |why| TplError::NotSplit {
            track,
            count: state.count.get(),
            why,
        };
        let bounds = self.header.bounds;
        let doubled = state
            .count
            .doubled()
            .filter(|count| *count <= bounds.most());
        let doubled = doubled.ok_or_else(|| not("it already has the largest number"))?;
        if doubled > state.allowed(bounds) {
            return Err(not("its data leaves too little free space"));
        }
        if self.is_suspect(track) || self.has_stale(track) {
            return Err(not("some of its replicas are stale"));
        }
        self.filled.insert(track);
        let step = |(first, blocks): (BlockHome, u32)| {
            let replicas: Vec<Lbn> = self.shape.replica_lbns(first, doubled).collect();
            DeviceStep::Copy {
                from: replicas[0],
                to: replicas.into_iter().skip(1).step_by(2).collect(),
                sectors: self.shape.sectors(blocks),
            }
        };
        Ok(self.held(track).into_iter().map(step).collect())
    }

    /// Returns whether a track passed to [`Tpl::fill`] is unchanged since then. If not, its
    /// remaining steps must not be carried out.
    pub fn is_filled(&self, track: usize) -> bool {
        self.filled.contains(&track)
    }

    /// Returns the first filled track at or after `from`.
    pub fn filled(&self, from: usize) -> Option<usize> {
        self.filled.range(from..).next().copied()
    }

    /// Abandons the filling of a track.
    pub fn discard_fill(&mut self, track: usize) {
        self.filled.remove(&track);
    }

    /// Returns a plan that doubles the number of partitions of the filled tracks on one page of the
    /// table: the first page that has any, starting from the page of track `from`. Returns `None`
    /// if there is no such page. The steps of [`Tpl::fill`] must be complete for all of these
    /// tracks.
    ///
    /// # Errors
    /// Returns an error if a plan is in progress.
    pub fn split(&mut self, from: usize) -> Result<Option<TablePlan>, TplError> {
        let (page, _) = self.page_of(from);
        let Some(&first) = self.filled.range(self.tracks_of(page).start..).next() else {
            return Ok(None);
        };
        self.check_idle()?;
        let (number, _) = self.page_of(first);
        let busy = self.tracks_of(number);
        let mut page = self.pages[number as usize].clone();
        for &track in self.filled.range(busy.clone()) {
            let state = self.track(track);
            let split = TrackState {
                count: state.count.doubled().expect("filled tracks can be split"),
                ..state
            };
            page.set(track - busy.start, split, busy.len());
        }
        let plan = self.change(number, page, Vec::new(), Vec::new(), busy.start)?;
        self.busy = Some(busy);
        Ok(Some(plan))
    }

    /// Returns a plan that halves the number of partitions of a track. Replicas do not move.
    ///
    /// # Errors
    /// Returns an error if the track has the fewest partitions, or if a plan is in progress.
    pub fn merge(&mut self, track: usize) -> Result<TablePlan, TplError> {
        self.check_idle()?;
        let state = self.track(track);
        let halved = state.count.halved();
        let halved = halved.filter(|count| *count >= self.header.bounds.least());
        let halved = halved.ok_or(TplError::InvalidValue {
            name: "the number of partitions of the track to merge",
            value: state.count.get().into(),
            expected: "more than the lower bound",
        })?;
        let (number, index) = self.page_of(track);
        let mut page = self.pages[number as usize].clone();
        let merged = TrackState {
            count: halved,
            ..state
        };
        page.set(index, merged, format::tracks(&self.header, number));
        let (mut steps, mut synced) = (Vec::new(), Vec::new());
        self.keep_first_copies(track, &mut steps, &mut synced);
        self.change(number, page, steps, synced, track)
    }

    /// Returns the next plan that discards blocks of a range, until there is none. Each plan covers
    /// one page of the table. Only blocks that make up all of a layer on a track are discarded.
    /// They then read as zeros.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Tpl::runs`], or if a plan is in progress.
    pub fn trim(&mut self, blocks: Range<u64>) -> Result<Option<TablePlan>, TplError> {
        let runs = self.runs(blocks)?;
        let whole = |run: &&BlockRun| {
            let layer = self.layer(run.home);
            let indices = self.shape.layer_on(run.home.track, layer);
            let given = run.home.index..run.home.index + run.blocks;
            given == indices && self.holds(run.home)
        };
        let whole_layers: Vec<BlockRun> = runs.iter().filter(whole).copied().collect();
        let Some(first) = whole_layers.first() else {
            return Ok(None);
        };
        self.check_idle()?;
        let (number, _) = self.page_of(first.home.track);
        let mut page = self.pages[number as usize].clone();
        let same_page = |run: &&BlockRun| self.page_of(run.home.track).0 == number;
        let tracks = format::tracks(&self.header, number);
        for run in whole_layers.iter().filter(same_page) {
            let (_, index) = self.page_of(run.home.track);
            let bits = page.get(index);
            let state =
                TrackState::decode(bits, self.header.bounds).expect("entries in memory are valid");
            let less = TrackState {
                used: state.used & !(1 << self.layer(run.home)),
                ..state
            };
            page.set(index, less, tracks);
        }
        let busy = self.tracks_of(number);
        let plan = self.change(number, page, Vec::new(), Vec::new(), busy.start)?;
        self.busy = Some(busy);
        Ok(Some(plan))
    }

    /// Returns the first track at or after `from` that a crash left with replicas that may differ.
    pub fn suspect(&self, from: usize) -> Option<usize> {
        let (page, index) =
            self.page_of(from.clamp(self.shape.tracks().start, self.shape.tracks().end - 1));
        let pages = self.unsynced.range(page..);
        pages
            .filter_map(|(number, suspect)| {
                let skip = if *number == page { index } else { 0 };
                let within = suspect.iter().skip(skip).position(|suspect| *suspect)?;
                Some(self.tracks_of(*number).start + skip + within)
            })
            .next()
    }

    /// Returns a plan that makes the replicas of a track equal to the first ones, after a crash
    /// left it with replicas that may differ.
    ///
    /// # Errors
    /// Returns an error if the track is not in this state, or if a plan is in progress.
    pub fn resync(&mut self, track: usize) -> Result<TablePlan, TplError> {
        self.check_idle()?;
        if !self.is_suspect(track) {
            return Err(TplError::InvalidValue {
                name: "the track to resynchronize",
                value: track as u64,
                expected: "a track left unsynchronized by a crash",
            });
        }
        let count = self.track(track).count;
        let mut steps = Vec::new();
        for (first, blocks) in self.held(track) {
            let replicas: Vec<Lbn> = self.shape.replica_lbns(first, count).collect();
            if let [from, others @ ..] = &replicas[..]
                && !others.is_empty()
            {
                steps.push(DeviceStep::Copy {
                    from: *from,
                    to: others.to_vec(),
                    sectors: self.shape.sectors(blocks),
                });
            }
        }
        self.busy = Some(track..track + 1);
        Ok(TablePlan {
            steps,
            change: Change::Equal { track },
        })
    }

    /// Finds the first open page of the table whose replicas are all current, starting from the
    /// page of track `from`. Returns the first track of that page.
    pub fn closable(&self, from: usize) -> Option<usize> {
        let (first, _) = self.page_of(from.max(self.shape.tracks().start));
        let closable = |number: &u32| {
            let tracks = self.tracks_of(*number);
            self.pages[*number as usize].open
                && !self.unsynced.contains_key(number)
                && self
                    .stale(home(tracks.start))
                    .next()
                    .is_none_or(|(home, _)| home.track >= tracks.end)
        };
        let number = (first..self.pages.len() as u32).find(closable)?;
        Some(self.tracks_of(number).start)
    }

    /// Returns a plan that closes the page of [`Tpl::closable`], if there is one. After that, a
    /// crash leaves nothing to synchronize there.
    ///
    /// # Errors
    /// Returns an error if a plan is in progress.
    pub fn close(&mut self, from: usize) -> Result<Option<TablePlan>, TplError> {
        let Some(track) = self.closable(from) else {
            return Ok(None);
        };
        let (number, _) = self.page_of(track);
        self.check_idle()?;
        let mut page = self.pages[number as usize].clone();
        page.open = false;
        let busy = self.tracks_of(number);
        let plan = self.change(number, page, Vec::new(), Vec::new(), busy.start)?;
        // No block of the page may be written while the plan is in progress. Afterwards, the page
        // must first be opened again.
        self.busy = Some(busy);
        Ok(Some(plan))
    }

    /// Returns the first track at or after `from` that has fewer partitions than its data leaves
    /// space for and `most` allows. Filled tracks, tracks with stale replicas, and tracks that a
    /// crash left with replicas that may differ are skipped.
    pub fn splittable(&self, from: usize, most: PartitionCount) -> Option<usize> {
        let tracks = from.max(self.shape.tracks().start)..self.shape.tracks().end;
        let wants = |bits: u16| {
            let state =
                TrackState::decode(bits, self.header.bounds).expect("entries in memory are valid");
            state.count < state.allowed(self.header.bounds).min(most)
        };
        let mut track = tracks.start;
        while track < tracks.end {
            let (number, index) = self.page_of(track);
            let page = &self.pages[number as usize];
            let end = self.tracks_of(number).end;
            if page.memory() == 0 && !wants(page.get(index)) {
                track = end;
                continue;
            }
            let found = (track..end).find(|track| {
                wants(page.get(self.page_of(*track).1))
                    && !self.is_suspect(*track)
                    && !self.has_stale(*track)
                    && !self.filled.contains(track)
            });
            if found.is_some() {
                return found;
            }
            track = end;
        }
        None
    }
}
