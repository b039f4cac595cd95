//! Copies of blocks around their tracks, to halve the wait for them and halve it again (paper P: Li Xiao and Tan Yu-An,
//! "TPL: A Data Layout Method for Reducing Rotational Latency of Modern Hard Disk Drive", sections 2 and 5).
//!
//! A track is cut into `m` partitions with the same blocks, so that the nearest copy is `1 / 2m` revolutions away in the
//! mean. The drive knows nothing of it: copies are placed by the host, over a track map alone, and chosen by the host, which
//! predicts what passes when ([`Head`]). Capacity falls to `1 / m`; with the fewest partitions, all blocks have room.
//!
//! - [`Shape`] says where blocks and their copies lie: arithmetic, no memory a block.
//! - [`Tpl`] keeps the *table*: how many partitions each track has, which of its layers are in use, and which copies of
//!   which blocks are current. It does no I/O; it makes [`Plan`]s for what changes the table.
//! - [`Head`] predicts the angle of the platter and chooses among copies.
//! - [`mod@format`] has the bytes of the table.
//!
//! # What holds
//! - A read of the copies in [`Tpl::current`] never sees stale data, whatever was written, brought up to date, split,
//!   merged or lost with the power, provided that a write that was not flushed leaves each sector old or new.
//! - After a loss of power, what had been flushed ([`Tpl::before_flush`]) is there; what had not is old or new, sector by
//!   sector, and does not change back.
//! - No run of as many blocks as a partition has holds two copies of a block.
//! - A page of the table is durable before what relies on it is written. It lies twice, and the first copy is durable
//!   before the second is touched.
//!
//! # How
//! The first copy of each block is the one that counts after a crash. Before copies of a block may differ, its page of the
//! table is *open*; opening a layout with open pages believes the first copies there alone, until each track has been
//! brought up to date ([`Tpl::resync`]). So writes may go to the nearest copy: [`Tpl::before_flush`] names the blocks
//! whose first copy is behind. A page is closed when all copies are equal and flushed. A track is merged by its table entry
//! alone: the copies that stay have not moved. It is split by filling the places between, which hold nothing, and then its
//! entry: many
//! tracks are filled one after another, while requests are served, and then their entries are written together. Layers of a
//! track that come into use are zeroed first, so that a block never shows what another left.
//!
//! # What the executor has to keep
//! One plan at a time; no write to a track while a plan for it is under way; requests for one block one after another.
//!
//! # Left out
//! Trims of less than a layer's share of a track have no effect. Blocks of a track that has fewer than `m` of them have
//! no place with `m` partitions. A track whose sectors are not all in order on it (slipped defects) has copies that are not
//! quite evenly apart.

mod choose;
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

pub use choose::{Accuracy, Choice, Head, Reach, Survey};
pub use count::{Bounds, Count};
pub use error::TplError;
pub use open::Opened;
pub use plan::{Plan, Step};
pub use shape::{Home, Shape};
pub use table::TrackState;

use crate::trackmap::TrackMap;
use crate::units::{Lbn, Sectors};
use format::Header;
use plan::Change;
use table::Page;

/// What a layout is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Tells the layout from whatever was on the device: take another each time.
    pub id: u64,
    /// Bytes of a logical sector.
    pub sector_bytes: u32,
    /// Sectors that the device writes as one: a page of the table.
    pub page_sectors: u32,
    /// Sectors of a block.
    pub block_sectors: u32,
    /// The fewest and the most partitions of a track.
    pub bounds: Bounds,
    /// Parts of the device that are filled one after another: see [`Shape`].
    pub regions: u16,
}

/// Regions of a device whose partitions follow free space: two copies pay as long as they do not spread data over more than a
/// quarter of a drive (docs/tpl.md, "Partitions that follow free space").
pub const REGIONS: u16 = 4;

/// A layout in partitions. See [the module](self).
#[derive(Clone, Debug)]
pub struct Tpl {
    header: Header,
    shape: Shape,
    /// Where each copy of the table begins.
    areas: [Lbn; 2],
    pages: Vec<Page>,
    /// Of the blocks whose copies are not all current: those that are.
    stale: BTreeMap<Home, u32>,
    /// Of each page that a crash left open: the tracks of which only the first copies are believed.
    suspect: BTreeMap<u32, Vec<bool>>,
    /// Tracks whose free places hold the copies that twice as many partitions have, or are being given them.
    filled: BTreeSet<usize>,
    /// The track, or the page's tracks, that a plan is under way for.
    busy: Option<Range<usize>>,
}

/// Blocks that follow one another on a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Where the first lies.
    pub home: Home,
    /// How many.
    pub blocks: u32,
}

impl Run {
    /// Where each of its blocks lies.
    pub fn homes(self) -> impl Iterator<Item = Home> {
        let indices = self.home.index..self.home.index + self.blocks;
        indices.map(move |index| Home { index, ..self.home })
    }
}

impl Tpl {
    /// An empty layout on the whole tracks within a range of LBNs, and what to write for it, in this order.
    ///
    /// # Errors
    /// If a figure is out of its bounds, the map does not cover the range, or there is no room.
    pub fn format(
        map: impl Into<Arc<TrackMap>>,
        range: Range<Lbn>,
        config: &Config,
    ) -> Result<(Tpl, Vec<Step>), TplError> {
        let map = map.into();
        let place = open::Placement::new(&map, range, config)?;
        let header = place.header(&map, config);
        header.check()?;
        let shape = Shape::new(
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
            suspect: BTreeMap::new(),
            filled: BTreeSet::new(),
            busy: None,
        };
        let mut steps = Vec::new();
        for copy in 0..2 {
            // The header goes last: a layout that was not finished is none.
            let pages = 0..tpl.pages.len() as u32;
            steps.extend(
                pages.map(|number| tpl.table_step(copy, number, &tpl.pages[number as usize])),
            );
            steps.push(Step::Flush);
            steps.push(Step::Table {
                lbn: tpl.areas[copy],
                bytes: header.encode(),
            });
            steps.push(Step::Flush);
        }
        Ok((tpl, steps))
    }

    /// Where blocks lie.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// What stands in its header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// What is kept of a track of data.
    pub fn track(&self, track: usize) -> TrackState {
        let (page, index) = self.page_of(track);
        let bits = self.pages[page as usize].get(index);
        TrackState::decode(bits, self.header.bounds).expect("what is kept has been checked")
    }

    /// The tracks whose entries stand on one page of the table with that of a track.
    pub fn page(&self, track: usize) -> Range<usize> {
        self.tracks_of(self.page_of(track).0)
    }

    /// Bytes that the table takes in memory: without the map, and without what is known of copies that differ.
    pub fn memory(&self) -> usize {
        let pages: usize = self.pages.iter().map(Page::memory).sum();
        self.pages.capacity() * size_of::<Page>() + pages + self.shape.memory()
    }

    /// Blocks as runs that lie on one track each and in one layer.
    ///
    /// # Errors
    /// If there are no such blocks.
    pub fn runs(&self, blocks: Range<u64>) -> Result<Vec<Run>, TplError> {
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
            let left = self.shape.layer_on(home.track, layer).end - home.index;
            let count = (blocks.end - next).min(left.into());
            runs.push(Run {
                home,
                blocks: count as u32,
            });
            next += count;
        }
        Ok(runs)
    }

    /// Whether blocks of a run hold data; else they are zeros, and no copy may be read.
    pub fn holds(&self, home: Home) -> bool {
        self.track(home.track).holds(self.layer(home))
    }

    /// The copies that are current for all blocks of a run: bit `k` is copy `k`. None may be, if some blocks have others
    /// than other blocks; then ask for each.
    pub fn current(&self, run: Run) -> u32 {
        if self.is_suspect(run.home.track) {
            return 1;
        }
        let all = all_copies(self.track(run.home.track).count);
        let stale = self.stale.range(run.home..end(run));
        stale.fold(all, |mask, (_, current)| mask & current)
    }

    /// The copies that a write may go to.
    pub fn writable(&self, run: Run) -> u32 {
        match self.is_suspect(run.home.track) {
            true => 1,
            false => all_copies(self.track(run.home.track).count),
        }
    }

    /// Where a copy of a run begins. The run lies behind it in one piece.
    pub fn place(&self, run: Run, copy: u32) -> Lbn {
        let count = self.track(run.home.track).count;
        self.shape.copy(run.home, count, copy)
    }

    /// The copies of a mask, with where they begin.
    pub fn places(&self, run: Run, mask: u32) -> impl Iterator<Item = (u32, Lbn)> {
        let count = self.track(run.home.track).count;
        (0..count.get())
            .filter(move |copy| mask >> copy & 1 == 1)
            .map(move |copy| (copy, self.shape.copy(run.home, count, copy)))
    }

    /// What has to be done before blocks can be written, one plan after another until there is none: the table tells
    /// that copies may differ, the tracks have room, and the blocks hold something.
    ///
    /// # Errors
    /// If there are no such blocks, or a plan is under way.
    pub fn prepare(&mut self, blocks: Range<u64>) -> Result<Option<Plan>, TplError> {
        let runs = self.runs(blocks)?;
        let layers: Vec<usize> = runs.iter().map(|run| self.layer(run.home)).collect();
        let bounds = self.header.bounds;
        let lacks_room = |run: &Run, layer: usize| {
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
        self.is_free()?;
        // All that the page of the table has to tell is written at once.
        let (number, _) = self.page_of(first.home.track);
        let tracks = format::tracks(&self.header, number);
        let mut page = self.pages[number as usize].clone();
        page.open = true;
        let (mut steps, mut synced) = (Vec::new(), Vec::new());
        let mut busy = first.home.track..first.home.track + 1;
        for (run, layer) in all() {
            let track = run.home.track;
            let (of, index) = self.page_of(track);
            if of != number {
                continue;
            }
            let state = TrackState::decode(page.get(index), bounds).expect("it is kept");
            let mut new = state;
            if makes_room {
                new.count = state.count.min(bounds.count_of(layer));
                if new != state && state == self.track(track) {
                    self.keep_first_copies(track, &mut steps, &mut synced);
                }
            } else if !state.holds(layer) {
                new.used |= 1 << layer;
                let indices = self.shape.layer_on(track, layer);
                let first = Home {
                    track,
                    index: indices.start,
                };
                steps.push(Step::Zeros {
                    to: self.shape.copies(first, state.count).collect(),
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

    /// Whether blocks can be written without [`Tpl::prepare`].
    pub fn is_prepared(&self, run: Run) -> bool {
        let (page, _) = self.page_of(run.home.track);
        self.pages[page as usize].open && self.holds(run.home)
    }

    /// Notes that blocks were written to these copies: they are the current ones.
    ///
    /// # Errors
    /// [`TplError::Busy`], if a plan for the track is under way; what was written may be lost then.
    ///
    /// # Panics
    /// If the blocks were not prepared, or the write went to none of the copies that it may go to.
    pub fn wrote(&mut self, run: Run, copies: u32) -> Result<(), TplError> {
        let track = run.home.track;
        if self.busy.as_ref().is_some_and(|busy| busy.contains(&track)) {
            return Err(TplError::Busy);
        }
        let (page, _) = self.page_of(track);
        assert!(
            self.pages[page as usize].open && self.holds(run.home),
            "not prepared"
        );
        let written = copies & self.writable(run);
        assert!(written != 0, "no copy was written");
        self.filled.remove(&track);
        for home in run.homes() {
            if self.is_suspect(track) || written == all_copies(self.track(track).count) {
                self.stale.remove(&home);
            } else {
                self.stale.insert(home, written);
            }
        }
        Ok(())
    }

    /// Notes that copies of blocks were brought up to date from a current one.
    pub fn synced(&mut self, run: Run, copies: u32) {
        for home in run.homes() {
            let all = all_copies(self.track(home.track).count);
            if let Some(current) = self.stale.get_mut(&home) {
                *current |= copies;
                if *current & all == all {
                    self.stale.remove(&home);
                }
            }
        }
    }

    /// The blocks whose copies are not all current, from one on, with the copies that are.
    pub fn stale(&self, from: Home) -> impl Iterator<Item = (Home, u32)> {
        self.stale.range(from..).map(|(home, mask)| (*home, *mask))
    }

    /// How many blocks have copies that are not current.
    pub fn stale_count(&self) -> usize {
        self.stale.len()
    }

    /// The blocks whose first copy has to be brought up to date before the device is flushed, if what was written is to
    /// survive a loss of power; with the copies that are current.
    pub fn before_flush(&self) -> impl Iterator<Item = (Home, u32)> {
        self.stale(Home { track: 0, index: 0 })
            .filter(|(_, current)| current & 1 == 0)
    }

    /// Notes that these copies of blocks cannot be read: they are not current until they are written again. False, if a
    /// block has no other current copy; nothing is changed for it then.
    #[must_use]
    pub fn failed(&mut self, run: Run, copies: u32) -> bool {
        let mut others = true;
        for home in run.homes() {
            let left = self.current(Run { home, blocks: 1 }) & !copies;
            others &= left != 0;
            if left != 0 {
                self.stale.insert(home, left);
            }
        }
        self.filled.remove(&run.home.track);
        others
    }

    /// Another copy, where one that is current cannot be read: those that hold the same. Write to the one that failed what
    /// is read from one of them.
    ///
    /// None is left where the copies of the track had not been brought up to date: what they hold may be old.
    pub fn sisters(&self, run: Run, failed: u32) -> u32 {
        self.current(run) & !failed
    }

    /// Takes a plan's change, whose steps are done; returns what is left to be done, in this order, before the next plan.
    pub fn commit(&mut self, plan: Plan) -> Vec<Step> {
        self.busy = None;
        match plan.change {
            Change::Equal { track } => {
                let (number, index) = self.page_of(track);
                if let Some(suspect) = self.suspect.get_mut(&number) {
                    suspect[index] = false;
                    if !suspect.contains(&true) {
                        self.suspect.remove(&number);
                    }
                }
                let stale: Vec<Home> = self.stale_on(track).collect();
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
                let rest = self.table_step(1, number, &page);
                self.adopt(number, page);
                vec![rest]
            }
        }
    }

    /// Gives up a plan of which no step that writes the table has begun.
    pub fn abandon(&mut self, plan: Plan) {
        drop(plan);
        self.busy = None;
    }

    /// Takes a page in place of the one that is kept, and drops what is known of copies that are no more.
    fn adopt(&mut self, number: u32, page: Page) {
        let tracks = self.tracks_of(number);
        let stale: Vec<Home> = self
            .stale
            .range(home(tracks.start)..home(tracks.end))
            .map(|(home, _)| *home)
            .collect();
        for at in stale {
            let index = at.track - tracks.start;
            let bits = |page: &Page| TrackState::decode(page.get(index), self.header.bounds);
            let before = bits(&self.pages[number as usize]).expect("it is kept");
            let after = bits(&page).expect("it is made here");
            let mask = self.stale[&at];
            let kept = match before.count > after.count {
                true => every_nth(mask, before.count.get() / after.count.get()),
                false => mask,
            };
            let layer = self.layer(at);
            if !after.holds(layer) || kept == all_copies(after.count) {
                self.stale.remove(&at);
            } else {
                assert!(kept != 0, "the last current copy is dropped");
                self.stale.insert(at, kept);
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

    /// The plan that writes a page of the table behind other steps.
    fn change(
        &mut self,
        number: u32,
        mut page: Page,
        mut steps: Vec<Step>,
        synced: Vec<Home>,
        track: usize,
    ) -> Result<Plan, TplError> {
        page.generation += 1;
        // What the page relies on, and the second copy of the last change, come before it.
        steps.push(Step::Flush);
        steps.push(self.table_step(0, number, &page));
        steps.push(Step::Flush);
        self.busy = Some(track..track + 1);
        Ok(Plan {
            steps,
            change: Change::Page {
                number,
                page,
                synced,
            },
        })
    }

    fn table_step(&self, copy: usize, number: u32, page: &Page) -> Step {
        Step::Table {
            lbn: self.page_lbn(copy, number),
            bytes: format::encode(&self.header, number, page),
        }
    }

    fn page_lbn(&self, copy: usize, number: u32) -> Lbn {
        let before = u64::from(1 + number) * u64::from(self.header.page_sectors);
        self.areas[copy] + Sectors(before)
    }

    /// Copies to the first place what is current only in places that a merge drops.
    fn keep_first_copies(&self, track: usize, steps: &mut Vec<Step>, synced: &mut Vec<Home>) {
        for at in self.stale_on(track) {
            let current = self.stale[&at];
            if current & 1 == 0 {
                let run = Run {
                    home: at,
                    blocks: 1,
                };
                steps.push(Step::Copy {
                    from: self.place(run, current.trailing_zeros()),
                    to: vec![self.place(run, 0)],
                    sectors: self.shape.sectors(1),
                });
                synced.push(at);
            }
        }
    }

    /// What a track holds: where runs of blocks begin, and how long they are.
    fn held(&self, track: usize) -> Vec<(Home, u32)> {
        let state = self.track(track);
        let mut held: Vec<(Home, u32)> = Vec::new();
        for layer in (0..self.header.bounds.layers()).filter(|layer| state.holds(*layer)) {
            let indices = self.shape.layer_on(track, layer);
            let size = indices.end - indices.start;
            match held.last_mut() {
                Some((first, blocks)) if first.index + *blocks == indices.start => *blocks += size,
                _ => held.push((
                    Home {
                        track,
                        index: indices.start,
                    },
                    size,
                )),
            }
        }
        held
    }

    fn layer(&self, home: Home) -> usize {
        self.shape.layer_of(home).expect("a block of the layout")
    }

    fn is_free(&self) -> Result<(), TplError> {
        match self.busy {
            Some(_) => Err(TplError::Busy),
            None => Ok(()),
        }
    }

    fn is_suspect(&self, track: usize) -> bool {
        let (number, index) = self.page_of(track);
        self.suspect
            .get(&number)
            .is_some_and(|suspect| suspect[index])
    }

    fn has_stale(&self, track: usize) -> bool {
        self.stale_on(track).next().is_some()
    }

    fn stale_on(&self, track: usize) -> impl Iterator<Item = Home> {
        self.stale
            .range(home(track)..home(track + 1))
            .map(|(home, _)| *home)
    }

    /// The page of a track, and its place there.
    fn page_of(&self, track: usize) -> (u32, usize) {
        let position = track - self.shape.tracks().start;
        let each = self.header.tracks_of_page();
        ((position / each) as u32, position % each)
    }

    fn tracks_of(&self, page: u32) -> Range<usize> {
        let each = self.header.tracks_of_page();
        let first = self.shape.tracks().start + page as usize * each;
        first..(first + each).min(self.shape.tracks().end)
    }
}

/// A bit for each copy.
fn all_copies(count: Count) -> u32 {
    u32::MAX >> (32 - count.get())
}

/// Every `n`th bit, moved together.
fn every_nth(mask: u32, n: u32) -> u32 {
    (0..32 / n).fold(0, |kept, bit| kept | (mask >> (bit * n) & 1) << bit)
}

fn home(track: usize) -> Home {
    Home { track, index: 0 }
}

fn end(run: Run) -> Home {
    Home {
        index: run.home.index + run.blocks,
        ..run.home
    }
}
