//! Writing back the data that the kernel has cached for a block device.

use std::fs::File;
use std::io;
use std::path::Path;

use super::mounts::mounts_of_device;

/// Writes back the data that the kernel has cached for a block device: that of its file systems
/// and its own. If none is visibly mounted, the device may be part of another one, or a file
/// system may be mounted in another namespace; everything that the kernel has cached is then
/// written back.
///
/// # Errors
/// Returns an error if a mount point or the device cannot be opened, or if data cannot be written.
/// All the other data has been written.
pub fn write_back(device: &Path) -> io::Result<()> {
    let points = mounts_of_device(device);
    if points.is_empty() {
        rustix::fs::sync();
    }
    let file_systems = points
        .iter()
        .map(|point| Ok(rustix::fs::syncfs(File::open(point)?)?))
        .fold(Ok(()), io::Result::and);
    file_systems.and(File::open(device)?.sync_all())
}
