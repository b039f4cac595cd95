//! Preallocation (paper T, section 3.2; paper Q, section 2.4): a whole traxtent is set aside for a
//! large file that is being written, or for small files that belong together, and handed out piece
//! by piece.

use std::ops::Range;

use super::partition::len;
use super::{Allocator, LayoutError, Placement};
use crate::units::{Block, Blocks};

/// Blocks set aside: in use for the allocator, and not yet of any file. Whoever has no more use
/// for them gives them back by [`Reserve::release`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reserve {
    left: Range<Block>,
}

impl Reserve {
    /// Nothing set aside yet.
    pub fn new() -> Reserve {
        Reserve::default()
    }

    /// What is set aside and not handed out.
    pub fn left(&self) -> Range<Block> {
        self.left.clone()
    }

    /// The next blocks of a file that grows, at most `count`: of what is set aside; else of the
    /// closest traxtent that is free whole, of which the rest is set aside; else those that
    /// [`Placement::Next`] finds. None if the disk is full.
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

    /// All blocks of a small file, in one run: behind the small files before it if they fit into
    /// what is set aside; else at the beginning of the closest traxtent that is free whole, which
    /// takes its place; else where [`Placement::Together`] finds room. None if there is none.
    ///
    /// # Errors
    /// If what is left was set aside with another allocator.
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

    /// Frees what is set aside and not handed out.
    ///
    /// # Errors
    /// If it was set aside with another allocator.
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
