//! A device with a volatile cache, in memory: sectors of 512 bytes, nothing durable before a flush.

use traxtent_layout::log::LogOp;
use traxtent_units::Lbn;
use traxtent_units::Rng;

use super::model::Model;

pub(super) const SECTOR_BYTES: usize = 512;

/// An executor of a log's operations.
pub(super) trait Perform {
    fn perform(&mut self, op: LogOp) -> Vec<u8>;

    /// Called before and after each operation that is not a read, with the content that the log
    /// should have. `next` is the operation before it is performed, and `None` afterwards.
    fn observe(&mut self, _model: &Model, _next: Option<&LogOp>) {}
}

#[derive(Clone)]
pub(super) struct Device {
    /// The content that the host sees.
    visible: Vec<u8>,
    /// The durable content.
    durable: Vec<u8>,
    /// Writes that are not durable, in order, each with its byte offset.
    volatile: Vec<(usize, Vec<u8>)>,
    /// True if the device reports flushes without performing them.
    pub(super) lies: bool,
}

/// The effect of a power cut on the writes that were not durable.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fate {
    /// All lost.
    None,
    /// All kept.
    All,
    /// Each write is independently kept or lost: later ones may be kept while earlier ones are
    /// lost.
    Writes(u64),
    /// Each unit of this many sectors of each write is independently kept or lost.
    Units(usize, u64),
    /// Only the last write is kept, and it is torn.
    OnlyLast(u64),
}

impl Device {
    pub(super) fn new(end: Lbn) -> Device {
        // Not zeros, because a log must not rely on them.
        let bytes = vec![0xa5; end.0 as usize * SECTOR_BYTES];
        Device {
            visible: bytes.clone(),
            durable: bytes,
            volatile: Vec::new(),
            lies: false,
        }
    }

    /// Returns the device after a power cut.
    pub(super) fn cut(&self, fate: Fate) -> Device {
        let mut left = self.durable.clone();
        let seed = match fate {
            Fate::Writes(seed) | Fate::Units(_, seed) | Fate::OnlyLast(seed) => seed,
            Fate::None | Fate::All => 0,
        };
        let mut rng = Rng::new(seed);
        for (index, (at, data)) in self.volatile.iter().enumerate() {
            let last = index + 1 == self.volatile.len();
            let (unit, kept) = match fate {
                Fate::None => continue,
                Fate::All => (data.len(), 1.0),
                Fate::Writes(_) => (data.len(), 0.5),
                Fate::Units(sectors, _) => (sectors * SECTOR_BYTES, 0.5),
                Fate::OnlyLast(_) if last => (SECTOR_BYTES, 0.5),
                Fate::OnlyLast(_) => continue,
            };
            let mut from = *at;
            let end = at + data.len();
            while from < end {
                // Units lie at multiples of their size, like physical sectors.
                let to = if unit == data.len() {
                    end
                } else {
                    ((from / unit + 1) * unit).min(end)
                };
                if rng.chance(kept) {
                    left[from..to].copy_from_slice(&data[from - at..to - at]);
                }
                from = to;
            }
        }
        Device {
            visible: left.clone(),
            durable: left,
            volatile: Vec::new(),
            lies: false,
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.visible
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.visible
    }
}

impl Perform for Device {
    fn perform(&mut self, op: LogOp) -> Vec<u8> {
        match op {
            LogOp::Read { lbn, sectors } => {
                let at = lbn.0 as usize * SECTOR_BYTES;
                self.visible[at..at + sectors.0 as usize * SECTOR_BYTES].to_vec()
            }
            LogOp::Write { lbn, data } => {
                let at = lbn.0 as usize * SECTOR_BYTES;
                self.visible[at..at + data.len()].copy_from_slice(&data);
                self.volatile.push((at, data));
                Vec::new()
            }
            LogOp::Flush if self.lies => Vec::new(),
            LogOp::Flush => {
                for (at, data) in self.volatile.drain(..) {
                    self.durable[at..at + data.len()].copy_from_slice(&data);
                }
                Vec::new()
            }
        }
    }
}
