//! A model of a log's content, and a worker that uses the log.

use traxtent_layout::log::{
    BlockLocation, Cleaning, Log, LogConfig, LogError, LogOp, Recovery, RecoveryStep,
};
use traxtent_map::TrackMap;
use traxtent_units::Rng;

use super::device::{Perform, SECTOR_BYTES};
use super::lbns;

/// The stamp that a block is filled with. 0 marks a block without data.
pub(super) type Stamp = u64;

/// The content that a log should have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Model {
    /// The content that should be read.
    pub(super) now: Vec<Stamp>,
    /// The content at the last sync.
    pub(super) synced: Vec<Stamp>,
    /// The changes since then, in order. Each consists of one or more blocks with their new stamps.
    pub(super) since: Vec<Vec<(u64, Stamp)>>,
}

impl Model {
    pub(super) fn new(blocks: u64) -> Model {
        Model {
            now: vec![0; blocks as usize],
            synced: vec![0; blocks as usize],
            since: Vec::new(),
        }
    }

    fn change(&mut self, changes: Vec<(u64, Stamp)>) {
        for &(block, stamp) in &changes {
            self.now[block as usize] = stamp;
        }
        self.since.push(changes);
    }

    fn synced(&mut self) {
        self.synced.clone_from(&self.now);
        self.since.clear();
    }

    /// Returns whether a power cut may have left this content: the synced content plus any number
    /// of the changes since, in order.
    pub(super) fn allows(&self, left: &[Stamp]) -> bool {
        let mut state = self.synced.clone();
        let mut changes = self.since.iter();
        loop {
            if state == left {
                return true;
            }
            let Some(next) = changes.next() else {
                return false;
            };
            for &(block, stamp) in next {
                state[block as usize] = stamp;
            }
        }
    }
}

/// A log in use on a device.
#[derive(Clone)]
pub(super) struct Worker<D> {
    pub(super) log: Log,
    pub(super) device: D,
    pub(super) model: Model,
    map: TrackMap,
    cleaning: Cleaning,
    next_stamp: Stamp,
    /// Draws the cleaning settings at reopening.
    rng: Rng,
}

impl<D: Perform> Worker<D> {
    pub(super) fn format(map: &TrackMap, device: D, config: &LogConfig, rng: Rng) -> Worker<D> {
        let mut worker = Worker {
            log: Log::format(map, lbns(map), config).unwrap(),
            device,
            model: Model::new(config.blocks),
            map: map.clone(),
            cleaning: config.cleaning,
            next_stamp: 1,
            rng,
        };
        worker.drain_and_check();
        worker
    }

    /// Carries out the log's operations. If `syncs` is true, a sync or a checkpoint has been
    /// requested. The changes so far are durable after its first flush.
    fn drain(&mut self, mut syncs: bool) {
        while let Some(op) = self.log.next_op() {
            let (reads, flushes) = (matches!(op, LogOp::Read { .. }), op == LogOp::Flush);
            if !reads {
                self.device.observe(&self.model, Some(&op));
            }
            let result = self.device.perform(op);
            self.log.complete(result).unwrap();
            if flushes && std::mem::take(&mut syncs) {
                self.model.synced();
            }
            if !reads {
                self.device.observe(&self.model, None);
            }
        }
    }

    fn drain_and_check(&mut self) {
        self.drain(false);
        assert_accounts(&self.log);
    }

    pub(super) fn write(&mut self, block: u64) {
        let stamp = self.next_stamp;
        self.next_stamp += 1;
        let bytes = self.log.shape().block_bytes();
        self.model.change(vec![(block, stamp)]);
        self.log.write(block, &filled(stamp, bytes)).unwrap();
        self.drain(false);
    }

    pub(super) fn sync(&mut self) {
        self.log.sync().unwrap();
        self.drain(true);
        self.model.synced();
        assert_accounts(&self.log);
    }

    /// Performs one random operation.
    pub(super) fn step(&mut self, rng: &mut Rng) {
        let blocks = self.log.blocks();
        match rng.below(100) {
            0..70 => {
                // Some blocks are hot.
                let below = if rng.chance(0.5) {
                    blocks.min(8)
                } else {
                    blocks
                };
                self.write(rng.below(below));
            }
            70..75 => {
                let first = rng.below(blocks);
                let count = 1 + rng.below((blocks - first).min(20));
                let range = first..first + count;
                self.model
                    .change(range.clone().map(|block| (block, 0)).collect());
                self.log.trim(range).unwrap();
                self.drain_and_check();
            }
            75..90 => self.sync(),
            90..92 => {
                self.log.checkpoint().unwrap();
                self.drain(true);
                self.model.synced();
                assert_accounts(&self.log);
            }
            92..94 => {
                self.log.clean().unwrap();
                self.drain_and_check();
            }
            _ => {
                let block = rng.below(blocks);
                let found = read(&self.log, &mut self.device, block).unwrap();
                assert_eq!(found, self.model.now[block as usize], "block {block}");
            }
        }
    }

    pub(super) fn contents(&mut self) -> Vec<Stamp> {
        contents(&self.log, &mut self.device)
    }

    pub(super) fn check_all(&mut self) {
        assert_eq!(self.contents(), self.model.now);
        assert_accounts(&self.log);
    }

    /// Syncs, drops the log and opens it again, possibly with other cleaning settings.
    pub(super) fn reopen(&mut self) {
        self.sync();
        self.cleaning.segments = 1 + self.rng.below(4) as u32;
        self.log = recover(&self.map, &mut self.device, self.cleaning).unwrap();
        self.drain_and_check();
    }
}

impl<D: Perform> Worker<D> {
    /// Continues from the state after a power cut.
    pub(super) fn continue_with(&mut self, device: D) {
        self.device = device;
        self.log = recover(&self.map, &mut self.device, self.cleaning).unwrap();
        drain(&mut self.log, &mut self.device);
        let left = self.contents();
        assert!(self.model.allows(&left));
        self.model.now = left;
        self.model.synced();
        self.check_all();
    }
}

pub(super) fn drain(log: &mut Log, device: &mut impl Perform) {
    while let Some(op) = log.next_op() {
        let result = device.perform(op);
        log.complete(result).unwrap();
    }
}

/// Opens the log by reads alone. The operations that make the recovered state durable are left to
/// the caller.
pub(super) fn recover(
    map: &TrackMap,
    device: &mut impl Perform,
    cleaning: Cleaning,
) -> Result<Log, LogError> {
    let mut step = Recovery::begin(lbns(map), SECTOR_BYTES as u32, cleaning);
    loop {
        step = match step {
            RecoveryStep::Perform(op, recovery) => recovery.complete(device.perform(op))?,
            RecoveryStep::Open(log) => return Ok(*log),
        }
    }
}

pub(super) fn contents(log: &Log, device: &mut impl Perform) -> Vec<Stamp> {
    (0..log.blocks())
        .map(|block| read(log, device, block).unwrap())
        .collect()
}

/// Returns the stamp of a block, whose bytes must all agree.
pub(super) fn read(log: &Log, device: &mut impl Perform, block: u64) -> Result<Stamp, LogError> {
    match log.read(block)? {
        BlockLocation::Nothing => Ok(0),
        BlockLocation::Here(bytes) => Ok(stamp(bytes)),
        BlockLocation::At(place) => {
            let bytes = device.perform(log.op_for(place));
            log.verify(place, &bytes)?;
            Ok(stamp(&bytes))
        }
    }
}

pub(super) fn filled(stamp: Stamp, bytes: usize) -> Vec<u8> {
    stamp.to_le_bytes().repeat(bytes / 8)
}

fn stamp(bytes: &[u8]) -> Stamp {
    let stamp = Stamp::from_le_bytes(*bytes.first_chunk().unwrap());
    assert_eq!(bytes, filled(stamp, bytes.len()), "a mixed block");
    stamp
}

/// Asserts that the numbers of live blocks in the segment table agree with a recount.
pub(super) fn assert_accounts(log: &Log) {
    let table: Vec<u32> = log.segments().iter().map(|segment| segment.live).collect();
    assert_eq!(table, log.recount());
}
