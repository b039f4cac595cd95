//! A list of bad blocks for `mke2fs -l` that mke2fs accepts and e2fsck does not complain about
//! (paper T, section 4.2.2).
//!
//! The excluded blocks of a partition are those that span two tracks. If they are declared bad, no
//! file uses them. A plain list of them does not work, however. Trials showed that mke2fs 1.47.0
//! handles such a list as follows:
//!
//! - It aborts if the primary superblock or the descriptors after it would be on a bad block.
//! - It miscounts a bad block that lies where a *later* group would have a copy of the superblock
//!   and the descriptors, whether or not the group has one; e2fsck then finds wrong counts. With
//!   `resize_inode`, the space for more descriptors causes the same problem.
//! - The inode table of a group needs consecutive blocks. If the group has too few between two bad
//!   blocks, mke2fs aborts. With `flex_bg` it takes them from anywhere, even from the other end of
//!   the disk.
//! - The inode of bad blocks must stay below 2 GiB: 524,287 blocks of 4096 bytes.
//!
//! The list is therefore planned as follows. There is no `resize_inode` and no `flex_bg`. Blocks
//! that the superblocks and descriptors may need stay out of the list. The number of inodes is
//! chosen so that every group's table fits between two excluded blocks. Groups are made smaller if
//! there would be too few inodes. The file system ends with a group that has room for its tables. A
//! list that would be too long ends early. The plan reports how many blocks stay out of the list.

use std::ops::Range;

use traxtent_layout::Partition;

/// The size of an inode in bytes: the default of mke2fs.
const INODE_BYTES: u64 = 256;
/// The size of a group descriptor in bytes with the feature `64bit`. Without it, descriptors are
/// half as long, and more blocks stay out of the list than necessary.
const DESCRIPTOR_BYTES: u64 = 64;
/// The number of blocks that the two bitmaps of a group take. mke2fs puts them before the inode
/// table.
const BITMAP_BLOCKS: u64 = 2;
/// The maximum size of the inode of bad blocks; a longer list is refused ("Ext2 file too big").
const LIST_BYTES_MAX: u64 = (1 << 31) - 1;
/// The maximum number of blocks. Block numbers in the list have 32 bits.
const BLOCKS_MAX: u64 = 1 << 32;
/// The number of blocks that the last group must have in addition to those that its tables need.
/// Otherwise mke2fs drops the group.
const LAST_GROUP_BLOCKS_MIN: u64 = 50;
/// Groups are made smaller if the number of bytes per inode would exceed both this and the
/// requested number. The value is the default of mke2fs for huge disks.
const INODE_RATIO_MAX: u64 = 65_536;
/// The maximum factor by which groups are made smaller.
const GROUPS_SMALLER_MAX: u32 = 64;
/// At most one block in this many is given up. (Paper T gives up one in twenty.)
const EXCLUDED_ONE_IN: u64 = 10;

/// The requirements on the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSystemSpec {
    /// The block size in bytes: 1024, 2048 or 4096.
    pub block_bytes: u32,
    /// The desired number of bytes per inode; the default of mke2fs is 16,384.
    pub inode_ratio: u64,
}

/// The list of bad blocks, and the parameters that mke2fs needs with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBlocks {
    /// The blocks of the list, in ascending order.
    pub list: Vec<u64>,
    /// The number of excluded blocks: those in the list and those that stay out of it.
    pub excluded: u64,
    /// The number that stay out because superblocks and descriptors may lie there.
    pub under_tables: u64,
    /// The number that stay out because the list would be too long. They are the last ones.
    pub too_many: u64,
    /// The number of blocks in the file system, which may be fewer than in the partition.
    pub blocks: u64,
    /// The number of blocks in a group.
    pub group_blocks: u64,
    /// The number of inodes in all.
    pub inodes: u64,
    spec: FileSystemSpec,
}

/// The reason why a file system has no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoListError {
    /// Every track boundary falls between two blocks.
    #[error("every track boundary falls between two blocks, so no block has to be left out")]
    NoneExcluded,
    /// Too many blocks would be given up.
    #[error(
        "{excluded} of {blocks} blocks span two tracks, more than one in {EXCLUDED_ONE_IN}; smaller blocks lose less"
    )]
    TooManyExcluded {
        /// The blocks that span two tracks.
        excluded: u64,
        /// The blocks in all.
        blocks: u64,
    },
    /// The block numbers exceed 32 bits.
    #[error("{blocks} blocks exceed the limit of mke2fs -l ({BLOCKS_MAX})")]
    TooLarge {
        /// The blocks in all.
        blocks: u64,
    },
    /// Groups have no room for their tables, whatever their size.
    #[error(
        "groups have no room for superblock, descriptors and an inode table of {least} blocks; use larger blocks"
    )]
    NoRoom {
        /// The smallest useful table in blocks.
        least: u64,
    },
    /// mke2fs does not support the block size.
    #[error("block size of {0} bytes is invalid; use 1024, 2048 or 4096")]
    BlockSize(u32),
}

impl BadBlocks {
    /// Plans a file system on a partition.
    ///
    /// # Errors
    /// Returns an error if mke2fs does not support the size or number of blocks, if no block or too
    /// many blocks would have to be listed, or if groups have no room for their tables.
    pub fn plan(partition: &Partition, spec: FileSystemSpec) -> Result<BadBlocks, NoListError> {
        if ![1024, 2048, 4096].contains(&spec.block_bytes) {
            return Err(NoListError::BlockSize(spec.block_bytes));
        }
        let blocks = partition.blocks().0;
        if blocks > BLOCKS_MAX {
            return Err(NoListError::TooLarge { blocks });
        }
        let excluded: Vec<u64> = partition.excluded().map(|block| block.0).collect();
        if excluded.is_empty() {
            return Err(NoListError::NoneExcluded);
        }
        if excluded.len() as u64 > blocks / EXCLUDED_ONE_IN {
            return Err(NoListError::TooManyExcluded {
                excluded: excluded.len() as u64,
                blocks,
            });
        }
        let largest = 8 * spec.block_bytes;
        let mut best: Option<BadBlocks> = None;
        for factor in (0..=GROUPS_SMALLER_MAX.ilog2()).map(|power| 1 << power) {
            let Some(plan) = with_groups(&excluded, blocks, u64::from(largest / factor), spec)
            else {
                continue;
            };
            let enough = plan.inode_ratio() <= spec.inode_ratio.max(INODE_RATIO_MAX);
            if best.as_ref().is_none_or(|best| plan.inodes > best.inodes) {
                best = Some(plan);
            }
            if enough {
                break;
            }
        }
        best.ok_or(NoListError::NoRoom {
            least: table_step(spec),
        })
    }

    /// Returns the bytes of the file system per inode.
    pub fn inode_ratio(&self) -> u64 {
        self.blocks * u64::from(self.spec.block_bytes) / self.inodes
    }

    /// Returns the arguments for mke2fs, with the list in `file`. The device comes after them, and
    /// the number of blocks after the device.
    pub fn arguments(&self, file: &str) -> Vec<String> {
        let mut words = vec!["-b".to_owned(), self.spec.block_bytes.to_string()];
        if self.group_blocks != u64::from(8 * self.spec.block_bytes) {
            words.extend(["-g".to_owned(), self.group_blocks.to_string()]);
        }
        words.extend(["-I".to_owned(), INODE_BYTES.to_string()]);
        words.extend(["-N".to_owned(), self.inodes.to_string()]);
        words.extend(["-O", "^resize_inode,^flex_bg", "-l", file].map(str::to_owned));
        words
    }

    /// Returns the list as mke2fs reads it: one number per line.
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
    /// The first block after the last group.
    end: u64,
    /// The number of blocks in each group but the last.
    size: u64,
    /// The number of blocks that a superblock and the descriptors take in a group that has them.
    head: u64,
}

impl Groups {
    fn new(blocks: u64, size: u64, block_bytes: u32) -> Groups {
        // With blocks of 1024 bytes, the block before the first group is for boot loaders.
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

    /// Returns whether the list must not contain a block.
    fn is_reserved(&self, block: u64) -> bool {
        let Some(offset) = block.checked_sub(self.first) else {
            return true;
        };
        // mke2fs needs one more good block in the first group.
        offset % self.size < self.head || offset == self.head
    }
}

/// Returns the plan with groups of a given size, or `None` if a group has no room for the smallest
/// table.
fn with_groups(
    excluded: &[u64],
    blocks: u64,
    size: u64,
    spec: FileSystemSpec,
) -> Option<BadBlocks> {
    let mut groups = Groups::new(blocks, size, spec.block_bytes);
    if groups.head + BITMAP_BLOCKS >= size {
        return None;
    }
    let mut list: Vec<u64> = excluded
        .iter()
        .copied()
        .filter(|&block| !groups.is_reserved(block))
        .collect();
    let most = (LIST_BYTES_MAX / u64::from(spec.block_bytes)) as usize;
    let listed = &list[..most.min(list.len())];

    let step = table_step(spec);
    let wanted = (size * INODE_BYTES / spec.inode_ratio).max(step);
    let mut longest_runs: Vec<u64> = groups
        .each()
        .map(|group| longest_run(group, &groups, listed))
        .collect();
    let last = longest_runs.pop()?;
    let table = longest_runs.into_iter().fold(wanted, u64::min);
    let last_blocks = (groups.end - groups.first - 1) % size + 1;
    let kept =
        last >= table && last_blocks >= groups.head + BITMAP_BLOCKS + table + LAST_GROUP_BLOCKS_MIN;
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
    // If the file system ends early, only its own blocks count.
    let excluded = excluded.partition_point(|&block| block < groups.end);
    list.truncate(list.partition_point(|&block| block < groups.end));
    let under_tables = excluded - list.len();
    let too_many = list.len().saturating_sub(most);
    list.truncate(most);
    Some(BadBlocks {
        list,
        excluded: excluded as u64,
        under_tables: under_tables as u64,
        too_many: too_many as u64,
        blocks: groups.end,
        group_blocks: size,
        inodes: groups.count() * table * u64::from(spec.block_bytes) / INODE_BYTES,
        spec,
    })
}

/// Returns the unit of a table's length, in blocks. The inodes of a group are a multiple of 8, and
/// the first group needs some in addition to the reserved ones.
fn table_step(spec: FileSystemSpec) -> u64 {
    (16 * INODE_BYTES).div_ceil(u64::from(spec.block_bytes))
}

/// Returns the maximum length of an inode table in a group: the longest run of blocks that are
/// neither bad nor used by the structures that mke2fs puts first.
fn longest_run(group: Range<u64>, groups: &Groups, list: &[u64]) -> u64 {
    let bad = &list[list.partition_point(|&block| block < group.start)..];
    let bad = &bad[..bad.partition_point(|&block| block < group.end)];
    let mut from = group.start + groups.head;
    let mut bitmaps = BITMAP_BLOCKS;
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

#[cfg(test)]
mod tests {
    use super::*;

    /// If the last group is too small for its tables, are its excluded blocks left out of all
    /// counts, whether or not they could be listed?
    #[test]
    fn blocks_of_a_dropped_group() {
        let spec = FileSystemSpec {
            block_bytes: 4096,
            inode_ratio: 16_384,
        };
        let group = 32_768;
        // Block 100 can be listed; the first block of a group is reserved. The third group is
        // dropped.
        let excluded = [100, group, 2 * group, 2 * group + 10];
        let plan = with_groups(&excluded, 2 * group + 30, group, spec).unwrap();
        assert_eq!(plan.blocks, 2 * group);
        assert_eq!(plan.list, [100_u64]);
        assert_eq!((plan.excluded, plan.under_tables, plan.too_many), (2, 1, 0));
    }
}
