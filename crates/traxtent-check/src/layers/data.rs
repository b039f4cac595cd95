//! Data that does not begin with a header, such as that of a drive whose partition table is lost.

use std::ops::Range;

use crate::source::{Source, SourceError};

/// The number of bytes at the start that are read completely. The first partition usually begins at
/// 1 MiB, and most file systems write within their first MiBs. Reading them takes less than a
/// second on a disk.
const START_BYTES: u64 = 32 << 20;
/// The number of bytes at the end that are read completely.
const END_BYTES: u64 = 1 << 20;

/// The number of samples between the start and the end. Reading them takes about a second on a
/// disk.
const SAMPLES: u64 = 64;
/// The size of a sample, in bytes.
const SAMPLE_BYTES: u64 = 4 << 10;

/// The maximum size of one read, in bytes.
const READ_BYTES_MAX: u64 = 1 << 20;

/// Returns the offset of the first byte that is not zero in the start, the samples and the end of a
/// range; `None` if all of them are zero.
///
/// # Errors
/// Returns an error if the bytes cannot be read.
pub fn first_data(source: &dyn Source, range: Range<u64>) -> Result<Option<u64>, SourceError> {
    let bytes = range.end - range.start;
    let start = range.start..range.start + START_BYTES.min(bytes);
    let samples = (1..=SAMPLES).map(|index| {
        let at = (u128::from(bytes) * u128::from(index) / u128::from(SAMPLES + 1)) as u64;
        let at = range.start + at - at % SAMPLE_BYTES;
        at..range.end.min(at + SAMPLE_BYTES)
    });
    let end = range.end - END_BYTES.min(bytes)..range.end;
    for part in std::iter::once(start).chain(samples).chain([end]) {
        if let Some(at) = first_data_in(source, part)? {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// Returns the offset of the first byte of a range that is not zero. The range is read completely.
///
/// # Errors
/// Returns an error if the bytes cannot be read.
pub fn first_data_in(source: &dyn Source, range: Range<u64>) -> Result<Option<u64>, SourceError> {
    let mut at = range.start;
    while at < range.end {
        let count = READ_BYTES_MAX.min(range.end - at);
        let bytes = source.read_up_to(at, count as usize)?;
        if let Some(index) = bytes.iter().position(|&byte| byte != 0) {
            return Ok(Some(at + index as u64));
        }
        at += count;
    }
    Ok(None)
}
