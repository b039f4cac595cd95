//! The processes that have a block device open.
//!
//! The kernel accepts a request to detach a loop device that programs have open, but detaches it
//! only once they have closed it (losetup(8)). If the server ends before that, they receive I/O
//! errors. An exclusive open fails only if the device is claimed, for example by a mount. The
//! kernel does not report how many programs have a device open, so this module looks at the files
//! of all processes, as fuser(1) does. It cannot see processes in other namespaces, nor, unless the
//! user is root, those of other users.

use std::fs;
use std::path::Path;

/// Returns the processes, other than this one, that have a block device or one of its partitions
/// open.
pub(super) fn users_of(device: &Path) -> Vec<u32> {
    let own = std::process::id();
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers
        .filter(|process| *process != own && has_open(*process, device))
        .collect()
}

/// Returns whether a process has a device or one of its partitions open. Links are only read: their
/// files may belong to a server that does not respond.
fn has_open(process: u32, device: &Path) -> bool {
    let files = fs::read_dir(format!("/proc/{process}/fd"));
    let files = files.into_iter().flatten().flatten();
    let mut targets = files.filter_map(|entry| fs::read_link(entry.path()).ok());
    targets.any(|target| is_on(&target, device))
}

/// Returns whether a path is that of a device, such as `/dev/loop1`, or of one of its partitions,
/// such as `/dev/loop1p2`.
fn is_on(path: &Path, device: &Path) -> bool {
    let (Some(path), Some(device)) = (path.to_str(), device.to_str()) else {
        return false;
    };
    match path.strip_prefix(device) {
        Some("") => true,
        Some(rest) => rest
            .strip_prefix('p')
            .is_some_and(|number| number.parse::<u32>().is_ok()),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a partition distinguished from another device whose name begins in the same way?
    #[test]
    fn partitions() {
        let device = Path::new("/dev/loop1");
        for (path, expected) in [
            ("/dev/loop1", true),
            ("/dev/loop1p2", true),
            ("/dev/loop11", false),
            ("/dev/loop1p", false),
            ("/dev/loop", false),
        ] {
            assert_eq!(is_on(Path::new(path), device), expected, "{path}");
        }
    }
}
