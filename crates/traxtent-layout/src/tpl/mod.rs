//! The track partition layout: replicas of blocks around their tracks, which divide the mean
//! rotational latency by their number (paper P: Li Xiao and Tan Yu-An, "TPL: A Data Layout Method
//! for Reducing Rotational Latency of Modern Hard Disk Drive", sections 2 and 5).
//!
//! A track is divided into `m` partitions with the same blocks. The nearest replica is therefore
//! `1 / 2m` revolutions away on average. The drive needs no changes: the host places replicas
//! according to a track map, and chooses among them by predicting when each passes under the head
//! ([`HeadTracker`]). The capacity is divided by the smallest number of partitions that a track may
//! have.
//!
//! - [`ReplicaMap`] computes the places of blocks and their replicas, without memory per block.
//! - [`Tpl`] keeps the *table*: how many partitions each track has, which of its layers are in use,
//!   and which replicas of which blocks are current. It does no I/O. For changes of the table it
//!   makes [`TablePlan`]s.
//! - [`HeadTracker`] predicts the angle of the platter and chooses among replicas.
//! - [`mod@format`] defines the on-device format of the table.
//!
//! # Guarantees
//! - A read of the replicas in [`Tpl::current`] never sees stale data, whatever was written,
//!   synchronized, split, merged, or lost in a power failure. This assumes that a write that was
//!   not flushed leaves each sector either old or new.
//! - After a loss of power, data that had been flushed ([`Tpl::before_flush`]) is present. Other
//!   data is old or new, sector by sector, and does not change back.
//! - No run that is as long as a partition contains two replicas of a block.
//! - A page of the table is durable before anything that relies on it is written. There are two
//!   copies of it, and the first copy is durable before the second is changed.
//!
//! # Design
//! The first replica of each block is the one that is valid after a crash. Before replicas of a
//! block may differ, its page of the table is marked as *open*. When a layout with open pages is
//! opened, only the first replicas are trusted on each track of those pages, until the track has
//! been synchronized ([`Tpl::resync`]). Writes may therefore go to the nearest replica:
//! [`Tpl::before_flush`] lists the blocks whose first replica is out of date. A page is closed when
//! all replicas are equal and flushed.
//!
//! A track is merged by changing its table entry alone, since the remaining replicas have not
//! moved. A track is split by filling the places in between, which hold nothing, and then changing
//! its entry. Many tracks are filled one after another, while requests are served, and then their
//! entries are written together. A layer of a track is zeroed before it comes into use. A block
//! therefore never exposes earlier contents of another block.
//!
//! # Duties of the executor
//! One plan at a time; no write to a track while a plan for it is in progress; requests for one
//! block one after another.
//!
//! # Left out
//! Trims of less than a layer's share of a track have no effect. On a track with fewer than `m`
//! blocks, none of them has a place with `m` partitions. A track whose sectors are not all in order
//! (slipped defects) has replicas that are not quite evenly spaced.

mod count;
mod error;
pub mod format;
mod open;
mod plan;
mod rearrange;
mod shape;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

pub use count::{PartitionBounds, PartitionCount};
pub use error::TplError;
pub use open::Opened;
pub use plan::{DeviceStep, TablePlan};
pub use shape::{BlockHome, ReplicaMap};
pub use table::TrackState;
pub use traxtent_map::head::{Accuracy, Choice, HeadTracker, PositioningCurve, Survey};

use format::Header;
use plan::Change;
use table::Page;
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};

/// The parameters of a new layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The ID that distinguishes the layout from earlier contents of the device. Use a new one each
    /// time.
    pub id: u64,
    /// The size of a logical sector in bytes.
    pub sector_bytes: u32,
    /// The number of sectors that the device writes atomically: a page of the table.
    pub page_sectors: u32,
    /// The number of sectors per block.
    pub block_sectors: u32,
    /// The smallest and largest number of partitions of a track.
    pub bounds: PartitionBounds,
    /// The number of regions, which are filled one after another: see [`ReplicaMap`].
    pub regions: u16,
}

/// The number of regions of a device on which the number of partitions adapts to the free space.
/// Two replicas are worthwhile as long as they do not spread data over more than a quarter of a
/// drive (docs/results/tpl.md, "Partitions that follow free space").
pub const REGIONS: u16 = 4;

/// A track partition layout. See [the module](self).
#[derive(Clone, Debug)]
pub struct Tpl {
    header: Header,
    shape: ReplicaMap,
    /// The first LBN of each copy of the table.
    areas: [Lbn; 2],
    pages: Vec<Page>,
    /// For each block with stale replicas: the replicas that are current.
    stale: BTreeMap<BlockHome, u32>,
    /// For each page that a crash left open: for each of its tracks, whether only the first
    /// replicas are trusted.
    unsynced: BTreeMap<u32, Vec<bool>>,
    /// Tracks whose free positions hold, or are being filled with, the replicas for twice as many
    /// partitions.
    filled: BTreeSet<usize>,
    /// The tracks that the plan in progress affects.
    busy: Option<Range<usize>>,
}

/// Consecutive blocks of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRun {
    /// The home of the first block.
    pub home: BlockHome,
    /// The number of blocks.
    pub blocks: u32,
}

impl BlockRun {
    /// Returns the home of each block.
    pub fn homes(self) -> impl Iterator<Item = BlockHome> {
        let indices = self.home.index..self.home.index + self.blocks;
        indices.map(move |index| BlockHome { index, ..self.home })
    }
}

impl Tpl {
    /// Creates an empty layout on the whole tracks within a range of LBNs. Also returns the steps
    /// that write it, in order.
    ///
    /// # Errors
    /// Returns an error if a value is out of bounds, if the map does not cover the range, if the
    /// range is too small, or if no track has a block for each partition of the largest count.
    pub fn format(
        map: impl Into<Arc<TrackMap>>,
        range: Range<Lbn>,
        config: &Config,
    ) -> Result<(Tpl, Vec<DeviceStep>), TplError> {
        let map = map.into();
        let place = open::LayoutPositions::new(&map, range, config)?;
        let header = place.header(&map, config);
        header.check()?;
        let shape = ReplicaMap::new(
            map,
            place.data,
            config.block_sectors,
            config.bounds,
            config.regions,
        )?;
        let pages = vec![Page::empty(config.bounds); header.pages() as usize];
        let tpl = Tpl {
            header,
            shape,
            areas: place.areas,
            pages,
            stale: BTreeMap::new(),
            unsynced: BTreeMap::new(),
            filled: BTreeSet::new(),
            busy: None,
        };
        let mut steps = Vec::new();
        for copy in 0..2 {
            // The header is written last, so that an unfinished layout is not recognized.
            let pages = 0..tpl.pages.len() as u32;
            steps.extend(
                pages.map(|number| tpl.table_step(copy, number, &tpl.pages[number as usize])),
            );
            steps.push(DeviceStep::Flush);
            steps.push(DeviceStep::Table {
                lbn: tpl.areas[copy],
                bytes: header.encode(),
            });
            steps.push(DeviceStep::Flush);
        }
        Ok((tpl, steps))
    }

    /// Returns the mapping of blocks to places.
    pub fn shape(&self) -> &ReplicaMap {
        &self.shape
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the state of a data track according to the table.
    pub fn track(&self, track: usize) -> TrackState {
        let (page, index) = self.page_of(track);
        let bits = self.pages[page as usize].get(index);
        TrackState::decode(bits, self.header.bounds).expect("entries in memory are valid")
    }

    /// Returns the tracks whose entries share a page of the table with the entry of `track`.
    pub fn page(&self, track: usize) -> Range<usize> {
        self.tracks_of(self.page_of(track).0)
    }

    /// Returns the memory in bytes that the table takes, without the map and without the record of
    /// stale replicas.
    pub fn memory(&self) -> usize {
        let pages: usize = self.pages.iter().map(Page::memory).sum();
        self.pages.capacity() * size_of::<Page>() + pages + self.shape.memory()
    }

    /// Splits a range of blocks into runs, each on one track and in one layer.
    ///
    /// # Errors
    /// Returns an error if the range is empty, or if the layout does not have all of its blocks.
    pub fn runs(&self, blocks: Range<u64>) -> Result<Vec<BlockRun>, TplError> {
        if blocks.is_empty() || blocks.end > self.shape.blocks() {
            return Err(TplError::NoSuchBlock {
                from: blocks.start,
                to: blocks.end,
                blocks: self.shape.blocks(),
            });
        }
        let mut runs = Vec::new();
        let mut next = blocks.start;
        while next < blocks.end {
            let home = self.shape.home(next).expect("within the layout");
            let layer = self.layer(home);
            let layer_rest = self.shape.layer_on(home.track, layer).end - home.index;
            let count = (blocks.end - next).min(layer_rest.into());
            runs.push(BlockRun {
                home,
                blocks: count as u32,
            });
            next += count;
        }
        Ok(runs)
    }

    /// Returns whether a block's layer on its track holds data. If not, the block consists of
    /// zeros, and its replicas must not be read from the device.
    pub fn holds(&self, home: BlockHome) -> bool {
        self.track(home.track).holds(self.layer(home))
    }

    /// Returns the replicas that are current for all blocks of a run: bit `k` is replica `k`. If
    /// the result is 0, the blocks have different current replicas; query each block alone.
    pub fn current(&self, run: BlockRun) -> u32 {
        if self.is_suspect(run.home.track) {
            return 1;
        }
        let all = all_replicas(self.track(run.home.track).count);
        let stale = self.stale.range(run.home..end(run));
        stale.fold(all, |mask, (_, current)| mask & current)
    }

    /// Returns the replicas that a write may update.
    pub fn writable(&self, run: BlockRun) -> u32 {
        if self.is_suspect(run.home.track) {
            1
        } else {
            all_replicas(self.track(run.home.track).count)
        }
    }

    /// Returns the first LBN of a replica of a run. The run is contiguous there.
    pub fn place(&self, run: BlockRun, replica: u32) -> Lbn {
        let count = self.track(run.home.track).count;
        self.shape.replica_lbn(run.home, count, replica)
    }

    /// Returns the replicas in a mask, with their first LBNs.
    pub fn places(&self, run: BlockRun, mask: u32) -> impl Iterator<Item = (u32, Lbn)> {
        let count = self.track(run.home.track).count;
        (0..count.get())
            .filter(move |replica| mask >> replica & 1 == 1)
            .map(move |replica| (replica, self.shape.replica_lbn(run.home, count, replica)))
    }

    /// Returns the next plan that must be carried out before blocks can be written, until there is
    /// none. The plans record in the table that replicas may differ, make space on the tracks, and
    /// initialize the blocks.
    ///
    /// # Errors
    /// Returns an error in the same cases as [`Tpl::runs`], or if a plan is in progress.
    pub fn prepare(&mut self, blocks: Range<u64>) -> Result<Option<TablePlan>, TplError> {
        let runs = self.runs(blocks)?;
        let layers: Vec<usize> = runs.iter().map(|run| self.layer(run.home)).collect();
        let bounds = self.header.bounds;
        let lacks_room = |run: &BlockRun, layer: usize| {
            let (number, _) = self.page_of(run.home.track);
            let count = self.track(run.home.track).count;
            !self.pages[number as usize].open || count > bounds.count_of(layer)
        };
        let all = || runs.iter().zip(layers.iter().copied());
        let first = all().find(|(run, layer)| lacks_room(run, *layer));
        let makes_room = first.is_some();
        let Some((first, _)) = first.or_else(|| all().find(|(run, _)| !self.holds(run.home)))
        else {
            return Ok(None);
        };
        self.check_idle()?;
        // All changes to the page of the table are written together.
        let (number, _) = self.page_of(first.home.track);
        let tracks = format::tracks(&self.header, number);
        let mut page = self.pages[number as usize].clone();
        page.open = true;
        let (mut steps, mut synced) = (Vec::new(), Vec::new());
        let mut busy = first.home.track..first.home.track + 1;
        for (run, layer) in all() {
            let track = run.home.track;
            let (page_number, index) = self.page_of(track);
            if page_number != number {
                continue;
            }
            let state =
                TrackState::decode(page.get(index), bounds).expect("entries in memory are valid");
            let mut new = state;
            if makes_room {
                new.count = state.count.min(bounds.count_of(layer));
                if new != state && state == self.track(track) {
                    self.keep_first_copies(track, &mut steps, &mut synced);
                }
            } else if !state.holds(layer) {
                new.used |= 1 << layer;
                let indices = self.shape.layer_on(track, layer);
                let first = BlockHome {
                    track,
                    index: indices.start,
                };
                steps.push(DeviceStep::Zeros {
                    to: self.shape.replica_lbns(first, state.count).collect(),
                    sectors: self.shape.sectors(indices.end - indices.start),
                });
            }
            page.set(index, new, tracks);
            busy = busy.start.min(track)..busy.end.max(track + 1);
        }
        let plan = self.change(number, page, steps, synced, busy.start)?;
        self.busy = Some(busy);
        Ok(Some(plan))
    }

    /// Returns whether blocks can be written without [`Tpl::prepare`].
    pub fn is_prepared(&self, run: BlockRun) -> bool {
        let (page, _) = self.page_of(run.home.track);
        self.pages[page as usize].open && self.holds(run.home)
    }

    /// Records that blocks were written to these replicas, which are now the current ones.
    ///
    /// # Errors
    /// Returns [`TplError::Busy`] if a plan for the track is in progress; the written data may then
    /// be lost.
    ///
    /// # Panics
    /// Panics if the blocks were not prepared, or if the write went to none of the permitted
    /// replicas.
    pub fn record_write(&mut self, run: BlockRun, replicas: u32) -> Result<(), TplError> {
        let track = run.home.track;
        if self.busy.as_ref().is_some_and(|busy| busy.contains(&track)) {
            return Err(TplError::Busy);
        }
        let (page, _) = self.page_of(track);
        assert!(
            self.pages[page as usize].open && self.holds(run.home),
            "the blocks were not prepared"
        );
        let written = replicas & self.writable(run);
        assert!(written != 0, "no permitted replica was written");
        self.filled.remove(&track);
        for home in run.homes() {
            if self.is_suspect(track) || written == all_replicas(self.track(track).count) {
                self.stale.remove(&home);
            } else {
                self.stale.insert(home, written);
            }
        }
        Ok(())
    }

    /// Records that replicas of blocks were updated from a current one.
    pub fn record_sync(&mut self, run: BlockRun, replicas: u32) {
        for home in run.homes() {
            let all = all_replicas(self.track(home.track).count);
            if let Some(current) = self.stale.get_mut(&home) {
                *current |= replicas;
                if *current & all == all {
                    self.stale.remove(&home);
                }
            }
        }
    }

    /// Returns the blocks with stale replicas, starting at `from`, each with its current replicas.
    pub fn stale(&self, from: BlockHome) -> impl Iterator<Item = (BlockHome, u32)> {
        self.stale.range(from..).map(|(home, mask)| (*home, *mask))
    }

    /// Returns the number of blocks that have stale replicas.
    pub fn stale_count(&self) -> usize {
        self.stale.len()
    }

    /// Returns the blocks whose first replica must be updated before the device is flushed;
    /// otherwise a loss of power loses their data. Also returns their current replicas.
    pub fn before_flush(&self) -> impl Iterator<Item = (BlockHome, u32)> {
        self.stale(BlockHome { track: 0, index: 0 })
            .filter(|(_, current)| current & 1 == 0)
    }

    /// Records that these replicas of blocks cannot be read: they are not current until they are
    /// written again. Returns false if a block has no other current replica; nothing is changed for
    /// that block.
    #[must_use]
    pub fn record_failure(&mut self, run: BlockRun, replicas: u32) -> bool {
        let mut all_have_another = true;
        for home in run.homes() {
            let remaining = self.current(BlockRun { home, blocks: 1 }) & !replicas;
            all_have_another &= remaining != 0;
            if remaining != 0 {
                self.stale.insert(home, remaining);
            }
        }
        self.filled.remove(&run.home.track);
        all_have_another
    }

    /// Returns the current replicas except those in the mask `failed`, which cannot be read. All
    /// replicas returned hold the same data. Read it from one of them, and write it to those that
    /// failed.
    ///
    /// On a track that has not been synchronized, only the first replica is current, because the
    /// others may hold old data.
    pub fn other_replicas(&self, run: BlockRun, failed: u32) -> u32 {
        self.current(run) & !failed
    }

    /// Applies a plan's change after its steps are complete. Returns the steps to carry out, in
    /// order, before the next plan.
    pub fn commit(&mut self, plan: TablePlan) -> Vec<DeviceStep> {
        self.busy = None;
        match plan.change {
            Change::Equal { track } => {
                let (number, index) = self.page_of(track);
                if let Some(suspect) = self.unsynced.get_mut(&number) {
                    suspect[index] = false;
                    if !suspect.contains(&true) {
                        self.unsynced.remove(&number);
                    }
                }
                let stale: Vec<BlockHome> = self.stale_on(track).collect();
                for home in stale {
                    self.stale.remove(&home);
                }
                Vec::new()
            }
            Change::Page {
                number,
                page,
                synced,
            } => {
                for home in synced {
                    *self.stale.entry(home).or_default() |= 1;
                }
                let second_copy = self.table_step(1, number, &page);
                self.adopt(number, page);
                vec![second_copy]
            }
        }
    }

    /// Abandons a plan. No step that writes the table may have begun.
    pub fn abandon(&mut self, plan: TablePlan) {
        drop(plan);
        self.busy = None;
    }

    /// Replaces a page of the table, and drops the record of replicas that no longer exist.
    fn adopt(&mut self, number: u32, page: Page) {
        let tracks = self.tracks_of(number);
        let stale: Vec<BlockHome> = self
            .stale
            .range(home(tracks.start)..home(tracks.end))
            .map(|(home, _)| *home)
            .collect();
        for at in stale {
            let index = at.track - tracks.start;
            let bits = |page: &Page| TrackState::decode(page.get(index), self.header.bounds);
            let before = bits(&self.pages[number as usize]).expect("entries in memory are valid");
            let after = bits(&page).expect("the new entries are valid");
            let mask = self.stale[&at];
            let still_current = if before.count > after.count {
                every_nth_bit(mask, before.count.get() / after.count.get())
            } else {
                mask
            };
            let layer = self.layer(at);
            if !after.holds(layer) || still_current == all_replicas(after.count) {
                self.stale.remove(&at);
            } else {
                assert!(still_current != 0, "no current replica would remain");
                self.stale.insert(at, still_current);
            }
        }
        let old = std::mem::replace(&mut self.pages[number as usize], page);
        let new = &self.pages[number as usize];
        let is_same = |track: &usize| {
            let index = track.wrapping_sub(tracks.start);
            !tracks.contains(track) || old.get(index) == new.get(index)
        };
        self.filled.retain(is_same);
    }

    /// Returns the plan that writes a page of the table after other steps.
    fn change(
        &mut self,
        number: u32,
        mut page: Page,
        mut steps: Vec<DeviceStep>,
        synced: Vec<BlockHome>,
        track: usize,
    ) -> Result<TablePlan, TplError> {
        page.generation += 1;
        // The data that the page relies on, and the second copy of the last change, must be durable
        // before it.
        steps.push(DeviceStep::Flush);
        steps.push(self.table_step(0, number, &page));
        steps.push(DeviceStep::Flush);
        self.busy = Some(track..track + 1);
        Ok(TablePlan {
            steps,
            change: Change::Page {
                number,
                page,
                synced,
            },
        })
    }

    fn table_step(&self, copy: usize, number: u32, page: &Page) -> DeviceStep {
        DeviceStep::Table {
            lbn: self.page_lbn(copy, number),
            bytes: format::encode(&self.header, number, page),
        }
    }

    fn page_lbn(&self, copy: usize, number: u32) -> Lbn {
        let before = u64::from(1 + number) * u64::from(self.header.page_sectors);
        self.areas[copy] + Sectors(before)
    }

    /// Adds steps that update every stale first replica of a track, because a merge may drop the
    /// current replicas.
    fn keep_first_copies(
        &self,
        track: usize,
        steps: &mut Vec<DeviceStep>,
        synced: &mut Vec<BlockHome>,
    ) {
        for at in self.stale_on(track) {
            let current = self.stale[&at];
            if current & 1 == 0 {
                let run = BlockRun {
                    home: at,
                    blocks: 1,
                };
                steps.push(DeviceStep::Copy {
                    from: self.place(run, current.trailing_zeros()),
                    to: vec![self.place(run, 0)],
                    sectors: self.shape.sectors(1),
                });
                synced.push(at);
            }
        }
    }

    /// Returns the runs of blocks that a track holds: their first blocks and lengths.
    fn held(&self, track: usize) -> Vec<(BlockHome, u32)> {
        let state = self.track(track);
        let mut held: Vec<(BlockHome, u32)> = Vec::new();
        for layer in (0..self.header.bounds.layers()).filter(|layer| state.holds(*layer)) {
            let indices = self.shape.layer_on(track, layer);
            let size = indices.end - indices.start;
            match held.last_mut() {
                Some((first, blocks)) if first.index + *blocks == indices.start => *blocks += size,
                _ => held.push((
                    BlockHome {
                        track,
                        index: indices.start,
                    },
                    size,
                )),
            }
        }
        held
    }

    fn layer(&self, home: BlockHome) -> usize {
        self.shape.layer_of(home).expect("a block of the layout")
    }

    fn check_idle(&self) -> Result<(), TplError> {
        match self.busy {
            Some(_) => Err(TplError::Busy),
            None => Ok(()),
        }
    }

    fn is_suspect(&self, track: usize) -> bool {
        let (number, index) = self.page_of(track);
        self.unsynced
            .get(&number)
            .is_some_and(|suspect| suspect[index])
    }

    fn has_stale(&self, track: usize) -> bool {
        self.stale_on(track).next().is_some()
    }

    fn stale_on(&self, track: usize) -> impl Iterator<Item = BlockHome> {
        self.stale
            .range(home(track)..home(track + 1))
            .map(|(home, _)| *home)
    }

    /// Returns the page of a track, and the track's index there.
    fn page_of(&self, track: usize) -> (u32, usize) {
        let position = track - self.shape.tracks().start;
        let tracks_per_page = self.header.tracks_of_page();
        (
            (position / tracks_per_page) as u32,
            position % tracks_per_page,
        )
    }

    fn tracks_of(&self, page: u32) -> Range<usize> {
        let tracks_per_page = self.header.tracks_of_page();
        let first = self.shape.tracks().start + page as usize * tracks_per_page;
        first..(first + tracks_per_page).min(self.shape.tracks().end)
    }
}

/// Returns a mask with a bit for each replica.
fn all_replicas(count: PartitionCount) -> u32 {
    u32::MAX >> (32 - count.get())
}

/// Returns every `n`th bit of the mask, packed together.
fn every_nth_bit(mask: u32, n: u32) -> u32 {
    (0..32 / n).fold(0, |packed, bit| packed | (mask >> (bit * n) & 1) << bit)
}

fn home(track: usize) -> BlockHome {
    BlockHome { track, index: 0 }
}

fn end(run: BlockRun) -> BlockHome {
    BlockHome {
        index: run.home.index + run.blocks,
        ..run.home
    }
}
