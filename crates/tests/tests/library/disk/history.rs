//! A model of the data that a host may expect of a disk, independent of the disk's implementation.

use std::collections::BTreeMap;

use traxtent_model::disk::{Command, Completion, Disk, Tag};

/// The expected contents of a disk. For each grain, which is a unit of 512 bytes: the durable
/// stamp, and the stamps that a power cut may leave instead.
#[derive(Clone, Debug)]
pub(super) struct History {
    grains: Vec<Grain>,
    /// The number of grains in a logical sector.
    per_sector: usize,
    /// The commands that are not complete. For each, the stamp of its data, and the number of
    /// writes acknowledged before it was submitted.
    outstanding: BTreeMap<Tag, (Command, u64, usize)>,
    /// The number of writes acknowledged.
    acknowledged: usize,
}

#[derive(Clone, Debug, Default)]
struct Grain {
    durable: u64,
    /// Later acknowledged writes, in order: the stamp, and the number of the acknowledgement.
    since: Vec<(u64, usize)>,
}

impl History {
    pub(super) fn new(sectors: usize, sector_bytes: u32) -> History {
        let per_sector = sector_bytes as usize / 512;
        History {
            grains: vec![Grain::default(); sectors * per_sector],
            per_sector,
            outstanding: BTreeMap::new(),
            acknowledged: 0,
        }
    }

    /// Records a command and the stamp of the data that it writes.
    pub(super) fn submitted(&mut self, tag: Tag, command: Command, stamp: u64) {
        let stamp = if matches!(command, Command::Write { .. }) {
            stamp
        } else {
            0
        };
        self.outstanding
            .insert(tag, (command, stamp, self.acknowledged));
    }

    /// Records that a command has succeeded. For a read, returns its first grain and its number of
    /// grains.
    pub(super) fn completed(&mut self, done: &Completion) -> Option<(usize, usize)> {
        let (command, stamp, before) = self.outstanding.remove(&done.tag).unwrap();
        let (lbn, sectors) = command.sectors();
        let first = lbn.0 as usize * self.per_sector;
        let count = sectors as usize * self.per_sector;
        let fua = match command {
            Command::Read { .. } => return Some((first, count)),
            Command::Flush => {
                self.flushed(before);
                return None;
            }
            Command::Trim { .. } => false,
            Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } => fua,
        };
        for grain in &mut self.grains[first..first + count] {
            if fua {
                (grain.durable, grain.since) = (stamp, Vec::new());
            } else {
                grain.since.push((stamp, self.acknowledged));
            }
        }
        self.acknowledged += 1;
        None
    }

    /// Makes durable all writes whose acknowledgement has a lower number than `before`.
    fn flushed(&mut self, before: usize) {
        for grain in &mut self.grains {
            let durable = grain.since.partition_point(|(_, number)| *number < before);
            if let Some((stamp, _)) = grain.since.drain(..durable).next_back() {
                grain.durable = stamp;
            }
        }
    }

    /// Returns the stamp that a host must read.
    pub(super) fn visible(&self, grain: usize) -> u64 {
        let Grain { durable, since } = &self.grains[grain];
        since.last().map_or(*durable, |(stamp, _)| *stamp)
    }

    /// Returns the stamps that a power cut may leave, oldest first: the durable one, acknowledged
    /// ones, outstanding ones.
    pub(super) fn possible(&self, grain: usize) -> Vec<u64> {
        let Grain { durable, since } = &self.grains[grain];
        let acknowledged = since.iter().map(|(stamp, _)| *stamp);
        let outstanding = self.outstanding.values().filter_map(|(command, stamp, _)| {
            let writes = matches!(command, Command::Write { .. } | Command::WriteZeroes { .. });
            let (lbn, sectors) = command.sectors();
            let first = lbn.0 as usize * self.per_sector;
            let covers = (first..first + sectors as usize * self.per_sector).contains(&grain);
            (writes && covers).then_some(*stamp)
        });
        std::iter::once(*durable)
            .chain(acknowledged)
            .chain(outstanding)
            .collect()
    }

    /// Makes the state after a power cut the new durable state.
    pub(super) fn settle(&mut self, stamps: &[u64]) {
        self.outstanding.clear();
        for (grain, stamp) in self.grains.iter_mut().zip(stamps) {
            *grain = Grain {
                durable: *stamp,
                since: Vec::new(),
            };
        }
    }

    pub(super) fn grains(&self) -> usize {
        self.grains.len()
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }
}

/// Returns the stamps of `count` grains, and asserts that no grain is torn.
pub(super) fn stamps(disk: &Disk, first: usize, count: usize) -> Vec<u64> {
    let mut bytes = vec![0xff; count * 512];
    let per_sector = disk.sector_bytes() as usize / 512;
    let lbn = traxtent_units::Lbn((first / per_sector) as u64);
    disk.fetch(lbn, &mut bytes).unwrap();
    let grains = bytes.chunks(512).map(|grain| {
        let stamp: [u8; 8] = grain[..8].try_into().unwrap();
        assert!(grain.chunks(8).all(|part| part == stamp), "a torn grain");
        u64::from_le_bytes(stamp)
    });
    grains.collect()
}
