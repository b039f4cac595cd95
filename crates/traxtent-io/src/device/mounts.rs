//! The mounts that this process sees.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::Dev;

use super::sysfs::parse_number;

/// The types of file systems that can stop responding, because a program or another machine serves
/// them. Subtypes such as `fuse.sshfs` follow a point.
const REMOTE: [&str; 9] = [
    "9p", "afs", "ceph", "cifs", "fuse", "fuseblk", "nfs", "nfs4", "smb3",
];

/// A mounted file system: a line of /proc/self/mountinfo (proc_pid_mountinfo(5)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The device number of its files.
    pub device: Dev,
    /// The directory where it is mounted.
    pub point: PathBuf,
    /// The type, with the subtype: `fuse.traxtent`.
    pub kind: String,
    /// The device that is mounted, or an arbitrary name.
    pub source: PathBuf,
}

/// Returns the mounts in the order in which they were made.
///
/// # Errors
/// Returns an error if the kernel's table cannot be read.
pub fn mounts() -> io::Result<Vec<Mount>> {
    let table = fs::read("/proc/self/mountinfo")?;
    let lines = table.split(|&byte| byte == b'\n');
    Ok(lines.filter_map(Mount::parse).collect())
}

/// Returns the mount that is visible at a directory, whose path must be canonical.
///
/// # Errors
/// Returns an error if the kernel's table cannot be read.
pub fn mounted_at(directory: &Path) -> io::Result<Option<Mount>> {
    let visible = mounts()?.into_iter().rev();
    Ok(visible.into_iter().find(|mount| mount.point == directory))
}

/// Returns the mount points of file systems on a block device or on its partitions.
pub fn mounts_of_device(device: &Path) -> Vec<PathBuf> {
    let is_on_it = |mount: &Mount| {
        let source = mount.source.as_os_str().as_encoded_bytes();
        match source.strip_prefix(device.as_os_str().as_encoded_bytes()) {
            Some([]) => true,
            Some([b'p', partition @ ..]) => partition.iter().all(u8::is_ascii_digit),
            _ => false,
        }
    };
    let table = mounts().unwrap_or_default().into_iter();
    table.filter(is_on_it).map(|mount| mount.point).collect()
}

impl Mount {
    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|&byte| byte == b' ');
        let device = parse_number(str::from_utf8(fields.nth(2)?).ok()?)?;
        let point = unescaped(fields.nth(1)?);
        let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
        Some(Mount {
            device,
            point,
            kind: String::from_utf8_lossy(fields.next()?).into_owned(),
            source: unescaped(fields.next()?),
        })
    }

    /// Returns the mount that holds an absolute path, without an access to it.
    pub(super) fn of<'m>(path: &Path, mounts: &'m [Mount]) -> Option<&'m Mount> {
        let above = mounts.iter().filter(|mount| path.starts_with(&mount.point));
        // Of several mounts on one directory, the last one is visible.
        above.max_by_key(|mount| mount.point.as_os_str().len())
    }

    /// Returns whether its files may not respond.
    pub(super) fn is_remote(&self) -> bool {
        let kind = self.kind.split('.').next().unwrap_or_default();
        REMOTE.contains(&kind)
    }
}

/// Decodes a path in which some bytes are written as a backslash and three octal digits.
pub(super) fn unescaped(field: &[u8]) -> PathBuf {
    let mut path = Vec::with_capacity(field.len());
    let mut rest = field;
    while let [byte, after @ ..] = rest {
        rest = after;
        match (byte, after) {
            (
                b'\\',
                [
                    a @ b'0'..=b'3',
                    b @ b'0'..=b'7',
                    c @ b'0'..=b'7',
                    after @ ..,
                ],
            ) => {
                path.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest = after;
            }
            _ => path.push(*byte),
        }
    }
    PathBuf::from(OsString::from_vec(path))
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
            b"36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue";
        let mount = Mount::parse(plain).unwrap();
        assert_eq!(mount.device, makedev(98, 0));
        assert_eq!(
            (mount.point.to_str(), mount.source.to_str()),
            (Some("/mnt2"), Some("/dev/root"))
        );
        let bare = b"36 35 8:1 / /my\\040disk rw - btrfs /dev/sd\\134x rw";
        let mount = Mount::parse(bare).unwrap();
        assert_eq!(
            (mount.point.to_str(), mount.source.to_str()),
            (Some("/my disk"), Some("/dev/sd\\x"))
        );
        assert_eq!(Mount::parse(b"36 35 8 / /"), None);
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
        .filter_map(|line| Mount::parse(line.as_bytes()))
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
