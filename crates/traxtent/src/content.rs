//! The content of a device, recognized before something writes to it.
//!
//! A device counts as blank only if no format is recognized, either at its start or by a copy of a
//! header elsewhere, and all its samples are zero. Reading the whole device would take hours. For
//! a file, the file system reports the ranges that hold data. They are read, or sampled if they are
//! large.

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use traxtent_check::layers::{Content, Unknown, copy_of_header, recognize};
use traxtent_check::source::{FileSource, Source, SourceError};
use traxtent_io::device::guard::next_data;

/// The number of bytes at the start and at the end that must be zero for a device to be blank.
const EDGE_BYTES: u64 = 1 << 20;

/// The number of samples between the edges. Reading them takes about a second on a disk.
const SAMPLES: u64 = 64;
/// The size of a sample, in bytes.
const SAMPLE_BYTES: u64 = 4 << 10;

/// The maximum number of bytes of a file's data that are read completely. Reading them takes a
/// second on a slow disk. Ranges that exceed the rest of this budget are sampled.
const DATA_BYTES_MAX: u64 = 64 << 20;

/// The maximum size of one read of a range that is read completely, in bytes.
const READ_BYTES_MAX: u64 = 1 << 20;

/// Returns a description of a device's content; `None` if the device is blank or cannot be opened.
pub(crate) fn recognized_content(path: &Path) -> Option<String> {
    let source = FileSource::open(path).ok()?;
    let what = match recognize(&source, 512) {
        Content::Table(_) => "a partition table",
        Content::MdMember(_) => "a member of an md array",
        Content::PhysicalVolume(..) => "a physical volume of LVM",
        Content::Luks(_) => "LUKS",
        Content::Zfs(_) => "a member of a ZFS pool",
        Content::Xfs(_) => "XFS",
        Content::Btrfs(_) => "Btrfs",
        Content::Ext(_) => "an ext file system",
        Content::Swap(_) => "swap space",
        Content::Unknown(Unknown::Named(name)) => return Some(name),
        Content::Unknown(Unknown::Container(format)) => {
            return Some(format!("a disk image in the format {format}"));
        }
        Content::Unknown(Unknown::Damaged(why)) => {
            return Some(format!("damaged content: {why}"));
        }
        _ => return unnamed_content(path, &source),
    };
    Some(what.to_owned())
}

/// Describes content that does not begin with a known header; `None` if the device is blank.
fn unnamed_content(path: &Path, source: &dyn Source) -> Option<String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("unknown content: {error}");
    match copy_of_header(source) {
        Err(error) => return Some(unreadable(&error)),
        Ok(Some(copy)) => return Some(copy.to_owned()),
        Ok(None) => {}
    }
    let found = match first_in_samples(source, 0..source.bytes()) {
        Ok(None) => first_in_data_ranges(path, source),
        found => found,
    };
    match found {
        Ok(None) => None,
        Ok(Some(at)) => Some(format!("data of an unknown format (at byte {at})")),
        Err(error) => Some(unreadable(&error)),
    }
}

/// Returns the offset of the first byte that is not zero in the edges and samples of a range.
fn first_in_samples(source: &dyn Source, range: Range<u64>) -> Result<Option<u64>, SourceError> {
    let bytes = range.end - range.start;
    let edge = EDGE_BYTES.min(bytes);
    let between = (1..=SAMPLES).map(|index| {
        let at = (u128::from(bytes) * u128::from(index) / u128::from(SAMPLES + 1)) as u64;
        let at = range.start + at - at % SAMPLE_BYTES;
        (at, SAMPLE_BYTES.min(range.end - at))
    });
    let samples = std::iter::once((range.start, edge)).chain(between);
    for (at, count) in samples.chain([(range.end - edge, edge)]) {
        if let Some(at) = first_nonzero(source, at, count)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns the offset of the first byte that is not zero in the data ranges of a file. Large ranges
/// are sampled. A block device has no such ranges.
fn first_in_data_ranges(path: &Path, source: &dyn Source) -> Result<Option<u64>, SourceError> {
    let Some(file) = File::open(path).ok().filter(is_regular) else {
        return Ok(None);
    };
    let (mut next, mut left) = (0, DATA_BYTES_MAX);
    // If the file system reports an error, the samples of the whole file have to suffice.
    while let Ok(Some(range)) = next_data(&file, next) {
        let range = range.start..range.end.min(source.bytes());
        if range.is_empty() {
            break;
        }
        next = range.end;
        let bytes = range.end - range.start;
        let found = if bytes <= left {
            left -= bytes;
            first_in_range(source, range)?
        } else {
            first_in_samples(source, range)?
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn is_regular(file: &File) -> bool {
    file.metadata().is_ok_and(|metadata| metadata.is_file())
}

/// Returns the offset of the first byte of a range that is not zero.
fn first_in_range(source: &dyn Source, range: Range<u64>) -> Result<Option<u64>, SourceError> {
    let mut at = range.start;
    while at < range.end {
        let count = READ_BYTES_MAX.min(range.end - at);
        if let Some(found) = first_nonzero(source, at, count)? {
            return Ok(Some(found));
        }
        at += count;
    }
    Ok(None)
}

/// Reads `count` bytes, and returns the offset of the first one that is not zero.
fn first_nonzero(source: &dyn Source, at: u64, count: u64) -> Result<Option<u64>, SourceError> {
    let bytes = source.read_up_to(at, count as usize)?;
    let index = bytes.iter().position(|&byte| byte != 0);
    Ok(index.map(|index| at + index as u64))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    /// Is a nonzero byte between the samples of a file found, even after many ranges of zeros? Do
    /// holes and zeros count as blank?
    #[test]
    fn only_nonzero_bytes_count_as_data() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("file");
        let file = File::create(&path).unwrap();
        file.set_len(1 << 30).unwrap();
        assert_eq!(recognized_content(&path), None);
        for range in 0..20 {
            file.write_all_at(&[0; 8192], range * (40 << 20) + 12345)
                .unwrap();
        }
        assert_eq!(recognized_content(&path), None);
        let at = 777 << 20 | 4321;
        file.write_all_at(b"x", at).unwrap();
        let what = format!("data of an unknown format (at byte {at})");
        assert_eq!(recognized_content(&path), Some(what));
        std::fs::write(&path, vec![0; 3 << 20]).unwrap();
        assert_eq!(recognized_content(&path), None);
    }
}
