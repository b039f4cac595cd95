//! Preallocation (paper T, section 3.2; paper Q, section 2.4). A whole traxtent is reserved for a
//! large file that is being written, or for small files that belong together, and is handed out
//! piece by piece.

use std::ops::Range;

use super::partition::len;
use super::{Allocator, LayoutError, Placement};
use traxtent_units::{Block, Blocks};

/// Reserved blocks. The allocator counts them as in use, but they are not yet part of any file.
/// When they are no longer needed, return them with [`Reserve::release`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    left: Range<Block>,
}

impl Reserve {
    /// Creates an empty reserve.
    pub fn new() -> Reserve {
        Reserve::default()
    }

    /// Returns the blocks that are reserved and not yet handed out.
    pub fn left(&self) -> Range<Block> {
        self.left.clone()
    }

    /// Returns the next blocks of a growing file, at most `count`. They come from the reserved
    /// blocks. If there are none, the closest traxtent that is entirely free is reserved, and they
    /// come from it. If there is no such traxtent, they are allocated with [`Placement::Next`].
    /// Returns `None` if no block is free.
    pub fn grow(
        &mut self,
        allocator: &mut Allocator,
        near: Block,
        count: Blocks,
    ) -> Option<Range<Block>> {
        if self.left.is_empty() {
            match allocator.allocate(near, count, Placement::Whole) {
                Some(traxtent) => self.left = traxtent,
                None => return allocator.allocate(near, count, Placement::Next),
            }
        }
        Some(self.hand_out(count))
    }

    /// Returns all blocks of a small file, in one run. If they fit into the reserved blocks, they
    /// follow the preceding small files. Otherwise the remaining reserved blocks are freed, the
    /// closest traxtent that is entirely free becomes the reserve, and the file's blocks come from
    /// its beginning. If there is no such traxtent or it is too small, they are allocated with
    /// [`Placement::Together`]. Returns `None` if no run of free blocks is long enough, or if
    /// `count` is 0.
    ///
    /// # Errors
    /// Returns an error if the remaining blocks were reserved with another allocator.
    pub fn gather(
        &mut self,
        allocator: &mut Allocator,
        near: Block,
        count: Blocks,
    ) -> Result<Option<Range<Block>>, LayoutError> {
        if len(&self.left) < count {
            self.release(allocator)?;
            if let Some(traxtent) = allocator.allocate(near, count, Placement::Whole) {
                self.left = traxtent;
            }
        }
        if len(&self.left) < count {
            self.release(allocator)?;
            return Ok(allocator.allocate(near, count, Placement::Together));
        }
        Ok((count.0 > 0).then(|| self.hand_out(count)))
    }

    /// Frees the blocks that are reserved and not yet handed out.
    ///
    /// # Errors
    /// Returns an error if they were reserved with another allocator.
    pub fn release(&mut self, allocator: &mut Allocator) -> Result<(), LayoutError> {
        allocator.free(&std::mem::take(&mut self.left))
    }

    fn hand_out(&mut self, count: Blocks) -> Range<Block> {
        let start = self.left.start;
        let end = (start + count).min(self.left.end);
        self.left.start = end;
        start..end
    }
}
