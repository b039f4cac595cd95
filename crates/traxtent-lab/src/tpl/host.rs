//! A host with a track partition layout on a simulated drive, on the virtual clock. It has the
//! request queue, chooses replicas by predicting the platter's angle, and updates the replicas of
//! written blocks in one of three ways.

use std::sync::Arc;

use traxtent_layout::tpl::{
    Accuracy, BlockHome, BlockRun, Config, DeviceStep, HeadTracker, PartitionBounds,
    PartitionCount, REGIONS, Survey, TablePlan, Tpl,
};
use traxtent_map::TrackMap;
use traxtent_model::drive::Drive;
use traxtent_probe::survey;
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::stats::Moments;
use traxtent_units::{Lbn, SimTime, Span};

use crate::bench::{Bench, LabError};

/// The number of sectors in a block: 4 KB.
pub const BLOCK: u32 = 8;

/// The largest number of blocks with stale replicas, whose data the host keeps in memory: 16 MB.
const STALE_MAX: usize = 4096;

/// The largest request, in blocks, whose response time is counted.
const COUNTED_BLOCKS_MAX: u64 = 64;

/// The time at which writes reach the replicas of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaSync {
    /// A write is complete when all replicas are written.
    AtOnce,
    /// A write is complete with the nearest replica. The others are updated once the drive has been
    /// idle for a revolution.
    Idle,
    /// A write is complete with the nearest replica. The others are updated while the head is still
    /// on the track if no request waits, and otherwise as with [`ReplicaSync::Idle`].
    Passing,
}

impl ReplicaSync {
    /// All synchronization policies.
    pub const ALL: [ReplicaSync; 3] =
        [ReplicaSync::AtOnce, ReplicaSync::Idle, ReplicaSync::Passing];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ReplicaSync::AtOnce => "at once",
            ReplicaSync::Idle => "in idle time",
            ReplicaSync::Passing => "as the head passes",
        }
    }
}

/// A drive that has been surveyed.
#[derive(Clone, Debug)]
pub struct SurveyedDrive {
    bench: Bench,
    /// The tracks of the drive.
    pub map: Arc<TrackMap>,
    survey: Survey,
    /// The number of regions in its layouts.
    pub regions: u16,
}

impl SurveyedDrive {
    /// Surveys the drive of a bench.
    ///
    /// # Errors
    /// Returns an error if the drive cannot be timed.
    pub fn new(bench: &Bench) -> Result<SurveyedDrive, LabError> {
        let map = TrackMap::from_sizes(bench.geometry.track_sizes());
        let mut target = bench.target();
        let survey = survey(&mut target, &map, 0..map.len(), 1, BLOCK, &mut |_| ())?;
        Ok(SurveyedDrive {
            bench: bench.clone(),
            map: Arc::new(map),
            survey,
            regions: REGIONS,
        })
    }

    /// Creates an empty layout on the part of the drive before `end`.
    ///
    /// # Errors
    /// Returns an error if the layout does not fit.
    pub fn layout(&self, bounds: PartitionBounds, end: Lbn) -> Result<Tpl, LabError> {
        let sector = &self.bench.profile.sector;
        let config = Config {
            id: self.bench.seed,
            sector_bytes: sector.logical_bytes,
            page_sectors: (sector.physical_bytes / sector.logical_bytes).max(1),
            block_sectors: BLOCK,
            bounds,
            regions: self.regions,
        };
        let (tpl, _) = Tpl::format(Arc::clone(&self.map), Lbn(0)..end, &config)?;
        Ok(tpl)
    }

    /// Creates a host with this layout, and the drive at rest.
    pub fn host(&self, tpl: Tpl, sync: ReplicaSync) -> TplHost {
        let bench = &self.bench;
        let (profile, geometry) = (Arc::clone(&bench.profile), Arc::clone(&bench.geometry));
        TplHost {
            revolution: Span::from_ms(profile.revolution_ms()),
            drive: Drive::with_geometry(profile, geometry),
            head: HeadTracker::new(Arc::clone(&self.map), self.survey.clone()),
            filling: (tpl.shape().tracks().start, Vec::new()),
            tpl,
            sync,
            now: SimTime::ZERO,
            prefer: PartitionCount::MOST,
            background: Span::ZERO,
            next_sync: BlockHome { track: 0, index: 0 },
            next_split: 0,
        }
    }
}

/// Marks all blocks of a range as used without any I/O, as if they had been written long ago. With
/// `closed`, all pages of the table are closed afterwards.
///
/// # Errors
/// Returns an error if there are no such blocks.
pub fn fill(tpl: &mut Tpl, blocks: std::ops::Range<u64>, closed: bool) -> Result<(), LabError> {
    let mut first = blocks.start;
    for run in tpl.runs(blocks)? {
        let end = first + u64::from(run.blocks);
        while let Some(plan) = tpl.prepare(first..end)? {
            tpl.commit(plan);
        }
        first = end;
    }
    while closed && let Some(plan) = tpl.close(0)? {
        tpl.commit(plan);
    }
    Ok(())
}

/// Trims all blocks of a range without any I/O.
///
/// # Errors
/// Returns an error if there are no such blocks.
pub fn trim(tpl: &mut Tpl, blocks: std::ops::Range<u64>) -> Result<(), LabError> {
    let mut first = blocks.start;
    for run in tpl.runs(blocks)? {
        let end = first + u64::from(run.blocks);
        while let Some(plan) = tpl.trim(first..end)? {
            tpl.commit(plan);
        }
        first = end;
    }
    Ok(())
}

/// A host with a track partition layout on a simulated drive; see the module.
#[derive(Clone, Debug)]
pub struct TplHost {
    drive: Drive,
    head: HeadTracker,
    /// The layout.
    pub tpl: Tpl,
    sync: ReplicaSync,
    /// The current time.
    pub now: SimTime,
    revolution: Span,
    /// The number of partitions up to which tracks are split in idle time.
    pub prefer: PartitionCount,
    /// The time that the drive has spent on background work.
    pub background: Span,
    next_sync: BlockHome,
    next_split: usize,
    /// The track that is being filled, and the remaining steps for it, the next one last.
    filling: (usize, Vec<DeviceStep>),
}

/// The kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Reads blocks.
    Read,
    /// Writes blocks.
    Write,
    /// Trims blocks.
    Trim,
}

/// A request to a host.
#[derive(Clone, Copy, Debug)]
pub struct HostRequest {
    /// The time of its arrival.
    pub at: SimTime,
    /// Its kind.
    pub kind: RequestKind,
    /// The first block.
    pub block: u64,
    /// The number of blocks.
    pub blocks: u64,
}

/// The results of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunResult {
    /// Response times in milliseconds, except those of bulk requests, for which no client waits.
    pub response_ms: Moments,
    /// The same for reads only.
    pub reads_ms: Moments,
    /// The time from the beginning until all replicas are current.
    pub span_ms: f64,
}

impl RunResult {
    fn note(&mut self, request: &HostRequest, end: SimTime) {
        if request.blocks > COUNTED_BLOCKS_MAX {
            return;
        }
        let response = end.since(request.at).as_ms();
        self.response_ms.push(response);
        if request.kind == RequestKind::Read {
            self.reads_ms.push(response);
        }
    }

    /// The counted requests per second.
    pub fn rate(&self) -> f64 {
        self.response_ms.count() as f64 / self.span_ms * 1000.0
    }
}

/// A source of requests for blocks of a layout. Unlike a [`traxtent_workload::RequestSource`], it
/// can trim, and has no tags.
pub trait HostLoad {
    /// The time at which the next request arrives; `None` if none arrives before another is
    /// complete, or if none is left.
    fn due(&mut self) -> Option<SimTime>;
    /// Takes the next request.
    fn take(&mut self) -> HostRequest;
    /// Reports that a request is complete.
    fn complete(&mut self, at: SimTime);
}

impl TplHost {
    /// The accuracy of the host's predictions.
    pub fn accuracy(&self) -> Accuracy {
        self.head.accuracy()
    }

    /// Serves a load to its end, and then updates all stale replicas.
    ///
    /// # Errors
    /// Returns an error if the load requests blocks that do not exist.
    pub fn run(&mut self, load: &mut dyn HostLoad) -> Result<RunResult, LabError> {
        let begun = self.now;
        let mut served = RunResult::default();
        let mut queue: Vec<HostRequest> = Vec::new();
        loop {
            while load.due().is_some_and(|due| due <= self.now) {
                queue.push(load.take());
            }
            if queue.is_empty() {
                let Some(next) = load.due() else { break };
                self.idle(next)?;
                continue;
            }
            let request = queue.swap_remove(self.nearest(&queue)?);
            let end = self.serve(&request)?;
            served.note(&request, end);
            load.complete(end);
            let waited_for = !queue.is_empty() || load.due().is_some_and(|due| due <= self.now);
            if self.sync == ReplicaSync::Passing && !waited_for {
                self.sync_while_passing(&request)?;
            }
            if self.tpl.stale_count() > STALE_MAX {
                self.sync_track()?;
            }
        }
        while self.tpl.stale_count() > 0 {
            self.sync_track()?;
        }
        served.span_ms = self.now.since(begun).as_ms();
        Ok(served)
    }

    /// Returns the index of the waiting request whose best replica has the lowest mean cost
    /// ([`HeadTracker::choose`]).
    fn nearest(&self, queue: &[HostRequest]) -> Result<usize, LabError> {
        if queue.len() == 1 {
            return Ok(0);
        }
        let (mut lbns, mut owners) = (Vec::new(), Vec::new());
        for (index, request) in queue.iter().enumerate() {
            for (_, lbn) in self.candidates(request)? {
                lbns.push(lbn);
                owners.push(index);
            }
        }
        let choice = self.head.choose(self.now, lbns);
        Ok(choice.map_or(0, |choice| owners[choice.index]))
    }

    /// The places at which a request can begin.
    fn candidates(&self, request: &HostRequest) -> Result<Vec<(u32, Lbn)>, LabError> {
        let run = self
            .tpl
            .runs(request.block..request.block + request.blocks)?[0];
        let mask = match request.kind {
            RequestKind::Write => self.tpl.writable(run),
            RequestKind::Read | RequestKind::Trim => self.tpl.current(run),
        };
        Ok(self.tpl.places(run, mask).collect())
    }

    fn serve(&mut self, request: &HostRequest) -> Result<SimTime, LabError> {
        let blocks = request.block..request.block + request.blocks;
        while let Some(plan) = match request.kind {
            RequestKind::Read => None,
            RequestKind::Write => self.tpl.prepare(blocks.clone())?,
            RequestKind::Trim => self.tpl.trim(blocks.clone())?,
        } {
            self.carry_out(plan);
        }
        for run in self.tpl.runs(blocks)? {
            match request.kind {
                RequestKind::Read => self.read(run),
                RequestKind::Write => self.write(run)?,
                RequestKind::Trim => {}
            }
        }
        Ok(self.now)
    }

    fn read(&mut self, run: BlockRun) {
        if !self.tpl.holds(run.home) {
            return;
        }
        let mask = self.tpl.current(run);
        if mask == 0 {
            // The blocks of the run have different current replicas.
            for index in 0..run.blocks {
                let home = BlockHome {
                    index: run.home.index + index,
                    ..run.home
                };
                self.read(BlockRun { home, blocks: 1 });
            }
            return;
        }
        let (_, lbn) = self.choose(run, mask);
        let sectors = run.blocks * BLOCK;
        let sent = self.now;
        let done = self.drive.serve(sent, Request::read(lbn, sectors));
        self.now = done.expect("the layout is within the drive").completed;
        self.head.completed(lbn, sectors, sent, self.now);
    }

    fn write(&mut self, run: BlockRun) -> Result<(), LabError> {
        let all = self.tpl.writable(run);
        let mask = match self.sync {
            ReplicaSync::AtOnce => all,
            ReplicaSync::Idle | ReplicaSync::Passing => 1 << self.choose(run, all).0,
        };
        self.write_replicas(run, mask);
        self.tpl.record_write(run, mask)?;
        Ok(())
    }

    /// Chooses the nearest of the replicas in a mask.
    fn choose(&self, run: BlockRun, mask: u32) -> (u32, Lbn) {
        let places = || self.tpl.places(run, mask);
        let choice = self.head.choose(self.now, places().map(|(_, lbn)| lbn));
        let index = choice.map_or(0, |choice| choice.index);
        places().nth(index).expect("there is a replica")
    }

    fn write_replicas(&mut self, run: BlockRun, mask: u32) {
        let sectors = run.blocks * BLOCK;
        let places = self.tpl.places(run, mask);
        let writes: Vec<Request> = places
            .map(|(_, lbn)| Request::write(lbn, sectors))
            .collect();
        self.send(&writes);
    }

    /// Sends all requests at the same time, and waits for all of them.
    fn send(&mut self, requests: &[Request]) {
        for request in requests {
            let sent = self.drive.submit(self.now, *request);
            sent.expect("the layout is within the drive");
        }
        let mut left = requests.len();
        while left > 0 {
            let wake = self.drive.next_wakeup().expect("requests are outstanding");
            while let Some(done) = self.drive.poll(wake) {
                self.now = self.now.max(done.completed);
                self.head.moved_to(done.request.lbn);
                left -= 1;
            }
        }
    }

    /// Performs the steps of a plan and the steps that follow its commit.
    fn carry_out(&mut self, plan: TablePlan) {
        for step in plan.steps().to_vec() {
            self.perform(&step);
        }
        for step in self.tpl.commit(plan) {
            self.perform(&step);
        }
    }

    fn perform(&mut self, step: &DeviceStep) {
        let bytes = self.drive.profile().sector.logical_bytes;
        let write = |lbn: &Lbn, sectors: u64| Request::write(*lbn, sectors as u32);
        match step {
            DeviceStep::Flush => self.send(&[Request::flush()]),
            DeviceStep::Table { lbn, bytes: page } => {
                self.send(&[write(lbn, (page.len() as u64).div_ceil(bytes.into()))]);
            }
            DeviceStep::Zeros { to, sectors } => {
                let writes: Vec<Request> = to.iter().map(|lbn| write(lbn, sectors.0)).collect();
                self.send(&writes);
            }
            DeviceStep::Copy { from, to, sectors } => {
                self.send(&[Request::read(*from, sectors.0 as u32)]);
                let writes: Vec<Request> = to.iter().map(|lbn| write(lbn, sectors.0)).collect();
                self.send(&writes);
            }
        }
    }

    /// Advances to `next`. Once the drive has been idle for a revolution, it works in the
    /// background, one piece of work at a time. Requests that arrive in the meantime wait.
    fn idle(&mut self, next: SimTime) -> Result<(), LabError> {
        let begin = self.now + self.revolution;
        if begin < next {
            self.now = begin;
            while self.now < next && self.work()? {}
        }
        self.now = self.now.max(next);
        Ok(())
    }

    /// Performs one piece of background work. Returns whether there was any.
    fn work(&mut self) -> Result<bool, LabError> {
        let begun = self.now;
        if self.tpl.stale_count() > 0 {
            self.sync_track()?;
        } else if !self.split_some()? {
            return Ok(false);
        }
        self.background += self.now.since(begun);
        Ok(true)
    }

    /// Takes one step of splitting tracks: performs a step that fills a track, writes the table
    /// page whose tracks have all been filled, or begins to fill the next track. Returns whether
    /// there was a step.
    fn split_some(&mut self) -> Result<bool, LabError> {
        let (track, steps) = &mut self.filling;
        let track = *track;
        match steps.pop().filter(|_| self.tpl.is_filled(track)) {
            Some(step) => {
                self.perform(&step);
                return Ok(true);
            }
            None => steps.clear(),
        }
        let next = self.next_to_split();
        let page = self.tpl.page(track);
        if next.is_none_or(|next| !page.contains(&next))
            && let Some(plan) = self.tpl.split(page.start)?
        {
            self.carry_out(plan);
            return Ok(true);
        }
        let Some(next) = next else { return Ok(false) };
        let mut steps = self.tpl.fill(next)?;
        steps.reverse();
        self.filling = (next, steps);
        self.next_split = next;
        Ok(true)
    }

    fn next_to_split(&mut self) -> Option<usize> {
        let found = self.tpl.splittable(self.next_split, self.prefer);
        found.or_else(|| match std::mem::take(&mut self.next_split) {
            0 => None,
            _ => self.tpl.splittable(0, self.prefer),
        })
    }

    /// Updates the next track with stale replicas, in ascending order and from the first track
    /// again after the last. The data is in the host's memory.
    fn sync_track(&mut self) -> Result<(), LabError> {
        let next = self.tpl.stale(self.next_sync).next();
        let Some((home, _)) =
            next.or_else(|| self.tpl.stale(BlockHome { track: 0, index: 0 }).next())
        else {
            return Ok(());
        };
        self.sync_on(home.track);
        self.next_sync = BlockHome {
            track: home.track + 1,
            index: 0,
        };
        Ok(())
    }

    fn sync_on(&mut self, track: usize) {
        let stale: Vec<(BlockHome, u32)> = self
            .tpl
            .stale(BlockHome { track, index: 0 })
            .take_while(|(home, _)| home.track == track)
            .collect();
        // Consecutive blocks with the same current replicas are written together.
        let mut runs: Vec<(BlockRun, u32)> = Vec::new();
        for (home, current) in stale {
            match runs.last_mut() {
                Some((run, mask))
                    if *mask == current && run.home.index + run.blocks == home.index =>
                {
                    run.blocks += 1;
                }
                _ => runs.push((BlockRun { home, blocks: 1 }, current)),
            }
        }
        let (mut writes, mut done) = (Vec::new(), Vec::new());
        for (run, current) in runs {
            let missing = self.tpl.writable(run) & !current;
            let sectors = run.blocks * BLOCK;
            let places = self.tpl.places(run, missing);
            writes.extend(places.map(|(_, lbn)| Request::write(lbn, sectors)));
            done.push((run, missing));
        }
        self.send(&writes);
        for (run, missing) in done {
            self.tpl.record_sync(run, missing);
        }
    }

    /// Updates the stale replicas on the tracks of a request that has just been served.
    fn sync_while_passing(&mut self, request: &HostRequest) -> Result<(), LabError> {
        let begun = self.now;
        for run in self
            .tpl
            .runs(request.block..request.block + request.blocks)?
        {
            self.sync_on(run.home.track);
        }
        self.background += self.now.since(begun);
        Ok(())
    }
}

/// Two drives with the same blocks. The drive that is free first serves the request nearest to its
/// head. One drive serves a read; both serve a write or a trim.
#[derive(Clone, Debug)]
pub struct Mirror(pub [TplHost; 2]);

/// A request of a mirror, the number of drives that have yet to serve it, and its end so far.
type Shared = (HostRequest, u32, SimTime);

impl Mirror {
    /// Serves a load to its end.
    ///
    /// # Errors
    /// Returns an error if the load requests blocks that do not exist.
    pub fn run(&mut self, load: &mut dyn HostLoad) -> Result<RunResult, LabError> {
        let mut served = RunResult::default();
        let mut all: Vec<Shared> = Vec::new();
        // The requests that each drive can serve, as positions in `all`.
        let mut queues: [Vec<usize>; 2] = Default::default();
        loop {
            let at = usize::from(self.0[1].now < self.0[0].now);
            let now = self.0[at].now;
            while load.due().is_some_and(|due| due <= now) {
                let request = load.take();
                queues.iter_mut().for_each(|queue| queue.push(all.len()));
                let drives = if request.kind == RequestKind::Read {
                    1
                } else {
                    2
                };
                all.push((request, drives, request.at));
            }
            queues[at].retain(|index| all[*index].0.kind != RequestKind::Read || all[*index].1 > 0);
            if queues[at].is_empty() {
                let other = self.0[1 - at].now;
                let later = load
                    .due()
                    .into_iter()
                    .chain((other > now).then_some(other))
                    .min();
                let Some(later) = later else { break };
                self.0[at].now = later;
                continue;
            }
            let waiting: Vec<HostRequest> = queues[at].iter().map(|index| all[*index].0).collect();
            let index = queues[at].swap_remove(self.0[at].nearest(&waiting)?);
            let request = all[index].0;
            let end = self.0[at].serve(&request)?;
            all[index].1 -= 1;
            all[index].2 = all[index].2.max(end);
            if all[index].1 == 0 {
                served.note(&request, all[index].2);
                load.complete(all[index].2);
            }
        }
        served.span_ms = self.0[0].now.max(self.0[1].now).as_ms();
        Ok(served)
    }
}

/// Random requests with a fixed number outstanding.
#[derive(Clone, Debug)]
pub struct ClosedLoad {
    rng: Rng,
    blocks: u64,
    read_share: f64,
    left: u64,
    /// The times from which further requests can be sent, ascending.
    free: Vec<SimTime>,
}

impl ClosedLoad {
    /// Creates `count` requests, each for one of `blocks` blocks, with `depth` outstanding from
    /// `now` on.
    pub fn new(
        seed: u64,
        blocks: u64,
        read_share: f64,
        count: u64,
        depth: usize,
        now: SimTime,
    ) -> ClosedLoad {
        ClosedLoad {
            rng: Rng::new(seed),
            blocks,
            read_share,
            left: count,
            free: vec![now; depth],
        }
    }
}

impl HostLoad for ClosedLoad {
    fn due(&mut self) -> Option<SimTime> {
        self.free.first().copied().filter(|_| self.left > 0)
    }

    fn take(&mut self) -> HostRequest {
        self.left -= 1;
        let at = self.free.remove(0);
        random(&mut self.rng, at, self.blocks, self.read_share)
    }

    fn complete(&mut self, at: SimTime) {
        let place = self.free.partition_point(|free| *free <= at);
        self.free.insert(place, at);
    }
}

/// Random requests that arrive independently of completions, at a rate that can change.
#[derive(Clone, Debug)]
pub struct OpenLoad {
    rng: Rng,
    blocks: u64,
    read_share: f64,
    /// The requests per second at an instant, given `mean`.
    rate: fn(SimTime, f64) -> f64,
    mean: f64,
    until: SimTime,
    next: SimTime,
}

impl OpenLoad {
    /// Creates requests, each for one of `blocks` blocks, that arrive from `now` to `until`. At an
    /// instant, the mean rate is `rate(instant, mean)` per second.
    pub fn new(
        seed: u64,
        blocks: u64,
        read_share: f64,
        (rate, mean): (fn(SimTime, f64) -> f64, f64),
        (now, until): (SimTime, SimTime),
    ) -> OpenLoad {
        let mut open = OpenLoad {
            rng: Rng::new(seed),
            blocks,
            read_share,
            rate,
            mean,
            until,
            next: now,
        };
        open.advance();
        open
    }

    fn advance(&mut self) {
        let rate = (self.rate)(self.next, self.mean);
        let gap = -(1.0 - self.rng.fraction()).ln() / rate;
        self.next += Span::from_ms(gap * 1000.0);
    }
}

impl HostLoad for OpenLoad {
    fn due(&mut self) -> Option<SimTime> {
        (self.next < self.until).then_some(self.next)
    }

    fn take(&mut self) -> HostRequest {
        let request = random(&mut self.rng, self.next, self.blocks, self.read_share);
        self.advance();
        request
    }

    fn complete(&mut self, _: SimTime) {}
}

fn random(rng: &mut Rng, at: SimTime, blocks: u64, read_share: f64) -> HostRequest {
    HostRequest {
        at,
        kind: if rng.chance(read_share) {
            RequestKind::Read
        } else {
            RequestKind::Write
        },
        block: rng.below(blocks),
        blocks: 1,
    }
}
