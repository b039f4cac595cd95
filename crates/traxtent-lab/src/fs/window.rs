//! The read-ahead of Linux 2.6 before 2.6.23 (mm/readahead.c): a current window and one ahead of it.
//!
//! The first read of a file opens a window, and so does one in sequence; the next one opens a window ahead. When reading
//! enters that, it becomes the current one and the next is read at once. Windows begin with a quarter of the bound, or
//! with the bound where a call asks for more than a quarter, and double. An access out of sequence closes them.
//! As paper Q changes it (section 2.4), a window ends with the track. Left out: what the kernel does when
//! pages leave memory before they are used, and when the queue is congested.

use std::ops::Range;

use traxtent_core::units::Block;

use super::access::Open;
use super::machine::Machine;

/// The windows of an open file, in blocks of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    current: Range<u64>,
    ahead: Range<u64>,
}

impl Machine {
    /// Reads what the windows say when a block is read, of which the call wants `in_call` from there on. Returns the
    /// indirect block that has to be there first.
    pub(super) fn windowed(
        &mut self,
        open: &mut Open,
        block: u64,
        in_call: u64,
        sequential: bool,
        most: u64,
    ) -> Option<Block> {
        let Windows { current, ahead } = open.windows.clone();
        if !sequential {
            open.windows = Windows::default();
            let wanted = block..block + in_call.min(most);
            return self.window(open, wanted).err();
        }
        if current.is_empty() {
            let wanted = in_call.next_power_of_two();
            let size = if wanted <= most / 4 { most / 4 } else { most };
            let window = block..block + size.min(most);
            return match self.window(open, window) {
                Ok(current) => {
                    open.windows.current = current;
                    None
                }
                Err(indirect) => Some(indirect),
            };
        }
        let entered = !ahead.is_empty() && block >= ahead.start;
        if ahead.is_empty() || entered {
            let current = if entered { ahead } else { current };
            let size = (2 * (current.end - current.start)).min(most);
            match self.window(open, current.end..current.end + size) {
                Ok(ahead) => open.windows = Windows { current, ahead },
                Err(indirect) => return Some(indirect),
            }
        }
        None
    }

    /// Asks for what is missing of blocks of a file, as far as the file goes and, where requests end at boundaries, up to
    /// the first one; returns which these are, or the indirect block that has to be there first.
    fn window(&mut self, open: &Open, wanted: Range<u64>) -> Result<Range<u64>, Block> {
        let blocks = &self.file(open.file).blocks;
        let mut window = wanted.start..wanted.end.min(blocks.len() as u64);
        if window.is_empty() {
            return Ok(wanted.start..wanted.start);
        }
        if self.config.clip {
            window.end = window.start + self.on_one_track(open, window.start);
        }
        for edge in [window.start, window.end - 1] {
            if let Some(indirect) = self.unknown(open.file, edge) {
                return Err(indirect);
            }
        }
        let mut at = window.start;
        while at < window.end {
            let place = self.file(open.file).blocks[at as usize];
            if self.cache.has(place) {
                at += 1;
            } else {
                at += self.fetch_run(open.file, at, window.end - at);
            }
        }
        Ok(window)
    }

    /// How many blocks of a file, from this one on, lie in a row on one track.
    fn on_one_track(&self, open: &Open, block: u64) -> u64 {
        let blocks = &self.file(open.file).blocks[block as usize..];
        let first = blocks[0];
        let track = self.space.partition().traxtent_of(first);
        let end = track.map_or(Block(first.0 + 1), |traxtent| traxtent.blocks.end);
        let row = blocks.iter().zip(first.0..end.0);
        row.take_while(|(place, next)| place.0 == *next).count() as u64
    }
}
