//! The pattern of LBNs on one track.

/// The slots of a track that hold LBNs: `sectors` slots from slot `begin` on, not counting the
/// gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// The number of slots around the track.
    pub(super) slots: u32,
    /// The first slot that may hold an LBN.
    pub(super) begin: u32,
    /// The number of LBNs on the track.
    pub(super) sectors: u32,
    /// The track's bad slots, as a range in the list of gaps.
    pub(super) gaps: (u32, u32),
}

/// Consecutive bad slots of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gap {
    pub(super) start: u32,
    pub(super) len: u32,
    /// LBNs of the track that lie before this gap; none for a gap before the shape's `begin`.
    before: u32,
    /// Bad slots from `begin` to the end of this gap.
    skipped: u32,
}

/// The contents of a track's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// The LBN with this number on the track, counted from 0.
    Holds(u32),
    Bad,
    Empty,
}

impl Shape {
    /// Creates a track without bad slots.
    pub(super) fn plain(slots: u32, begin: u32, sectors: u32) -> Shape {
        let gaps = (0, 0);
        Shape {
            slots,
            begin,
            sectors,
            gaps,
        }
    }

    /// Creates a track with bad slots, given as ascending, disjoint (start, length) pairs, and adds
    /// these to `store`.
    pub(super) fn with_gaps(
        slots: u32,
        begin: u32,
        sectors: u32,
        bad: impl IntoIterator<Item = (u32, u32)>,
        store: &mut Vec<Gap>,
    ) -> Shape {
        let first = store.len() as u32;
        let mut skipped = 0;
        for (start, len) in bad {
            // Slots before `begin` hold nothing, whether bad or not.
            let before = start.saturating_sub(begin).saturating_sub(skipped);
            skipped += (start + len).saturating_sub(begin.max(start)).min(len);
            store.push(Gap {
                start,
                len,
                before,
                skipped,
            });
        }
        let gaps = (first, store.len() as u32);
        Shape {
            slots,
            begin,
            sectors,
            gaps,
        }
    }

    fn gaps(self, store: &[Gap]) -> &[Gap] {
        &store[self.gaps.0 as usize..self.gaps.1 as usize]
    }

    /// Returns the slot of the track's LBN number `k`, counted from 0.
    #[inline]
    pub(super) fn slot(self, k: u32, store: &[Gap]) -> u32 {
        if self.gaps.0 == self.gaps.1 {
            return self.begin + k;
        }
        let gaps = self.gaps(store);
        let passed = gaps.partition_point(|g| g.before <= k);
        let skipped = if passed == 0 {
            0
        } else {
            gaps[passed - 1].skipped
        };
        self.begin + k + skipped
    }

    /// Returns the contents of slot `slot`.
    pub(super) fn at(self, slot: u32, store: &[Gap]) -> Slot {
        let gaps = self.gaps(store);
        let passed = gaps.partition_point(|g| g.start <= slot);
        let mut skipped = 0;
        if let Some(gap) = passed.checked_sub(1).map(|i| gaps[i]) {
            if slot < gap.start + gap.len {
                return Slot::Bad;
            }
            skipped = gap.skipped;
        }
        match slot
            .checked_sub(self.begin)
            .and_then(|k| k.checked_sub(skipped))
        {
            Some(k) if k < self.sectors => Slot::Holds(k),
            _ => Slot::Empty,
        }
    }

    /// The bad slots, as (start, length) pairs.
    pub(super) fn bad(self, store: &[Gap]) -> impl Iterator<Item = (u32, u32)> {
        self.gaps(store).iter().map(|g| (g.start, g.len))
    }
}
