//! Storage for a drive's media, which hold the data after a flush.

/// Bytes that survive a power cut, addressed from 0 to the drive's capacity.
///
/// This crate does not read or write files; an implementation of this trait can. Bytes that were
/// never written are read as zeros. Ranges are within the drive's capacity. They begin and end at
/// logical sectors, except that a power cut may tear a write at a multiple of 512 bytes, and that
/// [`Disk::write_out`](super::Disk::write_out) may stop at any byte.
pub trait Media {
    /// Reads bytes, starting at `at`, until `into` is full.
    ///
    /// # Errors
    /// Returns the error of the storage. The contents of `into` are then undefined.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError>;

    /// Writes `data`, starting at byte `at`.
    ///
    /// # Errors
    /// Returns the error of the storage. Each sector of the range is then old or new.
    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), MediaError>;

    /// Sets `length` bytes starting at `at` to zero. May free their space.
    ///
    /// # Errors
    /// Returns the error of the storage. Each sector of the range is then old or new.
    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError>;

    /// A barrier: when it returns, earlier writes are permanent, whatever happens to the machine.
    ///
    /// # Errors
    /// Returns the error of the storage.
    fn sync(&mut self) -> Result<(), MediaError>;

    /// Returns whether a flush may leave its writes for
    /// [`Disk::write_out`](super::Disk::write_out), and complete without them. The cache holds
    /// `bytes` bytes in `writes` writes, including those that the flush does not cover. A power cut
    /// keeps the flushed writes, because the disk writes them first. The default is false: the
    /// media then hold all flushed data.
    ///
    /// A medium that returns true must have room for these writes, or must report their failure
    /// before it reports the flush as complete.
    fn defers_writes(&self, bytes: u64, writes: u64) -> bool {
        let _ = (bytes, writes);
        false
    }
}

/// The reason why a medium did not carry out an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// There is no space for more data.
    #[error("no space left in the storage of the drive's data")]
    NoSpace,
    /// Any other failure.
    #[error("the storage of the drive's data failed: {what}")]
    Failed {
        /// The description of the failure, from the medium.
        what: String,
    },
}

/// A medium in memory. Pages of 4 KiB that were never written, or were set to zero as a whole, need
/// no space, so a drive of terabytes is as small as its data. A write of one sector needs a page
/// and the tables that lead to it, about 6 KB at most.
#[derive(Clone, Debug, Default)]
pub struct MemoryMedia {
    /// Tables of groups of pages. A lookup takes three steps, regardless of the number of pages.
    tables: Vec<Option<Box<Table>>>,
    /// The total size of all pages, groups and tables in bytes.
    held: u64,
}

/// The size of a page in bytes. A write of one byte allocates a whole page.
const PAGE_BYTES: usize = 4 << 10;
/// The size of a cache line in bytes on most processors.
const LINE_BYTES: usize = 64;
/// The number of pages in a group.
const GROUP_PAGES: usize = 64;
/// The number of groups in a table.
const TABLE_GROUPS: usize = 128;

type Page = [u8; PAGE_BYTES];
/// Consecutive pages. Pages that are all zeros may be missing.
type Group = [Option<Box<Page>>; GROUP_PAGES];
type Table = [Option<Box<Group>>; TABLE_GROUPS];

/// The location of a byte.
struct PageAddress {
    table: usize,
    group: usize,
    page: usize,
    inside: usize,
}

impl PageAddress {
    fn of(at: u64) -> PageAddress {
        let page = at / PAGE_BYTES as u64;
        let group = page / GROUP_PAGES as u64;
        PageAddress {
            table: (group / TABLE_GROUPS as u64) as usize,
            group: (group % TABLE_GROUPS as u64) as usize,
            page: (page % GROUP_PAGES as u64) as usize,
            inside: (at % PAGE_BYTES as u64) as usize,
        }
    }

    /// The number of bytes from this one to the end of the page, limited to `most`.
    fn room(&self, most: u64) -> usize {
        most.min((PAGE_BYTES - self.inside) as u64) as usize
    }

    /// The first byte after the group.
    fn end_of_group(&self) -> u64 {
        let groups = (self.table * TABLE_GROUPS + self.group) as u64 + 1;
        groups * (GROUP_PAGES * PAGE_BYTES) as u64
    }

    /// The first byte after the table.
    fn end_of_table(&self) -> u64 {
        (self.table as u64 + 1) * (TABLE_GROUPS * GROUP_PAGES * PAGE_BYTES) as u64
    }
}

impl MemoryMedia {
    /// Creates an empty medium, which contains zeros.
    pub fn new() -> MemoryMedia {
        MemoryMedia::default()
    }

    /// Returns the number of bytes of memory in use for data and tables.
    pub fn bytes_held(&self) -> u64 {
        self.held
    }

    /// Returns the number of additional bytes of memory that a write of `length` bytes starting at
    /// `at` would need.
    pub fn bytes_missing(&self, mut at: u64, length: u64) -> u64 {
        let (mut missing, end) = (0, at + length);
        // The table and the group of the previous step.
        let (mut table, mut group) = (None, None);
        while at < end {
            let place = PageAddress::of(at);
            let known = self.tables.get(place.table).and_then(Option::as_deref);
            if table.replace(place.table) != Some(place.table) && known.is_none() {
                missing += size_of::<Table>() as u64;
            }
            let known = known.and_then(|table| table[place.group].as_deref());
            let number = (place.table, place.group);
            if group.replace(number) != Some(number) && known.is_none() {
                missing += size_of::<Group>() as u64;
            }
            let is_held = known.is_some_and(|group| group[place.page].is_some());
            missing += u64::from(!is_held) * PAGE_BYTES as u64;
            at += place.room(end - at) as u64;
        }
        missing
    }

    /// Loads a range into the processor's cache by reading a byte of each cache line, so that a
    /// subsequent write waits less.
    pub fn touch(&self, mut at: u64, length: u64) {
        let end = at + length;
        while at < end {
            let place = PageAddress::of(at);
            let room = place.room(end - at);
            if let Some(page) = self.page(&place) {
                let lines = page[place.inside..][..room].iter().step_by(LINE_BYTES);
                std::hint::black_box(lines.fold(0, |sum, byte| sum ^ byte));
            }
            at += room as u64;
        }
    }

    fn page(&self, place: &PageAddress) -> Option<&Page> {
        let table = self.tables.get(place.table)?.as_ref()?;
        let group = table[place.group].as_ref()?;
        group[place.page].as_deref()
    }

    fn page_to_write(&mut self, place: &PageAddress) -> &mut Page {
        if place.table >= self.tables.len() {
            self.tables.resize_with(place.table + 1, || None);
        }
        let held = &mut self.held;
        let table = get_or_make(&mut self.tables[place.table], held, empty);
        let group = get_or_make(&mut table[place.group], held, empty);
        get_or_make(&mut group[place.page], held, zeros)
    }
}

/// Returns the existing value or creates one, whose size is added to `held`.
fn get_or_make<'a, T>(
    place: &'a mut Option<Box<T>>,
    held: &mut u64,
    make: fn() -> Box<T>,
) -> &'a mut T {
    place.get_or_insert_with(|| {
        *held += size_of::<T>() as u64;
        make()
    })
}

/// Returns the size of a group and its pages in bytes.
fn bytes_of(group: &Group) -> u64 {
    let pages = group.iter().flatten().count();
    (size_of::<Group>() + pages * PAGE_BYTES) as u64
}

fn empty<T, const N: usize>() -> Box<[Option<T>; N]> {
    Box::new([const { None }; N])
}

fn zeros() -> Box<Page> {
    let zeros = vec![0; PAGE_BYTES].into_boxed_slice();
    zeros.try_into().expect("it has the length of a page")
}

impl Media for MemoryMedia {
    fn read(&self, mut at: u64, mut into: &mut [u8]) -> Result<(), MediaError> {
        while !into.is_empty() {
            let place = PageAddress::of(at);
            let (now, rest) = into.split_at_mut(place.room(into.len() as u64));
            match self.page(&place) {
                Some(page) => now.copy_from_slice(&page[place.inside..][..now.len()]),
                None => now.fill(0),
            }
            at += now.len() as u64;
            into = rest;
        }
        Ok(())
    }

    fn write(&mut self, mut at: u64, mut data: &[u8]) -> Result<(), MediaError> {
        while !data.is_empty() {
            let place = PageAddress::of(at);
            let (now, rest) = data.split_at(place.room(data.len() as u64));
            let page = self.page_to_write(&place);
            page[place.inside..][..now.len()].copy_from_slice(now);
            at += now.len() as u64;
            data = rest;
        }
        Ok(())
    }

    fn zero(&mut self, mut at: u64, length: u64) -> Result<(), MediaError> {
        let end = at + length;
        while at < end {
            let place = PageAddress::of(at);
            let Some(whole) = self.tables.get_mut(place.table) else {
                break;
            };
            let begins = |bytes: usize| at.is_multiple_of(bytes as u64);
            if begins(TABLE_GROUPS * GROUP_PAGES * PAGE_BYTES)
                && place.end_of_table() <= end
                && let Some(table) = whole.take()
            {
                let groups = table.iter().flatten().map(|group| bytes_of(group));
                self.held -= size_of::<Table>() as u64 + groups.sum::<u64>();
            }
            let Some(table) = whole else {
                at = place.end_of_table();
                continue;
            };
            let whole = &mut table[place.group];
            if begins(GROUP_PAGES * PAGE_BYTES) && place.end_of_group() <= end {
                self.held -= whole.take().map_or(0, |group| bytes_of(&group));
            }
            let Some(group) = whole else {
                at = place.end_of_group();
                continue;
            };
            let room = place.room(end - at);
            match &mut group[place.page] {
                whole if room == PAGE_BYTES => {
                    self.held -= u64::from(whole.take().is_some()) * PAGE_BYTES as u64;
                }
                Some(page) => page[place.inside..][..room].fill(0),
                None => {}
            }
            at += room as u64;
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), MediaError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traxtent_units::Rng;

    /// Does the medium hold the same data as a plain array, across groups and tables, does a write
    /// take the memory that `bytes_missing` returns, and is the memory of zeroed ranges freed?
    #[test]
    fn agrees_with_an_array() {
        const SIZE: u64 = 5 * PAGE_BYTES as u64 + 700;
        // Across the end of a group, and across the end of a table.
        const FIRST: [u64; 2] = [
            ((GROUP_PAGES - 2) * PAGE_BYTES) as u64 - 300,
            ((TABLE_GROUPS * GROUP_PAGES - 2) * PAGE_BYTES) as u64 - 300,
        ];
        for (seed, first) in (0..50).flat_map(|seed| FIRST.map(|first| (seed, first))) {
            let (mut rng, mut plain) = (Rng::new(seed), vec![0; SIZE as usize]);
            let mut memory = MemoryMedia::new();
            for step in 1..20_u8 {
                let at = rng.below(SIZE);
                let length = rng.below(SIZE - at + 1);
                let part = &mut plain[at as usize..(at + length) as usize];
                if rng.chance(0.5) {
                    part.fill(step);
                    let expected = memory.bytes_held() + memory.bytes_missing(first + at, length);
                    memory.write(first + at, part).unwrap();
                    assert_eq!(memory.bytes_held(), expected, "seed {seed}, step {step}");
                } else {
                    part.fill(0);
                    memory.zero(first + at, length).unwrap();
                }
                let mut all = vec![1; SIZE as usize];
                memory.read(first, &mut all).unwrap();
                assert!(all == plain, "seed {seed}, step {step}");
            }
            memory.zero(0, 1 << 50).unwrap();
            assert_eq!(memory.bytes_held(), 0);
        }
    }

    /// Does a sector at a random place need only one page and its tables?
    #[test]
    fn a_random_sector_takes_a_page() {
        let (mut rng, mut memory) = (Rng::new(1), MemoryMedia::new());
        let most = (PAGE_BYTES + size_of::<Group>() + size_of::<Table>()) as u64;
        assert!(most <= 6 << 10, "{most} bytes");
        for written in 1..=1000 {
            memory.write(rng.below(1 << 30) * 512, &[1; 512]).unwrap();
            assert!(memory.bytes_held() <= written * most);
        }
    }
}
