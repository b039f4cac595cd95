//! A host on the virtual clock: processor, buffer cache, file system, disk.
//!
//! Applications are ordinary programs. Each call advances the clock by its processor time and by
//! the time for which it waits, while the drive proceeds independently. The file systems follow
//! paper T, section 4.2, for FFS, and paper Q, section 2.4, for ext2. Left out: updates of files'
//! access times (atime), periodic writes of summary information and free maps, paging, and all
//! other processes.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use traxtent_layout::{Boundaries, Partition};
use traxtent_map::TrackMap;
use traxtent_model::drive::Drive;
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Block, Lbn, SimTime, Span};

use super::backing_storage::BackingStorage;
use super::cache::Cache;
use super::config::Config;
use super::disk::{Io, Traffic};
use super::file::{File, FileId, Files};
use super::space::BlockSpace;
use crate::bench::{Bench, LabError};

/// A host with a file system and a disk; see the module.
#[derive(Debug)]
pub struct SimulatedHost {
    pub(super) config: Config,
    pub(super) now: SimTime,
    pub(super) cache: Cache,
    pub(super) space: BlockSpace,
    pub(super) files: Files,
    /// The partition, with one-sector blocks, so that each traxtent is a whole track.
    tracks: Partition,
    /// The boundaries at which write-backs end. If `None`, they end at track boundaries if
    /// [`Config::clip_at_tracks`] is set. Blocks written because of their age are not clipped.
    write_grid: Option<Partition>,
    storage: BackingStorage,
    outstanding: HashMap<Io, OutstandingRequest>,
    /// The number of sectors in outstanding writes.
    writing: u64,
    /// Blocks in the order in which they became dirty. Entries of blocks written since then are
    /// skipped.
    ages: VecDeque<(SimTime, Block)>,
    /// The processor time since the last [`SimulatedHost::reset_measurements`].
    busy: Span,
    /// The largest number of blocks that the cache has held.
    cache_most: usize,
}

/// An outstanding request: sectors of the partition.
#[derive(Clone, Debug)]
struct OutstandingRequest {
    sectors: Range<u64>,
    op: Op,
}

impl SimulatedHost {
    /// Creates a host that has just started, with an empty file system on the drive. The bench's
    /// seed determines the phase of the spindle at the start.
    ///
    /// # Errors
    /// Returns an error if the drive is too small for the partition.
    pub fn new(bench: &Bench, config: Config) -> Result<SimulatedHost, LabError> {
        let drive = Drive::with_geometry(Arc::clone(&bench.profile), Arc::clone(&bench.geometry));
        let storage = BackingStorage::one(drive, &config);
        SimulatedHost::on(
            storage,
            TrackMap::from_sizes(bench.geometry.track_sizes()),
            bench.seed,
            config,
        )
    }

    /// Creates such a host on storage with this map.
    pub(super) fn on(
        storage: BackingStorage,
        map: TrackMap,
        seed: u64,
        config: Config,
    ) -> Result<SimulatedHost, LabError> {
        let map = Arc::new(map);
        let end = config
            .partition_end
            .map_or(map.end(), |end| map.end().min(Lbn(end)));
        let lbns = Lbn(config.partition_start)..end;
        let partition = Partition::new(Arc::clone(&map), lbns.clone(), config.block_sectors)?;
        let tracks = Partition::new(map, lbns, 1)?;
        // Start at a random time in the first second, so that the phase of the spindle is random.
        let now = SimTime(Rng::new(seed).below(1_000_000_000_000));
        Ok(SimulatedHost {
            now,
            cache: Cache::new(config.cache_blocks, config.block_sectors),
            space: BlockSpace::new(partition, &config),
            files: Files::default(),
            tracks,
            write_grid: None,
            storage,
            outstanding: HashMap::new(),
            writing: 0,
            ages: VecDeque::new(),
            busy: Span::ZERO,
            cache_most: 0,
            config,
        })
    }

    /// Returns the same host with write-backs that end at the boundaries of this map instead of
    /// tracks. Blocks written because of their age are not clipped.
    ///
    /// # Errors
    /// Returns an error if the map does not cover the partition.
    pub(super) fn with_write_grid(self, map: TrackMap) -> Result<SimulatedHost, LabError> {
        let lbns = self.tracks.lbns();
        Ok(SimulatedHost {
            write_grid: Some(Partition::new(map, lbns, 1)?),
            ..self
        })
    }

    /// The current time.
    pub fn now(&self) -> SimTime {
        self.now
    }

    /// The traffic of the disk since the last [`SimulatedHost::reset_measurements`].
    pub fn traffic(&self) -> Traffic {
        self.storage.traffic()
    }

    /// The processor time since the last [`SimulatedHost::reset_measurements`].
    pub fn busy(&self) -> Span {
        self.busy
    }

    /// The largest number of blocks that the cache has held.
    pub fn cache_most(&self) -> usize {
        self.cache_most
    }

    /// Logs every request from now on.
    pub fn start_log(&mut self) {
        self.storage.log = Some(Vec::new());
    }

    /// The requests since [`SimulatedHost::start_log`], in the order in which they were sent.
    pub fn log(&self) -> &[Request] {
        self.storage.log.as_deref().unwrap_or_default()
    }

    /// Resets the traffic of the disk and the processor time.
    pub fn reset_measurements(&mut self) {
        self.storage.reset_traffic();
        self.busy = Span::ZERO;
    }

    /// Advances the clock by processor work.
    pub fn spend(&mut self, work: Span) {
        self.busy += work;
        let mut end = self.now + work;
        while let Some(wake) = self.storage.next_wakeup().filter(|wake| *wake <= end) {
            self.now = self.now.max(wake);
            // Interrupts delay the work.
            end += self.interrupts(wake);
        }
        self.now = end;
    }

    /// Sleeps until the next event of the disk, or until `until` if that is earlier. Returns false
    /// if there is neither.
    pub fn sleep(&mut self, until: Option<SimTime>) -> bool {
        let wake = self.storage.next_wakeup();
        match (wake, until) {
            (Some(wake), until) if until.is_none_or(|until| wake <= until) => {
                self.now = self.now.max(wake);
                let work = self.interrupts(wake);
                self.now += work;
                true
            }
            (_, Some(until)) => {
                self.now = self.now.max(until);
                true
            }
            _ => false,
        }
    }

    /// Sleeps until the next event of the disk.
    ///
    /// # Panics
    /// Panics if no request is outstanding.
    pub(super) fn wait(&mut self) {
        assert!(self.sleep(None), "no request is outstanding");
    }

    /// Waits until no request is outstanding.
    pub fn settle(&mut self) {
        while self.storage.outstanding() > 0 {
            self.wait();
        }
    }

    /// Handles the requests that are complete at `wake`. Returns the processor time that this
    /// takes.
    fn interrupts(&mut self, wake: SimTime) -> Span {
        let mut work = Span::ZERO;
        while let Some(io) = self.storage.poll(wake) {
            self.complete(io);
            work += self.config.cpu.interrupt;
        }
        self.busy += work;
        work
    }

    fn complete(&mut self, io: Io) {
        let request = self.outstanding.remove(&io).expect("it was sent from here");
        if request.op == Op::Write {
            self.writing -= request.sectors.end - request.sectors.start;
        }
        for (block, sectors) in self.blocks_of(&request.sectors) {
            if let Some(buffer) = self.cache.get(block) {
                match request.op {
                    Op::Write => buffer.writing -= 1,
                    _ => buffer.valid_sectors += sectors,
                }
            }
        }
    }

    /// The blocks of a range of sectors of the partition, and the number of these sectors in each.
    fn blocks_of(&self, sectors: &Range<u64>) -> impl Iterator<Item = (Block, u32)> + use<> {
        let size = u64::from(self.config.block_sectors);
        let Range { start, end } = *sectors;
        (start / size..end.div_ceil(size)).map(move |block| {
            let part = start.max(block * size)..end.min((block + 1) * size);
            (Block(block), (part.end - part.start) as u32)
        })
    }

    /// The sectors of a block.
    pub(super) fn sectors_of(&self, block: Block) -> Range<u64> {
        let size = u64::from(self.config.block_sectors);
        block.0 * size..(block.0 + 1) * size
    }

    /// The sectors up to the first track boundary if reads end there, otherwise all.
    pub(super) fn clipped(&self, sectors: Range<u64>) -> Range<u64> {
        if self.config.clip_at_tracks {
            on_first_track(&self.tracks, sectors)
        } else {
            sectors
        }
    }

    /// The sectors up to the first boundary at which write-backs end, or all.
    pub(super) fn clipped_write(&self, sectors: Range<u64>) -> Range<u64> {
        match &self.write_grid {
            Some(grid) => on_first_track(grid, sectors),
            None => self.clipped(sectors),
        }
    }

    fn send(&mut self, op: Op, sectors: Range<u64>) -> Io {
        self.spend(self.config.cpu.request);
        let lbns = self
            .tracks
            .lbns_of(&(Block(sectors.start)..Block(sectors.end)));
        let request = Request {
            op,
            lbn: lbns.start,
            sectors: (lbns.end.0 - lbns.start.0) as u32,
            fua: false,
        };
        let io = self.storage.submit(self.now, request);
        self.outstanding
            .insert(io, OutstandingRequest { sectors, op });
        io
    }

    /// Starts reading sectors into memory. They must not have been requested before. Waits only if
    /// no buffer is free.
    pub(super) fn fetch(&mut self, sectors: Range<u64>) {
        for (block, count) in self.blocks_of(&sectors) {
            while self.cache.claim(block).is_none() {
                self.wait();
            }
            let buffer = self.cache.get(block).expect("just claimed");
            buffer.requested_sectors += count;
            self.cache_most = self.cache_most.max(self.cache.len());
        }
        self.send(Op::Read, sectors);
    }

    /// Puts a block into memory as completely valid, and marks it dirty. Waits if no buffer is
    /// free.
    pub(super) fn dirty(&mut self, block: Block) {
        while self.cache.claim(block).is_none() {
            self.wait();
        }
        let (now, size) = (self.now, self.config.block_sectors);
        let buffer = self.cache.get(block).expect("just claimed");
        (buffer.requested_sectors, buffer.valid_sectors) = (size, size);
        if buffer.dirty.is_none() {
            buffer.dirty = Some(now);
            self.ages.push_back((now, block));
        }
        self.cache.touch(block);
        self.cache_most = self.cache_most.max(self.cache.len());
    }

    /// Writes sectors of changed blocks. Waits only while too much is being written.
    pub(super) fn write_back(&mut self, sectors: Range<u64>) {
        if sectors.is_empty() {
            return;
        }
        let (most, enough) = self.config.write_limits_sectors;
        if self.writing > most {
            while self.writing > enough {
                self.wait();
            }
        }
        self.send_write(sectors);
    }

    /// Writes a changed block and waits until the write is complete.
    pub(super) fn write_through(&mut self, block: Block) {
        let io = self.send_write(self.sectors_of(block));
        while self.outstanding.contains_key(&io) {
            self.wait();
        }
    }

    fn send_write(&mut self, sectors: Range<u64>) -> Io {
        let size = u64::from(self.config.block_sectors);
        for (block, _) in self.blocks_of(&sectors) {
            let buffer = self.cache.get(block).expect("dirty blocks are in memory");
            buffer.writing += 1;
            // A block that is written in parts stays dirty until its last part.
            if (block.0 + 1) * size <= sectors.end {
                buffer.dirty = None;
            }
        }
        self.writing += sectors.end - sectors.start;
        self.send(Op::Write, sectors)
    }

    /// Writes the blocks that have been dirty for too long, each with the dirty blocks that
    /// directly follow it, up to a cluster. These writes are not clipped.
    pub(super) fn write_old(&mut self) {
        while let Some(&(since, block)) = self.ages.front() {
            if since + self.config.dirty_age_max > self.now {
                return;
            }
            self.ages.pop_front();
            if self.is_dirty_since(block, since) {
                let cluster = u64::from(self.config.cluster);
                let mut end = block;
                while end.0 - block.0 < cluster && self.is_dirty(end) {
                    end.0 += 1;
                }
                let sectors = self.sectors_of(block).start..self.sectors_of(end).start;
                self.write_back(sectors);
            }
        }
    }

    /// Writes all dirty blocks, and waits for the writes.
    pub fn sync(&mut self) {
        let mut blocks: Vec<Block> = self.ages.drain(..).map(|(_, block)| block).collect();
        blocks.sort_unstable();
        blocks.dedup();
        blocks.retain(|block| self.is_dirty(*block));
        for run in blocks.chunk_by(|one, next| one.0 + 1 == next.0) {
            for part in run.chunks(self.config.cluster as usize) {
                let mut sectors =
                    self.sectors_of(part[0]).start..self.sectors_of(part[part.len() - 1]).end;
                while !sectors.is_empty() {
                    let part = self.clipped_write(sectors.clone());
                    sectors.start = part.end;
                    self.write_back(part);
                }
            }
        }
        self.settle();
    }

    pub(super) fn is_dirty(&mut self, block: Block) -> bool {
        let buffer = self.cache.get(block);
        buffer.is_some_and(|buffer| buffer.dirty.is_some())
    }

    fn is_dirty_since(&mut self, block: Block, since: SimTime) -> bool {
        let buffer = self.cache.get(block);
        buffer.is_some_and(|buffer| buffer.dirty == Some(since))
    }

    /// The blocks of a file.
    pub fn blocks(&self, file: FileId) -> &[Block] {
        &self.file(file).blocks
    }

    pub(super) fn file(&self, file: FileId) -> &File {
        self.files.get(file)
    }
}

/// Returns the leading part of `sectors` that lies on one track.
fn on_first_track(tracks: &Partition, sectors: Range<u64>) -> Range<u64> {
    let wanted = Block(sectors.start)..Block(sectors.end);
    let request = Boundaries::Clip.request(tracks, wanted.clone(), &wanted);
    request.start.0..request.end.0
}
