//! The read-ahead of Linux 2.6 before 2.6.23 (mm/readahead.c): a current window and one ahead of it.
//!
//! The first read of a file, and one in sequence, open a window; when reading enters the window ahead, that becomes the
//! current one and the next is read at once. Windows double, then grow to the bound. An access out of sequence closes
//! them. Left out: shrinking after pages were reclaimed before they were used.

use super::access::Open;
use super::machine::Machine;

/// The windows of an open file, in blocks of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    start: u64,
    size: u64,
    ahead_start: u64,
    ahead_size: u64,
}

impl Machine {
    pub(super) fn windowed(&mut self, open: &mut Open, block: u64, in_call: u64, most: u32) {
        let _ = (open, block, in_call, most);
        todo!()
    }
}
