//! Grids: the addresses to which layers should be aligned, and the distance of an address from
//! them.

use crate::layers::RaidLevel;
use crate::stack::{Kind, LayerId, Stack};

/// The unit of a grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum GridUnit {
    Physical,
    Chunk,
    Stripe,
    Erase,
}

/// Equally spaced addresses of a layer, called lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Grid {
    pub(super) layer: LayerId,
    pub(super) unit: GridUnit,
    pub(super) period_bytes: u64,
    /// The address of one of its lines.
    pub(super) origin_bytes: u64,
}

impl Grid {
    /// Returns the distance in bytes from the last line at or before an address.
    pub(super) fn offset(&self, at: u64) -> u64 {
        let origin = self.origin_bytes % self.period_bytes;
        (at % self.period_bytes + self.period_bytes - origin) % self.period_bytes
    }
}

/// Returns the grids that a layer itself has.
fn own(stack: &Stack, id: LayerId) -> Vec<Grid> {
    let mut grids = Vec::new();
    let mut add = |unit, period_bytes: u64, origin_bytes| {
        if period_bytes > 1 {
            grids.push(Grid {
                layer: id,
                unit,
                period_bytes,
                origin_bytes,
            });
        }
    };
    match &stack.layer(id).kind {
        Kind::Disk(disk) => {
            add(
                GridUnit::Physical,
                disk.physical_bytes,
                disk.first_aligned_byte,
            );
            add(GridUnit::Chunk, disk.chunk_bytes.unwrap_or(0), 0);
            add(GridUnit::Stripe, disk.stripe_bytes.unwrap_or(0), 0);
            add(GridUnit::Erase, disk.erase_bytes.unwrap_or(0), 0);
        }
        Kind::Array(array) => {
            add(GridUnit::Chunk, array.chunk_bytes, 0);
            // Full stripes are a grid of their own only with parity.
            if matches!(
                array.level,
                RaidLevel::Raid4 | RaidLevel::Raid5 | RaidLevel::Raid6
            ) {
                add(GridUnit::Stripe, array.stripe_bytes, 0);
            }
        }
        Kind::LogicalVolume(volume) => {
            add(GridUnit::Chunk, volume.chunk_bytes, 0);
            if ["raid4", "raid5", "raid6"]
                .iter()
                .any(|level| volume.segment.starts_with(level))
            {
                add(GridUnit::Stripe, volume.stripe_bytes, 0);
            }
        }
        _ => {}
    }
    grids
}

/// Returns every grid at or below an address of a layer, with the corresponding address on the
/// grid's layer.
pub(super) fn below(stack: &Stack, id: LayerId, offset: u64) -> Vec<(Grid, u64)> {
    let mut found = Vec::new();
    let mut seen = Vec::new();
    let mut waiting = vec![(id, offset)];
    while let Some((id, offset)) = waiting.pop() {
        // Mirrors and members may lie on the same drive.
        if seen.contains(&(id, offset)) {
            continue;
        }
        seen.push((id, offset));
        found.extend(own(stack, id).into_iter().map(|grid| (grid, offset)));
        waiting.extend(stack.below(id, offset));
    }
    found.sort_unstable();
    found
}

/// Returns the drives at or below a layer, each once.
pub(super) fn disks(stack: &Stack, id: LayerId) -> Vec<LayerId> {
    let mut disks = Vec::new();
    let mut seen = vec![false; stack.layers.len()];
    let mut waiting = vec![id];
    while let Some(id) = waiting.pop() {
        if std::mem::replace(&mut seen[id.0], true) {
            continue;
        }
        if matches!(stack.layer(id).kind, Kind::Disk(_)) {
            disks.push(id);
        }
        waiting.extend(stack.layer(id).on.iter().map(|place| place.layer));
    }
    disks.sort_unstable();
    disks
}

/// Returns the nearest striped layer at or below a layer, with the sizes of its chunk and its full
/// stripe in bytes. A drive counts only if both sizes are stated: one does not follow from the
/// other.
pub(crate) fn array_below(stack: &Stack, id: LayerId) -> Option<(LayerId, u64, u64)> {
    let mut at = id;
    loop {
        let (chunk, stripe) = match &stack.layer(at).kind {
            Kind::Array(array) => (array.chunk_bytes, array.stripe_bytes),
            Kind::LogicalVolume(volume) => (volume.chunk_bytes, volume.stripe_bytes),
            Kind::Disk(disk) => disk.chunk_bytes.zip(disk.stripe_bytes)?,
            _ => (0, 0),
        };
        if chunk > 0 {
            return Some((at, chunk, stripe));
        }
        at = stack.layer(at).on.first()?.layer;
    }
}

/// Returns the largest physical sector of the drives at or below a layer, and the drive that has
/// it.
pub(crate) fn physical_below(stack: &Stack, id: LayerId) -> Option<(LayerId, u64)> {
    let sizes = disks(stack, id)
        .into_iter()
        .filter_map(|id| match &stack.layer(id).kind {
            Kind::Disk(disk) => Some((id, disk.physical_bytes)),
            _ => None,
        });
    sizes.max_by_key(|(id, bytes)| (*bytes, std::cmp::Reverse(*id)))
}

/// The maximum number of positions that the search for a common line of all grids tries per grid.
const LINES_MAX: u64 = 1 << 20;

/// The positions at which a layer would begin on every grid of a layer below it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommonLines {
    /// The distance in bytes by which the layer has to move forward to the next one; 0 if it begins
    /// at one.
    pub(crate) forward: u64,
    /// The distance in bytes between two of them.
    pub(crate) period: u64,
}

/// Returns the positions at which a layer would begin on every grid of the layer `on` below it:
/// physical sectors, chunks, full stripes and erase blocks. Returns `None` if none is found.
pub(crate) fn common_lines(stack: &Stack, id: LayerId, on: LayerId) -> Option<CommonLines> {
    let (mut forward, mut step) = (0_u64, 1_u64);
    for (grid, at) in below(stack, id, 0) {
        if grid.layer != on {
            continue;
        }
        let period = grid.period_bytes;
        // After this many steps, the common lines of the grids so far repeat relative to this one.
        let repeats = period / gcd(step, period);
        if step == 1 {
            forward = (period - grid.offset(at)) % period;
        } else {
            let mut lines = (0..repeats.min(LINES_MAX)).map(|line| forward + line * step);
            forward = lines.find(|&bytes| grid.offset(at.saturating_add(bytes)) == 0)?;
        }
        step = step.checked_mul(repeats)?;
    }
    Some(CommonLines {
        forward,
        period: step,
    })
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}
