//! The block device of a mounted file system.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use traxtent_check::files::device_of_mounted;
use traxtent_check::target::HostPaths;
use traxtent_io::btrfs;

/// Returns the block device of the mounted file system that holds a file or directory.
///
/// A Btrfs does not have the device number of its device, because it may have several. The kernel
/// lists them by the UUID of the file system.
///
/// # Errors
/// Returns an error if the path does not exist, if its file system has no block device of its own,
/// or if it is a Btrfs on several devices.
pub fn device_of(path: &Path, host: &HostPaths) -> io::Result<PathBuf> {
    let place = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    if !btrfs::is_btrfs(&place)? {
        return device_of_mounted(path, host);
    }
    let info = btrfs::info(open_inside(path)?)?;
    let folder = host.sys.join("fs/btrfs").join(uuid(info.uuid));
    let listed = fs::read_dir(folder.join("devices"))?;
    let names: Vec<_> = listed
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<_>>()?;
    // The list includes the devices that a file system on a seed device only reads.
    match names.as_slice() {
        [name] if info.devices == 1 => Ok(host.dev.join(name)),
        _ => {
            let count = info.devices.max(names.len() as u64);
            let why = format!("its Btrfs has {count} devices; only one is supported");
            Err(io::Error::new(io::ErrorKind::Unsupported, why))
        }
    }
}

/// Opens a file or directory. Instead of anything else, opens its directory, because opening a
/// device or a pipe has effects.
fn open_inside(path: &Path) -> io::Result<File> {
    let real = fs::canonicalize(path)?;
    let kind = fs::metadata(&real)?.file_type();
    let parent = real.parent().filter(|_| !kind.is_file() && !kind.is_dir());
    File::open(parent.unwrap_or(&real))
}

/// Formats a UUID.
fn uuid(bytes: [u8; 16]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [0..4, 4..6, 6..8, 8..10, 10..16];
    groups.map(|group| digits[group].concat()).join("-")
}
