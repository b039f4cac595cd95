//! The read-ahead of Linux 2.6 before 2.6.23 (mm/readahead.c): a current window and one ahead of
//! it.
//!
//! A read at the beginning of a file, or a sequential read while no window is open, opens a window;
//! the next read opens a window ahead. Once reading enters the window ahead, it becomes the current
//! one and the next is read immediately. The first window is a quarter of the upper bound, or the
//! bound if a call's size, rounded up to a power of two, exceeds a quarter. Each further window is
//! twice as large, up to the bound. A non-sequential access closes them. With the change of paper Q
//! (section 2.4), a window ends with the track.
//!
//! Left out: the kernel's reaction when pages are evicted before they are used, and when the queue
//! is congested; the smaller first window of a call of at most 1/64 of the bound, whose number of
//! pages is the square of the call's; and the quadrupling of a window below 1/16 of the bound. The
//! kernel checks the windows once per call, this model at each block.
//!
//! The read-ahead of `traxtent file read` is here too: the track of the block and some after it.

use std::ops::Range;

use traxtent_units::Block;

use super::access::{OpenFile, Windows};
use super::simulated_host::SimulatedHost;

impl SimulatedHost {
    /// Reads ahead by windows when a block is read. The call needs `in_call` blocks, beginning with
    /// this one; `most` is the upper bound of a window in blocks. Returns the indirect block that
    /// has to be in memory first.
    pub(super) fn read_ahead_by_windows(
        &mut self,
        open: &mut OpenFile,
        block: u64,
        in_call: u64,
        sequential: bool,
        most: u64,
    ) -> Option<Block> {
        let Windows { current, ahead } = open.windows.clone();
        if !sequential {
            open.windows = Windows::default();
            let wanted = block..block + in_call.min(most);
            return self.request_window(open, wanted).err();
        }
        if current.is_empty() {
            let wanted = in_call.next_power_of_two();
            let size = if wanted <= most / 4 { most / 4 } else { most };
            let window = block..block + size.min(most);
            return match self.request_window(open, window) {
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
            match self.request_window(open, current.end..current.end + size) {
                Ok(ahead) => open.windows = Windows { current, ahead },
                Err(indirect) => return Some(indirect),
            }
        }
        None
    }

    /// Requests the missing blocks of a range, up to the end of the file and, if requests end at
    /// boundaries, the first boundary. Returns the resulting range, or the indirect block that has
    /// to be in memory first.
    fn request_window(&mut self, open: &OpenFile, wanted: Range<u64>) -> Result<Range<u64>, Block> {
        let blocks = &self.file(open.file).blocks;
        let mut window = wanted.start..wanted.end.min(blocks.len() as u64);
        if window.is_empty() {
            return Ok(wanted.start..wanted.start);
        }
        if self.config.clip_at_tracks {
            window.end = window.start + self.on_one_track(open, window.start);
        }
        let mut at = window.start;
        while at < window.end {
            let place = self.file(open.file).blocks[at as usize];
            if self.cache.is_requested(place) {
                at += 1;
            } else if let Some(indirect) = self.missing_indirect(open.file, at) {
                return Err(indirect);
            } else {
                let end = window.end.min(at + u64::from(self.config.cluster));
                at += self.fetch_with_indirect(open, at, end);
            }
        }
        Ok(window)
    }

    /// Reads a run of consecutive blocks of the file that ends before `end`. If the block after the
    /// run is the indirect block of the file's next block, it is read too: the kernel requests it
    /// immediately, and the elevator merges the two requests. Returns how many of the file's blocks
    /// are read.
    fn fetch_with_indirect(&mut self, open: &OpenFile, at: u64, end: u64) -> u64 {
        let file = self.file(open.file);
        let blocks = &file.blocks[at as usize..end as usize];
        let run = blocks.iter().zip(blocks[0].0..);
        let run =
            run.take_while(|(place, next)| place.0 == *next && !self.cache.is_requested(**place));
        let run = run.count() as u64;
        let following = Block(blocks[0].0 + run);
        let (direct, pointers) = (self.config.direct, self.config.indirect);
        let next = (at + run < end).then(|| file.indirect_of(at + run, direct, pointers));
        let joined = next.flatten() == Some(following) && !self.cache.is_requested(following);
        let sectors = self.sectors_of(blocks[0]).start
            ..self
                .sectors_of(Block(following.0 + u64::from(joined)))
                .start;
        // An indirect block after a boundary is requested separately.
        let sectors = self.clipped(sectors);
        let blocks_read = (sectors.end - sectors.start) / u64::from(self.config.block_sectors);
        self.fetch(sectors);
        run.min(blocks_read)
    }

    /// The number of consecutive blocks of a file, beginning with this one, that lie on the track
    /// of the first. An indirect block can lie between them.
    fn on_one_track(&self, open: &OpenFile, block: u64) -> u64 {
        let blocks = &self.file(open.file).blocks[block as usize..];
        let first = blocks[0];
        let track = self.space.partition().traxtent_of(first);
        let track = first..track.map_or(Block(first.0 + 1), |traxtent| traxtent.blocks.end);
        blocks
            .iter()
            .take_while(|place| track.contains(place))
            .count() as u64
    }
    /// Requests what the file has on the next tracks, when a block is read, so that at most `most`
    /// tracks are outstanding. For files without indirect blocks.
    pub(super) fn read_ahead_by_tracks(&mut self, open: &mut OpenFile, block: u64, most: u32) {
        if open.windows.current.contains(&block) {
            return;
        }
        let mut last = self.end_of_track(open, block);
        let place = self.file(open.file).blocks[block as usize];
        let is_here = self.cache.is_in_memory(place);
        if is_here {
            open.windows.current = block..last;
        }
        // The block's own track is outstanding until it is here.
        for _ in u32::from(!is_here)..most {
            last = self.end_of_track(open, last);
        }
        let mut at = block;
        while at < last {
            let place = self.file(open.file).blocks[at as usize];
            at += if self.cache.is_requested(place) {
                1
            } else {
                self.fetch_run(open.file, at, u64::MAX)
            };
        }
    }

    /// The first block of a file after this one that does not begin on the track where this one
    /// ends.
    fn end_of_track(&self, open: &OpenFile, block: u64) -> u64 {
        let file = self.file(open.file);
        let spans = |block: &Block| self.space.partition().traxtent_of(*block).is_none();
        let whole = block + u64::from(file.blocks.get(block as usize).is_some_and(spans));
        if whole < file.blocks.len() as u64 {
            whole + self.on_one_track(open, whole)
        } else {
            whole
        }
    }
}
