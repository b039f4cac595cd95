//! The journal's accounts: which sectors of it are free, and which stripes it tells of.

/// Sectors that are kept free for the record that settles the others.
const MARGIN: u64 = 4;

/// How a stripe stands in the journal since it was last settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With the data of its writes.
    Logged,
    /// As written whole.
    Intended,
}

/// Positions count sectors ever used; modulo the size they are places.
#[derive(Debug)]
pub(super) struct Ring {
    size: u64,
    head: u64,
    /// Before this all is free.
    free_to: u64,
    reserved: u64,
    /// The sequence number of the next record.
    pub(super) next: u64,
    /// Records below are settled.
    pub(super) tail: u64,
    /// Stripes with a record that is not settled, ascending.
    kinds: Vec<(u64, Kind)>,
    /// Whether a write was done since the last flush that the journal cannot repeat.
    pub(super) dirty: bool,
}

impl Ring {
    pub(super) fn new(size: u64) -> Ring {
        Ring {
            size,
            head: 0,
            free_to: 0,
            reserved: 0,
            next: 1,
            tail: 1,
            kinds: Vec::new(),
            dirty: false,
        }
    }

    /// The longest record.
    pub(super) fn record_max(&self) -> u64 {
        self.size.saturating_sub(2 * MARGIN) / 4
    }

    /// Keeps room for a record, which may have to skip the end of the journal. For none there is always room, also where
    /// there is no journal.
    pub(super) fn reserve(&mut self, sectors: u64) -> bool {
        let used = self.head - self.free_to + self.reserved + MARGIN;
        let fits = sectors == 0 || used + 2 * sectors <= self.size;
        if fits {
            self.reserved += 2 * sectors;
        }
        fits
    }

    /// Gives back what was reserved.
    pub(super) fn release(&mut self, sectors: u64) {
        self.reserved -= 2 * sectors;
    }

    /// Takes sectors for a record; returns their position, and the record's sequence number.
    pub(super) fn take(&mut self, sectors: u64) -> (u64, u64) {
        let left = self.size - self.head % self.size;
        if left < sectors {
            self.head += left;
        }
        let position = self.head % self.size;
        self.head += sectors;
        assert!(
            self.head - self.free_to <= self.size,
            "a record was overwritten"
        );
        self.next += 1;
        (position, self.next - 1)
    }

    /// All records before the one at the head, which is durable, are settled.
    pub(super) fn settled(&mut self, sectors: u64) {
        self.free_to = self.head - sectors;
        self.tail = self.next - 1;
        self.kinds.clear();
    }

    /// Whether there is anything to settle.
    pub(super) fn is_settled(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(super) fn kind(&self, stripe: u64) -> Option<Kind> {
        let index = self
            .kinds
            .binary_search_by_key(&stripe, |(stripe, _)| *stripe);
        index.ok().map(|index| self.kinds[index].1)
    }

    /// Returns whether it had none.
    pub(super) fn set_kind(&mut self, stripe: u64, kind: Kind) -> bool {
        match self
            .kinds
            .binary_search_by_key(&stripe, |(stripe, _)| *stripe)
        {
            Ok(index) => {
                self.kinds[index].1 = kind;
                false
            }
            Err(index) => {
                self.kinds.insert(index, (stripe, kind));
                true
            }
        }
    }

    pub(super) fn forget(&mut self, stripe: u64) {
        self.kinds.retain(|(other, _)| *other != stripe);
    }
}
