//! A list of bad blocks for `mke2fs -l` that mke2fs takes and e2fsck is content with (paper T, section 4.2.2).
//!
//! The excluded blocks of a partition are those that lie on two tracks; declared bad, no file gets any of them. But a
//! plain list of them is no use. What mke2fs 1.47.0 does with one, found by trial:
//!
//! - It ends where the primary superblock and the descriptors behind it would be on a bad block.
//! - It counts a bad block wrongly that lies where a *later* group would have a copy of them, whether the group has one
//!   or not; e2fsck then finds wrong counts. With `resize_inode`, room for more descriptors is in the way too.
//! - The inode table of a group needs blocks in a row. Where its group has none between two bad blocks, it ends; with
//!   `flex_bg` it takes them from wherever there are some, be it the other end of the disk.
//! - The inode of bad blocks must stay below 2 GiB: 524,287 blocks of 4096 bytes.
//!
//! So: no `resize_inode`, no `flex_bg`; blocks that the superblocks and descriptors may need stay out of the list; the
//! number of inodes is such that every group's table fits between two excluded blocks, in groups made smaller where
//! inodes would be too few; the file system ends with a group that has room for its tables; and a list that would be
//! too long ends early. How much stays out of the list is told.

use std::ops::Range;

use traxtent_core::layout::Partition;

/// Bytes of an inode: what mke2fs takes by itself.
const INODE_BYTES: u64 = 256;
/// Bytes of a group's descriptor with the feature `64bit`. Without it they are half as long, and what is left out of the
/// list is then more than need be.
const DESCRIPTOR_BYTES: u64 = 64;
/// The block bitmap and the inode bitmap, which mke2fs puts before the inode table.
const BITMAPS: u64 = 2;
/// The inode of bad blocks is shorter than this; a longer list is refused ("Ext2 file too big").
const LIST_BYTES_MAX: u64 = (1 << 31) - 1;
/// Blocks have numbers of 32 bits in the list.
const BLOCKS_MAX: u64 = 1 << 32;
/// mke2fs drops a last group that has no more blocks than its tables and these.
const LAST_GROUP_LEAST: u64 = 50;
/// Inodes are at most this far apart before groups are made smaller: what mke2fs takes by itself for huge disks.
const INODE_RATIO_MOST: u64 = 65_536;
/// Groups are not made smaller than by this factor.
const GROUPS_SMALLER_MOST: u32 = 64;
/// More than one block in so many is not given up. (Paper T gives up one in twenty.)
const EXCLUDED_ONE_IN: u64 = 10;

/// What is asked of the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Bytes of a block: 1024, 2048 or 4096.
    pub block_bytes: u32,
    /// Bytes for each inode, at best; mke2fs takes 16,384 by itself.
    pub inode_ratio: u64,
}

/// The list, and what mke2fs must be told with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBlocks {
    /// The blocks of the list, ascending.
    pub list: Vec<u64>,
    /// Excluded blocks of the partition: those of the list and those that stay out of it.
    pub excluded: u64,
    /// How many stay out because superblocks and descriptors may lie there.
    pub under_tables: u64,
    /// How many stay out because the list would be too long. They are the last ones.
    pub too_many: u64,
    /// How many blocks the file system has, which may be fewer than the partition.
    pub blocks: u64,
    /// Blocks of a group.
    pub group_blocks: u64,
    /// How many inodes there are in all.
    pub inodes: u64,
    ask: Ask,
}

/// Why a file system does without a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WithoutList {
    /// Every track boundary falls between two blocks.
    #[error("every track boundary falls between two blocks, so no block is to be left out")]
    NoneExcluded,
    /// Too much would be given up.
    #[error(
        "{excluded} of {blocks} blocks lie on two tracks, more than one in {EXCLUDED_ONE_IN}: smaller blocks lose less"
    )]
    TooManyExcluded {
        /// Blocks that lie on two tracks.
        excluded: u64,
        /// Blocks in all.
        blocks: u64,
    },
    /// The numbers of blocks do not fit.
    #[error("{blocks} blocks are more than mke2fs -l can name ({BLOCKS_MAX})")]
    TooLarge {
        /// Blocks in all.
        blocks: u64,
    },
    /// Groups have no room for their tables, however large they are.
    #[error(
        "groups have no room for superblock, descriptors and an inode table of {least} blocks: larger blocks would do"
    )]
    NoRoom {
        /// The smallest table that makes sense.
        least: u64,
    },
    /// mke2fs has no such blocks.
    #[error("a block of {0} bytes is none of 1024, 2048 and 4096")]
    BlockSize(u32),
}

impl BadBlocks {
    /// Plans a file system on a partition.
    ///
    /// # Errors
    /// Why there is nothing to list, or no list that works.
    pub fn plan(partition: &Partition, ask: Ask) -> Result<BadBlocks, WithoutList> {
        if ![1024, 2048, 4096].contains(&ask.block_bytes) {
            return Err(WithoutList::BlockSize(ask.block_bytes));
        }
        let blocks = partition.blocks().0;
        if blocks > BLOCKS_MAX {
            return Err(WithoutList::TooLarge { blocks });
        }
        let excluded: Vec<u64> = partition.excluded().map(|block| block.0).collect();
        if excluded.is_empty() {
            return Err(WithoutList::NoneExcluded);
        }
        if excluded.len() as u64 > blocks / EXCLUDED_ONE_IN {
            return Err(WithoutList::TooManyExcluded {
                excluded: excluded.len() as u64,
                blocks,
            });
        }
        let largest = 8 * ask.block_bytes;
        let mut best: Option<BadBlocks> = None;
        for factor in (0..=GROUPS_SMALLER_MOST.ilog2()).map(|power| 1 << power) {
            let Some(plan) = with_groups(&excluded, blocks, u64::from(largest / factor), ask)
            else {
                continue;
            };
            let enough = plan.inode_ratio() <= ask.inode_ratio.max(INODE_RATIO_MOST);
            if best.as_ref().is_none_or(|best| plan.inodes > best.inodes) {
                best = Some(plan);
            }
            if enough {
                break;
            }
        }
        best.ok_or(WithoutList::NoRoom {
            least: table_step(ask),
        })
    }

    /// Bytes of the file system for each inode.
    pub fn inode_ratio(&self) -> u64 {
        self.blocks * u64::from(self.ask.block_bytes) / self.inodes
    }

    /// What to tell mke2fs beside the device, with the list in `file`; the count of blocks goes behind the device.
    pub fn arguments(&self, file: &str) -> Vec<String> {
        let mut words = vec!["-b".to_owned(), self.ask.block_bytes.to_string()];
        if self.group_blocks != u64::from(8 * self.ask.block_bytes) {
            words.extend(["-g".to_owned(), self.group_blocks.to_string()]);
        }
        words.extend(["-I".to_owned(), INODE_BYTES.to_string()]);
        words.extend(["-N".to_owned(), self.inodes.to_string()]);
        words.extend(["-O", "^resize_inode,^flex_bg", "-l", file].map(str::to_owned));
        words
    }

    /// The list as mke2fs reads it: a number a line.
    pub fn lines(&self) -> String {
        use std::fmt::Write;
        self.list.iter().fold(String::new(), |mut text, block| {
            let _ = writeln!(text, "{block}");
            text
        })
    }
}

/// The groups of a file system.
#[derive(Clone, Copy, Debug)]
struct Groups {
    /// The first block of the first group.
    first: u64,
    /// The block behind the last.
    end: u64,
    /// Blocks of each but the last.
    size: u64,
    /// Blocks of a group that hold a superblock and the descriptors, if it has them.
    head: u64,
}

impl Groups {
    fn new(blocks: u64, size: u64, block_bytes: u32) -> Groups {
        // A block of 1024 bytes before the first group is for boot loaders.
        let first = u64::from(block_bytes == 1024);
        let count = (blocks - first).div_ceil(size);
        let descriptors = (count * DESCRIPTOR_BYTES).div_ceil(u64::from(block_bytes));
        Groups {
            first,
            end: blocks,
            size,
            head: 1 + descriptors,
        }
    }

    fn count(&self) -> u64 {
        (self.end - self.first).div_ceil(self.size)
    }

    fn each(self) -> impl Iterator<Item = Range<u64>> {
        (0..self.count()).map(move |group| {
            let start = self.first + group * self.size;
            start..(start + self.size).min(self.end)
        })
    }

    /// Whether a block must not be in the list.
    fn reserves(&self, block: u64) -> bool {
        let Some(behind) = block.checked_sub(self.first) else {
            return true;
        };
        // mke2fs asks for one more good block in the first group.
        behind % self.size < self.head || behind == self.head
    }
}

/// The plan with groups of a size; none if a group has no room for the least table.
fn with_groups(excluded: &[u64], blocks: u64, size: u64, ask: Ask) -> Option<BadBlocks> {
    let mut groups = Groups::new(blocks, size, ask.block_bytes);
    if groups.head + BITMAPS >= size {
        return None;
    }
    let mut list: Vec<u64> = excluded
        .iter()
        .copied()
        .filter(|&block| !groups.reserves(block))
        .collect();
    let under_tables = (excluded.len() - list.len()) as u64;
    let most = LIST_BYTES_MAX / u64::from(ask.block_bytes);
    let too_many = (list.len() as u64).saturating_sub(most);
    list.truncate(most as usize);

    let step = table_step(ask);
    let wanted = (size * INODE_BYTES / ask.inode_ratio).max(step);
    let mut rows: Vec<u64> = groups
        .each()
        .map(|group| row(group, &groups, &list))
        .collect();
    let last = rows.pop()?;
    let table = rows.into_iter().fold(wanted, u64::min);
    let last_blocks = (groups.end - groups.first - 1) % size + 1;
    let kept = last >= table && last_blocks >= groups.head + BITMAPS + table + LAST_GROUP_LEAST;
    let table = if groups.count() == 1 {
        table.min(last)
    } else {
        table
    };
    let table = table / step * step;
    if table == 0 {
        return None;
    }
    if !kept && groups.count() > 1 {
        groups.end -= last_blocks;
    }
    // What ends the file system early takes no block from the list that is still in it.
    let beyond = list.len() - list.partition_point(|&block| block < groups.end);
    list.truncate(list.len() - beyond);
    Some(BadBlocks {
        list,
        excluded: excluded.len() as u64 - beyond as u64,
        under_tables,
        too_many,
        blocks: groups.end,
        group_blocks: size,
        inodes: groups.count() * table * u64::from(ask.block_bytes) / INODE_BYTES,
        ask,
    })
}

/// Tables have a multiple of so many blocks: inodes of a group are a multiple of 8, and the first has some to spare
/// beside those that are reserved.
fn table_step(ask: Ask) -> u64 {
    (16 * INODE_BYTES).div_ceil(u64::from(ask.block_bytes))
}

/// The most blocks in a row that an inode table can have in a group, behind what mke2fs puts before it.
fn row(group: Range<u64>, groups: &Groups, list: &[u64]) -> u64 {
    let bad = &list[list.partition_point(|&block| block < group.start)..];
    let bad = &bad[..bad.partition_point(|&block| block < group.end)];
    let mut from = group.start + groups.head;
    let mut bitmaps = BITMAPS;
    let mut longest = 0;
    for &end in bad.iter().chain([&group.end]) {
        let free = end.saturating_sub(from);
        let before = bitmaps.min(free);
        bitmaps -= before;
        longest = longest.max(free - before);
        from = from.max(end + 1);
    }
    longest
}
