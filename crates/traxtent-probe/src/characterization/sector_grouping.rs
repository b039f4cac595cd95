//! The grouping of LBNs into physical sectors.

use traxtent_units::Lbn;

/// The grouping of LBNs into physical sectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SectorGrouping {
    /// The number of LBNs in a physical sector.
    pub(super) sectors: u32,
    /// The first LBN that begins a physical sector.
    pub(super) first: u32,
}

impl SectorGrouping {
    /// Each LBN is a physical sector.
    pub(super) const SINGLE: SectorGrouping = SectorGrouping {
        sectors: 1,
        first: 0,
    };

    /// Returns how many LBNs come before this one in its physical sector.
    fn within(self, lbn: Lbn) -> u64 {
        let (sectors, first) = (u64::from(self.sectors), u64::from(self.first));
        (lbn.0 + sectors - first) % sectors
    }

    /// Returns the first LBN of this LBN's physical sector.
    pub(super) fn begin(self, lbn: Lbn) -> Lbn {
        Lbn(lbn.0.saturating_sub(self.within(lbn)))
    }

    /// Returns the first LBN after this LBN's physical sector.
    pub(super) fn end(self, lbn: Lbn) -> Lbn {
        Lbn(lbn.0 + u64::from(self.sectors) - self.within(lbn))
    }
}
