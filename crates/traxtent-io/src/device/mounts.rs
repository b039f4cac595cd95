//! The mounts that this process sees.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Dev;

use super::sysfs::parse_number;

/// The types of file systems that can stop responding, because a program or another machine serves
/// them. Subtypes such as `fuse.sshfs` follow a point.
const REMOTE: [&str; 9] = [
    "9p", "afs", "ceph", "cifs", "fuse", "fuseblk", "nfs", "nfs4", "smb3",
];

/// A line of /proc/self/mountinfo (Linux, Documentation/filesystems/proc.rst, section 3.5).
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mount {
    /// The device number of its files.
    pub(super) device: Dev,
    /// The directory where it is mounted.
    pub(super) point: String,
    /// The type, with the subtype.
    pub(super) kind: String,
    /// The device that is mounted, or an arbitrary name.
    pub(super) source: PathBuf,
}

/// Returns the mounts in the order in which they were made.
pub(super) fn mounts() -> Vec<Mount> {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    table.lines().filter_map(Mount::parse).collect()
}

impl Mount {
    fn parse(line: &str) -> Option<Mount> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut mount = mount.split(' ').skip(2);
        let device = parse_number(mount.next()?)?;
        let point = unescape(mount.nth(1)?);
        let mut file_system = file_system.split(' ');
        Some(Mount {
            device,
            point,
            kind: file_system.next()?.to_owned(),
            source: PathBuf::from(unescape(file_system.next()?)),
        })
    }

    /// Returns the mount that holds an absolute path, without an access to it.
    pub(super) fn of<'m>(path: &Path, mounts: &'m [Mount]) -> Option<&'m Mount> {
        let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
        // Of several mounts on one directory, the last one is visible.
        above.max_by_key(|mount| mount.point.len())
    }

    /// Returns whether its files may not respond.
    pub(super) fn is_remote(&self) -> bool {
        let kind = self.kind.split('.').next().unwrap_or_default();
        REMOTE.contains(&kind)
    }
}

/// Decodes the kernel's octal escapes of white space and backslashes.
pub(super) fn unescape(text: &str) -> String {
    let mut plain = text.to_owned();
    for (escape, character) in [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ] {
        plain = plain.replace(escape, character);
    }
    plain
}

#[cfg(test)]
mod tests {
    use rustix::fs::makedev;

    use super::*;

    /// Are a mount's device, mount point and source read from the kernel's table, with and without
    /// optional fields, and with escaped characters in names? Is an incomplete line skipped?
    #[test]
    fn mounts_are_read() {
        let plain =
            "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(plain).unwrap();
        assert_eq!(mount.device, makedev(98, 0));
        assert_eq!(
            (mount.point.as_str(), mount.source.to_str()),
            ("/mnt2", Some("/dev/root"))
        );
        let bare = "36 35 8:1 / /my\\040disk rw - btrfs /dev/sd\\134x rw";
        let mount = Mount::parse(bare).unwrap();
        assert_eq!(
            (mount.point.as_str(), mount.source.to_str()),
            ("/my disk", Some("/dev/sd\\x"))
        );
        assert_eq!(Mount::parse("36 35 8 / /"), None);
    }

    /// Is the mount of a path the innermost one, and of several on one directory the last? Are file
    /// systems told apart that can stop responding?
    #[test]
    fn the_mount_of_a_path() {
        let mounts: Vec<Mount> = [
            "1 0 8:1 / / rw - ext4 /dev/sda1 rw",
            "2 1 0:50 / /mnt rw - fuse.sshfs host: rw",
            "3 1 0:51 / /mnt/a rw - tmpfs tmpfs rw",
            "4 1 0:52 / /mnt/a rw - nfs4 host:/a rw",
        ]
        .iter()
        .filter_map(|line| Mount::parse(line))
        .collect();
        let of = |path: &str| {
            let mount = Mount::of(Path::new(path), &mounts).unwrap();
            (mount.kind.as_str(), mount.is_remote())
        };
        assert_eq!(of("/srv/x"), ("ext4", false));
        assert_eq!(of("/mntx"), ("ext4", false));
        assert_eq!(of("/mnt/b"), ("fuse.sshfs", true));
        assert_eq!(of("/mnt/a/x (deleted)"), ("nfs4", true));
    }
}
