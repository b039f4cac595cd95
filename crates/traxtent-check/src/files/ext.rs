//! Files in an image of ext2, ext3 or ext4: directories, inodes, extent trees and indirect blocks.
//!
//! Symbolic links are not followed. Inline data and `meta_bg` are not supported.

use std::ops::Range;

use super::join;
use crate::layers::{Ext, LayerError};
use crate::source::Source;

/// The inode that holds the bad blocks.
const BAD_BLOCKS: u64 = 1;
/// The inode of the root directory.
const ROOT: u64 = 2;
/// The maximum number of bytes of a directory that are read.
const DIRECTORY_BYTES_MAX: u64 = 64 << 20;
/// The maximum number of nodes of an extent tree, or of pointer blocks, that may map a file.
const NODES_MAX: u32 = 1 << 16;
/// The maximum number of extents of a file.
const EXTENTS_MAX: usize = 1 << 20;

// Incompatible features of a file system.
const META_BG: u32 = 0x10;
const HAS_64BIT: u32 = 0x80;

// Flags of an inode.
const BY_EXTENTS: u32 = 0x8_0000;
const INLINE: u32 = 0x1000_0000;

/// Returns the location of a file's bytes in an image: byte ranges of the file system, in the order
/// of the file.
///
/// # Errors
/// Returns an error if there is no such regular file, if the bytes cannot be read, or if the
/// metadata is inconsistent or uses a feature that is not supported.
pub fn extents_in_image(
    source: &dyn Source,
    ext: &Ext,
    path: &str,
) -> Result<Vec<Range<u64>>, LayerError> {
    let tables = Tables::read(source, ext)?;
    let mut inode = tables.inode(ROOT)?;
    for name in path.split('/').filter(|name| !name.is_empty()) {
        let number = tables
            .find(&inode, name)?
            .ok_or_else(|| invalid(format!("{path:?}: there is no {name:?}")))?;
        inode = tables.inode(number)?;
    }
    if inode.kind() != Kind::File {
        return Err(invalid(format!("{path:?} is not a regular file")));
    }
    tables.extents(&inode)
}

/// Returns the blocks that the file system excludes from use because they are on its list of bad
/// blocks, as byte ranges of the file system.
///
/// # Errors
/// Returns an error if the bytes cannot be read, or if the metadata is inconsistent or uses a
/// feature that is not supported.
pub fn bad_blocks_in_image(source: &dyn Source, ext: &Ext) -> Result<Vec<Range<u64>>, LayerError> {
    let tables = Tables::read(source, ext)?;
    tables.extents(&tables.inode(BAD_BLOCKS)?)
}

fn invalid(problem: String) -> LayerError {
    LayerError::Invalid {
        format: "ext",
        problem,
    }
}

fn le16(bytes: &[u8], at: usize) -> u64 {
    u64::from(bytes[at]) | u64::from(bytes[at + 1]) << 8
}

fn le32(bytes: &[u8], at: usize) -> u64 {
    le16(bytes, at) | le16(bytes, at + 2) << 16
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Directory,
    Other,
}

/// The first 128 bytes of an inode.
struct Inode([u8; 128]);

impl Inode {
    fn kind(&self) -> Kind {
        match le16(&self.0, 0) >> 12 {
            8 => Kind::File,
            4 => Kind::Directory,
            _ => Kind::Other,
        }
    }

    fn flags(&self) -> u32 {
        le32(&self.0, 32) as u32
    }

    fn bytes(&self) -> u64 {
        le32(&self.0, 4) | le32(&self.0, 108) << 32
    }

    /// Returns the 60 bytes for extents or pointers.
    fn map(&self) -> &[u8] {
        &self.0[40..100]
    }
}

struct Tables<'a> {
    source: &'a dyn Source,
    block_bytes: u64,
    blocks: u64,
    descriptors_at: u64,
    descriptor_bytes: u64,
    group_inodes: u64,
    inode_bytes: u64,
    inodes: u64,
}

impl<'a> Tables<'a> {
    fn read(source: &'a dyn Source, ext: &Ext) -> Result<Tables<'a>, LayerError> {
        let superblock = source.read(1024, 1024)?;
        let incompatible = le32(&superblock, 96) as u32;
        if incompatible & META_BG != 0 {
            return Err(invalid(
                "its group descriptors are spread over the groups (meta_bg), which is not supported".to_owned(),
            ));
        }
        let is_wide = incompatible & HAS_64BIT != 0;
        let tables = Tables {
            source,
            block_bytes: ext.block_bytes,
            blocks: ext.blocks,
            descriptors_at: ext
                .first_block
                .saturating_add(1)
                .saturating_mul(ext.block_bytes),
            descriptor_bytes: if is_wide { le16(&superblock, 254) } else { 32 },
            group_inodes: le32(&superblock, 40),
            inode_bytes: if le32(&superblock, 76) > 0 {
                le16(&superblock, 88)
            } else {
                128
            },
            inodes: le32(&superblock, 0),
        };
        let sizes = (
            tables.descriptor_bytes,
            tables.inode_bytes,
            tables.group_inodes,
        );
        if sizes.0 < 32 || sizes.1 < 128 || sizes.2 == 0 || tables.block_bytes == 0 {
            return Err(invalid(format!(
                "sizes of descriptors and inodes, and inodes per group, are invalid: {sizes:?}"
            )));
        }
        Ok(tables)
    }

    fn inode(&self, number: u64) -> Result<Inode, LayerError> {
        if number == 0 || number > self.inodes {
            return Err(invalid(format!("there is no inode {number}")));
        }
        let (group, index) = (
            (number - 1) / self.group_inodes,
            (number - 1) % self.group_inodes,
        );
        let at = self
            .descriptors_at
            .saturating_add(group.saturating_mul(self.descriptor_bytes));
        let descriptor = self.source.read(at, self.descriptor_bytes as usize)?;
        let high = if self.descriptor_bytes >= 64 {
            le32(&descriptor, 40) << 32
        } else {
            0
        };
        let table = self.block(high | le32(&descriptor, 8))?;
        let bytes = self
            .source
            .read(table.saturating_add(index * self.inode_bytes), 128)?;
        Ok(Inode(bytes.try_into().expect("128 bytes were read")))
    }

    /// Returns the offset of a block in bytes.
    fn block(&self, number: u64) -> Result<u64, LayerError> {
        if number == 0 || number >= self.blocks {
            return Err(invalid(format!(
                "block {number} is out of bounds; there are {}",
                self.blocks
            )));
        }
        Ok(number.saturating_mul(self.block_bytes))
    }

    /// Returns the number of the inode that a name in a directory refers to.
    fn find(&self, directory: &Inode, name: &str) -> Result<Option<u64>, LayerError> {
        if directory.kind() != Kind::Directory {
            return Err(invalid(format!(
                "the parent of {name:?} is not a directory"
            )));
        }
        let mut left = directory.bytes().min(DIRECTORY_BYTES_MAX);
        for extent in self.extents(directory)? {
            let mut at = extent.start;
            while at < extent.end && left > 0 {
                let block = self.source.read(at, self.block_bytes as usize)?;
                if let Some(inode) = find_in_block(&block, name)? {
                    return Ok(Some(inode));
                }
                at += self.block_bytes;
                left = left.saturating_sub(self.block_bytes);
            }
        }
        Ok(None)
    }

    fn extents(&self, inode: &Inode) -> Result<Vec<Range<u64>>, LayerError> {
        if inode.flags() & INLINE != 0 {
            return Err(invalid(
                "its data is in its inode, which is not supported".to_owned(),
            ));
        }
        let mut walk = Walk {
            tables: self,
            found: Vec::new(),
            nodes: 0,
            left: inode.bytes().div_ceil(self.block_bytes),
        };
        if inode.flags() & BY_EXTENTS != 0 {
            walk.tree(inode.map(), 8)?;
        } else {
            for (index, pointer) in inode.map().chunks_exact(4).enumerate() {
                walk.pointer(le32(pointer, 0), (index as u32).saturating_sub(11))?;
            }
        }
        Ok(walk.found)
    }
}

/// Finds the inode number of a name in a block of a directory. An entry consists of an inode
/// number, the lengths of the entry and of the name, and the name.
fn find_in_block(block: &[u8], name: &str) -> Result<Option<u64>, LayerError> {
    let mut at = 0;
    while at + 8 <= block.len() {
        let inode = le32(block, at);
        // The length of a block of 64 KiB does not fit in 16 bits.
        let length = match le16(block, at + 4) as usize {
            0 | 0xffff => block.len() - at,
            length => length,
        };
        let name_bytes = usize::from(block[at + 6]);
        if length < 8 || at + length > block.len() || name_bytes + 8 > length {
            return Err(invalid(format!(
                "a directory entry has an invalid length of {length} bytes, with a name of {name_bytes} bytes"
            )));
        }
        if inode != 0 && block[at + 8..at + 8 + name_bytes] == *name.as_bytes() {
            return Ok(Some(inode));
        }
        at += length;
    }
    Ok(None)
}

/// The state of a walk through the blocks that map a file.
struct Walk<'a> {
    tables: &'a Tables<'a>,
    found: Vec<Range<u64>>,
    nodes: u32,
    /// The number of blocks of the file that have not been reached. Used only for files that are
    /// mapped by pointers.
    left: u64,
}

impl Walk<'_> {
    fn count(&mut self) -> Result<(), LayerError> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(invalid(format!(
                "a file is mapped by more than {NODES_MAX} blocks"
            )));
        }
        Ok(())
    }

    fn add(&mut self, range: Range<u64>) -> Result<(), LayerError> {
        if self.found.len() == EXTENTS_MAX {
            return Err(invalid(format!(
                "a file has more than {EXTENTS_MAX} extents"
            )));
        }
        join(&mut self.found, range);
        Ok(())
    }

    /// Walks a node of an extent tree. Its level must be below `depth`.
    fn tree(&mut self, node: &[u8], depth: u64) -> Result<(), LayerError> {
        self.count()?;
        let (magic, entries, level) = (le16(node, 0), le16(node, 2) as usize, le16(node, 6));
        if magic != 0xf30a || level >= depth || 12 * (entries + 1) > node.len() {
            return Err(invalid(format!(
                "a node of an extent tree is invalid: magic number {magic:#06x}, level {level}, {entries} entries"
            )));
        }
        for entry in node[12..12 * (entries + 1)].chunks_exact(12) {
            if level == 0 {
                // A length above 32,768 marks an extent that has not been written.
                let blocks = match le16(entry, 4) {
                    length if length > 32_768 => length - 32_768,
                    length => length,
                };
                let start = self.tables.block(le32(entry, 8) | le16(entry, 6) << 32)?;
                self.add(start..start.saturating_add(blocks * self.tables.block_bytes))?;
            } else {
                let at = self.tables.block(le32(entry, 4) | le16(entry, 8) << 32)?;
                let child = self
                    .tables
                    .source
                    .read(at, self.tables.block_bytes as usize)?;
                self.tree(&child, level)?;
            }
        }
        Ok(())
    }

    /// Follows a pointer that leads to data through `level` blocks of pointers.
    fn pointer(&mut self, number: u64, level: u32) -> Result<(), LayerError> {
        let pointers_per_block = self.tables.block_bytes / 4;
        if self.left == 0 {
            return Ok(());
        }
        if number == 0 {
            // A hole.
            self.left = self
                .left
                .saturating_sub(pointers_per_block.saturating_pow(level));
            return Ok(());
        }
        let at = self.tables.block(number)?;
        if level == 0 {
            self.left -= 1;
            return self.add(at..at.saturating_add(self.tables.block_bytes));
        }
        self.count()?;
        let block = self
            .tables
            .source
            .read(at, self.tables.block_bytes as usize)?;
        for pointer in block.chunks_exact(4) {
            self.pointer(le32(pointer, 0), level - 1)?;
        }
        Ok(())
    }
}
