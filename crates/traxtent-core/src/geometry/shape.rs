//! The pattern of LBNs on one track.

/// Which slots of a track hold LBNs: `sectors` of them from slot `begin` on, past the gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    /// Physical sectors around the track.
    pub(super) slots: u32,
    /// Slots before this one hold no LBN.
    pub(super) begin: u32,
    /// How many LBNs the track holds.
    pub(super) sectors: u32,
    /// Its bad slots, as a range of the list of gaps.
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

/// What the slot of a track holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    /// This LBN of the track, counted from 0.
    Holds(u32),
    Bad,
    Empty,
}

impl Shape {
    /// A track without bad slots.
    pub(super) fn plain(slots: u32, begin: u32, sectors: u32) -> Shape {
        let gaps = (0, 0);
        Shape {
            slots,
            begin,
            sectors,
            gaps,
        }
    }

    /// A track with bad slots, given as ascending, disjoint (start, length) pairs, which are added
    /// to `store`.
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
            // Slots before `begin` hold nothing, bad or not.
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

    /// The slot of the track's `k`-th LBN.
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

    /// What slot `slot` holds.
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
