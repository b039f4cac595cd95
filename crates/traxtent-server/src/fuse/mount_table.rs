//! The mounts visible to this process, from /proc/self/mountinfo (see proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MountEntry {
    /// The device number of its files, as `major:minor`.
    pub(super) device: String,
    /// The directory where it is mounted.
    pub(super) at: PathBuf,
    /// The type, with the subtype: `fuse.traxtent`.
    pub(super) kind: String,
    /// The device that is mounted, or an arbitrary name.
    pub(super) source: PathBuf,
}

/// Returns the mounts in the order in which they were made.
pub(super) fn mounts() -> io::Result<Vec<MountEntry>> {
    let table = fs::read("/proc/self/mountinfo")?;
    Ok(table
        .split(|&byte| byte == b'\n')
        .filter_map(entry)
        .collect())
}

/// Returns the mount that is visible at a directory, whose path must be canonical.
pub(super) fn mounted_at(directory: &Path) -> io::Result<Option<MountEntry>> {
    let visible = mounts()?.into_iter().rev();
    Ok(visible.into_iter().find(|mount| mount.at == directory))
}

/// Returns the mount points of file systems on a block device or on its partitions.
pub(super) fn mounts_of_device(device: &Path) -> Vec<PathBuf> {
    let is_on_it = |mount: &MountEntry| {
        let source = mount.source.as_os_str().as_encoded_bytes();
        match source.strip_prefix(device.as_os_str().as_encoded_bytes()) {
            Some([]) => true,
            Some([b'p', partition @ ..]) => partition.iter().all(u8::is_ascii_digit),
            _ => false,
        }
    };
    let table = mounts().unwrap_or_default().into_iter();
    table.filter(is_on_it).map(|mount| mount.at).collect()
}

/// Parses a line of the table.
fn entry(line: &[u8]) -> Option<MountEntry> {
    let mut fields = line.split(|&byte| byte == b' ');
    let device = fields.nth(2)?;
    let at = fields.nth(1)?;
    let mut fields = fields.skip_while(|field| *field != b"-").skip(1);
    let (kind, source) = (fields.next()?, fields.next()?);
    Some(MountEntry {
        device: String::from_utf8_lossy(device).into_owned(),
        at: unescaped(at),
        kind: String::from_utf8_lossy(kind).into_owned(),
        source: unescaped(source),
    })
}

/// Decodes a path in which some bytes are written as a backslash and three octal digits.
fn unescaped(field: &[u8]) -> PathBuf {
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
    use super::*;

    /// Are escaped paths decoded and optional fields skipped, and are incomplete lines refused?
    #[test]
    fn lines_are_parsed() {
        let line = br"52 28 0:45 / /tmp/a\040b\134 rw,nosuid shared:7 master:1 - fuse.traxtent traxtent rw";
        let parsed = entry(line).unwrap();
        assert_eq!(parsed.device, "0:45");
        assert_eq!(parsed.at, Path::new("/tmp/a b\\"));
        assert_eq!(parsed.kind, "fuse.traxtent");
        assert_eq!(parsed.source, Path::new("traxtent"));
        assert_eq!(entry(b"52 28 0:45 /"), None);
    }
}
