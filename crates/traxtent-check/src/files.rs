//! Where a file's bytes are: from the kernel (FIEMAP) for a mounted file, from the tables of an ext image else.
//!
//! Sources: Documentation/filesystems/fiemap.rst and Documentation/filesystems/ext4 of the Linux kernel.

mod ext;

use std::fs;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use ext::extents_in_image;

use crate::target::Host;

/// A file of a mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounted {
    /// The block device of its file system.
    pub device: PathBuf,
    /// Where its bytes are, in bytes of that device, in the order of the file.
    pub extents: Vec<Range<u64>>,
}

/// Asks the kernel where the bytes of a file are.
///
/// What is not on the device yet, or within metadata, is left out. Btrfs answers with addresses of its own, so its
/// files are refused.
///
/// # Errors
/// If the file cannot be opened, has no block device below it, or its file system does not tell.
pub fn extents_of_mounted(path: &Path, host: &Host) -> io::Result<Mounted> {
    use fiemap::FiemapExtentFlags as Flags;
    let nowhere = Flags::UNKNOWN | Flags::DELALLOC | Flags::DATA_INLINE | Flags::NOT_ALIGNED;
    let meta = fs::metadata(path)?;
    if !meta.is_file() {
        return Err(io::Error::other("is no regular file"));
    }
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let link = host.sys.join(format!("dev/block/{major}:{minor}"));
    let real = fs::canonicalize(&link).map_err(|_| {
        io::Error::other("its file system does not lie on a block device of its own")
    })?;
    let name = real.file_name().unwrap_or_default();
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
    Ok(Mounted {
        device: host.dev.join(name),
        extents,
    })
}

/// Adds a range, to the last one if it goes on there.
fn join(extents: &mut Vec<Range<u64>>, range: Range<u64>) {
    match extents.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => extents.push(range),
    }
}
