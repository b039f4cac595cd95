//! The stack that the user wants: the words after `--for`.
//!
//! ```text
//! fs=ext4,raid=5x64k,disks=4
//! ```
//!
//! Words may come in any order. The order of the layers is fixed, from the bottom: table, array,
//! volume group, encryption, file system.

use std::fmt;
use std::str::FromStr;

use traxtent_units::byte_size::parse_byte_size;

macro_rules! names {
    ($(#[$doc:meta])* $type:ident { $($(#[$of:meta])* $variant:ident = $name:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type { $($(#[$of])* $variant,)+ }

        impl $type {
            /// All values.
            pub const ALL: &[$type] = &[$($type::$variant,)+];

            /// Returns the name.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

names! {
    /// A partition table.
    Table {
        /// GPT.
        Gpt = "gpt",
        /// MBR.
        Mbr = "mbr",
        /// None: the whole drive is used.
        None = "none",
    }
}

names! {
    /// The program that writes the partition table.
    Partitioner {
        /// sfdisk of util-linux.
        Sfdisk = "sfdisk",
        /// GNU parted.
        Parted = "parted",
        /// sgdisk of GPT fdisk.
        Sgdisk = "sgdisk",
    }
}

names! {
    /// The file system, or swap space.
    FileSystem {
        /// ext2.
        Ext2 = "ext2",
        /// ext3.
        Ext3 = "ext3",
        /// ext4.
        Ext4 = "ext4",
        /// XFS.
        Xfs = "xfs",
        /// Btrfs.
        Btrfs = "btrfs",
        /// Swap space.
        Swap = "swap",
    }
}

impl FileSystem {
    /// Returns whether mke2fs creates it.
    pub fn is_ext(self) -> bool {
        matches!(self, FileSystem::Ext2 | FileSystem::Ext3 | FileSystem::Ext4)
    }
}

/// A RAID level and its chunk size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raid {
    /// The level: 0, 1, 4, 5, 6 or 10.
    pub level: u8,
    /// The size of a chunk in bytes; `None` at level 1.
    pub chunk_bytes: Option<u64>,
}

impl Raid {
    /// The supported levels.
    pub const LEVELS: [u8; 6] = [0, 1, 4, 5, 6, 10];

    /// Returns the minimum number of members.
    pub fn disks_min(self) -> u32 {
        match self.level {
            4 | 5 => 3,
            6 | 10 => 4,
            _ => 2,
        }
    }

    /// Returns the number of data chunks in a full stripe over `disks` members.
    pub fn data_chunks(self, disks: u32) -> u32 {
        match self.level {
            0 => disks,
            4 | 5 => disks - 1,
            6 => disks - 2,
            10 => disks / 2,
            _ => 1,
        }
    }
}

/// The maximum number of drives.
const DISKS_MAX: u32 = 64;

/// The description of a wanted stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSpec {
    /// `table=`: the partition table.
    pub table: Table,
    /// `with=`: the program that writes it.
    pub with: Partitioner,
    /// `raid=`: an md array.
    pub raid: Option<Raid>,
    /// `disks=`: the number of drives.
    pub disks: u32,
    /// Whether the words state that number.
    pub is_count_stated: bool,
    /// `lvm`: a volume group with one volume.
    pub lvm: bool,
    /// `luks`: encryption, with this sector size in bytes; 0 if the drive determines it.
    pub luks_sector: Option<u32>,
    /// `fs=`: the file system.
    pub fs: FileSystem,
    /// `block=`: the size of its blocks in bytes.
    pub block_bytes: u32,
    /// `inode-ratio=`: bytes per inode of ext2, 3 and 4.
    pub inode_ratio: u64,
    /// `tracks=`: whether track boundaries are considered, if they are known.
    pub tracks: bool,
}

/// The words, each with its values.
pub const GRAMMAR: &str = "\
fs=ext2|ext3|ext4|xfs|btrfs|swap  the file system [ext4]
block=BYTES                       block size of ext2, 3 and 4: 1024, 2048 or 4096 [4096]
inode-ratio=BYTES                 bytes per inode of ext2, 3 and 4: 1K to 64M [16384]
luks[=BYTES]                      encryption, in sectors of 512, 1024, 2048 or 4096 [the physical sector]
lvm                               a volume group with one volume
raid=LEVEL[xCHUNK]                an md array: 0, 1, 4, 5, 6 or 10; chunks (not for 1) of 4K to 64M [512K]
disks=N                           number of drives, at most 64 [that of --device, or the minimum for the level; 1 without raid]
table=gpt|mbr|none                the partition table [gpt]
with=sfdisk|parted|sgdisk         the program that writes it; sgdisk writes only GPT [sfdisk]
tracks=yes|no                     begin at a track boundary; leave out blocks that span two tracks [yes, where known]";

/// The reason why the words are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word}: {problem}")]
pub struct StackSpecError {
    word: String,
    problem: String,
}

impl FromStr for StackSpec {
    type Err = StackSpecError;

    fn from_str(text: &str) -> Result<StackSpec, StackSpecError> {
        let mut want = StackSpec::default();
        let mut seen: Vec<&str> = Vec::new();
        for word in text.split(',') {
            let fail = |word: &str, problem: String| StackSpecError {
                word: format!("{word:?}"),
                problem,
            };
            let (key, value) = match word.split_once('=') {
                Some((key, value)) => (key, Some(value)),
                None => (word, None),
            };
            if seen.contains(&key) {
                return Err(fail(key, "is given twice".to_owned()));
            }
            seen.push(key);
            want.set(key, value)
                .map_err(|problem| fail(word, problem))?;
        }
        want.is_count_stated = seen.contains(&"disks");
        if let (false, Some(raid)) = (want.is_count_stated, want.raid) {
            want.disks = raid.disks_min();
        }
        let in_combination = want.check().and_then(|()| want.check_effect(&seen));
        in_combination.map_err(|problem| StackSpecError {
            word: format!("{text:?}"),
            problem,
        })?;
        Ok(want)
    }
}

impl Default for StackSpec {
    fn default() -> StackSpec {
        StackSpec {
            table: Table::Gpt,
            with: Partitioner::Sfdisk,
            raid: None,
            disks: 1,
            is_count_stated: false,
            lvm: false,
            luks_sector: None,
            fs: FileSystem::Ext4,
            block_bytes: 4096,
            inode_ratio: 16_384,
            tracks: true,
        }
    }
}

impl StackSpec {
    /// Returns the same stack on `count` drives if the words do not state their number, and if the
    /// array can have that many.
    #[must_use]
    pub fn on_drives(&self, count: usize) -> StackSpec {
        let mut want = self.clone();
        if let (false, Some(_), Ok(count)) = (self.is_count_stated, self.raid, count.try_into())
            && (1..=DISKS_MAX).contains(&count)
        {
            want.disks = count;
        }
        if want.check().is_ok() {
            want
        } else {
            self.clone()
        }
    }

    fn set(&mut self, key: &str, value: Option<&str>) -> Result<(), String> {
        let text = value.unwrap_or_default();
        match key {
            "table" => self.table = one_of(text, Table::ALL, Table::name)?,
            "with" => self.with = one_of(text, Partitioner::ALL, Partitioner::name)?,
            "fs" => self.fs = one_of(text, FileSystem::ALL, FileSystem::name)?,
            "block" => self.block_bytes = number(text, &[1024, 2048, 4096])?,
            "luks" => {
                self.luks_sector = Some(match value {
                    // The sector size is chosen once the drive is known.
                    None => 0,
                    Some(text) => number(text, &[512, 1024, 2048, 4096])?,
                })
            }
            "lvm" => match value {
                None => self.lvm = true,
                Some(_) => return Err("lvm takes no value".to_owned()),
            },
            "raid" => self.raid = Some(raid(text)?),
            "tracks" => {
                self.tracks = match text {
                    "yes" => true,
                    "no" => false,
                    _ => return Err("expected yes or no".to_owned()),
                }
            }
            "disks" => {
                let count = text.parse().ok();
                let count = count.filter(|count| (1..=DISKS_MAX).contains(count));
                self.disks =
                    count.ok_or_else(|| format!("expected a number from 1 to {DISKS_MAX}"))?;
            }
            "inode-ratio" => {
                self.inode_ratio = match bytes(text)? {
                    ratio if (1024..=1 << 26).contains(&ratio) => ratio,
                    _ => return Err("expected a size from 1K to 64M".to_owned()),
                }
            }
            _ => {
                return Err("unknown word; use block, disks, fs, inode-ratio, luks, lvm, raid, table, tracks or with".to_owned());
            }
        }
        Ok(())
    }

    /// Checks the words in combination.
    fn check(&self) -> Result<(), String> {
        match self.raid {
            None if self.disks > 1 => return Err("several disks need raid=".to_owned()),
            Some(raid) if self.disks < raid.disks_min() => {
                return Err(format!(
                    "RAID {} needs {} disks or more",
                    raid.level,
                    raid.disks_min()
                ));
            }
            Some(raid) if raid.level == 10 && self.disks % 2 == 1 => {
                return Err(
                    "RAID 10 over an odd number of disks has no stripe to align to".to_owned(),
                );
            }
            _ => {}
        }
        if self.table == Table::Mbr && self.with == Partitioner::Sgdisk {
            return Err("sgdisk writes only GPT; use with=sfdisk or with=parted".to_owned());
        }
        if !self.fs.is_ext() && self.block_bytes != 4096 {
            return Err(format!(
                "block= applies to ext2, ext3 and ext4; {} is created with blocks of 4096 bytes",
                self.fs
            ));
        }
        Ok(())
    }

    /// Refuses words among those `given` that would have no effect.
    fn check_effect(&self, given: &[&str]) -> Result<(), String> {
        if !self.fs.is_ext() && given.contains(&"inode-ratio") {
            return Err(format!(
                "inode-ratio= applies to ext2, ext3 and ext4, not to {}; remove it",
                self.fs
            ));
        }
        if self.table == Table::None && given.contains(&"with") {
            return Err("with= names the program that writes a table; remove it, or use table=gpt or table=mbr".to_owned());
        }
        Ok(())
    }
}

fn one_of<T: Copy>(text: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, String> {
    let found = all.iter().copied().find(|&value| name(value) == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|&value| name(value)).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn number(text: &str, allowed: &[u32]) -> Result<u32, String> {
    let found = bytes(text).ok().and_then(|bytes| u32::try_from(bytes).ok());
    found
        .filter(|number| allowed.contains(number))
        .ok_or_else(|| {
            let names: Vec<String> = allowed.iter().map(u32::to_string).collect();
            format!("expected one of {}", names.join(", "))
        })
}

fn bytes(text: &str) -> Result<u64, String> {
    parse_byte_size(text).map_err(|error| error.to_string())
}

fn raid(text: &str) -> Result<Raid, String> {
    let (level, chunk) = match text.split_once('x') {
        Some((level, chunk)) => (level, Some(chunk)),
        None => (text, None),
    };
    let level = level
        .parse()
        .ok()
        .filter(|level| Raid::LEVELS.contains(level));
    let level = level.ok_or("expected a level of 0, 1, 4, 5, 6 or 10, as in raid=5x64K")?;
    let chunk_bytes = match chunk {
        _ if level == 1 && chunk.is_some() => return Err("RAID 1 has no chunks".to_owned()),
        _ if level == 1 => None,
        None => Some(512 << 10),
        Some(chunk) => match bytes(chunk)? {
            size if size.is_power_of_two() && (4096..=64 << 20).contains(&size) => Some(size),
            _ => return Err("expected a chunk from 4K to 64M, a power of two".to_owned()),
        },
    };
    Ok(Raid { level, chunk_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are words accepted in any order, with defaults for those left out?
    #[test]
    fn words() {
        let want: StackSpec = "raid=5x64k,fs=xfs,disks=4,luks=4k,lvm".parse().unwrap();
        assert_eq!((want.fs, want.disks, want.lvm), (FileSystem::Xfs, 4, true));
        let raid = want.raid.unwrap();
        assert_eq!(
            (raid.chunk_bytes, raid.data_chunks(want.disks)),
            (Some(65_536), 3)
        );
        assert_eq!("raid=6".parse::<StackSpec>().unwrap().disks, 4);
        assert_eq!("fs=ext4".parse(), Ok(StackSpec::default()));
    }

    /// Are the named drives counted if the words do not state their number, and if the level allows
    /// that many?
    #[test]
    fn counted_drives() {
        for (text, named, disks) in [
            ("raid=6", 8, 8),
            ("raid=6", 3, 4),
            ("raid=10", 5, 4),
            ("raid=6,disks=4", 8, 4),
            ("raid=1", 65, 2),
            ("fs=ext4", 2, 1),
        ] {
            let want: StackSpec = text.parse().unwrap();
            assert_eq!(want.on_drives(named).disks, disks, "{text} on {named}");
        }
    }

    /// Does every error state what is possible?
    #[test]
    fn refusals() {
        for (text, says) in [
            (
                "fs=zfs",
                "\"fs=zfs\": expected one of ext2, ext3, ext4, xfs, btrfs, swap",
            ),
            ("fs", "\"fs\": expected one of ext2"),
            ("", "\"\": unknown word; use block, disks"),
            ("raid=3", "\"raid=3\": expected a level of 0, 1, 4"),
            (
                "raid=5x65k",
                "\"raid=5x65k\": expected a chunk from 4K to 64M",
            ),
            ("raid=1x64k", "\"raid=1x64k\": RAID 1 has no chunks"),
            ("raid=6,disks=3", "RAID 6 needs 4 disks"),
            ("disks=2", "several disks need raid="),
            ("fs=ext4,fs=xfs", "\"fs\": is given twice"),
            ("block=512", "expected one of 1024, 2048, 4096"),
            ("table=mbr,with=sgdisk", "sgdisk writes only GPT"),
            (
                "inode-ratio=99999999999999999999g",
                "expected a whole number of bytes below 2^64",
            ),
            ("inode-ratio=512", "expected a size from 1K to 64M"),
            (
                "fs=xfs,inode-ratio=64K",
                "inode-ratio= applies to ext2, ext3 and ext4, not to xfs",
            ),
            ("table=none,with=sgdisk", "remove it, or use table=gpt"),
            ("raid=0,disks=65", "expected a number from 1 to 64"),
            (
                "raid=5x64q",
                "\"raid=5x64q\": expected a whole number of bytes",
            ),
            ("lvm=4m", "lvm takes no value"),
        ] {
            let error = text.parse::<StackSpec>().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
