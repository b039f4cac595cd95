//! Physical sectors larger than logical ones: a drive writes them whole, and reads first what it
//! must not change (512e; read-modify-write). One that two writes in sequence share, and the buffer holds whole, is
//! written with the first of them.
//!
//! Left out: that such a drive reads them whole too, which is a few sectors' time.

use super::Drive;
use super::sweep::{Access, Leg};
use crate::mechanics::Position;
use crate::units::{Lbn, SimTime};

impl Drive {
    /// The bounds of the physical sectors that hold `[lbn, end)`.
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

    /// Whether the buffer has the rest of the first and of the last physical sector of a write.
    pub(super) fn held_edges(&self, lbn: Lbn, end: Lbn) -> (bool, bool) {
        let (first, last) = self.physical_bounds(lbn, end);
        (self.cache.holds(first, lbn), self.cache.holds(end, last))
    }

    /// Reads the physical sectors that a write covers in part, unless the buffer has the rest of
    /// them, or had it (`held`) when it took the write, which may have displaced it.
    ///
    /// Returns where and when the head is afterwards; without legs, nothing had to be read.
    pub(super) fn read_edges(
        &mut self,
        mut position: Position,
        mut now: SimTime,
        (lbn, end): (Lbn, Lbn),
        held: (bool, bool),
        legs: &mut Vec<Leg>,
    ) -> (Position, SimTime) {
        let ratio = u64::from(self.profile.sector.ratio());
        let (first, last) = self.physical_bounds(lbn, end);
        let now_held = self.held_edges(lbn, end);
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
