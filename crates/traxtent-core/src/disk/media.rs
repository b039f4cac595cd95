//! What holds a drive's data where a flush has put them: the platters.

/// Bytes that stay when the power goes, addressed from 0 to the drive's capacity.
///
/// The core reads and writes no files: a file behind this trait is its implementor's matter. What
/// was never written reads as zeros. Addresses and lengths stay within the drive's capacity, and
/// begin and end at logical sectors, except that a power cut may tear a write at 512 bytes.
pub trait Media {
    /// Reads from byte `at` on.
    ///
    /// # Errors
    /// What the medium reports; `into` then holds anything.
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), MediaError>;

    /// Writes from byte `at` on.
    ///
    /// # Errors
    /// What the medium reports; each sector of the range is then old or new.
    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), MediaError>;

    /// Makes `length` bytes from `at` on read as zeros; may give their room back.
    ///
    /// # Errors
    /// What the medium reports; each sector of the range is then old or new.
    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError>;

    /// A barrier: what was written before is there whatever happens to the machine.
    ///
    /// # Errors
    /// What the medium reports.
    fn sync(&mut self) -> Result<(), MediaError>;
}

/// Why a medium did not do what it was told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MediaError {
    /// There is no room for more data.
    #[error("no room left below the drive's data")]
    NoSpace,
    /// Something else.
    #[error("the medium below the drive's data: {what}")]
    Failed {
        /// What, in the medium's words.
        what: String,
    },
}

/// A medium in memory. What is zero takes no room, so a drive of terabytes is as small as its data.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// A table of tables: finding a chunk takes two steps, however many there are.
    tables: Vec<Option<Box<Table>>>,
}

/// Bytes of a chunk: what one write of a byte takes.
const CHUNK: usize = 32 << 10;
/// Bytes of a cache line of most processors.
const LINE: usize = 64;
/// Chunks of a table.
const TABLE: usize = 1 << 10;

type Chunk = [u8; CHUNK];
/// Chunks that follow one another; those that are all zeros may be missing.
type Table = [Option<Box<Chunk>>; TABLE];

/// Where a byte is.
struct Place {
    table: usize,
    chunk: usize,
    inside: usize,
}

impl Place {
    fn of(at: u64) -> Place {
        let chunk = at / CHUNK as u64;
        Place {
            table: (chunk / TABLE as u64) as usize,
            chunk: (chunk % TABLE as u64) as usize,
            inside: (at % CHUNK as u64) as usize,
        }
    }

    /// How many bytes follow in the chunk, at most `most`.
    fn room(&self, most: u64) -> usize {
        most.min((CHUNK - self.inside) as u64) as usize
    }

    /// The first byte behind the table.
    fn end_of_table(&self) -> u64 {
        (self.table as u64 + 1) * (TABLE * CHUNK) as u64
    }
}

impl Memory {
    /// An empty one: all zeros.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// The bytes of memory that data take.
    pub fn bytes_held(&self) -> u64 {
        let tables = self.tables.iter().flatten();
        let chunks = tables.flat_map(|table| table.iter().flatten()).count();
        (chunks * CHUNK) as u64
    }

    /// Brings a range near the processor: reads a byte of each of its cache lines. A write that follows
    /// waits less.
    pub fn touch(&self, mut at: u64, length: u64) {
        let end = at + length;
        while at < end {
            let place = Place::of(at);
            let room = place.room(end - at);
            if let Some(chunk) = self.chunk(&place) {
                let lines = chunk[place.inside..][..room].iter().step_by(LINE);
                std::hint::black_box(lines.fold(0, |sum, byte| sum ^ byte));
            }
            at += room as u64;
        }
    }

    fn chunk(&self, place: &Place) -> Option<&Chunk> {
        let table = self.tables.get(place.table)?.as_ref()?;
        table[place.chunk].as_deref()
    }

    fn chunk_to_write(&mut self, place: &Place) -> &mut Chunk {
        if place.table >= self.tables.len() {
            self.tables.resize_with(place.table + 1, || None);
        }
        let empty = || Box::new([const { None }; TABLE]);
        let table = self.tables[place.table].get_or_insert_with(empty);
        table[place.chunk].get_or_insert_with(zeros)
    }
}

fn zeros() -> Box<Chunk> {
    let zeros = vec![0; CHUNK].into_boxed_slice();
    zeros.try_into().expect("it has the length of a chunk")
}

impl Media for Memory {
    fn read(&self, mut at: u64, mut into: &mut [u8]) -> Result<(), MediaError> {
        while !into.is_empty() {
            let place = Place::of(at);
            let (now, rest) = into.split_at_mut(place.room(into.len() as u64));
            match self.chunk(&place) {
                Some(chunk) => now.copy_from_slice(&chunk[place.inside..][..now.len()]),
                None => now.fill(0),
            }
            at += now.len() as u64;
            into = rest;
        }
        Ok(())
    }

    fn write(&mut self, mut at: u64, mut data: &[u8]) -> Result<(), MediaError> {
        while !data.is_empty() {
            let place = Place::of(at);
            let (now, rest) = data.split_at(place.room(data.len() as u64));
            let chunk = self.chunk_to_write(&place);
            chunk[place.inside..][..now.len()].copy_from_slice(now);
            at += now.len() as u64;
            data = rest;
        }
        Ok(())
    }

    fn zero(&mut self, mut at: u64, length: u64) -> Result<(), MediaError> {
        let end = at + length;
        while at < end {
            let place = Place::of(at);
            let Some(Some(table)) = self.tables.get_mut(place.table) else {
                at = place.end_of_table();
                continue;
            };
            let room = place.room(end - at);
            match &mut table[place.chunk] {
                whole if room == CHUNK => *whole = None,
                Some(chunk) => chunk[place.inside..][..room].fill(0),
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
    use crate::workload::Rng;

    /// Does the medium hold what a plain array holds, across chunks and tables, and give room back?
    #[test]
    fn agrees_with_an_array() {
        const SIZE: u64 = 5 * CHUNK as u64 + 700;
        const FIRST: u64 = ((TABLE - 2) * CHUNK) as u64 - 300;
        for seed in 0..50 {
            let (mut rng, mut plain) = (Rng::new(seed), vec![0; SIZE as usize]);
            let mut memory = Memory::new();
            for step in 1..20_u8 {
                let at = rng.below(SIZE);
                let length = rng.below(SIZE - at + 1);
                let part = &mut plain[at as usize..(at + length) as usize];
                if rng.chance(0.5) {
                    part.fill(step);
                    memory.write(FIRST + at, part).unwrap();
                } else {
                    part.fill(0);
                    memory.zero(FIRST + at, length).unwrap();
                }
                let mut all = vec![1; SIZE as usize];
                memory.read(FIRST, &mut all).unwrap();
                assert!(all == plain, "seed {seed}, step {step}");
            }
            memory.zero(0, 1 << 50).unwrap();
            assert_eq!(memory.bytes_held(), 0);
        }
    }
}
