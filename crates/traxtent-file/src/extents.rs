//! The place of a file's bytes on the device of its file system, as the kernel reports it.
//!
//! Source: Documentation/filesystems/fiemap.rst of the Linux kernel.

use std::fs::File;
use std::io;
use std::ops::Range;

use fiemap::{Fiemap, FiemapExtentFlags as Flags, FiemapFlags};

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
/// # Errors
/// Returns an error if the data cannot be written, or if the file system does not report extents.
pub fn file_extents(file: &File) -> io::Result<Vec<FileExtent>> {
    let nowhere = Flags::UNKNOWN | Flags::DELALLOC | Flags::DATA_INLINE | Flags::NOT_ALIGNED;
    let mut extents = Vec::new();
    for extent in Fiemap::with_flags(file, FiemapFlags::SYNC) {
        let extent = extent?;
        if !extent.fe_flags.intersects(nowhere) {
            let (start, length) = (extent.fe_logical, extent.fe_length);
            extents.push(FileExtent {
                file: start..start.saturating_add(length),
                device_start: extent.fe_physical,
                is_unwritten: extent.fe_flags.contains(Flags::UNWRITTEN),
            });
        }
    }
    Ok(extents)
}
