//! The state of the journal: its free sectors, and the stripes described by its records.

/// The number of sectors kept free for the record that settles the others.
const MARGIN_SECTORS: u64 = 4;

/// The kind of a stripe's records since the journal was last settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    /// Records hold the data of the stripe's writes.
    Logged,
    /// Records announce writes without their data.
    Intended,
}

/// The journal as a ring. `head` and `free_to` count all sectors ever used; modulo the size, they
/// are positions.
#[derive(Debug)]
pub(super) struct JournalSpace {
    size: u64,
    head: u64,
    /// All sectors before this are free.
    free_to: u64,
    reserved: u64,
    /// The sequence number of the next record.
    pub(super) next: u64,
    /// All records below this are settled.
    pub(super) tail: u64,
    /// The stripes with a record that is not settled, ascending.
    kinds: Vec<(u64, RecordKind)>,
    /// Whether the journal lacks the data of a write made since the last flush.
    pub(super) dirty: bool,
}

impl JournalSpace {
    pub(super) fn new(size: u64) -> JournalSpace {
        JournalSpace {
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

    /// Returns the size of the journal in sectors.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the largest size of a record in sectors.
    pub(super) fn record_max(&self) -> u64 {
        self.size.saturating_sub(2 * MARGIN_SECTORS) / 4
    }

    /// Returns the size of the smallest journal that can hold a record of `sectors` sectors.
    pub(super) fn size_for(sectors: u64) -> u64 {
        4 * sectors + 2 * MARGIN_SECTORS
    }

    /// Reserves space for a record, which may have to skip the end of the journal. Returns whether
    /// it fits. A record of 0 sectors always fits, even without a journal.
    pub(super) fn reserve(&mut self, sectors: u64) -> bool {
        let used = self.head - self.free_to + self.reserved + MARGIN_SECTORS;
        let fits = sectors == 0 || used + 2 * sectors <= self.size;
        if fits {
            self.reserved += 2 * sectors;
        }
        fits
    }

    /// Releases a reservation.
    pub(super) fn release(&mut self, sectors: u64) {
        self.reserved -= 2 * sectors;
    }

    /// Allocates sectors for a record. Returns their position, and the record's sequence number.
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

    /// Marks all records before the last one as settled. The last one has `sectors` sectors, and is
    /// durable.
    pub(super) fn settled(&mut self, sectors: u64) {
        self.free_to = self.head - sectors;
        self.tail = self.next - 1;
        self.kinds.clear();
    }

    /// Returns whether there is nothing to settle.
    pub(super) fn is_settled(&self) -> bool {
        self.kinds.is_empty()
    }

    pub(super) fn kind(&self, stripe: u64) -> Option<RecordKind> {
        let index = self
            .kinds
            .binary_search_by_key(&stripe, |(stripe, _)| *stripe);
        index.ok().map(|index| self.kinds[index].1)
    }

    /// Sets a stripe's kind. Returns whether it had none.
    pub(super) fn set_kind(&mut self, stripe: u64, kind: RecordKind) -> bool {
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
