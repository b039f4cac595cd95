//! The device of a Btrfs file system, its features, and the items of its chunk tree.
//!
//! Sources: `include/uapi/linux/btrfs.h`, `include/uapi/linux/btrfs_tree.h` and `fs/btrfs/ioctl.c`
//! of the Linux kernel.

use std::ffi::c_void;
use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Updater, opcode};

/// `BTRFS_SUPER_MAGIC`, the type of file system in the answer of `statfs`.
const MAGIC: u64 = 0x9123_683e;
/// `BTRFS_IOCTL_MAGIC`.
const GROUP: u8 = 0x94;

/// `struct btrfs_ioctl_fs_info_args` in 64-bit words: the highest device number, the number of
/// devices, the UUID, and words that are not used here.
type FsInfo = [u64; 128];
const FS_INFO: Opcode = opcode::read::<FsInfo>(GROUP, 31);

/// `struct btrfs_ioctl_feature_flags`: compatible, read-only compatible and incompatible features.
type Features = [u64; 3];
const GET_FEATURES: Opcode = opcode::read::<Features>(GROUP, 57);
/// `BTRFS_FEATURE_INCOMPAT_RAID_STRIPE_TREE`.
const RAID_STRIPE_TREE: u64 = 1 << 14;

/// A mounted Btrfs file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// The number of devices.
    pub devices: u64,
    /// The UUID by which the kernel lists it in `/sys/fs/btrfs`.
    pub uuid: [u8; 16],
}

/// An item of the chunk tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkItem {
    /// The first logical address of the chunk, from the item's key.
    pub logical: u64,
    /// The item: a `struct btrfs_chunk` with its stripes.
    pub bytes: Vec<u8>,
}

/// Returns whether an open file or directory is on Btrfs.
///
/// # Errors
/// Returns the system's error.
pub fn is_btrfs(inside: impl AsFd) -> io::Result<bool> {
    Ok(rustix::fs::fstatfs(inside)?.f_type as u64 == MAGIC)
}

/// Returns the number of devices and the UUID of the Btrfs that holds an open file or directory.
///
/// # Errors
/// Returns the system's error, for example if the file is not on Btrfs.
pub fn info(inside: impl AsFd) -> io::Result<Info> {
    // The kernel reads the flags in the structure before it writes the answer.
    let mut words: FsInfo = [0; 128];
    // SAFETY: the opcode and the type belong together.
    #[allow(unsafe_code)]
    unsafe {
        rustix::ioctl::ioctl(inside, Updater::<FS_INFO, FsInfo>::new(&mut words))?;
    }
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&words[2].to_ne_bytes());
    uuid[8..].copy_from_slice(&words[3].to_ne_bytes());
    Ok(Info {
        devices: words[1],
        uuid,
    })
}

/// Returns whether the place of mirrored and striped data is in a tree of its own, the RAID stripe
/// tree, instead of the chunk tree.
///
/// # Errors
/// Returns the system's error, for example if the file is not on Btrfs.
pub fn has_raid_stripe_tree(inside: impl AsFd) -> io::Result<bool> {
    let mut words: Features = [0; 3];
    // SAFETY: the opcode and the type belong together.
    #[allow(unsafe_code)]
    unsafe {
        rustix::ioctl::ioctl(inside, Updater::<GET_FEATURES, Features>::new(&mut words))?;
    }
    Ok(words[2] & RAID_STRIPE_TREE != 0)
}

/// The number of 64-bit words in `struct btrfs_ioctl_search_args_v2` before the results: a key of
/// 13 words, and the size of the results.
const HEAD_WORDS: usize = 14;
/// The room for results, in bytes. An item for 1,000 stripes needs half of it.
const RESULT_BYTES: usize = 64 << 10;
/// The size of `struct btrfs_ioctl_search_header`, which precedes each result, in bytes.
const HEADER_BYTES: usize = 32;
/// `BTRFS_CHUNK_TREE_OBJECTID`: the number of the chunk tree.
const CHUNK_TREE: u64 = 3;
/// `BTRFS_FIRST_CHUNK_TREE_OBJECTID`: the object to which all chunk items belong.
const CHUNKS: u64 = 256;
/// `BTRFS_CHUNK_ITEM_KEY`.
const CHUNK_ITEM: u64 = 228;

/// Returns all items of the chunk tree of the Btrfs that holds an open file or directory, in
/// ascending order of addresses. This needs `CAP_SYS_ADMIN`.
///
/// # Errors
/// Returns the system's error, for example if the file is not on Btrfs, or without the capability.
pub fn chunk_items(inside: impl AsFd) -> io::Result<Vec<ChunkItem>> {
    let mut items = Vec::new();
    let mut words = vec![0; HEAD_WORDS + RESULT_BYTES / 8];
    let mut next = Some(0);
    while let Some(first) = next {
        words.fill(0);
        let key = [
            CHUNK_TREE,
            CHUNKS,
            CHUNKS,
            first,
            u64::MAX,
            0,
            u64::MAX,
            // The lowest and the highest type.
            CHUNK_ITEM | CHUNK_ITEM << 32,
            // The number of results: as many as there is room for.
            u64::from(u32::MAX),
        ];
        words[..key.len()].copy_from_slice(&key);
        words[HEAD_WORDS - 1] = RESULT_BYTES as u64;
        search_tree(inside.as_fd(), &mut words)?;
        let count = words[8] as u32;
        let results: Vec<u8> = words[HEAD_WORDS..]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        let found = results_of(&results, count).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "the kernel's answer to a search of the chunk tree is cut off",
            )
        })?;
        let last = found.last().map(|item| item.logical);
        next = last.and_then(|last| last.checked_add(1));
        items.extend(found);
    }
    Ok(items)
}

/// Returns the items in the results of a search; `None` if they are cut off.
fn results_of(results: &[u8], count: u32) -> Option<Vec<ChunkItem>> {
    let mut rest = results;
    let mut items = Vec::new();
    for _ in 0..count {
        let (header, after) = rest.split_at_checked(HEADER_BYTES)?;
        let logical = u64::from_ne_bytes(header[16..24].try_into().ok()?);
        let length = u32::from_ne_bytes(header[28..32].try_into().ok()?);
        let (bytes, after) = after.split_at_checked(length as usize)?;
        let bytes = bytes.to_vec();
        items.push(ChunkItem { logical, bytes });
        rest = after;
    }
    Some(items)
}

#[allow(unsafe_code)]
fn search_tree(inside: impl AsFd, words: &mut [u64]) -> Result<(), Errno> {
    // SAFETY: see `SearchTree`.
    unsafe { rustix::ioctl::ioctl(inside, SearchTree(words)) }
}

/// `BTRFS_IOC_TREE_SEARCH_V2` with a key and room for [`RESULT_BYTES`].
struct SearchTree<'a>(&'a mut [u64]);

// SAFETY: the kernel writes at most as many bytes of results as the key states, and the buffer is
// made for that number.
#[allow(unsafe_code)]
unsafe impl Ioctl for SearchTree<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<[u64; HEAD_WORDS]>(GROUP, 17)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> Result<(), Errno> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a result: a header and an item.
    fn result(logical: u64, item: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[16..24].copy_from_slice(&logical.to_ne_bytes());
        bytes[28..32].copy_from_slice(&(item.len() as u32).to_ne_bytes());
        bytes.extend(item);
        bytes
    }

    /// Are results of different lengths separated, and are results that are cut off at any byte
    /// refused?
    #[test]
    fn results_are_separated() {
        let items = [(1 << 20, vec![1; 80]), (9 << 20, vec![2; 113])];
        let bytes: Vec<u8> = items
            .iter()
            .flat_map(|(logical, item)| result(*logical, item))
            .collect();
        let expected: Vec<ChunkItem> = items
            .into_iter()
            .map(|(logical, bytes)| ChunkItem { logical, bytes })
            .collect();
        assert_eq!(results_of(&bytes, 2), Some(expected));
        for end in 0..bytes.len() {
            assert_eq!(results_of(&bytes[..end], 2), None, "{end} bytes");
        }
    }
}
