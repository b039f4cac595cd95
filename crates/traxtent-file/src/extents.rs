//! The place of a file's bytes on the device of its file system, as the kernel reports it.
//!
//! Btrfs reports logical addresses. Its chunk tree translates them to bytes of the device.
//!
//! Source: Documentation/filesystems/fiemap.rst of the Linux kernel.

use std::fs::File;
use std::io;
use std::ops::Range;

use fiemap::{Fiemap, FiemapExtent, FiemapExtentFlags as Flags, FiemapFlags};
use traxtent_check::layers::btrfs::chunks::{Chunk, ChunkMap};
use traxtent_io::btrfs;

/// A run of a file's bytes that is contiguous on the device of its file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// The bytes of the file.
    pub file: Range<u64>,
    /// The first byte on the device.
    pub device_start: u64,
    /// Whether the space is allocated, but holds no data yet.
    pub is_unwritten: bool,
}

impl FileExtent {
    /// Returns the bytes on the device.
    pub fn device(&self) -> Range<u64> {
        self.device_start..self.device_start + (self.file.end - self.file.start)
    }
}

/// Writes a file's data to the device, and returns the file's extents in file order. Holes, and
/// data that is stored within metadata, have no extent.
///
/// On Btrfs, an extent ends where a chunk ends, unless the next chunk follows on the device. Of two
/// copies (profile DUP), the first counts. The chunk tree is read each time, because a balance can
/// move chunks.
///
/// # Errors
/// Returns an error if the data cannot be written, or if the file system does not report extents.
/// On Btrfs, returns an error of the kind [`Unsupported`](io::ErrorKind::Unsupported) if data is
/// compressed, lies on several devices, or has a profile other than single and DUP; and an error if
/// the process does not have `CAP_SYS_ADMIN`.
pub fn file_extents(file: &File) -> io::Result<Vec<FileExtent>> {
    let nowhere = Flags::UNKNOWN | Flags::DELALLOC | Flags::DATA_INLINE | Flags::NOT_ALIGNED;
    let mut found = Vec::new();
    for extent in Fiemap::with_flags(file, FiemapFlags::SYNC) {
        let extent = extent?;
        if !extent.fe_flags.intersects(nowhere) {
            found.push(extent);
        }
    }
    if btrfs::is_btrfs(file)? {
        return on_btrfs(file, &found);
    }
    let in_place = |extent: FiemapExtent| FileExtent {
        file: extent.fe_logical..extent.fe_logical.saturating_add(extent.fe_length),
        device_start: extent.fe_physical,
        is_unwritten: extent.fe_flags.contains(Flags::UNWRITTEN),
    };
    Ok(found.into_iter().map(in_place).collect())
}

/// Translates the logical addresses of extents on Btrfs to bytes of its device.
fn on_btrfs(file: &File, found: &[FiemapExtent]) -> io::Result<Vec<FileExtent>> {
    let unsupported = |why: String| io::Error::new(io::ErrorKind::Unsupported, why);
    if found
        .iter()
        .any(|extent| extent.fe_flags.contains(Flags::ENCODED))
    {
        let why = "its data is compressed, so its bytes have no place of their own on the device";
        return Err(unsupported(why.to_owned()));
    }
    if btrfs::has_raid_stripe_tree(file)? {
        let why = "its Btrfs has a RAID stripe tree, which is not supported";
        return Err(unsupported(why.to_owned()));
    }
    let chunks = chunk_map(file)?;
    let mut extents = Vec::new();
    for extent in found {
        let start = extent.fe_physical;
        let places = chunks
            .on_device(start..start.saturating_add(extent.fe_length))
            .map_err(|error| unsupported(error.to_string()))?;
        let mut at = extent.fe_logical;
        for place in places {
            let end = at + (place.end - place.start);
            extents.push(FileExtent {
                file: at..end,
                device_start: place.start,
                is_unwritten: extent.fe_flags.contains(Flags::UNWRITTEN),
            });
            at = end;
        }
    }
    Ok(extents)
}

/// Reads the chunk tree of the Btrfs that holds a file.
fn chunk_map(file: &File) -> io::Result<ChunkMap> {
    let items = btrfs::chunk_items(file)?;
    let chunks = items
        .iter()
        .map(|item| Chunk::parse(item.logical, &item.bytes));
    chunks
        .collect::<Result<_, _>>()
        .and_then(ChunkMap::new)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
