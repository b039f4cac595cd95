//! What holds a drive's data where a flush has put them: the platters.

use std::collections::BTreeMap;

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
    chunks: BTreeMap<u64, Box<[u8]>>,
}

/// Bytes of a chunk: what one write of a byte takes.
const CHUNK: usize = 32 << 10;

/// Where a byte is: the chunk's number, the place in the chunk, and how many follow there.
fn place(at: u64) -> (u64, usize, usize) {
    let inside = (at % CHUNK as u64) as usize;
    (at / CHUNK as u64, inside, CHUNK - inside)
}

impl Memory {
    /// An empty one: all zeros.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// The bytes of memory that data take.
    pub fn bytes_held(&self) -> u64 {
        (self.chunks.len() * CHUNK) as u64
    }
}

impl Media for Memory {
    fn read(&self, mut at: u64, mut into: &mut [u8]) -> Result<(), MediaError> {
        while !into.is_empty() {
            let (chunk, inside, room) = place(at);
            let (now, rest) = into.split_at_mut(room.min(into.len()));
            match self.chunks.get(&chunk) {
                Some(chunk) => now.copy_from_slice(&chunk[inside..inside + now.len()]),
                None => now.fill(0),
            }
            at += now.len() as u64;
            into = rest;
        }
        Ok(())
    }

    fn write(&mut self, mut at: u64, mut data: &[u8]) -> Result<(), MediaError> {
        while !data.is_empty() {
            let (chunk, inside, room) = place(at);
            let (now, rest) = data.split_at(room.min(data.len()));
            let zeros = || vec![0; CHUNK].into_boxed_slice();
            let chunk = self.chunks.entry(chunk).or_insert_with(zeros);
            chunk[inside..inside + now.len()].copy_from_slice(now);
            at += now.len() as u64;
            data = rest;
        }
        Ok(())
    }

    fn zero(&mut self, at: u64, length: u64) -> Result<(), MediaError> {
        let end = at + length;
        let whole = at.div_ceil(CHUNK as u64)..end / CHUNK as u64;
        if !whole.is_empty() {
            let held = self.chunks.range(whole.clone()).map(|(&chunk, _)| chunk);
            for chunk in held.collect::<Vec<_>>() {
                self.chunks.remove(&chunk);
            }
        }
        // What is left of the range lies in its first and its last chunk.
        let mut at = at;
        while at < end {
            let (chunk, inside, room) = place(at);
            let now = (room as u64).min(end - at);
            match self.chunks.get_mut(&chunk) {
                Some(chunk) => {
                    chunk[inside..inside + now as usize].fill(0);
                    at += now;
                }
                None if whole.contains(&chunk) => at = whole.end * CHUNK as u64,
                None => at += now,
            }
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

    /// Does the medium hold what a plain array holds, across chunks, and give room back?
    #[test]
    fn agrees_with_an_array() {
        const SIZE: u64 = 5 * CHUNK as u64 + 700;
        for seed in 0..50 {
            let (mut rng, mut plain) = (Rng::new(seed), vec![0; SIZE as usize]);
            let mut memory = Memory::new();
            for step in 1..20_u8 {
                let at = rng.below(SIZE);
                let length = rng.below(SIZE - at + 1);
                let part = &mut plain[at as usize..(at + length) as usize];
                if rng.chance(0.5) {
                    part.fill(step);
                    memory.write(at, part).unwrap();
                } else {
                    part.fill(0);
                    memory.zero(at, length).unwrap();
                }
                let mut all = vec![1; SIZE as usize];
                memory.read(0, &mut all).unwrap();
                assert!(all == plain, "seed {seed}, step {step}");
            }
            memory.zero(0, 6 * CHUNK as u64).unwrap();
            assert_eq!(memory.bytes_held(), 0);
        }
    }
}
