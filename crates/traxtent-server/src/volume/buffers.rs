//! Reusable memory for members' I/O.

use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use parking_lot::Mutex;

/// The memory alignment for direct I/O in bytes.
const ALIGNMENT: usize = 4096;

/// The maximum number of idle buffers.
const BUFFERS_KEPT: usize = 64;

/// The maximum size of all idle buffers together, in bytes.
const BYTES_KEPT: usize = 64 << 20;

/// The idle buffers.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Returns a buffer of `bytes` bytes with arbitrary content.
    pub(super) fn take(self: &Arc<Buffers>, bytes: usize) -> AlignedBuffer {
        let mut idle = self.0.lock();
        let fits = idle.iter().rposition(|one| one.len() >= bytes + ALIGNMENT);
        let memory = match fits {
            Some(index) => idle.swap_remove(index),
            None => {
                drop(idle);
                vec![0; (bytes + ALIGNMENT).next_power_of_two()]
            }
        };
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        AlignedBuffer {
            memory,
            range: start..start + bytes,
            pool: Arc::clone(self),
        }
    }
}

/// Memory that is aligned for direct I/O. When dropped, it returns to its pool unless that is full.
#[derive(Debug)]
pub struct AlignedBuffer {
    memory: Vec<u8>,
    range: Range<usize>,
    pool: Arc<Buffers>,
}

impl Deref for AlignedBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for AlignedBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        let mut idle = self.pool.0.lock();
        let kept: usize = idle.iter().map(Vec::len).sum();
        if idle.len() < BUFFERS_KEPT && kept + self.memory.len() <= BYTES_KEPT {
            idle.push(std::mem::take(&mut self.memory));
        }
    }
}
