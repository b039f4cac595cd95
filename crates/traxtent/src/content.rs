//! The content of a device, recognized before something writes to it.
//!
//! A device counts as blank only if no format is recognized, neither at its start nor by a copy of
//! a header elsewhere, and all its samples are zero. Reading the whole device would take hours.

use std::path::Path;

use traxtent_check::layers::{Content, Unknown, copy_of_header, recognize};
use traxtent_check::source::{FileSource, Source, SourceError};

/// The number of bytes at the start and at the end that must be zero for a device to be blank.
const EDGE_BYTES: u64 = 1 << 20;

/// The number of samples between the edges. Reading them takes about a second on a disk.
const SAMPLES: u64 = 64;
/// The size of a sample.
const SAMPLE_BYTES: u64 = 4 << 10;

/// Returns a description of a device's content, unless the device is blank.
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
        _ => return unnamed_content(&source),
    };
    Some(what.to_owned())
}

/// Describes content that does not begin with a known header.
fn unnamed_content(source: &dyn Source) -> Option<String> {
    let unreadable = |error: &dyn std::fmt::Display| format!("unknown content: {error}");
    match copy_of_header(source) {
        Err(error) => return Some(unreadable(&error)),
        Ok(Some(copy)) => return Some(copy.to_owned()),
        Ok(None) => {}
    }
    match first_data(source) {
        Ok(None) => None,
        Ok(Some(at)) => Some(format!("data of an unknown format (at byte {at})")),
        Err(error) => Some(unreadable(&error)),
    }
}

/// Returns the offset of the first byte of the samples that is not zero.
fn first_data(source: &dyn Source) -> Result<Option<u64>, SourceError> {
    let bytes = source.bytes();
    let edge = EDGE_BYTES.min(bytes);
    let between = (1..=SAMPLES).map(|index| {
        let at = (u128::from(bytes) * u128::from(index) / u128::from(SAMPLES + 1)) as u64;
        (at - at % SAMPLE_BYTES, SAMPLE_BYTES)
    });
    let samples = std::iter::once((0, edge)).chain(between);
    for (at, count) in samples.chain([(bytes - edge, edge)]) {
        let sample = source.read_up_to(at, count as usize)?;
        if let Some(index) = sample.iter().position(|&byte| byte != 0) {
            return Ok(Some(at + index as u64));
        }
    }
    Ok(None)
}
