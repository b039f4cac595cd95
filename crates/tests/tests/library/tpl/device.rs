//! A device whose sectors hold a stamp or bytes of the table. Writes may be lost at a power failure
//! until they are flushed.

use std::collections::BTreeMap;

use traxtent_layout::tpl::DeviceStep;
use traxtent_units::Rng;
use traxtent_units::{Lbn, Sectors};

pub(super) const SECTOR_BYTES: usize = 80;

#[derive(Clone, Default)]
pub(super) struct Device {
    sectors: BTreeMap<u64, Sector>,
    /// Writes that are not durable, sector by sector, in order.
    pending: Vec<(u64, Sector)>,
    /// True if flushes do nothing. The tests must detect this.
    pub(super) lies: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Sector {
    Stamp(u64),
    Table(Vec<u8>),
}

impl Device {
    /// Returns the stamp of a sector: 0 if nothing was written, `u64::MAX` in the table.
    pub(super) fn stamp(&self, lbn: u64) -> u64 {
        let pending = self.pending.iter().rev().find(|(at, _)| *at == lbn);
        match pending.map(|(_, sector)| sector).or(self.sectors.get(&lbn)) {
            None => 0,
            Some(Sector::Stamp(stamp)) => *stamp,
            Some(Sector::Table(_)) => u64::MAX,
        }
    }

    pub(super) fn write(&mut self, lbn: u64, stamp: u64) {
        self.pending.push((lbn, Sector::Stamp(stamp)));
    }

    pub(super) fn flush(&mut self) {
        if !self.lies {
            self.settle();
        }
    }

    fn settle(&mut self) {
        for (lbn, sector) in std::mem::take(&mut self.pending) {
            self.sectors.insert(lbn, sector);
        }
    }

    /// Performs a step, one write after another; `look` sees the device after each.
    pub(super) fn perform(&mut self, step: &DeviceStep, mut look: impl FnMut(&Device)) {
        match step {
            DeviceStep::Flush => self.flush(),
            DeviceStep::Table { lbn, bytes } => {
                for (index, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                    let at = lbn.0 + index as u64;
                    self.pending.push((at, Sector::Table(sector.to_vec())));
                    look(self);
                }
            }
            DeviceStep::Zeros { to, sectors } => {
                for place in to {
                    (0..sectors.0).for_each(|sector| self.write(place.0 + sector, 0));
                    look(self);
                }
            }
            DeviceStep::Copy { from, to, sectors } => {
                let stamps: Vec<u64> = (0..sectors.0).map(|at| self.stamp(from.0 + at)).collect();
                for place in to {
                    for (at, stamp) in stamps.iter().enumerate() {
                        self.write(place.0 + at as u64, *stamp);
                    }
                    look(self);
                }
            }
        }
    }

    /// Returns the device after a loss of power. Of the writes that were not durable, it keeps all,
    /// none, a prefix, or an arbitrary subset.
    pub(super) fn cut(&self, rng: &mut Rng) -> Device {
        let mut left = self.clone();
        left.lies = false;
        let fate = rng.below(4);
        let prefix = rng.below(left.pending.len() as u64 + 1) as usize;
        let mut at = 0;
        left.pending.retain(|_| {
            at += 1;
            match fate {
                0 => true,
                1 => false,
                2 => at <= prefix,
                _ => rng.chance(0.5),
            }
        });
        left.settle();
        left
    }

    /// Reads bytes of the table. Other sectors read as zeros.
    pub(super) fn bytes(&self, lbn: Lbn, sectors: Sectors) -> Vec<u8> {
        let mut bytes = Vec::new();
        for at in lbn.0..lbn.0 + sectors.0 {
            let pending = self.pending.iter().rev().find(|(of, _)| *of == at);
            match pending.map(|(_, sector)| sector).or(self.sectors.get(&at)) {
                Some(Sector::Table(sector)) => bytes.extend(sector),
                _ => bytes.extend([0; SECTOR_BYTES]),
            }
        }
        bytes
    }

    /// Damages a sector of the table.
    pub(super) fn damage(&mut self, lbn: u64) {
        if let Some(Sector::Table(bytes)) = self.sectors.get_mut(&lbn) {
            bytes[7] ^= 0x40;
        }
    }
}
