//! The location of a file's bytes: from the kernel (FIEMAP) for a mounted file, and from the
//! metadata of an ext image otherwise.
//!
//! Sources: Documentation/filesystems/fiemap.rst and Documentation/filesystems/ext4 of the Linux
//! kernel.

mod ext;

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use ext::{bad_blocks_in_image, extents_in_image};

use crate::target::HostPaths;

/// A file of a mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// The block device of its file system.
    pub device: PathBuf,
    /// The file's extents as byte ranges of that device, in the order of the file.
    pub extents: Vec<Range<u64>>,
}

/// Queries the kernel for the location of a file's bytes.
///
/// Bytes that are not on the device yet, or are stored within metadata, are left out. Btrfs reports
/// addresses of its own, so its files are refused.
///
/// # Errors
/// Returns an error if the path is not a regular file, or if its file system has no block device of
/// its own or does not report locations.
pub fn extents_of_mounted(path: &Path, host: &HostPaths) -> io::Result<Mounted> {
    use fiemap::FiemapExtentFlags as Flags;
    let nowhere = Flags::UNKNOWN | Flags::DELALLOC | Flags::DATA_INLINE | Flags::NOT_ALIGNED;
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let device = device_of_mounted(path, host)?;
    let mut extents = Vec::new();
    for extent in fiemap::fiemap(path)? {
        let extent = extent?;
        if !extent.fe_flags.intersects(nowhere) {
            join(
                &mut extents,
                extent.fe_physical..extent.fe_physical.saturating_add(extent.fe_length),
            );
        }
    }
    Ok(Mounted { device, extents })
}

/// Returns the block device of the mounted file system that holds a file or directory.
///
/// # Errors
/// Returns an error if the path does not exist, or if its file system has no block device of its
/// own.
pub fn device_of_mounted(path: &Path, host: &HostPaths) -> io::Result<PathBuf> {
    let device = fs::metadata(path)?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let link = host.sys.join(format!("dev/block/{major}:{minor}"));
    let real = fs::canonicalize(&link)
        .map_err(|_| io::Error::other("its file system is not on a block device of its own"))?;
    Ok(host.dev.join(real.file_name().unwrap_or_default()))
}

/// Appends a range, or extends the last one if the range follows it directly.
fn join(extents: &mut Vec<Range<u64>>, range: Range<u64>) {
    match extents.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => extents.push(range),
    }
}
