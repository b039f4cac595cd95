//! The content of a device, recognized before something writes to it.
//!
//! A device counts as blank only if no format is recognized, either at its start or by a copy of a
//! header elsewhere, and all its samples are zero. Reading the whole device would take hours. For
//! a file, the file system reports the ranges that hold data. They are read, or sampled if they are
//! large.

use std::fs::File;
use std::path::Path;

use traxtent_io::device::guard::{content_on, next_data, volume_on};

use crate::layers::{Content, Unknown, copy_of_header, first_data, first_data_in, recognize};
use crate::source::{FileSource, Source, SourceError};

/// The maximum number of bytes of a file's data that are read completely. Reading them takes a
/// second on a slow disk. Ranges that exceed the rest of this budget are sampled.
const DATA_BYTES_MAX: u64 = 64 << 20;

/// Returns a description of all content of a device, including this project's volumes; `None` if
/// the device is blank or cannot be opened.
pub fn all_content(path: &Path) -> Option<String> {
    content_on(path, recognized_content)
}

/// Returns a description of a device's content; `None` if the device is blank or cannot be opened.
/// On a device with a superblock of this project's volumes, only [`content_beside_volume`] counts.
pub fn recognized_content(path: &Path) -> Option<String> {
    if volume_on(path).is_some() {
        return content_beside_volume(path);
    }
    let source = FileSource::open(path).ok()?;
    named_content(&source).or_else(|| unnamed_content(path, &source))
}

/// Returns a description of the content of a device that was part of one of this project's volumes
/// and has been reused; `None` if there is no such content, or if the device cannot be opened.
///
/// Only a known header at the device's start counts, because the volume's own data has headers at
/// other addresses. A partition table, for example, can leave the signature of a superblock in
/// place.
pub fn content_beside_volume(path: &Path) -> Option<String> {
    let source = FileSource::open(path).ok()?;
    let content = match recognize(&source, 512) {
        Content::Unknown(own) if own.is_traxtent_volume() => recognize(&Unsigned(&source), 512),
        content => content,
    };
    match content {
        Content::Unknown(Unknown::Headless { .. }) => None,
        content => named(&content),
    }
}

/// Returns the name of a file's content; `None` if its start has no known header, or if it cannot
/// be opened.
pub fn known_content(path: &Path) -> Option<String> {
    named_content(&FileSource::open(path).ok()?)
}

/// Returns a description of a disk image in a format of its own, such as qcow2, whose bytes are not
/// those of the disk; `None` for any other content, or if the file cannot be opened.
pub fn image_content(path: &Path) -> Option<String> {
    match recognize(&FileSource::open(path).ok()?, 512) {
        Content::Unknown(image @ Unknown::Container(_)) => image.noun_phrase(),
        _ => None,
    }
}

/// Describes content with a known header.
fn named_content(source: &FileSource) -> Option<String> {
    named(&recognize(source, 512))
}

fn named(content: &Content) -> Option<String> {
    match content {
        Content::Unknown(
            unknown @ (Unknown::Container(_)
            | Unknown::Damaged(_)
            | Unknown::Headless { found: Some(_), .. }),
        ) => unknown.noun_phrase(),
        content => content.name().map(|name| name.to_owned()),
    }
}

/// The number of bytes of the signature of a superblock.
const SIGNATURE_BYTES: u64 = 8;

/// A source without the signature at its start.
struct Unsigned<'a>(&'a FileSource);

impl Source for Unsigned<'_> {
    fn bytes(&self) -> u64 {
        self.0.bytes()
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.0.read_at(offset, buffer)?;
        let signature = SIGNATURE_BYTES.saturating_sub(offset) as usize;
        let signature = signature.min(buffer.len());
        buffer[..signature].fill(0);
        Ok(())
    }
}

/// Describes content that does not begin with a known header; `None` if the device is blank.
fn unnamed_content(path: &Path, source: &dyn Source) -> Option<String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("unknown content: {error}");
    match copy_of_header(source) {
        Err(error) => return Some(unreadable(&error)),
        Ok(Some(copy)) => return Some(copy.to_owned()),
        Ok(None) => {}
    }
    let found = match first_data(source, 0..source.bytes()) {
        Ok(None) => first_in_data_ranges(path, source),
        found => found,
    };
    match found {
        Ok(None) => None,
        Ok(Some(at)) => Some(format!("data of an unknown format (at byte {at})")),
        Err(error) => Some(unreadable(&error)),
    }
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
            first_data_in(source, range)?
        } else {
            first_data(source, range)?
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
