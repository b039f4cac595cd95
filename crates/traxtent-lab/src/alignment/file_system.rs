//! The file systems that are tested.

use std::fs;
use std::process::Command;

/// A file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileSystem {
    /// ext3, mounted by the kernel's ext4 driver.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// JFS.
    Jfs,
    /// ReiserFS, version 3.
    ReiserFs,
}

impl FileSystem {
    /// The file systems that are tested with the running kernel.
    pub const OF_HOST: [FileSystem; 4] = [
        FileSystem::Ext3,
        FileSystem::Ext4,
        FileSystem::Xfs,
        FileSystem::Btrfs,
    ];

    /// The file systems that few kernels have today, tested with the kernel of a guest.
    pub const OF_GUEST: [FileSystem; 2] = [FileSystem::Jfs, FileSystem::ReiserFs];

    /// The name of the file system for `mount`.
    pub fn name(self) -> &'static str {
        match self {
            FileSystem::Ext3 => "ext3",
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
            FileSystem::Btrfs => "btrfs",
            FileSystem::Jfs => "jfs",
            FileSystem::ReiserFs => "reiserfs",
        }
    }

    /// Returns whether this kernel supports the file system. Loads its module if necessary.
    pub(super) fn is_supported(self) -> bool {
        let listed = || {
            let list = fs::read_to_string("/proc/filesystems").unwrap_or_default();
            list.split_whitespace().any(|name| name == self.name())
        };
        listed() || {
            let _ = Command::new("modprobe")
                .args(["--quiet", self.name()])
                .status();
            listed()
        }
    }
}
