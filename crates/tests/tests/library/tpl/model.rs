//! A user of the layout that records its own writes.

use traxtent_layout::tpl::{
    BlockHome, BlockRun, DeviceStep, PartitionCount, TablePlan, Tpl, TplError,
};
use traxtent_map::TrackMap;
use traxtent_units::Rng;

use super::device::{Device, SECTOR_BYTES};
use super::{config, lbns};

/// The values that a sector may hold after a power cut.
#[derive(Clone, Debug, Default, PartialEq)]
struct Sector {
    /// The value last flushed.
    durable: u64,
    /// The values written since then.
    since: Vec<u64>,
}

impl Sector {
    fn now(&self) -> u64 {
        self.since.last().copied().unwrap_or(self.durable)
    }

    fn allows(&self, found: u64) -> bool {
        found == self.durable || self.since.contains(&found)
    }
}

pub(super) struct User {
    pub(super) map: TrackMap,
    pub(super) tpl: Tpl,
    pub(super) device: Device,
    sectors: Vec<Sector>,
    stamp: u64,
    rng: Rng,
    /// The probability of a simulated crash after a write.
    pub(super) watch: f64,
    pub(super) crashes: u64,
    /// The number of crashes that lost data which had not been flushed.
    pub(super) lossy: u64,
    /// The number of plans by kind: splits; merges and preparations of writes; closes; resyncs.
    /// Those for trims are not counted.
    pub(super) plans: [u64; 4],
}

impl User {
    pub(super) fn format(map: &TrackMap, least: u32, most: u32, rng: Rng) -> User {
        let config = config(super::bounds(least, most));
        let (tpl, steps) = Tpl::format(map.clone(), lbns(map), &config).unwrap();
        let mut device = Device::default();
        for step in &steps {
            device.perform(step, |_| ());
        }
        let sectors = tpl.shape().blocks() * u64::from(config.block_sectors);
        User {
            map: map.clone(),
            sectors: vec![Sector::default(); sectors as usize],
            tpl,
            device,
            stamp: 0,
            rng,
            watch: 0.0,
            crashes: 0,
            lossy: 0,
            plans: [0; 4],
        }
    }

    /// Performs a random operation.
    pub(super) fn step(&mut self) {
        match self.rng.below(20) {
            0..=6 => self.write(),
            7..=10 => self.sync_some(),
            11 => self.flush(),
            12 | 13 => self.split_some(),
            14 => self.merge_some(),
            15 => self.trim_some(),
            16 => self.resync_some(),
            17 => self.close_some(),
            _ => self.read_some(),
        }
    }

    fn track(&mut self) -> usize {
        let tracks = self.tpl.shape().tracks();
        tracks.start + self.rng.below(tracks.len() as u64) as usize
    }

    /// Returns a few consecutive blocks, mostly from the first quarter of all blocks.
    fn blocks(&mut self) -> std::ops::Range<u64> {
        let all = self.tpl.shape().blocks();
        let most = if self.rng.chance(0.8) {
            all.div_ceil(4)
        } else {
            all
        };
        let first = self.rng.below(most);
        first..(first + 1 + self.rng.below(6)).min(all)
    }

    /// Writes to all replicas, or to some.
    fn write(&mut self) {
        let blocks = self.blocks();
        while let Some(plan) = self.tpl.prepare(blocks.clone()).unwrap() {
            self.plans[1] += 1;
            self.carry_out(plan);
        }
        let mut block = blocks.start;
        for run in self.tpl.runs(blocks.clone()).unwrap() {
            let may = self.tpl.writable(run);
            let mut replicas = may & self.rng.bits() as u32;
            if replicas == 0 || self.rng.chance(0.3) {
                replicas = may;
            }
            self.stamp += 1;
            let sectors = run.blocks * self.tpl.shape().block_sectors();
            let places: Vec<u64> = self
                .tpl
                .places(run, replicas)
                .map(|(_, lbn)| lbn.0)
                .collect();
            let first = block * u64::from(self.tpl.shape().block_sectors());
            for sector in 0..u64::from(sectors) {
                self.sectors[(first + sector) as usize]
                    .since
                    .push(self.stamp);
            }
            for place in places {
                for sector in 0..u64::from(sectors) {
                    self.device.write(place + sector, self.stamp);
                    if self.rng.chance(0.2) {
                        self.maybe_crash();
                    }
                }
                self.maybe_crash();
            }
            self.tpl.record_write(run, replicas).unwrap();
            block += u64::from(run.blocks);
        }
    }

    /// Updates some replicas of some blocks.
    fn sync_some(&mut self) {
        for _ in 0..1 + self.rng.below(4) {
            let from = BlockHome {
                track: self.track(),
                index: 0,
            };
            let Some((home, current)) = self.tpl.stale(from).next() else {
                return;
            };
            let more = self.rng.bits() as u32;
            self.update_replicas(home, current, more);
        }
    }

    /// Copies a block from a current replica to others.
    fn update_replicas(&mut self, home: BlockHome, current: u32, to: u32) {
        let run = BlockRun { home, blocks: 1 };
        let to = to & self.tpl.writable(run) & !current;
        let from = self.tpl.place(run, current.trailing_zeros());
        let step = DeviceStep::Copy {
            from,
            to: self.tpl.places(run, to).map(|(_, lbn)| lbn).collect(),
            sectors: self.tpl.shape().sectors(1),
        };
        self.perform(&step);
        self.tpl.record_sync(run, to);
    }

    fn flush(&mut self) {
        let stale: Vec<(BlockHome, u32)> = self.tpl.before_flush().collect();
        for (home, current) in stale {
            self.update_replicas(home, current, 1);
        }
        self.device.flush();
        for sector in &mut self.sectors {
            sector.durable = sector.now();
            sector.since.clear();
        }
    }

    fn split_some(&mut self) {
        let from = self.track();
        // Fills some tracks. Requests can arrive before an entry of the table is written.
        for _ in 0..1 + self.rng.below(3) {
            let Some(track) = self.tpl.splittable(from, PartitionCount::MOST) else {
                break;
            };
            for step in self.tpl.fill(track).unwrap() {
                self.perform(&step);
            }
            assert!(self.tpl.is_filled(track));
        }
        if self.rng.chance(0.5)
            && let Some(plan) = self.tpl.split(from).unwrap()
        {
            if self.rng.chance(0.2) {
                return self.tpl.abandon(plan);
            }
            self.plans[0] += 1;
            self.carry_out(plan);
        }
    }

    fn merge_some(&mut self) {
        let track = self.track();
        if let Ok(plan) = self.tpl.merge(track) {
            self.plans[1] += 1;
            self.carry_out(plan);
        }
    }

    /// Trims the blocks of the last layer in use on a track.
    fn trim_some(&mut self) {
        let track = self.track();
        let state = self.tpl.track(track);
        let Some(layer) = state.used.checked_ilog2() else {
            return;
        };
        let indices = self.tpl.shape().layer_on(track, layer as usize);
        let home = |index| BlockHome { track, index };
        let first = self.tpl.shape().block(home(indices.start)).unwrap();
        let blocks = first..first + u64::from(indices.end - indices.start);
        // Trimming only a part of the layer has no effect.
        if blocks.end - blocks.start > 1 {
            assert_eq!(self.tpl.trim(blocks.start + 1..blocks.end), Ok(None));
        }
        let size = u64::from(self.tpl.shape().block_sectors());
        let sectors = (blocks.start * size) as usize..(blocks.end * size) as usize;
        for sector in sectors.clone() {
            self.sectors[sector].since.push(0);
        }
        while let Some(plan) = self.tpl.trim(blocks.clone()).unwrap() {
            self.carry_out(plan);
        }
        for sector in sectors {
            self.sectors[sector] = Sector::default();
        }
    }

    fn resync_some(&mut self) {
        let from = self.track();
        for _ in 0..8 {
            if let Some(track) = self.tpl.suspect(from) {
                let plan = self.tpl.resync(track).unwrap();
                self.plans[3] += 1;
                self.carry_out(plan);
            }
        }
    }

    fn close_some(&mut self) {
        let track = self.track();
        if let Some(plan) = self.tpl.close(track).unwrap() {
            self.plans[2] += 1;
            self.carry_out(plan);
        }
    }

    fn carry_out(&mut self, plan: TablePlan) {
        assert_eq!(
            self.tpl.merge(self.tpl.shape().tracks().start),
            Err(TplError::Busy)
        );
        for step in plan.steps().to_vec() {
            self.perform(&step);
        }
        for step in self.tpl.commit(plan) {
            self.perform(&step);
        }
    }

    fn perform(&mut self, step: &DeviceStep) {
        // The checks need the whole user, so the device is taken out.
        let mut device = std::mem::take(&mut self.device);
        let mut seen = Vec::new();
        let (watch, rng) = (self.watch, &mut self.rng);
        device.perform(step, |device| {
            if rng.chance(watch) {
                seen.push(device.cut(rng));
            }
        });
        self.device = device;
        for left in seen {
            self.check_left(&left);
        }
    }

    fn read_some(&mut self) {
        let blocks = self.blocks();
        self.check(blocks);
    }

    /// Asserts that every current replica of these blocks holds the data written last.
    fn check(&self, blocks: std::ops::Range<u64>) {
        let size = u64::from(self.tpl.shape().block_sectors());
        let mut block = blocks.start;
        for run in self.tpl.runs(blocks).unwrap() {
            let replicas = self.tpl.current(run);
            for sector in 0..u64::from(run.blocks) * size {
                let expected = self.sectors[(block * size + sector) as usize].now();
                if !self.tpl.holds(run.home) {
                    assert_eq!(expected, 0, "block {block}");
                    continue;
                }
                for (replica, place) in self.tpl.places(run, replicas) {
                    let found = self.device.stamp(place.0 + sector);
                    assert_eq!(
                        found, expected,
                        "block {block}, sector {sector}, replica {replica}"
                    );
                }
            }
            assert!(
                run.blocks > 1 || replicas != 0,
                "block {block} has no current replica"
            );
            block += u64::from(run.blocks);
        }
    }

    pub(super) fn check_all(&self) {
        (0..self.tpl.shape().blocks()).for_each(|block| self.check(block..block + 1));
    }

    /// Simulates a power cut.
    fn maybe_crash(&mut self) {
        if self.rng.chance(self.watch) {
            let left = self.device.cut(&mut self.rng);
            self.check_left(&left);
        }
    }

    fn check_left(&mut self, left: &Device) {
        let (_, found) = reopen(&self.map, left.clone());
        self.crashes += 1;
        let all = self.sectors.iter().zip(&found).enumerate();
        for (at, (sector, found)) in all {
            assert!(
                sector.allows(*found),
                "sector {at}: {found} was found, not {sector:?}"
            );
        }
        let lost = self.sectors.iter().zip(&found);
        self.lossy += u64::from(
            lost.into_iter()
                .any(|(sector, found)| sector.now() != *found),
        );
    }

    /// Cuts the power and continues with the remaining state.
    pub(super) fn crash(&mut self) {
        let left = self.device.cut(&mut self.rng);
        self.check_left(&left);
        let ((tpl, device), found) = reopen(&self.map, left);
        (self.tpl, self.device) = (tpl, device);
        for (sector, found) in self.sectors.iter_mut().zip(found) {
            *sector = Sector {
                durable: found,
                since: Vec::new(),
            };
        }
    }
}

/// Opens a layout on the remaining state of its device and reads all of it. All readable replicas
/// must agree.
fn reopen(map: &TrackMap, mut device: Device) -> ((Tpl, Device), Vec<u64>) {
    let opened = Tpl::open(
        map.clone(),
        lbns(map),
        SECTOR_BYTES as u32,
        &mut |lbn, sectors| Some(device.bytes(lbn, sectors)),
    );
    let opened = opened.unwrap_or_else(|error| panic!("{error} was found, not a layout"));
    for step in &opened.repairs {
        device.perform(step, |_| ());
    }
    let tpl = opened.tpl;
    let size = u64::from(tpl.shape().block_sectors());
    let mut found = Vec::new();
    for run in tpl.runs(0..tpl.shape().blocks()).unwrap() {
        let replicas = tpl.current(run);
        for sector in 0..u64::from(run.blocks) * size {
            if !tpl.holds(run.home) {
                found.push(0);
                continue;
            }
            let mut places = tpl
                .places(run, replicas)
                .map(|(_, lbn)| device.stamp(lbn.0 + sector));
            let first = places.next().unwrap();
            assert!(
                places.all(|other| other == first),
                "replicas differ after a crash"
            );
            found.push(first);
        }
    }
    ((tpl, device), found)
}
