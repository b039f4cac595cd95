//! Memory for members, which is kept from one request to the next.

use std::ops::{Deref, DerefMut, Range};
use std::sync::{Arc, Mutex};

/// Direct transfers want memory at multiples of this.
const PAGE: usize = 4096;

/// At most so many buffers wait for their next use,
const BUFFERS_KEPT: usize = 64;

/// of so many bytes together.
const BYTES_KEPT: usize = 64 << 20;

/// The buffers that nobody uses at the moment.
#[derive(Debug, Default)]
pub(super) struct Buffers(Mutex<Vec<Vec<u8>>>);

impl Buffers {
    /// Memory of so many bytes, with anything in it.
    pub(super) fn take(self: &Arc<Buffers>, bytes: usize) -> Aligned {
        let mut idle = self.0.lock().expect("nobody panics with it");
        let fits = idle.iter().rposition(|one| one.len() >= bytes + PAGE);
        let memory = match fits {
            Some(index) => idle.swap_remove(index),
            None => {
                drop(idle);
                vec![0; (bytes + PAGE).next_power_of_two()]
            }
        };
        let start = memory.as_ptr().align_offset(PAGE);
        Aligned {
            memory,
            range: start..start + bytes,
            home: Arc::clone(self),
        }
    }
}

/// Memory as direct transfers want it, which returns to where it came from.
#[derive(Debug)]
pub struct Aligned {
    memory: Vec<u8>,
    range: Range<usize>,
    home: Arc<Buffers>,
}

impl Deref for Aligned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory[self.range.clone()]
    }
}

impl DerefMut for Aligned {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.range.clone()]
    }
}

impl Drop for Aligned {
    fn drop(&mut self) {
        let mut idle = self.home.0.lock().expect("nobody panics with it");
        let kept: usize = idle.iter().map(Vec::len).sum();
        if idle.len() < BUFFERS_KEPT && kept + self.memory.len() <= BYTES_KEPT {
            idle.push(std::mem::take(&mut self.memory));
        }
    }
}
