//! A bitmap of the blocks in use, with one bit per block. A page whose blocks were never used takes
//! no memory.

use std::ops::Range;

use traxtent_units::{Block, Blocks};

/// The number of 64-bit words per page: a page covers 32,768 blocks.
const PAGE_WORDS: u64 = 512;

/// The bits of the blocks. A block is free unless it was marked used.
#[derive(Clone, Debug)]
pub(super) struct FreeMap {
    pages: Vec<Option<Box<[u64; PAGE_WORDS as usize]>>>,
}

impl FreeMap {
    /// Creates a map of `blocks` free blocks.
    pub(super) fn new(blocks: Blocks) -> FreeMap {
        let pages = blocks.0.div_ceil(64 * PAGE_WORDS) as usize;
        FreeMap {
            pages: vec![None; pages],
        }
    }

    pub(super) fn is_free(&self, block: Block) -> bool {
        self.word(block.0 / 64) >> (block.0 % 64) & 1 == 0
    }

    pub(super) fn set_used(&mut self, blocks: &Range<Block>, used: bool) {
        for word in words(blocks) {
            let page = &mut self.pages[(word / PAGE_WORDS) as usize];
            if page.is_none() && !used {
                continue;
            }
            let page = page.get_or_insert_with(|| Box::new([0; PAGE_WORDS as usize]));
            let bits = &mut page[(word % PAGE_WORDS) as usize];
            if used {
                *bits |= mask(word, blocks);
            } else {
                *bits &= !mask(word, blocks);
            }
        }
    }

    /// Returns the first used block of a range if `used` is set, otherwise the first free one.
    pub(super) fn first(&self, blocks: &Range<Block>, used: bool) -> Option<Block> {
        words(blocks).find_map(|word| {
            let bits = self.word(word) ^ if used { 0 } else { u64::MAX };
            let bits = bits & mask(word, blocks);
            (bits != 0).then(|| Block(word * 64 + u64::from(bits.trailing_zeros())))
        })
    }

    /// Returns the last block of a range that is used.
    pub(super) fn last_used(&self, blocks: &Range<Block>) -> Option<Block> {
        words(blocks).rev().find_map(|word| {
            let bits = self.word(word) & mask(word, blocks);
            (bits != 0).then(|| Block(word * 64 + u64::from(bits.ilog2())))
        })
    }

    /// Returns the runs of free blocks in a range, in ascending order.
    pub(super) fn free_runs(&self, blocks: Range<Block>) -> impl Iterator<Item = Range<Block>> {
        let mut left = blocks;
        std::iter::from_fn(move || {
            left.start = self.first(&left, false)?;
            let end = self.first(&left, true).unwrap_or(left.end);
            let run = left.start..end;
            left.start = end;
            Some(run)
        })
    }

    fn word(&self, word: u64) -> u64 {
        let page = self.pages[(word / PAGE_WORDS) as usize].as_deref();
        page.map_or(0, |page| page[(word % PAGE_WORDS) as usize])
    }
}

/// Returns the indexes of the words that hold a range of blocks.
fn words(blocks: &Range<Block>) -> Range<u64> {
    if blocks.start < blocks.end {
        blocks.start.0 / 64..blocks.end.0.div_ceil(64)
    } else {
        0..0
    }
}

/// Returns the bits of a word that correspond to blocks of the range.
fn mask(word: u64, blocks: &Range<Block>) -> u64 {
    let from = blocks.start.0.saturating_sub(word * 64).min(63);
    let to = (blocks.end.0 - word * 64).min(64);
    u64::MAX << from & u64::MAX >> (64 - to)
}
