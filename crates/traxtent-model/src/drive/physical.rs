//! Physical sectors larger than logical ones. The drive writes them as a whole, and first reads
//! those that a write covers only in part (512e; read-modify-write). If two consecutive writes
//! share a physical sector and the buffer holds all of it, it is written with the first of them.
//!
//! Left out: such a drive also reads physical sectors as a whole, so a read that ends within one
//! takes up to seven logical sectors longer. `docs/internals/decisions.md` states the reason.

use super::Drive;
use super::sweep::{Access, Leg};
use crate::mechanics::HeadPosition;
use traxtent_units::{Lbn, SimTime};

impl Drive {
    /// Returns the bounds of the physical sectors that contain `[lbn, end)`.
    pub(super) fn physical_bounds(&self, lbn: Lbn, end: Lbn) -> (Lbn, Lbn) {
        let ratio = u64::from(self.profile.sector.ratio());
        if ratio == 1 {
            return (lbn, end);
        }
        let shift = ratio - u64::from(self.profile.sector.lowest_aligned_lbn) % ratio;
        let first = ((lbn.0 + shift) / ratio * ratio).saturating_sub(shift);
        let last = (end.0 + shift).div_ceil(ratio) * ratio - shift;
        (Lbn(first), Lbn(last).min(Lbn(self.geometry.capacity().0)))
    }

    /// Returns whether the buffer holds the rest of the first and of the last physical sector of a
    /// write.
    pub(super) fn buffered_edges(&self, lbn: Lbn, end: Lbn) -> (bool, bool) {
        let (first, last) = self.physical_bounds(lbn, end);
        (self.cache.holds(first, lbn), self.cache.holds(end, last))
    }

    /// Reads the physical sectors that a write covers in part. They are not read if the buffer
    /// holds the rest of them, or if it held the rest (`held`) when it accepted the write, which
    /// may itself have displaced the rest since.
    ///
    /// Returns the position and time of the head afterwards. If no legs were added, nothing had to
    /// be read.
    pub(super) fn read_partial_sectors(
        &mut self,
        mut position: HeadPosition,
        mut now: SimTime,
        (lbn, end): (Lbn, Lbn),
        held: (bool, bool),
        legs: &mut Vec<Leg>,
    ) -> (HeadPosition, SimTime) {
        let ratio = u64::from(self.profile.sector.ratio());
        let (first, last) = self.physical_bounds(lbn, end);
        if (first, last) == (lbn, end) {
            return (position, now);
        }
        let now_held = self.buffered_edges(lbn, end);
        let head = !(held.0 || now_held.0);
        let tail = !(held.1 || now_held.1);
        let single = last.0 - first.0 <= ratio;
        let mut edges = [None, None];
        if head || (single && tail) {
            edges[0] = Some(first);
        }
        if tail && !single {
            edges[1] = Some(Lbn(last.0.saturating_sub(ratio).max(first.0)));
        }
        for lbn in edges.into_iter().flatten() {
            let sectors = ratio.min(last.0 - lbn.0) as u32;
            let access = Access {
                lbn,
                sectors,
                write: false,
                zero_latency: false,
                inflow: None,
                not_before: SimTime::ZERO,
            };
            (position, now) = self.sweep(position, now, &access, legs);
        }
        (position, now)
    }
}
