//! The state of files: their blocks, names and inodes.

use std::ops::Range;

use traxtent_units::Block;

/// The identifier of a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileId(pub(super) u32);

/// The state of a file.
#[derive(Clone, Debug)]
pub(super) struct File {
    /// Its blocks, in order.
    pub(super) blocks: Vec<Block>,
    /// Its indirect blocks, in order.
    pub(super) indirect: Vec<Block>,
    /// The blocks reserved for its growth.
    pub(super) reserved: Range<Block>,
    /// The block with its inode.
    pub(super) inode: Block,
    /// The group of its inode.
    pub(super) group: u64,
    /// The block of its directory that contains its name.
    pub(super) name: Option<Block>,
    /// Whether any of it was sent to the disk.
    pub(super) written: bool,
    /// The blocks of the files that were laid out with it and are read with it.
    pub(super) read_together: Option<Range<Block>>,
}

/// All files.
#[derive(Clone, Debug, Default)]
pub(super) struct Files {
    pub(super) files: Vec<File>,
    /// The number of inodes in use, by group.
    pub(super) inodes: Vec<u32>,
    /// The number of names in each directory, by file.
    pub(super) names: Vec<u32>,
}

impl Files {
    pub(super) fn get(&self, file: FileId) -> &File {
        &self.files[file.0 as usize]
    }

    pub(super) fn get_mut(&mut self, file: FileId) -> &mut File {
        &mut self.files[file.0 as usize]
    }
}

impl File {
    /// Returns the indirect block that points to a block of the file, if there is one.
    pub(super) fn indirect_of(&self, block: u64, direct: u32, pointers: u32) -> Option<Block> {
        let position = block.checked_sub(u64::from(direct))?;
        self.indirect
            .get((position / u64::from(pointers)) as usize)
            .copied()
    }
}
